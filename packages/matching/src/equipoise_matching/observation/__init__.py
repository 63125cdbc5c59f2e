"""Effects from logs by matching: what to do where no experiment is possible.

In reading order; docs/methods/effects-from-logs.md has the formulas and their sources.

- ``analysis``: the steps of ``observe``, from a log and a question to the document
- ``result``: the result of an observation, which is its JSON document
- ``question``: the question, and access to the columns of a log
- ``sample``: the rows that take part, with their version and their outcome
- ``covariates``: the columns in which rows must be comparable
- ``terms``: curves, steps and products of the covariates, chosen by the rows
- ``overlap``: the odds of the candidate, and the rows beyond comparison
- ``clusters``: rows that are not independent
- ``matching``: matching until the covariates are balanced
- ``effects``: the effect over the matched pairs, with its errors
- ``pattern``: a pattern that the model of the outcome leaves: a reason to refuse
- ``hidden_factor``: the strength of a hidden factor, by Rosenbaum's bounds and compared with the
  observed covariates
- ``checks``: effects that cannot exist, and the effect by periods of time
- ``wording``: the sentences of the answer, why no effect is reported, and warnings
- ``report``, ``drawing``: the report of an observation, as text, and its charts
- ``strata``: the steps of ``observe --strata``: each stratum alone, and the effect over all
"""
