"""Effects estimated from logs by matching, where no experiment is possible.

In reading order; docs/methods/effects-from-logs.md has the formulas and their sources.

- ``analysis``: the steps of ``observe``, from a log and a question to the document
- ``result``: the result of an observation, which is its JSON document
- ``question``: the question, and access to the columns of a log
- ``sample``: the rows that take part, with their version and their outcome
- ``covariates``: the columns in which rows must be comparable
- ``terms``: curves, steps and products of the covariates, chosen from the data
- ``overlap``: the odds that a row has the candidate; rows with high odds are left out
- ``clusters``: groups of rows that are not independent
- ``matching``: matching until the covariates are balanced
- ``effects``: the effect over the matched pairs, with its errors
- ``pattern``: a pattern in the outcome that its model does not describe: a reason to refuse
- ``hidden_factor``: the strength of a hidden factor, by Rosenbaum's bounds and compared with the
  observed covariates
- ``checks``: effects that cannot exist, and the effect by periods of time
- ``wording``: the sentences of the answer, why no effect is reported, and warnings
- ``report``, ``drawing``: the report of an observation, as text, and its charts
- ``strata``: the steps of ``observe --strata``: match each stratum, then combine the effects
"""
