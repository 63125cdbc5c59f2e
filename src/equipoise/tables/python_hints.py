"""Errors and warnings in the words of Python: ``missing="drop"`` where a terminal has an option."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from equipoise.model.errors import UnusableInput

_OPTION = re.compile(r"(?<![\w-])--([a-z]+(?:-[a-z]+)*)")
_MISSING = re.compile(r"--missing (refuse|drop|indicator)")
_OTHERWISE = (
    ("--cluster none", "cluster=()"),
    ("--difference", "ratio=False"),
    ("--leave-others-out", "leave_others_out=True"),
    ("--one-unit", "one_unit=True"),
    ("--placebo-outcome", "placebo_outcomes"),
)
"""Options whose argument in Python has another form."""


@contextmanager
def python_hints() -> Iterator[None]:
    """Name the arguments of a function, not options, in the errors of what runs within."""
    try:
        yield
    except UnusableInput as error:
        what, hint = error.what, error.hint
        if "--" not in f"{what} {hint}":
            raise
        error.what, error.hint = in_python(what), None if hint is None else in_python(hint)
        error.args = (error.what if error.hint is None else f"{error.what}\n{error.hint}",)
        raise


def in_python(text: str) -> str:
    """Return a sentence that names arguments where it named options of the command line."""
    text = _MISSING.sub(r'missing="\1"', text)
    for option, argument in _OTHERWISE:
        text = text.replace(option, argument)
    return _OPTION.sub(lambda option: option[1].replace("-", "_"), text)
