"""The sample: the rows of a log that take part, with their version and their outcome.

The rows of other versions and of the placebo period take no part. ``treated`` marks the rows of the
candidate. All outcomes must have one unit of measurement.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from equipoise_matching.matching.frames import distinct_texts, numbers_of, take_rows
from equipoise_matching.matching.units import Floats, Truths, row_numbers
from equipoise_matching.observation.clusters import Clusters, choose_clusters
from equipoise_matching.observation.covariates import (
    Covariates,
    default_covariates,
    read_covariates,
)
from equipoise_matching.observation.question import (
    Log,
    Question,
    check_question,
    column_of,
    row_count,
)
from equipoise_matching.shared.errors import UnusableInput
from equipoise_matching.shared.numbers import listed
from equipoise_matching.shared.spelling import option

UNIT_COLUMNS = ("unit", "units", "time_unit", "unit_of_time")
"""Names of columns in which other tools write the unit of a row."""
_NUMBER_WITH_UNIT = re.compile(r"^\s*[-+0-9.eE]+\s*([a-zA-Zµμ]+)\s*$")
"""A cell with a number and its unit, such as ``3 ms``."""
BASELINE_NAMES = frozenset(
    {"no", "n", "false", "f", "off", "old", "before", "control", "baseline", "main", "master"}
)
"""Treatment values that are known names of a baseline."""
_VERSION_NUMBER = re.compile(r"[vV]?\d+([.]\d+)*")
"""A version number, such as ``v1.10``."""
_MIN_GAP_FACTOR = 30.0
"""Smallest factor between neighbouring values that is a sign of two units."""
_MIN_UNIT_SHARE = 0.01
"""Smallest share of the values that must have each of the two units."""
_UNIT_STEPS = (1e3, 1e6, 1e9)
"""Factors between two units of one quantity, such as s and ms."""
_UNIT_STEP_TOLERANCE = 3.0
"""Largest factor between the ratio of two medians and the nearest of `_UNIT_STEPS`."""

T = TypeVar("T")
U = TypeVar("U")


class Scales(Struct, Generic[T], frozen=True):
    """One quantity on two scales: ln(outcome) for ratios, and the outcome itself for differences.

    ``log_scale`` is ``None`` if no ratio is estimated.
    """

    log_scale: T | None
    raw_scale: T

    @property
    def answer_scale(self) -> T:
        """The quantity for ln(outcome), or for the outcome if no ratio is estimated."""
        return self.raw_scale if self.log_scale is None else self.log_scale

    def map(self, function: Callable[[T], U]) -> Scales[U]:
        """Apply a function to the quantity on each scale."""
        log_scale = None if self.log_scale is None else function(self.log_scale)
        return Scales(log_scale, function(self.raw_scale))

    @staticmethod
    def combine(parts: Sequence[Scales[T]], function: Callable[[list[T]], U]) -> Scales[U]:
        """Combine several quantities into one on each scale."""
        log_parts = [part.log_scale for part in parts if part.log_scale is not None]
        raw_parts = [part.raw_scale for part in parts]
        return Scales(function(log_parts) if log_parts else None, function(raw_parts))


class Versions(Struct, frozen=True):
    """The two versions that are compared."""

    candidate: str
    baseline: str


class Arms(Versions, frozen=True):
    """The two versions, and for each row (rows,) whether it ran the candidate or the baseline."""

    is_candidate: Truths
    is_baseline: Truths


class Sample(Struct, frozen=True):
    """The rows that take part, and the rows of the placebo period, if there is one.

    The ``question`` names the covariates, and ``log`` has only the rows that take part. ``treated``
    and each outcome have shape (rows,). ``left_out`` counts the rows that take no part, by reason.
    ``rows_read`` counts all rows.
    """

    log: Log
    question: Question
    arms: Arms
    treated: Truths
    outcomes: Scales[Floats]
    covariates: Covariates
    clusters: Clusters | None
    placebo_log: Log | None
    placebo_treated: Truths | None
    left_out: dict[str, int]
    rows_read: int


def read_sample(log: Log, question: Question, left_out: dict[str, int]) -> Sample:
    """Check the question, and read its columns.

    ``left_out`` counts by reason the rows that were left out when the log was read.
    """
    check_question(log, question)
    rows_read = row_count(log) + sum(left_out.values())
    if question.covariates is None:
        question = replace(question, covariates=default_covariates(log, question))
    arms = read_arms(log, question)
    is_compared = arms.is_candidate | arms.is_baseline
    if not is_compared.all():
        left_out = {**left_out, "another version": int(np.count_nonzero(~is_compared))}
    placebo_log, placebo_treated, taking_part = None, None, is_compared
    period = "=".join(question.placebo_period or ())
    if question.placebo_period is not None:
        is_placebo = _is_in_period(log, *question.placebo_period) & is_compared
        placebo_log, placebo_treated = take_rows(log, is_placebo), arms.is_candidate[is_placebo]
        left_out = {**left_out, f"the placebo period {period}": int(np.count_nonzero(is_placebo))}
        taking_part = is_compared & ~is_placebo
    compared_log = log if taking_part.all() else take_rows(log, taking_part)
    treated = arms.is_candidate[taking_part]
    if treated.all() or not treated.any():
        absent = arms.baseline if treated.any() else arms.candidate
        raise UnusableInput(
            f"all rows of {question.treatment}={absent} are in the placebo period {period}, so no "
            "such row is left to compare",
            hint=f"name another period: {option('placebo_period', 'COLUMN=VALUE')}",
        )
    return Sample(
        log=compared_log,
        question=question,
        arms=arms,
        treated=treated,
        outcomes=read_outcomes(compared_log, question),
        covariates=read_covariates(compared_log, question),
        clusters=choose_clusters(compared_log, question, treated),
        placebo_log=placebo_log,
        placebo_treated=placebo_treated,
        left_out=left_out,
        rows_read=rows_read,
    )


def read_arms(log: Log, question: Question) -> Arms:
    """Read which rows ran the candidate, and which rows ran the baseline."""
    name = question.treatment
    values, code = distinct_texts(column_of(log, name, "treatment"), name)
    if question.values is None:
        arms = _default_arms(name, values)
    else:
        arms = _split_values(question.values, values, f"{name} has {listed(values)}")
    if len(values) > 2 and not question.leave_others_out:
        raise UnusableInput(
            f"{name} has {len(values)} values: {listed(values)}; the question names only two",
            hint=f"add {option('leave_others_out', True)} to leave out the rows with other values",
        )
    return Arms(*arms, *(np.asarray(code == values.index(arm)) for arm in arms))


def read_outcomes(log: Log, question: Question) -> Scales[Floats]:
    """Read the outcome of every row, and its logarithm if the question asks for a ratio."""
    name = question.outcome
    column = column_of(log, name, "outcome")
    if column.dtype.kind not in "biuf":
        matches = (_NUMBER_WITH_UNIT.match(str(value or "")) for value in column.tolist())
        units = sorted({match[1] for match in matches if match})
        if units:
            problem = "mixed units" if len(units) > 1 else "a unit in each cell"
            raise UnusableInput(
                f"{name} has {problem}: {', '.join(units)}",
                hint="write plain numbers in one unit, such as seconds",
            )
    values = numbers_of(column, name)
    if not question.one_unit:
        _refuse_mixed_units(log, name, values)
    has_no_log = values <= 0.0
    if question.ratio and has_no_log.any():
        raise UnusableInput(
            f"{name} is 0 or less in {row_numbers(has_no_log)}: a ratio needs values above 0",
            hint=f"leave out rows without a measurement, or add {option('ratio', False)}",
        )
    return Scales(np.log(values) if question.ratio else None, values)


def _refuse_mixed_units(log: Log, name: str, values: Floats) -> None:
    hint = f"convert {name} to one unit; if it already has one unit, add {option('one_unit', True)}"
    for column in (*UNIT_COLUMNS, f"{name}_unit"):
        if column in log:
            units, _ = distinct_texts(log[column], column)
            if len(units) > 1:
                raise UnusableInput(
                    f"{name} is in mixed units: column {column} has {listed(units)}", hint=hint
                )
    two_units = _split_at_unit_step(values)
    if two_units is not None:
        factor, lower, higher = two_units
        raise UnusableInput(
            f"{name} seems to be in mixed units: {np.size(lower)} values around "
            f"{np.median(lower):.3g} and {np.size(higher)} around {np.median(higher):.3g}, a "
            f"factor of about {factor:,.0f}, with none between",
            hint=hint,
        )


def _split_at_unit_step(values: Floats) -> tuple[float, Floats, Floats] | None:
    """Return the factor between two units, and the values in each; ``None`` for one unit."""
    positive = np.sort(values[values > 0.0])
    if len(positive) < 2:
        return None
    ratios = positive[1:] / positive[:-1]
    gap_index = int(np.argmax(ratios)) + 1
    lower, higher = positive[:gap_index], positive[gap_index:]
    min_count = max(2, _MIN_UNIT_SHARE * len(positive))
    if ratios[gap_index - 1] < _MIN_GAP_FACTOR or min(len(lower), len(higher)) < min_count:
        return None
    factor = float(np.median(higher) / np.median(lower))
    for step in _UNIT_STEPS:
        if step / _UNIT_STEP_TOLERANCE < factor < step * _UNIT_STEP_TOLERANCE:
            return step, lower, higher
    return None


def _default_arms(name: str, values: list[str]) -> tuple[str, str]:
    """Return candidate and baseline by version numbers, or else by a known name of a baseline."""
    if len(values) != 2:
        raise UnusableInput(
            f"{name} has {listed(values)}: the question does not name the two values to compare",
            hint=f"name two values: {option('treatment', f'{name}=CANDIDATE:BASELINE')}",
        )
    first, second = values
    if all(_VERSION_NUMBER.fullmatch(value) for value in values):
        numbers = [[int(part) for part in re.findall(r"\d+", value)] for value in values]
        if numbers[0] != numbers[1]:
            return (second, first) if numbers[0] < numbers[1] else (first, second)
    is_baseline = [value.strip().lower() in BASELINE_NAMES for value in values]
    if is_baseline[0] == is_baseline[1]:
        raise UnusableInput(
            f"{name} has {first} and {second}: neither is known to be the baseline",
            hint=f"name both: {option('treatment', f'{name}={second}:{first}')} compares {second} "
            f"with {first}",
        )
    return (second, first) if is_baseline[0] else (first, second)


def _split_values(text: str, values: list[str], values_sentence: str) -> tuple[str, str]:
    """Split CANDIDATE:BASELINE into two of the values; each value may contain colons."""
    parts = text.split(":")
    splits = [(":".join(parts[:index]), ":".join(parts[index:])) for index in range(1, len(parts))]
    known_splits = [split for split in splits if split[0] in values and split[1] in values]
    if len(known_splits) == 1 and known_splits[0][0] != known_splits[0][1]:
        return known_splits[0]
    if not splits or not all(splits[0]):
        raise UnusableInput(
            f"{option('treatment')}: '{text}' is not CANDIDATE:BASELINE",
            hint=f"name two values with a colon between them; {values_sentence}",
        )
    if len(known_splits) > 1:
        raise UnusableInput(
            f"{option('treatment')}: '{text}' can be split in several ways",
            hint="rename a value so that it contains no colon",
        )
    if known_splits:
        raise UnusableInput(
            f"{option('treatment')}: '{text}' names one value twice",
            hint=f"name two values; {values_sentence}",
        )
    missing = [part for part in splits[0] if part not in values] if len(splits) == 1 else [text]
    problem = f"{option('treatment')}: no row has {', '.join(missing)}"
    raise UnusableInput(problem, hint=f"name two values; {values_sentence}")


def _is_in_period(log: Log, name: str, value: str) -> Truths:
    values, code = distinct_texts(log[name], name)
    if value not in values:
        raise UnusableInput(
            f"{option('placebo_period')}: no row has {name}={value}",
            hint=f"name a value of {name}: {listed(values)}",
        )
    return np.asarray(code == values.index(value))
