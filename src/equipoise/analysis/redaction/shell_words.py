"""Splitting a shell's line into simple commands, with the place of every word.

This reads what POSIX shells and bash read (POSIX.1-2024, section 2), well enough to find where a
line sets a variable. A line that no shell accepts is split as far as it goes, without an error.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

DEEPEST = 32
"""Substitutions within substitutions that are read; no line that somebody writes has more."""

_SEPARATORS = ";&|()\n#"
_BLANKS = " \t\r"
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "e": "\x1b", "f": "\f"}
_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{1,2})|([0-7]{1,3})|(.))", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Word:
    """One word of a shell's line."""

    start: int
    end: int
    """Where the word ends in the line, exclusive."""
    text: str
    """The word without its quotes; substitutions stay as they are written."""


def simple_commands(line: str) -> Iterator[tuple[Word, ...]]:
    """Split a line at operators and comments; commands in substitutions come by themselves.

    The targets of redirections are left out.
    """
    yield from _commands(line, 0, len(line), DEEPEST)


def _commands(line: str, at: int, end: int, deeper: int) -> Iterator[tuple[Word, ...]]:
    words: list[Word] = []
    inner: list[tuple[int, int]] = []
    is_target = False
    while at < end:
        character = line[at]
        if character in _BLANKS:
            at += 1
        elif character in _SEPARATORS:
            if words:
                yield tuple(words)
            words, is_target = [], False
            at += 1
        elif character in "<>" and line[at + 1 : at + 2] != "(":
            if words and words[-1].end == at and words[-1].text.isdigit():
                del words[-1]
            while at < end and line[at] in "<>&|-":
                at += 1
            is_target = True
        else:
            word, inside = _word(line, at, end)
            inner.extend(inside)
            if not is_target:
                words.append(word)
            is_target = False
            at = word.end
    if words:
        yield tuple(words)
    for first, last in inner if deeper else ():
        yield from _commands(line, first, last, deeper - 1)


def _word(line: str, start: int, end: int) -> tuple[Word, list[tuple[int, int]]]:
    """Read one word; also give the places of the commands that are substituted in it."""
    at = start
    text: list[str] = []
    inner: list[tuple[int, int]] = []
    while at < end:
        character = line[at]
        two = line[at : at + 2]
        if two in ("$(", "<(", ">("):
            close = _closing(line, at + 2, end, ")")
            inner.append((at + 2, close))
        elif character == "`":
            close = _closing(line, at + 1, end, "`")
            inner.append((at + 1, close))
        elif two == "${":
            close = _closing(line, at + 2, end, "}")
        elif character == "(" and at > start and line[at - 1] == "=":
            # The values of a list in bash: NAME=(a b).
            close = _closing(line, at + 1, end, ")")
        elif two == "$'":
            close = _closing_quote(line, at + 2, end, "'")
            text.append(_ESCAPE.sub(_unescaped, line[at + 2 : close]))
            at = close + 1
            continue
        elif character == "'":
            close = line.find("'", at + 1, end)
            close = end if close < 0 else close
            text.append(line[at + 1 : close])
            at = close + 1
            continue
        elif character == '"' or two == '$"':
            first = at + len(two if two == '$"' else character)
            close = _closing_quote(line, first, end, '"')
            inner.extend(_substitutions(line, first, close))
            text.append(re.sub(r"\\([\"\\$`\n])", r"\1", line[first:close]))
            at = close + 1
            continue
        elif character == "\\":
            text.append(line[at + 1 : at + 2].removesuffix("\n"))
            at += 2
            continue
        elif character in _BLANKS or character in "<>" or (character in _SEPARATORS[:-1]):
            break
        else:
            text.append(character)
            at += 1
            continue
        text.append(line[at : close + 1])
        at = close + 1
    return Word(start, min(at, end), "".join(text)), inner


def _closing(line: str, at: int, end: int, closing: str) -> int:
    """The place of the sign that closes what is open at ``at``; the end without one."""
    opening = {")": "(", "}": "{"}.get(closing)
    depth = 1
    while at < end:
        character = line[at]
        if character == "\\":
            at += 1
        elif character == "'":
            close = line.find("'", at + 1, end)
            at = end if close < 0 else close
        elif character == '"':
            at = _closing_quote(line, at + 1, end, '"')
        elif character == closing:
            depth -= 1
            if not depth:
                return at
        elif character == opening:
            depth += 1
        at += 1
    return end


def _closing_quote(line: str, at: int, end: int, quote: str) -> int:
    while at < end and line[at] != quote:
        at += 2 if line[at] == "\\" else 1
    return min(at, end)


def _substitutions(line: str, at: int, end: int) -> Iterator[tuple[int, int]]:
    """The places of the commands that are substituted between double quotes."""
    while at < end:
        if line[at] == "\\":
            at += 2
        elif line.startswith("$(", at):
            close = _closing(line, at + 2, end, ")")
            yield (at + 2, close)
            at = close + 1
        elif line[at] == "`":
            close = _closing(line, at + 1, end, "`")
            yield (at + 1, close)
            at = close + 1
        else:
            at += 1


def _unescaped(found: re.Match[str]) -> str:
    hexadecimal, octal, letter = found.groups()
    if hexadecimal:
        return chr(int(hexadecimal, 16))
    return chr(int(octal, 8)) if octal else _ESCAPES.get(letter, letter)
