"""Run a command with counters, and report the counts of the whole command.

::

    python -m equipoise.counting.run simulated_instructions,allocations -- CMD

The command runs once for each counter, so that no counter counts another. The counts go to the file
``EQUIPOISE_METRICS``.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from equipoise.counting import allocations, callgrind
from equipoise.helpers.equipoise_metrics import report
from equipoise.model.errors import EquipoiseError

Process = tuple[tuple[str, ...], Mapping[str, str]]
"""A command and its environment."""
_SIGNAL_STATUS = 128
"""Exit status of a shell for a command that signal 0 would end."""


class Counter(Struct, frozen=True):
    """A way to count what a command does."""

    metrics: tuple[str, ...]
    counted_process: Callable[[tuple[str, ...], Mapping[str, str], Path], Process]
    """Takes a command, its environment and an empty folder; returns the process that counts."""
    counts_in: Callable[[Path], Mapping[str, int]]
    """Returns the counts in the folder, by metric."""


COUNTERS = (
    Counter((callgrind.METRIC,), callgrind.counted_process, callgrind.counts_in),
    Counter(
        (allocations.ALLOCATIONS, allocations.BYTES),
        allocations.counted_process,
        allocations.counts_in,
    ),
)
METRICS = tuple(metric for counter in COUNTERS for metric in counter.metrics)


def counting_command(metrics: Sequence[str], command: Sequence[str]) -> tuple[str, ...]:
    """Return a command that counts another command."""
    # With -P, modules of the repository cannot replace modules of Equipoise.
    return (sys.executable, "-P", "-m", __name__, ",".join(metrics), "--", *command)


def main(words: Sequence[str]) -> None:
    """Run the command line.

    Raise `SystemExit` with the status of the command if it fails, or with one line if a count is
    not known.
    """
    names, _, *command = words
    for counter in COUNTERS:
        metrics = [metric for metric in counter.metrics if metric in names.split(",")]
        if not metrics:
            continue
        try:
            counts = _count(counter, tuple(command))
        except EquipoiseError as error:
            raise SystemExit(f"{error.what}; {error.hint}") from None
        for metric in metrics:
            report(metric, counts[metric])


def _count(counter: Counter, command: tuple[str, ...]) -> Mapping[str, int]:
    with tempfile.TemporaryDirectory() as folder:
        counted, environment = counter.counted_process(command, os.environ, Path(folder))
        try:
            status = subprocess.run(counted, env=environment, check=False).returncode
        except OSError as error:
            raise SystemExit(f"cannot start {command[0]}: {error.strerror}") from None
        if status != 0:
            raise SystemExit(status if status > 0 else _SIGNAL_STATUS - status)
        return counter.counts_in(Path(folder))


if __name__ == "__main__":
    main(sys.argv[1:])
