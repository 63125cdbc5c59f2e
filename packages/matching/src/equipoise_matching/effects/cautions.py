"""Sentences on an effect whose interval may be in the wrong place, or too narrow."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from equipoise_matching.effects.sample import DesignRows, EffectSample
from equipoise_matching.matching.units import Floats

MAX_DIFFERENCE_OF_MEANS = 0.1
"""Largest standardised difference of a covariate that weighted means may leave (Austin 2009)."""
MAX_DIFFERENCE_OF_REGRESSION = 0.25
"""Largest standardised difference that a regression may bridge (Rubin 2001, Health Services and
Outcomes Research Methodology 2)."""
MIN_CLUSTERS = 20
"""Number of clusters below which cluster-robust intervals are often too narrow."""


def cautions(sample: EffectSample, design: DesignRows, *, adjusted: bool) -> Iterator[str]:
    """Return the sentences; ``adjusted`` means that the outcome's model has covariates."""
    if design.matrix.shape[1]:
        yield from _imbalance(sample, design, adjusted)
    if sample.clusters is not None:
        clusters = len(np.unique(sample.clusters))
        if clusters < MIN_CLUSTERS:
            yield f"{clusters} clusters are few: the interval may be too narrow"


def _imbalance(sample: EffectSample, design: DesignRows, adjusted: bool) -> Iterator[str]:
    differences = standardised_differences(sample, design.matrix[sample.rows])
    arm, column = np.unravel_index(int(differences.argmax()), differences.shape)
    largest = float(differences[arm, column])
    where = (
        f"{design.names[column]} of {sample.arm_names[arm]} differs by {largest:.2f} standard "
        "deviations from the target population"
    )
    if adjusted and largest > MAX_DIFFERENCE_OF_REGRESSION:
        yield f"{where}: the estimate depends on the outcome's model"
    elif not adjusted and largest > MAX_DIFFERENCE_OF_MEANS:
        yield f"{where}: the weighted means are biased if {design.names[column]} matters"


def standardised_differences(sample: EffectSample, matrix: Floats) -> Floats:
    """Return |mean of the arm − mean of the target| in standard deviations, shape (arms, columns).

    The deviation of a covariate is the root of its mean variance within the arms.
    """
    largest = np.abs(matrix).max(axis=0)
    columns = matrix / np.where(largest > 0.0, largest, 1.0)
    target = sample.target @ columns
    means, variances = [], []
    for index in range(len(sample.arm_names)):
        rows = sample.arm == index
        weights = sample.weights[rows] / float(sample.weights[rows].max())
        means.append(weights @ columns[rows] / weights.sum())
        variances.append(columns[rows].var(axis=0))
    deviation = np.sqrt(np.mean(variances, axis=0))
    gaps = np.abs(np.array(means) - target)
    # A covariate that is constant within the arms differs by rounding, or by everything.
    constant = deviation <= 1e-9
    of_constant = np.where(gaps > 1e-6, np.inf, 0.0)
    return np.asarray(np.where(constant, of_constant, gaps / np.where(constant, 1.0, deviation)))
