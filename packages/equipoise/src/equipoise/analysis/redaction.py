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
    command_with_values_replaced,
    typed_words_with_values_replaced,
    with_values_replaced,
)
from equipoise.analysis.kind import analysis_of
from equipoise.model.plan import Condition, Hooks, Plan, Server
from equipoise.model.record import DIFF, Observation, RunRecord, Trial
from equipoise.model.redaction import TUNING_VARIABLES, placeholder
from equipoise.model.result import ResultDocument
from equipoise.model.revisions import CommitDiff

VARIABLES = "variables"
"""Keys of an environment: the recorded variables, and the names of those that were not."""
_SERVER_COMMANDS = ("start", "install", "fill", "prepare", "ready", "stop")
Assigned = tuple[str, str]
"""A variable's name and one value of it."""
MIN_VALUE_LETTERS = 8
"""Characters from which on a value is hidden in a name also where its variable is not named."""
_ORDINARY = re.compile(r"[a-z]+(?:[-_ ][a-z]+)*|[0-9.]+[A-Za-z%]*")
"""Words, or a number with its unit: they stay in a name, which would say nothing without them."""


def without_hidden_values(records: Sequence[RunRecord]) -> tuple[RunRecord, ...]:
    """Hide the same values in several records that are reported together.

    A record in which nothing is hidden is given back as it is. The earlier campaigns of its
    series and its parts are reported with it.
    """
    if any(record.earlier or record.members for record in records):
        alone = [replace(record, earlier=(), members=()) for record in records]
        parts = (part for record in records for part in (*record.earlier, *record.members))
        whole = without_hidden_values([*alone, *parts])
        rest = iter(whole[len(alone) :])
        return tuple(
            replace(
                hidden,
                earlier=tuple(itertools.islice(rest, len(record.earlier))),
                members=tuple(itertools.islice(rest, len(record.members))),
            )
            for hidden, record in zip(whole, records, strict=False)
        )
    assigned: list[Assigned] = []
    for record in records:
        # Nothing is replaced yet: the values come in the order of the plan.
        _with_plan_values_replaced(record.plan, lambda name, value: assigned.append((name, value)))
    hidden = hidden_values(assigned)
    hidden = hidden.with_names(dict(_changed_names(records, hidden)))
    sizes = frozenset(size for record in records for size in record.plan.sizes)
    return tuple(_without(record, hidden, sizes) for record in records)


def without_hidden_variables(environment: Mapping[str, Any]) -> dict[str, Any]:
    """Return a recorded environment with the values of known tuning variables only.

    A campaign records no others, but files of hyperfine name the variables of each command.
    """
    return {
        key: _with_hidden_imports(value)
        if isinstance(value, Mapping) and key != VARIABLES
        else value
        for key, value in environment.items()
    }


def _with_hidden_imports(of_file: Mapping[str, Any]) -> Mapping[str, Any]:
    """Replace the variables of each command of an imported file by placeholders."""
    of_commands = of_file.get(VARIABLES)
    if not isinstance(of_commands, Mapping):
        return {
            key: _with_hidden_imports(value) if isinstance(value, Mapping) else value
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


def _with_plan_values_replaced(plan: Plan, replacement: Replace) -> Plan:
    """Replace the values of all variables that a plan sets, in its order."""
    return replace(
        plan,
        conditions=tuple(
            replace(
                condition,
                environment=_environment(condition.environment, replacement),
                command=command_with_values_replaced(condition.command, replacement),
                hooks=_hooks(condition.hooks, replacement),
                server=condition.server and _server(condition.server, replacement),
            )
            for condition in plan.conditions
        ),
        command_line=typed_words_with_values_replaced(plan.command_line, replacement),
        terms=plan.terms and analysis_of(plan.terms).terms_replaced(plan.terms, replacement),
    )


def _environment(environment: Mapping[str, str], replacement: Replace) -> dict[str, str]:
    return {name: replacement(name, value) or value for name, value in environment.items()}


def _hooks(hooks: Hooks, replacement: Replace) -> Hooks:
    lines: dict[str, str | None] = asdict(hooks)
    return Hooks(
        **{key: line and with_values_replaced(line, replacement) for key, line in lines.items()}
    )


def _server(server: Server, replacement: Replace) -> Server:
    environment = _environment(server.environment, replacement)
    commands = {key: getattr(server, key) for key in _SERVER_COMMANDS}
    changed: dict[str, Any] = {
        key: command and command_with_values_replaced(command, replacement)
        for key, command in commands.items()
    }
    return replace(server, environment=environment, **changed)


def _changed_names(records: Sequence[RunRecord], hidden: HiddenValues) -> Iterator[tuple[str, str]]:
    """Yield the name of each condition that holds a hidden value, and the name that is shown."""
    for record in records:
        for condition in record.plan.conditions:
            name = _name_without(condition, hidden)
            if name != condition.name:
                yield condition.name, name


def _name_without(condition: Condition, hidden: HiddenValues) -> str:
    server = condition.server
    commands = (condition.command, () if server is None else server.start)
    # By default the name is the command, as it was typed.
    is_typed = any(
        command_with_values_replaced(command, hidden.replacement) != command for command in commands
    )
    name = condition.name
    return hidden.in_text(with_values_replaced(name, hidden.replacement) if is_typed else name)


def _without(record: RunRecord, hidden: HiddenValues, sizes: frozenset[str]) -> RunRecord:
    segments = tuple(
        replace(segment, environment=without_hidden_variables(segment.environment))
        for segment in record.segments
    )
    if hidden.pattern is None:
        return record if segments == record.segments else replace(record, segments=segments)
    return replace(
        record,
        plan=_plan_without(record.plan, hidden, sizes),
        segments=tuple(
            replace(segment, environment=with_texts_replaced(segment.environment, hidden))
            for segment in segments
        ),
        trials=tuple(_trial_without(trial, hidden) for trial in record.trials),
        notices=with_texts_replaced(record.notices, hidden),
        observations=tuple(
            _observation_without(observation, hidden) for observation in record.observations
        ),
    )


def _observation_without(observation: Observation, hidden: HiddenValues) -> Observation:
    if observation.failure is not None:
        return replace(observation, failure=hidden.in_text(observation.failure))
    if observation.source == DIFF and observation.document is not None:
        diff = msgspec.json.decode(observation.document, type=CommitDiff)
        shown = replace(diff, files=hidden.in_text(diff.files), patch=hidden.in_text(diff.patch))
        return replace(observation, document=msgspec.json.encode(shown))
    return observation


def _trial_without(trial: Trial, hidden: HiddenValues) -> Trial:
    if trial.failure is None and not trial.error_tail:
        return trial
    failure = None if trial.failure is None else hidden.in_text(trial.failure)
    return replace(trial, failure=failure, error_tail=hidden.in_text(trial.error_tail))


def _plan_without(plan: Plan, hidden: HiddenValues, sizes: frozenset[str]) -> Plan:
    plan = _with_plan_values_replaced(plan, hidden.replacement)

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
        conditions=_with_names_of_their_own(conditions),
        command_line=tuple(map(hidden.in_text, plan.command_line)),
        terms=plan.terms and analysis_of(plan.terms).terms_hidden(plan.terms, hidden),
        chosen_contrasts=plan.chosen_contrasts
        and tuple(
            replace(contrast, stratum=levels_without(contrast.stratum))
            for contrast in plan.chosen_contrasts
        ),
    )


def _with_names_of_their_own(conditions: Sequence[Condition]) -> tuple[Condition, ...]:
    """Return the conditions with a number behind a name that another one has already."""
    renamed: dict[str, Condition] = {}
    for condition in conditions:
        name, number = condition.name, 1
        while name in renamed:
            number += 1
            name = f"{condition.name} ({number})"
        renamed[name] = replace(condition, name=name)
    return tuple(renamed.values())


def document_without_hidden_values(document: ResultDocument) -> ResultDocument:
    """Hide what the commands of a document set, and the variables of its environment."""
    assigned: list[Assigned] = []
    for condition in document.conditions:
        command_with_values_replaced(
            condition.command, lambda name, value: assigned.append((name, value))
        )
    hidden = hidden_values(assigned)
    environment = without_hidden_variables(document.environment)
    if environment != document.environment:
        document = replace(document, environment=environment)
    document = analysis_of(document).document_hidden(document)
    if all(value == text for (_, value), text in hidden.placeholders.items()):
        return document
    texts: dict[str, str] = {}
    names: dict[str, str] = {}
    for condition in document.conditions:
        shown = command_with_values_replaced(condition.command, hidden.replacement)
        texts |= dict(zip(condition.command, shown, strict=True))
        if shown != condition.command:
            names[condition.name] = with_values_replaced(condition.name, hidden.replacement)
    replaced: ResultDocument = with_texts_replaced(document, hidden.with_names(names), texts)
    return replaced


def with_texts_replaced(
    part: Any, hidden: HiddenValues, texts: Mapping[str, str] = MappingProxyType({})
) -> Any:
    """Replace hidden values in every text of data; ``texts`` gives those of whole words."""
    match part:
        case str():
            return texts[part] if part in texts else hidden.in_text(part)
        case dict():
            return {
                hidden.in_text(key): with_texts_replaced(value, hidden, texts)
                for key, value in part.items()
            }
        case list() | tuple():
            return type(part)(with_texts_replaced(item, hidden, texts) for item in part)
    if not isinstance(part, Struct):
        return part
    fields = asdict(part)
    changed = {name: with_texts_replaced(value, hidden, texts) for name, value in fields.items()}
    return part if changed == fields else replace(part, **changed)


class HiddenValues(Struct, frozen=True):
    """The hidden values of one or several campaigns, each with its placeholder."""

    placeholders: Mapping[Assigned, str]
    names: Mapping[str, str]
    """The names of conditions that hold hidden values, each with the name that is shown."""
    in_texts: Mapping[str, str]
    """Texts that are replaced outside commands, each with its replacement."""
    pattern: re.Pattern[str] | None
    """Finds what is replaced in a text; ``None`` if nothing is."""

    def replacement(self, name: str, value: str) -> str | None:
        """Return the placeholder of a value; ``None`` if the value is shown."""
        return self.placeholders.get((name, value))

    def in_text(self, text: str) -> str:
        """Return a name or a message without hidden values.

        An assignment (``TOKEN=x``) is replaced, and a value that stands alone if it is long enough
        and no ordinary word.
        """
        if self.pattern is None:
            return text
        return self.pattern.sub(lambda found: self.in_texts[found[0]], text)

    def with_names(self, names: Mapping[str, str]) -> HiddenValues:
        """Return the same values, with these names of conditions replaced in texts as well."""
        return HiddenValues(self.placeholders, names, *_in_texts(self.placeholders, names))


def hidden_values(assigned: Iterable[Assigned]) -> HiddenValues:
    """Give every value that is hidden its placeholder, in the order in which they come."""
    placeholders: dict[Assigned, str] = {}
    numbers: dict[str, int] = {}
    for name, value in assigned:
        if value and name not in TUNING_VARIABLES and (name, value) not in placeholders:
            numbers[name] = numbers.get(name, 0) + 1
            placeholders[name, value] = placeholder(name, numbers[name])
    return HiddenValues(placeholders, {}, *_in_texts(placeholders, {}))


def _in_texts(
    placeholders: Mapping[Assigned, str], names: Mapping[str, str]
) -> tuple[Mapping[str, str], re.Pattern[str] | None]:
    replaced: dict[str, str] = {}
    patterns: dict[str, str] = {}
    for (name, value), text in placeholders.items():
        for written in (value, shlex.quote(value), f'"{value}"'):
            whole = f"{name}={written}"
            replaced[whole] = f"{name}={text}"
            patterns[whole] = rf"(?<![A-Za-z0-9_]){re.escape(whole)}(?![A-Za-z0-9_])"
        quoted = shlex.quote(f"{name}={value}")
        if quoted not in replaced:
            # A word of a quoted command.
            replaced[quoted] = shlex.quote(f"{name}={text}")
            patterns[quoted] = re.escape(quoted)
        if len(value) >= MIN_VALUE_LETTERS and not _ORDINARY.fullmatch(value):
            replaced.setdefault(value, text)
            patterns.setdefault(value, re.escape(value))
    replaced |= names
    patterns |= {name: re.escape(name) for name in names}
    longest_first = sorted(patterns, key=len, reverse=True)
    pattern = re.compile("|".join(patterns[text] for text in longest_first)) if patterns else None
    return replaced, pattern
