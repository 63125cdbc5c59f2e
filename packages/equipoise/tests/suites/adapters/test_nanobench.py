"""Suites of nanobench: finding them, the table that a run prints, and a gate."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from equipoise.suites.finding import only_suite_in, suites_in
from packages.equipoise.tests.cli.conftest import Gate
from packages.equipoise.tests.imports import SAMPLES
from packages.equipoise.tests.kinds.gate.test_command import document
from packages.equipoise.tests.suites.adapters.example_projects import (
    EXAMPLES,
    GATE_OPTIONS,
    example_with_more_work,
    fetched_tool,
    gates_a_suite,
)
from packages.equipoise.tests.suites.test_finding import written
from packages.equipoise.tests.suites.test_trial import reported, run
from packages.equipoise.tests.tools import printed_by

CMAKE = "project(p)\nadd_executable(bench bench.cpp)\n"
PROGRAM = """#define ANKERL_NANOBENCH_IMPLEMENT
#include "nanobench.h"
int main(int count, char**) {
    double d = 1.0;
    auto step = [&] { d += 1.0 / d; ankerl::nanobench::doNotOptimizeAway(d); };
    ankerl::nanobench::Bench().run("plain", step);
    std::cout << "printed | here |" << std::endl;
    ankerl::nanobench::Bench bench;
    bench.title("Sums | a").unit("byte").batch(100).relative(true);
    bench.run("a `tick` | pipe\\nline \\x1b[1m", step);
    bench.run("same", step);
    bench.run("same", step);
    if (count > 1) ankerl::nanobench::Bench().run("nothing", [] {});
}
"""


def test_the_example_is_found() -> None:
    found = only_suite_in(EXAMPLES / "nanobench")
    assert found.options == (
        "--kind nanobench --build 'cmake -B build -DCMAKE_BUILD_TYPE=Release && "
        "cmake --build build --target MyExample' -- ./build/MyExample"
    )
    assert found.suite.evidence == (
        "CMakeLists.txt builds MyExample, and my_example.cpp uses nanobench"
    )


@pytest.mark.parametrize(
    "files",
    [
        {"CMakeLists.txt": CMAKE, "bench.cpp": "#include <vector>\n"},
        {"CMakeLists.txt": CMAKE, "bench.cpp": "#include <nanobench.h>\n"},
        {"bench.cpp": "#include <nanobench.h>\nankerl::nanobench::Bench().run(f);\n"},
    ],
)
def test_other_programs_are_not_a_suite(files: dict[str, str], tmp_path: Path) -> None:
    assert suites_in(written(tmp_path, files)) == ()


TABLE = (SAMPLES / "nanobench_4.0.0.txt").read_text()


def printing(folder: Path, text: str) -> tuple[str, str]:
    written(folder, {"printed": text})
    return "cat", str(folder / "printed")


def test_the_column_with_more_digits_is_read(tmp_path: Path) -> None:
    values = reported(tmp_path, "nanobench", *printing(tmp_path, TABLE))
    assert {name: metric["value"] for name, metric in values.items()} == {
        "some double ops time_s": pytest.approx(1 / 181_974_921.63),
        "Sums | a: a `tick` | pipe\nline \x1b[1m time_s": pytest.approx(1 / 199_161_401_493.39),
        "Sums | a: same time_s": pytest.approx(1 / 22_360_495_134.71),
        "Sums | a: same (2) time_s": pytest.approx(1 / 22_356_879_039.70),
        "slow time_s": pytest.approx(1.00250047),
        "in milliseconds time_s": pytest.approx(2.5e-3),
    }


@pytest.mark.live("c++", package="g++")
def test_benchmarks_and_failures_of_the_real_tool(tmp_path: Path) -> None:
    nanobench = fetched_tool("nanobench", "nanobench.h")
    written(tmp_path, {"bench.cpp": PROGRAM})
    compile_line = ("c++", "-std=c++17", "-O2", "-I", nanobench, "bench.cpp", "-o", "bench")
    printed_by(*compile_line, folder=tmp_path)
    values = reported(tmp_path, "nanobench", str(tmp_path / "bench"))
    assert [*values] == [
        "plain time_s",
        "Sums | a: a `tick` | pipe\nline \x1b[1m time_s",
        "Sums | a: same time_s",
        "Sums | a: same (2) time_s",
    ]
    assert all(0.0 < metric["value"] < 1e-3 for metric in values.values())
    metrics = tmp_path / "metrics.jsonl"
    run("nanobench", str(tmp_path / "bench"), "too", EQUIPOISE_METRICS=str(metrics))
    failure = json.loads(metrics.read_text().splitlines()[-1])
    assert failure["metric"] == "nothing time_s"
    assert failure["unknown_because"].startswith("nanobench: iterations overflow")


@gates_a_suite
@pytest.mark.live("c++", package="g++")
@pytest.mark.live("cmake", "make", "git")
def test_more_work_in_the_example_is_found(tmp_path: Path, gate: Gate) -> None:
    headers = {"CPLUS_INCLUDE_PATH": str(fetched_tool("nanobench", "nanobench.h"))}
    project = example_with_more_work(tmp_path, "nanobench", "% 20", "% 1")
    answer = gate(project, "--baseline", "HEAD~1", *GATE_OPTIONS, **headers)
    assert answer.status == 1, answer
    (row,) = document(answer)["gate"]["rows"]
    assert (row["benchmark"], row["outcome"]) == ("some double ops", "slower")
