"""When no number is given, and what would be needed for one."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from equipoise.model.observation_result import Effect, MissingRows, Refusal
from equipoise.observation.arms import Arms
from equipoise.observation.clusters import LEAST, Clusters
from equipoise.observation.covariates import Covariates
from equipoise.observation.effects import Found
from equipoise.observation.matching import MOST_APART, Comparable
from equipoise.observation.needed import needed
from equipoise.observation.words import size_words


def refusal_of(
    kept: Comparable,
    covariates: Covariates,
    treated: NDArray[np.bool_],
    plain: Found,
    clusters: Clusters | None,
    arms: Arms,
) -> Refusal | None:
    """Why there is no answer; ``None`` if there is one."""
    if not kept.is_balanced:
        return _unbalanced(needed(kept, covariates, treated), arms)
    if clusters is not None and plain.estimate.interval is None:
        counts = {
            arms.candidate: len(np.unique(clusters.code[plain.linear.treated_rows])),
            arms.baseline: len(np.unique(clusters.code[plain.linear.serving_rows])),
        }
        return few_clusters(counts, clusters.by)
    return None


def refused_words(naive: Effect, refusal: Refusal, outcome: str) -> str:
    """What can be said all the same."""
    return f"Naively {size_words(naive, outcome)}, but no answer can be given: {refusal.summary}."


def _unbalanced(lacking: tuple[MissingRows, ...], arms: Arms) -> Refusal:
    worst = lacking[0]
    apart = "without limit" if worst.difference is None else f"{abs(worst.difference):.2f}"
    others = f", and {len(lacking) - 1} more" if len(lacking) > 1 else ""
    return Refusal(
        "unbalanced",
        f"after the best matching {worst.column} still differs by {apart} standard deviations "
        f"(at most {MOST_APART:g}){others}",
        f"needed are rows of {arms.baseline} with {worst.column} between {worst.low:.4g} and "
        f"{worst.high:.4g}: there are {worst.baseline_rows:,} for {worst.candidate_rows:,} of "
        f"{arms.candidate}",
        lacking,
    )


def few_clusters(counts: dict[str, int], by: str) -> Refusal:
    """Refuse a number whose error would be a guess.

    Parameters
    ----------
    counts
        By version, the clusters with rows that count.
    by
        What a cluster is.
    """
    fewest = min(counts, key=lambda name: counts[name])
    return Refusal(
        "few-clusters",
        f"comparable rows of {fewest} lie in {counts[fewest]} clusters only ({by}): with "
        f"fewer than {LEAST} the error itself is a guess",
        "gather rows of more of them, or name finer ones with --cluster; --cluster none takes "
        "every row as independent",
    )
