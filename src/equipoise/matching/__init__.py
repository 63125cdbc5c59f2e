"""Matching: the effect of a treatment from units that did and units that did not get it.

Balance, propensity scores and the data sets need the extra ``equipoise[matching]``; they are
imported when they are used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from equipoise.matching.fitness import match_fitness

# At once, since its file has its name: imported later, the file would take the function's place.
from equipoise.matching.gen_match import gen_match
from equipoise.matching.match import match
from equipoise.matching.result import MatchResult

if TYPE_CHECKING:
    from equipoise.matching.balance import match_balance
    from equipoise.matching.balance_univariate import balance_uv
    from equipoise.matching.gen_match_result import GenMatchResult
    from equipoise.matching.ks import ks_boot
    from equipoise.matching.propensity import propensity_score
    from equipoise.matching.qq import qq_stats
    from equipoise.matching.stratified import match_by
    from equipoise.matching.stratified_result import MatchByResult

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
    "GenMatchResult": "equipoise.matching.gen_match_result",
    "MatchByResult": "equipoise.matching.stratified_result",
    "balance_uv": "equipoise.matching.balance_univariate",
    "ks_boot": "equipoise.matching.ks",
    "match_balance": "equipoise.matching.balance",
    "match_by": "equipoise.matching.stratified",
    "propensity_score": "equipoise.matching.propensity",
    "qq_stats": "equipoise.matching.qq",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'equipoise.matching' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_HOMES[name]), name)
