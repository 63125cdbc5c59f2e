"""Generalised full matching: strata of near rows of two or more arms, for millions of rows.

Sävje, Higgins and Sekhon 2021, Generalized Full Matching, Political Analysis 29(4). The
computation is in Rust (``crates/matching/src/quick.rs``); docs/methods/quick-matching.md has the
steps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from equipoise_matching import _native
from equipoise_matching.designs.design import LEFT_OUT, Design
from equipoise_matching.designs.nearest import checked_caliper
from equipoise_matching.designs.units import DesignUnits, design_units, setting_details
from equipoise_matching.matching.options import (
    DONOR_ARMS,
    Estimand,
    check_whole_number,
    checked_metric,
)
from equipoise_matching.matching.units import Floats, Indices, Truths
from equipoise_matching.shared.errors import UnusableInput

Target = Literal["all", "estimand"]


def quick_match(
    treat: Any,
    X: Any,
    *,
    estimand: Estimand = "ATE",
    focal: Any = None,
    arm_sizes: int | Mapping[Any, int] = 1,
    size: int | None = None,
    metric: str | ArrayLike = "mahalanobis",
    caliper: float | None = None,
    target: Target = "all",
    threads: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Design:
    """Divide all rows into strata of near rows, each with rows of every arm.

    No two rows of a stratum are further from each other than four times the largest distance in
    the best possible strata (Sävje, Higgins and Sekhon 2021, section 4). Equal distances are
    decided by the row number.

    Raise `UnusableInput` if data or options cannot be used, or an arm has too few rows.

    Examples
    --------
    >>> from equipoise_matching import quick_match
    >>> trained, age = [1, 0, 1, 0, 0], [25, 24, 52, 50, 31]
    >>> design = quick_match(trained, {"age": age})
    >>> design.strata.tolist()
    [0, 0, 1, 1, 0]
    >>> design.weights.tolist()
    [3.0, 1.5, 2.0, 2.0, 1.5]

    Parameters
    ----------
    treat
        Shape (n,), the arm of each row: 0 and 1, or the values of several arms.
    X
        Shape (n, k), the covariates: array or frame.
    estimand
        The effect on all rows (ATE), on the treated (ATT) or on the controls (ATC). It gives the
        weights.
    focal
        The arm of ATT if there are several arms.
    arm_sizes
        Smallest number of rows of each arm in a stratum: one number, or a number for each arm.
    size
        Smallest number of rows in a stratum, by default the sum of ``arm_sizes``.
    metric
        Metric on the standardised columns: "mahalanobis", "inverse_variance", k weights or a
        symmetric positive semidefinite matrix (k, k).
    caliper
        Largest distance of two rows of a stratum, in the unit of the metric. Rows without near rows
        are left out.
    target
        Rows that must be in a stratum: "all", or the rows of the "estimand". Other rows are left
        out if no stratum needs them.
    threads
        Number of threads, by default one for each core; the answer does not depend on it.
    progress
        Function that receives the numbers of searches done and of all searches, from any thread.
    """
    if target not in get_args(Target):
        raise UnusableInput(f"there is no target {target!r}", hint="choose 'all' or 'estimand'")
    check_whole_number("threads", threads, 1)
    units = design_units(treat, X, several_arms=True)
    refuse_constant_columns(units)
    focal_arm = checked_focal_arm(units, estimand, focal)
    sizes = checked_arm_sizes(units, arm_sizes)
    is_target = np.ones(len(units), dtype=np.bool_)
    if target == "estimand" and focal_arm is not None:
        is_target = np.asarray(units.arm == focal_arm)
    problem = QuickProblem(
        x=units.matrix,
        metric=checked_metric(metric, units.names),
        arm=units.arm,
        arm_sizes=sizes,
        size=checked_size(size, sizes, len(units)),
        is_target=is_target,
        caliper=checked_caliper(caliper),
        threads=int(threads or 0),
    )
    strata, largest_distance, lower_bound = _native.quick_strata(problem, progress)
    sizes_of_strata = np.bincount(strata[strata != LEFT_OUT])
    if not len(sizes_of_strata):
        raise UnusableInput(
            f"no stratum fits into a caliper of {problem.caliper:g}",
            hint="widen the caliper, or give smaller arm_sizes",
        )
    details: dict[str, Any] = {
        **setting_details(metric=metric, caliper=caliper),
        "Smallest stratum": int(sizes_of_strata.min()),
        "Largest stratum": int(sizes_of_strata.max()),
        "Largest distance from a seed": largest_distance,
    }
    if caliper is None:
        details["Lower bound of the largest distance in a stratum"] = lower_bound
    weights = stratum_weights(units, strata, focal_arm)
    return Design("quick_match", estimand, units, weights, strata, details=details)


@dataclass(frozen=True, slots=True, eq=False)
class QuickProblem:
    """Checked data and options of n rows, which ``_native`` reads by the names of the fields."""

    x: Floats
    """Shape (n, k), the covariates."""
    metric: str | Floats
    """Name of a metric, or a weight matrix (k, k)."""
    arm: Indices
    """Shape (n,), the position of each row's arm in ``arm_sizes``."""
    arm_sizes: tuple[int, ...]
    """Smallest number of rows of each arm in a stratum."""
    size: int
    """Smallest number of rows in a stratum."""
    is_target: Truths
    """Whether each row must be in a stratum, shape (n,)."""
    caliper: float
    """Largest distance in a stratum, infinite without a limit."""
    threads: int
    """Number of threads; 0 for one on each core."""


def stratum_weights(units: DesignUnits, strata: Indices, focal_arm: int | None) -> Floats:
    """Return the weight of each row by the numbers of rows in its stratum, shape (n,).

    A row weighs the number of rows of its stratum that the estimand is about, divided by the number
    of rows of its own arm in the stratum. The estimand is about the rows of ``focal_arm``, the
    position of an arm, or with ``None`` about all rows. Each stratum has rows of every arm.
    """
    is_in = strata != LEFT_OUT
    count = int(strata.max(initial=LEFT_OUT)) + 1
    places = units.arm[is_in] * count + strata[is_in]
    counts = np.bincount(places, minlength=len(units.arms) * count).reshape(-1, count)
    about = counts.sum(axis=0) if focal_arm is None else counts[focal_arm]
    weights = np.zeros(len(units))
    weights[is_in] = about[strata[is_in]] / counts.reshape(-1)[places]
    return weights


def checked_focal_arm(units: DesignUnits, estimand: str, focal: Any) -> int | None:
    """Return the position of the arm that the estimand is about; ``None`` for ATE."""
    if estimand not in DONOR_ARMS:
        raise UnusableInput(f"there is no estimand {estimand!r}", hint="choose ATT, ATC or ATE")
    if focal is not None:
        if estimand != "ATT":
            raise UnusableInput(
                f"focal={focal!r} cannot be used with {estimand}",
                hint='give estimand="ATT", or leave out focal',
            )
        if focal not in units.arms:
            raise UnusableInput(
                f"focal is {focal!r}, which is not an arm",
                hint=f"choose one of {', '.join(map(repr, units.arms))}",
            )
        return units.arms.index(focal)
    if estimand == "ATE":
        return None
    if units.arms != (0, 1):
        raise UnusableInput(
            f"{estimand} needs a focal arm, because the arms are not 0 and 1",
            hint=f'give estimand="ATT" and focal={units.arms[-1]!r}, or another arm',
        )
    return 1 if estimand == "ATT" else 0


def checked_arm_sizes(units: DesignUnits, arm_sizes: int | Mapping[Any, int]) -> tuple[int, ...]:
    """Return the smallest number of rows of each arm in a stratum, in the order of the arms."""
    if isinstance(arm_sizes, Mapping):
        unknown = [arm for arm in arm_sizes if arm not in units.arms]
        if unknown:
            raise UnusableInput(
                f"arm_sizes names {unknown[0]!r}, which is not an arm",
                hint=f"name arms among {', '.join(map(repr, units.arms))}",
            )
        sizes = [arm_sizes.get(arm, 1) for arm in units.arms]
    else:
        sizes = [arm_sizes] * len(units.arms)
    rows_of_arms = np.bincount(units.arm).tolist()
    for arm, size, rows in zip(units.arms, sizes, rows_of_arms, strict=True):
        check_whole_number(f"arm_sizes of {arm!r}", size, 1)
        if size is None:
            raise UnusableInput(
                f"arm_sizes of {arm!r} is None", hint="give a whole number of rows from 1"
            )
        if size > rows:
            raise UnusableInput(
                f"a stratum needs {size} rows of arm {arm!r}, which has {rows} rows",
                hint="give smaller arm_sizes",
            )
    return tuple(int(size) for size in sizes)


def checked_size(size: int | None, arm_sizes: tuple[int, ...], rows: int) -> int:
    """Return the smallest number of rows in a stratum, by default the sum of the arms' numbers."""
    smallest = sum(arm_sizes)
    if size is None:
        return smallest
    check_whole_number("size", size, 1)
    if size > rows:
        raise UnusableInput(
            f"size is {size}, but there are {rows} rows", hint="give a smaller size"
        )
    return max(int(size), smallest)


def refuse_constant_columns(units: DesignUnits) -> None:
    """Raise `UnusableInput` with the name of a covariate that has one value in all rows."""
    is_constant = np.ptp(units.matrix, axis=0) == 0
    if is_constant.any():
        index = int(np.flatnonzero(is_constant)[0])
        raise UnusableInput(
            f"X, column {units.names[index]!r} is {units.matrix[0, index]:g} in all rows",
            hint=f"leave out column {units.names[index]!r}",
        )
