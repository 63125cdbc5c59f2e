"""Explanation: why one condition of a campaign is slower. The room is loaded only when it is used.

- ``kind.py``: `WhyKind`, which each kind of campaign may override
- ``gap.py``: finds the gaps of a campaign, and chooses one
- ``evidence/``: observes further runs of both conditions
- ``differences/``: compares the observations of both conditions
- ``causes/``: rules that find causes in the differences; add a new rule there
- ``interventions/``: changes that test a cause; add a new intervention there
- ``explanation.py``: adds the causes of a gap to a result document
- ``result.py``: computes the result document of any campaign; loads ``explanation.py`` if needed

The campaign that tests causes is a kind of its own: `equipoise.kinds.explain`.
"""
