"""The story of ``observe --strata``: one stratum in memory at a time, then all together."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from equipoise.model.errors import UnusableInput
from equipoise.model.observation_result import (
    OBSERVED_SCHEMA,
    Effect,
    ObservationResult,
    Refusal,
    Robustness,
    RowCounts,
    Strata,
    StratumResult,
)
from equipoise.observation.arms import Arms, arms_of
from equipoise.observation.cautions import cautions
from equipoise.observation.clusters import LEAST
from equipoise.observation.described import asked_of
from equipoise.observation.effects import effect_of
from equipoise.observation.matching import Tell
from equipoise.observation.pooled import (
    balance_in,
    clustering_of,
    dropped_in,
    hidden_in,
    matched_in,
    matching_in,
    shared_clusters,
    together,
    welch,
)
from equipoise.observation.question import Log, Question, check
from equipoise.observation.refusal import few_clusters, refused_words
from equipoise.observation.stratum import Outcome, outcome_in
from equipoise.observation.words import answer_words

LEAST_SHARE = 0.5
"""Of the candidate's rows that the strata with an answer must have."""
_NAMED = 3


@dataclass(frozen=True, slots=True)
class StratifiedLog:
    """A log of which one stratum is read at a time.

    Attributes
    ----------
    column
        Its values are the strata.
    names
        Of the strata, in order.
    versions
        The treatment column alone, each value once.
    read
        The columns of the stratum of this name.
    """

    column: str
    names: tuple[str, ...]
    versions: Log
    read: Callable[[str], Log]


def check_strata(column: str, question: Question) -> None:
    """See that the question is the same in every stratum.

    Raises
    ------
    UnusableInput
        Naming the option and the hint.
    """
    if question.covariates is None and not question.exact:
        raise UnusableInput(
            "--strata: what can serve as a covariate may be another in each stratum",
            hint="name what to match on with --covariates, --exact",
        )
    if question.cluster is None or len(question.cluster) > 1:
        raise UnusableInput(
            "--strata: what is not independent must be the same in each stratum",
            hint="name one column with --cluster, or --cluster none",
        )
    if question.placebo_outcomes or question.placebo_period is not None:
        raise UnusableInput(
            "--strata: placebos are not put together over strata",
            hint="ask one stratum alone with them",
        )
    if column in (question.treatment, question.outcome):
        raise UnusableInput(
            f"--strata: {column} is the treatment or the outcome", hint="name another column"
        )


def observe_strata(
    log: StratifiedLog, question: Question, *, source: str, tell: Tell = lambda _: None
) -> ObservationResult:
    """The effect over the strata that can be judged, or why there is none.

    Raises
    ------
    UnusableInput
        The question cannot be put to this log, or no stratum can be judged.
    """
    check_strata(log.column, question)
    if question.covariates is None:
        question = dataclasses.replace(question, covariates=())
    arms = arms_of(log.versions, question)
    outcomes = []
    for name in log.names:
        rows = log.read(name)
        check(rows, question)
        outcomes.append(outcome_in(name, rows, question, arms, tell_of(name, tell)))
    if all(one.judged is None for one in outcomes):
        raise UnusableInput(
            f"--strata {log.column}: none can be judged: {_reasons(outcomes)}",
            hint="name a column whose values both versions ran with, or gather such rows",
        )
    return _document(log.column, outcomes, question, arms, source)


def tell_of(name: str, tell: Tell) -> Tell:
    """Tell what is done with the name of the stratum before it."""
    return lambda words: tell(f"{name}: {words}")


def _document(
    column: str, outcomes: Sequence[Outcome], question: Question, arms: Arms, source: str
) -> ObservationResult:
    named = [(one.name, one.judged) for one in outcomes if one.judged is not None]
    judged = [one for _, one in named]
    clustering, naively = clustering_of(judged), _naive(outcomes)
    candidate_rows = sum(one.candidate_rows for one in outcomes)
    matching = matching_in(judged, question.method)
    matched_rows = sum(one.weight for one in judged)
    refusal = _little(column, outcomes, matched_rows, candidate_rows)
    if refusal is None and clustering is not None:
        counts = {
            arms.candidate: clustering.with_candidate,
            arms.baseline: clustering.with_baseline,
        }
        refusal = few_clusters(counts, clustering.by) if min(counts.values()) < LEAST else None
    matched = None if refusal is not None else matched_in(judged, clustering)
    hidden = None if refusal is not None else hidden_in(named)
    if refusal is not None:
        words = refused_words(naively, refusal, question.outcome)
    else:
        assert matched is not None and hidden is not None
        sure = None if hidden.gamma_to_change is None else hidden
        words = answer_words(naively, matched.effect, (), sure, question.outcome, arms.candidate)
    baseline_rows = sum(one.baseline_rows for one in outcomes)
    read = sum(one.rows for one in outcomes)
    others = read - candidate_rows - baseline_rows
    return ObservationResult(
        schema=OBSERVED_SCHEMA,
        summary=words,
        question=asked_of(question, arms, source),
        rows=RowCounts(
            read, candidate_rows, baseline_rows, {"another version": others} if others else {}
        ),
        naive=naively,
        refusal=refusal,
        matched=matched,
        clustering=clustering,
        matching=matching,
        about=_about(outcomes, arms, matched_rows, candidate_rows),
        dropped=dropped_in(judged),
        balance=balance_in(judged),
        contributions=(),
        hidden_bias=hidden,
        robustness=(
            None
            if refusal is not None
            else Robustness(None, None, None, "unknown: it is not put together over strata")
        ),
        placebos=(),
        periods=(),
        strata=Strata(
            column,
            tuple(_stratum(one) for one in outcomes),
            max(named, key=lambda one: abs(one[1].worst.difference_after or 0.0))[0],
            shared_clusters(judged),
        ),
        warnings=cautions(
            question, clustering, matching.method, 1.0 - matched_rows / candidate_rows
        ),
    )


def _naive(outcomes: Sequence[Outcome]) -> Effect:
    """All rows of the candidate against all of the baseline, whatever their stratum."""
    each = [one.naively for one in outcomes]
    plain = welch(together(one.candidate for one in each), together(one.baseline for one in each))
    if all(one.candidate_log is None for one in each):
        return effect_of(None, plain)
    logs = welch(
        together(one.candidate_log for one in each), together(one.baseline_log for one in each)
    )
    return effect_of(logs, plain)


def _little(
    column: str, outcomes: Sequence[Outcome], matched_rows: int, candidate_rows: int
) -> Refusal | None:
    if matched_rows >= LEAST_SHARE * candidate_rows:
        return None
    left = _reasons(outcomes)
    return Refusal(
        "few-strata",
        f"only {matched_rows:,} of the {candidate_rows:,} rows of the candidate could be compared "
        f"within {column}" + (f": {left}" if left else ""),
        "gather rows of the other version for these strata, or name another column",
    )


def _about(outcomes: Sequence[Outcome], arms: Arms, matched_rows: int, candidate_rows: int) -> str:
    if matched_rows == candidate_rows:
        return f"the {candidate_rows:,} rows of {arms.candidate}"
    left = "; ".join(
        f"{one.candidate_rows:,} of {one.name}: {one.lacking}"
        for one in outcomes
        if one.lacking is not None and one.candidate_rows
    )
    return (
        f"{matched_rows:,} of the {candidate_rows:,} rows of {arms.candidate}: "
        f"{candidate_rows - matched_rows:,} have no comparable row of {arms.baseline} in their "
        "stratum, and nothing is said of them" + (f" ({left})" if left else "")
    )


def _stratum(one: Outcome) -> StratumResult:
    judged = one.judged
    if judged is None:
        return StratumResult(
            one.name,
            one.candidate_rows,
            one.baseline_rows,
            one.lacking,
            matched_rows=None,
            ratio=None,
            difference=None,
            method=None,
            caliper=None,
            worst_column=None,
            worst_difference=None,
            gamma_to_change=None,
        )
    return StratumResult(
        one.name,
        one.candidate_rows,
        one.baseline_rows,
        None,
        matched_rows=judged.weight,
        ratio=None if judged.on_log is None else math.exp(judged.on_log.effect),
        difference=judged.plain.effect,
        method=judged.matching.method,
        caliper=judged.matching.caliper,
        worst_column=judged.worst.column,
        worst_difference=judged.worst.difference_after,
        gamma_to_change=judged.hidden.gamma_to_change,
    )


def _reasons(outcomes: Sequence[Outcome]) -> str:
    lacking = [f"{one.name} ({one.lacking})" for one in outcomes if one.lacking is not None]
    more = f" and {len(lacking) - _NAMED} more" if len(lacking) > _NAMED else ""
    return ", ".join(lacking[:_NAMED]) + more
