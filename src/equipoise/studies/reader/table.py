"""Tables of a TOML file, read key by key: every error names the file, the line and the key."""

from __future__ import annotations

import math
import re
import shlex
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar

from equipoise.model.errors import UnusableInput
from equipoise.model.study import Keys, Place, Places

_BLANK = re.compile(r"(?:\s|#[^\n]*)*")
_KEY = re.compile(r"""[ \t]*(?:"((?:[^"\\\n]|\\.)*)"|'([^'\n]*)'|([A-Za-z0-9_-]+))[ \t]*""")

_STRING = re.compile(
    r'"""(?:[^\\]|\\.)*?"{3,5}|\'\'\'.*?\'{3,5}|"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'', re.DOTALL
)

_BARE = re.compile(r"[^\s,\]}#]+(?: \d[\d:.]+\S*)?")


def key_lines(text: str) -> dict[Keys, int]:
    """The line, from 1, of each key and each element of an array, by its path."""
    walk = _Walk(text)
    walk.document()
    return walk.lines


class _Walk:
    def __init__(self, text: str) -> None:
        self.lines: dict[Keys, int] = {}
        self._text = text
        self._at = 0
        self._arrays: Counter[Keys] = Counter()

    def document(self) -> None:
        table: Keys = ()
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

    def _pair(self, table: Keys) -> None:
        start = self._at
        path = (*table, *self._key())
        for length in range(len(table) + 1, len(path) + 1):
            self._note(path[:length], start)
        self._at += 1
        self._value(path)

    def _value(self, path: Keys) -> None:
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

    def _key(self) -> Keys:
        parts: list[str] = []
        while found := _KEY.match(self._text, self._at):
            parts.append(next(part for part in found.groups() if part is not None))
            self._at = found.end()
            if not self._text.startswith(".", self._at):
                break
            self._at += 1
        return tuple(parts)

    def _within_arrays(self, name: Keys) -> Keys:
        """A table below an array of tables belongs to its last element."""
        path: Keys = ()
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

    def _note_all(self, path: Keys) -> None:
        for length in range(1, len(path) + 1):
            self._note(path[:length])

    def _note(self, path: Keys, at: int | None = None) -> None:
        place = self._at if at is None else at
        self.lines.setdefault(path, 1 + self._text.count("\n", 0, place))


Read = TypeVar("Read")
_POSITION = " (at "
LARGEST_COUNT = 10**9
MOST_BYTES = 16 * 2**20
"""Of a study's file; the largest built-in one has 20 KB."""
_LARGEST_WHOLE = 10**300
"""Below the largest float, so that every number can be compared and printed."""
_SHORTER = "give a number that fits in 64 bits, as TOML asks for; a longer one is text in quotes"


@dataclass(frozen=True, slots=True)
class Table:
    """One table of a file."""

    places: Places
    values: Mapping[str, Any]
    path: Keys = ()
    """Where the table stands in the file."""
    asked: set[str] = field(default_factory=set)
    """The keys that were asked for so far: every other one is unknown."""

    @classmethod
    def of_file(cls, path: Path, shown: str) -> Table:
        """Read a whole file.

        Raises
        ------
        UnusableInput
            It cannot be read, or is no TOML.
        """
        try:
            # Some editors put a byte order mark in front.
            text = _content(path, shown).decode("utf-8-sig")
        except OSError as error:
            raise UnusableInput(
                f"{shown}: {error.strerror}", hint="name the file of a study"
            ) from None
        except UnicodeDecodeError as error:
            line = 1 + error.object.count(b"\n", 0, error.start)
            raise UnusableInput(
                f"{shown}:{line}: it is no UTF-8", hint="save it as UTF-8, as TOML asks for"
            ) from None
        try:
            values = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise _no_toml(shown, text, str(error)) from None
        except RecursionError:
            raise UnusableInput(
                f"{shown}: its arrays or tables stand in each other too deeply",
                hint="a study needs three levels at most: see docs/studies.md",
            ) from None
        except ValueError as error:
            # A whole number of thousands of digits, which Python refuses to read.
            raise UnusableInput(f"{shown}: {str(error).lower()}", hint=_SHORTER) from None
        found = cls(Places(shown, key_lines(text)), values)
        for keys in _too_long_numbers(values):
            raise found.places.key(*keys).fail("it has hundreds of digits", _SHORTER)
        return found

    def has(self, key: str) -> bool:
        """Whether the key is there."""
        self.asked.add(key)
        return key in self.values

    def keys(self) -> tuple[str, ...]:
        """The keys that nobody has asked for yet, in the order of the file."""
        return tuple(key for key in self.values if key not in self.asked)

    def fail(self, key: str | None, what: str, hint: str) -> UnusableInput:
        """The error for a key of this table, or for the table itself."""
        place = self.places.table(*self.path) if key is None else self.place(key)
        return place.fail(what, hint)

    def place(self, key: str) -> Place:
        """Where a key of this table stands."""
        return self.places.key(*self.path, key)

    def text(self, key: str) -> str | None:
        """A string."""
        value: str | None = self._of_type(key, str, "a string")
        return None if value is None else self._without_null(key, value)

    def truth(self, key: str) -> bool | None:
        """True or false."""
        value: bool | None = self._of_type(key, bool, "true or false")
        return value

    def number(
        self, key: str, *, above: float = -math.inf, least: float = -math.inf
    ) -> float | None:
        """A finite number, above the one bound and at least the other."""
        value = self._of_type(key, (int, float), "a number")
        if value is None:
            return None
        value = float(value)
        if not math.isfinite(value) or value <= above or value < least:
            bound = f"above {above:g}" if above > -math.inf else f"from {least:g} up"
            raise self.fail(key, f"it is {value:g}", f"give a number {bound}")
        return value

    def whole(self, key: str, *, least: int, most: int = LARGEST_COUNT) -> int | None:
        """A whole number from ``least`` up to ``most``."""
        value: int | None = self._of_type(key, int, "a whole number")
        if value is not None and value < least:
            raise self.fail(key, f"it is {value}", f"give a whole number from {least} up")
        if value is not None and value > most:
            raise self.fail(key, f"it is {value}", f"give a whole number from {least} to {most}")
        return value

    def texts(self, key: str) -> tuple[str, ...] | None:
        """A string, or an array of strings."""
        value = self._of_type(key, (str, list), "a string or an array of strings")
        if isinstance(value, str):
            return (self._without_null(key, value),)
        return None if value is None else self._all_text(key, value)

    def words(self, key: str) -> tuple[str, ...] | None:
        """A command: an array of words, or a string that is split as a POSIX shell splits words."""
        value = self._of_type(key, (str, list), "a command: a string or an array of strings")
        if value is None:
            return None
        if isinstance(value, list):
            words = self._all_text(key, value)
        else:
            try:
                words = tuple(shlex.split(self._without_null(key, value)))
            except ValueError as error:
                raise self.fail(
                    key, f"it cannot be split into words: {str(error).lower()}", "close the quote"
                ) from None
        if not words or not words[0]:
            raise self.fail(key, "it is empty", "write the program that is to be run")
        return words

    def values_of(self, key: str) -> tuple[str, ...] | None:
        """An array of strings and numbers, as text; each stands there once."""
        value = self._of_type(key, list, "an array of strings or numbers")
        if value is None:
            return None
        found: list[str] = []
        for one in value:
            if (text := self._value_text(key, one)) in found:
                raise self.fail(key, f"{text} stands there twice", "leave one of them out")
            found.append(text)
        return tuple(found)

    def one_or_more(self, key: str) -> tuple[str, ...]:
        """A string or number, or an array of them, under a key that is there."""
        value = self.values[key]
        if isinstance(value, list):
            return self.values_of(key) or ()
        return (self._value_text(key, value),)

    def mapping(self, key: str) -> dict[str, str] | None:
        """The variables of an environment: a table of strings and numbers, as text."""
        value = self._of_type(key, dict, "a table")
        if value is None:
            return None
        for name, one in value.items():
            if isinstance(one, bool) or not isinstance(one, str | int | float):
                raise self.table(key).fail(
                    name, "it is neither a string nor a number", f'as in {name} = "1"'
                )
            if "\0" in f"{name}{one}":
                raise self.table(key).fail(
                    name, "it holds a null byte", "no program can be given one"
                )
            if not name or "=" in name:
                raise self.table(key).fail(
                    name, f"no variable can be called {name!r}", 'as in env = { NAME = "value" }'
                )
        return {name: str(one) for name, one in value.items()}

    def table(self, key: str) -> Table:
        """A table within this one; empty if it is not there."""
        value = self._of_type(key, dict, "a table")
        return self._within((key,), value or {})

    def tables(self, key: str) -> tuple[Table, ...]:
        """An array of tables."""
        value = self._of_type(key, list, f"an array of tables: [[{key}]]")
        if value is None:
            return ()
        if not all(isinstance(one, dict) for one in value):
            raise self.fail(key, "it is no array of tables", f"write [[{key}]]")
        return tuple(self._within((key, number), one) for number, one in enumerate(value))

    def required(self, key: str, read: Callable[[str], Read | None], example: str) -> Read:
        """What ``read`` finds under a key that has to be there."""
        found = read(key)
        if found is None:
            raise self.fail(None, f"{key} is missing", f"as in {example}")
        return found

    def finish(self) -> None:
        """Refuse what nobody asked for.

        Raises
        ------
        UnusableInput
            It says what there is, and what was probably meant.
        """
        for key in self.keys():
            hint = one_of(key, sorted(self.asked))
            if isinstance(self.values[key], dict):
                raise self._within((key,), {}).fail(None, "there is no such table", hint)
            raise self.fail(key, "there is no such key", hint)

    def _within(self, keys: tuple[str | int, ...], values: Mapping[str, Any]) -> Table:
        return Table(self.places, values, (*self.path, *keys))

    def _of_type(self, key: str, kinds: Any, words: str) -> Any:
        if not self.has(key):
            return None
        value = self.values[key]
        allowed = kinds if isinstance(kinds, tuple) else (kinds,)
        # To Python, true is a whole number; to a reader of TOML it is none.
        if not isinstance(value, allowed) or (isinstance(value, bool) and bool not in allowed):
            raise self.fail(key, f"it is {_kind(value)}, not {words}", f"give {words}")
        return value

    def _value_text(self, key: str, value: Any) -> str:
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise self.fail(key, f"{value!r} is neither a string nor a number", "write a value")
        return self._without_null(key, str(value))

    def _without_null(self, key: str, text: str) -> str:
        if "\0" in text:
            raise self.fail(key, "it holds a null byte", "no program can be given one")
        return text

    def _all_text(self, key: str, values: Sequence[Any]) -> tuple[str, ...]:
        for value in values:
            if not isinstance(value, str):
                raise self.fail(key, f"it holds {_kind(value)}", f'write "{value}"')
            self._without_null(key, value)
        return tuple(values)


def one_of(wrong: str, right: Sequence[str]) -> str:
    """What was probably meant, and what there is."""
    close = get_close_matches(wrong, right, 1)
    meant = f"is it {close[0]}? " if close else ""
    return f"{meant}there are {', '.join(right)}" if right else f"leave {wrong} out"


def _kind(value: Any) -> str:
    names = {
        str: "a string",
        bool: "true or false",
        int: "a whole number",
        float: "a number",
        list: "an array",
        dict: "a table",
    }
    return names.get(type(value), "a date or a time")


def _no_toml(shown: str, text: str, said: str) -> UnusableInput:
    what, _, place = said.rpartition(_POSITION)
    if place.startswith("line "):
        line = int(place.removeprefix("line ").split(",")[0])
    else:
        line = 1 + text.rstrip("\n").count("\n")
    twice = what.startswith(("Cannot overwrite", "Cannot declare"))
    words = "this name stands there twice" if twice else f"it is no TOML: {what or said}"
    hint = "leave one of them out" if twice else "see https://toml.io for the form"
    return UnusableInput(f"{shown}:{line}: {words}", hint=hint)


def _content(path: Path, shown: str) -> bytes:
    """The bytes of a regular file of a sane size: anything else would be read for ever.

    Raises
    ------
    OSError
        It cannot be read.
    UnusableInput
        It is no regular file, or too large.
    """
    if path.exists() and not path.is_file() and not path.is_dir():
        raise UnusableInput(f"{shown}: it is no regular file", hint="name the file of a study")
    with path.open("rb") as file:
        content = file.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise UnusableInput(
            f"{shown}: it is larger than {MOST_BYTES >> 20} MiB", hint="name the file of a study"
        )
    return content


def _too_long_numbers(value: Any, keys: Keys = ()) -> Iterator[Keys]:
    """Where whole numbers stand that nothing can be computed with."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _too_long_numbers(inner, (*keys, key))
    elif isinstance(value, list):
        for inner in value:
            yield from _too_long_numbers(inner, keys)
    elif isinstance(value, int) and abs(value) > _LARGEST_WHOLE:
        yield keys
