"""``%compare`` and ``%%compare`` in IPython and notebooks; ``%load_ext equipoise`` brings them."""

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

Compare pieces of Python code in fresh processes; the first is the baseline, and one alone is
described. They may use the names of the notebook, whose values are sent along. SETUP runs for
each piece alone.

Options: --budget SECONDS, --blocks N, --alpha P, --min-effect PERCENT, --seed N."""
_SEPARATOR = re.compile(r"(?:^|\s)---(?:\s|$)")
_SEPARATOR_LINE = re.compile(r"(?m)^[ \t]*---[ \t]*$\n?")
_NUMBERS: dict[str, type[int] | type[float]] = {
    "budget": float,
    "blocks": int,
    "alpha": float,
    "min_effect": float,
    "seed": int,
}


def register(shell: Any) -> None:
    """Give a running IPython the two magics."""
    from IPython.core.error import UsageError
    from IPython.core.magic import no_var_expand

    # Otherwise IPython replaces {…} and $name in the code before it is measured.
    @no_var_expand
    def compare(line: str, cell: str | None = None) -> Result:
        try:
            return _compared(line, cell, shell.user_ns)
        except EquipoiseError as error:
            hint = "" if error.hint is None else f"\n  hint: {error.hint}"
            # IPython shows it in its own manner, without a stack trace.
            raise UsageError(f"{error.what}{hint}") from None

    compare.__doc__ = USAGE
    shell.register_magic_function(compare, "line_cell", "compare")


def _compared(line: str, cell: str | None, names: dict[str, object]) -> Result:
    numbers, rest = _numbers(line)
    if cell is None:
        codes, setup = _SEPARATOR.split(rest), ""
    else:
        codes, setup = _SEPARATOR_LINE.split(cell), rest
    codes = [code.strip("\n") for code in codes]
    if not all(code.strip() for code in codes):
        raise UnusableInput(
            "%compare needs code before and after each ---",
            hint="%compare sorted(x) --- x.sort(), or in a cell a line of --- between the two",
        )
    return compare_code(
        *(code.strip() if cell is None else code for code in codes),
        setup=setup,
        globals=names,
        **numbers,
    )


def _numbers(line: str) -> tuple[dict[str, Any], str]:
    """Return the options at the beginning of a line, and what follows them."""
    numbers: dict[str, Any] = {}
    rest = line.strip()
    while match := re.match(r"--([a-z][a-z-]*)(?:=|\s+)(\S+)\s*", rest):
        name, value = match.group(1).replace("-", "_"), _unquoted(match)
        if name not in _NUMBERS:
            raise UnusableInput(f"there is no option --{match.group(1)}", hint=USAGE)
        # `CampaignLimits` names a bad number.
        numbers[name] = _read(value, _NUMBERS[name])
        rest = rest[match.end() :]
    return numbers, rest


def _unquoted(option: re.Match[str]) -> str:
    """Return the value of an option without its quotation marks."""
    try:
        return shlex.split(option.group(2))[0]
    except ValueError:
        raise UnusableInput(
            f"the quotation of --{option.group(1)} {option.group(2)} has no end",
            hint=f"write the number without quotation marks: --{option.group(1)} NUMBER",
        ) from None


def _read(value: str, kind: type[int] | type[float]) -> int | float | str:
    try:
        return kind(value)
    except ValueError:
        return value
