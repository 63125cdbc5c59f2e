"""Suites of vitest: finding them, its files of results, and gates of its versions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from equipoise.suites.finding import only_suite_in, suites_in
from packages.equipoise.tests.cli.conftest import Gate
from packages.equipoise.tests.kinds.gate.test_command import document
from packages.equipoise.tests.programs import finished
from packages.equipoise.tests.suites.adapters.example_projects import (
    GATE_OPTIONS,
    example_with_more_work,
    gates_a_suite,
)
from packages.equipoise.tests.suites.adapters.node_projects import (
    packages_of,
    variables_with_newer_node,
)
from packages.equipoise.tests.suites.test_finding import written
from packages.equipoise.tests.suites.test_trial import reported, run

MANIFEST = json.dumps({"devDependencies": {"vitest": "^4"}})
SUITE = {"package.json": MANIFEST, "src/sort.bench.ts": ""}
OLDER = ("vitest", "bench", "--run")
HOSTILE = ["<b>bold</b>", "two\nlines", "\x1b[31mred", "a|b `c` @everyone", "ü" * 300]


@pytest.mark.parametrize(
    ("lock_file", "build"),
    [
        ("package-lock.json", None),
        ("pnpm-lock.yaml", "pnpm install --frozen-lockfile"),
        ("yarn.lock", "yarn install --frozen-lockfile"),
    ],
)
def test_packages_are_installed_as_the_lock_file_says(
    lock_file: str, build: str | None, tmp_path: Path
) -> None:
    found = only_suite_in(written(tmp_path, {**SUITE, lock_file: ""}))
    assert found.suite.build == (build or found.tool.build)
    assert found.options == "--kind vitest" + (f" --build '{build}'" if build else "")


@pytest.mark.parametrize(
    "files",
    [
        {"package.json": MANIFEST, "sort.test.ts": ""},
        {"package.json": MANIFEST, "node_modules/x/sort.bench.ts": ""},
        {"package.json": "{}", "sort.bench.ts": ""},
        {"package.json": '{"devDependencies": "vitest"', "sort.bench.ts": ""},
        {"package.json": '{"devDependencies": ["vitest"]}', "sort.bench.ts": ""},
    ],
)
def test_other_projects_have_no_suite_of_vitest(files: dict[str, str], tmp_path: Path) -> None:
    assert suites_in(written(tmp_path, files)) == ()


def project_with(folder: Path, version: str, results: str | None, status: int = 0) -> Path:
    """A project with a program in place of vitest, which writes these results."""
    write = "" if results is None else 'cat results.json > "${out#--outputFile.json=}"\n'
    return written(
        folder,
        {
            "node_modules/vitest/package.json": json.dumps({"version": version}),
            "results.json": results or "",
            "vitest": "#!/bin/sh\nprintf '%s\\n' \"$@\" > options\necho '{\"files\": [] prints'\n"
            f"for out; do case $out in *results.json) break ;; esac; done\n{write}exit {status}\n",
        },
    )


def of_older(*names: str, **benchmark: Any) -> str:
    """File of vitest 4 with benchmarks in one group."""
    benchmarks = [{"name": name, "rank": 1, "samples": [], **benchmark} for name in names]
    group = {"fullName": "sort.bench.ts > sort", "benchmarks": benchmarks}
    return json.dumps({"files": [{"filepath": "/x/sort.bench.ts", "groups": [group]}]})


def of_newer(folder: Path, *tasks: dict[str, Any]) -> str:
    """Report of vitest 5 with a test that compares these tasks."""
    test = {"ancestorTitles": ["sort"], "title": "both", "benchmarks": [{"tasks": tasks}]}
    file = {"name": str(folder / "a/sort.bench.ts"), "assertionResults": [test]}
    return json.dumps({"numTotalTests": 1, "testResults": [file]})


def task(name: str, **fields: Any) -> dict[str, Any]:
    return {"name": name, "latency": {"mean": 3.0, "p50": 2.0}, **fields}


def measured(folder: Path, *options: str) -> dict[str, float]:
    program = folder / "vitest"
    program.chmod(0o755)
    values = reported(folder, "vitest", str(program), "bench", *options, folder=folder)
    return {name: metric["value"] for name, metric in values.items()}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_benchmark_of_vitest_4_has_its_name_and_its_median_in_seconds(
    name: str, tmp_path: Path
) -> None:
    project_with(tmp_path, "4.1.12", of_older(name, mean=0.5, median=0.25))
    assert measured(tmp_path) == {f"sort.bench.ts > sort > {name} time_s": pytest.approx(0.25e-3)}
    options = (tmp_path / "options").read_text().splitlines()
    assert options[:2] == ["bench", "--outputJson"] and len(options) == 3


def test_benchmarks_with_one_name_are_numbered(tmp_path: Path) -> None:
    names = ("a", "a", "a (2)", "a")
    project_with(tmp_path, "2.1.9", of_older(*names, mean=1.0))
    assert [name.removeprefix("sort.bench.ts > sort > ") for name in measured(tmp_path)] == [
        "a time_s",
        "a (2) time_s",
        "a (2) (2) time_s",
        "a (3) time_s",
    ]


def test_vitest_1_writes_only_means(tmp_path: Path) -> None:
    project_with(tmp_path, "1.6.1", of_older("a", mean=0.5))
    assert [*measured(tmp_path).values()] == [pytest.approx(0.5e-3)]


def test_vitest_5_reports_its_files_one_after_the_other(tmp_path: Path) -> None:
    results = of_newer(tmp_path, task("b"), task("a"), task("stored", fromStore=True))
    project_with(tmp_path, "5.1.2", results)
    assert measured(tmp_path) == {
        "a/sort.bench.ts > sort > both > a time_s": pytest.approx(2e-3),
        "a/sort.bench.ts > sort > both > b time_s": pytest.approx(2e-3),
    }
    options = (tmp_path / "options").read_text().splitlines()
    assert options[1:3] == ["--reporter=default", "--reporter=json"]
    assert options[-1] == "--no-file-parallelism"
    measured(tmp_path, "--maxWorkers=2")
    assert "--no-file-parallelism" not in (tmp_path / "options").read_text()


@pytest.mark.parametrize(
    ("version", "results", "status", "problem"),
    [
        ("4.1.12", "{}", 0, "the results of vitest 4.1.12: this is not"),
        ("4.1.12", of_older("a", mean=1.0), 3, "ended with status 3"),
        ("1.4.0", of_older("a", mean=1.0), 0, "vitest 1.4.0 cannot write its results"),
        ("newest", of_older("a", mean=1.0), 0, "the version of vitest is unknown: newest"),
        ("5.0.0", json.dumps({"numTotalTests": 0, "testResults": []}), 0, "no benchmark"),
    ],
)
def test_a_run_without_usable_results_has_failed_with_one_line(
    version: str, results: str | None, status: int, problem: str, tmp_path: Path
) -> None:
    program = project_with(tmp_path, version, results, status) / "vitest"
    program.chmod(0o755)
    done = run("vitest", str(program), folder=tmp_path)
    assert done.returncode == 1
    assert problem in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr


def test_a_project_without_its_packages_is_told_how_to_install_them(tmp_path: Path) -> None:
    done = run("vitest", "npx", "vitest", folder=tmp_path)
    assert done.stderr == (
        f"vitest is not installed in {tmp_path}/node_modules: build with `npm ci`\n"
    )


def test_the_user_s_own_file_of_results_is_refused(tmp_path: Path) -> None:
    project_with(tmp_path, "4.1.12", of_older())
    done = run("vitest", "npx", "vitest", "bench", "--outputJson=mine.json", folder=tmp_path)
    assert done.stderr == "vitest: remove --outputJson, because Equipoise sets it\n"


def test_a_script_of_npm_gets_the_options_behind_two_dashes(tmp_path: Path) -> None:
    folder = project_with(tmp_path, "4.1.12", of_older("a", mean=1.0))
    program = (folder / "vitest").rename(folder / "npm")
    program.chmod(0o755)
    reported(folder, "vitest", str(program), "run", "bench", folder=folder)
    options = (folder / "options").read_text().splitlines()
    assert options[:4] == ["run", "bench", "--", "--outputJson"]


OLDER_BENCHMARKS = """import { bench, describe } from 'vitest'
describe('of <b>\\n two', () => {
  bench('lines', () => {})
  bench('lines', () => {}, { time: 20, iterations: 3 })
  bench.skip('skipped', () => {})
})
"""
NEWER_BENCHMARKS = """import { test } from 'vitest'
test('both', async ({ bench }) => {
  await bench.compare(bench('one', () => {}), bench('other', () => { [2, 1].sort() }))
})
"""


def installed(project: Path, version: str) -> None:
    (project / "node_modules").symlink_to(packages_of("vitest", version))


@pytest.mark.live("npx", package="npm")
@pytest.mark.parametrize("version", ["1.6.1", "4.1.12"])
def test_the_oldest_and_the_newest_file_of_results_are_read(version: str, tmp_path: Path) -> None:
    installed(tmp_path, version)
    written(tmp_path, {"package.json": MANIFEST, "a/sort.bench.js": OLDER_BENCHMARKS})
    values = reported(tmp_path, "vitest", "npx", "vitest", "bench", "--run", folder=tmp_path)
    start = "a/sort.bench.js > of <b>\n two > lines"
    assert [*values] == [f"{start} time_s", f"{start} (2) time_s"]
    assert all(0 < metric["value"] < 1e-3 for metric in values.values())


@pytest.mark.live("npx", package="npm")
def test_the_tests_of_vitest_5_are_benchmarks(tmp_path: Path) -> None:
    installed(tmp_path, "5.1.2")
    written(tmp_path, {"package.json": MANIFEST, "sort.bench.js": NEWER_BENCHMARKS})
    command = ("npx", "vitest", "bench", "--run")
    variables = variables_with_newer_node()
    values = reported(tmp_path, "vitest", *command, folder=tmp_path, **variables)
    assert [*values] == [f"sort.bench.js > both > {name} time_s" for name in ("one", "other")]


@pytest.mark.live("npx", package="npm")
def test_a_benchmark_of_vitest_that_throws_is_named(tmp_path: Path) -> None:
    installed(tmp_path, "4.1.12")
    text = "import { bench } from 'vitest'\nbench('bad', () => { throw new Error('no data') })\n"
    written(tmp_path, {"package.json": MANIFEST, "sort.bench.js": text})
    done = run("vitest", "npx", "vitest", "bench", "--run", folder=tmp_path)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == ("sort.bench.js > bad: vitest 4.1.12: no data")


@gates_a_suite
@pytest.mark.live("npx", package="npm")
def test_the_example_of_vitest_with_more_work_is_slower(tmp_path: Path, gate: Gate) -> None:
    packages = packages_of("vitest", "4.1.12")
    project = example_with_more_work(tmp_path, "vitest", "21000", "200000")
    options = (
        "--build",
        f"ln -s {packages} node_modules",
        "--metrics",
        "sum.bench.js > sum time_s",
    )
    answer = gate(project, "--baseline", "HEAD~1", "--kind", "vitest", *options, *GATE_OPTIONS)
    assert answer.status == 1, answer
    (row,) = document(answer)["gate"]["rows"]
    assert (row["benchmark"], row["outcome"]) == ("sum.bench.js > sum", "slower")
    assert row["ratio"] > 3.0


def test_the_patch_of_the_example_applies() -> None:
    """The planted slowdown is 5 % more iterations."""
    for tool in ("vitest", "tinybench"):
        folder = Path(__file__).parents[5] / "docs/examples/suites" / tool
        done = finished(["git", "apply", "--check", "slower.patch"], cwd=folder)
        assert done.returncode == 0, done.stderr
