"""Explanation: why one condition of a campaign is slower. The room is loaded only when it is used.

- ``kind.py``: the gaps of each kind of campaign that are explained
- ``gap.py``: the gap that is explained
- ``evidence/``: observations of instrumented runs of both conditions
- ``differences/``: the differences between both conditions in that evidence
- ``causes/``: rules that turn differences into named causes; a new cause is one entry there
- ``interventions/``: changes that test a cause; a new intervention is one entry there
- ``explanation.py``: the causes of a gap, put together for a result document
- ``result.py``: the result with its causes; the campaign that tested them

The campaign that tries interventions is a kind of its own: `equipoise.kinds.explain`.
"""
