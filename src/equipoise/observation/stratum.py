"""One stratum: its rows matched and judged by themselves, and what is kept of them.

What is kept is small: no array of rows outlives its stratum.
"""

from __future__ import annotations

import dataclasses
import hashlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from equipoise.model.errors import UnusableInput
from equipoise.model.observation_result import (
    ColumnBalance,
    DroppedMean,
    HiddenBias,
    MatchingSummary,
)
from equipoise.observation.arms import Arms, texts_of
from equipoise.observation.clusters import Clusters
from equipoise.observation.described import matching_of
from equipoise.observation.effects import ABADIE_IMBENS, Found
from equipoise.observation.hidden import hidden_bias
from equipoise.observation.matching import MOST_APART, Tell
from equipoise.observation.needed import balance_of, dropped_of
from equipoise.observation.outcome import logarithm_of, outcome_of
from equipoise.observation.prepared import Prepared, prepare
from equipoise.observation.question import Log, Question, part_of
from equipoise.observation.scores import MANY_CLUSTERS, Values, effects_without
from equipoise.observation.weighed import Weighed, weighed

Label = tuple[str, object]
"""A cluster by what it is and which: the same in every stratum that has rows of it."""


@dataclass(frozen=True, slots=True)
class Moments:
    """Number, mean and sum of squares about the mean of some values."""

    number: int
    mean: float
    squares: float


@dataclass(frozen=True, slots=True)
class Scale:
    """The effect on one scale.

    Attributes
    ----------
    error
        Of Abadie and Imbens.
    moves
        By cluster, by how much the effect moves if it is left out; empty without clusters.
    """

    effect: float
    error: float | None
    moves: dict[Label, float]


@dataclass(frozen=True, slots=True)
class Naively:
    """All rows of a stratum by version, on both scales; ``None`` on a scale or version without."""

    candidate_log: Moments | None
    baseline_log: Moments | None
    candidate: Moments | None
    baseline: Moments | None


@dataclass(frozen=True, slots=True)
class Judged:
    """The answer of one stratum.

    Attributes
    ----------
    clusters_by
        What a cluster is; ``None`` without clusters.
    of_candidate, of_baseline
        The clusters with rows of each that count.
    """

    on_log: Scale | None
    plain: Scale
    matching: MatchingSummary
    balance: tuple[ColumnBalance, ...]
    dropped: tuple[DroppedMean, ...]
    hidden: HiddenBias
    clusters_by: str | None
    of_candidate: frozenset[Label]
    of_baseline: frozenset[Label]

    @property
    def weight(self) -> int:
        """The candidate's rows that found a match."""
        return self.matching.candidate_matched

    @property
    def worst(self) -> ColumnBalance:
        """The column least alike after matching."""
        return max(self.balance, key=lambda one: abs(one.difference_after or 0.0))


@dataclass(frozen=True, slots=True)
class Outcome:
    """A stratum with its answer, or with the reason why it has none."""

    name: str
    rows: int
    candidate_rows: int
    baseline_rows: int
    naively: Naively
    judged: Judged | None
    lacking: str | None


def outcome_in(name: str, log: Log, question: Question, arms: Arms, tell: Tell) -> Outcome:
    """Judge the rows of one stratum.

    Parameters
    ----------
    arms
        The two versions; which rows are theirs is read from ``log``.

    Raises
    ------
    UnusableInput
        The question cannot be put to its rows: naming the stratum, column, rows and the hint.
    """
    try:
        versions, code = texts_of(log[question.treatment], question.treatment)
        treated, others = (
            code == versions.index(arm) if arm in versions else np.zeros(len(code), dtype=np.bool_)
            for arm in (arms.candidate, arms.baseline)
        )
        naively = _naively(log, question, treated, others)
        judged: Judged | str
        if not treated.any() or not others.any():
            judged = f"no row of {arms.baseline if treated.any() else arms.candidate}"
        else:
            seeded = dataclasses.replace(question, seed=seed_of(question.seed, name))
            judged = _judged(name, prepare(log, seeded, {}), tell)
    except UnusableInput as error:
        raise UnusableInput(f"stratum {name}: {error.what}", hint=error.hint) from error
    counts = int(np.count_nonzero(treated)), int(np.count_nonzero(others))
    if isinstance(judged, str):
        return Outcome(name, len(code), *counts, naively, None, judged)
    return Outcome(name, len(code), *counts, naively, judged, None)


def seed_of(seed: int, name: str) -> int:
    """The seed of a stratum, whichever strata stand beside it."""
    return int.from_bytes(hashlib.sha256(f"{seed}/{name}".encode()).digest()[:4])


def _judged(name: str, prepared: Prepared, tell: Tell) -> Judged | str:
    """The answer, or why there is none."""
    try:
        one = weighed(prepared, tell)
    except UnusableInput as error:
        return error.what
    if not one.kept.is_balanced:
        worst = max(balance_of(one.kept), key=_apart)
        apart = "without limit" if worst.difference_after is None else f"{_apart(worst):.2f}"
        return (
            f"{worst.column} still differs by {apart} standard deviations (at most {MOST_APART:g})"
        )
    clusters = prepared.clusters
    of_candidate, of_baseline = (
        _labels(name, prepared, clusters, rows)
        for rows in (one.plain.linear.treated_rows, one.plain.linear.serving_rows)
    )
    if clusters is not None and min(len(of_candidate), len(of_baseline)) < 2:
        fewer = of_candidate if len(of_candidate) < 2 else of_baseline
        arm = prepared.arms.candidate if fewer is of_candidate else prepared.arms.baseline
        return f"its comparable rows of {arm} lie in one cluster ({clusters.by})"
    return _told(name, prepared, one, frozenset(of_candidate), frozenset(of_baseline), tell)


def _told(
    name: str,
    prepared: Prepared,
    one: Weighed,
    of_candidate: frozenset[Label],
    of_baseline: frozenset[Label],
    tell: Tell,
) -> Judged:
    tell("what a hidden factor could change")
    question, clusters = prepared.question, prepared.clusters
    hidden = hidden_bias(
        one.on_log or one.plain,
        one.kept,
        prepared.treated,
        clusters,
        is_log=one.on_log is not None,
        seed=question.seed,
        threads=question.threads,
    )
    return Judged(
        None if one.on_log is None else _scale(name, prepared, one, one.on_log),
        _scale(name, prepared, one, one.plain),
        matching_of(one.kept, one.plain),
        balance_of(one.kept),
        dropped_of(one.kept, prepared.covariates, prepared.treated),
        hidden,
        None if clusters is None else clusters.by,
        of_candidate,
        of_baseline,
    )


def _scale(name: str, prepared: Prepared, one: Weighed, found: Found) -> Scale:
    moves: dict[Label, float] = {}
    clusters, pairs, linear = prepared.clusters, one.kept.pairs, found.linear
    if clusters is not None:
        rows = np.union1d(linear.treated_rows, linear.serving_rows)
        present, first, place = np.unique(
            clusters.code[rows], return_index=True, return_inverse=True
        )
        count = len(present)
        if count > MANY_CLUSTERS:
            changes = -np.bincount(place, linear.scores[rows]) * count / (count - 1)
        else:
            changes = effects_without(found.adjusted, pairs, clusters.code)[1] - linear.effect
        names = _named(name, prepared, clusters, rows[first])
        moves = dict(zip(names, changes.tolist(), strict=True))
    return Scale(linear.effect, found.by[ABADIE_IMBENS].error, moves)


def _labels(
    name: str, prepared: Prepared, clusters: Clusters | None, rows: NDArray[np.int64]
) -> list[Label]:
    if clusters is None:
        return []
    _, first = np.unique(clusters.code[rows], return_index=True)
    return _named(name, prepared, clusters, rows[first])


def _named(
    stratum: str, prepared: Prepared, clusters: Clusters, rows: NDArray[np.int64]
) -> list[Label]:
    """The cluster of each of these rows; windows of time lie within their stratum."""
    if clusters.by in prepared.log:
        return [(clusters.by, value) for value in prepared.log[clusters.by][rows].tolist()]
    return [(f"{stratum}: {clusters.by}", code) for code in clusters.code[rows].tolist()]


def _naively(
    log: Log, question: Question, treated: NDArray[np.bool_], others: NDArray[np.bool_]
) -> Naively:
    named = treated | others
    if not named.any():
        return Naively(None, None, None, None)
    values = outcome_of(part_of(log, named), question)
    treated, others = treated[named], others[named]
    logs: tuple[Moments | None, Moments | None] = (None, None)
    if question.ratio:
        on_log = logarithm_of(values, question.outcome)
        logs = _moments(on_log[treated]), _moments(on_log[others])
    return Naively(*logs, _moments(values[treated]), _moments(values[others]))


def _moments(values: Values) -> Moments | None:
    if not len(values):
        return None
    mean = float(values.mean())
    return Moments(len(values), mean, float(((values - mean) ** 2).sum()))


def _apart(one: ColumnBalance) -> float:
    return float("inf") if one.difference_after is None else abs(one.difference_after)
