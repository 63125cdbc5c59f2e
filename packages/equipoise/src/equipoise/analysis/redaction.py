"""Hides the values of environment variables in records, plans and result documents.

Only reports hide values. The ledger keeps the values, because a resumed campaign needs them. Values
of known tuning variables are shown. A placeholder stands for every other value; different values
have different placeholders.
"""

from __future__ import annotations

import itertools
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import asdict, replace

from equipoise.analysis.assignments import (
    Replacer,
    replace_command_line_values,
    replace_command_values,
    replace_values,
)
from equipoise.analysis.kind import analysis_of
from equipoise.model.plan import Condition, Hooks, Plan, Server
from equipoise.model.record import DIFF, Observation, RunRecord, Trial
from equipoise.model.redaction import TUNING_VARIABLES, placeholder
from equipoise.model.result import ResultDocument
from equipoise.model.revisions import CommitDiff

VARIABLES = "variables"
"""Key of the environment variables in a recorded environment."""
_SERVER_COMMANDS = ("start", "install", "fill", "prepare", "ready", "stop")
"""Fields of a server that are commands."""
Assignment = tuple[str, str]
"""Name and value of a variable."""
MIN_VALUE_LETTERS = 8
"""Minimum length of a value that is hidden even without the name of its variable."""
_HARMLESS_VALUE = re.compile(r"[a-z]+(?:[-_ ][a-z]+)*|[0-9.]+[A-Za-z%]*")
"""Ordinary words, or a number with its unit: values that texts show."""


def hide_values(records: Sequence[RunRecord]) -> tuple[RunRecord, ...]:
    """Hide values in records that are reported together, and in their earlier runs and members."""
    if any(record.earlier_runs or record.members for record in records):
        outer_records = [replace(record, earlier_runs=(), members=()) for record in records]
        inner_records = (
            run for record in records for run in (*record.earlier_runs, *record.members)
        )
        hidden_records = hide_values([*outer_records, *inner_records])
        hidden_inner_records = iter(hidden_records[len(outer_records) :])
        return tuple(
            replace(
                hidden_record,
                earlier_runs=tuple(
                    itertools.islice(hidden_inner_records, len(record.earlier_runs))
                ),
                members=tuple(itertools.islice(hidden_inner_records, len(record.members))),
            )
            for hidden_record, record in zip(hidden_records, records, strict=False)
        )
    assignments: list[Assignment] = []
    for record in records:
        # The replacer only collects the values, in the order of the plan.
        _replace_plan_values(record.plan, lambda name, value: assignments.append((name, value)))
    replacements = value_replacements(assignments)
    replacements = replacements.with_names(dict(_names_to_replace(records, replacements)))
    sizes = frozenset(factor for record in records for factor in record.plan.sizes)
    return tuple(_hide_in_record(record, replacements, sizes) for record in records)


def hide_variables(environment: Mapping[str, Any]) -> dict[str, Any]:
    """Return a recorded environment in which only known tuning variables have values."""
    return {
        key: _hide_imported_variables(value)
        if isinstance(value, Mapping) and key != VARIABLES
        else value
        for key, value in environment.items()
    }


def _hide_imported_variables(file_facts: Mapping[str, Any]) -> Mapping[str, Any]:
    """Replace the variables of each command, which files of hyperfine contain."""
    variables_by_command = file_facts.get(VARIABLES)
    if not isinstance(variables_by_command, Mapping):
        return {
            key: _hide_imported_variables(value) if isinstance(value, Mapping) else value
            for key, value in file_facts.items()
        }
    shown_variables = {
        command: {
            name: value if name in TUNING_VARIABLES else placeholder(str(name), 1)
            for name, value in variables.items()
        }
        if isinstance(variables, Mapping)
        else variables
        for command, variables in variables_by_command.items()
    }
    return {**file_facts, VARIABLES: shown_variables}


def _replace_plan_values(plan: Plan, replacer: Replacer) -> Plan:
    return replace(
        plan,
        conditions=tuple(
            replace(
                condition,
                environment=_replace_in_environment(condition.environment, replacer),
                command=replace_command_values(condition.command, replacer),
                hooks=_replace_in_hooks(condition.hooks, replacer),
                server=condition.server and _replace_in_server(condition.server, replacer),
            )
            for condition in plan.conditions
        ),
        command_line=replace_command_line_values(plan.command_line, replacer),
        terms=plan.terms and analysis_of(plan.terms).replace_in_terms(plan.terms, replacer),
    )


def _replace_in_environment(environment: Mapping[str, str], replacer: Replacer) -> dict[str, str]:
    return {name: replacer(name, value) or value for name, value in environment.items()}


def _replace_in_hooks(hooks: Hooks, replacer: Replacer) -> Hooks:
    lines: dict[str, str | None] = asdict(hooks)
    return Hooks(**{key: line and replace_values(line, replacer) for key, line in lines.items()})


def _replace_in_server(server: Server, replacer: Replacer) -> Server:
    environment = _replace_in_environment(server.environment, replacer)
    commands = {key: getattr(server, key) for key in _SERVER_COMMANDS}
    changed: dict[str, Any] = {
        key: command and replace_command_values(command, replacer)
        for key, command in commands.items()
    }
    return replace(server, environment=environment, **changed)


def _names_to_replace(
    records: Sequence[RunRecord], replacements: TextReplacements
) -> Iterator[tuple[str, str]]:
    for record in records:
        for condition in record.plan.conditions:
            name = _hide_in_name(condition, replacements)
            if name != condition.name:
                yield condition.name, name


def _hide_in_name(condition: Condition, replacements: TextReplacements) -> str:
    replacer, name, server = replacements.placeholder_of, condition.name, condition.server
    commands = (condition.command, () if server is None else server.start)
    # By default the name is the command.
    if any(replace_command_values(command, replacer) != command for command in commands):
        name = replace_values(name, replacer)
    return replacements.replace_in_text(name)


def _hide_in_record(
    record: RunRecord, replacements: TextReplacements, sizes: frozenset[str]
) -> RunRecord:
    """Hide values in a record, except levels of the factors ``sizes``, which are numbers."""
    segments = tuple(
        replace(segment, environment=hide_variables(segment.environment))
        for segment in record.segments
    )
    if replacements.pattern is None:
        return record if segments == record.segments else replace(record, segments=segments)
    return replace(
        record,
        plan=_hide_in_plan(record.plan, replacements, sizes),
        segments=tuple(
            replace(segment, environment=replace_texts(segment.environment, replacements))
            for segment in segments
        ),
        trials=tuple(_hide_in_trial(trial, replacements) for trial in record.trials),
        warnings=replace_texts(record.warnings, replacements),
        observations=tuple(
            _hide_in_observation(observation, replacements) for observation in record.observations
        ),
    )


def _hide_in_observation(observation: Observation, replacements: TextReplacements) -> Observation:
    hide = replacements.replace_in_text
    if observation.failure is not None:
        return replace(observation, failure=hide(observation.failure))
    if observation.source == DIFF and observation.document is not None:
        diff = msgspec.json.decode(observation.document, type=CommitDiff)
        hidden_diff = replace(diff, files=hide(diff.files), patch=hide(diff.patch))
        return replace(observation, document=msgspec.json.encode(hidden_diff))
    return observation


def _hide_in_trial(trial: Trial, replacements: TextReplacements) -> Trial:
    if trial.failure is None and not trial.error_tail:
        return trial
    hide = replacements.replace_in_text
    failure = None if trial.failure is None else hide(trial.failure)
    return replace(trial, failure=failure, error_tail=hide(trial.error_tail))


def _hide_in_plan(plan: Plan, replacements: TextReplacements, sizes: frozenset[str]) -> Plan:
    plan = _replace_plan_values(plan, replacements.placeholder_of)

    hide = replacements.replace_in_text

    def shown_levels(levels: Mapping[str, str]) -> dict[str, str]:
        return {name: level if name in sizes else hide(level) for name, level in levels.items()}

    conditions = [
        replace(
            condition,
            name=replacements.names.get(condition.name, condition.name),
            levels=shown_levels(condition.levels),
        )
        for condition in plan.conditions
    ]
    return replace(
        plan,
        conditions=_make_names_unique(conditions),
        command_line=tuple(map(hide, plan.command_line)),
        terms=plan.terms and analysis_of(plan.terms).hide_in_terms(plan.terms, replacements),
        chosen_contrasts=plan.chosen_contrasts
        and tuple(
            replace(contrast, stratum=shown_levels(contrast.stratum))
            for contrast in plan.chosen_contrasts
        ),
    )


def _make_names_unique(conditions: Sequence[Condition]) -> tuple[Condition, ...]:
    renamed: dict[str, Condition] = {}
    for condition in conditions:
        name, number = condition.name, 1
        while name in renamed:
            number += 1
            name = f"{condition.name} ({number})"
        renamed[name] = replace(condition, name=name)
    return tuple(renamed.values())


def hide_document_values(document: ResultDocument) -> ResultDocument:
    """Hide the values that a document's commands set, and the variables of its environment."""
    assignments: list[Assignment] = []
    for condition in document.conditions:
        replace_command_values(
            condition.command, lambda name, value: assignments.append((name, value))
        )
    replacements = value_replacements(assignments)
    environment = hide_variables(document.environment)
    if environment != document.environment:
        document = replace(document, environment=environment)
    document = analysis_of(document).hide_in_document(document)
    # A document that Equipoise wrote may already have placeholders as values.
    if all(value == text for (_, value), text in replacements.placeholders.items()):
        return document
    command_texts: dict[str, str] = {}
    names: dict[str, str] = {}
    for condition in document.conditions:
        command = replace_command_values(condition.command, replacements.placeholder_of)
        command_texts |= dict(zip(condition.command, command, strict=True))
        if command != condition.command:
            names[condition.name] = replace_values(condition.name, replacements.placeholder_of)
    replacements = replacements.with_names(names)
    replaced: ResultDocument = replace_texts(document, replacements, command_texts)
    return replaced


def replace_texts(
    data: Any, replacements: TextReplacements, texts: Mapping[str, str] = MappingProxyType({})
) -> Any:
    """Replace texts anywhere in a data structure; ``texts`` has replacements of whole texts."""
    match data:
        case str():
            return texts[data] if data in texts else replacements.replace_in_text(data)
        case dict():
            return {
                replacements.replace_in_text(key): replace_texts(value, replacements, texts)
                for key, value in data.items()
            }
        case list() | tuple():
            return type(data)(replace_texts(item, replacements, texts) for item in data)
    if not isinstance(data, Struct):
        return data
    fields = asdict(data)
    changed = {name: replace_texts(value, replacements, texts) for name, value in fields.items()}
    return data if changed == fields else replace(data, **changed)


class TextReplacements(Struct, frozen=True):
    """Texts that reports replace: values by placeholders, and names that contain such values."""

    placeholders: Mapping[Assignment, str]
    """Placeholder of each hidden value."""
    names: Mapping[str, str]
    """New name of each condition whose name is replaced."""
    texts: Mapping[str, str]
    """Replacement of each text outside commands."""
    pattern: re.Pattern[str] | None
    """Pattern that matches the keys of ``texts``; ``None`` if there are none."""

    def placeholder_of(self, name: str, value: str) -> str | None:
        """Return the placeholder of a value; ``None`` if the value is shown."""
        return self.placeholders.get((name, value))

    def replace_in_text(self, text: str) -> str:
        """Return a text with the replacements.

        Assignments such as ``TOKEN=x`` are always replaced. A value alone is replaced if it has at
        least `MIN_VALUE_LETTERS` letters and is not an ordinary word.
        """
        if self.pattern is None:
            return text
        return self.pattern.sub(lambda match: self.texts[match[0]], text)

    def with_names(self, names: Mapping[str, str]) -> TextReplacements:
        """Return replacements that also replace these names of conditions."""
        return TextReplacements(
            self.placeholders, names, *_text_replacements(self.placeholders, names)
        )


def value_replacements(assignments: Iterable[Assignment]) -> TextReplacements:
    """Return the placeholders of the values to hide, numbered in the order of the values."""
    placeholders: dict[Assignment, str] = {}
    numbers: dict[str, int] = {}
    for name, value in assignments:
        if value and name not in TUNING_VARIABLES and (name, value) not in placeholders:
            numbers[name] = numbers.get(name, 0) + 1
            placeholders[name, value] = placeholder(name, numbers[name])
    return TextReplacements(placeholders, {}, *_text_replacements(placeholders, {}))


def _text_replacements(
    placeholders: Mapping[Assignment, str], names: Mapping[str, str]
) -> tuple[Mapping[str, str], re.Pattern[str] | None]:
    """Return the replacement of each text, and a pattern that matches the texts."""
    replaced: dict[str, str] = {}
    patterns: dict[str, str] = {}
    for (name, value), placeholder_text in placeholders.items():
        for spelling in (value, shlex.quote(value), f'"{value}"'):
            assignment = f"{name}={spelling}"
            replaced[assignment] = f"{name}={placeholder_text}"
            patterns[assignment] = rf"(?<![A-Za-z0-9_]){re.escape(assignment)}(?![A-Za-z0-9_])"
        quoted = shlex.quote(f"{name}={value}")
        if quoted not in replaced:
            # An assignment inside a quoted command.
            replaced[quoted] = shlex.quote(f"{name}={placeholder_text}")
            patterns[quoted] = re.escape(quoted)
        if len(value) >= MIN_VALUE_LETTERS and not _HARMLESS_VALUE.fullmatch(value):
            replaced.setdefault(value, placeholder_text)
            patterns.setdefault(value, re.escape(value))
    replaced |= names
    patterns |= {name: re.escape(name) for name in names}
    longest_first = sorted(patterns, key=len, reverse=True)
    pattern = re.compile("|".join(patterns[text] for text in longest_first)) if patterns else None
    return replaced, pattern
