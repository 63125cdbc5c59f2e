"""Commands around the trials: through a shell, never timed, free to leave a server behind.

They are not started by the launcher, which ends whatever a trial leaves: a ``--setup`` that
starts a server in the background is right.
"""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass

from equipoise.model.errors import ConditionFailed

SHELL = "/bin/sh"
TAIL_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Hook:
    """One command line around trials, and for which condition."""

    option: str
    condition: str
    line: str


def run(hook: Hook, environment: Mapping[str, str], working_folder: str, timeout_s: float) -> None:
    """Run one hook to its end.

    Raises
    ------
    ConditionFailed
        It exited non-zero, died of a signal or took longer than ``timeout_s`` seconds.
    """
    # A file, not a pipe: a server that the hook starts keeps the descriptor open for ever.
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            [SHELL, "-c", hook.line],
            env=dict(environment),
            cwd=working_folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            start_new_session=True,
        )
        try:
            status = process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            end_group(process)
            raise _failed(hook, f"timed out after {timeout_s:g} s", "") from None
        except BaseException:
            end_group(process)
            raise
        if status != 0:
            raise _failed(hook, status_words(status), tail(errors.fileno()))


def last_words(error_tail: str) -> str:
    """The last lines of standard error, to be put behind a message."""
    lines = [line.strip() for line in error_tail.splitlines() if line.strip()]
    return f"; stderr: {' / '.join(lines[-3:])}" if lines else ""


def signal_words(number: int) -> str:
    """``signal 11 (SIGSEGV)``."""
    try:
        return f"signal {number} ({signal.Signals(number).name})"
    except ValueError:
        return f"signal {number}"


def status_words(status: int) -> str:
    """How a child ended, by what ``subprocess`` says of it."""
    return signal_words(-status) if status < 0 else f"exit status {status}"


def _failed(hook: Hook, failure: str, error_tail: str) -> ConditionFailed:
    return ConditionFailed(
        f"--{hook.option} of {hook.condition} failed: {failure}: {hook.line}"
        + last_words(error_tail),
        hint="append '|| true' to it if its failure does not matter",
    )


def end_group(process: subprocess.Popen[bytes]) -> None:
    """End a process that leads a session, with all that is still in its group."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    finally:
        process.wait()


def tail(descriptor: int) -> str:
    """The end of a file of output."""
    size = os.fstat(descriptor).st_size
    return os.pread(descriptor, TAIL_BYTES, max(0, size - TAIL_BYTES)).decode(errors="replace")
