"""List the interventions for a gap, and make interventions of the user's options."""

from __future__ import annotations

import math
import shlex
from itertools import chain

from equipoise.design.commands import find_program, split_command
from equipoise.design.site import Site
from equipoise.model.errors import UnusableInput
from equipoise.model.plan import Condition
from equipoise.shared.spelling import option
from equipoise.stats.intervention import CONFIRMED_ABOVE
from equipoise.why.interventions import blas, files, memory, runtime
from equipoise.why.interventions.intervention import (
    Case,
    Intervention,
    with_measured_process,
    with_variables,
)

PLACEHOLDER = "{command}"
"""Text in a command or an advice that stands for the condition's own command."""
_TRY_HINT = "choose a NAME and write --try 'decay:MALLOC_CONF=dirty_decay_ms:-1', for example"
_TRY_COMMAND_HINT = "choose a NAME and write --try-command 'near=numactl --localalloc', for example"


def every_intervention(case: Case) -> tuple[Intervention, ...]:
    """Return all interventions, in the order in which they are tried for one cause."""
    return (
        *memory.memory_interventions(case),
        *files.file_interventions(case),
        *blas.blas_interventions(case),
        *runtime.runtime_interventions(case),
        *memory.other_allocators(case),
    )


def relevant_interventions(case: Case) -> tuple[Intervention, ...]:
    """Return the interventions that change a condition, or that are impossible on this host."""
    return tuple(
        intervention
        for intervention in every_intervention(case)
        if intervention.impossible_because is not None
        or any(intervention.alter(condition) != condition for condition in case.conditions)
    )


def proposed_interventions(case: Case) -> tuple[Intervention, ...]:
    """Return the interventions that could confirm an open cause, first those for most seconds."""
    seconds: dict[str, float] = {}
    for cause in case.causes:
        seconds[cause.cause] = max(seconds.get(cause.cause, 0.0), cause.seconds or 0.0)
    interventions = [
        intervention
        for intervention in relevant_interventions(case)
        if intervention.causes & seconds.keys() and _can_confirm(intervention, case.ratio)
    ]

    def max_seconds(intervention: Intervention) -> float:
        return max(seconds[cause] for cause in intervention.causes & seconds.keys())

    return tuple(sorted(interventions, key=lambda intervention: -max_seconds(intervention)))


def _can_confirm(intervention: Intervention, ratio: float | None) -> bool:
    """Return whether the largest known effect of this change would confirm a cause of this gap."""
    if not ratio:
        return True
    return math.log(intervention.max_ratio) >= CONFIRMED_ABOVE * abs(math.log(ratio))


def user_variable(text: str) -> Intervention:
    """Return the intervention of ``NAME:KEY=VALUE``; raise `UnusableInput` for another form."""
    name, colon, assignment = text.partition(":")
    key, equals, value = assignment.partition("=")
    if not (name.strip() and colon and key and equals):
        raise UnusableInput(
            f"{option('try')} {text!r} is not of the form NAME:KEY=VALUE", hint=_TRY_HINT
        )
    _refuse_null("--try", text)
    return Intervention(
        name=name.strip(),
        summary=name.strip(),
        causes=frozenset(),
        alter=lambda condition: with_variables(condition, {key: value}),
        advice=f"{key}={shlex.quote(value)} {PLACEHOLDER}",
    )


def user_command(text: str, site: Site) -> Intervention:
    """Return the intervention of ``NAME=CMD``, which puts CMD before both commands.

    CMD is split like a shell line, and runs without a shell. The condition's command replaces an
    argument ``{command}``. Inside a longer argument, this command is quoted for a shell. Raise
    `UnusableInput` if the text has another form, a quote is open, or the program is missing.
    """
    name, equals, line = text.partition("=")
    if not (name.strip() and equals and line.strip()):
        raise UnusableInput(
            f"{option('try_command')} {text!r} is not of the form NAME=CMD", hint=_TRY_COMMAND_HINT
        )
    _refuse_null("--try-command", text)
    argv = split_command(line, f"{option('try_command', name)}: cannot split")
    if not argv[0]:
        raise UnusableInput(
            f"the program of {option('try_command', name)} is empty", hint=_TRY_COMMAND_HINT
        )
    if not any(PLACEHOLDER in argument for argument in argv):
        argv.append(PLACEHOLDER)
    if PLACEHOLDER not in argv[0]:
        hint = f"check the spelling of {option('try_command')}"
        argv[0] = find_program(argv[0], site.native_programs, site.environment, hint)

    def alter(condition: Condition) -> Condition:
        command = condition.measured_process.command
        expanded = (
            command
            if argument == PLACEHOLDER
            else (argument.replace(PLACEHOLDER, shlex.join(command)),)
            for argument in argv
        )
        return with_measured_process(condition, command=tuple(chain.from_iterable(expanded)))

    return Intervention(
        name=name.strip(),
        summary=name.strip(),
        causes=frozenset(),
        alter=alter,
        advice=line.strip() if PLACEHOLDER in line else f"{line.strip()} {PLACEHOLDER}",
    )


def _refuse_null(option_name: str, text: str) -> None:
    if "\0" in text:
        raise UnusableInput(
            f"{option_name} {text!r} contains a null byte", hint="remove the null byte"
        )
