"""Placebos: effects that cannot exist; where one shows, a hidden factor differs."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from equipoise.matching.frames import numbers_of
from equipoise.model.errors import UnusableInput
from equipoise.model.observation_result import Placebo
from equipoise.observation.clusters import choose_clusters
from equipoise.observation.covariates import read_covariates
from equipoise.observation.effects import EffectEstimate, estimate_effect, to_effect
from equipoise.observation.matching import BalancedMatch, Progress, match_until_balanced
from equipoise.observation.question import Flags, Log, Question, Values
from equipoise.observation.sample import Sample, Scales
from equipoise.observation.wording import range_clause


def placebos_of(sample: Sample, matched: BalancedMatch, progress: Progress) -> Iterator[Placebo]:
    """Estimate the effect on every placebo outcome, then in the placebo period."""
    names, unit, treatment = (
        getattr(sample.question, field) for field in ("placebo_outcomes", "unit", "treatment")
    )
    for name in names:
        effects = _scales(numbers_of(sample.log[name], name), sample.question).map(
            lambda values: estimate_effect(
                values,
                sample.covariates,
                sample.treated,
                matched,
                sample.clusters,
                intervals=len(names),
            )
        )
        yield _placebo(
            "outcome",
            name,
            effects,
            {
                True: f"comparable {unit} differ in {name} {{range}}, which {treatment} cannot "
                f"have changed: something that was not measured differs too, and may be what "
                "the answer shows",
                False: f"comparable {unit} do not differ in {name} {{range}}, which {treatment} "
                "cannot have changed: nothing speaks against the answer here",
                None: f"{name} checks nothing: there are too few clusters for an interval",
            },
        )
    if sample.placebo_log is not None and sample.placebo_treated is not None:
        yield _placebo_period(sample.placebo_log, sample.placebo_treated, sample.question, progress)


def _placebo_period(log: Log, treated: Flags, question: Question, progress: Progress) -> Placebo:
    """Match the rows that the candidate cannot have reached in the same way, and estimate."""
    assert question.placebo_period is not None
    name = "=".join(question.placebo_period)
    try:
        if treated.all() or not treated.any():
            raise UnusableInput(f"{name} has rows of only one of the two versions")
        covariates = read_covariates(log, question)
        clusters = choose_clusters(log, question, treated)
        matched = match_until_balanced(covariates, treated, question, progress)
        if not matched.is_balanced:
            raise UnusableInput(
                f"the rows of {name} cannot be balanced ({matched.worst:.2f} standard deviations)"
            )
        values = numbers_of(log[question.outcome], question.outcome)
    except UnusableInput as error:
        return Placebo("period", name, None, None, None, None, None, f"unknown: {error.what}")
    effects = _scales(values, question).map(
        lambda values: estimate_effect(values, covariates, treated, matched, clusters)
    )
    return _placebo(
        "period",
        name,
        effects,
        {
            True: f"an effect shows in {name} {{range}}, where {question.treatment} cannot have "
            "one: something that was not measured differs too, and may be what the answer shows",
            False: f"no effect shows in {name} {{range}}, where {question.treatment} cannot have "
            "one: nothing speaks against the answer here",
            None: f"{name} checks nothing: there are too few clusters for an interval",
        },
    )


def _scales(values: Values, question: Question) -> Scales[Values]:
    """Return the values, with logarithms if a ratio is wanted and all are above 0."""
    has_logs = question.ratio and bool((values > 0.0).all())
    return Scales(np.log(values) if has_logs else None, values)


def _placebo(
    kind: str, name: str, effects: Scales[EffectEstimate], summaries: dict[bool | None, str]
) -> Placebo:
    """Return the check; ``{range}`` in a summary stands for the interval of the effect."""
    estimates = effects.map(lambda effect: effect.estimate)
    interval = estimates.main.interval
    shows_effect = None if interval is None else not interval[0] <= 0.0 <= interval[1]
    effect = to_effect(estimates)
    return Placebo(
        kind,
        name,
        effect.ratio,
        effect.ratio_ci,
        effect.difference,
        effect.difference_ci,
        shows_effect,
        summaries[shows_effect].replace("{range}", f"({range_clause(effect)})"),
    )
