"""Real programs under callgrind and with the preloaded recorder."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from equipoise.counting.run import counting_command
from packages.equipoise.tests.programs import finished
from packages.equipoise.tests.why.evidence.programs import compiled

PROGRAM = """
#include <stdlib.h>
int main(int count, char **words) {
    int rounds = atoi(words[count - 1]);
    for (int at = 0; at < rounds; at++) free(malloc(100));
    return rounds == 7 ? 7 : 0;
}
"""
KEPT = "from itertools import repeat; kept = [object() for _ in repeat(0, "
ALLOCATIONS = ("allocations", "allocated_bytes")


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """A program that makes as many allocations of 100 bytes as its last argument says."""
    return compiled(tmp_path, PROGRAM)


def run(
    folder: Path, command: tuple[str, ...], **variables: str
) -> subprocess.CompletedProcess[str]:
    (folder / "metrics.jsonl").unlink(missing_ok=True)
    metrics = {"EQUIPOISE_METRICS": str(folder / "metrics.jsonl")}
    return finished(command, env={**os.environ, **metrics, **variables})


def counts(folder: Path, command: tuple[str, ...]) -> dict[str, float]:
    done = run(folder, command)
    assert done.returncode == 0, done.stderr
    lines = map(json.loads, (folder / "metrics.jsonl").read_text().splitlines())
    return {line["metric"]: line["value"] for line in lines}


def test_one_more_allocation_is_counted_exactly(program: Path, tmp_path: Path) -> None:
    before, after = (
        counts(tmp_path, counting_command(ALLOCATIONS, (str(program), rounds)))
        for rounds in ("1000", "1001")
    )
    assert after["allocations"] - before["allocations"] == 1
    assert after["allocated_bytes"] - before["allocated_bytes"] == 100


@pytest.mark.live("valgrind")
def test_simulated_instructions_repeat_exactly(program: Path, tmp_path: Path) -> None:
    command = counting_command(("simulated_instructions",), (str(program), "1000"))
    first, second = counts(tmp_path, command), counts(tmp_path, command)
    assert first == second
    assert first["simulated_instructions"] > 10_000


def test_each_object_of_python_is_counted(tmp_path: Path) -> None:
    few, many = (
        counts(
            tmp_path,
            counting_command(ALLOCATIONS, (sys.executable, "-c", f"{KEPT}{n})]")),
        )["allocations"]
        for n in (1000, 3000)
    )
    assert 2000 <= many - few <= 2020


def test_the_status_of_the_command_is_passed_on(program: Path, tmp_path: Path) -> None:
    command = counting_command(ALLOCATIONS, (str(program), "7"))
    assert run(tmp_path, command).returncode == 7
    assert not (tmp_path / "metrics.jsonl").exists()


def test_a_program_without_a_shared_allocator_is_refused_in_one_line(tmp_path: Path) -> None:
    program = compiled(tmp_path, PROGRAM, "-static")
    done = run(tmp_path, counting_command(ALLOCATIONS, (str(program), "10")))
    assert done.returncode == 1
    assert "no allocation was counted: the program is linked statically" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_without_valgrind_the_hint_installs_it(program: Path, tmp_path: Path) -> None:
    command = counting_command(("simulated_instructions",), (str(program), "10"))
    done = run(tmp_path, command, PATH=str(tmp_path))
    assert done.stderr == (
        "valgrind, which counts instructions, is missing; run apt-get install valgrind\n"
    )
