"""Python functions and pieces of code as conditions: each block is one fresh process that runs all.

conducting  the story of a campaign: trial runs, the plan, the blocks, the record
functions   functions and code as the user gives them, checked and made ready to send
trial_runs  before the campaign: what a call takes, and whether it changes what it works on
own_process functions in the caller's process, held against their copies in fresh ones
runner      a block: one process, a trial for each function
processes   fresh processes that are prepared together and measured one by one
worker      the program of the fresh process; it imports nothing of ours
"""
