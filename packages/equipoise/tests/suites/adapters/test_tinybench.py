"""Suites of tinybench: finding them, the times that a run writes, and gates of its versions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from equipoise.suites.finding import only_suite_in, suites_in
from packages.equipoise.tests.cli.conftest import Gate
from packages.equipoise.tests.kinds.gate.test_command import document
from packages.equipoise.tests.suites.adapters.example_projects import (
    GATE_OPTIONS,
    example_with_more_work,
    gates_a_suite,
)
from packages.equipoise.tests.suites.adapters.node_projects import packages_of
from packages.equipoise.tests.suites.test_finding import written
from packages.equipoise.tests.suites.test_trial import reported, run

VERSIONS = ["2.9.0", "3.1.1", "4.1.0", "5.1.0", "6.2.5"]
VERSIONS_WITH_REQUIRE = ["2.9.0", "3.1.1"]


def manifest(**scripts: str) -> str:
    return json.dumps({"scripts": scripts, "devDependencies": {"tinybench": "6"}})


def test_the_script_that_runs_the_benchmarks_is_found(tmp_path: Path) -> None:
    found = only_suite_in(written(tmp_path, {"package.json": manifest(benchmark="node b.js")}))
    assert found.options == "--kind tinybench -- npm run benchmark"
    assert found.suite.evidence == "package.json depends on tinybench, and has the script benchmark"


@pytest.mark.parametrize(
    "text",
    [
        manifest(test="node b.js"),
        manifest(bench="vitest bench"),
        manifest(bench="echo 'vitest bench"),
        '{"scripts": {"bench": "node b.js"}}',
        '{"scripts": {"bench": 5}, "dependencies": {"tinybench": "6"}}',
    ],
)
def test_other_projects_have_no_suite_of_tinybench(text: str, tmp_path: Path) -> None:
    assert suites_in(written(tmp_path, {"package.json": text})) == ()


def line(task: str, **fields: Any) -> str:
    return json.dumps({"version": "6.2.5", "bench": None, "task": task, **fields}) + "\n"


def program(folder: Path, results: str | None) -> str:
    """A program that prints, and writes these lines as the module of Equipoise does."""
    write = "" if results is None else 'cat "$(dirname "$0")/lines" > "$EQUIPOISE_TINYBENCH"\n'
    written(folder, {"lines": results or "", "bench": f"#!/bin/sh\necho '{{}} printed'\n{write}"})
    (folder / "bench").chmod(0o755)
    return str(folder / "bench")


def test_tasks_have_the_names_of_their_series_and_equal_names_have_numbers(tmp_path: Path) -> None:
    results = (
        line("a", median_ms=2.0)
        + line("a", median_ms=3.0)
        + line("<b>\n\x1b[31m", median_ms=4.0, bench="sums")
    )
    values = reported(tmp_path, "tinybench", program(tmp_path, results))
    assert {name: metric["value"] for name, metric in values.items()} == {
        "a time_s": pytest.approx(2e-3),
        "a (2) time_s": pytest.approx(3e-3),
        "sums > <b>\n\x1b[31m time_s": pytest.approx(4e-3),
    }


def test_options_of_the_user_for_node_stay(tmp_path: Path) -> None:
    script = 'printf %s "$NODE_OPTIONS" > options; : > "$EQUIPOISE_TINYBENCH"'
    run("tinybench", "sh", "-c", script, folder=tmp_path, NODE_OPTIONS="--max-old-space-size=99")
    first, second = (tmp_path / "options").read_text().split()
    assert first == "--max-old-space-size=99"
    assert second.startswith("--import=file:///") and second.endswith("equipoise_tinybench.mjs")


SCRIPT = """{imports}
const main = async () => {{
  const bench = new Bench({{ name: 'sums' }})
  bench.add('quick', () => {{}}).add('awaited', async () => {{ await null }})
  if (bench.warmup instanceof Function) await bench.warmup()
  await bench.run()
  const own = new Bench({{ time: 7, warmupTime: 3, iterations: 2, warmupIterations: 1 }})
  own.add('own', () => {{}})
  await own.run()
  for (const made of [bench, own]) {{
    const {{ time, warmupTime, iterations, warmupIterations }} = made.opts ?? made
    console.log(time, warmupTime, iterations, warmupIterations)
  }}
}}
main()
"""
IMPORT = "import { Bench } from 'tinybench'"
REQUIRE = "const { Bench } = require('tinybench')"


def installed(project: Path, version: str) -> None:
    (project / "node_modules").symlink_to(packages_of("tinybench", version))


@pytest.mark.live("node", package="nodejs")
@pytest.mark.parametrize(
    ("version", "name", "imports"),
    [(version, "bench.mjs", IMPORT) for version in VERSIONS]
    + [(version, "bench.cjs", REQUIRE) for version in VERSIONS_WITH_REQUIRE],
)
def test_every_version_runs_briefly_and_writes_its_times(
    version: str, name: str, imports: str, tmp_path: Path
) -> None:
    installed(tmp_path, version)
    # A script in a folder of its own, run from outside of the project.
    script = written(tmp_path, {f"perf/{name}": SCRIPT.format(imports=imports)}) / "perf" / name
    command = ("sh", "-c", f"cd /; node {script} > {tmp_path}/limits")
    values = reported(tmp_path, "tinybench", *command)
    # Version 2 has no names of series.
    series = "" if version.startswith("2") else "sums > "
    assert [*values] == [f"{series}quick time_s", f"{series}awaited time_s", "own time_s"]
    assert all(0 < metric["value"] < 1e-3 for metric in values.values())
    limits = [text.split() for text in (tmp_path / "limits").read_text().splitlines()]
    assert limits == [["100", "50", "10", "5"], ["7", "3", "2", "1"]]


@pytest.mark.live("node", package="nodejs")
@pytest.mark.parametrize("version", VERSIONS)
def test_a_task_that_throws_is_named(version: str, tmp_path: Path) -> None:
    installed(tmp_path, version)
    text = f"""{IMPORT}
    const bench = new Bench({{ time: 5 }})
    bench.add('bad', () => {{ throw new Error('no\\ndata') }}).add('good', () => {{}})
    await bench.run()
    """
    written(tmp_path, {"bench.mjs": text})
    values = reported(tmp_path, "tinybench", "node", "bench.mjs", folder=tmp_path)
    assert [*values] == ["bad time_s", "good time_s"]
    assert values["bad time_s"]["unknown_because"] == f"tinybench {version}: no data"
    assert values["good time_s"]["value"] > 0.0


@pytest.mark.live("node", package="nodejs")
@pytest.mark.parametrize("version", VERSIONS[1:])
def test_synchronous_runs_are_written_with_the_median_of_their_calls(
    version: str, tmp_path: Path
) -> None:
    installed(tmp_path, version)
    text = f"""{IMPORT}
    let calls = 0
    const bench = new Bench()
    bench.add('sum', () => {{
      const end = performance.now() + (calls++ % 5 ? 0 : 10)
      while (performance.now() < end);
    }})
    bench.runSync()
    """
    written(tmp_path, {"bench.mjs": text})
    values = reported(tmp_path, "tinybench", "node", "bench.mjs", folder=tmp_path)
    assert [*values] == ["sum time_s"]
    # The mean is above 2 ms.
    assert values["sum time_s"]["value"] < 1e-3


@pytest.mark.live("node", package="nodejs")
def test_a_tinybench_of_an_unknown_layout_is_named(tmp_path: Path) -> None:
    packages_of("tinybench", VERSIONS[-1])
    folder = "node_modules/tinybench"
    files = {f"{folder}/package.json": '{"exports": {"node": {"import": "./x.js"}}}'}
    written(tmp_path, {**files, f"{folder}/x.js": "", "bench.mjs": ""})
    done = run("tinybench", "node", "bench.mjs", folder=tmp_path)
    assert done.returncode == 1
    first, second = done.stderr.splitlines()
    assert first.startswith("Equipoise cannot observe tinybench: ")
    assert second.startswith("tinybench: node ran no benchmark of tinybench 2 to 6: install")


@pytest.mark.live("node", package="nodejs")
@pytest.mark.parametrize("version", VERSIONS)
def test_an_error_that_the_script_catches_is_not_lost(version: str, tmp_path: Path) -> None:
    installed(tmp_path, version)
    text = f"""{IMPORT}
    const bench = new Bench({{ time: 5, throws: true }})
    bench.add('bad', () => {{ throw new Error('no data') }})
    await bench.run().catch(() => {{}})
    """
    written(tmp_path, {"bench.mjs": text})
    done = run("tinybench", "node", "bench.mjs", folder=tmp_path)
    assert done.stderr == f"bad: tinybench {version}: no data\n"


@gates_a_suite
@pytest.mark.live("npm")
def test_the_example_of_tinybench_with_more_work_is_slower(tmp_path: Path, gate: Gate) -> None:
    packages = packages_of("tinybench", VERSIONS[-1])
    project = example_with_more_work(tmp_path, "tinybench", "21000", "200000")
    options = ("--build", f"ln -s {packages} node_modules", "--metrics", "numbers > sum time_s")
    answer = gate(project, "--baseline", "HEAD~1", "--kind", "tinybench", *options, *GATE_OPTIONS)
    assert answer.status == 1, answer
    (row,) = document(answer)["gate"]["rows"]
    assert (row["benchmark"], row["outcome"]) == ("numbers > sum", "slower")
    assert row["ratio"] > 3.0
