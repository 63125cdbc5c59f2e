"""Standard errors from the influence of each row, by clusters or by rows.

The influence φ_i of a row on an estimate is the change of the estimate per unit of the row's part
in its estimating equations. The variance of independent rows is Σ φ_i², and that of independent
clusters g is Σ_g (Σ_{i in g} φ_i)² (Liang and Zeger 1986, Biometrika 73(1)). The factors for small
samples are those of MacKinnon and White (1985, J. Econometrics 29(3)):

- HC1 with G clusters, n rows and p parameters: G/(G − 1) · (n − 1)/(n − p). Rows without clusters
  are clusters of their own.
- HC3: each residual is divided by 1 − h, the rest of its own leverage; clusters have the factor
  G/(G − 1) too.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from msgspec import Struct

from equipoise_matching.effects.result import RATIOS, EffectEstimate
from equipoise_matching.effects.sample import EffectSample, Scale
from equipoise_matching.matching.units import Floats, Indices, power_of_two
from equipoise_matching.shared.errors import UnusableInput
from equipoise_matching.shared.extras import require

MAX_FAILED_SHARE = 0.05
"""Largest share of bootstrap samples that may give no estimate."""


class ErrorEstimate(Struct, frozen=True):
    """A standard error, its degrees of freedom, and its name in a sentence."""

    se: float
    degrees_of_freedom: float
    name: str


def error_of(
    influence: Floats, sample: EffectSample, parameters: int, correction: str = "HC0"
) -> ErrorEstimate:
    """Return the standard error of an estimate from the influence (n,) of each row.

    ``parameters`` is the number of coefficients of the outcome's model. The influence already has
    the correction HC3; HC0 means that there is none.
    """
    count = len(sample)
    # Divided by a power of two, no square overflows.
    scale = power_of_two(influence)
    influence = influence / scale
    if sample.clusters is None:
        factor = count / max(1, count - parameters) if correction == "HC1" else 1.0
        return ErrorEstimate(
            scale * math.sqrt(factor * float((influence**2).sum())),
            max(1.0, count - parameters),
            f"heteroskedasticity-robust by rows ({correction})",
        )
    sums = np.bincount(sample.clusters, influence)
    clusters = len(sums)
    if clusters < 2:
        raise UnusableInput(
            f"there is {clusters} cluster, which gives no standard error",
            hint="give a design with more strata, or error='rows'",
        )
    factor = clusters / (clusters - 1)
    if correction == "HC1":
        factor *= (count - 1) / max(1, count - parameters)
    error = scale * math.sqrt(factor * float((sums**2).sum()))
    name = "G/(G − 1)" if correction == "HC0" else correction
    return ErrorEstimate(error, clusters - 1.0, f"cluster-robust by {sample.cluster_name} ({name})")


def resamples(clusters: Indices | None, count: int, replications: int, seed: int) -> list[Indices]:
    """Return positions of rows for each bootstrap sample: rows, or whole clusters, are drawn."""
    generators = np.random.default_rng(seed).spawn(replications)
    if clusters is None:
        return [generator.integers(0, count, count) for generator in generators]
    order = np.argsort(clusters, kind="stable")
    members = np.split(order, np.cumsum(np.bincount(clusters))[:-1])
    return [
        np.concatenate(
            [members[index] for index in generator.integers(0, len(members), len(members))]
        )
        for generator in generators
    ]


def bootstrap_errors(
    estimate: Callable[[Indices], Floats], samples: list[Indices], unit: str
) -> tuple[ErrorEstimate, ...]:
    """Return the spread of each of the q values that ``estimate`` computes from resampled rows.

    Raise `UnusableInput` if too many samples give no estimate; the others are left out, and the
    name of the error counts them.
    """
    values, failures = [], list[UnusableInput]()
    for rows in samples:
        try:
            values.append(estimate(rows))
        except UnusableInput as error:
            failures.append(error)
    if len(failures) > MAX_FAILED_SHARE * len(samples) or len(values) < 2:
        raise UnusableInput(
            f"{len(failures)} of {len(samples)} bootstrap samples give no estimate: "
            f"{failures[0].what if failures else 'there are too few samples'}",
            hint="give fewer covariates, or error='rows'",
        )
    name = f"bootstrapped by {unit} ({len(values)} samples"
    name += f"; {len(failures)} gave no estimate)" if failures else ")"
    spreads = np.std(np.array(values), axis=0, ddof=1)
    return tuple(ErrorEstimate(float(spread), math.inf, name) for spread in spreads)


def with_interval(
    value: float,
    error: ErrorEstimate,
    scale: Scale,
    confidence: float,
    **fields: object,
) -> EffectEstimate:
    """Return the estimate with its interval and p-value by Student's t.

    ``value`` is the logarithm of the estimate if the scale is a ratio.
    """
    special = require("scipy.special", "intervals")
    freedom = error.degrees_of_freedom
    quantile = float(special.stdtrit(freedom, (1.0 + confidence) / 2.0))
    if math.isinf(freedom):
        quantile = float(special.ndtri((1.0 + confidence) / 2.0))
    ends = (value - quantile * error.se, value + quantile * error.se)
    statistic = math.inf if error.se == 0.0 and value else abs(value) / (error.se or 1.0)
    p_value = 2.0 * float(
        special.ndtr(-statistic) if math.isinf(freedom) else special.stdtr(freedom, -statistic)
    )
    is_ratio = scale in RATIOS
    return EffectEstimate(
        estimate=math.exp(value) if is_ratio else value,
        se=error.se,
        interval=(math.exp(ends[0]), math.exp(ends[1])) if is_ratio else ends,
        p_value=p_value,
        scale=scale,
        confidence=confidence,
        degrees_of_freedom=freedom,
        error=error.name,
        **fields,  # type: ignore[arg-type]
    )
