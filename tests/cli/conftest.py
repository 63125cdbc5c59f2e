"""The command line as a user has it: a process of its own, in a folder of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

ENTRY = (sys.executable, "-m", "equipoise.cli")


@dataclass(frozen=True)
class Said:
    """What one command line answered."""

    status: int
    out: str
    err: str


Equipoise = Callable[..., Said]


@pytest.fixture
def equipoise(tmp_path: Path) -> Equipoise:
    """Run one ``equipoise`` command line in ``tmp_path``."""

    def call(*arguments: str, environment: dict[str, str] | None = None) -> Said:
        done = subprocess.run(
            [*ENTRY, *arguments],
            cwd=tmp_path,
            env={**os.environ, **(environment or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert "Traceback" not in done.stderr, done.stderr
        return Said(done.returncode, done.stdout, done.stderr)

    return call


@pytest.fixture
def script(tmp_path: Path) -> Callable[[str, Sequence[str]], str]:
    """Write an executable shell script into ``tmp_path`` and return its path."""

    def write(name: str, lines: Sequence[str]) -> str:
        path = tmp_path / name
        path.write_text("\n".join(["#!/bin/sh", *lines, ""]), encoding="utf-8")
        path.chmod(0o755)
        return str(path)

    return write
