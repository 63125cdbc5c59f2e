"""All interventions: those that are offered for a gap, and the user's own."""

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
    with_started,
    with_variables,
)

COMMAND = "{command}"
TRY_FORM = "NAME is yours to choose, as in --try 'decay:MALLOC_CONF=dirty_decay_ms:-1'"
COMMAND_FORM = "NAME is yours to choose, as in --try-command 'local=numactl --localalloc'"


def every_intervention(case: Case) -> tuple[Intervention, ...]:
    """Return all interventions; of those for the same cause the first is tried first."""
    return (
        *memory.offered(case),
        *files.offered(case),
        *blas.offered(case),
        *runtime.offered(case),
        *memory.other_allocators(case),
    )


def offered(case: Case) -> tuple[Intervention, ...]:
    """Return all interventions, without those that change nothing in either condition.

    What cannot be tried here is among them, with its reason.
    """
    return tuple(
        intervention
        for intervention in every_intervention(case)
        if intervention.impossible_because is not None
        or any(intervention.alter(condition) != condition for condition in case.pair)
    )


def proposed(case: Case) -> tuple[Intervention, ...]:
    """Return the interventions that test an open cause, those for the most seconds first.

    Those that could not be confirmed are left out: they change a time by much less than the gap.
    """
    seconds: dict[str, float] = {}
    for cause in case.causes:
        seconds[cause.cause] = max(seconds.get(cause.cause, 0.0), cause.seconds or 0.0)
    fitting = [
        one
        for one in offered(case)
        if one.causes & seconds.keys() and _may_be_confirmed(one, case.ratio)
    ]
    # The sort is stable: equals keep the order of the catalogue.
    return tuple(
        sorted(fitting, key=lambda one: -max(seconds[c] for c in one.causes & seconds.keys()))
    )


def _may_be_confirmed(intervention: Intervention, ratio: float | None) -> bool:
    """Return whether an intervention could close the part of a gap that confirms a cause."""
    if not ratio:
        return True
    return math.log(intervention.max_ratio) >= CONFIRMED_ABOVE * abs(math.log(ratio))


def user_variable(text: str) -> Intervention:
    """Return the intervention of ``NAME:KEY=VALUE``: a variable that is set in both conditions.

    Raise `UnusableInput` if the text is not of that form.
    """
    name, colon, assignment = text.partition(":")
    key, equals, value = assignment.partition("=")
    if not (name.strip() and colon and key and equals):
        raise UnusableInput(
            f"{option('try')} {text!r} is not of the form NAME:KEY=VALUE", hint=TRY_FORM
        )
    _refuse_null("--try", text)
    return Intervention(
        name=name.strip(),
        summary=name.strip(),
        causes=frozenset(),
        alter=lambda condition: with_variables(condition, {key: value}),
        advice=f"{key}={shlex.quote(value)} {COMMAND}",
    )


def user_command(text: str, site: Site) -> Intervention:
    """Return the intervention of ``NAME=CMD``, which runs both commands behind CMD.

    CMD is split as a POSIX shell splits words and run without a shell. Where a word is
    ``{command}``, the command's words replace it; inside a longer word the command is quoted for a
    shell. Raise `UnusableInput` if the text is not of that form, its quotes are open, or there is
    no such program.
    """
    name, equals, line = text.partition("=")
    if not (name.strip() and equals and line.strip()):
        raise UnusableInput(
            f"{option('try_command')} {text!r} is not of the form NAME=CMD", hint=COMMAND_FORM
        )
    _refuse_null("--try-command", text)
    words = split_command(line, f"{option('try_command', name)}: cannot split")
    if not words[0]:
        raise UnusableInput(
            f"{option('try_command', name)}: its program is empty", hint=COMMAND_FORM
        )
    if not any(COMMAND in word for word in words):
        words.append(COMMAND)
    if COMMAND not in words[0]:
        hint = f"check the spelling of {option('try_command')}"
        words[0] = find_program(words[0], site.native_programs, site.environment, hint)

    def alter(condition: Condition) -> Condition:
        command = condition.measured_process.command
        filled = (
            command if word == COMMAND else (word.replace(COMMAND, shlex.join(command)),)
            for word in words
        )
        return with_started(condition, command=tuple(chain.from_iterable(filled)))

    return Intervention(
        name=name.strip(),
        summary=name.strip(),
        causes=frozenset(),
        alter=alter,
        advice=line.strip() if COMMAND in line else f"{line.strip()} {COMMAND}",
    )


def _refuse_null(option: str, text: str) -> None:
    if "\0" in text:
        raise UnusableInput(
            f"{option} {text!r} holds a null byte", hint="no program can be given one: leave it out"
        )
