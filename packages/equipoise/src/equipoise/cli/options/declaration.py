"""Declarations of options, and the typed request that is made of the options of a command.

A request is a struct. Each field is either one option or a group of options; a group is a struct
itself. A field and its option have the same name in click.
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
"""Decorator that adds one or several options to a command."""


def options_of(*options: Option) -> Option:
    """Return a decorator that adds options in the order in which the help lists them."""

    def decorate(function: Any) -> Any:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


def option_named(name: str) -> str:
    """Return the option for an argument of this name: ``--min-effect`` for ``min_effect``."""
    return f"--{name.replace('_', '-')}"


class _Number(click.FloatRange):
    """A number in one of the `RANGES`, with the same error as in the Python interface."""

    name = "number"

    def __init__(self, number_range: NumberRange) -> None:
        high = None if number_range.high == math.inf else number_range.high
        super().__init__(min=number_range.low, max=high, min_open=number_range.above_low)
        self.number_range = number_range

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the value as a number of the range."""
        option = "" if param is None else max(param.opts, key=len)
        return self.number_range.read(value, f"{option} {value}".strip())


def number_option(*names: str, number: str | None = None, **settings: Any) -> Option:
    """Return an option that takes a number in one of the `RANGES`.

    Parameters
    ----------
    number
        Name of the range; by default the name of the option.
    settings
        Further arguments of ``click.option``.
    """
    name = number or names[-1].removeprefix("--").replace("-", "_")
    settings = {"show_default": True, **settings}
    return click.option(*names, type=_Number(RANGES[name]), **settings)


def flag(*names: str, help: str, **settings: Any) -> Option:
    """Return an option without a value."""
    return click.option(*names, is_flag=True, help=help, **settings)


def file_option(*names: str, metavar: str = "FILE", **settings: Any) -> Option:
    """Return an option that takes the path of a file or a folder."""
    return click.option(*names, metavar=metavar, type=click.Path(path_type=Path), **settings)


def names_option(
    *names: str,
    metavar: str = "A,B",
    by_default: tuple[str, ...] | None = None,
    **settings: Any,
) -> Option:
    """Return an option that takes names, separated by commas.

    Without the option, the value is ``by_default``.
    """

    def read(
        context: click.Context, option: click.Parameter, value: str | None
    ) -> tuple[str, ...] | None:
        return by_default if value is None else names_in(context, option, value)

    return click.option(*names, metavar=metavar, callback=read, **settings)


def names_in(context: click.Context, option: click.Parameter, value: str) -> tuple[str, ...]:
    """Split a value into names at its commas; an empty name is an error."""
    names = tuple(name.strip() for name in value.split(","))
    if not all(names):
        raise click.BadParameter(f"'{value}' has an empty name.", context, option)
    return names


Request = TypeVar("Request", bound=Struct)


def request_of(
    kind: type[Request],
) -> Callable[[Callable[[Request], int]], Callable[..., int]]:
    """Return a decorator that gives a command's function all options as one request.

    ``kind`` is the class of the request.
    """

    def decorate(function: Callable[[Request], int]) -> Callable[..., int]:
        @functools.wraps(function)
        def run(**options: object) -> int:
            return function(read_request(kind, options))

        return run

    return decorate


def read_request(kind: type[Request], options: Mapping[str, object]) -> Request:
    """Make a request of the options of a command; ``kind`` is the class of the request.

    A field whose type is a struct is made of the same options, so two groups may share an option.
    Any other field gets the option of the same name, or keeps its default.
    """
    values: dict[str, object] = {}
    for field in fields(kind):
        if isinstance(field.type, type) and issubclass(field.type, Struct):
            values[field.name] = read_request(field.type, options)
        elif field.name in options:
            values[field.name] = options[field.name]
    return kind(**values)
