"""Tests with the fixture and the markers of pytest-codspeed and pytest-benchmark, under a gate."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

import equipoise
from packages.equipoise.tests.cli.conftest import Gate
from packages.equipoise.tests.kinds.gate.test_command import document
from packages.equipoise.tests.programs import finished
from packages.equipoise.tests.repositories import everything_in
from packages.equipoise.tests.suites.adapters.example_projects import GATE_OPTIONS, gates_a_suite
from packages.equipoise.tests.suites.adapters.python_projects import example_project, python_of
from packages.equipoise.tests.suites.test_finding import written
from packages.equipoise.tests.suites.test_trial import reported

SOURCES = str(Path(equipoise.__file__).parents[1])
FIXTURE = """
import asyncio
import pytest

def total(count):
    return sum(range(count))

async def later(count):
    await asyncio.sleep(0)
    return count

@pytest.mark.parametrize("count", [10, 1000])
def test_parameter(benchmark, count):
    assert benchmark(total, count) == count * (count - 1) / 2

@pytest.mark.benchmark(group="sums")
def test_group(benchmark):
    benchmark.group = "other sums"
    benchmark.extra_info["size"] = 3
    @benchmark
    def call():
        return total(100)
    assert call == 4950

class TestClass:
    def test_async_function(self, benchmark):
        assert benchmark(later, 3) == 3

def test_other():
    raise AssertionError("not a benchmark")
"""
PEDANTIC = """
def test_pedantic(benchmark):
    calls = []
    result = benchmark.pedantic(
        calls.append, setup=lambda: ((len(calls),), {}), rounds=7, warmup_rounds=2
    )
    assert result is None
    assert len(calls) in (7 + 2, 7 + 2 + 1)

def test_async_pedantic(benchmark):
    assert benchmark.pedantic(later, args=(4,), rounds=5) == 4
"""
MARKER = """
@pytest.mark.benchmark
def test_marked():
    assert total(1000) > 0

class TestMarked:
    pytestmark = pytest.mark.codspeed_benchmark(max_time=0.01)

    def test_in_class(self):
        assert total(100) > 0
"""
ASYNC_MARKER = """
@pytest.mark.benchmark
@pytest.mark.asyncio
async def test_async_marked():
    assert await later(5) == 5
"""
FIXTURE_NAMES = {
    "test_parameter[10]",
    "test_parameter[1000]",
    "test_group",
    "TestClass::test_async_function",
}
PEDANTIC_NAMES = {"test_pedantic", "test_async_pedantic"}
MARKER_NAMES = {"test_marked", "TestMarked::test_in_class"}
ASYNC_NAMES = {"test_async_marked"}

PYTEST = ("-m", "pytest", "-q", "-p", "no:cacheprovider")
PLUGIN = ("-p", "equipoise.helpers.pytest_plugin")
OPTIONS = ("-o", "asyncio_default_fixture_loop_scope=function")
NEITHER = {"PYTEST_ADDOPTS": "", "PYTEST_XDIST_WORKER": ""}

live = pytest.mark.live("python3")


def under_gate(folder: Path) -> dict[str, str]:
    return {**NEITHER, "EQUIPOISE_GATE_TREE": str(folder)}


@live
@pytest.mark.parametrize(
    ("environment", "options", "parts", "names"),
    [
        (
            "codspeed",
            OPTIONS,
            (FIXTURE, PEDANTIC, MARKER, ASYNC_MARKER),
            FIXTURE_NAMES | PEDANTIC_NAMES | MARKER_NAMES | ASYNC_NAMES,
        ),
        ("codspeed-old", (), (FIXTURE, MARKER), FIXTURE_NAMES | MARKER_NAMES),
        (
            "codspeed-and-benchmark",
            OPTIONS,
            (FIXTURE, PEDANTIC, MARKER, ASYNC_MARKER),
            FIXTURE_NAMES | PEDANTIC_NAMES | MARKER_NAMES | ASYNC_NAMES,
        ),
        (
            "codspeed-and-benchmark",
            (*OPTIONS, "-p", "no:codspeed"),
            (FIXTURE, PEDANTIC, MARKER),
            FIXTURE_NAMES | PEDANTIC_NAMES,
        ),
    ],
    ids=["codspeed 5", "codspeed 3", "both plugins", "pytest-benchmark 5"],
)
def test_every_benchmark_is_reported_with_its_mean(
    environment: str,
    options: tuple[str, ...],
    parts: tuple[str, ...],
    names: set[str],
    tmp_path: Path,
) -> None:
    python = python_of(environment, "pytest")
    project = written(tmp_path / "project", {"test_it.py": "".join(parts)})
    command = (python, *PYTEST, *options, "--rootdir", str(project), str(project))
    values = reported(tmp_path, "pytest", *command, folder=None, **under_gate(project))
    assert {name.removeprefix("test_it.py::").removesuffix(" time_s") for name in values} == names
    assert all(0.0 < metric["value"] < 1.0 for metric in values.values())
    assert {metric["unit"] for metric in values.values()} == {"s"}
    # No plugin may keep results in the project of the user.
    files = {name for name in everything_in(project) if not name.endswith(".pyc")}
    assert files == {"test_it.py"}


def session(
    environment: str, folder: Path, *options: str, **variables: str
) -> subprocess.CompletedProcess[str]:
    command = [python_of(environment, "pytest"), *PYTEST, *PLUGIN, *options]
    variables = {**os.environ, **NEITHER, "PYTHONPATH": SOURCES, **variables}
    return finished(command, cwd=folder, env=variables)


@live
@pytest.mark.parametrize("environment", ["codspeed", "codspeed-and-benchmark"])
def test_without_a_gate_the_plugins_are_left_alone(environment: str, tmp_path: Path) -> None:
    done = session(environment, written(tmp_path, {"test_it.py": FIXTURE + MARKER}), *OPTIONS)
    # The test that is not a benchmark fails, and the async function was not awaited.
    assert "2 failed, 5 passed" in done.stdout, done.stdout
    assert "benchmarked" not in done.stdout


@live
def test_options_of_the_user_win(tmp_path: Path) -> None:
    folder = written(tmp_path, {"test_it.py": FIXTURE, "pytest.ini": "[pytest]\n"})
    results = tmp_path / "results"
    options = ("--codspeed-max-time=0.5", "--codspeed-warmup-time", "0", "-k", "test_group")
    gate = {"EQUIPOISE_GATE_TREE": str(folder), "CODSPEED_PROFILE_FOLDER": str(results)}
    done = session("codspeed", folder, *OPTIONS, *options, **gate)
    assert done.returncode == 0, done.stdout
    (file,) = (results / "results").glob("[0-9]*.json")
    (benchmark,) = json.loads(file.read_text())["benchmarks"]
    assert benchmark["config"]["max_time_ns"] == 500_000_000
    assert benchmark["config"]["warmup_time_ns"] == 0


@live
def test_benchmarks_that_a_project_switches_off_are_measured(tmp_path: Path) -> None:
    python = python_of("codspeed-and-benchmark", "pytest")
    settings = "[pytest]\naddopts = --benchmark-disable --benchmark-skip -p no:codspeed\n"
    files = {"test_it.py": FIXTURE, "pytest.ini": settings}
    project = written(tmp_path / "project", files)
    command = (python, *PYTEST, *OPTIONS, str(project))
    assert len(reported(tmp_path, "pytest", *command, folder=None, **under_gate(project))) == len(
        FIXTURE_NAMES
    )
    (tmp_path / "metrics.jsonl").unlink()
    skipping = (*command, "--benchmark-skip")
    assert reported(tmp_path, "pytest", *skipping, folder=None, **under_gate(project)) == {}


@live
def test_an_async_function_in_an_async_test_is_refused(tmp_path: Path) -> None:
    test = "@pytest.mark.asyncio\nasync def test_inner(benchmark):\n    benchmark(later, 3)\n"
    folder = written(tmp_path, {"test_it.py": f"{FIXTURE}\n{test}"})
    gate = {"EQUIPOISE_GATE_TREE": str(folder), "CODSPEED_PROFILE_FOLDER": str(tmp_path / "out")}
    done = session("codspeed", folder, *OPTIONS, "-k", "test_inner", "-W", "error", **gate)
    assert done.returncode == 1
    assert "RuntimeError: Cannot run the event loop while another loop is running" in done.stdout


@gates_a_suite
@live
def test_a_gate_compares_the_unchanged_example(tmp_path: Path, gate: Gate) -> None:
    python = python_of("codspeed", "pytest")
    project = example_project(tmp_path, "pytest-codspeed")
    suite = (project.path / "test_performance.py").read_text()
    # The patch has too little more work for a busy host.
    project.write("test_performance.py", suite.replace("2100", "200_000"))
    project.commit()
    options = ("--baseline", "before", "--kind", "pytest", *GATE_OPTIONS)
    answer = gate(project, *options, "--", python, *PYTEST, **NEITHER)
    assert answer.status == 1, answer
    rows = document(answer)["gate"]["rows"]
    assert {row["benchmark"]: row["outcome"] for row in rows} == {
        "test_performance.py::test_sum_performance": "slower",
        "test_performance.py::test_precise_performance": "slower",
    }
