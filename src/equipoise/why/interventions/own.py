"""The user's own interventions: a variable, or a command before both commands."""

from __future__ import annotations

import shlex

from msgspec.structs import replace

from equipoise.design.commands import find_program
from equipoise.design.site import Site
from equipoise.model.errors import UnusableInput
from equipoise.model.plan import Condition
from equipoise.why.interventions.alter import with_variables
from equipoise.why.interventions.intervention import Alter, Intervention

COMMAND = "{command}"
TRY_FORM = "NAME is yours to choose, as in --try 'decay:MALLOC_CONF=dirty_decay_ms:-1'"
COMMAND_FORM = "NAME is yours to choose, as in --try-command 'local=numactl --localalloc'"


def user_variable(text: str) -> Intervention:
    """Return the intervention of ``NAME:KEY=VALUE``: a variable that is set in both conditions.

    Raises
    ------
    UnusableInput
        The text is not of that form.
    """
    name, colon, assignment = text.partition(":")
    key, equals, value = assignment.partition("=")
    if not (name.strip() and colon and key and equals):
        raise UnusableInput(f"--try {text!r} is not of the form NAME:KEY=VALUE", hint=TRY_FORM)
    _refuse_null("--try", text)
    return Intervention(
        name=name.strip(),
        summary=name.strip(),
        causes=frozenset(),
        alter=lambda condition: with_variables(condition, {key: value}),
        verified="the variable reaches the process; libraries, tunables and core types are checked "
        "as for any condition",
        advice=f"{key}={shlex.quote(value)} {COMMAND}",
        asked_by=("--try", text),
    )


def user_command(text: str, site: Site) -> Intervention:
    """Return the intervention of ``NAME=CMD``, which runs both commands behind CMD.

    CMD is split as a POSIX shell splits words and run without a shell. Where a word is
    ``{command}``, the command's words replace it; inside a longer word the command is quoted for a
    shell.

    Raises
    ------
    UnusableInput
        The text is not of that form, its quotes are open, or there is no such program.
    """
    name, equals, line = text.partition("=")
    if not (name.strip() and equals and line.strip()):
        raise UnusableInput(
            f"--try-command {text!r} is not of the form NAME=CMD", hint=COMMAND_FORM
        )
    _refuse_null("--try-command", text)
    try:
        words = tuple(shlex.split(line))
    except ValueError as error:
        raise UnusableInput(
            f"--try-command {name}: cannot split {line!r} into words: {str(error).lower()}",
            hint="close the quote, or escape it with a backslash",
        ) from error
    if not words[0]:
        raise UnusableInput(f"--try-command {name}: its program is empty", hint=COMMAND_FORM)
    around = words if any(COMMAND in word for word in words) else (*words, COMMAND)
    if COMMAND not in around[0]:
        program = find_program(
            around[0], site.native_programs, site.environment, "check the spelling of --try-command"
        )
        around = (program, *around[1:])
    return Intervention(
        name=name.strip(),
        summary=name.strip(),
        causes=frozenset(),
        alter=_around(around),
        verified="not seen: the command is run as it is given",
        advice=line.strip() if COMMAND in line else f"{line.strip()} {COMMAND}",
        asked_by=("--try-command", text),
    )


def _around(words: tuple[str, ...]) -> Alter:
    def alter(condition: Condition) -> Condition:
        server = condition.server
        if server is None:
            return replace(condition, command=_filled(words, condition.command))
        return replace(condition, server=replace(server, start=_filled(words, server.start)))

    return alter


def _filled(words: tuple[str, ...], command: tuple[str, ...]) -> tuple[str, ...]:
    filled: list[str] = []
    for word in words:
        if word == COMMAND:
            filled.extend(command)
        else:
            filled.append(word.replace(COMMAND, shlex.join(command)))
    return tuple(filled)


def _refuse_null(option: str, text: str) -> None:
    if "\0" in text:
        raise UnusableInput(
            f"{option} {text!r} holds a null byte", hint="no program can be given one: leave it out"
        )
