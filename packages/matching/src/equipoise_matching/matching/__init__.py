"""Matching: the effect of a treatment from units that did and units that did not get it.

- ``match``: match treated units with controls and estimate the effect.
- ``stratified``: the same inside strata (``match_by``).
- ``gen_match``: search for the weights of the covariates that balance them best.
- ``fitness``: the fitness of these weights.
- ``balance``: balance of many covariates before and after matching (``match_balance``).
- ``univariate``: balance of one covariate (``balance_uv``).
- ``distributions``: empirical distributions, QQ differences and Kolmogorov-Smirnov tests.
- ``propensity``: the propensity score.
- ``options``, ``units``: the checked options and data that the native engine reads.
- ``frames``, ``formula``: covariates from data frames and formulae; words as indicators.
- ``datasets``: LaLonde's data.

Balance, propensity scores and the data sets need packages of the extra ``equipoise[matching]``,
which are imported when they are used.
"""

from __future__ import annotations

from equipoise_matching.matching.balance import match_balance
from equipoise_matching.matching.distributions import ks_boot, qq_stats
from equipoise_matching.matching.fitness import match_fitness
from equipoise_matching.matching.gen_match import GenMatchResult, gen_match
from equipoise_matching.matching.match import MatchResult, match
from equipoise_matching.matching.propensity import propensity_score
from equipoise_matching.matching.stratified import MatchByResult, match_by
from equipoise_matching.matching.univariate import balance_uv

__all__ = [
    "GenMatchResult",
    "MatchByResult",
    "MatchResult",
    "balance_uv",
    "gen_match",
    "ks_boot",
    "match",
    "match_balance",
    "match_by",
    "match_fitness",
    "propensity_score",
    "qq_stats",
]
