"""The pytest plugin runs benchmarks under a gate, and ordinary tests otherwise."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from equipoise.helpers.pytest_plugin import BATCH_COUNT
from packages.equipoise.tests.programs import finished

BENCHMARKS = """
import pytest

CALLS = []

def work(n, *, more=0):
    CALLS.append(n)
    return n + more

@pytest.mark.parametrize("n", [1, 2])
def test_work(equipoise_benchmark, n):
    assert equipoise_benchmark(work, n, more=1) == n + 1

def test_ordinary():
    assert CALLS in ([1, 2], [])
"""


ALONE = {
    "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    "PYTEST_PLUGINS": "equipoise.helpers.pytest_plugin",
}
AS_INSTALLED = dict.fromkeys(ALONE, "")


def session(folder: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """A run of pytest in a folder, with only this plugin and those of pytest."""
    own = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("EQUIPOISE_METRICS", "EQUIPOISE_GATE"))
    }
    return finished(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *words],
        cwd=folder,
        env={**own, **ALONE, **variables},
    )


def metrics(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_plain_pytest_calls_the_function_once(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(BENCHMARKS)
    done = session(tmp_path, **AS_INSTALLED)
    assert done.returncode == 0, done.stdout
    assert "3 passed" in done.stdout


def test_in_a_trial_every_test_is_a_metric_with_its_batches(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(BENCHMARKS)
    file = tmp_path / "metrics.jsonl"
    session(tmp_path, EQUIPOISE_METRICS=str(file), EQUIPOISE_GATE_TREE=str(tmp_path))
    values = metrics(file)
    whole = {sample["metric"]: sample["value"] for sample in values if "iteration" not in sample}
    assert whole.keys() == {"test_it.py::test_work[1] time_s", "test_it.py::test_work[2] time_s"}
    for metric, value in whole.items():
        own = [
            sample["value"]
            for sample in values
            if sample["metric"] == metric and "iteration" in sample
        ]
        assert len(own) == BATCH_COUNT
        assert value == pytest.approx(sum(own) / BATCH_COUNT)
        assert value > 0


def test_under_a_gate_only_benchmarks_run(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(BENCHMARKS)
    done = session(
        tmp_path,
        EQUIPOISE_METRICS=str(tmp_path / "metrics.jsonl"),
        EQUIPOISE_GATE_TREE=str(tmp_path),
    )
    assert done.returncode == 0
    assert "2 passed, 1 deselected" in done.stdout


def test_marked_tests_without_pytest_codspeed_are_an_error(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        "import pytest\n@pytest.mark.benchmark\ndef test_it():\n    pass\n"
    )
    done = session(tmp_path, EQUIPOISE_GATE_TREE=str(tmp_path))
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "tests have the marker of pytest-codspeed, but no fixture: install" in done.stdout
    assert session(tmp_path).returncode == 0


def test_a_benchmark_that_fails_fails(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        "def test_it(equipoise_benchmark):\n    assert equipoise_benchmark(sum, [1]) == 2\n"
    )
    assert session(tmp_path).returncode == 1


def test_async_functions_are_awaited(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        "import asyncio\n"
        "async def later(n, *, more=0):\n    await asyncio.sleep(0.002)\n    return n + more\n"
        "def test_it(equipoise_benchmark):\n"
        "    assert equipoise_benchmark(later, 1, more=1) == 2\n"
    )
    done = session(tmp_path, "-W", "error")
    assert done.returncode == 0, done.stdout
    file = tmp_path / "metrics.jsonl"
    gate = {"EQUIPOISE_METRICS": str(file), "EQUIPOISE_GATE_TREE": str(tmp_path)}
    done = session(tmp_path, "-W", "error", **gate)
    assert done.returncode == 0, done.stdout
    assert all(metric["value"] > 0.002 for metric in metrics(file))


def test_two_measurements_in_one_test_are_refused(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        "def test_it(equipoise_benchmark):\n"
        "    equipoise_benchmark(sum, [1])\n"
        "    equipoise_benchmark(sum, [2])\n"
    )
    done = session(tmp_path)
    assert done.returncode == 1
    assert "equipoise_benchmark was called twice in test_it.py::test_it" in done.stdout


def test_under_a_gate_nothing_comes_from_the_users_own_tree(tmp_path: Path) -> None:
    own, tree = tmp_path / "own", tmp_path / "tree"
    for folder in (own, tree):
        (folder / "sources").mkdir(parents=True)
        (folder / "sources" / "parsing.py").write_text("def parse():\n    return 1\n")
        (folder / "test_it.py").write_text(
            "import parsing\n"
            "def test_it(equipoise_benchmark):\n    assert equipoise_benchmark(parsing.parse)\n"
        )
    gate = {
        "EQUIPOISE_GATE_TREE": str(tree),
        "EQUIPOISE_GATE_INSTEAD_OF": str(own),
        "EQUIPOISE_METRICS": str(tmp_path / "metrics.jsonl"),
    }
    done = session(tree, PYTHONPATH=str(own / "sources"), **gate)
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert f"parsing was imported from {own}, which is neither revision" in done.stderr
    done = session(tree, PYTHONPATH="sources", **gate)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("sources", ["src", "."])
def test_under_a_gate_no_installed_package_replaces_that_of_the_revision(
    sources: str, tmp_path: Path
) -> None:
    installed, tree = tmp_path / "site-packages", tmp_path / "tree"
    for folder in (installed, tree / sources):
        (folder / "parsing").mkdir(parents=True)
        (folder / "parsing" / "__init__.py").touch()
    (tree / "tests").mkdir()
    (tree / "tests" / "test_it.py").write_text(
        "import parsing\ndef test_it(equipoise_benchmark):\n    equipoise_benchmark(int)\n"
    )
    gate = {"EQUIPOISE_GATE_TREE": str(tree), "EQUIPOISE_GATE_INSTEAD_OF": str(tmp_path / "own")}
    done = session(tree, PYTHONPATH=str(installed), PYTHONSAFEPATH="1", **gate)
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert f"parsing was imported from {installed / 'parsing'}, which is neither" in done.stderr
    done = session(tree, PYTHONPATH=f"{tree / sources}:{installed}", **gate)
    assert done.returncode == 0, done.stderr


def test_a_project_that_does_not_use_it_imports_nothing_of_it(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        "import sys\n"
        "def test_it():\n"
        "    heavy = {'numpy', 'msgspec', 'click', 'rich', 'psutil'} & sys.modules.keys()\n"
        "    ours = {name for name in sys.modules if name.startswith('equipoise.')}\n"
        "    assert not heavy\n"
        "    assert ours == {'equipoise.helpers', 'equipoise.helpers.pytest_plugin'}\n"
    )
    done = session(tmp_path)
    assert done.returncode == 0, done.stdout
