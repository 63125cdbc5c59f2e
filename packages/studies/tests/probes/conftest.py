"""Fixtures of the tests of probes: the program, and the rows that it lists."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., "subprocess.CompletedProcess[str]"]

UNAVAILABLE = 69


@dataclass(frozen=True, slots=True)
class Row:
    """A row of `equipoise os`: the probe, and the words that ask for the row."""

    name: str
    probe: str
    metric: str
    words: tuple[str, ...]


@pytest.fixture
def program(native_folder: Path) -> Path:
    """The probes."""
    return native_folder / "equipoise-probe"


@pytest.fixture
def run(program: Path) -> Run:
    """Runs the program without a metrics file."""

    def start(*words: str, **options: Any) -> subprocess.CompletedProcess[str]:
        environment = {key: text for key, text in os.environ.items() if key != "EQUIPOISE_METRICS"}
        return subprocess.run(
            [options.pop("program", program), *words],
            env=environment | options.pop("env", {}),
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
            **options,
        )

    return start


@pytest.fixture
def listed(run: Run) -> list[dict[str, Any]]:
    """Return the line of `--list` for each probe."""
    return [json.loads(line) for line in run("--list").stdout.splitlines()]


@pytest.fixture
def rows(listed: list[dict[str, Any]]) -> list[Row]:
    """Every row of every probe."""
    return [
        Row(row["name"], probe["name"], probe["metric"], (probe["name"], *row["options"]))
        for probe in listed
        for row in probe["rows"]
    ]


def reason(done: subprocess.CompletedProcess[str]) -> str:
    """Why a probe is unavailable, of which it gives no number."""
    assert (done.returncode, done.stdout) == (UNAVAILABLE, ""), done.stderr
    (line,) = done.stderr.splitlines()
    said = json.loads(line)
    assert set(said) == {"unavailable"}
    assert said["unavailable"]
    return str(said["unavailable"])
