"""Python functions and pieces of code as conditions: each block is one fresh process that runs all.

conducting  the story of a campaign: trial runs, the plan, the blocks, the record; functions of the
            caller's process, held against their copies in fresh ones
functions   functions and code as the user gives them, checked and made ready to send
trial_runs  before the campaign: what a call takes, and whether it changes what it works on
runner      a block: one process, a trial for each function
processes   fresh processes that are prepared together and measured one by one
terms       what its plan has beyond others
result      the document, which also says what each process did
worker      the program of the fresh process; it imports nothing of ours
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
