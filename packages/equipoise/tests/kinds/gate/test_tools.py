"""`equipoise gate --kind`: the benchmarks of Go, cargo, pytest and Google Benchmark."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from packages.equipoise.tests.cli.conftest import Gate
from packages.equipoise.tests.kinds.gate.test_command import document
from packages.equipoise.tests.repositories import MadeRepository, repository

GO = """package sums
import "testing"
var total int
func BenchmarkSum(b *testing.B) {
	for i := 0; i < b.N; i++ {
		for n := 0; n < WORK; n++ { total += n ^ total }
	}
	// Said, not measured: a fifth of a millisecond has no time of its own on a busy host.
	b.ReportMetric(WORK, "ns/op")
}
"""
CARGO = """#!/bin/sh
test "$1" = bench || exit 1
test "$2" = --no-run && exit 0
printf 'test sum ... bench:  %s ns/iter (+/- 1)\\n' "$(cat nanoseconds)"
printf 'test only here%s ... bench:  1 ns/iter (+/- 1)\\n' "$(cat nanoseconds)"
"""
GOOGLE_BENCHMARK = """
#include <benchmark/benchmark.h>
#include <iostream>
template <class T> static void Sum(benchmark::State& state) {
  for (auto _ : state)
    for (T n = 0; n < WORK * state.range(0); n++) benchmark::DoNotOptimize(n);
}
static void Same(benchmark::State& state) {
  for (auto _ : state)
    for (int n = 0; n < 1000; n++) benchmark::DoNotOptimize(n);
}
static void Broken(benchmark::State& state) {
  state.SkipWithError("no data");
  for (auto _ : state) {}
}
BENCHMARK_TEMPLATE(Sum, int)->Arg(8)->Arg(80);
BENCHMARK(Same);
BENCHMARK(Broken);
BENCHMARK(Same)->Name("only in WORK");
int main(int argc, char** argv) {
  std::cout << "a banner" << std::endl;
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
"""
ONE_BENCHMARK = """#!/bin/sh
case "$*" in
  *--benchmark_list_tests) echo Sum; exit ;;
  *--benchmark_list_tests*) exit ;;
esac
for word; do case $word in --benchmark_out=*) out=${word#*=} ;; esac; done
echo '{"context": {}, "benchmarks": [{"name": "Sum", "real_time": 5, "cpu_time": 4,
  "iterations": 3, "time_unit": "ns"}]}' > "$out"
"""
PYTEST = """
import parsing

def test_parse(equipoise_benchmark):
    assert equipoise_benchmark(parsing.parse) >= 0
"""


def made_of(folder: Path, files: dict[str, str], later: dict[str, str]) -> MadeRepository:
    """A repository of two commits, the earlier one tagged."""
    project = repository(folder / "project")
    for name, text in files.items():
        project.write(name, text, executable=name.startswith("bin/"))
    project.commit()
    project.git("tag", "before")
    for name, text in later.items():
        project.write(name, text)
    project.commit()
    return project


@pytest.mark.live("go", package="golang-go")
def test_go_s_own_benchmarks_of_two_revisions_are_compared(tmp_path: Path, gate: Gate) -> None:
    project = made_of(
        tmp_path,
        {"go.mod": "module m\n\ngo 1.19\n", "sum_test.go": GO.replace("WORK", "1000")},
        {"sum_test.go": GO.replace("WORK", "5000")},
    )
    # Linked once, because `go test` links again in every trial.
    build = ("--build", "go test -c -o bench.test")
    words = ("./bench.test", "-test.run", "^$", "-test.bench", ".", "-test.benchtime", "200x")
    options = ("--kind", "go", *build, "--json", "-")
    result = document(gate(project, "--baseline", "before", *options, "--", *words))
    (row,) = result["gate"]["rows"]
    assert row["benchmark"].startswith("m.BenchmarkSum")
    assert GO.splitlines()[row["place"]["line"] - 1].startswith("func BenchmarkSum(")
    assert row["outcome"] == "slower"
    assert row["ratio"] == pytest.approx(5.0)


@pytest.fixture
def cpp(tmp_path: Path) -> MadeRepository:
    """A program of Google Benchmark whose later revision does more work in `Sum`."""
    if not Path("/usr/include/benchmark/benchmark.h").exists():
        pytest.skip("misses benchmark/benchmark.h: apt-get install libbenchmark-dev")
    before, after = (GOOGLE_BENCHMARK.replace("WORK", work) for work in ("100", "1000"))
    project = {"Makefile": "bench: bench.cc\n\t@$(CXX) -O0 $< -lbenchmark -lpthread -o $@\n"}
    return made_of(tmp_path, {**project, "bench.cc": before}, {"bench.cc": after})


GOOGLE = ("--kind", "google-benchmark", "--build", "make -s", "--min-effect", "50")


@pytest.mark.live("g++")
def test_each_benchmark_of_google_benchmark_is_compared_in_its_own_processes(
    cpp: MadeRepository, gate: Gate
) -> None:
    words = ("./bench", "--benchmark_min_time=0.002", "--benchmark_filter=-Broken")
    # A busy host delays the program; what it computes stays the same.
    options = (*GOOGLE, "--metrics", "cpu_time_s", "--budget", "400", "--json", "-")
    answer = gate(cpp, "--baseline", "before", *options, "--", *words)
    assert answer.status == 1, answer
    result = document(answer)
    outcomes = {row["benchmark"]: row["outcome"] for row in result["gate"]["rows"]}
    assert outcomes == {"Sum<int>/8": "slower", "Sum<int>/80": "slower", "Same": "passes"}
    assert all(row["ratio"] > 4.0 for row in result["gate"]["rows"] if row["benchmark"] != "Same")
    assert [
        warning["summary"] for warning in result["warnings"] if "revision" in warning["code"]
    ] == [
        "only in 100 is only in the baseline, and was not compared",
        "only in 1000 is only in the candidate, and was not compared",
    ]
    commands = [condition["command"] for condition in result["conditions"]]
    assert commands[0][-2:] == ["--benchmark_filter=-Broken", "--benchmark_filter=^Sum<int>/8$"]


@pytest.mark.live("g++")
def test_a_google_benchmark_that_fails_or_matches_no_filter_is_reported(
    cpp: MadeRepository, gate: Gate
) -> None:
    start = ("--baseline", "before", *GOOGLE, "--", "./bench")
    answer = gate(cpp, *start, "--benchmark_filter=Broken")
    assert answer.status == 3, answer
    assert "Broken reported an error: no data" in answer.err
    answer = gate(cpp, "--blocks", "1", "--json", "-", *start, "--benchmark_filter=Same")
    (row,) = document(answer)["gate"]["rows"]
    assert (row["benchmark"], row["metric"]) == ("Same", "time_s")
    command = document(answer)["conditions"][0]["command"]
    assert command[-2:] == ["--benchmark_min_time=0.05", "--benchmark_filter=^Same$"]
    answer = gate(cpp, *start, "--benchmark_filter=Nothing")
    assert answer.status == 2, answer
    assert "its options choose no benchmark" in answer.err


@pytest.mark.parametrize(
    ("program", "problem"),
    [
        ("#!/bin/sh\nexit 4\n", "exit status 4"),
        ("#!/bin/sh\necho any words\n", "it lists no benchmark"),
        ("#!/bin/sh\nyes | head -c 16777217\n", "its list has more than 16777216 bytes"),
        ("no program\n", "Exec format error"),
    ],
)
def test_a_program_without_google_benchmark_is_refused_with_a_hint(
    program: str, problem: str, tmp_path: Path, gate: Gate
) -> None:
    project = made_of(tmp_path, {"bin/bench": program}, {})
    answer = gate(project, "--baseline", "before", "--kind", "google-benchmark", "--", "bin/bench")
    assert answer.status == 2, answer
    assert "bench is not a program of google-benchmark" in answer.err
    assert problem in answer.err
    assert "remove --kind google-benchmark to time the whole program" in answer.err


def test_several_programs_of_google_benchmark_have_distinct_names(
    tmp_path: Path, gate: Gate
) -> None:
    project = made_of(tmp_path, {"bin/bench": ONE_BENCHMARK}, {})
    programs = ("--bench", "one=bin/bench", "--bench", "two=bin/bench")
    kind = ("--kind", "google-benchmark", "--blocks", "1", "--json", "-")
    rows = document(gate(project, "--baseline", "before", *kind, *programs))["gate"]["rows"]
    assert [row["benchmark"] for row in rows] == ["one: Sum", "two: Sum"]
    assert {row["candidate_median"] for row in rows} == {5e-9}


def test_google_benchmark_needs_a_program(tmp_path: Path, gate: Gate) -> None:
    answer = gate(made_of(tmp_path, {"file": ""}, {}), "--baseline", "before", *GOOGLE)
    assert answer.status == 2
    assert "equipoise gate --baseline main --kind google-benchmark --build make -- ./bench" in (
        answer.err
    )


def test_a_warning_names_a_cargo_benchmark_that_only_one_revision_has(
    tmp_path: Path, gate: Gate
) -> None:
    project = made_of(
        tmp_path,
        {"bin/cargo": CARGO, "nanoseconds": "1,000"},
        {"nanoseconds": "1,300.5"},
    )
    path = f"{project.path / 'bin'}:{os.environ['PATH']}"
    answer = gate(project, "--baseline", "before", "--kind", "cargo", "--json", "-", PATH=path)
    assert answer.status == 1, answer
    (row,) = document(answer)["gate"]["rows"]
    assert (row["benchmark"], row["outcome"]) == ("sum", "slower")
    assert row["ratio"] == pytest.approx(1.3005)
    warnings = [warning["summary"] for warning in document(answer)["warnings"]]
    assert "only here1,000 is only in the baseline, and was not compared" in warnings
    assert "only here1,300.5 is only in the candidate, and was not compared" in warnings


@pytest.mark.parametrize(
    ("fixture", "plugins", "iterated"),
    [
        (
            "equipoise_benchmark",
            "equipoise.helpers.pytest_plugin",
            {"test_parse.py::test_parse time_s"},
        ),
        ("benchmark", "pytest_benchmark.plugin,equipoise.helpers.pytest_plugin", set()),
    ],
    ids=["of our own", "of pytest-benchmark"],
)
def test_a_project_s_pytest_benchmarks_go_through_a_gate_as_they_are(
    tmp_path: Path, gate: Gate, fixture: str, plugins: str, iterated: set[str]
) -> None:
    project = made_of(
        tmp_path,
        {
            "test_parse.py": PYTEST.replace("equipoise_benchmark", fixture),
            "parsing.py": "def parse():\n    return sum(range(1000))\n",
            "test_other.py": "def test_other():\n    raise AssertionError('not a benchmark')\n",
        },
        {"parsing.py": "def parse():\n    return sum(range(100_000))\n"},
    )
    words = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider")
    options = ("--kind", "pytest", "--blocks", "1", "--json", "-")
    alone = {
        # Other installed plugins need not be loaded six times.
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "PYTEST_PLUGINS": plugins,
        # Of the session that runs this test; pytest-benchmark measures nothing under xdist.
        "PYTEST_XDIST_WORKER": "",
    }
    result = document(gate(project, "--baseline", "before", *options, "--", *words, **alone))
    (row,) = result["gate"]["rows"]
    assert row["benchmark"] == "test_parse.py::test_parse"
    assert PYTEST.splitlines()[row["place"]["line"] - 1].startswith("def test_parse(")
    assert row["place"]["path"] == "test_parse.py"
    # The added work is so large that one block shows it even on a busy host.
    assert row["ratio"] > 1.5
    assert result["trials"][0]["iterations"].keys() == iterated


def test_without_reported_benchmarks_the_error_names_the_expected_ones(
    tmp_path: Path, gate: Gate
) -> None:
    project = made_of(tmp_path, {"file": ""}, {})
    answer = gate(project, "--baseline", "before", "--kind", "go", "--build", "true", "--", "true")
    assert answer.status == 2
    assert "have no benchmark of go in common" in answer.err


def test_a_failed_tool_is_reported_with_its_output(tmp_path: Path, gate: Gate) -> None:
    project = made_of(tmp_path, {"file": ""}, {})
    line = ("sh", "-c", "echo FAIL here; exit 2")
    answer = gate(project, "--baseline", "before", "--kind", "go", "--build", "true", "--", *line)
    assert answer.status == 3
    assert "baseline before (" in answer.err
    assert "FAIL here" in answer.err
