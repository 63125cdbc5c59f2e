"""A command line becomes one typed request: here, and nowhere else.

A request is a struct with a field for each option, or for each group of options, which is a struct
itself. What a field is called is what click calls the option.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import fields

Request = TypeVar("Request", bound=Struct)


def request_of(
    kind: type[Request],
) -> Callable[[Callable[[Request], int]], Callable[..., int]]:
    """Return a decorator for the function of a command, which takes its options as one request."""

    def decorate(function: Callable[[Request], int]) -> Callable[..., int]:
        @functools.wraps(function)
        def run(**options: object) -> int:
            return function(read_request(kind, options))

        return run

    return decorate


def read_request(kind: type[Request], options: Mapping[str, object]) -> Request:
    """Return the request of a class among the options of a command.

    A field whose type is a struct is filled from the same options, so two groups may share one. Any
    other field has the option of its name, or keeps its default.
    """
    values: dict[str, object] = {}
    for field in fields(kind):
        if isinstance(field.type, type) and issubclass(field.type, Struct):
            values[field.name] = read_request(field.type, options)
        elif field.name in options:
            values[field.name] = options[field.name]
    return kind(**values)
