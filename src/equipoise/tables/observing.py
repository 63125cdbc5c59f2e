"""A log whose columns are a table: what is done about its missing values before ``observe``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from equipoise.matching.frames import missing_in
from equipoise.matching.units import FINITE_HINT
from equipoise.model.errors import UnusableInput
from equipoise.model.record import CampaignWarning
from equipoise.observation.covariates import infinite_covariates, usable_covariates
from equipoise.observation.question import Log, Question, check_question
from equipoise.tables.missing import Policy, without_missing

_MATCH_ON_GAPS = (
    "to match on them, give --missing indicator, which keeps the rows, or --missing drop; or name "
    "the covariates with --covariates"
)
Names = str | Sequence[str]
"""Names of columns; a single one may be given as it is."""


class CompleteLog(Struct, frozen=True):
    """A log without missing values in the columns in use, and the question to put to it.

    ``left_out`` has the number of rows that are left out, by reason; the question has the
    covariates that say where a value was missing.
    """

    columns: Log
    question: Question
    left_out: dict[str, int]
    warnings: tuple[CampaignWarning, ...] = ()


def complete_log(log: Log, question: Question, policy: Policy | None) -> CompleteLog:
    """Apply the policy on missing values to the columns in use.

    Covariates that nobody named are chosen first, so that the policy applies to them. Without a
    policy, columns with a missing value are no covariates unless they are named, and a warning
    names them.

    Raises
    ------
    UnusableInput
        The policy is ``refuse`` and a chosen covariate has a missing value, or infinite values
        leave no column to match on.
    """
    check_question(log, question)
    others = (
        *(question.treatment, question.outcome),
        *question.exact,
        *(question.cluster or ()),
        *question.placebo_outcomes,
        *question.placebo_column,
    )
    is_chosen = question.covariates is None
    usable = usable_covariates(log, question) if is_chosen else ()
    infinite = infinite_covariates(log, question) if is_chosen else {}
    warnings: tuple[CampaignWarning, ...] = ()
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
            of_gaps = _unmatched("covariates-left-out", gaps, "missing", _MATCH_ON_GAPS)
            warnings = (of_gaps, *warnings)
        return CompleteLog(log, question, {}, warnings)
    if policy == "refuse" and not gaps:
        # The question's own checks name the option.
        return CompleteLog(log, question, {}, warnings)
    if question.covariates is None:
        question = replace(question, covariates=usable)
    named = tuple(name for name in question.matched_on if name not in question.exact)
    complete = without_missing({**log}, named, others, policy)
    columns = {**complete.columns, **complete.indicators}
    if complete.indicators:
        question = replace(question, covariates=(*question.matched_on, *complete.indicators))
    count = complete.missing.rows_left_out
    reason = f"a missing value ({', '.join(complete.missing.columns)})"
    return CompleteLog(columns, question, {reason: count} if count else {}, warnings)


def _unmatched(kind: str, columns: Mapping[str, int], what: str, hint: str) -> CampaignWarning:
    """Warn that columns are not matched on; each has a number of missing or infinite values."""
    return CampaignWarning(
        kind,
        f"columns with {what} values are not matched on, though they may explain the difference: "
        f"{_counted(columns, what)}",
        hint,
    )


def _counted(columns: Mapping[str, int], what: str) -> str:
    return ", ".join(f"{name} ({count:,} {what})" for name, count in columns.items())
