"""The output of one process of a benchmark tool becomes metrics of one trial."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from equipoise.suites import TOOLS
from packages.equipoise.tests.programs import finished

LIBTEST = """
running 2 tests
test parsing::deep nesting ... bench:       1,234.50 ns/iter (+/- 56.78)
test adds                  ... bench:          15 ns/iter (+/- 2) = 123 MB/s

test result: ok. 0 passed; 0 failed; 0 ignored; 2 measured; 0 filtered out
"""
GO = """goos: linux
pkg: example.com/m
BenchmarkAdd-2   100   10.0 ns/op
BenchmarkAdd-2   100   30.0 ns/op
PASS
ok   example.com/m 1.2s
pkg: example.com/m/inside
BenchmarkAdd-2   100   7.0 ns/op   3 B/op
PASS
"""


def reported(
    tmp_path: Path, tool: str, *command: str, folder: Path | None = None, **variables: str
) -> dict[str, Any]:
    """Values that one process of the tool reports, by metric."""
    metrics = tmp_path / "metrics.jsonl"
    metrics.unlink(missing_ok=True)
    done = run(tool, *command, folder=folder, EQUIPOISE_METRICS=str(metrics), **variables)
    assert done.returncode == 0, done.stderr
    lines = metrics.read_text().splitlines() if metrics.exists() else []
    return {line["metric"]: line for line in map(json.loads, lines)}


def run(
    tool: str, *command: str, folder: Path | None = None, **variables: str
) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **variables}
    return finished(TOOLS[tool].reading_command(command), cwd=folder, env=environment)


def test_each_benchmark_of_cargo_is_a_metric_in_seconds(tmp_path: Path) -> None:
    (tmp_path / "said").write_text(LIBTEST)
    values = reported(tmp_path, "cargo", "cat", str(tmp_path / "said"))
    assert {name: metric["value"] for name, metric in values.items()} == {
        "parsing::deep nesting time_s": pytest.approx(1234.5e-9),
        "adds time_s": pytest.approx(15e-9),
    }
    assert {(metric["unit"], metric["better"]) for metric in values.values()} == {("s", "lower")}


def test_the_run_of_this_process_counts_for_criterion(tmp_path: Path) -> None:
    target = tmp_path / "target"
    earlier = target / "criterion" / "gone" / "new"
    earlier.mkdir(parents=True)
    (earlier / "sample.json").write_text('{"iters": [1.0], "times": [5.0]}')
    writes = (
        "import json, os, pathlib\n"
        "for saved, ns in (('base', 900.0), ('new', 40.0)):\n"
        "    folder = pathlib.Path(os.environ['CARGO_TARGET_DIR'], 'criterion', 'sum', saved)\n"
        "    folder.mkdir(parents=True)\n"
        "    sample = {'iters': [1.0, 2.0], 'times': [ns, 2 * ns]}\n"
        "    (folder / 'sample.json').write_text(json.dumps(sample))\n"
        "    (folder / 'benchmark.json').write_text(json.dumps({'full_id': 'sums/sum'}))\n"
    )
    words = (sys.executable, "-c", writes)
    values = reported(tmp_path, "cargo", *words, CARGO_TARGET_DIR=str(target))
    assert {name: metric["value"] for name, metric in values.items()} == {
        "sums/sum time_s": pytest.approx(40e-9)
    }


def test_repetitions_of_go_are_one_value_and_packages_are_distinguished(tmp_path: Path) -> None:
    (tmp_path / "said").write_text(GO)
    values = reported(tmp_path, "go", "cat", str(tmp_path / "said"))
    assert {name: metric["value"] for name, metric in values.items()} == {
        "example.com/m.BenchmarkAdd-2 time_s": pytest.approx(20e-9),
        "example.com/m/inside.BenchmarkAdd-2 time_s": pytest.approx(7e-9),
        "example.com/m/inside.BenchmarkAdd-2 allocated_bytes": 3.0,
    }
    assert not any("iteration" in metric for metric in values.values())


@pytest.mark.parametrize("tool", ["cargo", "go", "pytest"])
def test_a_tool_without_output_reports_nothing(tool: str, tmp_path: Path) -> None:
    assert reported(tmp_path, tool, "true", CARGO_TARGET_DIR=str(tmp_path)) == {}


def google_benchmark(folder: Path, *entries: dict[str, Any]) -> str:
    """A program that writes these entries to the output file of Google Benchmark."""
    program = folder / "bench"
    results = json.dumps({"context": {}, "benchmarks": entries})
    program.write_text(
        f"#!{sys.executable}\nimport sys\n"
        "assert sys.argv[-1] == '--benchmark_out_format=json'\n"
        "print('a word of its own')\n"
        f"open(sys.argv[-2].removeprefix('--benchmark_out='), 'w').write({results!r})\n"
    )
    program.chmod(0o755)
    return str(program)


def test_times_and_iterations_of_google_benchmark_are_reported(tmp_path: Path) -> None:
    times = {"real_time": 3.0, "cpu_time": 2.0, "time_unit": "us", "iterations": 7}
    program = google_benchmark(tmp_path, {"name": "Sum/8", "run_type": "iteration", **times})
    values = reported(tmp_path, "google-benchmark", program, "--benchmark_filter=^Sum/8$")
    assert {name: metric["value"] for name, metric in values.items()} == {
        "time_s": pytest.approx(3e-6),
        "cpu_time_s": pytest.approx(2e-6),
        "iterations": 7,
    }


def test_the_error_of_a_failed_tool_has_its_output() -> None:
    done = run("go", "sh", "-c", "echo --- FAIL: TestIt; exit 3")
    assert done.returncode == 1
    assert done.stderr == "--- FAIL: TestIt\n\ngo: sh ended with status 3\n"


def test_a_missing_program_is_an_error() -> None:
    done = run("go", "/no/such/program")
    assert done.returncode == 1
    assert done.stderr == "go: cannot start /no/such/program: No such file or directory\n"


def test_no_module_of_the_repository_replaces_ours(tmp_path: Path) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit('the wrong one')\n")
    done = subprocess.run(
        TOOLS["go"].reading_command(("true",)), cwd=tmp_path, capture_output=True, check=True
    )
    assert done.stderr == b""


CARGO_THAT_RUNS_A_PROGRAM = """#!{python}
import subprocess, sys, tomllib
runner = tomllib.loads(sys.argv[3])["target"]["cfg(all())"]["runner"] if len(sys.argv) > 2 else []
assert sys.argv[1] == "bench"
given = sys.argv[sys.argv.index("--") + 1 :] if "--" in sys.argv else []
raise SystemExit(subprocess.run([*runner, {program!r}, *given, "--bench"]).returncode)
"""
OF_CRITERION = "# warm-up-time measurement-time sample-size nresamples\n"


def arguments_of_program(folder: Path, text: str, *given: str) -> list[str]:
    """Arguments that a benchmark program gets when the tool runs `cargo bench`."""
    printed = folder / "said"
    program, cargo = folder / "program", folder / "cargo"
    program.write_text(f"#!/bin/sh\n{text}printf '%s\\n' \"$@\" > '{printed}'\n")
    cargo.write_text(CARGO_THAT_RUNS_A_PROGRAM.format(python=sys.executable, program=str(program)))
    for file in (program, cargo):
        file.chmod(0o755)
    words = ("--", *given) if given else ()
    done = run("cargo", str(cargo), "bench", *words)
    assert done.returncode == 0, done.stderr
    return printed.read_text().splitlines()


def test_criterion_runs_briefly_under_a_gate(tmp_path: Path) -> None:
    short = arguments_of_program(tmp_path, OF_CRITERION)
    assert " ".join(short).startswith(
        "--bench --warm-up-time 0.05 --measurement-time 0.1 --sample-size 10"
    )
    assert "--noplot" in short


def test_the_user_s_own_time_of_criterion_stays(tmp_path: Path) -> None:
    own = arguments_of_program(
        tmp_path, OF_CRITERION, "--measurement-time=3", "--warm-up-time", "1"
    )
    assert own[:4] == ["--measurement-time=3", "--warm-up-time", "1", "--bench"]
    assert own.count("--measurement-time") == 0 and own.count("--warm-up-time") == 1
    assert "--sample-size" in own


@pytest.mark.parametrize("given", [(), ("name",)])
def test_a_program_that_is_not_of_criterion_gets_no_option(
    given: tuple[str, ...], tmp_path: Path
) -> None:
    assert arguments_of_program(tmp_path, "", *given) == [*given, "--bench"]


def test_a_list_of_criterion_s_benchmarks_is_only_a_list(tmp_path: Path) -> None:
    assert arguments_of_program(tmp_path, OF_CRITERION, "--list") == ["--list", "--bench"]
