"""Run commands untimed: hooks around trials, and runs that examine a command.

Hooks are shell lines of the user, such as ``--prepare``. The launcher does not start hooks, because
it would end all processes of a hook. But ``--setup`` may start a server that must keep running.
"""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import IO

import msgspec
from msgspec import Struct

from equipoise.model.errors import ConditionFailed
from equipoise.shared.spelling import option

SHELL = "/bin/sh"
TAIL_BYTES = 4096
"""Number of bytes that are kept from the end of a file."""
NOT_FOUND_STATUS = 127
"""Exit status of a shell that does not find a program."""
UNAVAILABLE_STATUS = 69
"""Exit status of a workload that this machine cannot run (``EX_UNAVAILABLE`` of sysexits.h)."""


def run_hook(
    hook: str,
    condition: str,
    line: str,
    environment: Mapping[str, str],
    working_folder: str,
    timeout_s: float,
) -> None:
    """Run the shell line of one hook of a condition, such as ``prepare``.

    Raise `ConditionFailed` if the line fails or takes longer than ``timeout_s`` seconds.
    """
    # A file, not a pipe: a server that the hook starts keeps the descriptor open.
    with tempfile.TemporaryFile() as errors:
        try:
            command = [SHELL, "-c", line]
            status = run_untimed(command, environment, working_folder, timeout_s, errors)
            failure = f"{describe_status(status)}: {line}{stderr_suffix(tail(errors.fileno()))}"
        except subprocess.TimeoutExpired:
            status, failure = None, f"timed out after {timeout_s:g} s: {line}"
    if status != 0:
        # `compare gzip -c FILE` without quotes: `-c` is read as an option of Equipoise.
        hint = (
            "correct the line; if it is a part of a command, put the whole command in quotes"
            if status == NOT_FOUND_STATUS
            else "correct the line, or append '|| true' if its failure does not matter"
        )
        raise ConditionFailed(f"{option(hook)} of {condition} failed: {failure}", hint=hint)


def run_untimed(
    command: Sequence[str],
    environment: Mapping[str, str],
    folder: str | None,
    timeout_s: float,
    errors: IO[bytes] | None = None,
    output: IO[bytes] | None = None,
) -> int:
    """Run a command to its end; return its exit status, negative if a signal ended it.

    ``environment`` is complete. Standard error goes to ``errors`` and standard output to
    ``output``; by default they are discarded. If the command is interrupted, its process group is
    ended. If it takes longer than ``timeout_s`` seconds, the group is ended, too; raise
    `subprocess.TimeoutExpired`. Raise `OSError` if the command cannot be started.
    """
    process = subprocess.Popen(
        command,
        env=dict(environment),
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL if output is None else output,
        stderr=subprocess.DEVNULL if errors is None else errors,
        start_new_session=True,
    )
    try:
        return process.wait(timeout_s)
    except BaseException:
        end_group(process)
        raise


def end_group(process: subprocess.Popen[bytes]) -> None:
    """End all processes in the group of a process that leads a session."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def tail(descriptor: int) -> str:
    """Return the last `TAIL_BYTES` of an open file as text."""
    size = os.fstat(descriptor).st_size
    return os.pread(descriptor, TAIL_BYTES, max(0, size - TAIL_BYTES)).decode(errors="replace")


def stderr_suffix(error_tail: str, label: str = "stderr: ") -> str:
    """Return the last lines of standard error as the end of a message."""
    lines = [line.strip() for line in error_tail.splitlines() if line.strip()]
    return f"; {label}{' / '.join(lines[-3:])}" if lines else ""


def describe_status(status: int) -> str:
    """Describe how a child process ended, from its return code in ``subprocess``."""
    return describe_signal(-status) if status < 0 else f"exit status {status}"


def describe_signal(number: int) -> str:
    """Return, for example, ``signal 11 (SIGSEGV)``."""
    try:
        return f"signal {number} ({signal.Signals(number).name})"
    except ValueError:
        return f"signal {number}"


class _Unavailable(Struct, frozen=True):
    unavailable: str
    """Reason why this machine cannot run the workload."""


def unavailable_reason(status: int | None, error_text: str) -> str | None:
    """Return the reason why this machine cannot run a workload (rule 7); ``None`` if it can.

    Such a workload exits with status 69. Its last line on standard error is, for example,
    ``{"unavailable": "it needs two CPUs"}``.
    """
    lines = error_text.strip().splitlines()
    if status != UNAVAILABLE_STATUS or not lines:
        return None
    try:
        return msgspec.json.decode(lines[-1], type=_Unavailable).unavailable
    except msgspec.DecodeError:
        return None
