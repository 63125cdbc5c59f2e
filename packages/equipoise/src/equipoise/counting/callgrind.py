"""Run a command under valgrind's callgrind, which counts instructions without a counter.

Callgrind simulates a processor. It counts instructions outside the kernel, of all processes that
the command starts. Its manual has the "Callgrind Format Specification".
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from equipoise.model.errors import UnusableInput

METRIC = "simulated_instructions"
FILE_PREFIX = "callgrind"
_PYTHON_VARIABLES = {"PYTHONHASHSEED": "0"}
"""With one seed, the counts of Python can repeat; variables of the user have precedence."""
_TAIL_BYTES = 4096
_TOTAL = re.compile(rb"^totals: (\d+)", re.MULTILINE)
"""Last line of a complete file: the instructions of the process."""


def valgrind_program() -> str:
    """Return the path of valgrind; raise `UnusableInput` if it is missing."""
    valgrind = shutil.which("valgrind")
    if valgrind is None:
        raise UnusableInput(
            "valgrind, which counts instructions, is missing", hint="run apt-get install valgrind"
        )
    return valgrind


def version() -> str:
    """Return the name and the version of valgrind: ``valgrind-3.19.0``.

    Raise `UnusableInput` if valgrind is missing.
    """
    command = (valgrind_program(), "--version")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "valgrind"


def command_under_callgrind(command: tuple[str, ...], folder: Path) -> tuple[str, ...]:
    """Return a command that writes a file for each process into a folder.

    Raise `UnusableInput` if valgrind is missing.
    """
    return (
        valgrind_program(),
        "--quiet",
        "--tool=callgrind",
        "--trace-children=yes",
        f"--callgrind-out-file={folder / FILE_PREFIX}.%p",
        *command,
    )


def counted_process(
    command: tuple[str, ...], environment: Mapping[str, str], folder: Path
) -> tuple[tuple[str, ...], Mapping[str, str]]:
    """Return the command and the environment with which callgrind counts; errors as above."""
    return command_under_callgrind(command, folder), {**_PYTHON_VARIABLES, **environment}


def counts_in(folder: Path) -> dict[str, int]:
    """Return the instructions of all processes of a run.

    Raise `UnusableInput` if a process has no count.
    """
    files = sorted(folder.glob(f"{FILE_PREFIX}.*"))
    totals = [_total_in(file) for file in files]
    known = [total for total in totals if total is not None]
    if not files or len(known) < len(files):
        raise UnusableInput(
            "callgrind counted no process of the command"
            if not known
            else f"callgrind has no count for {len(files) - len(known)} of {len(files)} processes, "
            "which were killed",
            hint="run the command by hand under `valgrind --tool=callgrind` to see its error",
        )
    return {METRIC: sum(known)}


def _total_in(file: Path) -> int | None:
    with file.open("rb") as stream:
        stream.seek(-min(_TAIL_BYTES, file.stat().st_size), os.SEEK_END)
        total = _TOTAL.search(stream.read())
    return None if total is None else int(total[1])
