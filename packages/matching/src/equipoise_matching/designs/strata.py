"""Strata: number the rows by their codes, keep the strata with every arm, and weight their rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from equipoise_matching.designs.design import LEFT_OUT
from equipoise_matching.designs.units import DesignUnits
from equipoise_matching.matching.options import Estimand
from equipoise_matching.matching.units import Floats, Indices
from equipoise_matching.shared.errors import UnusableInput

ESTIMANDS = ("ATT", "ATC", "ATE")
MAX_CODE = 2**62
"""Bound of a combined code; the codes are renumbered before a product reaches it."""
MAX_COUNTED_CODES_PER_ROW = 4
"""Codes are renumbered by counting if their range is at most this number of times the rows."""


def number_strata(columns: Sequence[Indices]) -> tuple[Indices, int]:
    """Return the stratum of each row, from 0, and the number of strata.

    Rows with equal codes in all columns are a stratum. Strata are in the order of their codes, the
    first column first. ``columns`` has shapes (n,), codes of 0 or more. The time is that of one
    sort of the rows, at most, and no product of code ranges overflows.
    """
    return renumber(*combine_codes(columns))


def combine_codes(columns: Sequence[Indices]) -> tuple[Indices, int]:
    """Return one code for each row, equal for rows with equal codes, and a bound above all codes.

    No product of code ranges overflows.
    """
    combined, count = np.zeros(len(columns[0]), dtype=np.int64), 1
    for column in columns:
        codes, size = column, int(column.max()) + 1
        if size > len(column):
            codes, size = renumber(column, size)
        if count * size > MAX_CODE:
            combined, count = renumber(combined, count)
        combined = combined * size + codes
        count *= size
    return combined, count


def renumber(codes: Indices, size: int) -> tuple[Indices, int]:
    """Return codes below ``size`` as numbers from 0 in the same order, and how many occur."""
    if size <= MAX_COUNTED_CODES_PER_ROW * len(codes):
        occurs = np.bincount(codes, minlength=size) > 0
        numbers = np.cumsum(occurs) - 1
        return np.asarray(numbers[codes], dtype=np.int64), int(occurs.sum())
    distinct, numbers = np.unique(codes, return_inverse=True)
    return numbers.reshape(-1), len(distinct)


def arm_counts(strata: Indices, units: DesignUnits) -> Indices:
    """Return the number of rows of each arm in each stratum, shape (strata, arms).

    Rows with ``LEFT_OUT`` are not counted.
    """
    arms, count = len(units.arms), int(strata.max(initial=LEFT_OUT)) + 1
    # The stratum LEFT_OUT, which is -1, gets the first cells.
    cells = (strata + 1) * arms + units.arm
    counts = np.bincount(cells, minlength=(count + 1) * arms)[arms:]
    return counts.reshape(count, arms).astype(np.int64)


def keep_complete_strata(strata: Indices, units: DesignUnits) -> Indices:
    """Return the strata that have rows of every arm, numbered from 0; others are ``LEFT_OUT``."""
    is_complete = (arm_counts(strata, units) > 0).all(axis=1)
    numbers = np.where(is_complete, np.cumsum(is_complete) - 1, LEFT_OUT)
    return np.asarray(numbers[strata], dtype=np.int64)


def stratum_weights(strata: Indices, units: DesignUnits, focal: int | None) -> Floats:
    """Return the weight of each row, shape (n,); 0 for rows without a stratum.

    A row of arm a in stratum s weighs n_s / n_as, where n_as counts the rows of the arm in the
    stratum. n_s counts the rows of all arms for the ATE, else those of the focal arm. So each arm
    has the distribution over the strata of the rows that the estimand is about. These are the
    weights of marginal mean weighting through stratification (Hong 2010, JEBS 35(5)).
    """
    counts = arm_counts(strata, units)
    totals = counts.sum(axis=1) if focal is None else counts[:, focal]
    cell_weights = (totals[:, np.newaxis] / counts).ravel()
    # LEFT_OUT is -1, so its cells are those of the last stratum until they are set to 0.
    weights = cell_weights[strata * len(units.arms) + units.arm]
    weights[strata == LEFT_OUT] = 0.0
    return np.asarray(weights)


def focal_arm(units: DesignUnits, estimand: Estimand, focal: Any = None) -> int | None:
    """Return the position of the arm that the estimand is about; ``None`` for the ATE.

    Of the arms 0 and 1, this is 1 for the ATT and 0 for the ATC. Other arms need ``focal``, the
    label of the arm on which the effect is wanted, with the ATT.

    Raise `UnusableInput` for an unknown estimand, or a focal arm that is missing, unknown or
    without use.
    """
    check_estimand(estimand)
    if focal is not None:
        if estimand != "ATT":
            raise UnusableInput(
                f"focal={focal!r} cannot be used with the {estimand}",
                hint="leave out focal, or give estimand='ATT'",
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
            f"the {estimand} needs the arm that the effect is about",
            hint=f"give estimand='ATE', or estimand='ATT' and focal={units.arms[-1]!r}",
        )
    return 1 if estimand == "ATT" else 0


def check_estimand(estimand: str) -> None:
    """Raise `UnusableInput` for an unknown estimand."""
    if estimand not in ESTIMANDS:
        raise UnusableInput(f"there is no estimand {estimand!r}", hint="choose ATT, ATC or ATE")
