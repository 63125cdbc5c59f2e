"""Functions of `equipoise_matching` as ``eq.match``, ``eq.genoud``, …, with Equipoise's errors.

If the extra ``equipoise[matching]`` is missing, an error has the line that installs the extra.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from equipoise.model.errors import UnusableInput
from equipoise.shared.extras import install_line

MODULE_OF_FUNCTION = {
    **dict.fromkeys(
        ("gen_match", "match", "match_balance", "observe"), "equipoise_matching.tables"
    ),
    "genoud": "equipoise_matching",
}
"""Module of each function."""


class UnknownArgument(UnusableInput, TypeError):
    """Error for an argument that a function does not have."""


def require_matching(module: str) -> Any:
    """Import a module of `equipoise_matching`; raise `UnusableInput` if it is not installed."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name != "equipoise_matching":
            raise
        raise missing_matching_error() from error


def missing_matching_error() -> UnusableInput:
    """Return the error for an installation without `equipoise_matching`."""
    return UnusableInput(
        "matching and observation need equipoise-matching, which is not installed",
        hint=install_line("equipoise[matching]"),
    )


@contextmanager
def converted_errors() -> Iterator[None]:
    """Convert an error of `equipoise_matching` into the same error of this package."""
    matching_errors = require_matching("equipoise_matching.shared.errors")
    try:
        yield
    except matching_errors.UnusableInput as error:
        error_class = UnknownArgument if isinstance(error, TypeError) else UnusableInput
        raise error_class(error.what, hint=error.hint) from error


def matching_function(name: str) -> Callable[..., Any]:
    """Return a function of `equipoise_matching` that raises the errors of this package."""
    function = getattr(require_matching(MODULE_OF_FUNCTION[name]), name)

    @functools.wraps(function)
    def with_converted_errors(*args: Any, **kwargs: Any) -> Any:
        with converted_errors():
            return function(*args, **kwargs)

    return with_converted_errors
