"""Records and documents for display: values hidden, long names and failures cut.

The name of a condition, or of a level of a factor, may have any length: by default it is a command.
The ledger keeps the whole name. A page, a table or a JSON document shows `MAX_NAME_LETTERS` of it,
with a number if two cut names would be equal. Values are hidden before names are cut, because a cut
value would not be found.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

from msgspec.structs import replace

from equipoise.analysis.kind import analysis_of
from equipoise.analysis.redaction import (
    HiddenValues,
    hidden_values,
    hide_document_values,
    hide_values,
    replace_texts,
)
from equipoise.model.plan import Condition, Plan
from equipoise.model.record import Observation, RunRecord, Trial
from equipoise.model.result import ConditionResult, ResultDocument
from equipoise.shared.safe_text import MAX_LINE_LETTERS, MAX_NAME_LETTERS, shortened

_Failing = TypeVar("_Failing", Trial, Observation)
_ROOM_FOR_NUMBER = len(" (9999999)")


def records_for_display(records: Sequence[RunRecord], *, show_env: bool) -> tuple[RunRecord, ...]:
    """Return records for one page; different names stay different among all records."""
    records = records if show_env else hide_values(records)
    every = [part for record in records for part in (record, *record.earlier, *record.members)]
    texts = _short_names([condition for record in every for condition in record.plan.conditions])
    return tuple(_with_short_texts(record, texts) for record in records)


def document_for_display(document: ResultDocument, *, show_env: bool) -> ResultDocument:
    """Return a document that was read from a file for display."""
    document = document if show_env else hide_document_values(document)
    texts = _short_names(document.conditions)
    if not texts.names:
        return document
    short: ResultDocument = replace_texts(document, texts)
    # A name may be a word of the command, and readers copy commands.
    both = zip(short.conditions, document.conditions, strict=True)
    conditions = tuple(replace(condition, command=read.command) for condition, read in both)
    return replace(short, conditions=conditions)


def _short_names(conditions: Sequence[Condition | ConditionResult]) -> HiddenValues:
    """Return the replacement of each name that is too long; different names stay different."""
    names = (
        text for condition in conditions for text in (condition.name, *condition.levels.values())
    )
    present = dict.fromkeys(names)
    used_names, short = set(present), {}
    numbered: dict[str, Iterator[str]] = {}
    for name in present:
        if len(name) > MAX_NAME_LETTERS:
            cut = shortened(name)
            numbered.setdefault(cut, _numbered(cut))
            short[name] = next(text for text in numbered[cut] if text not in used_names)
            used_names.add(short[name])
    return hidden_values(()).with_names(short)


def _numbered(cut: str) -> Iterator[str]:
    yield cut
    beginning = shortened(cut, MAX_NAME_LETTERS - _ROOM_FOR_NUMBER)
    yield from (f"{beginning} ({number})" for number in itertools.count(2))


def _with_short_texts(record: RunRecord, texts: HiddenValues) -> RunRecord:
    return replace(
        record,
        plan=_with_short_names(record.plan, texts),
        notices=replace_texts(record.notices, texts),
        trials=tuple(_with_short_failure(trial, texts) for trial in record.trials),
        observations=tuple(
            _with_short_failure(observation, texts) for observation in record.observations
        ),
        earlier=tuple(_with_short_texts(earlier, texts) for earlier in record.earlier),
        members=tuple(_with_short_texts(member, texts) for member in record.members),
    )


def _with_short_names(plan: Plan, texts: HiddenValues) -> Plan:
    """Return the plan with short names; its command line, which readers copy, stays whole."""

    def levels(whole: Mapping[str, str]) -> dict[str, str]:
        return {factor: texts.in_text(level) for factor, level in whole.items()}

    return replace(
        plan,
        conditions=tuple(
            replace(condition, name=texts.in_text(condition.name), levels=levels(condition.levels))
            for condition in plan.conditions
        ),
        chosen_contrasts=plan.chosen_contrasts
        and tuple(
            replace(contrast, stratum=levels(contrast.stratum))
            for contrast in plan.chosen_contrasts
        ),
        terms=plan.terms and analysis_of(plan.terms).hide_in_terms(plan.terms, texts),
    )


def _with_short_failure(part: _Failing, texts: HiddenValues) -> _Failing:
    if part.failure is None:
        return part
    return replace(part, failure=shortened(texts.in_text(part.failure), MAX_LINE_LETTERS))
