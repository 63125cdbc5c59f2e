"""One stratum: its rows are matched and judged alone, and only small results are kept.

No array of rows outlives its stratum.
"""

from __future__ import annotations

import hashlib

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from equipoise.matching.frames import distinct_texts, take_rows
from equipoise.matching.units import Indices, Truths
from equipoise.matching.univariate import Moments
from equipoise.model.errors import UnusableInput
from equipoise.model.observation_result import (
    ColumnBalance,
    DroppedMean,
    HiddenBias,
    MatchingSummary,
)
from equipoise.observation.analysis import MatchedSample, describe_matching, match_sample
from equipoise.observation.effects import ABADIE_IMBENS, EffectEstimate, cluster_moves
from equipoise.observation.matching import Progress
from equipoise.observation.question import Log, Question, check_question
from equipoise.observation.refusal import unbalanced_clause
from equipoise.observation.rosenbaum import hidden_bias
from equipoise.observation.sample import Arms, Sample, Scales, read_outcomes, read_sample

ClusterLabel = tuple[str, object]
"""A cluster by its column and its value: the same in every stratum that has rows of it."""


class StratumEffect(Struct, frozen=True):
    """The effect in one stratum on one scale, with the error of Abadie and Imbens.

    ``moves`` has for each cluster the change of the effect if it is left out.
    """

    effect: float
    error: float | None
    moves: dict[ClusterLabel, float]


class StratumAnswer(Struct, frozen=True):
    """The answer of one stratum, with the clusters of the matched rows of each version.

    ``clusters_by`` is the column that forms the clusters; ``None`` without clusters.
    ``without_neighbors`` is that of ``EffectEstimate``.
    """

    effects: Scales[StratumEffect]
    without_neighbors: float
    matching: MatchingSummary
    balance: tuple[ColumnBalance, ...]
    dropped: tuple[DroppedMean, ...]
    hidden_bias: HiddenBias
    clusters_by: str | None
    candidate_clusters: frozenset[ClusterLabel]
    baseline_clusters: frozenset[ClusterLabel]

    @property
    def weight(self) -> int:
        """Number of candidate rows with a match."""
        return self.matching.candidate_matched

    @property
    def worst(self) -> ColumnBalance:
        """The column that differs most after matching."""
        return max(self.balance, key=lambda column: abs(column.difference_after or 0.0))


class StratumOutcome(Struct, frozen=True):
    """A stratum with its answer, or the reason why it has none.

    ``candidate`` and ``baseline`` are the moments of all rows of each version, if there are any.
    """

    name: str
    rows: int
    candidate_rows: int
    baseline_rows: int
    candidate: Scales[Moments] | None
    baseline: Scales[Moments] | None
    answer: StratumAnswer | None
    reason: str | None


def judge_rows(
    name: str, rows: Log, question: Question, arms: Arms, progress: Progress = lambda _: None
) -> StratumOutcome:
    """Check that the question fits the rows of a stratum, and judge them."""
    check_question(rows, question)
    return judge_stratum(name, rows, question, arms, progress)


def judge_stratum(
    name: str, log: Log, question: Question, arms: Arms, progress: Progress
) -> StratumOutcome:
    """Match and judge the rows of one stratum; errors name the stratum, column and rows.

    Only the names in ``arms`` count: the rows that ran the versions are read from ``log``.
    """
    try:
        versions, code = distinct_texts(log[question.treatment], question.treatment)
        texts = np.array(versions)[code]
        treated, control = texts == arms.candidate, texts == arms.baseline
        moments = _moments(log, question, treated, control)
        answer: StratumAnswer | str
        if not treated.any() or not control.any():
            answer = f"no row of {arms.baseline if treated.any() else arms.candidate}"
        else:
            seeded = replace(question, seed=stratum_seed(question.seed, name))
            answer = _judge(name, read_sample(log, seeded, {}), progress)
    except UnusableInput as error:
        raise UnusableInput(f"stratum {name}: {error.what}", hint=error.hint) from error
    return StratumOutcome(
        name,
        len(code),
        int(np.count_nonzero(treated)),
        int(np.count_nonzero(control)),
        *moments,
        answer=None if isinstance(answer, str) else answer,
        reason=answer if isinstance(answer, str) else None,
    )


def stratum_seed(seed: int, name: str) -> int:
    """Return the seed of a stratum, which does not depend on the other strata."""
    return int.from_bytes(hashlib.sha256(f"{seed}/{name}".encode()).digest()[:4])


def _moments(
    log: Log, question: Question, treated: Truths, control: Truths
) -> tuple[Scales[Moments] | None, Scales[Moments] | None]:
    """Return the moments of the outcomes of each version."""
    taking_part = treated | control
    if not taking_part.any():
        return None, None
    outcomes = read_outcomes(take_rows(log, taking_part), question)

    def moments_of(arm: Truths) -> Scales[Moments] | None:
        rows = arm[taking_part]
        return outcomes.map(lambda values: Moments.of(values[rows], None)) if rows.any() else None

    return moments_of(treated), moments_of(control)


def _judge(name: str, sample: Sample, progress: Progress) -> StratumAnswer | str:
    """Return the answer, or the reason why there is none."""
    try:
        match = match_sample(sample, progress)
    except UnusableInput as error:
        return error.what
    matched, clusters, effect = match.matched, sample.clusters, match.effects.plain.pair_effect
    if not matched.is_balanced:
        place = matched.unbalanced()[0]
        return unbalanced_clause(
            matched.balance.variables[place], matched.column_balance()[place].difference_after
        )
    labels: list[frozenset[ClusterLabel]] = []
    for rows, arm in (
        (effect.treated_rows, sample.arms.candidate),
        (effect.control_rows, sample.arms.baseline),
    ):
        labels.append(frozenset(_labels(name, sample, rows)))
        if clusters is not None and len(labels[-1]) < 2:
            return f"its comparable rows of {arm} are in one cluster ({clusters.by})"
    progress("bounding the influence of a hidden factor")
    return StratumAnswer(
        match.effects.map(lambda effect: _stratum_effect(name, match, effect)),
        match.effects.main.without_neighbors,
        describe_matching(match),
        matched.column_balance(),
        matched.dropped_means(sample.covariates, sample.treated),
        hidden_bias(sample, matched, match.effects),
        None if clusters is None else clusters.by,
        *labels,
    )


def _stratum_effect(name: str, match: MatchedSample, estimate: EffectEstimate) -> StratumEffect:
    pair_effect, clusters = estimate.pair_effect, match.sample.clusters
    error = estimate.by[ABADIE_IMBENS].error
    if clusters is None:
        return StratumEffect(pair_effect.effect, error, {})
    moves = cluster_moves(pair_effect, clusters.code)
    labels = _labels(name, match.sample, pair_effect.rows)
    return StratumEffect(pair_effect.effect, error, dict(zip(labels, moves.tolist(), strict=True)))


def _labels(name: str, sample: Sample, rows: Indices) -> list[ClusterLabel]:
    """Return the clusters of these rows in the order of their codes.

    Windows of time lie within their stratum, so their label names it.
    """
    clusters = sample.clusters
    if clusters is None:
        return []
    codes, first = np.unique(clusters.code[rows], return_index=True)
    if clusters.by in sample.log:
        return [(clusters.by, value) for value in sample.log[clusters.by][rows[first]].tolist()]
    return [(f"{name}: {clusters.by}", code) for code in codes.tolist()]
