"""Match treated units with similar controls, and estimate the effect of the treatment.

- ``match``: match treated units with controls and estimate the effect.
- ``stratified``: match inside strata (``match_by``).
- ``gen_match``: search for the weights of the covariates with the best balance.
- ``fitness``: the fitness of a candidate, which is a vector of such weights.
- ``balance``: balance of many covariates before and after matching (``match_balance``).
- ``univariate``: balance of one covariate (``balance_uv``).
- ``distributions``: empirical distributions, QQ differences and Kolmogorov-Smirnov tests.
- ``propensity``: the propensity score.
- ``options``, ``units``: the checked options and data for the native engine in Rust.
- ``wording``, ``report``, ``drawing``: the sentences, the report and the charts of a match.
- ``frames``, ``formula``: covariates from data frames and formulae.
- ``datasets``: LaLonde's data.
"""
