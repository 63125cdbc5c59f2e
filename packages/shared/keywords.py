"""Keyword arguments from a ``TypedDict``: declared once, shown in each signature."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
"""Parameters of the decorated function."""
R = TypeVar("R")
"""Return type of the decorated function."""


def accepts_keywords(
    keywords: type, defaults: object
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return a decorator for a function that takes the keys of a ``TypedDict`` as keywords.

    The signature of the function then lists each keyword, and Python refuses other keywords. The
    default of a keyword is the attribute of ``defaults`` with the same name.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        signature = inspect.signature(function)
        own_parameters = [
            parameter
            for parameter in signature.parameters.values()
            if parameter.kind is not parameter.VAR_KEYWORD
        ]
        keyword_parameters = [
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=getattr(defaults, name),
                annotation=getattr(annotation, "__forward_arg__", annotation),
            )
            for name, annotation in keywords.__annotations__.items()
        ]
        full_signature = signature.replace(parameters=[*own_parameters, *keyword_parameters])

        @functools.wraps(function)
        def call_with_keywords(*args: P.args, **kwargs: P.kwargs) -> R:
            try:
                full_signature.bind(*args, **kwargs)
            except TypeError as error:
                raise TypeError(f"{function.__name__}() {error}") from None
            return function(*args, **kwargs)

        call_with_keywords.__signature__ = full_signature  # type: ignore[attr-defined]
        return call_with_keywords

    return decorate
