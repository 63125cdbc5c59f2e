"""Explanation: why one condition of a campaign is slower. The room is loaded only when it is used.

- ``kind.py``: which gaps of a kind of campaign are explained, and what it adds
- ``gap.py``: the gap that is explained
- ``evidence/``: what instrumented runs of both conditions observe
- ``differences/``: what differs between both conditions in that evidence
- ``causes/``: rules that turn differences into named causes; a new cause is one entry there
- ``interventions/``: changes that test a cause; a new intervention is one entry there
- ``explanation.py``: all of it put together for a result document; a campaign's experiment
  and causes

The campaign that tries interventions is a kind: `equipoise.kinds.explain`.
"""
