"""Finds the environment variables that a command or a shell line sets, and replaces their values.

A command is a sequence of arguments. A shell line is one text that a shell splits and runs.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from typing import Literal

from msgspec import Struct

MAX_DEPTH = 32
"""Maximum depth of nested command substitutions that are searched."""
_COMMAND_SEPARATORS = ";&|()\n#"
_BLANK_CHARACTERS = " \t\r"
_CLOSING_SIGNS = {"$(": ")", "<(": ")", ">(": ")", "=(": ")", "${": "}", "`": "`"}
"""Closing sign of each opening sign; ``=(`` opens a list of values in bash."""
_COMMAND_SUBSTITUTIONS = frozenset(("$(", "<(", ">(", "`"))
_QUOTED_PART = re.compile(
    r"\$'(?P<ansi>(?:\\.?|[^'\\])*)'?|'(?P<single>[^']*)'?|"
    r'\$?"(?P<double>(?:\\.?|[^"\\])*)"?|\\(?P<escaped>.?)|(?P<unquoted>[^ \t\r\n;&|()<>])',
    re.DOTALL,
)
"""A quoted part of a word, or one character without quotes."""
_QUOTED_OR_CHARACTER = re.compile(r"\\.?|'[^']*'?|\"(?:\\.?|[^\"\\])*\"?|.", re.DOTALL)
"""A quoted part of a line, or one character."""
_SUBSTITUTION_IN_QUOTES = re.compile(r"\\.|\$\(|`", re.DOTALL)
"""An escaped character, or the opening sign of a substitution."""
_ESCAPED_LETTERS = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "e": "\x1b", "f": "\f"}
_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{1,2})|([0-7]{1,3})|(.))", re.DOTALL)


class Word(Struct, frozen=True):
    """A word of a shell line."""

    start: int
    end: int
    """Index of the first character after the word."""
    text: str
    """Text of the word without its quotes; substitutions stay unchanged."""


def simple_commands(line: str) -> Iterator[tuple[Word, ...]]:
    """Yield the words of each simple command in a shell line.

    The commands of a substitution, such as ``$(…)``, follow the command that contains it. Targets
    of redirections are left out.
    """
    yield from _commands_in(line, 0, len(line), MAX_DEPTH)


def _commands_in(line: str, index: int, end: int, depth: int) -> Iterator[tuple[Word, ...]]:
    """Yield the commands between two indices, then those in substitutions, down to ``depth``."""
    words: list[Word] = []
    inner_ranges: list[tuple[int, int]] = []
    is_redirection_target = False
    while index < end:
        character = line[index]
        if character in _BLANK_CHARACTERS:
            index += 1
        elif character in _COMMAND_SEPARATORS:
            if words:
                yield tuple(words)
            words, is_redirection_target = [], False
            index += 1
        elif character in "<>" and line[index + 1 : index + 2] != "(":
            if words and words[-1].end == index and words[-1].text.isdigit():
                del words[-1]
            while index < end and line[index] in "<>&|-":
                index += 1
            is_redirection_target = True
        else:
            word, ranges_in_word = _read_word(line, index, end)
            inner_ranges.extend(ranges_in_word)
            if not is_redirection_target:
                words.append(word)
            is_redirection_target = False
            index = word.end
    if words:
        yield tuple(words)
    for inner_start, inner_end in inner_ranges if depth else ():
        yield from _commands_in(line, inner_start, inner_end, depth - 1)


def _read_word(line: str, start: int, end: int) -> tuple[Word, list[tuple[int, int]]]:
    """Return the word at ``start``, and the start and end of each substitution in it."""
    index = start
    text: list[str] = []
    inner_ranges: list[tuple[int, int]] = []
    while index < end:
        opening = next(
            (sign for sign in (line[index : index + 2], line[index]) if sign in _CLOSING_SIGNS),
            None,
        )
        if opening is not None:
            inner_start = index + len(opening)
            inner_end = _closing_index(line, inner_start, end, _CLOSING_SIGNS[opening])
            if opening in _COMMAND_SUBSTITUTIONS:
                inner_ranges.append((inner_start, inner_end))
            text.append(line[index : inner_end + 1])
            index = inner_end + 1
            continue
        part = _QUOTED_PART.match(line, index, end)
        if part is None:
            break
        match part.lastgroup:
            case "ansi":
                text.append(_ESCAPE.sub(_unescape, part["ansi"]))
            case "double":
                inner_ranges.extend(_substitutions(line, *part.span("double")))
                text.append(re.sub(r"\\([\"\\$`\n])", r"\1", part["double"]))
            case "escaped":
                text.append(part["escaped"].removesuffix("\n"))
            case _:
                text.append(part["single"] or part["unquoted"] or "")
        index = part.end()
    return Word(start, min(index, end), "".join(text)), inner_ranges


def _closing_index(line: str, start: int, end: int, closing: str) -> int:
    """Return the index of the sign that closes the sign before ``start``; without it, ``end``."""
    opening = {")": "(", "}": "{"}.get(closing)
    depth = 1
    for token in _QUOTED_OR_CHARACTER.finditer(line, start, end):
        depth += (token[0] == opening) - (token[0] == closing)
        if not depth:
            return token.start()
    return end


def _substitutions(line: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the start and the end of each substitution inside double quotes."""
    while opening := _SUBSTITUTION_IN_QUOTES.search(line, start, end):
        start = opening.end()
        if closing := _CLOSING_SIGNS.get(opening[0]):
            inner_end = _closing_index(line, start, end, closing)
            yield start, inner_end
            start = inner_end + 1


def _unescape(escape: re.Match[str]) -> str:
    hexadecimal, octal, letter = escape.groups()
    if hexadecimal:
        return chr(int(hexadecimal, 16))
    return chr(int(octal, 8)) if octal else _ESCAPED_LETTERS.get(letter, letter)


Replacer = Callable[[str, str], str | None]
"""Function from a variable's name and value to its new value, or ``None`` for no change."""
_Change = tuple[int, int, str]
"""Start and end of a word in a line, and its new text."""
_ArgumentRole = Literal["assignment", "shell line"]
"""How an argument sets variables."""
_ASSIGNMENT = re.compile(r"(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?P<sign>\+?=)")
_REFERENCE = re.compile(r"\"?\$(?:[A-Za-z_][A-Za-z0-9_]*|\{[A-Za-z_][A-Za-z0-9_]*\})\"?")
"""Reference to another variable: a value that needs no replacement."""

_SHELL_KEYWORDS = frozenset(
    ("{", "}", "!", "if", "then", "elif", "else", "do", "while", "until", "time", "coproc")
)
_ASSIGNING_BUILTINS = frozenset(("export", "declare", "typeset", "local", "readonly", "alias"))
"""Commands of a shell whose arguments are assignments."""
_ASSIGNING_PROGRAMS = frozenset(("env", "sudo", "doas"))
"""Programs whose first arguments may be assignments."""
_OPTIONS_WITH_VALUE = frozenset(("-u", "-C", "-g", "-h", "-p", "--unset", "--chdir", "--user"))
"""Options of `_ASSIGNING_PROGRAMS` after which the next argument is a value."""
_SHELLS = frozenset(
    ("sh", "bash", "dash", "ash", "ksh", "mksh", "zsh", "busybox", "su", "runuser", "flock")
)
"""Programs that run a shell line: the argument after `_SHELL_LINE_OPTION`."""
_BUILTINS_WITH_LINES = frozenset(("eval", "trap"))
"""Commands of a shell whose arguments are shell lines."""
_SHELL_LINE_OPTION = re.compile(r"-[A-Za-z]*c|--command")
"""Option of `_SHELLS` after which the next argument is a shell line."""
_ENV_SPLIT_OPTION = re.compile(r"-[A-Za-z]*S|--split-string")
"""Option of `env` after which the next argument is a shell line."""


def replace_values(line: str, replacer: Replacer) -> str:
    """Replace the values of the variables that a shell line sets."""
    changes: list[_Change] = []
    for words in simple_commands(line):
        changes.extend(_command_changes(line, words, replacer))
    pieces: list[str] = []
    index = 0
    for start, end, text in _outermost_changes(changes):
        pieces += (line[index:start], text)
        index = end
    return "".join((*pieces, line[index:]))


def replace_command_values(command: Sequence[str], replacer: Replacer) -> tuple[str, ...]:
    """Replace the values of the variables that a command sets."""
    changed = list(command)
    for index, role in _roles(command):
        if role == "shell line":
            changed[index] = replace_values(command[index], replacer)
            continue
        name, sign, value = _split_assignment(command[index])
        new_value = replacer(name, value) if value else None
        if new_value is not None:
            changed[index] = f"{name}{sign}{new_value}"
    return tuple(changed)


def _command_changes(line: str, words: Sequence[Word], replacer: Replacer) -> Iterator[_Change]:
    command_start = 0
    while command_start < len(words) and words[command_start].text in _SHELL_KEYWORDS:
        command_start += 1
    while command_start < len(words) and _ASSIGNMENT.match(line, words[command_start].start):
        yield from _assignment_changes(line, words[command_start], replacer)
        command_start += 1
    remaining_words = words[command_start:]
    if remaining_words and remaining_words[0].text in _ASSIGNING_BUILTINS:
        for word in remaining_words[1:]:
            if _ASSIGNMENT.match(word.text):
                yield from _assignment_changes(line, word, replacer)
        return
    for index, role in _roles([word.text for word in remaining_words]):
        word = remaining_words[index]
        if role == "assignment":
            yield from _assignment_changes(line, word, replacer)
            continue
        changed = replace_values(word.text, replacer)
        if changed != word.text:
            yield word.start, word.end, shlex.quote(changed)


def _assignment_changes(line: str, word: Word, replacer: Replacer) -> Iterator[_Change]:
    name, sign, value = _split_assignment(word.text)
    value_in_line = line[word.start : word.end].removeprefix(f"{name}{sign}")
    if not value or _REFERENCE.fullmatch(value_in_line):
        return
    new_value = replacer(name, value)
    if new_value is not None:
        yield word.start, word.end, f'{name}{sign}"{new_value}"'


def _split_assignment(text: str) -> tuple[str, str, str]:
    """Return the name, the sign (``=`` or ``+=``) and the value of an assignment."""
    assignment = _ASSIGNMENT.match(text)
    assert assignment is not None, f"{text!r} is not an assignment"
    return assignment["name"], assignment["sign"], text[assignment.end() :]


def _roles(command: Sequence[str]) -> Iterator[tuple[int, _ArgumentRole]]:
    """Yield the index and the role of each argument that has a role."""
    program = ""
    may_set_variables = False
    next_is_line = False
    for index, argument in enumerate(command):
        previous = command[index - 1] if index else ""
        if next_is_line:
            yield index, "shell line"
            next_is_line = program in _BUILTINS_WITH_LINES
        elif may_set_variables and _ASSIGNMENT.match(argument):
            yield index, "assignment"
        elif may_set_variables and _ENV_SPLIT_OPTION.fullmatch(argument):
            next_is_line = True
        elif program in _SHELLS and _SHELL_LINE_OPTION.fullmatch(argument):
            next_is_line = True
        elif not (
            may_set_variables and (argument.startswith("-") or previous in _OPTIONS_WITH_VALUE)
        ):
            name = os.path.basename(argument)
            if name in _ASSIGNING_PROGRAMS | _SHELLS | _BUILTINS_WITH_LINES:
                program = name
                next_is_line = name in _BUILTINS_WITH_LINES
            may_set_variables = name in _ASSIGNING_PROGRAMS


def _outermost_changes(changes: Sequence[_Change]) -> Iterator[_Change]:
    """Yield the changes that do not lie within another change."""
    last_end = 0
    for start, end, text in sorted(changes, key=lambda change: (change[0], -change[1])):
        if start >= last_end:
            yield start, end, text
            last_end = end


_EQUIPOISE_LINE_OPTIONS = frozenset(("--build", "--setup", "--prepare", "--conclude", "--cleanup"))
"""Options of Equipoise whose value is a shell line."""
_NAMED_COMMAND_OPTIONS = frozenset(("--bench", "--try-command"))
"""Options of Equipoise whose value is ``NAME=COMMAND``."""
_SHELL_OPTIONS = frozenset(("--shell", "--default-shell", "-S"))
"""Options of Equipoise that make a shell run the commands."""


def replace_command_line_values(argv: Sequence[str], replacer: Replacer) -> tuple[str, ...]:
    """Replace the values that a command line of Equipoise sets.

    Each command is one argument; or all arguments after ``--`` are one command.
    """
    command_start = argv.index("--") + 1 if "--" in argv else len(argv)
    has_shell = not _SHELL_OPTIONS.isdisjoint(argv[:command_start])
    arguments = (*argv[:command_start], *replace_command_values(argv[command_start:], replacer))
    replaced: list[str] = []
    for option, argument in zip(("", *argv), arguments, strict=False):
        if option in _NAMED_COMMAND_OPTIONS:
            replaced.append(replace_named_command_values(argument, replacer))
        elif has_shell or option in _EQUIPOISE_LINE_OPTIONS:
            replaced.append(replace_values(argument, replacer))
        else:
            replaced.append(_replace_text_values(argument, replacer))
    return tuple(replaced)


def _replace_text_values(text: str, replacer: Replacer) -> str:
    try:
        arguments = tuple(shlex.split(text))
    except ValueError:
        return text
    replaced = replace_command_values(arguments, replacer)
    if replaced == arguments:
        return text
    return " ".join(
        new if new != old and " " not in new else shlex.quote(new)
        for old, new in zip(arguments, replaced, strict=True)
    )


def replace_named_command_values(text: str, replacer: Replacer) -> str:
    """Replace the values that the command of a text ``NAME=COMMAND`` sets."""
    name, equals, line = text.partition("=")
    command = tuple(shlex.split(line))
    changed = replace_command_values(command, replacer)
    return text if changed == command else f"{name}{equals}{shlex.join(changed)}"
