"""Apply the policy on missing values: refuse them, leave out their rows, or mark and fill them.

``without_missing`` takes the columns of a match, and ``complete_log`` the columns of a log, which
``observe`` reads. A gap is a missing value. An indicator is a new covariate that marks gaps.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal, get_args

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from equipoise_matching.matching.frames import holds_text, missing_in, take_rows
from equipoise_matching.matching.units import FINITE_HINT, Floats, Indices, row_numbers
from equipoise_matching.observation.covariates import infinite_covariates, usable_covariates
from equipoise_matching.observation.question import Log, Question, check_question
from equipoise_matching.shared.errors import UnusableInput
from equipoise_matching.shared.spelling import option
from equipoise_matching.tables.csv_file import Columns
from equipoise_matching.warning import AnalysisWarning

Policy = Literal["refuse", "drop", "indicator"]
POLICIES: tuple[Policy, ...] = get_args(Policy)
"""The policies on missing values, which ``MissingValues`` describes."""
MISSING_TEXT = "(missing)"
"""Text in place of a missing text, with the policy ``indicator``."""


class MissingValues(Struct, frozen=True):
    """Numbers of missing values, and the policy that was applied."""

    policy: Policy
    """``refuse``, ``drop`` (leave out rows with gaps) or ``indicator`` (a covariate marks gaps)."""
    columns: dict[str, int]
    """Number of missing values in each column that has some."""
    rows_left_out: int
    """Number of rows that take no part because of a missing value."""

    def sentence(self) -> str | None:
        """Return a sentence about the missing values and the policy; ``None`` without any."""
        if not self.columns:
            return None
        counts = ", ".join(f"{name} in {count:,}" for name, count in self.columns.items())
        left_out = f"{self.rows_left_out:,} {'row is' if self.rows_left_out == 1 else 'rows are'}"
        if self.policy == "drop":
            return f"Missing values ({counts}): {left_out} left out."
        marking = "a separate covariate marks missing values"
        if not self.rows_left_out:
            return f"Missing values ({counts}): all rows are kept, and {marking}."
        return (
            f"Missing values ({counts}): {marking}; {left_out} left out, without treatment, "
            "outcome or another column that cannot be filled in."
        )


class CompleteTable(Struct, frozen=True):
    """A table without missing values in the columns that were checked.

    ``rows`` has the numbers of the kept rows in the table that was read. ``indicators`` has a new
    covariate for each numeric covariate with missing values: 1 if the value is missing, 0 if not.
    """

    columns: Columns
    rows: Indices
    indicators: dict[str, Floats]
    missing: MissingValues


def without_missing(
    columns: Mapping[str, NDArray[Any]],
    covariates: Collection[str],
    required: Sequence[str],
    policy: Policy,
) -> CompleteTable:
    """Apply the policy to the covariates and the required columns.

    An indicator can mark gaps of ``covariates``, but not of ``required`` columns: unless the policy
    is ``refuse``, rows with such a gap are left out.

    Raise `UnusableInput` if the policy is unknown, if it is ``refuse`` and a value is missing (the
    error names the column and the rows), or if no row remains.
    """
    if policy not in POLICIES:
        raise UnusableInput(
            f"there is no policy {policy!r} for missing values",
            hint=f"choose one of {', '.join(POLICIES)}",
        )
    gaps = {name: missing_in(columns[name]) for name in dict.fromkeys((*covariates, *required))}
    gaps = {name: gap for name, gap in gaps.items() if gap.any()}
    row_count = len(next(iter(columns.values())))
    if gaps and policy == "refuse":
        name, gap = next(iter(gaps.items()))
        number = int(np.any(list(gaps.values()), axis=0).sum())
        raise UnusableInput(
            f"{name} is missing in {row_numbers(gap)} (from 0)",
            hint=f"add {option('missing', 'drop')} to leave out the {number:,} rows with a missing "
            f"value, or {option('missing', 'indicator')} to keep them, with a covariate that marks "
            "them",
        )
    dropping_gaps = [
        gap for name, gap in gaps.items() if policy == "drop" or name not in covariates
    ]
    is_kept = (
        ~np.any(dropping_gaps, axis=0) if dropping_gaps else np.ones(row_count, dtype=np.bool_)
    )
    if not is_kept.any():
        raise UnusableInput(
            f"every row has a missing value in one of {', '.join(gaps)}",
            hint=f"name fewer columns, or add {option('missing', 'indicator')}",
        )
    rows = np.flatnonzero(is_kept)
    remaining = dict(columns) if is_kept.all() else take_rows(columns, rows)
    for name in gaps:
        # Truth values with gaps are an array of objects. A formula would read these as texts.
        if all(isinstance(value, bool) for value in remaining[name].tolist()):
            remaining[name] = remaining[name].astype(np.bool_)
    indicators: dict[str, Floats] = {}
    for name in covariates:
        if name not in gaps or not (gap := gaps[name][rows]).any():
            continue
        remaining[name] = _fill_gaps(remaining[name], gap, name)
        if not holds_text(remaining[name]):
            indicators[f"{name} is missing"] = gap.astype(np.float64)
    summary = MissingValues(
        policy, {name: int(gap.sum()) for name, gap in gaps.items()}, int((~is_kept).sum())
    )
    return CompleteTable(remaining, rows, indicators, summary)


def _fill_gaps(column: NDArray[Any], gap: NDArray[np.bool_], name: str) -> NDArray[Any]:
    """Fill the gaps of a column: with ``MISSING_TEXT``, or with the mean of its numbers."""
    if holds_text(column):
        filled = column.astype(object)
        filled[gap] = MISSING_TEXT
        return filled
    if gap.all():
        raise UnusableInput(f"{name} is missing in every row", hint=f"leave {name} out")
    try:
        numbers = column[~gap].astype(np.float64)
    except (TypeError, ValueError) as error:
        raise UnusableInput(
            f"{name}: missing values cannot become the mean of the column, whose type is "
            f"{column.dtype}",
            hint=f"add {option('missing', 'drop')} to leave out the rows with missing values",
        ) from error
    filled = np.empty(len(column))
    filled[~gap], filled[gap] = numbers, numbers.mean()
    return filled


class CompleteLog(Struct, frozen=True):
    """A log without missing values in the columns of the question.

    ``left_out`` has the number of rows that are left out, by reason. The covariates of the question
    include the indicators.
    """

    columns: Log
    question: Question
    left_out: dict[str, int]
    warnings: tuple[AnalysisWarning, ...] = ()


def complete_log(log: Log, question: Question, policy: Policy | None) -> CompleteLog:
    """Apply the policy on missing values to the columns of the question.

    If the question names no covariates, all usable columns are covariates. Without a policy, usable
    columns with missing values are left out, and a warning names them.

    Raise `UnusableInput` if the policy is ``refuse`` and a chosen covariate has a missing value, or
    if every usable column has infinite values.
    """
    check_question(log, question)
    is_automatic = question.covariates is None
    usable = usable_covariates(log, question) if is_automatic else ()
    infinite_counts = infinite_covariates(log, question) if is_automatic else {}
    warnings: tuple[AnalysisWarning, ...] = ()
    if infinite_counts:
        warnings = (_not_matched("covariates-infinite", infinite_counts, "infinite", FINITE_HINT),)
    if infinite_counts and not usable and not question.exact:
        raise UnusableInput(
            f"the columns to match on have infinite values: {_counts(infinite_counts, 'infinite')}",
            hint=FINITE_HINT,
        )
    gap_counts = {name: int(gap.sum()) for name in usable if (gap := missing_in(log[name])).any()}
    if policy is None and len(gap_counts) == len(usable) and not question.exact:
        # No column would remain to match on.
        policy = "refuse"
    if policy is None:
        if gap_counts:
            warning = _not_matched("covariates-left-out", gap_counts, "missing", _gaps_hint())
            warnings = (warning, *warnings)
        return CompleteLog(log, question, {}, warnings)
    if policy == "refuse" and not gap_counts:
        # Reading the sample refuses other missing values, and names the option.
        return CompleteLog(log, question, {}, warnings)
    if question.covariates is None:
        question = replace(question, covariates=usable)
    covariates = tuple(name for name in question.matched_on if name not in question.exact)
    complete = without_missing({**log}, covariates, question.other_columns, policy)
    columns = {**complete.columns, **complete.indicators}
    if complete.indicators:
        question = replace(question, covariates=(*question.matched_on, *complete.indicators))
    left_out = complete.missing.rows_left_out
    reason = f"a missing value ({', '.join(complete.missing.columns)})"
    return CompleteLog(columns, question, {reason: left_out} if left_out else {}, warnings)


def _not_matched(code: str, counts: Mapping[str, int], problem: str, hint: str) -> AnalysisWarning:
    """Return the warning that columns are not covariates, with their numbers of bad values."""
    return AnalysisWarning(
        code,
        f"columns with {problem} values are not matched on, but may explain the difference: "
        f"{_counts(counts, problem)}",
        hint,
    )


def _counts(counts: Mapping[str, int], problem: str) -> str:
    return ", ".join(f"{name} ({count:,} {problem})" for name, count in counts.items())


def _gaps_hint() -> str:
    return (
        f"to match on these columns too, add {option('missing', 'indicator')} to keep all rows, or "
        f"{option('missing', 'drop')} to leave out rows; to match on other columns, name them with "
        f"{option('covariates')}"
    )
