"""Fixtures of the tests of workloads: run a workload and read its report."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from packages.equipoise.tests.programs import finished


@dataclass(frozen=True, slots=True)
class Reported:
    """The report of one run."""

    metrics: dict[str, float]
    iterations: dict[str, list[float]]
    facts: dict[str, str]


# The kernel raises a process's high-water mark from counters that each CPU keeps for itself and
# hands in by the batch (include/linux/percpu_counter.h: 32 pages, or two for each CPU), one for
# pages of files and one for the others: the mark may lag behind the truth by so much.
CPUS = os.cpu_count() or 1
LAG_OF_THE_PEAK = 2 * CPUS * max(32, 2 * CPUS) * os.sysconf("SC_PAGE_SIZE")

Measured = Callable[..., Reported]


@pytest.fixture
def measured(native_folder: Path, tmp_path: Path) -> Measured:
    """Runs a workload, which must end well, with the given environment beside our own."""

    def run(*arguments: str, **environment: str) -> Reported:
        metrics_file = tmp_path / "metrics"
        metrics_file.unlink(missing_ok=True)
        done = finished(
            [native_folder / "equipoise-workload", *arguments],
            env=os.environ | {"EQUIPOISE_METRICS": str(metrics_file)} | environment,
        )
        assert (done.returncode, done.stderr) == (0, "")
        metrics: dict[str, float] = {}
        iterations: dict[str, list[float]] = {}
        for line in map(json.loads, metrics_file.read_text().splitlines()):
            if "iteration" in line:
                values = iterations.setdefault(line["metric"], [])
                assert line["iteration"] == len(values) + 1
                values.append(line["value"])
            else:
                metrics[line["metric"]] = line["value"]
        return Reported(metrics, iterations, json.loads(done.stdout or "{}"))

    return run
