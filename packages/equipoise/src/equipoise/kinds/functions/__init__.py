"""Compare Python functions and pieces of code; each block is a fresh process that runs all of them.

conducting  a whole campaign: trial runs, plan, blocks, record; a check that copies of the data in
            fresh processes give the same ratios
functions   checks the user's functions and code, and makes them ready to send to a process
trial_runs  before the campaign: the duration of a call, and whether a call changes its data
runner      a block: one process, and a trial for each function
processes   fresh processes that are prepared together and measured one by one
terms       the terms of the plan
result      the result document, which also has the terms
worker      the program of the fresh process; it does not import equipoise
"""

from __future__ import annotations

from equipoise.model.kinds import Kind

KIND = Kind(
    "functions",
    terms="equipoise.kinds.functions.terms:FunctionsPlan",
    document="equipoise.kinds.functions.result:FunctionsDocument",
    analysis="equipoise.kinds.functions.result:FunctionsAnalysis",
    compare_callables="equipoise.kinds.functions.conducting:compare_functions",
    compare_code="equipoise.kinds.functions.conducting:compare_pieces",
)
