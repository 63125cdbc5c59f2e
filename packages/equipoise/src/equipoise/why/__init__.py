"""Explanation: why one condition of a campaign is slower. The room is loaded only when it is used.

- ``kind.py``: which gaps of a kind of campaign are explained, and what it adds
- ``gap.py``: the gap that is explained
- ``evidence/``: what instrumented runs of both conditions observe
- ``differences/``: what differs between both conditions in that evidence
- ``causes/``: rules that turn differences into named causes; a new cause is one entry there
- ``interventions/``: changes that test a cause; a new intervention is one entry there
- ``explanation.py``: the causes of a gap, put together for a result document
- ``result.py``: the result of a campaign with them, and the campaign that tested them

The campaign that tries interventions is a kind: `equipoise.kinds.explain`.
"""
