"""On which line each key of a TOML file stands.

``tomllib`` tells the values and no places, and so does every other parser of Python that was
looked at (docs/decisions.md). This walks over a text that ``tomllib`` has accepted and writes
down where its keys are; it judges nothing.
"""

from __future__ import annotations

import re
from collections import Counter

Path = tuple[str | int, ...]
"""Keys, and positions in arrays."""

_BLANK = re.compile(r"(?:\s|#[^\n]*)*")
_KEY = re.compile(r"""[ \t]*(?:"((?:[^"\\\n]|\\.)*)"|'([^'\n]*)'|([A-Za-z0-9_-]+))[ \t]*""")
_STRING = re.compile(
    r'"""(?:[^\\]|\\.)*?"{3,5}|\'\'\'.*?\'{3,5}|"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'', re.DOTALL
)
_BARE = re.compile(r"[^\s,\]}#]+(?: \d[\d:.]+\S*)?")


def key_lines(text: str) -> dict[Path, int]:
    """The line, from 1, of each key and each element of an array, by its path."""
    walk = _Walk(text)
    walk.document()
    return walk.lines


class _Walk:
    def __init__(self, text: str) -> None:
        self.lines: dict[Path, int] = {}
        self._text = text
        self._at = 0
        self._arrays: Counter[Path] = Counter()

    def document(self) -> None:
        table: Path = ()
        while not self._skip_blank():
            if self._text.startswith("[[", self._at):
                self._at += 2
                name = self._within_arrays(self._key())
                table = (*name, self._arrays[name])
                self._arrays[name] += 1
                self._note_all(table)
                self._at += 2
            elif self._text[self._at] == "[":
                self._at += 1
                table = self._within_arrays(self._key())
                self._note_all(table)
                self._at += 1
            else:
                self._pair(table)

    def _pair(self, table: Path) -> None:
        start = self._at
        path = (*table, *self._key())
        for length in range(len(table) + 1, len(path) + 1):
            self._note(path[:length], start)
        self._at += 1
        self._value(path)

    def _value(self, path: Path) -> None:
        self._skip_blank()
        opening = self._text[self._at]
        if opening == "{":
            self._at += 1
            while not self._closes("}"):
                self._pair(path)
        elif opening == "[":
            self._at += 1
            number = 0
            while not self._closes("]"):
                self._note((*path, number))
                self._value((*path, number))
                number += 1
        else:
            found = _STRING.match(self._text, self._at) or _BARE.match(self._text, self._at)
            self._at = found.end() if found else len(self._text)

    def _closes(self, bracket: str) -> bool:
        if self._skip_blank():
            return True
        if self._text[self._at] == ",":
            self._at += 1
            self._skip_blank()
        if not self._text.startswith(bracket, self._at):
            return False
        self._at += 1
        return True

    def _key(self) -> Path:
        parts: list[str] = []
        while found := _KEY.match(self._text, self._at):
            parts.append(next(part for part in found.groups() if part is not None))
            self._at = found.end()
            if not self._text.startswith(".", self._at):
                break
            self._at += 1
        return tuple(parts)

    def _within_arrays(self, name: Path) -> Path:
        """A table below an array of tables belongs to its last element."""
        path: Path = ()
        for index, part in enumerate(name):
            path = (*path, part)
            if index < len(name) - 1 and self._arrays[path]:
                path = (*path, self._arrays[path] - 1)
        return path

    def _skip_blank(self) -> bool:
        """Go to what comes next; whether nothing does."""
        found = _BLANK.match(self._text, self._at)
        self._at = found.end() if found else self._at
        return self._at >= len(self._text)

    def _note_all(self, path: Path) -> None:
        for length in range(1, len(path) + 1):
            self._note(path[:length])

    def _note(self, path: Path, at: int | None = None) -> None:
        place = self._at if at is None else at
        self.lines.setdefault(path, 1 + self._text.count("\n", 0, place))
