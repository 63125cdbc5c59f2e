"""Where a command or a shell's line sets a variable, and replacing the value there.

A variable is set before a command (``TOKEN=x make``), by a built-in of the shell (``export
TOKEN=x``), and by ``env``, ``sudo`` and ``doas``. The lines that ``sh -c``, ``su -c``, ``eval`` and
``trap`` are given are read as well. Other arguments (``make CFLAGS=-O3``, ``dd of=FILE``) set no
variable of the environment, and stay.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from typing import Literal

from equipoise.analysis.redaction.shell_words import Word, simple_commands

Replace = Callable[[str, str], str | None]
"""What stands for the value of a variable, by its name and value; ``None`` if the value stays."""

_Kind = Literal["assignment", "line"]
_ASSIGNMENT = re.compile(r"(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?P<sign>\+?=)")
_REFERENCE = re.compile(r"\"?\$(?:[A-Za-z_][A-Za-z0-9_]*|\{[A-Za-z_][A-Za-z0-9_]*\})\"?")
"""The value of another variable, and so no value by itself."""
_KEYWORDS = frozenset(
    ("{", "}", "!", "if", "then", "elif", "else", "do", "while", "until", "time", "coproc")
)
_DECLARING = frozenset(("export", "declare", "typeset", "local", "readonly", "alias"))
_SETTING = frozenset(("env", "sudo", "doas"))
_OPTIONS_WITH_A_WORD = frozenset(("-u", "-C", "-g", "-h", "-p", "--unset", "--chdir", "--user"))
_TAKING_A_LINE = frozenset(
    ("sh", "bash", "dash", "ash", "ksh", "mksh", "zsh", "busybox", "su", "runuser", "flock")
)
_TAKING_LINES = frozenset(("eval", "trap"))
_LINE_OPTION = re.compile(r"-[A-Za-z]*c|--command")
_SPLIT_OPTION = re.compile(r"-[A-Za-z]*S|--split-string")


def with_values_replaced(line: str, replace: Replace) -> str:
    """A shell's line with the values of the variables that it sets replaced."""
    changes: list[tuple[int, int, str]] = []
    for words in simple_commands(line):
        changes.extend(_changes(line, words, replace))
    pieces: list[str] = []
    at = 0
    for start, end, text in _outermost(changes):
        pieces += (line[at:start], text)
        at = end
    return "".join((*pieces, line[at:]))


def command_with_values_replaced(words: Sequence[str], replace: Replace) -> tuple[str, ...]:
    """The words of a command that no shell reads, likewise."""
    changed = list(words)
    for place, kind in _places(words):
        if kind == "line":
            changed[place] = with_values_replaced(words[place], replace)
            continue
        name, sign, value = _parts(words[place])
        text = replace(name, value) if value else None
        if text is not None:
            changed[place] = f"{name}{sign}{text}"
    return tuple(changed)


def _changes(line: str, words: Sequence[Word], replace: Replace) -> Iterator[tuple[int, int, str]]:
    """The start and the end of each word that changes, and what stands there instead."""
    first = 0
    while first < len(words) and words[first].text in _KEYWORDS:
        first += 1
    while first < len(words) and _ASSIGNMENT.match(line, words[first].start):
        yield from _assigned(line, words[first], replace)
        first += 1
    rest = words[first:]
    if rest and rest[0].text in _DECLARING:
        for word in rest[1:]:
            if _ASSIGNMENT.match(word.text):
                yield from _assigned(line, word, replace)
        return
    for place, kind in _places([word.text for word in rest]):
        word = rest[place]
        if kind == "assignment":
            yield from _assigned(line, word, replace)
            continue
        changed = with_values_replaced(word.text, replace)
        if changed != word.text:
            yield word.start, word.end, shlex.quote(changed)


def _assigned(line: str, word: Word, replace: Replace) -> Iterator[tuple[int, int, str]]:
    name, sign, value = _parts(word.text)
    written = line[word.start : word.end].removeprefix(f"{name}{sign}")
    if not value or _REFERENCE.fullmatch(written):
        return
    text = replace(name, value)
    if text is not None:
        yield word.start, word.end, f'{name}{sign}"{text}"'


def _parts(text: str) -> tuple[str, str, str]:
    """The name, the sign (``=`` or ``+=``) and the value of an assignment."""
    found = _ASSIGNMENT.match(text)
    assert found is not None, "only an assignment is taken apart"
    return found["name"], found["sign"], text[found.end() :]


def _places(words: Sequence[str]) -> Iterator[tuple[int, _Kind]]:
    """The arguments of a command that set a variable or are a shell's line."""
    program = ""
    is_setting = False
    has_line_next = False
    for place, word in enumerate(words):
        before = words[place - 1] if place else ""
        if has_line_next:
            yield place, "line"
            has_line_next = program in _TAKING_LINES
        elif is_setting and _ASSIGNMENT.match(word):
            yield place, "assignment"
        elif is_setting and _SPLIT_OPTION.fullmatch(word):
            has_line_next = True
        elif program in _TAKING_A_LINE and _LINE_OPTION.fullmatch(word):
            has_line_next = True
        elif not (is_setting and (word.startswith("-") or before in _OPTIONS_WITH_A_WORD)):
            name = os.path.basename(word)
            if name in _SETTING | _TAKING_A_LINE | _TAKING_LINES:
                program = name
                has_line_next = name in _TAKING_LINES
            is_setting = name in _SETTING


def _outermost(changes: Sequence[tuple[int, int, str]]) -> Iterator[tuple[int, int, str]]:
    """The changes that do not lie within another one, which replaces them as well."""
    covered = 0
    for start, end, text in sorted(changes, key=lambda one: (one[0], -one[1])):
        if start >= covered:
            yield start, end, text
            covered = end
