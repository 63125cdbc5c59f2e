"""A log and a question made ready: the rows that take part, as arrays."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from equipoise.model.errors import UnusableInput
from equipoise.observation.arms import Arms, arms_of, texts_of
from equipoise.observation.clusters import Clusters, clusters_of
from equipoise.observation.covariates import Covariates, covariates_of, default_covariates
from equipoise.observation.outcome import Values, logarithm_of, outcome_of
from equipoise.observation.question import Log, Question, check, part_of, rows_of


@dataclass(frozen=True, slots=True)
class Prepared:
    """The rows that take part, and those of the placebo period.

    Attributes
    ----------
    log
        Of the rows that take part.
    question
        With the covariates that are taken.
    treated
        Shape (rows,): whether it is the candidate's.
    outcome, logs
        Shape (rows,); ``logs`` is ``None`` where no ratio is asked for.
    before, before_treated
        Of the rows of the placebo period; ``None`` without one.
    left_out
        How many rows take no part, by the reason.
    read
        How many rows there were.
    """

    log: Log
    question: Question
    arms: Arms
    treated: NDArray[np.bool_]
    outcome: Values
    logs: Values | None
    covariates: Covariates
    clusters: Clusters | None
    before: Log | None
    before_treated: NDArray[np.bool_] | None
    left_out: dict[str, int]
    read: int


def prepare(log: Log, question: Question, left_out: dict[str, int]) -> Prepared:
    """Check the question and read what it names, of the rows that take part.

    Parameters
    ----------
    left_out
        RowCounts that were left out before, by the reason.

    Raises
    ------
    UnusableInput
        Naming option, column and rows.
    """
    check(log, question)
    read = rows_of(log) + sum(left_out.values())
    if question.covariates is None:
        question = dataclasses.replace(question, covariates=default_covariates(log, question))
    assert question.covariates is not None
    arms = arms_of(log, question)
    named = arms.is_candidate | arms.is_baseline
    if not named.all():
        left_out = {**left_out, "another version": int(np.count_nonzero(~named))}
    early = _placebo_rows(log, question) & named
    if question.placebo_period is not None:
        period = "=".join(question.placebo_period)
        left_out = {**left_out, f"the placebo period {period}": int(np.count_nonzero(early))}
    now = named & ~early
    taking, treated = log if now.all() else part_of(log, now), arms.is_candidate[now]
    if treated.all() or not treated.any():
        lacking = arms.baseline if treated.any() else arms.candidate
        raise UnusableInput(
            f"no row of {question.treatment}={lacking} takes part: there is nobody to compare with",
            hint="gather such rows, or name another --placebo-period",
        )
    outcome = outcome_of(taking, question)
    has_period = question.placebo_period is not None
    return Prepared(
        taking,
        question,
        arms,
        treated,
        outcome,
        logarithm_of(outcome, question.outcome) if question.ratio else None,
        covariates_of(taking, question.covariates, question.exact),
        clusters_of(taking, question, treated),
        part_of(log, early) if has_period else None,
        arms.is_candidate[early] if has_period else None,
        left_out,
        read,
    )


def _placebo_rows(log: Log, question: Question) -> NDArray[np.bool_]:
    """Shape (rows,): whether a row is of the placebo period."""
    if question.placebo_period is None:
        return np.zeros(rows_of(log), dtype=np.bool_)
    name, value = question.placebo_period
    values, code = texts_of(log[name], name)
    if value not in values:
        raise UnusableInput(
            f"--placebo-period: no row has {name}={value}",
            hint=f"{name} has {', '.join(values[:6])}",
        )
    return np.asarray(code == values.index(value))
