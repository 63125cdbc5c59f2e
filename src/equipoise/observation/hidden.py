"""What a hidden factor could change, as it stands in the document."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from equipoise.model.observation_result import (
    Contribution,
    GammaBound,
    HiddenBias,
    Robustness,
)
from equipoise.observation.clusters import Clusters
from equipoise.observation.covariates import Covariates
from equipoise.observation.effects import Found
from equipoise.observation.matching import Comparable, again_without_replacement
from equipoise.observation.robustness import Regression, regression
from equipoise.observation.rosenbaum import (
    MOST_GAMMA,
    cluster_differences,
    gamma_to_change,
    interval_at,
    pair_differences,
)
from equipoise.observation.scores import Values

GAMMAS = (1.0, 1.5, 2.0, 3.0)
_SHOWN = 2


def hidden_bias(
    main: Found,
    comparable: Comparable,
    treated: NDArray[np.bool_],
    clusters: Clusters | None,
    *,
    is_log: bool,
    seed: int,
    threads: int | None,
) -> HiddenBias:
    """Rosenbaum's bounds on a match in pairs without replacement, one difference a cluster.

    Parameters
    ----------
    main
        The effect on the scale that counts; ``is_log`` if its ends are to be told as ratios.
    """
    pairs = again_without_replacement(comparable, treated, seed=seed, threads=threads)
    if clusters is None:
        of, differences = "pairs", pair_differences(pairs, main.adjusted.left)
    else:
        of, differences = "clusters", cluster_differences(pairs, main.adjusted.left, clusters.code)
    bounds = []
    for gamma in GAMMAS:
        low, high = interval_at(differences, gamma)
        if is_log:
            low, high = (None if end is None else math.exp(end) for end in (low, high))
        bounds.append(GammaBound(gamma, low, high))
    least = gamma_to_change(differences)
    each = "a pair of rows" if clusters is None else f"a pair of clusters ({clusters.by})"
    if least is None:
        words = f"over {len(differences)} {of} the effect is not shown even without a hidden factor"
    elif least >= MOST_GAMMA:
        words = (
            f"a factor of the odds of {MOST_GAMMA:.0f} within {each} would not change the answer"
        )
    else:
        words = (
            f"a hidden factor that multiplies the odds within {each} by less than {least:.3g} "
            "cannot change the answer"
        )
    return HiddenBias(of, len(differences), tuple(bounds), least, words)


def regressions(
    logs: Values | None, plain: Values, treated: NDArray[np.bool_], covariates: Covariates
) -> tuple[Regression | None, Regression] | None:
    """The regressions on both scales over all rows; ``None`` without covariates."""
    if not covariates.names:
        return None
    matrix, owners = covariates.matrix, covariates.owners
    on_log = None if logs is None else regression(logs, treated, matrix, owners)
    return on_log, regression(plain, treated, matrix, owners)


def contributions(on_log: Regression | None, plain: Regression) -> tuple[Contribution, ...]:
    """What of the naive difference each covariate accounts for, the most first."""
    order = sorted(plain.shares, key=lambda name: -abs((on_log or plain).shares[name]))
    return tuple(
        Contribution(name, None if on_log is None else on_log.shares[name], plain.shares[name])
        for name in order
    )


def robustness_of(fitted: Regression, effect: float) -> Robustness:
    """The robustness value, where the regression over all rows agrees with the matched effect.

    Parameters
    ----------
    fitted
        On the scale of ``effect``.
    """
    if fitted.estimate * effect <= 0.0:
        return Robustness(
            None,
            None,
            None,
            "unknown: the regression over all rows points the other way than the matched rows do",
        )
    share = 100.0 * fitted.robustness
    words = (
        f"a hidden factor would have to explain {share:.{_SHOWN}g} % of what is left of both the "
        "choice of version and the outcome"
    )
    if fitted.strongest is not None and fitted.multiple is not None:
        words += f", or be {fitted.multiple:.{_SHOWN}g} times as strong as {fitted.strongest}"
    return Robustness(fitted.robustness, fitted.strongest, fitted.multiple, words)
