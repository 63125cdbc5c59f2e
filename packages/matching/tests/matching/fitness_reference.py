"""The fitness of a candidate in plain NumPy, pair by pair, for comparison."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student

from equipoise_matching.matching.distributions import ks_boot

Floats = NDArray[np.float64]
Pairs = list[tuple[int, int, float]]


def standardised(x: Floats, weights: Floats) -> Floats:
    mean = weights @ x / weights.sum()
    variance = weights @ (x - mean) ** 2 / weights.sum() * len(x) / (len(x) - 1)
    return np.asarray((x - mean) / np.sqrt(variance))


def pairs(
    treat: NDArray[np.int64],
    x: Floats,
    w: Floats,
    *,
    estimand: str = "ATT",
    m: int = 1,
    weights: Floats | None = None,
    caliper: float | None = None,
    restrict: list[tuple[int, int, float]] | None = None,
    replace: bool = True,
    distance_tolerance: float = 1e-5,
) -> Pairs:
    """Match each unit in turn, by its sorted squared distances to the other arm."""
    row_weights = np.ones(len(x)) if weights is None else weights
    z = standardised(x, row_weights)
    limit = np.inf
    if caliper is not None:
        mean = row_weights @ x / row_weights.sum()
        limit = caliper * np.sqrt(row_weights @ (x - mean) ** 2 / row_weights.sum())
    free = np.ones(len(x), dtype=bool)
    pairs_so_far: Pairs = []
    for i in range(len(x)):
        if estimand != "ATE" and treat[i] != (estimand == "ATT"):
            continue
        distance = ((z - z[i]) ** 2 @ w).astype(float)
        for first, second, fixed_distance in restrict or []:
            if i in (first, second):
                distance[second if i == first else first] = (
                    fixed_distance if fixed_distance >= 0 else np.inf
                )
        distance[(np.abs(x - x[i]) > limit).any(axis=1)] = np.inf
        distance[~free | (treat == treat[i])] = np.inf
        order = np.argsort(distance, kind="stable")
        reached = np.cumsum(row_weights[order]) >= m - 1e-10
        last = distance[order[int(np.argmax(reached))]] if reached.any() else np.inf
        if not np.isfinite(last):
            continue
        near = np.flatnonzero(distance <= last + distance_tolerance + 1e-10)
        if not replace:
            near = near[:m]
            free[near] = False
        share = row_weights[i] * row_weights[near] / row_weights[near].sum()
        pairs_so_far += [(i, int(j), float(s)) for j, s in zip(near, share, strict=True)]
    return pairs_so_far


def smirnov(treated: Floats, control: Floats) -> float:
    """Return the exact p-value below 100 pairs, else the asymptotic one with R's first term."""
    if len(treated) * len(control) < 10_000:
        return ks_boot(treated, control, boot=0).p_value
    values = np.unique([treated, control])
    far = np.abs(distribution(treated, values) - distribution(control, values)).max()
    at = math.sqrt(len(treated) / 2) * far
    if at == 0:
        return 1.0
    if at < 1:
        return float(1 - math.sqrt(2 * math.pi) / at * math.exp(-(math.pi**2) / (8 * at**2)))
    return float(2 * sum((-1) ** (k - 1) * math.exp(-2 * (k * at) ** 2) for k in range(1, 20)))


def distribution(sample: Floats, values: Floats) -> Floats:
    return np.asarray(np.searchsorted(np.sort(sample), values, side="right") / len(sample))


def paired_p_value(treated: Floats, control: Floats, weight: Floats) -> float:
    apart = treated - control
    mean = weight @ apart / weight.sum()
    variance = weight @ (apart - mean) ** 2 / weight.sum() ** 2
    if mean == 0 and variance == 0:
        return 1.0
    return float(2 * student.sf(abs(mean) / math.sqrt(variance), weight.sum() - 1))


def welch_p_value(treated: Floats, control: Floats, weight: Floats) -> float:
    size = weight.sum()
    means, parts = [], []
    for sample in (treated, control):
        mean = weight @ sample / size
        means.append(mean)
        parts.append(weight @ (sample - mean) ** 2 / (size - 1) / size)
    freedom = sum(parts) ** 2 / sum(part**2 / (size - 1) for part in parts)
    return float(2 * student.sf(abs(means[0] - means[1]) / math.sqrt(sum(parts)), freedom))


def p_values(
    treat: NDArray[np.int64], balance: Floats, matched: Pairs, paired: bool = True
) -> Floats:
    """Return the p-values of all t-tests, then of all Kolmogorov-Smirnov tests."""
    first = np.array([pair[0] for pair in matched])
    second = np.array([pair[1] for pair in matched])
    weight = np.array([pair[2] for pair in matched])
    rows_treated = np.where(treat[first] == 1, first, second)
    rows_control = np.where(treat[first] == 1, second, first)
    means, tests = [], []
    for column in balance.T:
        treated, control = column[rows_treated], column[rows_control]
        mean = (paired_p_value if paired else welch_p_value)(treated, control, weight)
        means.append(mean)
        tests.append(mean if len(np.unique(column)) < 3 else smirnov(treated, control))
    return np.array(means + tests)


def distances(treat: NDArray[np.int64], balance: Floats, matched: Pairs, within: Any) -> Floats:
    """Return the distance of each covariate's two distribution functions."""
    answers = []
    for column in balance.T:
        treated = np.array([column[i if treat[i] == 1 else j] for i, j, _ in matched])
        control = np.array([column[j if treat[i] == 1 else i] for i, j, _ in matched])
        values = np.unique([treated, control])
        answers.append(
            within(np.abs(distribution(treated, values) - distribution(control, values)))
        )
    return np.array(answers)
