"""Missing values: refused, left out with their rows, or kept with a covariate that marks them.

``without_missing`` is for any columns, ``complete_log`` for those of a question to a log.
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
MISSING_WORD = "(missing)"
"""Word that stands for a missing word, under the policy ``indicator``."""


class MissingValues(Struct, frozen=True):
    """Numbers of missing values, and the policy that was applied.

    Parameters
    ----------
    policy
        ``refuse``, ``drop`` (rows with a missing value are left out) or ``indicator`` (rows whose
        covariates are missing are kept, with a covariate that marks them).
    columns
        Number of missing values by column, of the columns in use that have any.
    rows_left_out
        Number of rows that take no part because of a missing value.
    """

    policy: Policy
    columns: dict[str, int]
    rows_left_out: int

    def sentence(self) -> str | None:
        """Describe the missing values and their treatment; ``None`` without any."""
        if not self.columns:
            return None
        counts = ", ".join(f"{name} in {count:,}" for name, count in self.columns.items())
        left_out = f"{self.rows_left_out:,} {'row is' if self.rows_left_out == 1 else 'rows are'}"
        if self.policy == "drop":
            return f"Missing values ({counts}): {left_out} left out."
        kept = "a covariate of its own marks missing values"
        if not self.rows_left_out:
            return f"Missing values ({counts}): all rows are kept, and {kept}."
        return (
            f"Missing values ({counts}): {kept}; {left_out} left out, without treatment, outcome "
            "or another column that cannot be filled in."
        )


class CompleteTable(Struct, frozen=True):
    """A table without missing values in the columns in use.

    ``rows`` are the numbers of its rows in the table that was read; ``indicators`` have 1 where a
    covariate of numbers was missing, by the name of a new covariate.
    """

    columns: Columns
    rows: Indices
    indicators: dict[str, Floats]
    missing: MissingValues


def without_missing(
    columns: Mapping[str, NDArray[Any]],
    covariates: Collection[str],
    others: Sequence[str],
    policy: Policy,
) -> CompleteTable:
    """Apply the policy to the columns in use.

    Raise `UnusableInput` if there is no such policy; or it is ``refuse``, naming column and rows;
    or no row is left.

    Parameters
    ----------
    covariates
        Columns whose missing values an indicator can stand for.
    others
        Columns whose rows are left out under either policy where a value is missing.
    """
    if policy not in POLICIES:
        raise UnusableInput(
            f"there is no policy {policy!r} for missing values",
            hint=f"give one of {', '.join(POLICIES)}",
        )
    gaps = {name: missing_in(columns[name]) for name in dict.fromkeys((*covariates, *others))}
    gaps = {name: gap for name, gap in gaps.items() if gap.any()}
    count = len(next(iter(columns.values())))
    if gaps and policy == "refuse":
        name, gap = next(iter(gaps.items()))
        number = int(np.any(list(gaps.values()), axis=0).sum())
        raise UnusableInput(
            f"{name} is missing in {row_numbers(gap)} (from 0)",
            hint=f"{option('missing', 'drop')} leaves out the {number:,} rows with a missing "
            f"value; {option('missing')} "
            "indicator keeps them, with a covariate that marks them",
        )
    fatal = [gap for name, gap in gaps.items() if policy == "drop" or name not in covariates]
    kept = ~np.any(fatal, axis=0) if fatal else np.ones(count, dtype=np.bool_)
    if not kept.any():
        raise UnusableInput(
            f"every row has a missing value: {', '.join(gaps)}",
            hint=f"give fewer columns, or {option('missing', 'indicator')}",
        )
    rows = np.flatnonzero(kept)
    taken = dict(columns) if kept.all() else take_rows(columns, rows)
    for name in gaps:
        # Truths with a gap came as objects; to a formula they would be words.
        if all(isinstance(value, bool) for value in taken[name].tolist()):
            taken[name] = taken[name].astype(np.bool_)
    indicators: dict[str, Floats] = {}
    for name in covariates:
        if name not in gaps or not (gap := gaps[name][rows]).any():
            continue
        taken[name] = _filled(taken[name], gap, name)
        if not holds_text(taken[name]):
            indicators[f"{name} is missing"] = gap.astype(np.float64)
    report = MissingValues(
        policy, {name: int(gap.sum()) for name, gap in gaps.items()}, int((~kept).sum())
    )
    return CompleteTable(taken, rows, indicators, report)


def _filled(column: NDArray[Any], gap: NDArray[np.bool_], name: str) -> NDArray[Any]:
    """Fill the gaps: words by a word of their own, numbers by the mean of the others."""
    if holds_text(column):
        filled = column.astype(object)
        filled[gap] = MISSING_WORD
        return filled
    if gap.all():
        raise UnusableInput(f"{name} is missing in every row", hint=f"leave {name} out")
    try:
        numbers = column[~gap].astype(np.float64)
    except (TypeError, ValueError) as error:
        raise UnusableInput(
            f"{name} holds {column.dtype}, whose missing values no number can replace",
            hint="make numbers of it first, such as days since a date, or give "
            f"{option('missing', 'drop')}",
        ) from error
    filled = np.empty(len(column))
    filled[~gap], filled[gap] = numbers, numbers.mean()
    return filled


class CompleteLog(Struct, frozen=True):
    """A log without missing values in the columns in use, and the question to put to it.

    ``left_out`` has the number of rows that are left out, by reason; the question has the
    covariates that mark missing values.
    """

    columns: Log
    question: Question
    left_out: dict[str, int]
    warnings: tuple[AnalysisWarning, ...] = ()


def complete_log(log: Log, question: Question, policy: Policy | None) -> CompleteLog:
    """Apply the policy on missing values to the columns in use.

    Covariates that nobody named are chosen first, so that the policy applies to them. Without a
    policy, columns with a missing value are not covariates unless they are named, and a warning
    names them.

    Raise `UnusableInput` if the policy is ``refuse`` and a chosen covariate has a missing value, or
    infinite values leave no column to match on.
    """
    check_question(log, question)
    is_chosen = question.covariates is None
    usable = usable_covariates(log, question) if is_chosen else ()
    infinite = infinite_covariates(log, question) if is_chosen else {}
    warnings: tuple[AnalysisWarning, ...] = ()
    if infinite:
        warnings = (_unmatched("covariates-infinite", infinite, "infinite", FINITE_HINT),)
    if infinite and not usable and not question.exact:
        raise UnusableInput(
            f"the columns to match on have infinite values: {_counted(infinite, 'infinite')}",
            hint=FINITE_HINT,
        )
    gaps = {name: int(gap.sum()) for name in usable if (gap := missing_in(log[name])).any()}
    if policy is None and len(gaps) == len(usable) and not question.exact:
        # Nothing would be left to match on.
        policy = "refuse"
    if policy is None:
        if gaps:
            of_gaps = _unmatched("covariates-left-out", gaps, "missing", _match_on_gaps())
            warnings = (of_gaps, *warnings)
        return CompleteLog(log, question, {}, warnings)
    if policy == "refuse" and not gaps:
        # The question's own checks name the option.
        return CompleteLog(log, question, {}, warnings)
    if question.covariates is None:
        question = replace(question, covariates=usable)
    named = tuple(name for name in question.matched_on if name not in question.exact)
    complete = without_missing({**log}, named, question.other_columns, policy)
    columns = {**complete.columns, **complete.indicators}
    if complete.indicators:
        question = replace(question, covariates=(*question.matched_on, *complete.indicators))
    count = complete.missing.rows_left_out
    reason = f"a missing value ({', '.join(complete.missing.columns)})"
    return CompleteLog(columns, question, {reason: count} if count else {}, warnings)


def _unmatched(kind: str, columns: Mapping[str, int], what: str, hint: str) -> AnalysisWarning:
    """Warn that columns are not matched on; each has a number of missing or infinite values."""
    return AnalysisWarning(
        kind,
        f"columns with {what} values are not matched on, though they may explain the difference: "
        f"{_counted(columns, what)}",
        hint,
    )


def _counted(columns: Mapping[str, int], what: str) -> str:
    return ", ".join(f"{name} ({count:,} {what})" for name, count in columns.items())


def _match_on_gaps() -> str:
    """Return the hint on matching on columns with gaps."""
    return (
        f"to match on them, give {option('missing', 'indicator')}, which keeps the rows, or "
        f"{option('missing', 'drop')}; or name the covariates with {option('covariates')}"
    )
