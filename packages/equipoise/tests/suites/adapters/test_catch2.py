"""Suites of Catch2: finding them, reports of versions 2 and 3, failures, and a gate."""

from __future__ import annotations

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

CMAKE = "project(p)\nadd_executable(tests tests.cpp)\n"
LINKED = f"{CMAKE}target_link_libraries(tests PRIVATE Catch2::Catch2WithMain)\n"
TEST = 'TEST_CASE("sums") {\n    BENCHMARK("sum") { return sum(); };\n}\n'
INCLUDE = "#include <catch2/catch_all.hpp>\n"
FAILING = """#define CATCH_CONFIG_MAIN
#define CATCH_CONFIG_ENABLE_BENCHMARKING
#include <catch2/catch.hpp>
#include <iostream>
#include <stdexcept>
static int squared(int n) { return n * n; }
TEST_CASE("a <b>\\n\\x1b[31m") {
    std::cout << "printed" << std::endl;
    SECTION("small") { BENCHMARK("same") { return squared(1); }; }
    SECTION("large") { for (int i = 0; i < 2; i++) BENCHMARK("same") { return squared(i); }; }
}
TEST_CASE("throws", "[.throws]") {
    BENCHMARK("h") { throw std::runtime_error("no data"); return 3; };
}
TEST_CASE("fails", "[.fails]") { CHECK(squared(1) == 2); BENCHMARK("h") { return 3; }; }
TEST_CASE("empty", "[.empty]") {}
TEST_CASE("stops", "[.stops]") { std::_Exit(3); }
"""


@pytest.mark.parametrize(
    ("files", "command"),
    [
        ({"CMakeLists.txt": LINKED, "tests.cpp": TEST}, "./build/tests"),
        ({"CMakeLists.txt": CMAKE, "tests.cpp": INCLUDE + TEST}, "./build/tests"),
        (
            {"CMakeLists.txt": LINKED.replace("tests.cpp", "${SOURCES}"), "src/t.cpp": TEST},
            "./build/tests",
        ),
        (
            {
                "CMakeLists.txt": LINKED,
                "tests.cpp": TEST.replace('"sums"', '"sums", "[!benchmark]"'),
            },
            "./build/tests '[!benchmark]'",
        ),
    ],
)
def test_a_program_with_benchmarks_is_found(
    files: dict[str, str], command: str, tmp_path: Path
) -> None:
    found = only_suite_in(written(tmp_path, files))
    build = "cmake -B build -DCMAKE_BUILD_TYPE=Release && cmake --build build --target tests"
    assert found.options == f"--kind catch2 --build '{build}' -- {command}"


@pytest.mark.parametrize(
    "files",
    [
        {"CMakeLists.txt": LINKED, "tests.cpp": 'TEST_CASE("sums") { CHECK(sum() == 1); }\n'},
        {"CMakeLists.txt": LINKED, "tests.cpp": '// BENCHMARK("sum") {}\n'},
        {"CMakeLists.txt": CMAKE, "tests.cpp": TEST},
        {"CMakeLists.txt": f"# {LINKED}".replace("\n", "\n# "), "tests.cpp": INCLUDE + TEST},
        {"tests.cpp": INCLUDE + TEST},
    ],
)
def test_tests_without_benchmarks_are_not_a_suite(files: dict[str, str], tmp_path: Path) -> None:
    assert suites_in(written(tmp_path, files)) == ()


def program(folder: Path, report: str | None, status: int = 0) -> str:
    """A program that writes a report to the file of the option --out, and its arguments."""
    write = "" if report is None else 'cat "$(dirname "$0")/report" > "$last"\n'
    text = f'#!/bin/sh\nfor last; do :; done\necho "$*" > "$0.arguments"\n{write}exit {status}\n'
    written(folder, {"report": report or "", "tests": text})
    (folder / "tests").chmod(0o755)
    return str(folder / "tests")


@pytest.mark.parametrize("version", ["2.13.10", "3.7.1"])
def test_sections_and_repeated_benchmarks_have_distinct_names(version: str, tmp_path: Path) -> None:
    report = (SAMPLES / f"catch2_{version}.xml").read_text()
    values = reported(tmp_path, "catch2", program(tmp_path, report))
    assert [*values] == [
        "Fibonacci/Fibonacci 20 time_s",
        'Fibonacci/a <b> & \\x1B[1m c/F "25" <i> \\x1B[31m time_s',
        "Fibonacci/Fibonacci 20 (2) time_s",
        "Fibonacci/two/same time_s",
        "Fibonacci/two/same (2) time_s",
    ]


def test_options_for_a_short_run_are_added_unless_the_user_set_them(tmp_path: Path) -> None:
    report = (SAMPLES / "catch2_3.7.1.xml").read_text()
    tests = program(tmp_path, report)
    reported(tmp_path, "catch2", tests, "[!benchmark]", "--benchmark-no-analysis")
    arguments = Path(f"{tests}.arguments").read_text()
    assert arguments.startswith(
        "[!benchmark] --benchmark-no-analysis --benchmark-warmup-time 20 --reporter xml --out /"
    )


@pytest.mark.parametrize("option", ["-r", "--reporter=xml", "-o", "--out", "-rjunit"])
def test_a_reporter_of_the_user_is_refused(option: str) -> None:
    done = run("catch2", "tests", option, "x")
    assert done.stderr == (
        f"catch2: leave out {option}: Catch2 must write its XML report to a file\n"
    )


def built(folder: Path, version: str) -> str:
    """The program with failures, linked with a version of Catch2."""
    command: tuple[str | Path, ...] = ("c++", "-std=c++17", "-O1", "tests.cpp", "-o", "tests")
    text = FAILING
    if version == "2":
        require_catch2()
    else:
        catch2 = fetched_tool("catch2", "catch_amalgamated.o")
        command = (*command, "-I", catch2, catch2 / "catch_amalgamated.o")
        text = text.replace("catch2/catch.hpp", "catch_amalgamated.hpp")
    written(folder, {"tests.cpp": text})
    printed_by(*command, folder=folder)
    return str(folder / "tests")


def require_catch2() -> None:
    """Skip a test without Catch2 2 of Debian."""
    if not Path("/usr/include/catch2/catch.hpp").exists():
        pytest.skip("misses catch2/catch.hpp: apt-get install catch2")


@pytest.mark.live("c++", package="g++")
@pytest.mark.parametrize("version", [pytest.param("2", marks=gates_a_suite), "3"])
def test_benchmarks_and_failures_of_the_real_tool(version: str, tmp_path: Path) -> None:
    tests = built(tmp_path, version)
    values = reported(tmp_path, "catch2", tests)
    name = "a <b> \\x1B[31m"
    assert [*values] == [
        f"{name}/small/same time_s",
        f"{name}/large/same time_s",
        f"{name}/large/same (2) time_s",
    ]
    assert all(0.0 < metric["value"] < 1e-3 for metric in values.values())
    for choice, problem in {
        "[.throws]": "throws/h: Catch2",
        "[.empty]": "tests measured no benchmark",
    }.items():
        done = run("catch2", tests, choice)
        assert done.returncode == 1
        assert problem in done.stderr


@gates_a_suite
@pytest.mark.live("c++", package="g++")
@pytest.mark.live("cmake", "make", "git")
def test_more_work_in_the_example_is_found(tmp_path: Path, gate: Gate) -> None:
    require_catch2()
    project = example_with_more_work(tmp_path, "catch2", "Fibonacci(19)", "Fibonacci(29)")
    answer = gate(project, "--baseline", "HEAD~1", *GATE_OPTIONS)
    assert answer.status == 1, answer
    outcomes = {row["benchmark"]: row["outcome"] for row in document(answer)["gate"]["rows"]}
    assert outcomes["Fibonacci/Fibonacci 25"] == "slower"
    assert [*outcomes] == ["Fibonacci/Fibonacci 20", "Fibonacci/Fibonacci 25"]


def test_the_example_is_found() -> None:
    found = only_suite_in(EXAMPLES / "catch2")
    assert found.suite.evidence == (
        "CMakeLists.txt builds tests, and tests.cpp has a BENCHMARK of Catch2"
    )
