"""Effects estimated from logs by matching, where no experiment is possible.

Each row of a log ran one of two versions: the candidate or the baseline. In the match, candidate
rows are the treated units, and baseline rows are the controls.

In reading order; docs/methods/effects-from-logs.md has the formulas and their sources.

- ``analysis``: the steps of ``observe``, from a log and a question to the result
- ``result``: the result of an observation, which is its JSON document
- ``question``: the question, and access to the columns of a log
- ``sample``: the rows that take part, with their version and their outcome
- ``covariates``: the columns in which the rows must be comparable
- ``terms``: curves, steps and products of the covariates, chosen from the data
- ``overlap``: the odds that a row has the candidate; rows with high odds are left out
- ``clusters``: groups of rows that are not independent
- ``matching``: matching until the covariates are balanced
- ``effects``: the effect over the matched pairs, with its standard errors
- ``pattern``: a test of the model of the outcome; if the model fails, no effect is reported
- ``hidden_factor``: how strong a factor that nobody measured must be to change the answer
- ``checks``: placebos, where no effect can exist, and the effect in each period of time
- ``wording``: the sentences of the answer, of a refusal and of the warnings
- ``report``, ``drawing``: the report of an observation, as text, and its charts
- ``strata``: the steps of ``observe --strata``: match each stratum, then combine the effects
"""
