"""Where the package's own native programs lie."""

from __future__ import annotations

import os
from pathlib import Path

from equipoise.model.errors import UnusableInput


def native_programs() -> Path:
    """The folder of the package's own programs and libraries."""
    return Path(__file__).resolve().parent.parent / "_bin"


def launcher_program() -> Path:
    """The launcher: the package's own, or the one that ``EQUIPOISE_LAUNCHER`` names.

    Raises
    ------
    UnusableInput
        It is not there.
    """
    chosen = os.environ.get("EQUIPOISE_LAUNCHER")
    program = Path(chosen) if chosen else native_programs() / "equipoise-launcher"
    if not program.is_file():
        raise UnusableInput(
            f"the launcher is missing: {program}",
            hint="run `make build` in a checkout, or install the package again",
        )
    return program
