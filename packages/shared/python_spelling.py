"""Errors and hints for people who call Python: arguments in the place of command line options."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from .errors import EquipoiseError, UnusableInput

P = ParamSpec("P")
R = TypeVar("R")

_SPELLINGS: tuple[tuple[str, str], ...] = (
    (r"--missing (refuse|drop|indicator)", r'missing="\1"'),
    (r"--cluster none", 'cluster="none"'),
    (r"--difference", "ratio=False"),
    (r"--(leave-others-out|one-unit)\b", r"\1=True"),
    (r"--placebo-outcome\b", "placebo_outcomes"),
    # Some texts name both spellings.
    (r"--[a-z-]+(?: \d+)? \(([a-z_]+=\w+)\)", r"\1"),
    (r"--metrics \S+ or (metrics=)", r"\1"),
    (r"-n/--command-name\b", "names"),
    (r"--ranking off", "ranking=False"),
    (r"--ranking on", "ranking=True"),
    (r"--aslr (on|off|drawn)", r'aslr="\1"'),
    (r"(a program that waits for input) needs --input FILE", r"\1 needs a shell: sh -c 'A < FILE'"),
    (r"start servers in --setup", "start servers before"),
    (r"--(adjust|allow-concurrent|control|ignore-failure|patient|washout)\b", r"\1=True"),
    (r"--([a-z-]+) (\d+(?:\.\d+)?)\b", r"\1=\2"),
    (r"--([a-z]+(?:-[a-z]+)*)(?![\w-])", r"\1"),
)
"""Patterns of options, each with its argument; the first that fits counts."""
_COMMAND = r"(?:equipoise [a-z]+|ld\.so|\./bench|pytest|hyperfine)\b[^;:,`]*"
_OPTIONS = "|".join(f"(?:{pattern})" for pattern, _ in _SPELLINGS)
_PIECE = re.compile(rf"{_COMMAND}|(?<![\w-])(?:{_OPTIONS})")


def in_python(text: str) -> str:
    """Return a sentence with arguments for options; commands in it stay as they are."""
    return _PIECE.sub(lambda piece: _argument(piece[0]), text)


def _argument(piece: str) -> str:
    for pattern, spelling in _SPELLINGS:
        match = re.fullmatch(pattern, piece)
        if match is not None:
            argument, equals, value = match.expand(spelling).partition("=")
            name = argument if " " in argument else argument.replace("-", "_")
            return f"{name}{equals}{value}"
    return piece


def python_errors(function: Callable[P, R]) -> Callable[P, R]:
    """Name the arguments of a function, not options, in the errors that it raises.

    What failed may be a command of the user, with options of its own: only a hint, and the names of
    the function's own arguments, are put into Python's spelling.
    """
    arguments = {name.replace("_", "-") for name in inspect.signature(function).parameters}
    own = re.compile(
        rf"(?<![\w-])--({'|'.join(sorted(arguments, key=len, reverse=True))})(?![\w-])"
    )

    @functools.wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except EquipoiseError as error:
            _put_into_python(error, own)
            raise

    return called


def _put_into_python(error: EquipoiseError, own: re.Pattern[str]) -> None:
    what, hint = error.what, error.hint
    if isinstance(error, UnusableInput) and own.search(what):
        what = in_python(what)
    hint = None if hint is None else in_python(hint)
    error.what, error.hint = what, hint
    error.args = (what if hint is None else f"{what}\n{hint}",)
