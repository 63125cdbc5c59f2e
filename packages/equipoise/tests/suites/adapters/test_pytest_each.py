"""Benchmarks of pytest, each in processes of its own."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from packages.equipoise.tests.cli.conftest import Gate
from packages.equipoise.tests.repositories import MadeRepository, repository
from packages.equipoise.tests.suites.test_trial import run

PYTEST = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "perf")
BENCHMARKS = """
import functions, pytest, shapes

@pytest.fixture(scope="module")
def text():
    return "words"

class TestParse:
    @pytest.mark.parametrize("name", ["a::b c[1]"])
    def test_parse(self, equipoise_benchmark, text, name):
        equipoise_benchmark(functions.parse, text + name)

def test_render(equipoise_benchmark):
    equipoise_benchmark(shapes.render)

def test_without_a_benchmark():
    raise AssertionError
"""
NAMES = [
    "perf/test_it.py::TestParse::test_parse[a::b c[1]]",
    "perf/test_it.py::test_render",
]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MadeRepository:
    """A repository with two benchmarks; its later commit changes a function of one."""
    # Of the session that runs this test.
    for name in ("PYTEST_ADDOPTS", "PYTEST_PLUGINS", "PYTEST_XDIST_WORKER", "PYTHONPATH"):
        monkeypatch.delenv(name, raising=False)
    # Other installed plugins need not be loaded in each process.
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    project = repository(tmp_path / "project")
    project.write("functions.py", "def parse(text):\n    return text\n")
    project.write("shapes.py", "def render():\n    return 1\n")
    project.write("perf/test_it.py", BENCHMARKS)
    project.write("perf/test_broken.py", "")
    project.write("pytest.ini", "[pytest]\n")
    project.write(".gitignore", "__pycache__\n")
    project.commit()
    project.write("functions.py", "def parse(text):\n    return text + text\n")
    project.commit()
    return project


def test_a_process_measures_one_benchmark_and_collects_only_its_file(
    project: MadeRepository, tmp_path: Path
) -> None:
    project.write("perf/test_broken.py", "1 / 0\n")
    metrics = tmp_path / "metrics.jsonl"
    words = (*PYTEST, f"--benchmark-node={NAMES[0]}")
    variables = {"EQUIPOISE_METRICS": str(metrics), "EQUIPOISE_GATE_TREE": str(project.path)}
    done = run("pytest-each", *words, folder=project.path, **variables)
    assert done.returncode == 0, done.stderr
    (line,) = map(json.loads, metrics.read_text().splitlines())
    assert (line["metric"], line["unit"]) == ("time_s", "s")
    assert line["value"] > 0


def test_a_benchmark_that_fails_ends_with_the_output_of_pytest(project: MadeRepository) -> None:
    project.write("shapes.py", "def render():\n    raise ValueError('no shape')\n")
    words = (*PYTEST, f"--benchmark-node={NAMES[1]}")
    done = run("pytest-each", *words, folder=project.path, EQUIPOISE_GATE_TREE=str(project.path))
    assert done.returncode == 1
    assert "ValueError: no shape" in done.stderr
    assert "ended with status 1" in done.stderr


def test_a_program_that_is_not_pytest_is_named(
    project: MadeRepository, gate: Gate, tmp_path: Path
) -> None:
    answer = gate(project, "--baseline", "HEAD~1", "--kind", "pytest-each", "--", "true")
    assert answer.status == 2
    assert "true lists no benchmark: it is not pytest, or has no tests" in answer.err
    assert "Traceback" not in answer.err


def test_a_gate_lists_the_benchmarks_and_measures_untouched_ones_last(
    project: MadeRepository, gate: Gate, tmp_path: Path
) -> None:
    options = ("--touched", "--budget", "0.1", "--warmup", "0", "--json", "../gate.json")
    words = ("--baseline", "HEAD~1", "--ledger", "../ledger.db", "--kind", "pytest-each")
    answer = gate(project, *words, *options, "--", *PYTEST)
    assert answer.status == 0, answer.err
    assert "--touched: 1 of 2 benchmarks may run a changed file, 1 is measured last" in answer.err
    result = json.loads((tmp_path / "gate.json").read_text())
    assert [row["benchmark"] for row in result["gate"]["rows"]] == NAMES
    assert [row["blocks"] > 0 for row in result["gate"]["rows"]] == [True, False]
