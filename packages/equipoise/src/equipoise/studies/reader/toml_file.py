"""A TOML file whose errors name the file, the line and the key.

tomllib reads the values, and `Table.read_as` checks each value against the field of a form, by
msgspec. ``key_lines`` finds the line of every key for the messages.
"""

from __future__ import annotations

import math
import re
import shlex
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Struct, structs

from equipoise.model.errors import UnusableInput
from equipoise.model.study import Keys, Place, Places

MAX_BYTES = 16 * 2**20
"""Maximum size of a study's file; the largest built-in file has 20 KB."""
_MAX_WHOLE_NUMBER = 10**300
"""Maximum whole number, below the largest float, so that it can be compared and printed."""
_SHORTER = "give a number that fits in 64 bits, as TOML requires; put a longer one in quotes"
_KINDS = {
    "str": "a string",
    "bool": "true or false",
    "int": "a whole number",
    "float": "a number",
    "list": "an array",
    "dict": "a table",
}
"""Names of the types of TOML, by the names in Python."""


class Form(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The keys of one table, with their types.

    A field's ``msgspec.Meta`` may have a ``description`` of valid values, and an example line for
    the message about a missing key.
    """


AnyForm = TypeVar("AnyForm", bound=Form)


class Table(Struct, frozen=True):
    """One table of a file."""

    places: Places
    values: Mapping[str, Any]
    path: Keys = ()
    """Keys that lead to the table from the top of the file."""

    def read_as(self, form: type[AnyForm]) -> AnyForm:
        """Check the values, and return them as a form.

        Raise `UnusableInput` if a key is unknown or missing, or if its value has the wrong type or
        is out of bounds.
        """
        types = get_type_hints(form, include_extras=True)
        for key, value in self.values.items():
            if key not in types:
                raise self.unknown(key, one_of(key, sorted(types)))
            if not _fits(value, types[key]):
                raise self._misfit(key, form)
        for field in structs.fields(form):
            if field.required and field.name not in self.values:
                hint = f"as in {_example(form, field.name)}"
                raise self.fail(None, f"{field.name} is missing", hint)
        values = msgspec.convert(self.values, form)
        for key in form.__struct_fields__:
            value = getattr(values, key)
            if isinstance(value, float) and not math.isfinite(value):
                raise self.fail(key, f"it is {value:g}", f"give {_description(form, key)}")
        return values

    def place(self, key: str) -> Place:
        """Return the place of a key of this table."""
        return self.places.key(*self.path, key)

    def fail(self, key: str | None, what: str, hint: str) -> UnusableInput:
        """Return the error for a key of this table, or for the table itself."""
        place = self.places.table(*self.path) if key is None else self.place(key)
        return place.fail(what, hint)

    def choose(self, key: str, value: str, choices: Sequence[str], what: str) -> None:
        """Refuse a value of a key that is not among the choices: ``there is no kind 'x'``."""
        if value not in choices:
            raise self.fail(key, f"{what} {value!r}", one_of(value, choices))

    def table(self, key: str) -> Table:
        """Return a table within this table; empty if the key is missing."""
        value = self.values.get(key, {})
        if not isinstance(value, dict):
            raise self.fail(key, f"it is {_kind(value)}, not a table", "give a table")
        return Table(self.places, value, (*self.path, key))

    def tables(self, key: str) -> tuple[Table, ...]:
        """Return the tables of an array of tables."""
        return tuple(
            Table(self.places, values, (*self.path, key, number))
            for number, values in enumerate(self.values.get(key, ()))
        )

    def texts(self, key: str) -> tuple[str, ...]:
        """Return a string or an array of strings; empty if the key is missing."""
        value = self.values.get(key, ())
        return (value,) if isinstance(value, str) else tuple(value)

    def command(self, key: str) -> tuple[str, ...] | None:
        """Return the words of a command; a string is split like in a POSIX shell."""
        value = self.values.get(key)
        if value is None:
            return None
        try:
            words = tuple(shlex.split(value) if isinstance(value, str) else value)
        except ValueError as error:
            raise self.fail(
                key, f"it cannot be split into words: {str(error).lower()}", "close the quote"
            ) from None
        if not words or not words[0]:
            raise self.fail(key, "it is empty", "write the program to run")
        return words

    def names(self, key: str) -> tuple[str, ...]:
        """Return the names of levels: a string or number, or an array of them."""
        value = self.values.get(key, [])
        names: list[str] = []
        for name in value if isinstance(value, list) else [value]:
            if isinstance(name, bool) or not isinstance(name, str | int | float):
                raise self.fail(key, f"{name!r} is neither a string nor a number", "write a value")
            if str(name) in names:
                raise self.fail(key, f"{name} appears twice", "leave one of them out")
            names.append(str(name))
        return tuple(names)

    def environment(self, key: str) -> dict[str, str]:
        """Return the variables of an environment: a table of strings and numbers."""
        table = self.table(key)
        for name, value in table.values.items():
            if isinstance(value, bool) or not isinstance(value, str | int | float):
                raise table.fail(name, "it is neither a string nor a number", f'as in {name} = "1"')
            if not name or "=" in name:
                raise table.fail(
                    name, f"no variable can be called {name!r}", 'as in env = { NAME = "value" }'
                )
        return {name: str(value) for name, value in table.values.items()}

    def _misfit(self, key: str, form: type[Form]) -> UnusableInput:
        """Return the error for a value that its field does not accept."""
        value, description = self.values[key], _description(form, key)
        accepted = tuple(_alternatives(get_type_hints(form)[key]))
        for alternative in accepted:
            if get_origin(alternative) is list and isinstance(value, list):
                (of_element,) = get_args(alternative)
                element = next(part for part in value if not _fits(part, of_element))
                hint = f"give {description}" if description else f'write "{element}"'
                return self.fail(key, f"it contains {_kind(element)}", hint)
            if get_origin(alternative) is Literal and isinstance(value, str):
                hint = one_of(value, get_args(alternative))
                return self.fail(key, f"there is no {key} {value!r}", hint)
        kinds = [_kind_of_type(alternative) for alternative in accepted]
        # A whole number is also a number.
        if _kind(value) in kinds or (_kind(value) == _KINDS["int"] and _KINDS["float"] in kinds):
            return self.fail(key, f"it is {value}", f"give {description}")
        expected = description or kinds[0]
        return self.fail(key, f"it is {_kind(value)}, not {expected}", f"give {expected}")

    def unknown(self, key: str, hint: str) -> UnusableInput:
        """Return the error for an unknown key or table."""
        if isinstance(self.values[key], dict):
            return self.table(key).fail(None, "there is no such table", hint)
        return self.fail(key, "there is no such key", hint)


def read_toml(path: Path, name: str) -> Table:
    """Read a whole file.

    Raise `UnusableInput` if the file cannot be read, is not TOML, or has a value that no study can
    use.

    Parameters
    ----------
    name
        Name of the file in errors.
    """
    try:
        # Some editors write a byte order mark.
        text = _content(path, name).decode("utf-8-sig")
    except OSError as error:
        raise UnusableInput(f"{name}: {error.strerror}", hint="name the file of a study") from None
    except UnicodeDecodeError as error:
        line = 1 + error.object.count(b"\n", 0, error.start)
        raise UnusableInput(
            f"{name}:{line}: it is not UTF-8", hint="save it as UTF-8, as TOML requires"
        ) from None
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise _not_toml(name, text, str(error)) from None
    except RecursionError:
        raise UnusableInput(
            f"{name}: its arrays or tables are nested too deeply",
            hint="a study needs three levels at most: see docs/reference/study.md",
        ) from None
    except ValueError as error:
        # Python refuses to read a whole number with thousands of digits.
        raise UnusableInput(f"{name}: {str(error).lower()}", hint=_SHORTER) from None
    places = Places(name, key_lines(text))
    for keys, value in _leaves(values):
        if isinstance(value, int) and abs(value) > _MAX_WHOLE_NUMBER:
            raise places.key(*keys).fail("it has hundreds of digits", _SHORTER)
        if isinstance(value, str) and "\0" in value:
            raise places.key(*keys).fail("it contains a null byte", "leave out the null byte")
    return Table(places, values)


def one_of(wrong: str, choices: Sequence[str]) -> str:
    """Return a hint: the closest choice, and all choices."""
    close = get_close_matches(wrong, choices, 1)
    guess = f"is it {close[0]}? " if close else ""
    return f"{guess}there are {', '.join(choices)}" if choices else f"leave {wrong} out"


def _content(path: Path, name: str) -> bytes:
    """Return the bytes of a regular file of limited size; a device could be endless."""
    if path.exists() and not path.is_file() and not path.is_dir():
        raise UnusableInput(f"{name}: it is not a regular file", hint="name the file of a study")
    with path.open("rb") as file:
        content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise UnusableInput(
            f"{name}: it is larger than {MAX_BYTES >> 20} MiB", hint="name the file of a study"
        )
    return content


def _not_toml(name: str, text: str, message: str) -> UnusableInput:
    what, _, place = message.rpartition(" (at ")
    if place.startswith("line "):
        line = int(place.removeprefix("line ").split(",")[0])
    else:
        line = 1 + text.rstrip("\n").count("\n")
    if what.startswith(("Cannot overwrite", "Cannot declare")):
        return UnusableInput(
            f"{name}:{line}: the key or table on this line is defined twice",
            hint="remove one of the two definitions",
        )
    return UnusableInput(
        f"{name}:{line}: it is not TOML: {what or message}",
        hint="see https://toml.io for the format",
    )


def _leaves(value: Any, keys: Keys = ()) -> Iterator[tuple[Keys, Any]]:
    """Yield each value that is neither a table nor an array, with its path of keys."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield (*keys, key), key
            yield from _leaves(inner, (*keys, key))
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from _leaves(inner, (*keys, number) if isinstance(inner, dict) else keys)
    else:
        yield keys, value


_DATE = "a date or a time"


def _kind(value: Any) -> str:
    return _KINDS.get(type(value).__name__, _DATE)


def _kind_of_type(alternative: Any) -> str:
    """Return the name of the values of a type."""
    origin = get_origin(alternative) or alternative
    return _KINDS["str" if origin is Literal else origin.__name__]


def _fits(value: Any, annotation: Any) -> bool:
    """Return whether a value has a type and is within its bounds."""
    try:
        msgspec.convert(value, annotation)
    except msgspec.ValidationError:
        return False
    return True


def _alternatives(annotation: Any) -> Iterator[Any]:
    """Yield the types that a field accepts, without ``None``, which TOML does not have."""
    if get_origin(annotation) in (Union, UnionType):
        for alternative in get_args(annotation):
            yield from _alternatives(alternative)
    elif annotation is not NoneType:
        yield annotation


BasePart = TypeVar("BasePart")


def _parts(form: type[Form], key: str, kind: type[BasePart]) -> Iterator[BasePart]:
    """Yield the parts of one kind of a field's annotation, the outermost first."""
    waiting = [get_type_hints(form, include_extras=True)[key]]
    while waiting:
        annotation = waiting.pop(0)
        if isinstance(annotation, kind):
            yield annotation
        waiting.extend(get_args(annotation))


def _description(form: type[Form], key: str) -> str:
    """Return the form's description of a key; empty if there is none."""
    metas = _parts(form, key, msgspec.Meta)
    return next((meta.description for meta in metas if meta.description), "")


def _example(form: type[Form], key: str) -> str:
    metas = _parts(form, key, msgspec.Meta)
    return next((str(meta.examples[0]) for meta in metas if meta.examples), f"{key} = …")


_BLANK = re.compile(r"(?:\s|#[^\n]*)*")
_KEY = re.compile(r"""[ \t]*(?:"((?:[^"\\\n]|\\.)*)"|'([^'\n]*)'|([A-Za-z0-9_-]+))[ \t]*""")

_STRING = re.compile(
    r'"""(?:[^\\]|\\.)*?"{3,5}|\'\'\'.*?\'{3,5}|"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'', re.DOTALL
)

_BARE = re.compile(r"[^\s,\]}#]+(?: \d[\d:.]+\S*)?")


def key_lines(text: str) -> dict[Keys, int]:
    """Return the line, from 1, of each key and each element of an array, by its path."""
    return _Walk(text).document()


class _Walk:
    def __init__(self, text: str) -> None:
        self.lines: dict[Keys, int] = {}
        self._text = text
        self._at = 0
        self._arrays: Counter[Keys] = Counter()

    def document(self) -> dict[Keys, int]:
        table: Keys = ()
        while not self._skip_blank():
            if self._text[self._at] != "[":
                self._pair(table)
                continue
            brackets = 2 if self._text.startswith("[[", self._at) else 1
            self._at += brackets
            table = self._within_arrays(self._key())
            if brackets == 2:
                self._arrays[table] += 1
                table = (*table, self._arrays[table] - 1)
            for length in range(1, len(table) + 1):
                self._note(table[:length])
            self._at += brackets
        return self.lines

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
            value = _STRING.match(self._text, self._at) or _BARE.match(self._text, self._at)
            self._at = value.end() if value else len(self._text)

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
        while key := _KEY.match(self._text, self._at):
            parts.append(next(part for part in key.groups() if part is not None))
            self._at = key.end()
            if not self._text.startswith(".", self._at):
                break
            self._at += 1
        return tuple(parts)

    def _within_arrays(self, name: Keys) -> Keys:
        """Return a path with the index of the last element after each array of tables."""
        path: Keys = ()
        for index, part in enumerate(name):
            path = (*path, part)
            if index < len(name) - 1 and self._arrays[path]:
                path = (*path, self._arrays[path] - 1)
        return path

    def _skip_blank(self) -> bool:
        """Skip blanks and comments; return whether the text ends there."""
        blank = _BLANK.match(self._text, self._at)
        self._at = blank.end() if blank else self._at
        return self._at >= len(self._text)

    def _note(self, path: Keys, at: int | None = None) -> None:
        place = self._at if at is None else at
        self.lines.setdefault(path, 1 + self._text.count("\n", 0, place))
