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
- ``effects``: effects after a design, and their sensitivity to hidden factors
- ``designs``: designs without an outcome: which rows are compared, and their weights
- ``weights``: weights that make the arms alike, without choosing rows
- ``observation``: the effect of a change, from a log
- ``tables``: the functions of ``matching`` for data frames, CSV and Parquet files
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from equipoise_matching.designs.cardinality import cardinality_match, profile_match
    from equipoise_matching.designs.coarsening import cem
    from equipoise_matching.designs.comparison import (
        balance_of_imputations,
        compare_designs,
        love_plot,
    )
    from equipoise_matching.designs.drawing import overlap_plot
    from equipoise_matching.designs.full import full_match
    from equipoise_matching.designs.matches import design_of_match
    from equipoise_matching.designs.nearest import nearest_match
    from equipoise_matching.designs.optimal import optimal_match
    from equipoise_matching.designs.quick import quick_match
    from equipoise_matching.designs.subclasses import subclassify
    from equipoise_matching.effects.aipw import aipw_effect, aipw_effects
    from equipoise_matching.effects.imputed import PooledEffect, effect_of_imputations, pool_effects
    from equipoise_matching.effects.result import EffectEstimate
    from equipoise_matching.effects.robustness import RobustnessValue, robustness_value
    from equipoise_matching.effects.sensitivity import (
        EValue,
        RosenbaumBounds,
        e_value,
        rosenbaum_bounds,
    )
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
    from equipoise_matching.weights.covariate_balancing import covariate_balancing_score
    from equipoise_matching.weights.energy_balance import energy_balance
    from equipoise_matching.weights.entropy_balance import entropy_balance
    from equipoise_matching.weights.inverse_probability import (
        inverse_probability_weights,
        overlap_weights,
    )
    from equipoise_matching.weights.scores import treatment_scores

__all__ = [
    "EValue",
    "EffectEstimate",
    "GenMatchResult",
    "MatchByResult",
    "MatchResult",
    "PooledEffect",
    "RobustnessValue",
    "RosenbaumBounds",
    "UnusableInput",
    "aipw_effect",
    "aipw_effects",
    "balance_of_imputations",
    "balance_uv",
    "cardinality_match",
    "cem",
    "compare_designs",
    "covariate_balancing_score",
    "design_of_match",
    "e_value",
    "effect_of_imputations",
    "energy_balance",
    "entropy_balance",
    "full_match",
    "gen_match",
    "genoud",
    "inverse_probability_weights",
    "ks_boot",
    "love_plot",
    "match",
    "match_balance",
    "match_by",
    "match_fitness",
    "nearest_match",
    "observe",
    "optimal_match",
    "overlap_plot",
    "overlap_weights",
    "pool_effects",
    "profile_match",
    "propensity_score",
    "qq_stats",
    "quick_match",
    "robustness_value",
    "rosenbaum_bounds",
    "subclassify",
    "treatment_scores",
]

_MODULES = {
    "EValue": "effects.sensitivity",
    "EffectEstimate": "effects.result",
    "GenMatchResult": "matching.gen_match",
    "MatchByResult": "matching.stratified",
    "MatchResult": "matching.match",
    "PooledEffect": "effects.imputed",
    "RobustnessValue": "effects.robustness",
    "RosenbaumBounds": "effects.sensitivity",
    "UnusableInput": "shared.errors",
    "aipw_effect": "effects.aipw",
    "aipw_effects": "effects.aipw",
    "balance_of_imputations": "designs.comparison",
    "balance_uv": "matching.univariate",
    "cardinality_match": "designs.cardinality",
    "cem": "designs.coarsening",
    "compare_designs": "designs.comparison",
    "covariate_balancing_score": "weights.covariate_balancing",
    "design_of_match": "designs.matches",
    "e_value": "effects.sensitivity",
    "effect_of_imputations": "effects.imputed",
    "energy_balance": "weights.energy_balance",
    "entropy_balance": "weights.entropy_balance",
    "full_match": "designs.full",
    "gen_match": "matching.gen_match",
    "genoud": "genetic.genoud",
    "inverse_probability_weights": "weights.inverse_probability",
    "ks_boot": "matching.distributions",
    "love_plot": "designs.comparison",
    "match": "matching.match",
    "match_balance": "matching.balance",
    "match_by": "matching.stratified",
    "match_fitness": "matching.fitness",
    "nearest_match": "designs.nearest",
    "observe": "tables.interface",
    "optimal_match": "designs.optimal",
    "overlap_plot": "designs.drawing",
    "overlap_weights": "weights.inverse_probability",
    "pool_effects": "effects.imputed",
    "profile_match": "designs.cardinality",
    "propensity_score": "matching.propensity",
    "qq_stats": "matching.distributions",
    "quick_match": "designs.quick",
    "robustness_value": "effects.robustness",
    "rosenbaum_bounds": "effects.sensitivity",
    "subclassify": "designs.subclasses",
    "treatment_scores": "weights.scores",
}


def __getattr__(name: str) -> Any:
    # A module is imported when it is used: a match needs neither formulae nor the search.
    import importlib

    if name not in _MODULES:
        raise AttributeError(f"module 'equipoise_matching' has no attribute {name!r}")
    return getattr(importlib.import_module(f"equipoise_matching.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
