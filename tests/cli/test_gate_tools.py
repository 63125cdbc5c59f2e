"""`equipoise gate --kind`: the benchmarks of Go, cargo and pytest across two revisions."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Gate
from tests.cli.test_gate import document
from tests.repositories import MadeRepository, repository

GO = """package sums
import "testing"
var total int
func BenchmarkSum(b *testing.B) {
	for i := 0; i < b.N; i++ {
		for n := 0; n < WORK; n++ { total += n ^ total }
	}
}
"""
CARGO = """#!/bin/sh
test "$1" = bench || exit 1
test "$2" = --no-run && exit 0
printf 'test sum ... bench:  %s ns/iter (+/- 1)\\n' "$(cat nanoseconds)"
printf 'test only here%s ... bench:  1 ns/iter (+/- 1)\\n' "$(cat nanoseconds)"
"""
PYTEST = """
import parsing

def test_parse(equipoise_benchmark):
    assert equipoise_benchmark(parsing.parse) >= 0
"""


def made_of(folder: Path, files: dict[str, str], later: dict[str, str]) -> MadeRepository:
    """A repository of two commits, the earlier one tagged."""
    made = repository(folder / "project")
    for name, text in files.items():
        made.write(name, text, executable=name.startswith("bin/"))
    made.commit()
    made.git("tag", "before")
    for name, text in later.items():
        made.write(name, text)
    made.commit()
    return made


@pytest.mark.live("go", package="golang-go")
def test_go_s_own_benchmarks_of_two_revisions_are_compared(tmp_path: Path, gate: Gate) -> None:
    made = made_of(
        tmp_path,
        {"go.mod": "module m\n\ngo 1.19\n", "sum_test.go": GO.replace("WORK", "1000")},
        {"sum_test.go": GO.replace("WORK", "5000")},
    )
    # Linked once: `go test` links anew in every trial.
    build = ("--build", "go test -c -o bench.test")
    words = ("./bench.test", "-test.run", "^$", "-test.bench", ".", "-test.benchtime", "200x")
    options = ("--kind", "go", *build, "--json", "-")
    result = document(gate(made, "--baseline", "before", *options, "--", *words))
    (row,) = result["gate"]["rows"]
    assert row["benchmark"].startswith("m.BenchmarkSum")
    assert row["outcome"] == "slower"
    assert 2.0 < row["ratio"] < 10.0


def test_a_benchmark_of_cargo_that_only_one_revision_has_is_said(
    tmp_path: Path, gate: Gate
) -> None:
    made = made_of(
        tmp_path,
        {"bin/cargo": CARGO, "nanoseconds": "1,000"},
        {"nanoseconds": "1,300.5"},
    )
    path = f"{made.path / 'bin'}:{os.environ['PATH']}"
    answer = gate(made, "--baseline", "before", "--kind", "cargo", "--json", "-", PATH=path)
    assert answer.status == 1, answer
    (row,) = document(answer)["gate"]["rows"]
    assert (row["benchmark"], row["outcome"]) == ("sum", "slower")
    assert row["ratio"] == pytest.approx(1.3005)
    warnings = [one["summary"] for one in document(answer)["warnings"]]
    assert "only here1,000 is only in the baseline, and was not compared" in warnings
    assert "only here1,300.5 is only in the candidate, and was not compared" in warnings


def test_a_project_s_pytest_benchmarks_go_through_a_gate(tmp_path: Path, gate: Gate) -> None:
    made = made_of(
        tmp_path,
        {
            "test_parse.py": PYTEST,
            "parsing.py": "def parse():\n    return sum(range(1000))\n",
            "test_other.py": "def test_other():\n    raise AssertionError('not a benchmark')\n",
        },
        {"parsing.py": "def parse():\n    return sum(range(3000))\n"},
    )
    words = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider")
    options = ("--kind", "pytest", "--blocks", "1", "--json", "-")
    # What else is installed here need not be loaded six times.
    alone = {
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "PYTEST_PLUGINS": "equipoise.helpers.pytest_plugin",
    }
    result = document(gate(made, "--baseline", "before", *options, "--", *words, **alone))
    (row,) = result["gate"]["rows"]
    assert row["benchmark"] == "test_parse.py::test_parse"
    assert row["ratio"] > 1.5
    assert result["trials"][0]["iterations"].keys() == {"test_parse.py::test_parse time_s"}


def test_where_nothing_is_reported_a_gate_says_what_it_looked_for(
    tmp_path: Path, gate: Gate
) -> None:
    made = made_of(tmp_path, {"file": ""}, {})
    answer = gate(made, "--baseline", "before", "--kind", "go", "--build", "true", "--", "true")
    assert answer.status == 2
    assert "have no benchmark of go in common" in answer.err


def test_a_tool_that_fails_is_told_with_what_it_said(tmp_path: Path, gate: Gate) -> None:
    made = made_of(tmp_path, {"file": ""}, {})
    line = ("sh", "-c", "echo FAIL here; exit 2")
    answer = gate(made, "--baseline", "before", "--kind", "go", "--build", "true", "--", *line)
    assert answer.status == 3
    assert "baseline before (" in answer.err
    assert "FAIL here" in answer.err
