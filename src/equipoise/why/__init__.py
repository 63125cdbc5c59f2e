"""Explanation: why one condition of a campaign is slower. The room is loaded only when it is used.

- ``campaigns.py``: what other rooms ask of this one: a campaign's judge, experiment and causes
- ``gap.py``: the gap that is explained: of a comparison, or of a bisection's culprit
- ``evidence/``: what instrumented runs of both conditions observe
- ``differences/``: what differs between both conditions in that evidence
- ``causes/``: rules that turn differences into named causes; a new cause is one entry there
- ``interventions/``: changes that test a cause; a new intervention is one entry there
- ``experiment/``: the campaign that tries interventions, and what they closed of the gap
- ``explanation.py``: all of it put together for a result document, with the diff of a culprit
"""
