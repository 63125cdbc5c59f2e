"""Helpers that declare command-line options, and a decorator that makes a typed request of them.

A request is a struct with the values of all options of a command. The name of a field is click's
name of the option. If the type of a field is a struct, its fields are options, too.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click
from msgspec import Struct
from msgspec.structs import fields

from equipoise.design.limits import RANGES, NumberRange

Option = Callable[[Any], Any]
"""Decorator that adds one option or several options to a command."""


def option_group(*options: Option) -> Option:
    """Return one decorator that adds several options; the help keeps their order."""

    def decorate(function: Any) -> Any:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


def option_named(name: str) -> str:
    """Return the command-line option of a parameter: ``--min-effect`` for ``min_effect``."""
    return f"--{name.replace('_', '-')}"


class _NumberType(click.FloatRange):
    """Type for click: a number in a range, with the error messages of the Python interface."""

    name = "number"

    def __init__(self, number_range: NumberRange) -> None:
        max_value = None if number_range.high == math.inf else number_range.high
        super().__init__(min=number_range.low, max=max_value, min_open=number_range.excludes_low)
        self.number_range = number_range

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the value as a number in the range."""
        option = "" if param is None else max(param.opts, key=len)
        return self.number_range.read(value, f"{option} {value}".strip())


def number_option(*names: str, range_name: str | None = None, **settings: Any) -> Option:
    """Return an option that takes a number in one of the `RANGES`.

    ``range_name`` is the key of the range; by default, it is the name of the option. ``settings``
    are further arguments of ``click.option``.
    """
    key = range_name or names[-1].removeprefix("--").replace("-", "_")
    settings = {"show_default": True, **settings}
    return click.option(*names, type=_NumberType(RANGES[key]), **settings)


def flag(*names: str, help: str, **settings: Any) -> Option:
    """Return an option without a value."""
    return click.option(*names, is_flag=True, help=help, **settings)


def file_option(*names: str, metavar: str = "FILE", **settings: Any) -> Option:
    """Return an option that takes the path of a file or a folder."""
    return click.option(*names, metavar=metavar, type=click.Path(path_type=Path), **settings)


def names_option(
    *names: str, metavar: str = "A,B", default: tuple[str, ...] | None = None, **settings: Any
) -> Option:
    """Return an option whose value is a list of names, separated by commas."""

    def split_value(
        context: click.Context, option: click.Parameter, value: str | None
    ) -> tuple[str, ...] | None:
        return default if value is None else split_names(context, option, value)

    return click.option(*names, metavar=metavar, callback=split_value, **settings)


def split_names(context: click.Context, option: click.Parameter, value: str) -> tuple[str, ...]:
    """Split a value into names at its commas; raise `click.BadParameter` if a name is empty."""
    names = tuple(name.strip() for name in value.split(","))
    if not all(names):
        raise click.BadParameter(f"'{value}' has an empty name.", context, option)
    return names


Request = TypeVar("Request", bound=Struct)


def pass_request(
    request_class: type[Request],
) -> Callable[[Callable[[Request], int]], Callable[..., int]]:
    """Return a decorator that passes the options to a command's function as one request."""

    def decorate(function: Callable[[Request], int]) -> Callable[..., int]:
        @functools.wraps(function)
        def run(**options: object) -> int:
            return function(read_request(request_class, options))

        return run

    return decorate


def read_request(request_class: type[Request], options: Mapping[str, object]) -> Request:
    """Make a request of the options of a command.

    A field whose type is a struct is made of the same options, so two structs may share an option.
    Another field gets the option with the same name, or keeps its default.
    """
    values: dict[str, object] = {}
    for field in fields(request_class):
        if isinstance(field.type, type) and issubclass(field.type, Struct):
            values[field.name] = read_request(field.type, options)
        elif field.name in options:
            values[field.name] = options[field.name]
    return request_class(**values)
