"""Matching: the effect of a treatment from units that did and units that did not get it.

- ``match``: match treated units with controls and estimate the effect.
- ``stratified``: the same inside strata (``match_by``).
- ``gen_match``: search for the weights of the covariates that balance them best.
- ``fitness``: the fitness of these weights.
- ``balance``: balance of many covariates before and after matching (``match_balance``).
- ``univariate``: balance of one covariate (``balance_uv``).
- ``ks``, ``distributions``: Kolmogorov-Smirnov tests; empirical distributions and QQ differences.
- ``propensity``: the propensity score.
- ``options``, ``units``: the checked options and data that the native engine reads.
- ``frames``, ``formula``: covariates from data frames and formulae.
- ``categories``: columns of words as indicators.
- ``datasets``: LaLonde's data.

Balance, propensity scores and the data sets need the extra ``equipoise[matching]``; they are
imported when they are used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from equipoise.matching.fitness import match_fitness

# At once, since its file has its name: imported later, the file would take the function's place.
from equipoise.matching.gen_match import GenMatchResult, gen_match
from equipoise.matching.match import MatchResult, match

if TYPE_CHECKING:
    from equipoise.matching.balance import match_balance
    from equipoise.matching.distributions import qq_stats
    from equipoise.matching.ks import ks_boot
    from equipoise.matching.propensity import propensity_score
    from equipoise.matching.stratified import MatchByResult, match_by
    from equipoise.matching.univariate import balance_uv

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

_HOMES = {
    "MatchByResult": "equipoise.matching.stratified",
    "balance_uv": "equipoise.matching.univariate",
    "ks_boot": "equipoise.matching.ks",
    "match_balance": "equipoise.matching.balance",
    "match_by": "equipoise.matching.stratified",
    "propensity_score": "equipoise.matching.propensity",
    "qq_stats": "equipoise.matching.distributions",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'equipoise.matching' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_HOMES[name]), name)
