"""Runs a campaign: plan, verify, run block after block, analyse, stop.

In reading order:

- ``plans``: makes the plan of a comparison or a study from options
- ``conduct``: starts, resumes and ends a campaign
- ``verification``: checks before the first trial that each condition took effect
- ``pilot``: whether trials that run at once disturb each other
- ``segment``: runs blocks, without interruption, until there is a reason to stop
- ``interim``: analyses after each block, and decides what runs next and when to stop
- ``washouts``: adds runs that are not measured, if carry-over could explain a difference
- ``blocks``: turns recorded trials into the arrays that statistics take
- ``progress``: reports events to a listener, and forecasts the time of a block
"""
