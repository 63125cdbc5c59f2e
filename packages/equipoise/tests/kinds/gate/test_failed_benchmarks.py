"""A gate names the benchmarks that fail, hang or stop their tool, and compares the others."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from equipoise.measure import workload_metrics
from equipoise.measure.untimed import run_untimed
from packages.equipoise.tests.cli.conftest import Gate
from packages.equipoise.tests.kinds.gate.test_command import document
from packages.equipoise.tests.kinds.gate.test_tools import made_of

ASV = """#!/bin/sh
for word; do case $word in
  --list) cat list.json; exit ;;
  --run=time_bad) test ! -e later || { echo 'asv_runner 0.3: no <b>data' >&2; exit 1; } ;;
  --results=*) echo '{"type": "time", "value": 0.5}' > "${word#*=}" ;;
esac; done
"""
LISTED = '{"name": "%s", "type": "time", "params": [null]}'
GO = """#!/bin/sh
printf 'pkg: m\\nBenchmarkA\\nBenchmarkA-2  100  5 ns/op\\n--- FAIL: BenchmarkC\\n'
case "$*" in *-skip*BenchmarkB*) exit 1 ;; esac
printf 'BenchmarkB\\npanic: no data\\n'
exit 2
"""


def listing(*names: str) -> str:
    return f'{{"benchmarks": [{", ".join(LISTED % name for name in names)}], "is_chosen": false}}'


def hangs(command: tuple[str, ...], *details: Any) -> int:
    """Run a command; the benchmark ``time_hang`` takes longer than any timeout."""
    if "--run=time_hang" in command:
        raise subprocess.TimeoutExpired(command, 600)
    return run_untimed(command, *details)


def test_a_listed_benchmark_that_fails_or_hangs_is_named_and_the_others_are_compared(
    tmp_path: Path, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workload_metrics, "run_untimed", hangs)
    files = {"bin/python": ASV, "list.json": listing("time_a", "time_bad", "time_hang")}
    project = made_of(tmp_path, files, {"later": ""})
    options = ("--baseline", "before", "--kind", "asv", "--blocks", "1", "--json", "-")
    answer = gate(project, *options, "--", "bin/python")
    assert answer.status == 3, answer
    result = document(answer)["gate"]
    assert [row["benchmark"] for row in result["rows"]] == ["time_a"]
    assert result["failures"].keys() == {"time_bad", "time_hang"}
    assert result["failures"]["time_bad"].startswith("candidate: exit status 1; stderr: ")
    assert result["failures"]["time_hang"] == (
        "baseline: it did not end within 600 s; candidate: it did not end within 600 s"
    )
    assert "time_bad failed, and was not compared (candidate: exit status 1" in answer.err
    assert "asv_runner 0.3: no <b>data" in answer.err


def test_a_benchmark_that_stops_its_tool_is_left_out_of_the_following_processes(
    tmp_path: Path, gate: Gate
) -> None:
    project = made_of(tmp_path, {"bin/go": GO}, {"later": ""})
    path = f"{project.path / 'bin'}:{os.environ['PATH']}"
    options = ("--baseline", "before", "--kind", "go", "--build", "true", "--blocks", "1")
    answer = gate(project, *options, PATH=path)
    assert answer.status == 3, answer
    assert answer.out.startswith("## Equipoise gate: ❗ 2 benchmarks failed\n")
    assert "| m.BenchmarkB | baseline: go: panic: no data |\n" in answer.out
    assert "| m.BenchmarkC-2 | baseline: go: it failed; candidate: go: it failed |\n" in answer.out
    assert "| m.BenchmarkA-2 | 5" in answer.out


def test_without_an_option_to_leave_a_benchmark_out_the_gate_ends_with_a_hint(
    tmp_path: Path, gate: Gate
) -> None:
    no_option = GO.replace("-skip", "-no-option")
    project = made_of(tmp_path, {"bin/go": no_option}, {"later": ""})
    path = f"{project.path / 'bin'}:{os.environ['PATH']}"
    answer = gate(project, "--baseline", "before", "--kind", "go", "--build", "true", PATH=path)
    assert answer.status == 3, answer
    assert (
        "m.BenchmarkB: go: panic: no data\n  hint: correct it, raise --timeout, or " in answer.err
    )
