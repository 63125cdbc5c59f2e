"""The data file that ReBench writes now is read with every row."""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path

import pytest

from packages.equipoise.tests.imports import reading_of
from packages.equipoise.tests.tools import printed_by

REBENCH = Path(sys.executable).with_name("rebench")
CONFIGURATION = """
default_experiment: Sums
default_data_file: out.data
benchmark_suites:
  Suite:
    gauge_adapter: RebenchLog
    command: "%(benchmark)s %(input)s %(invocation)s"
    input_sizes: [10, 100]
    benchmarks:
      - List
      - Tree: {extra_args: 7}
executors:
  slow: {path: ., executable: slow.sh}
  fast: {path: ., executable: fast.sh}
experiments:
  Sums:
    suites: [Suite]
    executions: [slow, fast]
    invocations: 2
"""
EXECUTOR = """#!/bin/sh
for step in 1 2; do
    echo "$1: memory: $((512 + step))MB"
    echo "$1: iterations=1 runtime: $((START + 100 * $2 + 10 * $3 + step))us"
done
"""
LEVELS = ("executor", "suite", "extraArgs", "cores", "inputSize")


def test_every_row_of_rebench_is_an_iteration_of_its_invocation(tmp_path: Path) -> None:
    (tmp_path / "sums.conf").write_text(CONFIGURATION)
    for name, start in (("slow", 2000), ("fast", 1000)):
        executor = tmp_path / f"{name}.sh"
        executor.write_text(EXECUTOR.replace("START", str(start)))
        executor.chmod(0o755)
    printed_by(REBENCH, "--no-denoise", "sums.conf", folder=tmp_path)
    path = tmp_path / "out.data"
    form, reading = reading_of(path)
    assert (form, reading.compared_factor, reading.metric) == ("rebench", "executor", "time_s")
    lines = path.read_text().splitlines()
    rows = list(
        csv.DictReader((line for line in lines if not line.startswith("#")), delimiter="\t")
    )
    assert len(rows) == 2 * 2 * 2 * 2 * 4
    for process in reading.processes:
        levels = {name: process.levels.get(name, "") for name in LEVELS}
        own = [
            row
            for row in rows
            if row["benchmark"] == process.benchmark
            and {name: row[name] for name in LEVELS} == levels
        ]
        values = {
            unit: {
                invocation: [
                    float(row["value"])
                    for row in own
                    if (row["unit"], row["invocation"]) == (unit, invocation)
                ]
                for invocation in ("1", "2")
            }
            for unit in ("ms", "MB")
        }
        assert list(process.iterations["memory_MB"]) in values["MB"].values()
        times = [1e3 * seconds for seconds in process.iterations["time_s"]]
        assert any(times == pytest.approx(theirs) for theirs in values["ms"].values())
        assert {len(theirs) for by_metric in values.values() for theirs in by_metric.values()} == {
            2
        }
    keys = [
        (process.benchmark, *process.levels.values(), *process.iterations["time_s"])
        for process in reading.processes
    ]
    assert len(set(keys)) == len(keys) == len(rows) // 4
    (host,) = (line for line in lines if line.startswith("# Environment: "))
    assert reading.environment["host"] == json.loads(host.removeprefix("# Environment: "))
