"""Check the answer by placebos, and by the effect in each period of time.

A placebo is an outcome or a period in which the candidate cannot have an effect. An effect there is
a sign of a hidden factor. Without one, the answer is not contradicted.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
from msgspec.structs import astuple

from equipoise_matching.matching.frames import numbers_of, python_value, text_of
from equipoise_matching.matching.units import Floats, Indices, Truths
from equipoise_matching.observation.clusters import choose_clusters, time_of
from equipoise_matching.observation.covariates import read_covariates
from equipoise_matching.observation.effects import (
    EffectEstimate,
    Estimate,
    MatchedSample,
    PairSubset,
    effect_over_pairs,
    estimate_by_clusters,
    estimate_effect,
    to_effect,
)
from equipoise_matching.observation.matching import BalancedMatch, Progress, match_until_balanced
from equipoise_matching.observation.question import Log, Question
from equipoise_matching.observation.result import Period, Placebo
from equipoise_matching.observation.sample import Sample, Scales
from equipoise_matching.observation.wording import range_clause
from equipoise_matching.shared.errors import UnusableInput
from equipoise_matching.shared.extras import require

MAX_PERIODS = 4
"""Largest number of periods into which the time of the log is split."""
MIN_PERIOD_ROWS = 20
"""Number of candidate rows that each period needs."""


def placebos_of(matched_sample: MatchedSample, progress: Progress) -> Iterator[Placebo]:
    """Estimate the effect on every placebo outcome, then in the placebo period."""
    sample = matched_sample.sample
    names = sample.question.placebo_outcomes
    unit, treatment = sample.question.unit, sample.question.treatment
    for name in names:
        effects = _to_scales(numbers_of(sample.log[name], name), sample.question).map(
            lambda values: estimate_effect(
                values, matched_sample.balanced_match, sample.clusters, intervals=len(names)
            )
        )
        yield _placebo(
            "outcome",
            name,
            effects,
            f"comparable {unit} differ in {name} {{range}}, which {treatment} cannot have changed: "
            "something that was not measured differs too, and may be what the answer shows",
            f"comparable {unit} do not differ in {name} {{range}}, which {treatment} cannot have "
            "changed: this check does not contradict the answer",
        )
    if sample.placebo_log is not None and sample.placebo_treated is not None:
        yield _placebo_period(sample.placebo_log, sample.placebo_treated, sample, progress)


def _placebo_period(log: Log, treated: Truths, sample: Sample, progress: Progress) -> Placebo:
    """Estimate the effect in the placebo period, by the same method as the answer."""
    question = sample.question
    assert question.placebo_period is not None
    name = "=".join(question.placebo_period)
    try:
        if treated.all() or not treated.any():
            only_version = sample.arms.candidate if treated.any() else sample.arms.baseline
            raise UnusableInput(
                f"all rows of the placebo period {name} have {question.treatment} {only_version}",
                hint="name a period with rows of both versions",
            )
        covariates = read_covariates(log, question)
        clusters = choose_clusters(log, question, treated)
        balanced_match = match_until_balanced(covariates, treated, question, progress)
        if not balanced_match.is_balanced:
            raise UnusableInput(
                f"in the placebo period {name}, a covariate still differs by "
                f"{balanced_match.max_mean_difference:.2f} standard deviations after matching",
                hint="name a period with more rows",
            )
        values = numbers_of(log[question.outcome], question.outcome)
    except UnusableInput as error:
        reason = f"unknown: {error.what}; {error.hint}" if error.hint else f"unknown: {error.what}"
        return Placebo("period", name, None, None, None, None, None, reason)
    effects = _to_scales(values, question).map(
        lambda values: estimate_effect(values, balanced_match, clusters)
    )
    return _placebo(
        "period",
        name,
        effects,
        f"an effect shows in {name} {{range}}, where {question.treatment} cannot have one: "
        "something that was not measured differs too, and may be what the answer shows",
        f"no effect shows in {name} {{range}}, where {question.treatment} cannot have one: this "
        "check does not contradict the answer",
    )


def _to_scales(values: Floats, question: Question) -> Scales[Floats]:
    """Return the values; also their logarithms if all values are above 0 and a ratio is wanted."""
    has_log_scale = question.ratio and bool((values > 0.0).all())
    return Scales(np.log(values) if has_log_scale else None, values)


def _placebo(
    kind: str, name: str, effects: Scales[EffectEstimate], effect_text: str, no_effect_text: str
) -> Placebo:
    """Return the result of a placebo; the interval replaces ``{range}`` in the two texts."""
    effect = to_effect(effects.map(lambda effect: effect.estimate))
    estimates = (effect.ratio, effect.ratio_ci, effect.difference, effect.difference_ci)
    if effect.interval is None:
        unknown = f"{name} checks nothing: there are too few clusters for an interval"
        return Placebo(kind, name, *estimates, None, unknown)
    summary = effect_text if effect.excludes_zero else no_effect_text
    summary = summary.replace("{range}", f"({range_clause(effect)})")
    return Placebo(kind, name, *estimates, effect.excludes_zero, summary)


def periods_of(matched_sample: MatchedSample) -> tuple[tuple[Period, ...], float | None]:
    """Estimate the effect in each period, from the pairs of the candidate rows in the period.

    Return the periods, and the p-value of Cochran's test that all periods have the same effect. The
    p-value is ``None`` if a period has no standard error.
    """
    sample = matched_sample.sample
    strata = sample.covariates.exact_strata()
    # All periods share the terms of the whole log.
    dictionary = matched_sample.balanced_match.model.dictionary
    matrix = dictionary.values(matched_sample.effects.answer_scale.terms)
    # Without clusters, each row is a cluster of its own.
    code: Indices = np.arange(len(matrix)) if sample.clusters is None else sample.clusters.code

    def estimate(pairs: PairSubset, outcome: Floats) -> Estimate:
        return estimate_by_clusters(effect_over_pairs(outcome, matrix, strata, pairs), code)

    periods: list[Period] = []
    estimates: list[Estimate] = []
    for begin_time, end_time, pairs in _split_by_time(sample.log, matched_sample.balanced_match):
        scales = sample.outcomes.map(partial(estimate, pairs))
        estimates.append(scales.answer_scale)
        rows = len(np.unique(pairs.treated_index))
        periods.append(Period(begin_time, end_time, rows, *astuple(to_effect(scales))))
    return tuple(periods), _p_value_of_equality(estimates)


def _split_by_time(log: Log, balanced_match: BalancedMatch) -> list[tuple[str, str, PairSubset]]:
    """Split the pairs into periods with about the same number of candidate rows.

    Return the first time, the last time and the pairs of each period. If the log has no times, or
    rows for one period only, return no period.
    """
    pairs, time_column = balanced_match.pairs, time_of(log)
    rows = np.unique(pairs.treated_index)
    period_count = min(MAX_PERIODS, len(rows) // MIN_PERIOD_ROWS)
    if time_column is None or period_count < 2:
        return []
    name, time = time_column
    bounds = np.unique(np.quantile(time[rows], np.linspace(0.0, 1.0, period_count + 1)))
    if len(bounds) < 3:
        return []
    pair_time = time[pairs.treated_index]
    period = np.clip(np.searchsorted(bounds, pair_time, side="right") - 1, 0, len(bounds) - 2)
    periods = []
    for index in range(len(bounds) - 1):
        inside = period == index
        if not inside.any():
            return []
        subset = PairSubset(
            pairs.treated_index[inside], pairs.control_index[inside], pairs.weights[inside]
        )
        rows = np.unique(subset.treated_index)
        ordered = rows[np.argsort(time[rows], kind="stable")]
        begin, end = (_time_text(log, name, row) for row in (ordered[0], ordered[-1]))
        periods.append((begin, end, subset))
    return periods


def _p_value_of_equality(estimates: list[Estimate]) -> float | None:
    """Return Cochran's p-value that all effects are equal; ``None`` if an error is unknown."""
    errors = np.array([estimate.error for estimate in estimates if estimate.error])
    if len(errors) < 2 or len(errors) < len(estimates):
        return None
    effects = np.array([estimate.effect for estimate in estimates])
    weights = 1.0 / errors**2
    common_effect = float(np.average(effects, weights=weights))
    heterogeneity = float((weights * (effects - common_effect) ** 2).sum())
    return float(require("scipy.special", "tests").chdtrc(len(effects) - 1, heterogeneity))


def _time_text(log: Log, name: str, row: int) -> str:
    value = log[name][row]
    return str(value) if log[name].dtype.kind == "M" else text_of(python_value(value))
