"""The document with the answer, and with what can be held against it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from equipoise.model.observation_result import ObservationResult, Placebo
from equipoise.model.record import CampaignWarning
from equipoise.observation.effects import Found, matched_of
from equipoise.observation.hidden import contributions, hidden_bias, regressions, robustness_of
from equipoise.observation.matching import Comparable, Tell
from equipoise.observation.periods import periods_of
from equipoise.observation.placebos import placebo_outcomes, placebo_period
from equipoise.observation.prepared import Prepared
from equipoise.observation.words import answer_words

_UNLIKELY = 0.01
"""A p-value of Cochran's Q below it is warned of."""


def answered(
    document: ObservationResult,
    prepared: Prepared,
    kept: Comparable,
    on_log: Found | None,
    plain: Found,
    tell: Tell,
) -> ObservationResult:
    """Add the effect, hidden factors, placebos, stretches of time, and the words.

    Parameters
    ----------
    on_log, plain
        The effect on the log scale, where there is one, and as a difference.
    """
    question, treated, covariates = prepared.question, prepared.treated, prepared.covariates
    main = on_log or plain
    matched = matched_of(on_log, plain)
    tell("what a hidden factor could change")
    hidden = hidden_bias(
        main,
        kept,
        treated,
        prepared.clusters,
        is_log=on_log is not None,
        seed=question.seed,
        threads=question.threads,
    )
    fitted = regressions(prepared.logs, prepared.outcome, treated, covariates)
    shares = () if fitted is None else contributions(*fitted)
    tell("placebos and stretches of time")
    placebos = tuple(_placebos(prepared, kept, tell))
    periods, unequal = periods_of(
        prepared.log, kept, covariates, prepared.logs, prepared.outcome, prepared.clusters
    )
    words = answer_words(
        document.naive,
        matched.effect,
        shares,
        hidden,
        question.outcome,
        prepared.arms.candidate,
    )
    return dataclasses.replace(
        document,
        summary=words,
        matched=matched,
        contributions=shares,
        hidden_bias=hidden,
        robustness=(
            None if fitted is None else robustness_of(fitted[0] or fitted[1], main.linear.effect)
        ),
        placebos=placebos,
        periods=periods,
        warnings=(*document.warnings, *_cautions(placebos, len(periods), unequal)),
    )


def _placebos(prepared: Prepared, kept: Comparable, tell: Tell) -> Iterator[Placebo]:
    yield from placebo_outcomes(prepared, kept)
    if prepared.before is not None and prepared.before_treated is not None:
        yield placebo_period(prepared.before, prepared.question, prepared.before_treated, tell)


def _cautions(
    placebos: tuple[Placebo, ...], stretches: int, unequal: float | None
) -> Iterator[CampaignWarning]:
    for placebo in placebos:
        if placebo.shows_effect:
            yield CampaignWarning(
                f"placebo-{placebo.kind}",
                placebo.summary,
                "do not trust the answer until what differs is found and given as a covariate",
            )
    if unequal is not None and unequal < _UNLIKELY:
        yield CampaignWarning(
            "effect-changes",
            f"the effect is not the same throughout: Cochran's p = {unequal:.2g} over "
            f"{stretches} stretches of time",
            "read the stretches, not their mean; ask what changed between them",
        )
