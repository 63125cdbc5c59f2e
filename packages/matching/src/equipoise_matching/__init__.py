"""Estimate the effect of a treatment by matching: compare treated units with similar controls.

``match``, ``match_balance``, ``gen_match`` and the other functions take arrays. In
``equipoise_matching.tables``, functions with the same names take data frames or files, and names of
columns; so does ``observe``. ``genoud`` is the genetic search alone. Each folder or file imports
only from earlier entries of this list:

- ``shared``: modules that the wheels of this package and of `equipoise` both carry
- ``warning``, ``report``: the report of a result, with its warnings
- ``charts``: charts of effects and of balance (the extra ``equipoise-matching[charts]``)
- ``genetic``: genetic optimisation using derivatives
- ``matching``: matching and balance on arrays
- ``observation``: the effect of a change, from a log
- ``tables``: the functions of ``matching`` for data frames, CSV and Parquet files
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from equipoise_matching.designs.full import full_match
    from equipoise_matching.designs.optimal import optimal_match
    from equipoise_matching.genetic.genoud import genoud
    from equipoise_matching.matching.balance import match_balance
    from equipoise_matching.matching.distributions import ks_boot, qq_stats
    from equipoise_matching.matching.fitness import match_fitness
    from equipoise_matching.matching.gen_match import GenMatchResult, gen_match
    from equipoise_matching.matching.match import MatchResult, match
    from equipoise_matching.matching.propensity import propensity_score
    from equipoise_matching.matching.stratified import MatchByResult, match_by
    from equipoise_matching.matching.univariate import balance_uv
    from equipoise_matching.shared.errors import UnusableInput
    from equipoise_matching.tables.interface import observe

__all__ = [
    "GenMatchResult",
    "MatchByResult",
    "MatchResult",
    "UnusableInput",
    "balance_uv",
    "full_match",
    "gen_match",
    "genoud",
    "ks_boot",
    "match",
    "match_balance",
    "match_by",
    "match_fitness",
    "observe",
    "optimal_match",
    "propensity_score",
    "qq_stats",
]

_MODULES = {
    "GenMatchResult": "matching.gen_match",
    "MatchByResult": "matching.stratified",
    "MatchResult": "matching.match",
    "UnusableInput": "shared.errors",
    "balance_uv": "matching.univariate",
    "full_match": "designs.full",
    "gen_match": "matching.gen_match",
    "genoud": "genetic.genoud",
    "ks_boot": "matching.distributions",
    "match": "matching.match",
    "match_balance": "matching.balance",
    "match_by": "matching.stratified",
    "match_fitness": "matching.fitness",
    "observe": "tables.interface",
    "optimal_match": "designs.optimal",
    "propensity_score": "matching.propensity",
    "qq_stats": "matching.distributions",
}


def __getattr__(name: str) -> Any:
    # A module is imported when it is used: a match needs neither formulae nor the search.
    import importlib

    if name not in _MODULES:
        raise AttributeError(f"module 'equipoise_matching' has no attribute {name!r}")
    return getattr(importlib.import_module(f"equipoise_matching.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
