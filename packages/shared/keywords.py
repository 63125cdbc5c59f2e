"""Keywords of functions from a ``TypedDict``, declared once and shown in each signature."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def takes(keywords: type, defaults: object) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return a decorator for a function with the keys of a ``TypedDict`` as keywords.

    The signature of the function then has each keyword, and Python's usual error refuses any other.

    Parameters
    ----------
    defaults
        Object with an attribute for each key: its default.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        signature = inspect.signature(function)
        named = [
            parameter
            for parameter in signature.parameters.values()
            if parameter.kind is not parameter.VAR_KEYWORD
        ]
        further = [
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=getattr(defaults, name),
                annotation=getattr(kind, "__forward_arg__", kind),
            )
            for name, kind in keywords.__annotations__.items()
        ]
        shown = signature.replace(parameters=[*named, *further])

        @functools.wraps(function)
        def called(*args: P.args, **kwargs: P.kwargs) -> R:
            try:
                shown.bind(*args, **kwargs)
            except TypeError as error:
                raise TypeError(f"{function.__name__}() {error}") from None
            return function(*args, **kwargs)

        called.__signature__ = shown  # type: ignore[attr-defined]
        return called

    return decorate
