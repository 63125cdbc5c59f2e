"""The command line that repeats a run, from the typed words in its plan.

A line can be copied from a page or a screen without changing its meaning.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence

from equipoise.model.plan import COMPARE_STUDY, Plan
from equipoise.model.redaction import quote_except_placeholders
from equipoise.shared.safe_text import visible


def command_of_plan(plan: Plan) -> str | None:
    """Return the line that runs a plan again; ``None`` if there is none.

    The line of a plan whose values are hidden works for users who have set the variables: the shell
    expands ``$NAME``.
    """
    if not plan.command_line:
        return plan.rules.command_line
    line = shell_line_with_placeholders(plan.command_line)
    if plan.command_line[1] != COMPARE_STUDY:
        return line
    # The commands may name files of the working folder.
    return f"cd {shell_line([plan.measure.working_folder])} && {line}"


def command_line_of(
    command: str, arguments: Sequence[str], options: Mapping[str, object]
) -> tuple[str, ...]:
    """Return the words of a command line of Equipoise.

    Parameters
    ----------
    arguments
        Arguments that follow the options.
    options
        Value of each option, or several values; an option is left out if its value is ``None`` or
        False.
    """
    words = ["equipoise", command]
    for name, value in options.items():
        option = f"--{name.replace('_', '-')}"
        for item in value if isinstance(value, list | tuple) else (value,):
            if item is not None and item is not False:
                words += [option] if item is True else [option, str(item)]
    return (*words, *words_after_options(arguments))


def shell_line(words: Iterable[str]) -> str:
    """Return quoted words, which a shell reads unchanged.

    A word with invisible characters (the end of a line, an escape, a change of direction, bytes
    that are not text) is written as ``$'…'``, which bash, ksh and zsh read (POSIX.1-2024, §2.2.4);
    any shell reads all other words.
    """
    return " ".join(map(_quoted, words))


def shell_line_with_placeholders(words: Iterable[str]) -> str:
    """Return quoted words in which a shell expands only the placeholders of hidden values.

    ``2:TOKEN=$TOKEN`` becomes ``"2:TOKEN=$TOKEN"``.
    """
    return " ".join(quote_except_placeholders(word, _quoted) for word in words)


def words_after_options(words: Sequence[str]) -> list[str]:
    """Return words to put after options, with ``--`` if a word looks like an option."""
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
        # It comes from a document: no command line can contain it.
        encoded = character.encode("utf-8", "surrogatepass")
    return "".join(f"\\x{byte:02x}" for byte in encoded)
