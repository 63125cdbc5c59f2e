"""What the strata say together, each weighted by the candidate's rows that found a match in it.

τ = Σ_s w_s τ_s with w_s = n_s / Σ n_s, which stay as they are. Strata have no row in common, so the
variances of Abadie and Imbens add up: Σ w_s² V_s. A cluster may have rows in several strata, and
what leaving it out does to τ is the sum of what it does in each:
V = (G − 1)/G Σ_g (Σ_s w_s (τ_s₍₋g₎ − τ_s))² over the clusters of all strata.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence

from equipoise.model.observation_result import (
    Clustering,
    ColumnBalance,
    DroppedMean,
    HiddenBias,
    MatchedEffect,
    MatchingSummary,
)
from equipoise.observation.clusters import LEAST
from equipoise.observation.effects import (
    ABADIE_IMBENS,
    BY_CLUSTERS,
    effect_of,
    errors_of,
)
from equipoise.observation.scores import Estimate, student, with_error
from equipoise.observation.stratum import Judged, Label, Moments, Scale


def clustering_of(strata: Sequence[Judged]) -> Clustering | None:
    """The clusters of all strata together; ``None`` without clusters."""
    if strata[0].clusters_by is None:
        return None
    of_candidate = frozenset[Label]().union(*(one.of_candidate for one in strata))
    of_baseline = frozenset[Label]().union(*(one.of_baseline for one in strata))
    return Clustering(
        strata[0].clusters_by,
        len(of_candidate | of_baseline),
        len(of_candidate),
        len(of_baseline),
    )


def shared_clusters(strata: Sequence[Judged]) -> int | None:
    """How many clusters have rows in several strata; ``None`` without clusters."""
    if strata[0].clusters_by is None:
        return None
    seen = Counter(label for one in strata for label in one.of_candidate | one.of_baseline)
    return sum(number > 1 for number in seen.values())


def matched_in(strata: Sequence[Judged], clustering: Clustering | None) -> MatchedEffect:
    """The effect over all strata on both scales with its errors."""
    weights = [one.weight for one in strata]
    plain = _estimates([one.plain for one in strata], weights, clustering)
    scales = [one.on_log for one in strata if one.on_log is not None]
    logs = _estimates(scales, weights, clustering) if scales else None
    main = ABADIE_IMBENS if clustering is None else BY_CLUSTERS
    return MatchedEffect(
        effect_of(None if logs is None else logs[main], plain[main]), main, errors_of(logs, plain)
    )


def welch(one: Moments, other: Moments) -> Estimate:
    """The difference of two means with the interval of Welch's t-test."""
    difference = one.mean - other.mean
    if min(one.number, other.number) < 2 or one.squares == other.squares == 0.0:
        return Estimate(difference, None, None)
    parts = [each.squares / (each.number - 1) / each.number for each in (one, other)]
    freedom = sum(parts) ** 2 / (
        parts[0] ** 2 / (one.number - 1) + parts[1] ** 2 / (other.number - 1)
    )
    reach = student(freedom) * math.sqrt(sum(parts))
    return Estimate(difference, None, (difference - reach, difference + reach))


def together(parts: Iterable[Moments | None]) -> Moments:
    """The moments of all values, of the moments of their parts."""
    there = [part for part in parts if part is not None]
    number = sum(part.number for part in there)
    mean = sum(part.number * part.mean for part in there) / number
    squares = sum(part.squares + part.number * (part.mean - mean) ** 2 for part in there)
    return Moments(number, mean, squares)


def balance_in(strata: Sequence[Judged]) -> tuple[ColumnBalance, ...]:
    """Every column on average over the strata that have it."""
    names = dict.fromkeys(one.column for each in strata for one in each.balance)
    found = []
    for name in names:
        pieces = [
            (each.weight, one) for each in strata for one in each.balance if one.column == name
        ]
        found.append(
            ColumnBalance(
                name,
                _mean([(weight, one.candidate_before) for weight, one in pieces]) or 0.0,
                _mean([(weight, one.baseline_before) for weight, one in pieces]) or 0.0,
                _mean([(weight, one.difference_before) for weight, one in pieces]),
                _mean([(weight, one.candidate_after) for weight, one in pieces]),
                _mean([(weight, one.baseline_after) for weight, one in pieces]),
                _mean([(weight, one.difference_after) for weight, one in pieces]),
            )
        )
    return tuple(found)


def dropped_in(strata: Sequence[Judged]) -> tuple[DroppedMean, ...]:
    """Every column among rows kept and rows dropped, of the strata that dropped some."""
    names = dict.fromkeys(one.column for each in strata for one in each.dropped)
    found = []
    for name in names:
        pieces = [(each, one) for each in strata for one in each.dropped if one.column == name]
        kept = _mean([(each.weight, one.kept) for each, one in pieces])
        left = _mean([(each.matching.candidate_dropped, one.dropped) for each, one in pieces])
        if kept is not None and left is not None:
            found.append(DroppedMean(name, kept, left))
    return tuple(found)


def matching_in(strata: Sequence[Judged], asked: str) -> MatchingSummary:
    """The matches of all strata; the weights of the columns are each stratum's own.

    Parameters
    ----------
    asked
        The method that was asked for; named unless a stratum needed another.
    """
    each = [one.matching for one in strata]
    if len(each) == 1:
        return each[0]
    calipers = [one.caliper for one in each if one.caliper is not None]
    return MatchingSummary(
        next((one.method for one in each if one.method != asked), asked),
        min(calipers, default=None),
        tuple(dict.fromkeys(name for one in each for name in one.caliper_on)),
        {},
        sum(one.pairs for one in each),
        sum(one.candidate_matched for one in each),
        sum(one.candidate_dropped for one in each),
        sum(one.baseline_used for one in each),
        any(one.adjusted for one in each),
    )


def hidden_in(named: Sequence[tuple[str, Judged]]) -> HiddenBias:
    """The bounds of the stratum that a hidden factor changes first, with its name.

    While every stratum holds, and all point the same way, what they say together holds.
    """
    name, weakest = min(named, key=lambda one: one[1].hidden.gamma_to_change or 0.0)
    own = weakest.hidden
    gamma, words = own.gamma_to_change, f"in {name}, the weakest stratum: {own.summary}"
    if len({(one.on_log or one.plain).effect > 0.0 for _, one in named}) > 1:
        gamma, words = None, "unknown: the strata point in different directions"
    return HiddenBias(own.of, own.number, own.bounds, gamma, words)


def _estimates(
    scales: Sequence[Scale], weights: Sequence[int], clustering: Clustering | None
) -> dict[str, Estimate]:
    total = sum(weights)
    shares = [weight / total for weight in weights]
    effect = sum(share * one.effect for share, one in zip(shares, scales, strict=True))
    errors = [one.error for one in scales if one.error is not None]
    found = {ABADIE_IMBENS: Estimate(effect, None, None)}
    if len(errors) == len(scales):
        error = math.hypot(*(share * own for share, own in zip(shares, errors, strict=True)))
        found[ABADIE_IMBENS] = with_error(effect, error, student(math.inf))
    if clustering is None:
        return found
    found[BY_CLUSTERS] = Estimate(effect, None, None)
    fewest = min(clustering.with_candidate, clustering.with_baseline)
    if fewest >= LEAST:
        moves: dict[Label, float] = {}
        for share, one in zip(shares, scales, strict=True):
            for label, move in one.moves.items():
                moves[label] = moves.get(label, 0.0) + share * move
        error = math.sqrt((len(moves) - 1) / len(moves)) * math.hypot(*moves.values())
        found[BY_CLUSTERS] = with_error(effect, error, student(fewest - 1))
    return found


def _mean(pieces: Iterable[tuple[int, float | None]]) -> float | None:
    there = [(weight, value) for weight, value in pieces if value is not None]
    total = sum(weight for weight, _ in there)
    return sum(weight * value for weight, value in there) / total if total else None
