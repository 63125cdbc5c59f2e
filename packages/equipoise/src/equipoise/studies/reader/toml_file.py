"""A TOML file whose errors name the file, the line and the key.

tomllib reads the values, and `Table.read_as` checks them by msgspec. `key_lines` finds the line of
every key for the messages. A path has the keys that lead to a value from the top of the file, and
the index of an element after the key of its array.
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
_MAX_SHOWN_LENGTH = 60
"""Maximum number of characters of a line that a message shows."""
_FILE_HINT = "give the path of a study's file, such as study.toml"
_WHOLE_NUMBER_HINT = "give a number that fits in 64 bits, or put the digits in quotes"
_TYPE_NAMES = {
    "str": "a string",
    "bool": "true or false",
    "int": "a whole number",
    "float": "a number",
    "list": "an array",
    "dict": "a table",
}
"""Descriptions of the types of TOML, by the names of the types in Python."""


class TableSchema(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The keys of one table, with their types.

    The `msgspec.Meta` of a field is for error messages. Its ``description`` says which values are
    valid, and its example shows how to write the key.
    """


AnySchema = TypeVar("AnySchema", bound=TableSchema)


class Table(Struct, frozen=True):
    """A table of a file."""

    places: Places
    values: Mapping[str, Any]
    path: Keys = ()
    """Keys that lead to the table from the top of the file."""

    def read_as(self, schema: type[AnySchema]) -> AnySchema:
        """Check the values, and return them as an instance of the schema.

        Raise `UnusableInput` if a key is unknown or missing, or if its value has the wrong type or
        is out of bounds.
        """
        types = get_type_hints(schema, include_extras=True)
        for key, value in self.values.items():
            if key not in types:
                raise self.unknown(key, one_of(key, sorted(types)))
            if not _fits(value, types[key]):
                raise self._misfit(key, schema)
        for field in structs.fields(schema):
            if field.required and field.name not in self.values:
                hint = f"add it, for example {_example(schema, field.name)}"
                raise self.error(None, f"{field.name} is missing", hint)
        values = msgspec.convert(self.values, schema)
        for key in schema.__struct_fields__:
            value = getattr(values, key)
            if isinstance(value, float) and not math.isfinite(value):
                raise self.error(
                    key, f"the value is {value:g}", f"give {_description(schema, key)}"
                )
        return values

    def place(self, key: str) -> Place:
        """Return the place of a key of this table, for error messages."""
        return self.places.key(*self.path, key)

    def error(self, key: str | None, what: str, hint: str) -> UnusableInput:
        """Return the error for a key of this table, or for the table itself."""
        place = self.places.table(*self.path) if key is None else self.place(key)
        return place.error(what, hint)

    def require_one_of(self, key: str, value: str, choices: Sequence[str], problem: str) -> None:
        """Refuse a value that is not one of the choices.

        The error is ``problem``, such as ``there is no kind``, and the value.
        """
        if value not in choices:
            raise self.error(key, f"{problem} {value!r}", one_of(value, choices))

    def table(self, key: str) -> Table:
        """Return a table within this table; empty if the key is missing."""
        value = self.values.get(key, {})
        if not isinstance(value, dict):
            what = f"the value is {_type_name(value)}, not a table"
            raise self.error(key, what, f"write {key} = {{ KEY = value }}")
        return Table(self.places, value, (*self.path, key))

    def tables(self, key: str) -> tuple[Table, ...]:
        """Return the tables of an array of tables."""
        return tuple(
            Table(self.places, values, (*self.path, key, number))
            for number, values in enumerate(self.values.get(key, ()))
        )

    def strings(self, key: str) -> tuple[str, ...]:
        """Return a string or an array of strings; empty if the key is missing."""
        value = self.values.get(key, ())
        return (value,) if isinstance(value, str) else tuple(value)

    def command(self, key: str) -> tuple[str, ...] | None:
        """Return a program and its arguments; a string is split like in a POSIX shell."""
        value = self.values.get(key)
        if value is None:
            return None
        try:
            words = tuple(shlex.split(value) if isinstance(value, str) else value)
        except ValueError as error:
            raise self.error(
                key, f"the command cannot be split: {str(error).lower()}", "close the quote"
            ) from None
        if not words or not words[0]:
            raise self.error(key, "the command is empty", "write the program to run")
        return words

    def names(self, key: str) -> tuple[str, ...]:
        """Return the names of levels: a string or number, or an array of them."""
        value = self.values.get(key, [])
        names: list[str] = []
        for name in value if isinstance(value, list) else [value]:
            if isinstance(name, bool) or not isinstance(name, str | int | float):
                what = f"{name!r} is neither a string nor a number"
                raise self.error(key, what, 'write a level in quotes, such as "fast"')
            if str(name) in names:
                raise self.error(key, f"{name} appears twice", "remove one of the two")
            names.append(str(name))
        return tuple(names)

    def environment(self, key: str) -> dict[str, str]:
        """Return the variables of an environment: a table of strings and numbers."""
        table = self.table(key)
        for name, value in table.values.items():
            if isinstance(value, bool) or not isinstance(value, str | int | float):
                raise table.error(
                    name, "the value is not a string or number", f'write {name} = "1"'
                )
            if not name or "=" in name:
                raise table.error(
                    name, f"no variable can be called {name!r}", 'write env = { NAME = "value" }'
                )
        return {name: str(value) for name, value in table.values.items()}

    def _misfit(self, key: str, schema: type[TableSchema]) -> UnusableInput:
        """Return the error for a value that its field in the schema does not accept.

        The error names a wrong element of an array, a word that is not a choice, a value out of
        bounds, or a value of the wrong type.
        """
        value, description = self.values[key], _description(schema, key)
        accepted_types = tuple(_alternatives(get_type_hints(schema)[key]))
        for alternative in accepted_types:
            if get_origin(alternative) is list and isinstance(value, list):
                (element_type,) = get_args(alternative)
                element = next(element for element in value if not _fits(element, element_type))
                hint = f"give {description}" if description else f'write "{element}"'
                return self.error(key, f"the array contains {_type_name(element)}", hint)
            if get_origin(alternative) is Literal and isinstance(value, str):
                hint = one_of(value, get_args(alternative))
                return self.error(key, f"there is no {key} {value!r}", hint)
        type_names = [_type_name_of(alternative) for alternative in accepted_types]
        value_type, whole, number = _type_name(value), _TYPE_NAMES["int"], _TYPE_NAMES["float"]
        # If the type is right, the value is out of bounds. A whole number is also a number.
        if value_type in type_names or (value_type == whole and number in type_names):
            return self.error(key, f"the value is {value}", f"give {description}")
        valid_values = description or type_names[0]
        problem = f"the value is {value_type}, not {valid_values}"
        return self.error(key, problem, f"give {valid_values}")

    def unknown(self, key: str, hint: str) -> UnusableInput:
        """Return the error for an unknown key or table."""
        if isinstance(self.values[key], dict):
            return self.table(key).error(None, "there is no such table", hint)
        return self.error(key, "there is no such key", hint)


def read_toml(path: Path, name: str) -> Table:
    """Read a whole file, which messages call ``name``.

    Raise `UnusableInput` if the file cannot be read, is not TOML, or has a value that no study can
    use.
    """
    try:
        # Some editors write a byte order mark.
        text = _read_limited(path, name).decode("utf-8-sig")
    except OSError as error:
        raise UnusableInput(f"{name}: {error.strerror}", hint=_FILE_HINT) from None
    except UnicodeDecodeError as error:
        line = 1 + error.object.count(b"\n", 0, error.start)
        raise UnusableInput(
            f"{name}:{line}: the file is not UTF-8", hint="save the file as UTF-8"
        ) from None
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise _not_toml(name, text, str(error)) from None
    except RecursionError:
        raise UnusableInput(
            f"{name}: arrays or tables are nested too deeply",
            hint="use at most three levels, as in docs/reference/study.md",
        ) from None
    except ValueError as error:
        # Python refuses to read a whole number with thousands of digits.
        raise UnusableInput(f"{name}: {str(error).lower()}", hint=_WHOLE_NUMBER_HINT) from None
    places = Places(name, key_lines(text))
    for keys, value in _leaves(values):
        if isinstance(value, int) and abs(value) > _MAX_WHOLE_NUMBER:
            raise places.key(*keys).error("the number has hundreds of digits", _WHOLE_NUMBER_HINT)
        if isinstance(value, str) and "\0" in value:
            raise places.key(*keys).error("the text contains a null byte", "remove the null byte")
    return Table(places, values)


def one_of(wrong_word: str, choices: Sequence[str]) -> str:
    """Return the hint to use one of the choices, with the choice most similar to a wrong word."""
    if len(choices) < 2:
        return f"use {choices[0]}" if choices else f"remove {wrong_word}"
    similar = get_close_matches(wrong_word, choices, 1)
    guess = f"did you mean {similar[0]}? " if similar else ""
    return f"{guess}use one of {', '.join(choices)}"


def _read_limited(path: Path, name: str) -> bytes:
    """Return the content of a regular file of at most ``MAX_BYTES``; a device could be endless."""
    if path.exists() and not path.is_file() and not path.is_dir():
        raise UnusableInput(f"{name} is not a regular file", hint=_FILE_HINT)
    with path.open("rb") as file:
        content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise UnusableInput(f"{name} is larger than {MAX_BYTES >> 20} MiB", hint=_FILE_HINT)
    return content


def _not_toml(name: str, text: str, message: str) -> UnusableInput:
    what, _, position = message.rpartition(" (at ")
    if position.startswith("line "):
        line = int(position.removeprefix("line ").split(",")[0])
    else:
        line = 1 + text.rstrip("\n").count("\n")
    if what.startswith(("Cannot overwrite", "Cannot declare")):
        definition = text.split("\n")[line - 1].strip()[:_MAX_SHOWN_LENGTH]
        what = f"{name}:{line}: this is the second definition of a key or table: {definition}"
        return UnusableInput(what, hint="remove one of the two definitions")
    return UnusableInput(
        f"{name}:{line}: this is not TOML: {what or message}",
        hint="see https://toml.io for the format",
    )


def _leaves(value: Any, keys: Keys = ()) -> Iterator[tuple[Keys, Any]]:
    """Yield each key, and each value that is neither a table nor an array, with its path."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield (*keys, key), key
            yield from _leaves(inner, (*keys, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _leaves(inner, (*keys, index) if isinstance(inner, dict) else keys)
    else:
        yield keys, value


_DATE = "a date or a time"


def _type_name(value: Any) -> str:
    return _TYPE_NAMES.get(type(value).__name__, _DATE)


def _type_name_of(alternative: Any) -> str:
    """Return the description of the TOML type for a type in Python."""
    origin = get_origin(alternative) or alternative
    return _TYPE_NAMES["str" if origin is Literal else origin.__name__]


def _fits(value: Any, annotation: Any) -> bool:
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


Part = TypeVar("Part")


def _annotation_parts(schema: type[TableSchema], key: str, part_type: type[Part]) -> Iterator[Part]:
    """Yield all parts of a nested annotation of the type ``part_type``, the outermost first."""
    pending = [get_type_hints(schema, include_extras=True)[key]]
    while pending:
        annotation = pending.pop(0)
        if isinstance(annotation, part_type):
            yield annotation
        pending.extend(get_args(annotation))


def _description(schema: type[TableSchema], key: str) -> str:
    """Return the schema's description of a key; empty without a description."""
    metas = _annotation_parts(schema, key, msgspec.Meta)
    return next((meta.description for meta in metas if meta.description), "")


def _example(schema: type[TableSchema], key: str) -> str:
    metas = _annotation_parts(schema, key, msgspec.Meta)
    return next((str(meta.examples[0]) for meta in metas if meta.examples), f"{key} = …")


_BLANK = re.compile(r"(?:\s|#[^\n]*)*")
"""White space and comments."""
_KEY = re.compile(r"""[ \t]*(?:"((?:[^"\\\n]|\\.)*)"|'([^'\n]*)'|([A-Za-z0-9_-]+))[ \t]*""")
"""One part of a dotted key: in double quotes, in single quotes, or bare."""
_STRING = re.compile(
    r'"""(?:[^\\]|\\.)*?"{3,5}|\'\'\'.*?\'{3,5}|"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'', re.DOTALL
)
_BARE = re.compile(r"[^\s,\]}#]+(?: \d[\d:.]+\S*)?")
"""A value without quotes; a date may be followed by a space and a time."""


def key_lines(text: str) -> dict[Keys, int]:
    """Return the line, from 1, of each key and each element of an array, by its path."""
    return _KeyScanner(text).scan()


class _KeyScanner:
    """A scan of a TOML text that notes the line of each key. tomllib must accept the text."""

    def __init__(self, text: str) -> None:
        self.lines: dict[Keys, int] = {}
        self._text = text
        self._position = 0
        self._table_counts: Counter[Keys] = Counter()
        """Number of tables so far in each array of tables."""

    def scan(self) -> dict[Keys, int]:
        table_path: Keys = ()
        while not self._skip_blank():
            if self._text[self._position] != "[":
                self._scan_pair(table_path)
                continue
            bracket_count = 2 if self._text.startswith("[[", self._position) else 1
            self._position += bracket_count
            table_path = self._with_array_indices(self._scan_key())
            if bracket_count == 2:
                self._table_counts[table_path] += 1
                table_path = (*table_path, self._table_counts[table_path] - 1)
            for length in range(1, len(table_path) + 1):
                self._note_line(table_path[:length])
            self._position += bracket_count
        return self.lines

    def _scan_pair(self, table_path: Keys) -> None:
        start = self._position
        path = (*table_path, *self._scan_key())
        for length in range(len(table_path) + 1, len(path) + 1):
            self._note_line(path[:length], start)
        self._position += 1
        self._scan_value(path)

    def _scan_value(self, path: Keys) -> None:
        self._skip_blank()
        opening = self._text[self._position]
        if opening == "{":
            self._position += 1
            while not self._skip_closing("}"):
                self._scan_pair(path)
        elif opening == "[":
            self._position += 1
            index = 0
            while not self._skip_closing("]"):
                self._note_line((*path, index))
                self._scan_value((*path, index))
                index += 1
        else:
            value = _STRING.match(self._text, self._position) or _BARE.match(
                self._text, self._position
            )
            self._position = value.end() if value else len(self._text)

    def _skip_closing(self, bracket: str) -> bool:
        """Skip blanks, a comma and a closing bracket; return whether there was a bracket."""
        if self._skip_blank():
            return True
        if self._text[self._position] == ",":
            self._position += 1
            self._skip_blank()
        if not self._text.startswith(bracket, self._position):
            return False
        self._position += 1
        return True

    def _scan_key(self) -> Keys:
        parts: list[str] = []
        while key := _KEY.match(self._text, self._position):
            parts.append(next(part for part in key.groups() if part is not None))
            self._position = key.end()
            if not self._text.startswith(".", self._position):
                break
            self._position += 1
        return tuple(parts)

    def _with_array_indices(self, dotted_key: Keys) -> Keys:
        """Return the path of a table, with an index after each array of tables."""
        path: Keys = ()
        for index, part in enumerate(dotted_key):
            path = (*path, part)
            if index < len(dotted_key) - 1 and self._table_counts[path]:
                path = (*path, self._table_counts[path] - 1)
        return path

    def _skip_blank(self) -> bool:
        """Skip blanks and comments; return whether the text ends there."""
        blank = _BLANK.match(self._text, self._position)
        self._position = blank.end() if blank else self._position
        return self._position >= len(self._text)

    def _note_line(self, path: Keys, position: int | None = None) -> None:
        end = self._position if position is None else position
        self.lines.setdefault(path, 1 + self._text.count("\n", 0, end))
