"""Files that the real tools write now are read with every value."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from packages.equipoise.tests.imports import reading_of, written
from packages.equipoise.tests.tools import decoded, printed_by

GOOGLE_BENCHMARK = """
#include <benchmark/benchmark.h>
static void Copy(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(state.range(0));
  state.counters["items"] = 3;
  state.SetBytesProcessed(state.iterations() * state.range(0));
  state.SetLabel("a label");
}
BENCHMARK(Copy)->Arg(8)->Arg(64)->Unit(benchmark::kMicrosecond);
static void Manual(benchmark::State& state) {
  for (auto _ : state) state.SetIterationTime(0.25);
}
BENCHMARK(Manual)->UseManualTime()->Iterations(2)->Threads(2)->Unit(benchmark::kSecond);
static void Broken(benchmark::State& state) {
  state.SkipWithError("no data");
  for (auto _ : state) {}
}
BENCHMARK(Broken);
BENCHMARK_MAIN();
"""
PLACES = {
    *("family_index", "per_family_instance_index", "repetitions", "repetition_index", "threads"),
}
"""Which run an entry is of, which is not measured."""
OWN_NAMES = {"real_time": "time_s", "cpu_time": "cpu_s"}
UNITS = {"ns": 1e-9, "us": 1e-6, "s": 1.0}
PYTEST_BENCHMARK = """
import pytest

@pytest.mark.parametrize("n", [1, 2])
def test_sum(benchmark, n):
    benchmark.pedantic(sum, args=([n],), rounds=4, iterations=2)
"""
GO = """package sums

import "testing"

func BenchmarkSum(b *testing.B) {
	for _, size := range []int{10, 1000} {
		b.Run("size", func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(size))
			total := 0
			for i := 0; i < b.N; i++ {
				for j := 0; j < size; j++ {
					total += j
				}
			}
			b.ReportMetric(float64(total), "total")
		})
	}
}
"""


@pytest.mark.live("hyperfine")
def test_times_and_exit_codes_of_hyperfine(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    printed_by(
        *("hyperfine", "--shell=none", "--style=none", "--runs=3", "--ignore-failure"),
        *("--export-json", path, "-L", "name", "true,false", "{name}"),
        folder=tmp_path,
    )
    form, reading = reading_of(path)
    assert form == "hyperfine"
    theirs = decoded(path)["results"]
    assert [process.values["wall_s"] for process in reading.processes] == [
        time for result in theirs for time in result["times"]
    ]
    assert [process.exit for process in reading.processes] == [0, 0, 0, 1, 1, 1]
    assert [process.levels["name"] for process in reading.processes] == ["true"] * 3 + ["false"] * 3
    means = reading.environment["mean_cpu_seconds"]
    assert means["true"] == {"user": theirs[0]["user"], "system": theirs[0]["system"]}


def test_values_and_warm_ups_of_pyperf(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    printed_by(
        *(sys.executable, "-m", "pyperf", "timeit", "--quiet", "-p", "2", "-n", "3", "-w", "1"),
        *("-l", "10", "-o", path, "sum(range(10))"),
        folder=tmp_path,
    )
    form, reading = reading_of(path)
    assert form == "pyperf"
    assert reading.tool is not None and reading.tool.startswith("pyperf 2")
    runs = decoded(path)["benchmarks"][0]["runs"]
    assert [list(process.iterations["time_s"]) for process in reading.processes] == [
        run["values"] for run in runs
    ]
    assert [list(process.iterations["warmup_time_s"]) for process in reading.processes] == [
        [value for _, value in run["warmups"]] for run in runs
    ]
    assert reading.environment == decoded(path)["metadata"]


def test_peak_memory_and_a_suite_of_pyperf(tmp_path: Path) -> None:
    path = tmp_path / "suite.json"
    for name in ("first", "second"):
        printed_by(
            *(sys.executable, "-m", "pyperf", "command", "--quiet", "--track-memory", "-p", "2"),
            *("-n", "1", "-w", "0", "-l", "1", "--name", name, "--append", path, "true"),
            folder=tmp_path,
        )
    form, reading = reading_of(path)
    assert (form, reading.metric) == ("pyperf", "memory_bytes")
    assert [
        (process.benchmark, list(process.iterations["memory_bytes"]))
        for process in reading.processes
    ] == [
        (name, run["values"])
        for name, benchmark in zip(("first", "second"), decoded(path)["benchmarks"], strict=True)
        for run in benchmark["runs"]
    ]


def test_rounds_of_pytest_benchmark_are_iterations_of_one_process(tmp_path: Path) -> None:
    (tmp_path / "test_sum.py").write_text(PYTEST_BENCHMARK)
    path = tmp_path / "result.json"
    printed_by(
        *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", "/dev/null"),
        *(f"--rootdir={tmp_path}", f"--benchmark-json={path}", "test_sum.py"),
        folder=tmp_path,
        environment=not_side_by_side(),
    )
    form, reading = reading_of(path)
    assert form == "pytest-benchmark"
    theirs = decoded(path)["benchmarks"]
    assert [process.benchmark for process in reading.processes] == [
        result["fullname"] for result in theirs
    ]
    assert [list(process.iterations["time_s"]) for process in reading.processes] == [
        result["stats"]["data"] for result in theirs
    ]
    assert all(len(process.iterations["time_s"]) == 4 for process in reading.processes)
    assert reading.environment["machine"] == decoded(path)["machine_info"]


def not_side_by_side() -> dict[str, str]:
    """Our environment, but for what tells pytest-benchmark that other workers run tests, too."""
    return {name: value for name, value in os.environ.items() if "XDIST" not in name}


@pytest.mark.live("g++")
def test_repetitions_and_counters_of_google_benchmark(tmp_path: Path) -> None:
    if not Path("/usr/include/benchmark/benchmark.h").exists():
        pytest.skip("misses benchmark/benchmark.h: apt-get install libbenchmark-dev")
    source, program, path = (tmp_path / name for name in ("bench.cc", "bench", "result.json"))
    source.write_text(GOOGLE_BENCHMARK)
    printed_by("g++", "-O0", source, "-lbenchmark", "-lpthread", "-o", program, folder=tmp_path)
    printed_by(
        *(program, "--benchmark_min_time=0.001", "--benchmark_repetitions=3"),
        *(f"--benchmark_out={path}", "--benchmark_out_format=json"),
        folder=tmp_path,
    )
    form, reading = reading_of(path)
    assert form == "google-benchmark"
    measured = [
        benchmark
        for benchmark in decoded(path)["benchmarks"]
        if benchmark["run_type"] == "iteration" and not benchmark.get("error_occurred")
    ]
    names = ["Copy/8", "Copy/64", "Manual/iterations:2/manual_time/threads:2"]
    assert [process.benchmark for process in reading.processes] == names
    for process in reading.processes:
        own = [benchmark for benchmark in measured if benchmark["run_name"] == process.benchmark]
        assert len(own) == 3
        factor = UNITS[own[0]["time_unit"]]
        expected = {
            metric: [benchmark[key] * (factor if key in OWN_NAMES else 1.0) for benchmark in own]
            for key in own[0]
            if key not in PLACES and not isinstance(own[0][key], str)
            for metric in (OWN_NAMES.get(key, key),)
        }
        assert {name: list(values) for name, values in process.iterations.items()} == expected
    assert {"items", "bytes_per_second"} <= set(reading.processes[0].iterations)
    assert reading.notes == ("Broken reported an error: no data",)
    assert reading.environment == decoded(path)["context"]


@pytest.mark.live("go", package="golang-go")
def test_lines_of_go_with_every_value_and_unit(tmp_path: Path) -> None:
    (tmp_path / "go.mod").write_text("module example.com/sums\n\ngo 1.19\n")
    (tmp_path / "sums_test.go").write_text(GO)
    printed = printed_by(
        *("go", "test", "-bench", ".", "-count", "2", "-benchtime", "20x"),
        folder=tmp_path,
        environment={**os.environ, "GOTOOLCHAIN": "local", "GOFLAGS": "-mod=mod"},
    )
    form, reading = reading_of(written(tmp_path, "out.txt", printed))
    assert form == "go"
    lines = [line.split() for line in printed.splitlines() if line.startswith("Benchmark")]
    assert len(lines) == 4
    for process in reading.processes:
        own = [words for words in lines if words[0] == process.benchmark]
        assert list(process.iterations["loop_iterations"]) == [float(words[1]) for words in own]
        for place in range(2, len(own[0]), 2):
            unit = own[0][place + 1]
            theirs = [float(words[place]) for words in own]
            if unit == "ns/op":
                assert list(process.iterations["time_s"]) == [value * 1e-9 for value in theirs]
            else:
                assert list(process.iterations[unit]) == theirs
        assert {"MB/s", "B/op", "allocs/op", "total"} <= set(process.iterations)
