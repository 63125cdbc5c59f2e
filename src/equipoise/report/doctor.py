"""What disturbs measurements here: on the terminal, and as JSON."""

from __future__ import annotations

from typing import Any

import msgspec
from rich.console import Console
from rich.text import Text

from equipoise.model.host import Examination
from equipoise.model.safe_text import visible

SCHEMA = "equipoise.doctor/1"
_STYLE = {"disturbs": "bold red", "weakens": "yellow", "lacks": "dim"}
_WIDTH_OF_A_PIPE = 160


def print_examination(examination: Examination, *, color: bool) -> None:
    """Print the disturbances to stdout, worst first, each with its hint.

    Where nothing was found nothing is printed there: what was looked for goes to stderr.
    """
    console = _console(color=color, to_stderr=False)
    for one in examination.disturbances:
        console.print(
            Text.assemble((f"{one.severity}: ", _STYLE[one.severity]), visible(one.summary))
        )
        console.print(Text(f"  hint: {visible(one.hint)}"))


def print_extent(examination: Examination, *, color: bool) -> None:
    """Print to stderr what was looked for, and what could not be."""
    console = _console(color=color, to_stderr=True)
    console.print(Text(extent(examination), style="dim"))
    for name, reason in examination.unchecked.items():
        console.print(Text(f"  not checked: {name}: {visible(reason)}", style="dim"))


def extent(examination: Examination) -> str:
    """One line: how many checks, and how much they found."""
    checks = len(examination.checked) + len(examination.unchecked)
    disturbing = [one for one in examination.disturbances if one.severity != "lacks"]
    found = (
        f"{len(disturbing)} {'thing disturbs' if len(disturbing) == 1 else 'things disturb'}"
        if disturbing
        else "nothing disturbs"
    )
    return f"{found} measurements here ({len(examination.checked)} of {checks} checks could look)"


def to_json(examination: Examination, environment: dict[str, Any]) -> bytes:
    """Write the examination and the host's environment as one line of JSON."""
    return msgspec.json.encode(
        {
            "schema": SCHEMA,
            "disturbances": examination.disturbances,
            "checked": examination.checked,
            "unchecked": examination.unchecked,
            "environment": environment,
        }
    )


def _console(*, color: bool, to_stderr: bool) -> Console:
    plain: dict[str, Any] = {
        "stderr": to_stderr,
        "no_color": not color,
        "highlight": False,
        "markup": False,
        "emoji": False,
        "soft_wrap": True,
    }
    console = Console(**plain)
    # A pipe has no width: without a generous one, commands to copy would be broken.
    return console if console.is_terminal else Console(**plain, width=_WIDTH_OF_A_PIPE)
