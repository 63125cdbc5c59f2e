"""Campaigns: plan, block, interim analysis, stop; without analysis of results and wording.

plans          from options to the plan of `compare`, `run` and `os` conduct        start and resume
a campaign verification   check before the first trial that each condition took effect segment an
uninterrupted stretch of a campaign: blocks until there is a reason to stop interim        the
analysis after each block, which decides what runs next and when to stop washouts       the blocks
that decide after carry-over could explain a difference blocks         from recorded trials to the
arrays that statistics take progress       the events of a campaign for a listener, and the forecast
of a block's time
"""
