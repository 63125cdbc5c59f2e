"""Runs the command of a benchmark tool, and names what a process of the tool measured."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from equipoise.interop.reading import TIME, Process
from equipoise.suites.tool import Command, Measurement

_TAIL_BYTES = 4096
"""Number of bytes of the end of a tool's output in an error message."""


def run(command: Command, output: Path, variables: Mapping[str, str] | None = None) -> None:
    """Run a command; its standard output goes to a file.

    ``variables`` are added to the environment.

    Raise `SystemExit` if the command cannot start or fails.
    """
    try:
        with output.open("wb") as file:
            environment = {**os.environ, **(variables or {})}
            status = subprocess.run(command, stdout=file, env=environment, check=False).returncode
    except OSError as error:
        raise SystemExit(f"cannot start {command[0]}: {error.strerror}") from None
    if status != 0:
        # These tools write their errors to standard output.
        tail = output.read_bytes()[-_TAIL_BYTES:].decode("utf-8", "replace")
        raise SystemExit(f"{tail}\n{command[0]} ended with status {status}")


def times_of(processes: Iterable[Process]) -> Iterator[Measurement]:
    """Yield the mean seconds of each benchmark."""
    for process in processes:
        yield Measurement(f"{process.benchmark} {TIME}", process.values[TIME], "s")
