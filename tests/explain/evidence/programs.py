"""Small C programs with known evidence, compiled for the tests."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from equipoise.explain.evidence.observed import Process

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


def run(process: Process, *, user: int | None = None) -> subprocess.CompletedProcess[str]:
    """Run it to its end, whatever that is; as another user without groups, if one is given."""
    return subprocess.run(
        process.command,
        env=dict(process.environment),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        user=user,
        group=user,
        extra_groups=None if user is None else [],
    )
