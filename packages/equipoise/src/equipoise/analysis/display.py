"""Prepares records and documents for display: hides values, and shortens names and failures.

The name of a condition or a level may be very long, because by default it is a command. The ledger
keeps the whole name. A report shows its first `MAX_NAME_LETTERS` characters. If two shortened names
would be equal, the second name gets a number. Values are hidden before names are shortened.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

from msgspec.structs import replace

from equipoise.analysis.kind import analysis_of
from equipoise.analysis.redaction import (
    TextReplacements,
    hide_document_values,
    hide_values,
    replace_texts,
    value_replacements,
)
from equipoise.model.plan import Condition, Plan
from equipoise.model.record import Observation, RunRecord, Trial
from equipoise.model.result import ConditionResult, ResultDocument
from equipoise.shared.safe_text import MAX_LINE_LETTERS, MAX_NAME_LETTERS, shortened

_Failable = TypeVar("_Failable", Trial, Observation)
_NUMBER_LETTERS = len(" (9999999)")
"""Number of letters that a shortened name keeps free for its number."""


def records_for_display(records: Sequence[RunRecord], *, show_env: bool) -> tuple[RunRecord, ...]:
    """Prepare records that are reported together; names that differ stay different."""
    records = records if show_env else hide_values(records)
    runs = [run for record in records for run in (record, *record.earlier_runs, *record.members)]
    short_names = _short_names([condition for run in runs for condition in run.plan.conditions])
    return tuple(_with_short_texts(record, short_names) for record in records)


def document_for_display(document: ResultDocument, *, show_env: bool) -> ResultDocument:
    """Prepare a document that was read from a file."""
    document = document if show_env else hide_document_values(document)
    short_names = _short_names(document.conditions)
    if not short_names.names:
        return document
    short_document: ResultDocument = replace_texts(document, short_names)
    # Readers copy commands, so commands stay whole.
    conditions = tuple(
        replace(condition, command=original.command)
        for condition, original in zip(short_document.conditions, document.conditions, strict=True)
    )
    return replace(short_document, conditions=conditions)


def _short_names(conditions: Sequence[Condition | ConditionResult]) -> TextReplacements:
    """Return a short name for each overlong name; names that differ stay different."""
    names = (
        name for condition in conditions for name in (condition.name, *condition.levels.values())
    )
    distinct_names = dict.fromkeys(names)
    used_names, replacements = set(distinct_names), {}
    numbered_names: dict[str, Iterator[str]] = {}
    for name in distinct_names:
        if len(name) > MAX_NAME_LETTERS:
            short_name = shortened(name)
            numbered_names.setdefault(short_name, _numbered_names(short_name))
            replacements[name] = next(
                unused for unused in numbered_names[short_name] if unused not in used_names
            )
            used_names.add(replacements[name])
    return value_replacements(()).with_names(replacements)


def _numbered_names(short_name: str) -> Iterator[str]:
    yield short_name
    beginning = shortened(short_name, MAX_NAME_LETTERS - _NUMBER_LETTERS)
    yield from (f"{beginning} ({number})" for number in itertools.count(2))


def _with_short_texts(record: RunRecord, short_names: TextReplacements) -> RunRecord:
    return replace(
        record,
        plan=_with_short_names(record.plan, short_names),
        warnings=replace_texts(record.warnings, short_names),
        trials=tuple(_with_short_failure(trial, short_names) for trial in record.trials),
        observations=tuple(
            _with_short_failure(observation, short_names) for observation in record.observations
        ),
        earlier_runs=tuple(
            _with_short_texts(earlier, short_names) for earlier in record.earlier_runs
        ),
        members=tuple(_with_short_texts(member, short_names) for member in record.members),
    )


def _with_short_names(plan: Plan, short_names: TextReplacements) -> Plan:
    """Return the plan with short names in conditions and contrasts, but not in command lines."""
    shorten = short_names.replace_in_text

    def short_levels(levels: Mapping[str, str]) -> dict[str, str]:
        return {factor: shorten(level) for factor, level in levels.items()}

    return replace(
        plan,
        conditions=tuple(
            replace(condition, name=shorten(condition.name), levels=short_levels(condition.levels))
            for condition in plan.conditions
        ),
        chosen_contrasts=plan.chosen_contrasts
        and tuple(
            replace(contrast, stratum=short_levels(contrast.stratum))
            for contrast in plan.chosen_contrasts
        ),
        terms=plan.terms and analysis_of(plan.terms).hide_in_terms(plan.terms, short_names),
    )


def _with_short_failure(item: _Failable, short_names: TextReplacements) -> _Failable:
    if item.failure is None:
        return item
    failure = short_names.replace_in_text(item.failure)
    return replace(item, failure=shortened(failure, MAX_LINE_LETTERS))
