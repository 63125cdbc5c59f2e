"""Assignments of environment variables in commands and lines for a shell, and their redaction."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from typing import Literal

from msgspec import Struct

MAX_DEPTH = 32
"""Maximum depth of substitutions within substitutions; no line written by hand is deeper."""
_SEPARATORS = ";&|()\n#"
_BLANKS = " \t\r"
_CLOSING_SIGNS = {"$(": ")", "<(": ")", ">(": ")", "=(": ")", "${": "}", "`": "`"}
"""Sign that closes each opening; ``=(`` opens the values of a list in bash."""
_SUBSTITUTIONS = frozenset(("$(", "<(", ">(", "`"))
_PIECE = re.compile(
    r"\$'(?P<ansi>(?:\\.?|[^'\\])*)'?|'(?P<single>[^']*)'?|"
    r'\$?"(?P<double>(?:\\.?|[^"\\])*)"?|\\(?P<escaped>.?)|(?P<plain>[^ \t\r\n;&|()<>])',
    re.DOTALL,
)
"""One quoted piece of a word, or one character of it."""
_SKIPPED = re.compile(r"\\.?|'[^']*'?|\"(?:\\.?|[^\"\\])*\"?|.", re.DOTALL)
_IN_DOUBLE_QUOTES = re.compile(r"\\.|\$\(|`", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "e": "\x1b", "f": "\f"}
_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{1,2})|([0-7]{1,3})|(.))", re.DOTALL)


class Word(Struct, frozen=True):
    """One word of a shell's line."""

    start: int
    end: int
    """Index in the line after the word's last character."""
    text: str
    """Text of the word without its quotes; substitutions stay unchanged."""


def simple_commands(line: str) -> Iterator[tuple[Word, ...]]:
    """Split a line at operators and comments; commands in substitutions follow separately.

    The targets of redirections are left out.
    """
    yield from _commands(line, 0, len(line), MAX_DEPTH)


def _commands(line: str, at: int, end: int, depth: int) -> Iterator[tuple[Word, ...]]:
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
    for first, last in inner if depth else ():
        yield from _commands(line, first, last, depth - 1)


def _word(line: str, start: int, end: int) -> tuple[Word, list[tuple[int, int]]]:
    """Read one word; also return the places of the commands substituted in it."""
    at = start
    text: list[str] = []
    inner: list[tuple[int, int]] = []
    while at < end:
        opening = next(
            (sign for sign in (line[at : at + 2], line[at]) if sign in _CLOSING_SIGNS), None
        )
        if opening is not None:
            first = at + len(opening)
            close = _closing_index(line, first, end, _CLOSING_SIGNS[opening])
            if opening in _SUBSTITUTIONS:
                inner.append((first, close))
            text.append(line[at : close + 1])
            at = close + 1
            continue
        piece = _PIECE.match(line, at, end)
        if piece is None:
            break
        match piece.lastgroup:
            case "ansi":
                text.append(_ESCAPE.sub(_unescape, piece["ansi"]))
            case "double":
                inner.extend(_substitutions(line, *piece.span("double")))
                text.append(re.sub(r"\\([\"\\$`\n])", r"\1", piece["double"]))
            case "escaped":
                text.append(piece["escaped"].removesuffix("\n"))
            case _:
                text.append(piece["single"] or piece["plain"] or "")
        at = piece.end()
    return Word(start, min(at, end), "".join(text)), inner


def _closing_index(line: str, at: int, end: int, closing: str) -> int:
    """Return the index of the sign that closes an opening before ``at``; the end without one."""
    opening = {")": "(", "}": "{"}.get(closing)
    depth = 1
    for token in _SKIPPED.finditer(line, at, end):
        depth += (token[0] == opening) - (token[0] == closing)
        if not depth:
            return token.start()
    return end


def _substitutions(line: str, at: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the places of the commands substituted between double quotes."""
    while opening := _IN_DOUBLE_QUOTES.search(line, at, end):
        at = opening.end()
        if closing := _CLOSING_SIGNS.get(opening[0]):
            close = _closing_index(line, at, end, closing)
            yield at, close
            at = close + 1


def _unescape(escape: re.Match[str]) -> str:
    hexadecimal, octal, letter = escape.groups()
    if hexadecimal:
        return chr(int(hexadecimal, 16))
    return chr(int(octal, 8)) if octal else _ESCAPES.get(letter, letter)


Replace = Callable[[str, str], str | None]
"""Function from a variable's name and value to its replacement, or to ``None``."""
_Kind = Literal["assignment", "line"]
_ASSIGNMENT = re.compile(r"(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?P<sign>\+?=)")
_REFERENCE = re.compile(r"\"?\$(?:[A-Za-z_][A-Za-z0-9_]*|\{[A-Za-z_][A-Za-z0-9_]*\})\"?")
"""Reference to another variable, which is not a value of its own."""

_KEYWORDS = frozenset(
    ("{", "}", "!", "if", "then", "elif", "else", "do", "while", "until", "time", "coproc")
)
_DECLARING_BUILTINS = frozenset(("export", "declare", "typeset", "local", "readonly", "alias"))
_SETTING_PROGRAMS = frozenset(("env", "sudo", "doas"))
_OPTIONS_WITH_A_WORD = frozenset(("-u", "-C", "-g", "-h", "-p", "--unset", "--chdir", "--user"))
_PROGRAMS_WITH_LINE = frozenset(
    ("sh", "bash", "dash", "ash", "ksh", "mksh", "zsh", "busybox", "su", "runuser", "flock")
)
_BUILTINS_WITH_LINES = frozenset(("eval", "trap"))
_LINE_OPTION = re.compile(r"-[A-Za-z]*c|--command")
_SPLIT_OPTION = re.compile(r"-[A-Za-z]*S|--split-string")


def replace_values(line: str, replace: Replace) -> str:
    """Replace the values of the variables that a shell's line sets."""
    changes: list[tuple[int, int, str]] = []
    for words in simple_commands(line):
        changes.extend(_changes(line, words, replace))
    pieces: list[str] = []
    at = 0
    for start, end, text in _outermost(changes):
        pieces += (line[at:start], text)
        at = end
    return "".join((*pieces, line[at:]))


def replace_command_values(words: Sequence[str], replace: Replace) -> tuple[str, ...]:
    """Replace the values of the variables that the words of a command set."""
    changed = list(words)
    for place, kind in _settings_and_lines(words):
        if kind == "line":
            changed[place] = replace_values(words[place], replace)
            continue
        name, sign, value = _split_assignment(words[place])
        text = replace(name, value) if value else None
        if text is not None:
            changed[place] = f"{name}{sign}{text}"
    return tuple(changed)


def _changes(line: str, words: Sequence[Word], replace: Replace) -> Iterator[tuple[int, int, str]]:
    """Yield the start, the end and the replacement of each word that changes."""
    first = 0
    while first < len(words) and words[first].text in _KEYWORDS:
        first += 1
    while first < len(words) and _ASSIGNMENT.match(line, words[first].start):
        yield from _assignment_changes(line, words[first], replace)
        first += 1
    rest = words[first:]
    if rest and rest[0].text in _DECLARING_BUILTINS:
        for word in rest[1:]:
            if _ASSIGNMENT.match(word.text):
                yield from _assignment_changes(line, word, replace)
        return
    for place, kind in _settings_and_lines([word.text for word in rest]):
        word = rest[place]
        if kind == "assignment":
            yield from _assignment_changes(line, word, replace)
            continue
        changed = replace_values(word.text, replace)
        if changed != word.text:
            yield word.start, word.end, shlex.quote(changed)


def _assignment_changes(line: str, word: Word, replace: Replace) -> Iterator[tuple[int, int, str]]:
    name, sign, value = _split_assignment(word.text)
    written = line[word.start : word.end].removeprefix(f"{name}{sign}")
    if not value or _REFERENCE.fullmatch(written):
        return
    text = replace(name, value)
    if text is not None:
        yield word.start, word.end, f'{name}{sign}"{text}"'


def _split_assignment(text: str) -> tuple[str, str, str]:
    """Return the name, the sign (``=`` or ``+=``) and the value of an assignment."""
    assignment = _ASSIGNMENT.match(text)
    assert assignment is not None, "only an assignment is taken apart"
    return assignment["name"], assignment["sign"], text[assignment.end() :]


def _settings_and_lines(words: Sequence[str]) -> Iterator[tuple[int, _Kind]]:
    """Yield the places of arguments that set a variable or are a line for a shell."""
    program = ""
    is_setting = False
    has_line_next = False
    for place, word in enumerate(words):
        before = words[place - 1] if place else ""
        if has_line_next:
            yield place, "line"
            has_line_next = program in _BUILTINS_WITH_LINES
        elif is_setting and _ASSIGNMENT.match(word):
            yield place, "assignment"
        elif is_setting and _SPLIT_OPTION.fullmatch(word):
            has_line_next = True
        elif program in _PROGRAMS_WITH_LINE and _LINE_OPTION.fullmatch(word):
            has_line_next = True
        elif not (is_setting and (word.startswith("-") or before in _OPTIONS_WITH_A_WORD)):
            name = os.path.basename(word)
            if name in _SETTING_PROGRAMS | _PROGRAMS_WITH_LINE | _BUILTINS_WITH_LINES:
                program = name
                has_line_next = name in _BUILTINS_WITH_LINES
            is_setting = name in _SETTING_PROGRAMS


def _outermost(changes: Sequence[tuple[int, int, str]]) -> Iterator[tuple[int, int, str]]:
    """Yield the changes that are not within another change, which replaces them as well."""
    covered = 0
    for start, end, text in sorted(changes, key=lambda change: (change[0], -change[1])):
        if start >= covered:
            yield start, end, text
            covered = end


_LINE_OPTIONS = frozenset(("--build", "--setup", "--prepare", "--conclude", "--cleanup"))
"""Options of Equipoise that take a line for a shell."""
_NAMED_COMMAND_OPTIONS = frozenset(("--bench", "--try-command"))
_SHELL_OPTIONS = frozenset(("--shell", "--default-shell", "-S"))
"""Options that let a shell run the commands."""


def replace_command_line_values(words: Sequence[str], replace: Replace) -> tuple[str, ...]:
    """Replace the values that the words of a command line of Equipoise set.

    Its commands are single words, or the words after ``--``.
    """
    first = words.index("--") + 1 if "--" in words else len(words)
    has_shell = not _SHELL_OPTIONS.isdisjoint(words[:first])
    typed = (*words[:first], *replace_command_values(words[first:], replace))
    shown: list[str] = []
    for option, word in zip(("", *words), typed, strict=False):
        if option in _NAMED_COMMAND_OPTIONS:
            shown.append(replace_named_command_values(word, replace))
        elif has_shell or option in _LINE_OPTIONS:
            shown.append(replace_values(word, replace))
        else:
            shown.append(_replace_text_values(word, replace))
    return tuple(shown)


def _replace_text_values(text: str, replace: Replace) -> str:
    """Replace the values that a text sets, if it is a command."""
    try:
        words = tuple(shlex.split(text))
    except ValueError:
        return text
    shown = replace_command_values(words, replace)
    if shown == words:
        return text
    return " ".join(
        new if new != old and " " not in new else shlex.quote(new)
        for old, new in zip(words, shown, strict=True)
    )


def replace_named_command_values(text: str, replace: Replace) -> str:
    """Replace the values that the command in ``NAME=COMMAND`` sets."""
    name, equals, line = text.partition("=")
    command = tuple(shlex.split(line))
    changed = replace_command_values(command, replace)
    return text if changed == command else f"{name}{equals}{shlex.join(changed)}"
