"""Effects that cannot be: where one shows all the same, something hidden differs."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from equipoise.matching.frames import numbers_of
from equipoise.model.errors import UnusableInput
from equipoise.model.observation_result import Placebo
from equipoise.observation.clusters import Clusters, clusters_of
from equipoise.observation.covariates import Covariates, covariates_of
from equipoise.observation.effects import Found, effect_of, found
from equipoise.observation.matching import Comparable, Tell, comparable
from equipoise.observation.outcome import Values
from equipoise.observation.prepared import Prepared
from equipoise.observation.question import Log, Question
from equipoise.observation.scores import Estimate


def placebo_outcomes(prepared: Prepared, kept: Comparable) -> Iterator[Placebo]:
    """The effect on each outcome that the candidate cannot have changed, over the same pairs.

    Their intervals hold together at 95 %.

    Raises
    ------
    UnusableInput
        Such a column is no number throughout.
    """
    question, treated = prepared.question, prepared.treated
    covariates, clusters = prepared.covariates, prepared.clusters
    among = len(question.placebo_outcomes)
    for name in question.placebo_outcomes:
        values = numbers_of(prepared.log[name], name)
        logs, plain = _both(values, question, covariates, treated, kept, clusters, among=among)
        shows = _shows((logs or plain).estimate)
        yield _placebo(
            "outcome",
            name,
            logs,
            plain,
            shows,
            {
                True: f"comparable rows differ in {name}, which the version cannot have changed: "
                "something hidden differs",
                False: f"comparable rows do not differ in {name}",
                None: f"too few clusters for an interval of {name}",
            }[shows],
        )


def placebo_period(log: Log, question: Question, treated: NDArray[np.bool_], tell: Tell) -> Placebo:
    """The effect in rows that the candidate cannot have reached, matched in the same way.

    Parameters
    ----------
    log, treated
        Of these rows alone.
    """
    assert question.placebo_period is not None and question.covariates is not None
    name = "=".join(question.placebo_period)
    try:
        if treated.all() or not treated.any():
            raise UnusableInput(f"{name}: only one of the two versions is there")
        covariates = covariates_of(log, question.covariates, question.exact)
        clusters = clusters_of(log, question, treated)
        again = comparable(
            covariates,
            treated,
            question.method,
            seed=question.seed,
            threads=question.threads,
            tell=tell,
        )
        if not again.is_balanced:
            raise UnusableInput(
                f"{name}: the rows cannot be balanced ({again.worst:.2f} standard deviations)"
            )
        values = numbers_of(log[question.outcome], question.outcome)
        logs, plain = _both(values, question, covariates, treated, again, clusters, among=1)
    except UnusableInput as error:
        return Placebo("period", name, None, None, None, None, None, f"unknown: {error.what}")
    shows = _shows((logs or plain).estimate)
    words = {
        True: f"an effect shows in {name}, where the version cannot have had one: something "
        "hidden differs",
        False: f"no effect shows in {name}",
        None: f"too few clusters for an interval in {name}",
    }[shows]
    return _placebo("period", name, logs, plain, shows, words)


def _both(
    values: Values,
    question: Question,
    covariates: Covariates,
    treated: NDArray[np.bool_],
    kept: Comparable,
    clusters: Clusters | None,
    *,
    among: int,
) -> tuple[Found | None, Found]:
    """The effect on the log scale, where there is one, and as a difference."""
    plain = found(values, covariates, treated, kept, clusters, among=among)
    if not question.ratio or not (values > 0.0).all():
        return None, plain
    logs = found(np.log(values), covariates, treated, kept, clusters, among=among)
    return logs, plain


def _shows(estimate: Estimate) -> bool | None:
    if estimate.interval is None:
        return None
    return not estimate.interval[0] <= 0.0 <= estimate.interval[1]


def _placebo(
    kind: str, name: str, logs: Found | None, plain: Found, shows: bool | None, words: str
) -> Placebo:
    effect = effect_of(None if logs is None else logs.estimate, plain.estimate)
    return Placebo(
        kind,
        name,
        effect.ratio,
        effect.ratio_ci,
        effect.difference,
        effect.difference_ci,
        shows,
        words,
    )
