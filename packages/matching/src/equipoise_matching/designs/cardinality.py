"""Cardinality and profile matching: the largest samples with balanced means.

Zubizarreta, Paredes and Rosenbaum 2014 (Annals of Applied Statistics 8(1)); Cohn and Zubizarreta
2022 (Epidemiology 33(5)). Formulae: docs/methods/cardinality-matching.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from equipoise_matching.designs.design import Design
from equipoise_matching.designs.largest_sample import LargestSample, SampleProblem, largest_sample
from equipoise_matching.designs.units import DesignUnits, design_units
from equipoise_matching.matching.options import check_whole_number, per_column
from equipoise_matching.matching.units import Floats, Truths, power_of_two
from equipoise_matching.shared.errors import UnusableInput
from equipoise_matching.shared.numbers import listed

DEFAULT_TOLERANCE = 0.05
"""Largest difference of means, in standard deviations."""
DEFAULT_TIME_LIMIT_S = 60.0
NO_SPREAD = float(np.finfo(np.float64).tiny)
"""Standard deviation for a column that is constant in each arm: every difference is large."""


def cardinality_match(
    treat: Any,
    X: Any,
    *,
    tolerances: ArrayLike | Mapping[str, float] = DEFAULT_TOLERANCE,
    ratio: int = 1,
    time_limit: float = DEFAULT_TIME_LIMIT_S,
    gap: float = 0.0,
) -> Design:
    """Keep the largest sample whose arms have nearly equal means (Zubizarreta et al. 2014).

    The difference of the arms' means is at most the tolerance in each covariate, and there are
    ``ratio`` controls for each treated row. All rows of the sample weigh 1. The rows are not
    paired, and the effect is that on the treated rows of the sample, not on all treated rows.

    The details have the size of the sample, and how it was proven that no sample is larger. A
    warning there says by how much the sample may be too small if the time did not suffice. Several
    samples may have the same size.

    Raise `UnusableInput` for missing or infinite values, or if no sample keeps the tolerances, or
    none was found in the time.

    Examples
    --------
    >>> from equipoise_matching import cardinality_match
    >>> trained = [1, 1, 1, 1, 0, 0, 0, 0, 0]
    >>> age = [25, 31, 38, 46, 20, 21, 33, 36, 58]
    >>> design = cardinality_match(trained, {"age": age}, tolerances=0.1)
    >>> design.weights.tolist()
    [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0, 1.0, 1.0]
    >>> design.details["Proof"]
    'the bound of the linear relaxation'

    Parameters
    ----------
    treat
        Shape (n,), 1 for treated rows and 0 for controls.
    X
        Covariates whose means are balanced: a frame, or an array (n, k). Balance indicators of
        categories, squares or products to balance more than means.
    tolerances
        Largest difference of means, in standard deviations: one number, k numbers, or a mapping of
        columns to numbers, in which other columns have 0.05. Infinity leaves a column out. The
        standard deviation is the root of the mean of both arms' variances in all rows.
    ratio
        Number of controls for each treated row.
    time_limit
        Seconds after which the search ends with the best sample so far.
    gap
        The search ends if the sample is within this share of the upper bound; 0 for a proof.
    """
    units = design_units(treat, X)
    check_whole_number("ratio", ratio, 1)
    check_search_options(time_limit, gap)
    limits = checked_tolerances(tolerances, units.names)
    spreads = pooled_spreads(units)
    is_constant = units.matrix.max(axis=0) == units.matrix.min(axis=0)
    is_separated = (spreads == 0) & ~is_constant & np.isfinite(limits)
    if is_separated.any():
        name = units.names[int(np.flatnonzero(is_separated)[0])]
        raise UnusableInput(
            f"{name} has one value in all treated rows and another in all controls",
            hint=f"leave {name} out: the arms cannot be balanced on it",
        )
    columns = (spreads > 0) & np.isfinite(limits)
    standardized = units.matrix[:, columns] / spreads[columns]
    standardized = standardized - standardized.mean(axis=0)
    ratio = int(ratio)
    signs = np.where(units.treated, 1.0, -1.0 / ratio)
    problem = SampleProblem(
        standardized * signs[:, np.newaxis], limits[columns], units.treated, ratio
    )
    sample = largest_sample(problem, time_limit, gap)
    if sample is None:
        raise UnusableInput(
            f"no sample of {ratio} {'control' if ratio == 1 else 'controls'} for each treated row "
            "keeps the tolerances",
            hint="give larger tolerances, or fewer columns",
        )
    sample = require_found(sample, time_limit)
    details: dict[str, Any] = {
        "Treated rows in the sample": sample.size,
        "Upper bound": sample.bound,
        "Proof": sample.proof if sample.is_largest else "none",
        "Largest difference of means": _largest_difference(units, sample.chosen, spreads, limits),
    }
    if not sample.is_largest:
        details["Warning"] = size_warning(sample)
    return Design(
        "cardinality_match", "ATT", units, sample.chosen.astype(np.float64), details=details
    )


def profile_match(
    treat: Any,
    X: Any,
    target: Mapping[str, float] | ArrayLike,
    *,
    tolerances: ArrayLike | Mapping[str, float] = DEFAULT_TOLERANCE,
    time_limit: float = DEFAULT_TIME_LIMIT_S,
    gap: float = 0.0,
) -> Design:
    """Keep the largest sample of each arm whose means are near a target profile.

    Profile matching (Cohn and Zubizarreta 2022) describes the population of interest by the means
    of its covariates. Each arm is searched alone, and there may be several arms. All rows of the
    samples weigh 1. The effect is that in the target population.

    The details have for each arm the size of its sample and how it was proven that none is larger,
    as in ``cardinality_match``.

    Raise `UnusableInput` for missing or infinite values, unknown columns, or if an arm has no
    sample within the tolerances, or none was found in the time.

    Examples
    --------
    >>> from equipoise_matching import profile_match
    >>> trained = [1, 1, 1, 1, 0, 0, 0, 0, 0]
    >>> age = [25, 31, 38, 46, 20, 21, 33, 36, 58]
    >>> design = profile_match(trained, {"age": age}, {"age": 35}, tolerances=0.1)
    >>> design.weights.tolist()
    [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0, 1.0, 1.0]

    Parameters
    ----------
    treat
        Shape (n,), 1 for treated rows and 0 for controls, or the labels of several arms.
    X
        Covariates: a frame, or an array (n, k).
    target
        Mean of each column in the population of interest: k numbers, or a mapping of columns to
        numbers. Columns that the mapping does not name are left out.
    tolerances
        Largest difference between an arm's mean and the target, in standard deviations, as in
        ``cardinality_match``.
    time_limit
        Seconds for each arm, after which its search ends with the best sample so far.
    gap
        The search ends if the sample is within this share of the upper bound; 0 for a proof.
    """
    units = design_units(treat, X, several_arms=True)
    check_search_options(time_limit, gap)
    means = checked_target(target, units.names)
    limits = np.where(np.isnan(means), np.inf, checked_tolerances(tolerances, units.names))
    spreads = pooled_spreads(units)
    columns = np.isfinite(limits)
    scales = np.where(spreads > 0, spreads, NO_SPREAD)
    chosen = np.zeros(len(units), dtype=np.bool_)
    details: dict[str, Any] = {}
    warnings = []
    for arm, name in enumerate(units.arm_names):
        rows = np.flatnonzero(units.arm == arm)
        deviations = units.matrix[np.ix_(rows, columns)] - means[columns]
        with np.errstate(over="ignore"):
            distances = deviations / scales[columns]
        _refuse_far_target(units, distances, limits[columns], columns, name)
        is_variable = spreads[columns] > 0
        standardized = deviations[:, is_variable] / spreads[columns][is_variable]
        problem = SampleProblem(
            standardized, limits[columns][is_variable], np.ones(len(rows), dtype=np.bool_), 0
        )
        sample = largest_sample(problem, time_limit, gap)
        if sample is None:
            raise UnusableInput(
                f"no rows of the arm {name} have means within the tolerances of the target",
                hint="give larger tolerances, fewer columns, or a target nearer to this arm",
            )
        sample = require_found(sample, time_limit)
        chosen[rows] = sample.chosen
        details[f"{name} in the sample"] = sample.size
        details[f"{name}, upper bound"] = sample.bound
        details[f"{name}, proof"] = sample.proof if sample.is_largest else "none"
        if not sample.is_largest:
            warnings.append(f"{name}: {size_warning(sample)}")
    if warnings:
        details["Warning"] = "; ".join(warnings)
    return Design("profile_match", "ATE", units, chosen.astype(np.float64), details=details)


def check_search_options(time_limit: float, gap: float) -> None:
    """Raise `UnusableInput` unless the time is positive and the gap is 0 or more."""
    numbers = (int, float, np.number)
    if not isinstance(time_limit, numbers) or not 0 < time_limit < math.inf:
        raise UnusableInput(f"time_limit is {time_limit!r}", hint="give a number of seconds")
    if not isinstance(gap, numbers) or not 0 <= gap < 1:
        raise UnusableInput(f"gap is {gap!r}", hint="give a share from 0, such as 0.01")


def checked_tolerances(tolerances: Any, names: Sequence[str]) -> Floats:
    """Return the tolerance of each column in standard deviations, shape (k,)."""
    if isinstance(tolerances, Mapping):
        refuse_unknown_columns(tolerances, "tolerances", names)
        tolerances = [tolerances.get(name, DEFAULT_TOLERANCE) for name in names]
    try:
        limits = np.array(per_column(tolerances, "tolerances", names), dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise UnusableInput(
            f"tolerances is {tolerances!r}", hint="give one number, or one per column"
        ) from error
    for name, limit in zip(names, limits, strict=True):
        if not limit >= 0:
            raise UnusableInput(
                f"the tolerance of {name} is {limit:g}", hint="give 0 or more standard deviations"
            )
    return limits


def checked_target(target: Any, names: Sequence[str]) -> Floats:
    """Return the target of each column, shape (k,); NaN for columns without one."""
    if isinstance(target, Mapping):
        refuse_unknown_columns(target, "target", names)
        if not target:
            raise UnusableInput("target names no column", hint="give the mean of a column")
        values, is_given = [target.get(name) for name in names], [name in target for name in names]
    else:
        values = np.asarray(target).tolist() if np.ndim(target) else [target]
        is_given = [True] * len(names)
    if len(values) != len(names):
        raise UnusableInput(
            f"target has {len(values)} values and X has {len(names)} columns",
            hint=f"give one mean for each column: {listed(list(names))}",
        )
    means = np.full(len(names), np.nan)
    for index, (value, given) in enumerate(zip(values, is_given, strict=True)):
        if not given:
            continue
        if not isinstance(value, int | float | np.number) or not math.isfinite(value):
            raise UnusableInput(
                f"the target of {names[index]} is {value!r}", hint="give a finite number"
            )
        means[index] = value
    return means


def refuse_unknown_columns(mapping: Mapping[Any, Any], option: str, names: Sequence[str]) -> None:
    """Raise `UnusableInput` if a mapping names a column that X lacks."""
    for name in mapping:
        if name not in names:
            raise UnusableInput(
                f"{option} names {name!r}, which is not a column of X",
                hint=f"name one of the columns {listed(list(names))}",
            )


def pooled_spreads(units: DesignUnits) -> Floats:
    """Return the root of the mean of the arms' variances of each column, shape (k,).

    An arm of one row has no variance and does not count; 0 for a column without variance.
    """
    scales = np.array([power_of_two(column) for column in units.matrix.T])
    scaled = units.matrix / scales
    arms = [scaled[units.arm == arm] for arm in range(len(units.arms))]
    # Rounding gives constant columns a tiny variance, so they are found by their range.
    variances = [
        np.where(np.ptp(values, axis=0) > 0, values.var(axis=0, ddof=1), 0.0)
        for values in arms
        if len(values) > 1
    ]
    if not variances:
        return np.zeros(len(scales))
    return np.asarray(np.sqrt(np.mean(variances, axis=0)) * scales)


def require_found(sample: LargestSample, time_limit: float) -> LargestSample:
    """Return the sample; raise `UnusableInput` if the time was too short to find one."""
    if sample.size:
        return sample
    raise UnusableInput(
        f"no sample was found within {time_limit:g} s",
        hint="give a longer time_limit, or larger tolerances",
    )


def size_warning(sample: LargestSample) -> str:
    """Return the sentence about a sample that may not be the largest."""
    share = (sample.bound - sample.size) / sample.bound
    return (
        f"a larger sample may exist: {sample.size} of at most {sample.bound} were found, a gap of "
        f"{share:.2%}"
    )


def _largest_difference(units: DesignUnits, chosen: Truths, spreads: Floats, limits: Floats) -> str:
    """Return the largest difference of means in the sample, with its column."""
    columns = np.flatnonzero((spreads > 0) & np.isfinite(limits))
    if not len(columns):
        return "0 standard deviations"
    differences = [
        abs(
            float(
                np.mean(values[chosen & units.treated]) - np.mean(values[chosen & ~units.treated])
            )
        )
        for values in (units.matrix[:, column] / spreads[column] for column in columns)
    ]
    worst = int(np.argmax(differences))
    return f"{differences[worst]:.4f} standard deviations ({units.names[columns[worst]]})"


def _refuse_far_target(
    units: DesignUnits, deviations: Floats, limits: Floats, columns: Truths, arm: str
) -> None:
    """Raise `UnusableInput` if all rows of an arm are on one side of the target, too far away."""
    is_far = (deviations.min(axis=0) > limits) | (deviations.max(axis=0) < -limits)
    if is_far.any():
        name = np.array(units.names)[columns][is_far][0]
        raise UnusableInput(
            f"all rows of the arm {arm} are beyond the target of {name}",
            hint=f"give a target that this arm reaches, or leave {name} out",
        )
