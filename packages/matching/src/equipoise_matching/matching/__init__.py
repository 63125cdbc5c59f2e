"""Matching: the effect of a treatment from comparable units with and without it.

- ``match``: match treated units with controls and estimate the effect.
- ``stratified``: the same inside strata (``match_by``).
- ``gen_match``: search for the weights of the covariates that balance them best.
- ``fitness``: the fitness of these weights.
- ``balance``: balance of many covariates before and after matching (``match_balance``).
- ``univariate``: balance of one covariate (``balance_uv``).
- ``distributions``: empirical distributions, QQ differences and Kolmogorov-Smirnov tests.
- ``propensity``: the propensity score.
- ``options``, ``units``: the checked options and data that the native engine reads.
- ``wording``, ``report``: the report of a match, as sentences and as text.
- ``drawing``: its charts.
- ``frames``, ``formula``: covariates from data frames and formulae; words as indicators.
- ``datasets``: LaLonde's data.
"""
