"""The document but for the answer: what was asked, who was compared, and how alike they are."""

from __future__ import annotations

import numpy as np

from equipoise.model.observation_result import (
    OBSERVED_SCHEMA,
    Clustering,
    MatchingSummary,
    ObservationQuestion,
    ObservationResult,
    Refusal,
    RowCounts,
)
from equipoise.model.record import CampaignWarning
from equipoise.observation.arms import Arms
from equipoise.observation.cautions import cautions
from equipoise.observation.clusters import Clusters, arm_clusters
from equipoise.observation.effects import Found, effect_of
from equipoise.observation.matching import Comparable
from equipoise.observation.naive import naive
from equipoise.observation.needed import balance_of, dropped_of
from equipoise.observation.prepared import Prepared
from equipoise.observation.question import Question
from equipoise.observation.refusal import refused_words


def described(
    prepared: Prepared,
    kept: Comparable,
    plain: Found,
    refusal: Refusal | None,
    *,
    source: str,
    told: tuple[CampaignWarning, ...],
) -> ObservationResult:
    """All that can be said without an answer.

    Parameters
    ----------
    plain
        The effect as a difference.
    source
        Where the log comes from.
    told
        Warnings of how it was read, which come first.
    """
    question, treated, arms = prepared.question, prepared.treated, prepared.arms
    candidate_rows, dropped = int(np.count_nonzero(treated)), len(kept.pairs.dropped_index)
    clustering = _clustering(prepared, plain)
    logs = prepared.logs
    naively = effect_of(
        None if logs is None else naive(logs, treated), naive(prepared.outcome, treated)
    )
    own = cautions(question, clustering, kept.method, dropped / candidate_rows)
    return ObservationResult(
        schema=OBSERVED_SCHEMA,
        summary="" if refusal is None else refused_words(naively, refusal, question.outcome),
        question=asked_of(question, arms, source),
        rows=RowCounts(
            prepared.read, candidate_rows, len(treated) - candidate_rows, prepared.left_out
        ),
        naive=naively,
        refusal=refusal,
        matched=None,
        clustering=clustering,
        matching=matching_of(kept, plain),
        about=_about(prepared, candidate_rows, dropped),
        dropped=dropped_of(kept, prepared.covariates, treated),
        balance=balance_of(kept),
        contributions=(),
        hidden_bias=None,
        robustness=None,
        placebos=(),
        periods=(),
        strata=None,
        warnings=(*told, *own),
    )


def asked_of(question: Question, arms: Arms, source: str) -> ObservationQuestion:
    """The question as it was understood, with the covariates that are taken."""
    assert question.covariates is not None
    return ObservationQuestion(
        source,
        question.treatment,
        arms.candidate,
        arms.baseline,
        question.outcome,
        question.covariates,
        question.exact,
        question.method,
        question.seed,
    )


def _clustering(prepared: Prepared, plain: Found) -> Clustering | None:
    """The clusters of the rows that count."""
    clusters = prepared.clusters
    if clusters is None:
        return None
    taking = np.union1d(plain.linear.treated_rows, plain.linear.serving_rows)
    code = clusters.code[taking]
    of_candidate, of_baseline = arm_clusters(Clusters(clusters.by, code), prepared.treated[taking])
    return Clustering(clusters.by, len(np.unique(code)), of_candidate, of_baseline)


def matching_of(kept: Comparable, plain: Found) -> MatchingSummary:
    """How the rows were matched, and how many found a match."""
    return MatchingSummary(
        kept.method,
        kept.caliper,
        kept.caliper_on,
        kept.weights,
        len(kept.pairs.weights),
        len(plain.linear.treated_rows),
        len(kept.pairs.dropped_index),
        len(plain.linear.serving_rows),
        plain.adjusted.columns.shape[1] > 0,
    )


def _about(prepared: Prepared, rows: int, dropped: int) -> str:
    """Whom the answer is about."""
    arms = prepared.arms
    if not dropped:
        return f"the {rows:,} rows of {arms.candidate}"
    return (
        f"{rows - dropped:,} of the {rows:,} rows of {arms.candidate}: {dropped:,} have no "
        f"comparable row of {arms.baseline}, and nothing is said of them"
    )
