"""Builders: a builder turns a result of one kind into a `Document`.

result: the document of a campaign; it uses the parts that the next files build.
origin: the question, the command, the time and the machine.
statements: the answer, a statement for each comparison, and the ranking.
conditions: tables with a row for each condition.
shape: modes, changes of state, drift, iterations, and the variance by level.
why: where the extra time goes, the effect of interventions, and sources of random variation.
reference: a comparison with an earlier result; several campaigns of the same commands.
runs: the list of campaigns in a ledger.
matching: results of `equipoise_matching`: a match, its balance, a search, an effect from a log.
"""
