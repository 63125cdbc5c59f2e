"""The estimand of a weighting: the rows whose covariates the weighted arms reproduce."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from equipoise_matching.designs.design import Design, DesignEstimand
from equipoise_matching.designs.units import DesignUnits, design_units
from equipoise_matching.effects.weight_model import WeightModel
from equipoise_matching.matching.options import Estimand
from equipoise_matching.matching.units import Floats, Truths, power_of_two
from equipoise_matching.shared.errors import UnusableInput

ROUNDING = 1e-9
"""Standard deviations by which a mean may leave the range of an arm through rounding."""
_CONSTANT_TOLERANCE = 1e-12
"""Range, as a share of the largest absolute value, that is the rounding error of a constant."""


@dataclass(frozen=True, slots=True, eq=False)
class WeightingProblem:
    """Checked rows, and the rows whose covariates every weighted arm reproduces.

    Parameters
    ----------
    units
        The treatment and the covariates of n rows.
    estimand
        The effect on the treated (ATT), on the controls (ATC) or on all (ATE).
    focal
        Index of the arm whose rows keep their weights: the treated for the ATT, the controls for
        the ATC. ``None`` for the ATE, for which every arm is weighted.
    """

    units: DesignUnits
    estimand: Estimand
    focal: int | None

    @property
    def target_rows(self) -> Truths:
        """Whether each row is one of those that the weighted arms reproduce, shape (n,)."""
        if self.focal is None:
            return np.ones(len(self.units), dtype=np.bool_)
        return np.asarray(self.units.arm == self.focal)

    @property
    def weighted_arms(self) -> tuple[int, ...]:
        """Indices of the arms that get weights."""
        return tuple(index for index in range(len(self.units.arms)) if index != self.focal)

    @property
    def target_name(self) -> str:
        """Name of the target rows, as in "the covariates of all rows"."""
        return "all rows" if self.focal is None else f"arm {self.units.arm_names[self.focal]}"


def weighting_problem(treat: Any, X: Any, estimand: Estimand, focal: Any) -> WeightingProblem:
    """Check the treatment, the covariates and the estimand of a weighting.

    ``focal`` is the value of the treatment that marks the treated rows. It is needed for the ATT of
    several arms; a treatment of 0 and 1 has 1. Raise `UnusableInput` for an unknown estimand, an
    unknown or missing focal arm, and for rows that `design_units` refuses.
    """
    units = design_units(treat, X, several_arms=True)
    return WeightingProblem(units, estimand, _focal_arm(units, estimand, focal))


def _focal_arm(units: DesignUnits, estimand: str, focal: Any) -> int | None:
    if estimand not in ("ATT", "ATC", "ATE"):
        raise UnusableInput(f"there is no estimand {estimand!r}", hint="choose ATT, ATC or ATE")
    if estimand == "ATE":
        if focal is not None:
            raise UnusableInput(
                f"focal is {focal!r}, but the ATE has no focal arm", hint="leave out focal"
            )
        return None
    listed = ", ".join(map(repr, units.arms))
    if units.arms == (0, 1):
        index = 1 if estimand == "ATT" else 0
        if focal is not None and focal != index:
            raise UnusableInput(
                f"focal is {focal!r}, but the {estimand} has the focal arm {index}",
                hint="leave out focal, or choose the other of ATT and ATC",
            )
        return index
    if estimand == "ATC":
        raise UnusableInput(
            f"the ATC needs a treatment of 0 and 1, not the arms {listed}",
            hint="give estimand='ATT', and the arm of interest as focal=",
        )
    if focal is None:
        raise UnusableInput(
            f"the ATT of the arms {listed} needs a focal arm",
            hint=f"give the arm of interest, such as focal={units.arms[0]!r}",
        )
    if focal not in units.arms:
        raise UnusableInput(
            f"focal is {focal!r}, which is not an arm", hint=f"choose one of {listed}"
        )
    return units.arms.index(focal)


def standardized(matrix: Floats) -> tuple[Floats, Truths]:
    """Return the columns with mean 0 and standard deviation 1, and whether each column varies.

    The shapes are (n, k) and (k,). Each column is contiguous in the memory. A constant column
    becomes 0. The divisor of the variance is n.
    """
    columns = np.empty(matrix.shape, order="F")
    varies = np.zeros(matrix.shape[1], dtype=np.bool_)
    for index in range(matrix.shape[1]):
        column = columns[:, index]
        column[:] = matrix[:, index]
        # No product here comes from BLAS, whose bits depend on the number of threads.
        extremes = np.array([column.min(), column.max()])
        # Squares of 1e200 would be infinite, so that the column is divided by a power of two.
        scale = power_of_two(extremes)
        low, high = (extremes / scale).tolist()
        varies[index] = high - low > _CONSTANT_TOLERANCE * max(abs(low), abs(high))
        if not varies[index]:
            column[:] = 0.0
            continue
        column /= scale
        column -= column.mean()
        # A second centring removes the rounding error of the first.
        column -= column.mean()
        column /= np.sqrt(np.einsum("i,i->", column, column) / len(column))
    return columns, varies


def refuse_constant_covariates(varies: Truths) -> None:
    """Raise `UnusableInput` if no covariate varies, so that there is nothing to balance."""
    if not varies.any():
        raise UnusableInput(
            "no covariate varies, so there is nothing to balance",
            hint="give a covariate with several values",
        )


def refuse_mean_outside_range(
    problem: WeightingProblem, arm: int, names: tuple[str, ...], constraints: Floats
) -> None:
    """Raise `UnusableInput` if a mean of the target is outside the range of its column in an arm.

    ``constraints`` are the columns of the arm minus the means of the target, shape (k, rows of the
    arm), in standard deviations. No weights of the arm give a mean outside its range.
    """
    is_outside = (constraints.min(axis=1) > ROUNDING) | (constraints.max(axis=1) < -ROUNDING)
    for index in np.flatnonzero(is_outside):
        raise UnusableInput(
            f"no weights of arm {problem.units.arm_names[arm]} give {names[index]} the mean of "
            f"{problem.target_name}, which is outside its range in the arm",
            hint=f"leave out {names[index]}, or rows with values that the other arm lacks",
        )


def weighted_design(
    method: str,
    units: DesignUnits,
    weights: Floats,
    *,
    estimand: DesignEstimand,
    details: Mapping[str, Any],
    focal: int | None = None,
    columns: Floats | None = None,
    weight_model: WeightModel | None = None,
) -> Design:
    """Return the design of these weights, with the numbers that judge weights among its details.

    They are the largest weight, the largest share of an arm's total weight in one row, and the
    largest difference between two arms' weighted means in standard deviations of all rows. With
    arms that are not 0 and 1, the value of the ``focal`` arm is a detail, too. ``columns`` are the
    standardised covariates, if they are known.
    """
    largest_share, means = 0.0, []
    if columns is None:
        columns, _ = standardized(units.matrix)
    for arm in range(len(units.arms)):
        shares = np.where(units.arm == arm, weights, 0.0)
        # The largest weight is taken out first, so that the sum of large weights is finite.
        shares /= shares.max()
        shares /= shares.sum()
        largest_share = max(largest_share, float(shares.max()))
        means.append(np.einsum("ij,i->j", columns, shares))
    common: dict[str, Any] = {}
    if focal is not None and units.arms != (0, 1):
        common["Focal arm"] = units.arms[focal]
    common |= {
        "Largest weight": float(weights.max()),
        "Largest share of an arm in one row": largest_share,
        "Largest difference of means (standard deviations)": float(np.ptp(means, axis=0).max()),
    }
    return Design(
        method,
        estimand,
        units,
        weights,
        details={**common, **details},
        weight_model=weight_model,
    )
