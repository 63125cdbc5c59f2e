"""The command that repeats a run: the words that were typed, which its plan keeps.

A line can be copied from a page or a screen and means the same.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence

from equipoise.model.plan import COMPARE_STUDY, Plan
from equipoise.model.redaction import quote_except_placeholders
from equipoise.shared.safe_text import visible


def command_of_plan(plan: Plan) -> str | None:
    """Return the line that runs a plan again; ``None`` where there is none.

    A plan without hidden values makes a line for whoever has the variables: the shell puts them
    in place of ``$NAME``.
    """
    if not plan.command_line:
        return plan.rules.command_line
    line = shell_line_with_placeholders(plan.command_line)
    if plan.command_line[1] != COMPARE_STUDY:
        return line
    # Its commands may name files of the working folder.
    return f"cd {shell_line([plan.measure.working_folder])} && {line}"


def command_as_typed(
    command: str, arguments: Sequence[str], options: Mapping[str, object]
) -> tuple[str, ...]:
    """Return the words of a command line of Equipoise.

    Parameters
    ----------
    arguments
        Arguments that follow the options.
    options
        Value of each option, or several; an option is left out if it is none or false.
    """
    words = ["equipoise", command]
    for name, value in options.items():
        option = f"--{name.replace('_', '-')}"
        for item in value if isinstance(value, list | tuple) else (value,):
            if item is not None and item is not False:
                words += [option] if item is True else [option, str(item)]
    return (*words, *after_options(arguments))


def shell_line(words: Iterable[str]) -> str:
    """Return words quoted, so that a shell reads each of them as it stands.

    A word that has what no screen shows (the end of a line, an escape, a change of direction, bytes
    that are no text) is written as ``$'…'``, which bash, ksh and zsh read (POSIX.1-2024, §2.2.4);
    all others are for any shell.
    """
    return " ".join(map(_quoted, words))


def shell_line_with_placeholders(words: Iterable[str]) -> str:
    """Return words quoted likewise, but a shell expands the placeholders of hidden values.

    ``2:TOKEN=$TOKEN`` becomes ``"2:TOKEN=$TOKEN"``.
    """
    return " ".join(quote_except_placeholders(word, _quoted) for word in words)


def after_options(words: Sequence[str]) -> list[str]:
    """Return words to stand behind options; ``--`` keeps a word from being read as an option."""
    return ["--", *words] if any(word.startswith("-") for word in words) else list(words)


def _quoted(word: str) -> str:
    if visible(word) == word:
        return shlex.quote(word)
    return f"$'{''.join(map(_escaped, word))}'"


def _escaped(character: str) -> str:
    if character in "\\'":
        return f"\\{character}"
    if visible(character) == character:
        return character
    try:
        encoded = character.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        # Out of a document: no command line can hold it.
        encoded = character.encode("utf-8", "surrogatepass")
    return "".join(f"\\x{byte:02x}" for byte in encoded)
