"""Builders: each turns a result of one kind into a `Document`.

result: a comparison, from the parts that the next files build; other kinds bring their own.
origin: the question, the command, the time and the machine.
claims: the answer, a claim for each comparison, the ranking, and one condition alone.
conditions: tables with a row for each condition, also of a study in groups.
shape: modes, changes of state, drift, iterations, and the variance by level.
why: where the extra time goes, what interventions closed, and sources of chance.
reference: a result against a reference result; several campaigns of the same commands.
runs: campaigns of a ledger, a line each.
matching: what `equipoise_matching` reports: a match, its balance, a search, an effect from a log.
"""
