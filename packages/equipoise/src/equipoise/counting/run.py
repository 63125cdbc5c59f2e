"""Run a command with counters, and report the counts of the whole command.

::

    python -m equipoise.counting.run simulated_instructions,allocations -- CMD

The command runs once for each counter, so that no counter counts another. The counts go to the file
``EQUIPOISE_METRICS``. With ``--iterations OPTION``, such as ``--benchmark_min_time={}x``, the
command runs twice with each counter: with N and with 2·N iterations. The counts are then those of
one iteration: the difference, over N. What the program does besides its iterations cancels out.
"""

from __future__ import annotations

import argparse
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


def counting_command(
    metrics: Sequence[str], command: Sequence[str], *, iterations: str | None = None, count: int = 1
) -> tuple[str, ...]:
    """Return a command that counts another command.

    ``iterations`` is the option of the command for a number of iterations, with ``{}`` in place of
    the number, and ``count`` is the smaller number.
    """
    options = () if iterations is None else (f"--iterations={iterations}", f"--count={count}")
    # With -P, modules of the repository cannot replace modules of Equipoise.
    program = (sys.executable, "-P", "-m", __name__)
    return (*program, *options, ",".join(metrics), "--", *command)


def main(words: Sequence[str]) -> None:
    """Run the command line.

    Raise `SystemExit` with the status of the command if it fails, or with one line if a count is
    not known.
    """
    parser = argparse.ArgumentParser(prog="python -m equipoise.counting.run")
    parser.add_argument("--iterations")
    parser.add_argument("--count", type=int, default=1)
    parser.add_argument("metrics", type=lambda text: text.split(","))
    parser.add_argument("command", nargs="+")
    options = parser.parse_args(words)
    command: tuple[str, ...] = tuple(options.command)
    try:
        for counter in COUNTERS:
            metrics = [metric for metric in counter.metrics if metric in options.metrics]
            if not metrics:
                continue
            if options.iterations is None:
                counts: Mapping[str, float] = _count(counter, command)
            else:
                fewer, more = (
                    _count(counter, (*command, options.iterations.format(number)))
                    for number in (options.count, 2 * options.count)
                )
                counts = {name: (more[name] - fewer[name]) / options.count for name in more}
            for metric in metrics:
                report(metric, counts[metric])
    except EquipoiseError as error:
        raise SystemExit(f"{error.what}; {error.hint}") from None


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
