"""The functions of `equipoise_matching`, with errors of this package.

``eq.match``, ``eq.match_balance``, ``eq.gen_match``, ``eq.observe`` and ``eq.genoud`` are found
here. The package is the extra ``equipoise[matching]``: an error names the line that installs it.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from equipoise.model.errors import UnusableInput
from equipoise.shared.extras import install_line

FUNCTIONS = {
    **dict.fromkeys(
        ("gen_match", "match", "match_balance", "observe"), "equipoise_matching.tables"
    ),
    "genoud": "equipoise_matching",
}
"""Functions that this package hands on, each with its module."""


class UnknownArgument(UnusableInput, TypeError):
    """An argument that a function does not have."""


def require_matching(module: str) -> Any:
    """Import a module of `equipoise_matching`; raise `UnusableInput` if it is not installed."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name != "equipoise_matching":
            raise
        raise matching_is_missing() from error


def matching_is_missing() -> UnusableInput:
    """Return the error of an installation without `equipoise_matching`."""
    return UnusableInput(
        "matching and observation need equipoise-matching, which is not installed",
        hint=install_line("equipoise[matching]"),
    )


@contextmanager
def own_errors() -> Iterator[None]:
    """Raise an error of `equipoise_matching` as the same error of this package."""
    theirs = require_matching("equipoise_matching.shared.errors")
    try:
        yield
    except theirs.UnusableInput as error:
        own = UnknownArgument if isinstance(error, TypeError) else UnusableInput
        raise own(error.what, hint=error.hint) from error


def handed_on(name: str) -> Callable[..., Any]:
    """Return a function of `equipoise_matching`; its errors are those of this package."""
    function = getattr(require_matching(FUNCTIONS[name]), name)

    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        with own_errors():
            return function(*args, **kwargs)

    return called
