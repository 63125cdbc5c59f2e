"""Small C programs with known evidence, compiled for the tests."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections import defaultdict
from pathlib import Path

import pytest

from equipoise.why.evidence.observer import Calls, Process, Stacks, SystemCalls
from packages.equipoise.tests.programs import finished

NOBODY = 65534
ENVIRONMENT = {"PATH": os.environ["PATH"]}


def compiled(folder: Path, body: str, *flags: str, name: str = "program") -> Path:
    """The program of that C source, in which no allocation is optimised away."""
    source = folder / f"{name}.c"
    source.write_text(body)
    program = folder / name
    compiler = "c++" if "-xc++" in flags else "cc"
    subprocess.run(
        [compiler, "-O1", "-g", "-fno-builtin", *flags, "-o", program, source], check=True
    )
    return program


def by_name(evidence: SystemCalls) -> dict[str, Calls]:
    """The system calls of a run by their name."""
    return {calls.name: calls for calls in evidence.calls}


def run(process: Process, *, user: int | None = None) -> subprocess.CompletedProcess[str]:
    """Run it to its end, whatever that is; as another user without groups, if one is given."""
    return finished(
        process.command,
        env=dict(process.environment),
        user=user,
        group=user,
        extra_groups=None if user is None else [],
    )


def weights_by_name(stacks: Stacks) -> dict[str, float]:
    """The weight of each function with all that it called."""
    sums: dict[str, float] = defaultdict(float)
    for stack in stacks.stacks:
        for name in {stacks.frames[place].name for place in stack.frames}:
            sums[name] += stack.weight
    return sums


def opened_to_all(folder: Path) -> None:
    """Let other users pass through the folder of a test and those above it."""
    for above in (folder, *folder.parents[:3]):
        above.chmod(above.stat().st_mode | 0o011)


def run_as_nobody(process: Process, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run an observer, which writes into the folder, as a user without rights.

    The observer is copied there, as the sources may be in a place that is not for everybody.
    """
    observer = folder / "observer"
    shutil.copy2(process.command[0], observer)
    os.chown(folder, NOBODY, NOBODY)
    opened_to_all(folder)
    copied = Process((str(observer), *process.command[1:]), process.environment)
    return run(copied, user=NOBODY)


def with_small_disk(process: Process, folder: Path, kibibytes: int) -> Process:
    """The process with a disk of that size at the folder, which nobody else sees.

    The test is skipped where this host does not allow it.
    """
    mount = f'mount -t tmpfs -o size={kibibytes}k none "$0" && exec "$@"'
    before = ("unshare", "--mount", "sh", "-c", mount, str(folder))
    tried = subprocess.run([*before, "true"], capture_output=True, text=True, check=False)
    if tried.returncode != 0:
        pytest.skip(f"no disk can be mounted here: {tried.stderr.strip()}")
    return Process((*before, *process.command), process.environment)
