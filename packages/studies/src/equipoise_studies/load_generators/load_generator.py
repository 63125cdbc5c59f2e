"""Run a load generator of a database server, and report its results.

The generator reads the server's password from a file that only this user may read.
"""

from __future__ import annotations

import os
import re
import resource
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from equipoise.helpers.equipoise_metrics import METRICS_VARIABLE, report

PERCENTILES = (50, 95, 99)
"""Percentiles of the latency that are reported."""
_MAX_ERROR_LINES = 3
"""Number of the last lines of output in an error message."""
PASSWORD_OPTION = "--password-file="
"""Option of both clients. Other users can read a command line, but not the file."""
_MAX_PASSWORD_BYTES = 1024
_PLAIN_PASSWORD = re.compile(r"[A-Za-z0-9_-]{1,512}")
"""Passwords that need no quotes in any configuration file."""


class LoadInterval(Struct, frozen=True):
    """An interval of a run, usually of one second."""

    throughput_per_s: float
    latency_p99_s: float | None
    """99th percentile; ``None`` if no transaction ended in the interval."""


class Load(Struct, frozen=True):
    """Results of the clients of a server.

    At a fixed rate, a latency begins when the request is due. So the latency includes the time
    until a client is free to send the request.
    """

    throughput_per_s: float
    transactions: int
    errors: int
    """Number of failed transactions, such as deadlocks."""
    latency_mean_s: float
    latency_max_s: float
    percentiles: dict[int, float]
    """Latencies by the percentiles of ``PERCENTILES``."""
    intervals: tuple[LoadInterval, ...] = ()


def run_and_report(
    command: Sequence[str],
    read: Callable[[str], Load],
    environment: Mapping[str, str] | None = None,
) -> None:
    """Run a load generator to its end, and report its results through ``EQUIPOISE_METRICS``.

    ``read`` parses the standard output of the program. By default, the program has the environment
    of this process. Raise `SystemExit` if the program cannot be started or fails, or if its output
    cannot be read.
    """
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with tempfile.TemporaryFile("w+", errors="replace") as file:
        try:
            result = subprocess.run(command, stdout=file, check=False, env=environment)
        except OSError as error:
            raise SystemExit(
                f"cannot start {command[0]}: {error.strerror}; install it, or extend PATH"
            ) from None
        file.seek(0)
        output = file.read()
    if result.returncode != 0:
        # Some programs write errors to standard output.
        lines = [line for line in output.splitlines() if line.strip()]
        reason = "\n".join(lines[-_MAX_ERROR_LINES:])
        raise SystemExit(f"{command[0]} ended with status {result.returncode}\n{reason}")
    try:
        load = read(output)
    except (ValueError, IndexError) as error:
        raise SystemExit(f"the output of {command[0]} cannot be read: {error}") from None
    _report(load)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    report("client_user_s", after.ru_utime - before.ru_utime, unit="s")
    report("client_sys_s", after.ru_stime - before.ru_stime, unit="s")
    report("client_voluntary_switches", after.ru_nvcsw - before.ru_nvcsw)
    report("client_involuntary_switches", after.ru_nivcsw - before.ru_nivcsw)


def _report(load: Load) -> None:
    report("throughput_per_s", load.throughput_per_s, unit="1/s", better="higher")
    report("transactions", load.transactions, better="higher")
    report("errors", load.errors)
    report("latency_mean_s", load.latency_mean_s, unit="s")
    report("latency_max_s", load.latency_max_s, unit="s")
    for percent, seconds in load.percentiles.items():
        report(f"latency_p{percent}_s", seconds, unit="s")
    for number, interval in enumerate(load.intervals, 1):
        report("throughput_per_s", interval.throughput_per_s, iteration=number, better="higher")
        if interval.latency_p99_s is not None:
            report("latency_p99_s", interval.latency_p99_s, iteration=number, unit="s")


def split_password_file(arguments: Sequence[str]) -> tuple[list[str], str | None]:
    """Return the arguments without ``--password-file``, and the password, or ``None``."""
    options = [argument for argument in arguments if argument.startswith(PASSWORD_OPTION)]
    other_arguments = [argument for argument in arguments if argument not in options]
    if not options:
        return other_arguments, None
    return other_arguments, read_password(options[-1].removeprefix(PASSWORD_OPTION))


def read_password(path: str) -> str:
    """Return the first line of a regular file; a link is not followed.

    Raise `SystemExit` if the file cannot be read, or does not contain a plain password.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:
            content = file.read(_MAX_PASSWORD_BYTES) or b""
    except OSError as error:
        raise SystemExit(f"cannot read the password file {path}: {error.strerror}") from None
    line = content.partition(b"\n")[0].decode("ascii", "replace")
    if _PLAIN_PASSWORD.fullmatch(line) is None:
        raise SystemExit(
            f"the password file {path} must contain one line of letters, digits, - and _"
        )
    return line


@contextmanager
def private_folder() -> Iterator[Path]:
    """Make a folder that only this user may enter, and remove it after the ``with`` statement.

    Its parent is the folder of ``EQUIPOISE_METRICS``. Equipoise removes the parent even if this
    process is killed.
    """
    metrics_file = os.environ.get(METRICS_VARIABLE)
    parent = None if metrics_file is None else os.path.dirname(metrics_file)
    with tempfile.TemporaryDirectory(prefix="client-", dir=parent) as folder:
        yield Path(folder)


def write_private(path: Path, text: str) -> Path:
    """Write a new file that only this user may read, and return its path."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(descriptor, "w", encoding="ascii") as file:
        file.write(text)
    return path
