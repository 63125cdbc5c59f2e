"""The experiment: a campaign that tests causes by interventions (docs/statistics.md).

A block holds the two conditions of the gap and, for one intervention that the coin draws, the same
two with it; where the intervention has a sham, also with that.

- ``plan.py``: from a gap and its causes to the plan of the campaign
- ``reach.py``: whether an intervention changes what the evidence of its cause names
- ``judge.py``: what the campaign tries next, and when it stops
- ``outcome.py``: what each intervention closed of the gap, and the sentence that says so
"""
