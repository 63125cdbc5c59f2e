"""Building the programs of levels, once, before a campaign."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

import psutil

from equipoise.design.commands import refuse_in_shell_line
from equipoise.measure.hooks import SHELL, end_group, last_words, status_words, tail
from equipoise.model.errors import ConditionFailed

VARIABLE = "EQUIPOISE_BUILD"
MOST_LETTERS = 40
"""Of a level in the name of its folder: a file system has a limit, and it counts bytes."""

_FULL_BYTES = 1 << 20
_ENDING_S = 10.0
_PAUSE_S = 0.01


def build_levels(
    lines: Mapping[str, str], home: Path, environment: Mapping[str, str], working_folder: str
) -> dict[str, str]:
    """Build each level in a new folder; gives the folders by level.

    They are kept: a campaign that is resumed runs what it began with.

    Parameters
    ----------
    lines
        A line for the shell for each level; ``{build}`` stands for its folder, which
        ``$EQUIPOISE_BUILD`` names as well.
    home
        In which the new folders are made.

    Raises
    ------
    ConditionFailed
        A line failed.
    UnusableInput
        A shell would not take the folder as it stands, and a line has it in it.
    """
    if not lines:
        return {}
    for line in lines.values():
        refuse_in_shell_line(
            line,
            {"build": os.path.abspath(home)},
            hint=f'write "${VARIABLE}" for it, or name a --ledger in another folder',
        )
    home.mkdir(parents=True, exist_ok=True)
    builds: dict[str, str] = {}
    for level, line in lines.items():
        prefix = re.sub(r"[^\w.-]", "_", level)[:MOST_LETTERS] + "-"
        folder = builds[level] = tempfile.mkdtemp(prefix=prefix, dir=os.path.abspath(home))
        status, said = _run(line.replace("{build}", folder), working_folder, folder, environment)
        if status != 0:
            raise ConditionFailed(
                f"{level} cannot be built: {status_words(status)}: {line}"
                + last_words(said).replace("stderr: ", ""),
                hint="try the line by hand; it runs through sh in the working folder",
            )
    return builds


def build_revision(
    line: str, folder: Path, home: Path, environment: Mapping[str, str], revision: str
) -> None:
    """Run the line that builds a revision in its working tree, untimed.

    Parameters
    ----------
    folder
        Where it runs.
    home
        The working tree, which ``$EQUIPOISE_BUILD`` names: by it a build is found that outlives
        a killed gate.
    revision
        For the message.

    Raises
    ------
    ConditionFailed
        It failed; the message has the end of what it printed.
    """
    status, said = _run(line, str(folder), str(home), environment)
    if status != 0:
        raise ConditionFailed(
            f"{revision} cannot be built: {status_words(status)}: {line}"
            + last_words(said).replace("; stderr: ", "; it said: "),
            hint=_mend_of(home),
        )


def _run(
    line: str, working_folder: str, build: str, environment: Mapping[str, str]
) -> tuple[int, str]:
    """Run a line that builds; return its status and the end of its output.

    A process that the line started in the background goes on after a build that succeeded; one
    that failed or was interrupted is ended with everything that it started.
    """
    # A file, not a pipe: what runs on in the background would hold a pipe open.
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(
            [SHELL, "-c", line],
            env={**environment, VARIABLE: build},
            cwd=working_folder,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        succeeded = False
        try:
            # Not reaped yet: its group keeps its number until it was ended.
            end = os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
            succeeded = end is not None and (end.si_code, end.si_status) == (os.CLD_EXITED, 0)
        finally:
            if not succeeded:
                end_group(process)
                _end_processes_of(build)
        return process.wait(), tail(said.fileno())


def _end_processes_of(build: str) -> None:
    """End every process that was started for a build, also in another session or group."""
    deadline = time.monotonic() + _ENDING_S
    while time.monotonic() < deadline:
        living = [one for one in psutil.process_iter() if _is_of(one.pid, build)]
        for process in living:
            _kill(process.pid, build)
        if not living:
            return
        time.sleep(_PAUSE_S)


def _kill(pid: int, build: str) -> None:
    try:
        handle = os.pidfd_open(pid)
    except OSError:
        # It has ended.
        return
    try:
        # The handle holds the process; its number could have passed to another one before.
        if _is_of(pid, build):
            signal.pidfd_send_signal(handle, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        # It has ended, or has become another user's.
        return
    finally:
        os.close(handle)


def _is_of(pid: int, build: str) -> bool:
    try:
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            return False
        return bool(process.environ().get(VARIABLE) == build)
    except (psutil.Error, OSError):
        # It has ended, or is another user's.
        return False


def _mend_of(home: Path) -> str:
    # What a build says of a full disk often went to that disk.
    if shutil.disk_usage(home).free < _FULL_BYTES:
        return f"the disk of {home} is full: set TMPDIR to a folder of one with room"
    return (
        "try the line by hand in a fresh clone: files that are not committed are not in a revision"
    )
