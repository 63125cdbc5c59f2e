"""Programs in each language report metrics through EQUIPOISE_METRICS with the helper libraries."""

from __future__ import annotations

import importlib.resources
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from equipoise.helpers.equipoise_metrics import METRICS_VARIABLE, report, timed_iterations
from equipoise.measure import workload_metrics
from equipoise.model.record import Sample
from packages.equipoise.tests.programs import finished

HELPERS = Path(str(importlib.resources.files("equipoise.helpers")))

C = """
#include "equipoise_metrics.h"
int main(void) {
    double seconds[] = {0.5, 1.5};
    equipoise_report("latency_s", 0.25);
    equipoise_report_with_resolution("ticks_s", 0.5, 0.125);
    equipoise_report_iterations("request_s", seconds, 2);
    equipoise_report_iterations_with_resolution("steps_s", seconds, 2, 0.5);
    equipoise_report_timed_iterations("call_s", seconds, 2);
    return equipoise_seconds() > 0.0 ? 0 : 1;
}
"""
JAVA = """
public class Program {
    public static void main(String[] words) {
        EquipoiseMetrics.report("latency_s", 0.25);
        EquipoiseMetrics.report("ticks_s", 0.5, 0.125);
        EquipoiseMetrics.reportIterations("request_s", new double[] {0.5, 1.5});
        EquipoiseMetrics.reportIterations("steps_s", new double[] {0.5, 1.5}, 0.5);
    }
}
"""


def values(samples: Sequence[Sample]) -> set[tuple[str, int | None, float]]:
    return {(sample.metric, sample.iteration, sample.value) for sample in samples}


EXPECTED = {
    ("latency_s", None, 0.25),
    ("ticks_s", None, 0.5),
    ("request_s", 1, 0.5),
    ("request_s", 2, 1.5),
    ("request_s", None, 1.0),
    ("steps_s", 1, 0.5),
    ("steps_s", 2, 1.5),
    ("steps_s", None, 1.0),
}


def resolutions(samples: Sequence[Sample], metric: str) -> list[float | None]:
    return [sample.resolution for sample in samples if sample.metric == metric]


def run(folder: Path, *words: str) -> workload_metrics.WorkloadMetrics:
    metrics_file = folder / "metrics"
    subprocess.run(
        words, env={**os.environ, METRICS_VARIABLE: str(metrics_file)}, cwd=folder, check=True
    )
    # Without the variable, nothing is written and nothing fails.
    quiet = {name: value for name, value in os.environ.items() if name != METRICS_VARIABLE}
    subprocess.run(words, env=quiet, cwd=folder, check=True)
    return workload_metrics.read_metrics(metrics_file)


@pytest.mark.live("cc", package="gcc")
def test_a_c_program_reports_by_the_header(tmp_path: Path) -> None:
    (tmp_path / "program.c").write_text(C)
    warnings = ("-Wall", "-Wextra", "-Werror")
    subprocess.run(
        ["cc", *warnings, f"-I{HELPERS}", "-o", "program", "program.c"], cwd=tmp_path, check=True
    )
    found = run(tmp_path, "./program")
    assert found.problem is None
    assert values(found.samples) > EXPECTED
    assert resolutions(found.samples, "ticks_s") == [0.125]
    assert resolutions(found.samples, "steps_s") == [0.5, 0.5, 0.25]
    assert resolutions(found.samples, "request_s") == [None, None, None]
    step, again, of_mean = resolutions(found.samples, "call_s")
    assert step is not None
    assert 1e-9 <= step < 1.0
    assert (again, of_mean) == (step, step / 2)


@pytest.mark.live("javac", "java", package="default-jdk-headless")
def test_a_java_program_reports_by_the_class(tmp_path: Path) -> None:
    (tmp_path / "Program.java").write_text(JAVA)
    sources = ("Program.java", str(HELPERS / "EquipoiseMetrics.java"))
    subprocess.run(["javac", "-d", ".", *sources], cwd=tmp_path, check=True)
    found = run(tmp_path, "java", "-cp", ".", "Program")
    assert found.problem is None
    assert values(found.samples) == EXPECTED
    assert resolutions(found.samples, "ticks_s") == [0.125]
    assert resolutions(found.samples, "steps_s") == [0.5, 0.5, 0.25]
    assert resolutions(found.samples, "request_s") == [None, None, None]


def test_a_python_program_reports_by_the_module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(METRICS_VARIABLE, str(tmp_path / "metrics"))
    report("throughput", 7.0, iteration=3, unit="1/s", better="higher", resolution=0.5)
    seconds = timed_iterations("call_s", lambda: sum(range(1000)), 4)
    found = workload_metrics.read_metrics(tmp_path / "metrics")
    assert found.problem is None
    assert found.samples[0] == Sample("throughput", 7.0, 3, "1/s", "higher", 0.5)
    assert [sample.value for sample in found.samples[1:5]] == seconds
    assert [sample.iteration for sample in found.samples[1:]] == [1, 2, 3, 4, None]
    assert all(sample.resolution for sample in found.samples)


def test_outside_of_equipoise_reports_go_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(METRICS_VARIABLE, raising=False)
    monkeypatch.chdir(tmp_path)
    report("latency_s", 1.0)
    assert list(tmp_path.iterdir()) == []


def harness(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return finished(
        [sys.executable, "-m", "equipoise.helpers.harness", *words],
        cwd=folder,
        env={**os.environ, METRICS_VARIABLE: str(folder / "metrics")},
    )


@pytest.mark.parametrize("what", [("callable", "mine:work"), ("command", "touch", "done")])
def test_the_harness_times_each_iteration(tmp_path: Path, what: tuple[str, ...]) -> None:
    (tmp_path / "mine.py").write_text("def work():\n    open('done', 'w').close()\n")
    done = harness(tmp_path, what[0], "--iterations", "5", *what[1:])
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "done").exists()
    found = workload_metrics.read_metrics(tmp_path / "metrics")
    assert [sample.iteration for sample in found.samples] == [1, 2, 3, 4, 5, None]
    assert {sample.metric for sample in found.samples} == {"iteration_s"}


@pytest.mark.parametrize(
    ("what", "named"),
    [
        (("callable", "no_such_module:work"), "no_such_module"),
        (("callable", "os"), "MODULE:FUNCTION"),
        (("callable", "os:sep"), "cannot be called"),
        (("command", "false"), "status 1"),
        (("command", "./no-such-program"), "no-such-program"),
    ],
)
def test_an_error_of_the_harness_is_one_line(
    tmp_path: Path, what: tuple[str, ...], named: str
) -> None:
    done = harness(tmp_path, *what)
    assert done.returncode != 0
    assert named in done.stderr and "Traceback" not in done.stderr
    assert not (tmp_path / "metrics").exists()
