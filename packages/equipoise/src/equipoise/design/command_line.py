"""The command line that repeats a run, from the arguments in its plan, for a shell."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence

from equipoise.model.plan import COMPARE_STUDY, Plan
from equipoise.model.redaction import quote_except_placeholders
from equipoise.shared.safe_text import visible


def command_of_plan(plan: Plan) -> str | None:
    """Return the command line that runs a plan again; ``None`` if there is none.

    A hidden value has the placeholder ``$NAME``. The shell expands this placeholder if the user has
    set the environment variable.
    """
    if not plan.command_line:
        return plan.rules.command_line
    line = shell_line_with_placeholders(plan.command_line)
    if plan.command_line[1] != COMPARE_STUDY:
        return line
    # The commands may name files in the working folder.
    return f"cd {shell_line([plan.measure.working_folder])} && {line}"


def command_line_of(
    command: str, arguments: Sequence[str], options: Mapping[str, object]
) -> tuple[str, ...]:
    """Return a command line of Equipoise: ``equipoise``, the command, options and arguments.

    ``options`` has the value of each option, or all values of a repeated option. Options with the
    value ``None`` or False are left out.
    """
    argv = ["equipoise", command]
    for name, value in options.items():
        option = f"--{name.replace('_', '-')}"
        for single_value in value if isinstance(value, list | tuple) else (value,):
            if single_value is not None and single_value is not False:
                argv += [option] if single_value is True else [option, str(single_value)]
    return (*argv, *arguments_after_options(arguments))


def shell_line(arguments: Iterable[str]) -> str:
    """Return a line that a shell reads as exactly these arguments.

    An argument with invisible characters, such as an escape or the end of a line, is written as
    ``$'…'``, which bash, ksh and zsh read (POSIX.1-2024, §2.2.4).
    """
    return " ".join(map(_quote, arguments))


def shell_line_with_placeholders(arguments: Iterable[str]) -> str:
    """Return a line with quoted placeholders: ``2:TOKEN=$TOKEN`` becomes ``"2:TOKEN=$TOKEN"``."""
    return " ".join(quote_except_placeholders(argument, _quote) for argument in arguments)


def arguments_after_options(arguments: Sequence[str]) -> list[str]:
    """Return the arguments; if one of them looks like an option, ``--`` comes first."""
    has_option = any(argument.startswith("-") for argument in arguments)
    return ["--", *arguments] if has_option else list(arguments)


def _quote(argument: str) -> str:
    if visible(argument) == argument:
        return shlex.quote(argument)
    return f"$'{''.join(map(_escape, argument))}'"


def _escape(character: str) -> str:
    if character in "\\'":
        return f"\\{character}"
    if visible(character) == character:
        return character
    try:
        encoded = character.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        # A document may contain a character that no command line can have.
        encoded = character.encode("utf-8", "surrogatepass")
    return "".join(f"\\x{byte:02x}" for byte in encoded)
