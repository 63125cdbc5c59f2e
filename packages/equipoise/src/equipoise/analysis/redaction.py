"""Records, plans and result documents without the values of environment variables.

The ledger keeps every value, because a resumed campaign needs it; only reports leave values out.
The value of a variable is hidden unless the variable is a known tuning variable. Different values
of one variable have different placeholders, so that a reader sees that two conditions differ.
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
    Replace,
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
"""Key of an environment: its recorded variables."""
_SERVER_COMMANDS = ("start", "install", "fill", "prepare", "ready", "stop")
Assignment = tuple[str, str]
"""Name of a variable, and one of its values."""
MIN_VALUE_LETTERS = 8
"""Minimum number of characters of a value that is hidden in a text even without its variable."""
_ORDINARY_WORDS = re.compile(r"[a-z]+(?:[-_ ][a-z]+)*|[0-9.]+[A-Za-z%]*")
"""Ordinary words, or a number with its unit: they stay, because names need them."""


def hide_values(records: Sequence[RunRecord]) -> tuple[RunRecord, ...]:
    """Hide the same values in several records that are reported together.

    A record in which nothing is hidden is returned unchanged. The earlier campaigns of its series
    and its members are included.
    """
    if any(record.earlier or record.members for record in records):
        without_parts = [replace(record, earlier=(), members=()) for record in records]
        parts = (part for record in records for part in (*record.earlier, *record.members))
        all_hidden = hide_values([*without_parts, *parts])
        rest = iter(all_hidden[len(without_parts) :])
        return tuple(
            replace(
                hidden,
                earlier=tuple(itertools.islice(rest, len(record.earlier))),
                members=tuple(itertools.islice(rest, len(record.members))),
            )
            for hidden, record in zip(all_hidden, records, strict=False)
        )
    assigned: list[Assignment] = []
    for record in records:
        # This only collects the values, in the order of the plan.
        _replace_plan_values(record.plan, lambda name, value: assigned.append((name, value)))
    hidden = hidden_values(assigned)
    hidden = hidden.with_names(dict(_changed_names(records, hidden)))
    sizes = frozenset(size for record in records for size in record.plan.sizes)
    return tuple(_hide_in_record(record, hidden, sizes) for record in records)


def hide_variables(environment: Mapping[str, Any]) -> dict[str, Any]:
    """Return a recorded environment with the values of known tuning variables only.

    A campaign records only these, but files of hyperfine have all variables of each command.
    """
    return {
        key: _hide_imported_variables(value)
        if isinstance(value, Mapping) and key != VARIABLES
        else value
        for key, value in environment.items()
    }


def _hide_imported_variables(of_file: Mapping[str, Any]) -> Mapping[str, Any]:
    """Replace the variables of each command of an imported file by placeholders."""
    of_commands = of_file.get(VARIABLES)
    if not isinstance(of_commands, Mapping):
        return {
            key: _hide_imported_variables(value) if isinstance(value, Mapping) else value
            for key, value in of_file.items()
        }
    hidden = {
        command: {
            name: value if name in TUNING_VARIABLES else placeholder(str(name), 1)
            for name, value in variables.items()
        }
        if isinstance(variables, Mapping)
        else variables
        for command, variables in of_commands.items()
    }
    return {**of_file, VARIABLES: hidden}


def _replace_plan_values(plan: Plan, replacement: Replace) -> Plan:
    """Replace the values of all variables that a plan sets, in the order of the plan."""
    return replace(
        plan,
        conditions=tuple(
            replace(
                condition,
                environment=_environment(condition.environment, replacement),
                command=replace_command_values(condition.command, replacement),
                hooks=_hooks(condition.hooks, replacement),
                server=condition.server and _server(condition.server, replacement),
            )
            for condition in plan.conditions
        ),
        command_line=replace_command_line_values(plan.command_line, replacement),
        terms=plan.terms and analysis_of(plan.terms).replace_in_terms(plan.terms, replacement),
    )


def _environment(environment: Mapping[str, str], replacement: Replace) -> dict[str, str]:
    return {name: replacement(name, value) or value for name, value in environment.items()}


def _hooks(hooks: Hooks, replacement: Replace) -> Hooks:
    lines: dict[str, str | None] = asdict(hooks)
    return Hooks(**{key: line and replace_values(line, replacement) for key, line in lines.items()})


def _server(server: Server, replacement: Replace) -> Server:
    environment = _environment(server.environment, replacement)
    commands = {key: getattr(server, key) for key in _SERVER_COMMANDS}
    changed: dict[str, Any] = {
        key: command and replace_command_values(command, replacement)
        for key, command in commands.items()
    }
    return replace(server, environment=environment, **changed)


def _changed_names(records: Sequence[RunRecord], hidden: HiddenValues) -> Iterator[tuple[str, str]]:
    """Yield the name of each condition with a hidden value, and the name to show."""
    for record in records:
        for condition in record.plan.conditions:
            name = _hide_in_name(condition, hidden)
            if name != condition.name:
                yield condition.name, name


def _hide_in_name(condition: Condition, hidden: HiddenValues) -> str:
    server = condition.server
    commands = (condition.command, () if server is None else server.start)
    # By default the name is the typed command.
    is_typed = any(
        replace_command_values(command, hidden.replacement) != command for command in commands
    )
    name = condition.name
    return hidden.in_text(replace_values(name, hidden.replacement) if is_typed else name)


def _hide_in_record(record: RunRecord, hidden: HiddenValues, sizes: frozenset[str]) -> RunRecord:
    segments = tuple(
        replace(segment, environment=hide_variables(segment.environment))
        for segment in record.segments
    )
    if hidden.pattern is None:
        return record if segments == record.segments else replace(record, segments=segments)
    return replace(
        record,
        plan=_hide_in_plan(record.plan, hidden, sizes),
        segments=tuple(
            replace(segment, environment=replace_texts(segment.environment, hidden))
            for segment in segments
        ),
        trials=tuple(_hide_in_trial(trial, hidden) for trial in record.trials),
        notices=replace_texts(record.notices, hidden),
        observations=tuple(
            _hide_in_observation(observation, hidden) for observation in record.observations
        ),
    )


def _hide_in_observation(observation: Observation, hidden: HiddenValues) -> Observation:
    if observation.failure is not None:
        return replace(observation, failure=hidden.in_text(observation.failure))
    if observation.source == DIFF and observation.document is not None:
        diff = msgspec.json.decode(observation.document, type=CommitDiff)
        shown = replace(diff, files=hidden.in_text(diff.files), patch=hidden.in_text(diff.patch))
        return replace(observation, document=msgspec.json.encode(shown))
    return observation


def _hide_in_trial(trial: Trial, hidden: HiddenValues) -> Trial:
    if trial.failure is None and not trial.error_tail:
        return trial
    failure = None if trial.failure is None else hidden.in_text(trial.failure)
    return replace(trial, failure=failure, error_tail=hidden.in_text(trial.error_tail))


def _hide_in_plan(plan: Plan, hidden: HiddenValues, sizes: frozenset[str]) -> Plan:
    plan = _replace_plan_values(plan, hidden.replacement)

    def levels_without(levels: Mapping[str, str]) -> dict[str, str]:
        return {
            factor: level if factor in sizes else hidden.in_text(level)
            for factor, level in levels.items()
        }

    conditions = [
        replace(
            condition,
            name=hidden.names.get(condition.name, condition.name),
            levels=levels_without(condition.levels),
        )
        for condition in plan.conditions
    ]
    return replace(
        plan,
        conditions=_make_names_unique(conditions),
        command_line=tuple(map(hidden.in_text, plan.command_line)),
        terms=plan.terms and analysis_of(plan.terms).hide_in_terms(plan.terms, hidden),
        chosen_contrasts=plan.chosen_contrasts
        and tuple(
            replace(contrast, stratum=levels_without(contrast.stratum))
            for contrast in plan.chosen_contrasts
        ),
    )


def _make_names_unique(conditions: Sequence[Condition]) -> tuple[Condition, ...]:
    """Return the conditions, with a number after a name that an earlier condition has."""
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
    assigned: list[Assignment] = []
    for condition in document.conditions:
        replace_command_values(
            condition.command, lambda name, value: assigned.append((name, value))
        )
    hidden = hidden_values(assigned)
    environment = hide_variables(document.environment)
    if environment != document.environment:
        document = replace(document, environment=environment)
    document = analysis_of(document).hide_in_document(document)
    if all(value == text for (_, value), text in hidden.placeholders.items()):
        return document
    texts: dict[str, str] = {}
    names: dict[str, str] = {}
    for condition in document.conditions:
        shown = replace_command_values(condition.command, hidden.replacement)
        texts |= dict(zip(condition.command, shown, strict=True))
        if shown != condition.command:
            names[condition.name] = replace_values(condition.name, hidden.replacement)
    replaced: ResultDocument = replace_texts(document, hidden.with_names(names), texts)
    return replaced


def replace_texts(
    part: Any, hidden: HiddenValues, texts: Mapping[str, str] = MappingProxyType({})
) -> Any:
    """Replace hidden values in all texts of a data structure; ``texts`` replaces whole texts."""
    match part:
        case str():
            return texts[part] if part in texts else hidden.in_text(part)
        case dict():
            return {
                hidden.in_text(key): replace_texts(value, hidden, texts)
                for key, value in part.items()
            }
        case list() | tuple():
            return type(part)(replace_texts(item, hidden, texts) for item in part)
    if not isinstance(part, Struct):
        return part
    fields = asdict(part)
    changed = {name: replace_texts(value, hidden, texts) for name, value in fields.items()}
    return part if changed == fields else replace(part, **changed)


class HiddenValues(Struct, frozen=True):
    """Hidden values of one or several campaigns, each with its placeholder."""

    placeholders: Mapping[Assignment, str]
    names: Mapping[str, str]
    """Names of conditions that contain hidden values, each with the name to show."""
    in_texts: Mapping[str, str]
    """Texts to replace outside commands, each with its replacement."""
    pattern: re.Pattern[str] | None
    """Pattern of the texts to replace; ``None`` if nothing is replaced."""

    def replacement(self, name: str, value: str) -> str | None:
        """Return the placeholder of a value; ``None`` if the value is shown."""
        return self.placeholders.get((name, value))

    def in_text(self, text: str) -> str:
        """Return a name or a message without hidden values.

        An assignment (``TOKEN=x``) is replaced. A value without its variable is replaced if it is
        long enough and not an ordinary word.
        """
        if self.pattern is None:
            return text
        return self.pattern.sub(lambda found: self.in_texts[found[0]], text)

    def with_names(self, names: Mapping[str, str]) -> HiddenValues:
        """Return the same values, with these names of conditions to replace in texts as well."""
        return HiddenValues(self.placeholders, names, *_in_texts(self.placeholders, names))


def hidden_values(assigned: Iterable[Assignment]) -> HiddenValues:
    """Give each hidden value its placeholder; numbers follow the order of the values."""
    placeholders: dict[Assignment, str] = {}
    numbers: dict[str, int] = {}
    for name, value in assigned:
        if value and name not in TUNING_VARIABLES and (name, value) not in placeholders:
            numbers[name] = numbers.get(name, 0) + 1
            placeholders[name, value] = placeholder(name, numbers[name])
    return HiddenValues(placeholders, {}, *_in_texts(placeholders, {}))


def _in_texts(
    placeholders: Mapping[Assignment, str], names: Mapping[str, str]
) -> tuple[Mapping[str, str], re.Pattern[str] | None]:
    replaced: dict[str, str] = {}
    patterns: dict[str, str] = {}
    for (name, value), text in placeholders.items():
        for written in (value, shlex.quote(value), f'"{value}"'):
            assignment = f"{name}={written}"
            replaced[assignment] = f"{name}={text}"
            patterns[assignment] = rf"(?<![A-Za-z0-9_]){re.escape(assignment)}(?![A-Za-z0-9_])"
        quoted = shlex.quote(f"{name}={value}")
        if quoted not in replaced:
            # A word of a quoted command.
            replaced[quoted] = shlex.quote(f"{name}={text}")
            patterns[quoted] = re.escape(quoted)
        if len(value) >= MIN_VALUE_LETTERS and not _ORDINARY_WORDS.fullmatch(value):
            replaced.setdefault(value, text)
            patterns.setdefault(value, re.escape(value))
    replaced |= names
    patterns |= {name: re.escape(name) for name in names}
    longest_first = sorted(patterns, key=len, reverse=True)
    pattern = re.compile("|".join(patterns[text] for text in longest_first)) if patterns else None
    return replaced, pattern
