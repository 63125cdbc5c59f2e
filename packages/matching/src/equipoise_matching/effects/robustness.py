"""The robustness value: how strong a hidden factor must be to remove a regression's slope.

Formulae: ``omitted_factor``. The effect is the slope of the treatment in least squares, so it suits
a regression, also one with the weights of a design.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import ArrayLike

from equipoise_matching.effects.omitted_factor import (
    adjusted_slope,
    factor_strength,
    partial_f2,
    residuals,
    robustness_value_of,
    significance_robustness_value,
)
from equipoise_matching.matching.frames import matrix_of
from equipoise_matching.matching.match import aligned
from equipoise_matching.matching.units import (
    Floats,
    checked_column,
    power_of_two,
    refuse_rows,
)
from equipoise_matching.report import UNKNOWN, TextTable
from equipoise_matching.shared import html
from equipoise_matching.shared.errors import UnusableInput
from equipoise_matching.shared.extras import require
from equipoise_matching.shared.numbers import significant


class BenchmarkBound(Struct, frozen=True):
    """The effect if a hidden factor is ``multiple`` times as strong as a covariate.

    The numbers are ``None`` if no factor can be so strong.
    """

    covariate: str
    multiple: float
    r2_treatment: float | None
    """Partial R² of the factor with the treatment."""
    r2_outcome: float | None
    """Partial R² of the factor with the outcome, given the treatment."""
    estimate: float | None
    se: float | None
    interval: tuple[float, float] | None


class RobustnessValue(Struct, frozen=True):
    """The slope of the treatment, and how strong a hidden factor must be to remove it.

    Examples
    --------
    >>> from equipoise_matching import robustness_value
    >>> import numpy as np
    >>> random = np.random.default_rng(1)
    >>> X = random.normal(size=(300, 2))
    >>> treat = (X[:, 0] + random.normal(size=300) > 0).astype(int)
    >>> value = robustness_value(X[:, 0] + treat + random.normal(size=300), treat, X)
    >>> 0 < value.value_of_interval < value.value < 1
    True
    """

    estimate: float
    se: float
    t: float
    degrees_of_freedom: float
    partial_r2: float
    """Partial R² of the treatment with the outcome."""
    value: float
    """Partial R² with treatment and outcome of a factor that removes ``share`` of the slope."""
    value_of_interval: float
    """The same for the end of the interval, instead of the slope."""
    share: float
    confidence: float
    bounds: tuple[BenchmarkBound, ...] = ()

    def rescaled(self, factor: float) -> RobustnessValue:
        """Return the result with slopes and errors multiplied by a factor."""
        bounds = tuple(
            replace(
                bound,
                estimate=None if bound.estimate is None else factor * bound.estimate,
                se=None if bound.se is None else factor * bound.se,
                interval=None
                if bound.interval is None
                else (factor * bound.interval[0], factor * bound.interval[1]),
            )
            for bound in self.bounds
        )
        return replace(self, estimate=factor * self.estimate, se=factor * self.se, bounds=bounds)

    def facts(self) -> list[tuple[str, str]]:
        """Return names and values."""
        return [
            ("Slope of the treatment", f"{self.estimate:.5g}"),
            ("Standard error", f"{self.se:.5g}"),
            ("t", f"{self.t:.5g} ({self.degrees_of_freedom:g} degrees of freedom)"),
            ("Partial R² of the treatment", f"{self.partial_r2:.4g}"),
            ("Robustness value", f"{self.value:.4g}"),
            ("Robustness value of the interval", f"{self.value_of_interval:.4g}"),
        ]

    def table(self) -> TextTable:
        """Return a row for each benchmark."""

        def text(value: float | None) -> str:
            return UNKNOWN if value is None else f"{value:.4g}"

        rows = tuple(
            (
                f"{bound.multiple:g} × {bound.covariate}",
                *map(text, (bound.r2_treatment, bound.r2_outcome, bound.estimate, bound.se)),
                *map(text, bound.interval or (None, None)),
            )
            for bound in self.bounds
        )
        headings = ("hidden factor", "R² treatment", "R² outcome", "slope", "se", "low", "high")
        return TextTable(headings, rows, "Bounds by benchmarks")

    def sentence(self) -> str:
        """Return the strength that a hidden factor needs, in a sentence."""
        percent = significant(100.0 * self.value, 3)
        percent_of_interval = significant(100.0 * self.value_of_interval, 3)
        return (
            f"A hidden factor removes {100.0 * self.share:g} % of the slope if it explains "
            f"{percent} % of the variance that the covariates leave in treatment and outcome "
            f"({percent_of_interval} % for the end of the interval)."
        )

    def methods_sentence(self) -> str:
        """Return sentences for the methods section of a paper."""
        return f"We computed robustness values (Cinelli and Hazlett 2020). {self.sentence()}"

    def summary(self) -> str:
        """Return the facts, the sentence and the bounds as text."""
        parts = [aligned(self.facts()), self.sentence()]
        if self.bounds:
            parts.append(self.table().to_text())
        return "\n".join(parts)

    def __str__(self) -> str:
        """Return the summary."""
        return self.summary()

    def _repr_html_(self) -> str:
        table = self.table().to_html() if self.bounds else ""
        return f"<div>{html.facts(self.facts())}<p>{html.text(self.sentence())}</p>{table}</div>"


def robustness_value(
    y: ArrayLike,
    treat: ArrayLike,
    X: Any,
    *,
    benchmarks: Sequence[str] = (),
    multiples: Sequence[float] = (1.0, 2.0, 3.0),
    weights: ArrayLike | None = None,
    share: float = 1.0,
    confidence: float = 0.95,
) -> RobustnessValue:
    """Return how strong a hidden factor must be to change a regression's slope of the treatment.

    The regression is least squares of y on the treatment and X (Cinelli and Hazlett 2020, JRSS B
    82(1)), weighted if there are weights. Its errors are those of equal variances.

    Raise `UnusableInput` if there are too few rows, the covariates determine the treatment, or a
    benchmark is not a covariate.

    Examples
    --------
    >>> from equipoise_matching import robustness_value
    >>> import numpy as np
    >>> random = np.random.default_rng(1)
    >>> X = {"age": random.normal(size=300), "wage": random.normal(size=300)}
    >>> treat = (X["age"] + random.normal(size=300) > 0).astype(int)
    >>> y = X["age"] + treat + random.normal(size=300)
    >>> value = robustness_value(y, treat, X, benchmarks=["age"], multiples=[0.5])
    >>> value.bounds[0].covariate, value.bounds[0].estimate < value.estimate
    ('age', True)

    Parameters
    ----------
    y, treat, X
        Shapes (n,), (n,) with any numbers, such as 0 and 1, and (n, k).
    benchmarks
        Covariates with whose strength the hidden factor is compared.
    multiples
        How many times as strong as a benchmark the factor is, with treatment and outcome alike.
    weights
        Shape (n,), such as the weights of a design; rows with weight 0 are left out.
    share
        Share q of the slope that the factor removes, by default all.
    confidence
        Chance with which the interval has the true slope.
    """
    names, matrix = matrix_of(X)
    count = len(matrix)
    outcome = checked_column(y, "y", count)
    treatment = checked_column(treat, "treat", count)
    for name in benchmarks:
        if name not in names:
            raise UnusableInput(
                f"the benchmark {name!r} is not a covariate", hint=f"name one of {', '.join(names)}"
            )
    if not 0.0 < share <= 1.0 or not 0.0 < confidence < 1.0:
        raise UnusableInput(
            f"share is {share!r} and confidence {confidence!r}", hint="give 1 and 0.95"
        )
    if not all(0.0 < multiple < math.inf for multiple in multiples):
        raise UnusableInput(f"multiples are {list(multiples)}", hint="give numbers above 0")
    roots = np.ones(count)
    if weights is not None:
        checked = checked_column(weights, "weights", count)
        refuse_rows(checked < 0, "weights", "is negative", "give weights of 0 or more")
        kept = np.flatnonzero(checked > 0)
        outcome, treatment, matrix = outcome[kept], treatment[kept], matrix[kept]
        roots = np.sqrt(checked[kept] / checked[kept].max())
    # Divided by powers of two, no square overflows.
    scale_of_outcome, scale_of_treatment = power_of_two(outcome), power_of_two(treatment)
    value = _robustness_value(
        _Regression(outcome / scale_of_outcome, treatment / scale_of_treatment, matrix, roots),
        [(name, names.index(name)) for name in benchmarks],
        multiples,
        share,
        confidence,
    )
    return value.rescaled(scale_of_outcome / scale_of_treatment)


class _Regression(Struct, frozen=True):
    """Columns of a regression; each row is multiplied by the root of its weight."""

    outcome: Floats
    treatment: Floats
    matrix: Floats
    roots: Floats

    def predictors(self, left_out: int | None = None) -> Floats:
        """Return the constant and the standardised covariates, without one of them."""
        matrix = self.matrix
        if left_out is not None:
            matrix = np.delete(matrix, left_out, axis=1)
        largest = np.abs(matrix).max(axis=0, initial=0.0)
        columns = matrix / np.where(largest > 0.0, largest, 1.0)
        columns = columns - columns.mean(axis=0)
        spread = columns.std(axis=0)
        columns = columns / np.where(spread > 1e-12, spread, 1.0)
        columns = np.column_stack([np.ones(len(columns)), columns[:, spread > 1e-12]])
        return np.asarray(columns * self.roots[:, None])


def _robustness_value(
    regression: _Regression,
    benchmarks: Sequence[tuple[str, int]],
    multiples: Sequence[float],
    share: float,
    confidence: float,
) -> RobustnessValue:
    roots = regression.roots
    both = np.column_stack([regression.treatment * roots, regression.outcome * roots])
    full = regression.predictors()
    left = residuals(both, full)
    treatment_squares = float(left[:, 0] @ left[:, 0])
    if not treatment_squares > 1e-10 * float(both[:, 0] @ both[:, 0]):
        raise UnusableInput(
            "the covariates determine the treatment, so its slope is not defined",
            hint="leave out the covariate that decides the treatment",
        )
    estimate = float(left[:, 0] @ left[:, 1]) / treatment_squares
    residual = left[:, 1] - estimate * left[:, 0]
    freedom = float(len(residual) - np.linalg.matrix_rank(full) - 1)
    if freedom < 2:
        raise UnusableInput(
            f"there are {len(residual)} rows for {full.shape[1] + 1} coefficients",
            hint="give more rows or fewer covariates",
        )
    residual_squares = float(residual @ residual)
    se = math.sqrt(residual_squares / freedom / treatment_squares)
    t = estimate / se if se > 0.0 else math.copysign(math.inf, estimate)
    f_squared = t**2 / freedom
    special: Any = require("scipy.special", "robustness values")
    bounds = []
    for name, index in benchmarks:
        less = residuals(both, regression.predictors(index))
        # The outcome without the benchmark, after the regression on the treatment.
        slope = float(less[:, 0] @ less[:, 1]) / float(less[:, 0] @ less[:, 0])
        outcome_left = less[:, 1] - slope * less[:, 0]
        f_outcome = partial_f2(float(outcome_left @ outcome_left) - residual_squares,
                               residual_squares)  # fmt: skip
        f_treatment = partial_f2(
            float(less[:, 0] @ less[:, 0]) - treatment_squares, treatment_squares
        )
        for multiple in multiples:
            strength = factor_strength(multiple, f_outcome, f_treatment)
            if strength is None:
                bounds.append(BenchmarkBound(name, multiple, None, None, None, None, None))
                continue
            adjusted, error = adjusted_slope(estimate, se, freedom, *strength)
            half_width = float(special.stdtrit(freedom - 1.0, (1.0 + confidence) / 2.0)) * error
            bounds.append(
                BenchmarkBound(
                    name,
                    multiple,
                    strength[1],
                    strength[0],
                    adjusted,
                    error,
                    (adjusted - half_width, adjusted + half_width),
                )
            )
    return RobustnessValue(
        estimate=estimate,
        se=se,
        t=t,
        degrees_of_freedom=freedom,
        partial_r2=f_squared / (1.0 + f_squared) if math.isfinite(f_squared) else 1.0,
        value=robustness_value_of(share**2 * f_squared),
        value_of_interval=significance_robustness_value(t, freedom, share, confidence)
        if math.isfinite(t)
        else 1.0,
        share=share,
        confidence=confidence,
        bounds=tuple(bounds),
    )
