"""Runs the command of a benchmark tool, and names what a process of the tool measured."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from msgspec import Struct

from equipoise.interop.reading import TIME, Process
from equipoise.suites.tool import Command, Measurement

TIMEOUT_VARIABLE = "EQUIPOISE_BENCHMARK_TIMEOUT"
"""Environment variable with the seconds after which a tool is ended; without it, the gate ends it.
The process that reads the results then still names the benchmark that hangs."""
READ_HINT = "run the command by hand: did it end early, or did a benchmark write to this file?"
"""Hint for results that cannot be read."""
_TAIL_BYTES = 4096
"""Number of bytes of the end of a tool's output in an error message."""


class StoppedAt(Exception):
    """Error: a benchmark hangs or ended the process, so later benchmarks did not run.

    Attributes: ``benchmark`` and ``reason``, in one line.
    """

    exit_status = 4
    """Exit status of `equipoise.suites.trial` for this error."""

    def __init__(self, benchmark: str, reason: str) -> None:
        super().__init__(f"{benchmark}: {reason}")
        self.benchmark = benchmark
        self.reason = reason


class Ending(Struct, frozen=True):
    """The end of a tool's process."""

    problem: str | None = None
    """Sentence about a failure; ``None`` if there was none."""
    timed_out: bool = False
    tail: str = ""
    """End of the output, if the process failed."""

    def require_success(self) -> None:
        """Raise `SystemExit` if the process failed."""
        if self.problem is not None:
            raise stopped_at(None, self)


def run(
    command: Command,
    output: Path,
    variables: Mapping[str, str] | None = None,
    *,
    stderr: int | None = None,
) -> None:
    """Run a command as `run_to_end`; raise `SystemExit` if it fails."""
    run_to_end(command, output, variables, stderr=stderr).require_success()


def run_to_end(
    command: Command,
    output: Path,
    variables: Mapping[str, str] | None = None,
    *,
    stderr: int | None = None,
) -> Ending:
    """Run a command; its standard output goes to a file.

    ``variables`` are added to the environment, or replace variables of it. ``stderr`` is the place
    of its errors, as for `subprocess.run`.

    Raise `SystemExit` if the command cannot start.
    """
    timeout = os.environ.get(TIMEOUT_VARIABLE)
    try:
        with output.open("wb") as file:
            environment = {**os.environ, **(variables or {})}
            process = subprocess.Popen(command, stdout=file, stderr=stderr, env=environment)
    except OSError as error:
        raise SystemExit(f"cannot start {command[0]}: {error.strerror}") from None
    try:
        status = process.wait(None if timeout is None else float(timeout))
    except subprocess.TimeoutExpired:
        _end_with_children(process)
        return Ending(f"it did not end within {float(timeout or 0):g} s", timed_out=True)
    except BaseException:
        process.kill()
        raise
    if status == 0:
        return Ending()
    # These tools write their errors to standard output.
    tail = output.read_bytes()[-_TAIL_BYTES:].decode("utf-8", "replace")
    return Ending(f"{os.path.basename(command[0])} ended with status {status}", tail=tail)


def _end_with_children(process: subprocess.Popen[bytes]) -> None:
    # A late import: few processes hang.
    import psutil

    root = psutil.Process(process.pid)
    # The tool first: it would report that its program ended.
    for member in (root, *root.children(recursive=True)):
        try:
            member.kill()
        except psutil.NoSuchProcess:
            continue
    process.wait()


def stopped_at(benchmark: str | None, ending: Ending) -> BaseException:
    """Return the error that a process failed or hung, with the benchmark that ran, if known."""
    if benchmark is not None:
        return StoppedAt(benchmark, " ".join((ending.problem or "").split()))
    return SystemExit(f"{ending.tail}\n{ending.problem}" if ending.tail else ending.problem)


def times_of(processes: Iterable[Process]) -> Iterator[Measurement]:
    """Yield the mean seconds of each benchmark."""
    for process in processes:
        yield Measurement(f"{process.benchmark} {TIME}", process.values[TIME], "s")
