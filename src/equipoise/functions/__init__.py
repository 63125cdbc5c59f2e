"""Python functions and pieces of code as conditions: each block is one fresh process that runs all.

functions   functions and code as the user gives them, checked and made ready to send
request     what is sent to a worker, and its answer
worker      the program of the fresh process; it imports nothing of ours
processes   fresh processes that are prepared together and measured one by one
trial_runs  before the campaign: what a call takes, and whether it changes what it works on
plan        the plan of a campaign of functions
runner      a block: one process, a trial for each function
"""
