"""`equipoise gate --metrics instructions,allocations`: counts, decided without any time."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from equipoise.revisions import counted_metrics
from packages.equipoise.tests.cli.conftest import Gate
from packages.equipoise.tests.kinds.gate.test_command import document
from packages.equipoise.tests.kinds.gate.test_tools import made_of
from packages.equipoise.tests.repositories import MadeRepository

PROGRAM = """
#include <stdlib.h>
int main(void) {
    volatile long sum = 0;
    for (long at = 0; at < WORK; at++) sum += at;
    for (int at = 0; at < BLOCKS; at++) {
        volatile char *block = malloc(64);
        block[0] = 1;
        free((void *)block);
    }
    return 0;
}
"""
BUILT = ("--build", "make -s", "--min-effect", "0.5", "--warmup", "0", "--json", "-")
GO = """package sums
import "testing"
var kept []*[64]byte
func BenchmarkKeep(b *testing.B) {
	for i := 0; i < b.N; i++ {
		kept = kept[:0]
		for n := 0; n < WORK; n++ { kept = append(kept, new([64]byte)) }
	}
}
"""


def program_of(folder: Path, before: str, after: str) -> MadeRepository:
    """A repository of a program; both revisions define the macros of its work."""
    makefile = "bench: bench.c\n\t@$(CC) -O1 -fno-builtin {} $< -o $@\n"
    files = {"bench.c": PROGRAM, "Makefile": makefile.format(before)}
    return made_of(folder, files, {"Makefile": makefile.format(after)})


def without_counter(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(names: tuple[str, ...]) -> dict[str, str]:
        return dict.fromkeys(names, "no such counter")

    monkeypatch.setattr(counted_metrics, "missing_counters", missing)


@pytest.mark.live("valgrind")
def test_one_percent_more_instructions_is_found_in_three_runs_of_each_revision(
    tmp_path: Path, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_counter(monkeypatch)
    project = program_of(tmp_path, "-DWORK=1000000 -DBLOCKS=5", "-DWORK=1010000 -DBLOCKS=5")
    words = ("--baseline", "before", *BUILT, "--metrics", "instructions")
    answer = gate(project, *words, "--", "./bench")
    assert answer.status == 1, answer
    result = document(answer)
    (row,) = result["gate"]["rows"]
    assert (row["metric"], row["outcome"], row["exact"]) == (
        "simulated_instructions",
        "slower",
        True,
    )
    assert row["exact"]
    assert row["ratio"] == pytest.approx(1.01, abs=0.0005)
    assert len(result["trials"]) == 6
    assert result["gate"]["counted_by"]["simulated_instructions"].startswith(
        "callgrind of valgrind"
    )
    assert "in 3 runs of each revision" in result["gate"]["summary"]


@pytest.mark.live("valgrind")
def test_equal_builds_pass_and_the_screen_names_the_simulator(
    tmp_path: Path, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_counter(monkeypatch)
    project = program_of(tmp_path, "-DWORK=1000 -DBLOCKS=5", "-DWORK=1000 -DBLOCKS=5 -w")
    words = ("--baseline", "before", *BUILT[:-2], "--metrics", "instructions")
    answer = gate(project, *words, "--", "./bench")
    assert answer.status == 0, answer
    assert "it was equal in 3 runs of each revision" in answer.out
    assert "Simulated by callgrind of valgrind" in answer.out
    assert "No time of these runs is compared." in answer.out


def test_one_more_allocation_is_found_exactly(tmp_path: Path, gate: Gate) -> None:
    project = program_of(tmp_path, "-DWORK=1 -DBLOCKS=1000", "-DWORK=1 -DBLOCKS=1001")
    options = (*BUILT, "--min-effect", "0.05", "--metrics", "allocations,allocated_bytes")
    answer = gate(project, "--baseline", "before", *options, "--", "./bench")
    assert answer.status == 1, answer
    rows = {row["metric"]: row for row in document(answer)["gate"]["rows"]}
    assert (rows["allocations"]["baseline_median"], rows["allocations"]["candidate_median"]) == (
        1000,
        1001,
    )
    assert rows["allocated_bytes"]["candidate_median"] == 64 * 1001
    assert {row["outcome"] for row in rows.values()} == {"slower"}


@pytest.mark.live("go", package="golang-go")
def test_allocations_of_go_s_benchmarks_are_those_of_an_operation(
    tmp_path: Path, gate: Gate
) -> None:
    files = {"go.mod": "module m\n\ngo 1.19\n", "keep_test.go": GO.replace("WORK", "100")}
    project = made_of(tmp_path, files, {"keep_test.go": GO.replace("WORK", "101")})
    # Linked once, because `go test` links again in every trial.
    build = ("--build", "go test -c -o bench.test", "--min-effect", "0.5")
    words = ("./bench.test", "-test.run", "^$", "-test.bench", ".", "-test.benchtime", "2000x")
    options = ("--kind", "go", *build, "--metrics", "allocations,allocated_bytes", "--json", "-")
    answer = gate(project, "--baseline", "before", *options, "--", *words)
    assert answer.status == 1, answer
    first, second = document(answer)["gate"]["rows"]
    assert first["benchmark"].startswith("m.BenchmarkKeep")
    assert first["benchmark"].endswith(": allocations")
    assert (first["baseline_median"], first["candidate_median"], first["exact"]) == (100, 101, True)
    assert second["candidate_median"] - second["baseline_median"] > 50


FIXED = """#!/bin/sh
case "$*" in *benchmark_list_tests*^[$]) exit ;; *benchmark_list_tests*) echo Sum; exit ;; esac
for word; do case $word in
  *min_time=*x) count=${word#*=} count=${count%x} ;; *out=*) out=${word#*=} ;;
esac; done
test -z "$out" || echo '{"context": {}, "benchmarks": [{"name": "Sum", "real_time": 5,
  "cpu_time": 4, "iterations": COUNT, "time_unit": "ns"}]}' | sed "s/COUNT/$count/" > "$out"
exec ./work "$count"
"""
"""A program of Google Benchmark: the last number of iterations holds."""
WORK = """
#include <stdlib.h>
int main(int count, char **words) {
    for (int at = atoi(words[1]) * WORK; at > 0; at--) free(malloc(64));
}
"""


def test_a_benchmark_with_a_fixed_number_of_iterations_is_counted_for_one_iteration(
    tmp_path: Path, gate: Gate
) -> None:
    makefile = "work: work.c\n\t@$(CC) -fno-builtin -DWORK={} $< -o $@\n"
    files = {"bin/bench": FIXED, "work.c": WORK, "Makefile": makefile.format(4)}
    project = made_of(tmp_path, files, {"Makefile": makefile.format(5)})
    options = ("--kind", "google-benchmark", *BUILT, "--metrics", "allocations")
    answer = gate(project, "--baseline", "before", *options, "--", "bin/bench")
    assert answer.status == 1, answer
    result = document(answer)
    (row,) = result["gate"]["rows"]
    assert row["benchmark"] == "Sum: allocations"
    assert (row["baseline_median"], row["candidate_median"]) == (4, 5)


def test_a_benchmark_that_sets_its_own_number_of_iterations_is_not_counted(
    tmp_path: Path, gate: Gate
) -> None:
    files = {"bin/bench": FIXED.replace("s/COUNT/$count/", "s/COUNT/7/"), "bin/work": "#!/bin/sh\n"}
    project = made_of(tmp_path, files, {})
    options = ("--kind", "google-benchmark", "--metrics", "allocations")
    project.write("work", "#!/bin/sh\n", executable=True)
    project.commit()
    answer = gate(project, "--baseline", "HEAD", *options, "--", "bin/bench")
    assert answer.status == 3, answer
    assert "the benchmark ran 7 iterations instead of 100" in answer.err


@pytest.mark.parametrize(
    ("options", "problem", "hint"),
    [
        (
            ("--metrics", "wall_s,allocations"),
            "allocations would change wall_s: counting slows a program",
            "run two gates, one with --metrics allocations, one with --metrics wall_s",
        ),
        (
            ("--kind", "vitest", "--metrics", "instructions"),
            "vitest cannot count simulated_instructions of each benchmark",
            "remove --kind vitest to count a whole command, named after --",
        ),
        (
            ("--kind", "jmh", "--metrics", "allocations"),
            "jmh cannot count allocations of each benchmark",
            "choose --metrics allocated_bytes",
        ),
        (
            ("--kind", "go", "--metrics", "max_rss_bytes"),
            "go runs all benchmarks in one process, which has one max_rss_bytes",
            "remove --kind go to compare the whole process",
        ),
        (
            ("--kind", "google-benchmark", "--metrics", "time_s,max_rss_bytes"),
            "max_rss_bytes of a benchmark is compared without time_s",
            "run two gates, one with --metrics max_rss_bytes",
        ),
    ],
)
def test_metrics_that_do_not_go_together_are_refused_with_a_hint(
    options: tuple[str, ...], problem: str, hint: str, tmp_path: Path, gate: Gate
) -> None:
    project = made_of(tmp_path, {"bin/bench": "#!/bin/sh\n"}, {})
    answer = gate(project, "--baseline", "before", *options, "--", "bin/bench")
    assert answer.status == 2, answer
    assert problem in answer.err
    assert hint in answer.err


def test_without_valgrind_the_gate_says_how_to_install_it(
    tmp_path: Path, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_counter(monkeypatch)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    project = made_of(tmp_path, {"bin/bench": "#!/bin/sh\n"}, {})
    answer = gate(project, "--baseline", "before", "--metrics", "instructions", "--", "bin/bench")
    assert answer.status == 2, answer
    assert "valgrind, which counts instructions, is missing" in answer.err
    assert "hint: run apt-get install valgrind" in answer.err


def test_the_peak_memory_of_a_benchmark_is_not_that_of_the_program_that_reads_results(
    tmp_path: Path, gate: Gate
) -> None:
    project = made_of(tmp_path, {"bin/bench": FIXED.replace("exec", "exit # ")}, {})
    options = ("--kind", "google-benchmark", "--metrics", "max_rss_bytes", "--blocks", "1")
    answer = gate(project, "--baseline", "before", *options, "--json", "-", "--", "bin/bench")
    result: Any = document(answer)
    assert [trial["max_rss_bytes"] < 2**23 for trial in result["trials"]] == [True] * 2


PYTEST = """
from work import work

def test_own(equipoise_benchmark):
    assert len(equipoise_benchmark(work, 100)) >= 100

def test_plugin(benchmark):
    benchmark(work, 100)

def test_pedantic(benchmark):
    benchmark.pedantic(work, args=(100,), rounds=3)
"""
OBJECTS = """
from itertools import repeat

def work(n):
    return [object() for _ in repeat(0, n + {})]
"""


def test_one_more_object_in_a_call_of_a_python_function_is_counted(
    tmp_path: Path, gate: Gate
) -> None:
    files = {"test_work.py": PYTEST, "work.py": OBJECTS.format(0)}
    project = made_of(tmp_path, files, {"work.py": OBJECTS.format(1)})
    words = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider")
    options = ("--kind", "pytest", "--metrics", "allocations", "--blocks", "1", "--warmup", "0")
    plugins = {
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "PYTEST_PLUGINS": "pytest_benchmark.plugin,equipoise.helpers.pytest_plugin",
        # Of the session that runs this test.
        "PYTEST_XDIST_WORKER": "",
    }
    answer = gate(project, "--baseline", "before", *options, "--json", "-", "--", *words, **plugins)
    rows = document(answer)["gate"]["rows"]
    names = [f"test_work.py::test_{name}: allocations" for name in ("own", "plugin", "pedantic")]
    assert [row["benchmark"] for row in rows] == names
    assert [row["candidate_median"] - row["baseline_median"] for row in rows] == [1, 1, 1]
