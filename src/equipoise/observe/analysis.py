"""The story of ``observe``: from a log and a question to what was found."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from equipoise.model.errors import UnusableInput
from equipoise.model.observed import (
    OBSERVED_SCHEMA,
    Asked,
    Caution,
    Clustering,
    Effect,
    Matching,
    Observed,
    Placebo,
    Refusal,
    Rows,
)
from equipoise.observe.arms import Arms, arms_of, texts_of
from equipoise.observe.cautions import cautions
from equipoise.observe.clusters import Clusters, arm_clusters, clusters_of
from equipoise.observe.covariates import Covariates, covariates_of, default_covariates
from equipoise.observe.effects import Found, effect_of, found, matched_of
from equipoise.observe.hidden import contributions, hidden_bias, regressions, robustness_of
from equipoise.observe.matching import Comparable, Tell, comparable
from equipoise.observe.naive import naive
from equipoise.observe.needed import balance_of, dropped_of
from equipoise.observe.outcome import Values, logarithm_of, outcome_of
from equipoise.observe.periods import periods_of
from equipoise.observe.placebos import placebo_outcomes, placebo_period
from equipoise.observe.question import Log, Question, check, part_of, rows_of
from equipoise.observe.refusal import refusal_of, refused_words
from equipoise.observe.words import answer_words

_UNLIKELY = 0.01
"""A p-value of Cochran's Q below it is warned of."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """The rows that take part, and those of the placebo period."""

    log: Log
    question: Question
    arms: Arms
    treated: NDArray[np.bool_]
    before: Log | None
    before_treated: NDArray[np.bool_] | None
    left_out: dict[str, int]
    read: int


def observe(
    log: Log,
    question: Question,
    *,
    source: str,
    left_out: dict[str, int] | None = None,
    told: tuple[Caution, ...] = (),
    tell: Tell = lambda _: None,
) -> Observed:
    """The effect of the candidate among comparable rows, or why there is none.

    Parameters
    ----------
    log
        The columns.
    source
        Where they come from, for the document.
    left_out
        Rows that were left out before, by the reason.
    told
        Warnings of how the log was read, which come first.
    tell
        Told what is done next, in words.

    Raises
    ------
    UnusableInput
        The question cannot be put to this log: naming column, rows and the mend.
    """
    prepared = prepare(log, question, left_out or {})
    log, question, treated = prepared.log, prepared.question, prepared.treated
    assert question.covariates is not None
    outcome = outcome_of(log, question)
    logs = logarithm_of(outcome, question.outcome) if question.ratio else None
    covariates = covariates_of(log, question.covariates, question.exact)
    clusters = clusters_of(log, question, treated)
    naively = effect_of(None if logs is None else naive(logs, treated), naive(outcome, treated))
    kept = comparable(
        covariates,
        treated,
        question.method,
        seed=question.seed,
        threads=question.threads,
        tell=tell,
    )
    tell("the effect and its errors")
    plain = found(outcome, covariates, treated, kept, clusters)
    on_log = None if logs is None else found(logs, covariates, treated, kept, clusters)
    refusal = refusal_of(kept, covariates, treated, plain, clusters, prepared.arms)
    document = _described(prepared, source, naively, kept, covariates, clusters, plain, refusal)
    document = dataclasses.replace(document, warnings=(*told, *document.warnings))
    if refusal is not None:
        return document
    return _answered(
        document, prepared, covariates, kept, clusters, logs, outcome, on_log, plain, tell
    )


def prepare(log: Log, question: Question, left_out: dict[str, int]) -> Prepared:
    """Check the question and set aside the rows that take no part in the answer.

    Raises
    ------
    UnusableInput
        As ``observe``.
    """
    check(log, question)
    read = rows_of(log) + sum(left_out.values())
    if question.covariates is None:
        question = dataclasses.replace(question, covariates=default_covariates(log, question))
    arms = arms_of(log, question)
    named = arms.is_candidate | arms.is_baseline
    if not named.all():
        left_out = {**left_out, "another version": int(np.count_nonzero(~named))}
    early = np.zeros(len(named), dtype=np.bool_)
    if question.placebo_period is not None:
        name, value = question.placebo_period
        values, code = texts_of(log[name], name)
        if value not in values:
            raise UnusableInput(
                f"--placebo-period: no row has {name}={value}",
                mend=f"{name} has {', '.join(values[:6])}",
            )
        early = named & (code == values.index(value))
        left_out = {**left_out, f"the placebo period {name}={value}": int(np.count_nonzero(early))}
    now = named & ~early
    whole = bool(now.all())
    before = None if question.placebo_period is None else part_of(log, early)
    prepared = Prepared(
        log if whole else part_of(log, now),
        question,
        arms,
        arms.is_candidate[now],
        before,
        None if before is None else arms.is_candidate[early],
        left_out,
        read,
    )
    if prepared.treated.all() or not prepared.treated.any():
        lacking = arms.baseline if prepared.treated.any() else arms.candidate
        raise UnusableInput(
            f"no row of {question.treatment}={lacking} takes part: there is nobody to compare with",
            mend="gather such rows, or name another --placebo-period",
        )
    return prepared


def _described(
    prepared: Prepared,
    source: str,
    naively: Effect,
    kept: Comparable,
    covariates: Covariates,
    clusters: Clusters | None,
    plain: Found,
    refusal: Refusal | None,
) -> Observed:
    """All that can be said without an answer."""
    question, treated, arms = prepared.question, prepared.treated, prepared.arms
    assert question.covariates is not None
    dropped = len(kept.pairs.dropped_index)
    matching = Matching(
        kept.method,
        kept.caliper,
        kept.weights,
        len(kept.pairs.weights),
        len(plain.linear.treated_rows),
        dropped,
        len(plain.linear.serving_rows),
        plain.adjusted.columns.shape[1] > 0,
    )
    clustering = None
    if clusters is not None:
        taking = np.union1d(plain.linear.treated_rows, plain.linear.serving_rows)
        of_candidate, of_baseline = arm_clusters(
            Clusters(clusters.by, clusters.code[taking]), treated[taking]
        )
        clustering = Clustering(
            clusters.by, len(np.unique(clusters.code[taking])), of_candidate, of_baseline
        )
    candidate_rows = int(np.count_nonzero(treated))
    about = f"the {candidate_rows - dropped:,} rows of {arms.candidate}"
    if dropped:
        about = (
            f"{candidate_rows - dropped:,} of the {candidate_rows:,} rows of {arms.candidate}: "
            f"{dropped:,} have no comparable row of {arms.baseline}, and nothing is said of them"
        )
    return Observed(
        schema=OBSERVED_SCHEMA,
        words="" if refusal is None else refused_words(naively, refusal, question.outcome),
        question=Asked(
            source,
            question.treatment,
            arms.candidate,
            arms.baseline,
            question.outcome,
            question.covariates,
            question.exact,
            question.method,
            question.seed,
        ),
        rows=Rows(
            prepared.read,
            candidate_rows,
            int(np.count_nonzero(~treated)),
            prepared.left_out,
        ),
        naive=naively,
        refusal=refusal,
        matched=None,
        clustering=clustering,
        matching=matching,
        about=about,
        dropped=dropped_of(kept, covariates, treated),
        balance=balance_of(kept),
        contributions=(),
        hidden_bias=None,
        robustness=None,
        placebos=(),
        periods=(),
        warnings=cautions(prepared.log, question, clustering, kept, dropped / candidate_rows),
    )


def _answered(
    document: Observed,
    prepared: Prepared,
    covariates: Covariates,
    kept: Comparable,
    clusters: Clusters | None,
    logs: Values | None,
    outcome: Values,
    on_log: Found | None,
    plain: Found,
    tell: Tell,
) -> Observed:
    """The document with the answer and what can be held against it."""
    log, question, treated = prepared.log, prepared.question, prepared.treated
    matched = matched_of(on_log, plain)
    main = on_log or plain
    tell("what a hidden factor could change")
    hidden = hidden_bias(
        main,
        kept,
        treated,
        clusters,
        is_log=on_log is not None,
        seed=question.seed,
        threads=question.threads,
    )
    fitted = regressions(logs, outcome, treated, covariates)
    tell("placebos and periods")
    placebos = [
        *placebo_outcomes(log, question, covariates, treated, kept, clusters),
        *_period(prepared, tell),
    ]
    periods, unequal = periods_of(log, kept, covariates, logs, outcome, clusters)
    shares = () if fitted is None else contributions(*fitted)
    warned = [*document.warnings, *(_of_placebo(one) for one in placebos if one.shows_effect)]
    if unequal is not None and unequal < _UNLIKELY:
        warned.append(
            Caution(
                "effect-changes",
                f"the effect is not the same throughout: Cochran's p = {unequal:.2g} over "
                f"{len(periods)} stretches of time",
                "read the stretches, not their mean; ask what changed between them",
            )
        )
    return dataclasses.replace(
        document,
        words=answer_words(
            document.naive,
            matched.effect,
            shares,
            hidden,
            question.outcome,
            prepared.arms.candidate,
        ),
        matched=matched,
        contributions=shares,
        hidden_bias=hidden,
        robustness=(
            None if fitted is None else robustness_of(fitted[0] or fitted[1], main.linear.effect)
        ),
        placebos=tuple(placebos),
        periods=periods,
        warnings=tuple(warned),
    )


def _period(prepared: Prepared, tell: Tell) -> list[Placebo]:
    if prepared.before is None or prepared.before_treated is None:
        return []
    return [placebo_period(prepared.before, prepared.question, prepared.before_treated, tell)]


def _of_placebo(placebo: Placebo) -> Caution:
    return Caution(
        f"placebo-{placebo.kind}",
        placebo.words,
        "do not trust the answer until what differs is found and given as a covariate",
    )
