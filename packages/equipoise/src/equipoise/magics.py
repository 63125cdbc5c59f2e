"""The magics ``%compare`` and ``%%compare`` of IPython, after ``%load_ext equipoise``."""

from __future__ import annotations

import re
import shlex
from typing import Any

from equipoise.api import Result, compare_code
from equipoise.model.errors import EquipoiseError, UnusableInput

USAGE = """\
%compare [OPTIONS] CODE [--- CODE ...]

%%compare [OPTIONS] [SETUP]
CODE
---
CODE

Compare pieces of Python code in fresh processes; the first piece is the baseline. A single piece
is described. The code may use names of the notebook; their values are sent to the processes. SETUP
runs separately for each piece.

Options: --budget SECONDS, --blocks N, --alpha P, --min-effect PERCENT, --seed N."""
_SEPARATOR = re.compile(r"(?:^|\s)---(?:\s|$)")
"""Separator of the pieces of code of ``%compare``."""
_SEPARATOR_LINE = re.compile(r"(?m)^[ \t]*---[ \t]*$\n?")
"""Line that separates the pieces of code of ``%%compare``."""
_OPTION_TYPES: dict[str, type[int] | type[float]] = {
    "budget": float,
    "blocks": int,
    "alpha": float,
    "min_effect": float,
    "seed": int,
}
"""Type of the value of each option."""


def register(shell: Any) -> None:
    """Register ``%compare`` and ``%%compare`` in a running IPython."""
    from IPython.core.error import UsageError
    from IPython.core.magic import no_var_expand

    # This decorator prevents IPython from replacing {…} and $name in the measured code.
    @no_var_expand
    def compare(line: str, cell: str | None = None) -> Result:
        try:
            return _compare_code(line, cell, shell.user_ns)
        except EquipoiseError as error:
            hint = "" if error.hint is None else f"\n  hint: {error.hint}"
            # IPython shows a UsageError without a stack trace.
            raise UsageError(f"{error.what}{hint}") from None

    compare.__doc__ = USAGE
    shell.register_magic_function(compare, "line_cell", "compare")


def _compare_code(line: str, cell: str | None, names: dict[str, object]) -> Result:
    # After its options, the line has the code for %compare, and SETUP for %%compare.
    limits, code_or_setup = _split_options(line)
    if cell is None:
        codes, setup = _SEPARATOR.split(code_or_setup), ""
    else:
        codes, setup = _SEPARATOR_LINE.split(cell), code_or_setup
    codes = [code.strip("\n") for code in codes]
    if not all(code.strip() for code in codes):
        raise UnusableInput(
            "%compare needs code before and after each ---",
            hint="write %compare sorted(x) --- x.sort(), or --- on a line of its own in a cell",
        )
    return compare_code(
        *(code.strip() if cell is None else code for code in codes),
        setup=setup,
        globals=names,
        **limits,
    )


def _split_options(line: str) -> tuple[dict[str, Any], str]:
    limits: dict[str, Any] = {}
    rest = line.strip()
    while match := re.match(r"--([a-z][a-z-]*)(?:=|\s+)(\S+)\s*", rest):
        name, value = match.group(1).replace("-", "_"), _option_value(match)
        if name not in _OPTION_TYPES:
            options = ", ".join(f"--{option.replace('_', '-')}" for option in _OPTION_TYPES)
            hint = f"use one of the options {options}"
            raise UnusableInput(f"there is no option --{match.group(1)}", hint=hint)
        # `CampaignLimits` checks the number.
        limits[name] = _parse_number(value, _OPTION_TYPES[name])
        rest = rest[match.end() :]
    return limits, rest


def _option_value(option: re.Match[str]) -> str:
    try:
        return shlex.split(option.group(2))[0]
    except ValueError:
        raise UnusableInput(
            f"--{option.group(1)} {option.group(2)} has no closing quotation mark",
            hint=f"write the number without quotation marks: --{option.group(1)} NUMBER",
        ) from None


def _parse_number(value: str, number_type: type[int] | type[float]) -> int | float | str:
    try:
        return number_type(value)
    except ValueError:
        return value
