"""``equipoise doctor``: what disturbs measurements here, and what mends it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from equipoise.cli import options
from equipoise.measure import disturbances
from equipoise.measure.surroundings import snapshot
from equipoise.model.errors import UnusableInput
from equipoise.report import doctor


@click.command("doctor")
@options.output_options
def command(**given: Any) -> int:
    """Print what disturbs measurements on this host, worst first, each with its mend.

    Nothing is changed. 'disturbs' slows trials down now; 'weakens' adds noise; 'lacks' is what
    this host does not offer.
    """
    color = not given["no_color"]
    examination = disturbances.examine(disturbances.look_around())
    if given["json_file"] is not None:
        _write(given["json_file"], doctor.to_json(examination, snapshot()))
    if given["json_file"] != "-" and not given["quiet"]:
        doctor.print_examination(examination, color=color)
        doctor.print_extent(examination, color=color)
    return 0


def _write(file: str, content: bytes) -> None:
    if file == "-":
        sys.stdout.buffer.write(content)
        return
    try:
        Path(file).write_bytes(content)
    except OSError as error:
        raise UnusableInput(
            f"cannot write {file}: {error.strerror}", mend="name a file in a folder that is there"
        ) from error
