"""Effects from a log whose columns are a table: its missing values, then ``observe``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from equipoise.model.observation_result import ObservationResult
from equipoise.observation.analysis import observe
from equipoise.observation.matching import Progress
from equipoise.observation.question import Log, Question, check_question
from equipoise.tables.missing import Policy, without_missing

Names = str | Sequence[str]
"""Names of columns; a single one may be given as it is."""


def observe_table(
    columns: Log,
    question: Mapping[str, Any],
    *,
    source: str,
    missing: Policy,
    progress: Progress,
) -> ObservationResult:
    """Observe the columns of a table; ``question`` has the fields of a ``Question``."""
    log, asked, left_out = complete_log(columns, Question(**question), missing)
    return observe(log, asked, source=source, left_out=left_out, progress=progress)


def complete_log(
    log: Log, question: Question, policy: Policy
) -> tuple[Log, Question, dict[str, int]]:
    """Apply the policy on missing values to the columns that a question names.

    Returns
    -------
    The columns, the question with the covariates that say where a value was missing, and the number
    of rows that are left out, by reason.
    """
    check_question(log, question)
    named = tuple(name for name in question.covariates or () if name not in question.exact)
    others = (
        *(question.treatment, question.outcome),
        *question.exact,
        *(question.cluster or ()),
        *question.placebo_outcomes,
        *question.placebo_column,
    )
    if policy == "refuse":
        # The question's own checks name the option.
        return log, question, {}
    complete = without_missing({**log}, named, others, policy)
    columns = {**complete.columns, **complete.indicators}
    if complete.indicators:
        question = replace(question, covariates=(*question.matched_on, *complete.indicators))
    count = complete.missing.rows_left_out
    reason = f"a missing value ({', '.join(complete.missing.columns)})"
    return columns, question, {reason: count} if count else {}
