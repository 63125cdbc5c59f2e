"""Campaigns: plan, block, interim analysis, stop. Nothing of analysis and wording.

plans          from options to the plan of `compare`, `run` and `os`
conduct        start and resume a campaign
verification   whether each condition is what its name says, before anything is measured
segment        an uninterrupted stretch of a campaign: blocks until there is a reason to stop
interim        the analysis after each block, which says what runs next and when to stop
washouts       the blocks that decide once carry-over could make a difference
blocks         from recorded trials to the arrays that statistics take
progress       what a listener hears of a campaign, and the forecast of a block's time
"""
