"""Redaction of whole records, plans and result documents."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from equipoise.analysis.redaction.commands import (
    command_with_values_replaced,
    gate_line_with_values_replaced,
    with_values_replaced,
)
from equipoise.analysis.redaction.values import Assigned, HiddenValues, hidden_values
from equipoise.model.plan import Condition, ExperimentPlan, Hooks, Plan, PlannedIntervention, Server
from equipoise.model.record import RunRecord, Trial
from equipoise.model.redaction import TUNING_VARIABLES, placeholder
from equipoise.model.result import ResultDocument

VARIABLES = "variables"
WITHHELD = "variables_set_but_withheld"
"""Keys of an environment: the recorded variables, and the names of those that were not."""
_HOOKS = ("setup", "prepare", "conclude", "cleanup")
_SERVER_COMMANDS = ("start", "install", "fill", "prepare", "ready", "stop")
_TRY, _TRY_COMMAND = "--try", "--try-command"


def without_hidden_values(records: Sequence[RunRecord]) -> tuple[RunRecord, ...]:
    """Hide the same values in several records that are reported together.

    A record in which nothing is hidden is given back as it is.
    """
    hidden = hidden_values(pair for record in records for pair in _assigned_in(record.plan))
    hidden = hidden.with_names(dict(_changed_names(records, hidden)))
    sizes = frozenset(size for record in records for size in record.plan.sizes)
    return tuple(_without(record, hidden, sizes) for record in records)


def without_hidden_variables(environment: Mapping[str, Any]) -> dict[str, Any]:
    """Return a recorded environment with the values of known tuning variables only.

    The ledgers of the first release hold every value of ``LC_*``, ``OMP_*``, ``MALLOC_*``,
    ``OPENBLAS_*`` and ``BLIS_*``. Files of hyperfine name the variables of each command.
    """
    recorded = environment.get(VARIABLES)
    if isinstance(recorded, Mapping):
        hidden = [name for name in recorded if name not in TUNING_VARIABLES]
        if hidden:
            withheld = {*(environment.get(WITHHELD) or ()), *hidden}
            known = {key: value for key, value in recorded.items() if key in TUNING_VARIABLES}
            environment = {**environment, VARIABLES: known, WITHHELD: sorted(withheld)}
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


def _assigned_in(plan: Plan) -> list[Assigned]:
    """Return every variable that the plan sets, with its value, in the order of the plan."""
    found: list[Assigned] = []

    def take(name: str, value: str) -> None:
        found.append((name, value))

    for condition in plan.conditions:
        found.extend(condition.environment.items())
        command_with_values_replaced(condition.command, take)
        for hook in _HOOKS:
            with_values_replaced(getattr(condition.hooks, hook) or "", take)
        if condition.server is not None:
            found.extend(condition.server.environment.items())
            for key in _SERVER_COMMANDS:
                command_with_values_replaced(getattr(condition.server, key) or (), take)
    for attempt in () if plan.explains is None else plan.explains.attempts:
        _attempt_with_values_replaced(attempt, take)
    if plan.gated is not None:
        gate_line_with_values_replaced(plan.gated.again, take)
    return found


def _changed_names(records: Sequence[RunRecord], hidden: HiddenValues) -> Iterator[tuple[str, str]]:
    """Yield the name of each condition that holds a hidden value, and the name that is shown."""
    for record in records:
        for condition in record.plan.conditions:
            name = _name_without(condition, hidden)
            if name != condition.name:
                yield condition.name, name


def _name_without(condition: Condition, hidden: HiddenValues) -> str:
    server = condition.server
    started = () if server is None else server.start
    commands = (condition.command, started)
    # By default the name is the command, as it was typed.
    is_typed = any(hidden.in_command(one) != one for one in commands)
    return hidden.in_text(hidden.in_line(condition.name) if is_typed else condition.name)


def _without(record: RunRecord, hidden: HiddenValues, sizes: frozenset[str]) -> RunRecord:
    segments = tuple(
        replace(one, environment=without_hidden_variables(one.environment))
        for one in record.segments
    )
    if hidden.pattern is None:
        return record if segments == record.segments else replace(record, segments=segments)
    return replace(
        record,
        plan=_plan_without(record.plan, hidden, sizes),
        segments=tuple(
            replace(one, environment=hidden.everywhere_in(one.environment)) for one in segments
        ),
        trials=tuple(_trial_without(one, hidden) for one in record.trials),
        notices=tuple(
            replace(one, summary=hidden.in_text(one.summary), hint=hidden.in_text(one.hint))
            for one in record.notices
        ),
        observations=tuple(
            one if one.failure is None else replace(one, failure=hidden.in_text(one.failure))
            for one in record.observations
        ),
    )


def _trial_without(trial: Trial, hidden: HiddenValues) -> Trial:
    if trial.failure is None and not trial.error_tail:
        return trial
    failure = None if trial.failure is None else hidden.in_text(trial.failure)
    return replace(trial, failure=failure, error_tail=hidden.in_text(trial.error_tail))


def _plan_without(plan: Plan, hidden: HiddenValues, sizes: frozenset[str]) -> Plan:
    conditions = tuple(_condition_without(one, hidden, sizes) for one in plan.conditions)
    gated = plan.gated
    if gated is not None:
        again = gate_line_with_values_replaced(gated.again, hidden.replacement)
        gated = replace(gated, again=again)
    contrasts = plan.chosen_contrasts
    return replace(
        plan,
        conditions=_with_names_of_their_own(conditions),
        explains=None if plan.explains is None else _explains_without(plan.explains, hidden),
        gated=gated,
        chosen_contrasts=None
        if contrasts is None
        else tuple(
            replace(one, stratum=_levels_without(one.stratum, hidden, sizes)) for one in contrasts
        ),
    )


def _condition_without(
    condition: Condition, hidden: HiddenValues, sizes: frozenset[str]
) -> Condition:
    server = condition.server
    return replace(
        condition,
        name=hidden.names.get(condition.name, condition.name),
        command=hidden.in_command(condition.command),
        levels=_levels_without(condition.levels, hidden, sizes),
        environment=hidden.in_environment(condition.environment),
        hooks=_hooks_without(condition.hooks, hidden),
        server=None if server is None else _server_without(server, hidden),
    )


def _levels_without(
    levels: Mapping[str, str], hidden: HiddenValues, sizes: frozenset[str]
) -> dict[str, str]:
    return {
        factor: level if factor in sizes else hidden.in_text(level)
        for factor, level in levels.items()
    }


def _hooks_without(hooks: Hooks, hidden: HiddenValues) -> Hooks:
    lines = {one: getattr(hooks, one) for one in _HOOKS}
    return Hooks(**{one: line and hidden.in_line(line) for one, line in lines.items()})


def _server_without(server: Server, hidden: HiddenValues) -> Server:
    commands = {key: getattr(server, key) for key in _SERVER_COMMANDS}
    changed: dict[str, Any] = {
        key: words and hidden.in_command(words) for key, words in commands.items()
    }
    return replace(server, environment=hidden.in_environment(server.environment), **changed)


def _explains_without(explains: ExperimentPlan, hidden: HiddenValues) -> ExperimentPlan:
    return replace(
        explains,
        causes=tuple(replace(one, summary=hidden.in_text(one.summary)) for one in explains.causes),
        attempts=tuple(
            _attempt_with_values_replaced(one, hidden.replacement) for one in explains.attempts
        ),
        not_tried=tuple(
            replace(one, because=hidden.in_text(one.because)) for one in explains.not_tried
        ),
    )


def _attempt_with_values_replaced(
    attempt: PlannedIntervention, replacement: Any
) -> PlannedIntervention:
    """Return an intervention that the user asked for, with the values in its text replaced."""
    option, text = attempt.asked_by or ("", "")
    advice = attempt.advice and with_values_replaced(attempt.advice, replacement)
    if option == _TRY:
        name, colon, assignment = text.partition(":")
        key, equals, value = assignment.partition("=")
        shown = replacement(key, value) if value else None
        text = text if shown is None else f"{name}{colon}{key}{equals}{shown}"
    elif option == _TRY_COMMAND:
        name, equals, line = text.partition("=")
        words = shlex.split(line)
        changed = command_with_values_replaced(words, replacement)
        text = text if changed == tuple(words) else f"{name}{equals}{shlex.join(changed)}"
    else:
        return attempt
    return replace(attempt, advice=advice, asked_by=(option, text))


def _with_names_of_their_own(conditions: Sequence[Condition]) -> tuple[Condition, ...]:
    """Return the conditions with a number behind a name that another one has already."""
    taken: set[str] = set()
    renamed = []
    for condition in conditions:
        name, number = condition.name, 1
        while name in taken:
            number += 1
            name = f"{condition.name} ({number})"
        taken.add(name)
        renamed.append(condition if name == condition.name else replace(condition, name=name))
    return tuple(renamed)


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
    if hidden.pattern is None or _shows_nothing(hidden):
        return document
    texts: dict[str, str] = {}
    names: dict[str, str] = {}
    for condition in document.conditions:
        shown = hidden.in_command(condition.command)
        texts |= dict(zip(condition.command, shown, strict=True))
        if shown != condition.command:
            names[condition.name] = hidden.in_line(condition.name)
    replaced: ResultDocument = _replaced(document, texts, hidden.with_names(names))
    return replaced


def _shows_nothing(hidden: HiddenValues) -> bool:
    return all(value == text for (_, value), text in hidden.placeholders.items())


def _replaced(part: Any, texts: Mapping[str, str], hidden: HiddenValues) -> Any:
    match part:
        case str():
            return texts[part] if part in texts else hidden.in_text(part)
        case dict():
            return {
                hidden.in_text(key): _replaced(value, texts, hidden) for key, value in part.items()
            }
        case list():
            return [_replaced(one, texts, hidden) for one in part]
        case tuple():
            return tuple(_replaced(one, texts, hidden) for one in part)
    if not isinstance(part, Struct):
        return part
    fields = {name: getattr(part, name) for name in part.__struct_fields__}
    changed = {name: _replaced(value, texts, hidden) for name, value in fields.items()}
    return part if changed == fields else replace(part, **changed)
