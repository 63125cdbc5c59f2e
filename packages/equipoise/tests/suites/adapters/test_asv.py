"""Suites of asv: finding them, listing their benchmarks, and running one in a process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from equipoise.helpers import asv_program
from equipoise.model.errors import UnusableInput
from equipoise.suites import TOOLS
from equipoise.suites.finding import only_suite_in
from packages.equipoise.tests.cli.conftest import Gate
from packages.equipoise.tests.kinds.gate.test_command import document
from packages.equipoise.tests.programs import finished
from packages.equipoise.tests.repositories import MadeRepository, repository
from packages.equipoise.tests.suites.adapters.example_projects import gates_a_suite
from packages.equipoise.tests.suites.adapters.python_projects import example_project, python_of
from packages.equipoise.tests.suites.test_finding import written
from packages.equipoise.tests.suites.test_trial import reported, run

CONFIGURATION = """{
    // A comment with "quotes", and [brackets],
    "version": 1, /* and
    another */
    "project": "parsing",
    "repo": "https://example.com/p.git",
    "benchmark_dir": "perf",
}
"""
SUITE = '''
"""A suite with one benchmark of each kind."""
import os, time
import parsing

print("a banner")

class Parse:
    params = ([1, 2], ["a", "b\\nc"])
    param_names = ["size", "text"]
    skip_params = [(2, "a")]

    def setup_cache(self):
        with open("words", "w") as file:
            file.write("cached")
        return [os.getpid()]

    def setup(self, cache, size, text):
        assert cache != [os.getpid()] and open("words").read() == "cached"

    def time_parse(self, cache, size, text):
        parsing.parse(size)

def time_short():
    time.sleep(0.001)

def time_long():
    time.sleep(0.001)
time_long.repeat = 2
time_long.number = 3
time_long.warmup_time = 0

def timeraw_import():
    return "import parsing"

def mem_list():
    return [0] * 256

def peakmem_list():
    return [0] * 256

def track_size():
    return parsing.SIZE
track_size.unit = "words"

def track_nothing():
    return None

def track_infinite():
    return float("inf")

def time_skipped():
    raise NotImplementedError("not here")

class TimeUnable:
    def setup(self):
        raise NotImplementedError("no data")
    def time_it(self):
        pass

def time_broken():
    raise ValueError("no\\nwords")

def time_exits():
    raise SystemExit(0)
'''
PARSING = "SIZE = 7\ndef parse(size):\n    return sum(range(100 * size))\n"
TIMED = [
    "suite.Parse.time_parse(1, 'a')",
    "suite.Parse.time_parse(1, 'b\\nc')",
    "suite.Parse.time_parse(2, 'b\\nc')",
    "suite.TimeUnable.time_it",
    "suite.time_broken",
    "suite.time_exits",
    "suite.time_long",
    "suite.time_short",
    "suite.time_skipped",
    "suite.timeraw_import",
]
UNTIMED = [
    "suite.mem_list",
    "suite.peakmem_list",
    "suite.track_infinite",
    "suite.track_nothing",
    "suite.track_size",
]
FILES = {
    "asv.conf.json": CONFIGURATION,
    "perf/__init__.py": "",
    "perf/suite.py": SUITE,
    "parsing.py": PARSING,
}

FAKE_PYTHON = """#!/bin/sh
for word; do case $word in
  --list) cat list.json; exit ;;
  --results=*) cp results.json "${word#*=}" ;;
esac; done
"""
TIMED_ONE = '{"name": "%s", "type": "time", "params": [null]}'
MEMORY = '{"name": "mem_list", "type": "memory", "params": ["1", "2"]}'

live = pytest.mark.live("python3")


@pytest.fixture
def python() -> str:
    return python_of("asv", "asv")


def listed(
    python: str, folder: Path, *options: str, **variables: str
) -> subprocess.CompletedProcess[str]:
    command = [python, asv_program.__file__, *options, "--list"]
    return finished(command, cwd=folder, env={**without_paths(), **variables})


def without_paths() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}


def selections(listing: str) -> dict[str, tuple[str, ...] | None]:
    """Options that choose each benchmark of a program with this output."""
    tool_listing = TOOLS["asv"].listing
    assert tool_listing is not None
    return dict(tool_listing.benchmarks(lambda *options: listing.splitlines()))


def values_of(
    python: str, folder: Path, *options: str, **variables: str
) -> dict[str, tuple[float, str | None]]:
    """Values and units that one process reports."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.delenv("PYTHONPATH", raising=False)
        (folder / "metrics.jsonl").unlink(missing_ok=True)
        values = reported(folder, "asv", python, *options, folder=None, **variables)
    return {name: (line["value"], line.get("unit")) for name, line in values.items()}


def failure(python: str, folder: Path, *options: str, **variables: str) -> str:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.delenv("PYTHONPATH", raising=False)
        done = run("asv", python, *options, folder=None, **variables)
    assert done.returncode == 1, done
    assert "Traceback" not in done.stderr
    return done.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    ("file", "options"),
    [
        ("asv.conf.json", "--kind asv -- python3"),
        ("asv.conf.jsonc", "--kind asv -- python3"),
        ("my perf/asv.conf.json", "--kind asv -- python3 --config 'my perf/asv.conf.json'"),
    ],
)
def test_a_suite_is_found_by_its_configuration(file: str, options: str, tmp_path: Path) -> None:
    found = only_suite_in(written(tmp_path, {file: "{}"}))
    assert (found.options, found.suite.evidence) == (options, f"{file} configures asv")


@live
def test_the_files_of_a_benchmark_and_of_its_cache_are_recorded(
    python: str, tmp_path: Path
) -> None:
    folder = written(tmp_path / "suite", FILES)

    def records_of(*options: str) -> list[dict[str, Any]]:
        records = tmp_path / "-".join(options)
        records.mkdir()
        values_of(python, folder, *options, EQUIPOISE_EXECUTED_FILES=str(records))
        return [json.loads(file.read_text()) for file in records.iterdir()]

    def own_files(records: list[dict[str, Any]], kind: str) -> set[str]:
        paths = (Path(name) for record in records for name in record[kind])
        return {path.name for path in paths if path.is_relative_to(folder)}

    records = records_of("--run=suite.Parse.time_parse", "--params=1, 'a'")
    # The program that makes the cache has a record, too.
    assert (len(records), sum(record["programs"] for record in records)) == (2, 1)
    assert own_files(records, "ran") == {"parsing.py", "suite.py"}
    (record,) = records_of("--run=suite.time_short")
    assert own_files([record], "ran") == {"suite.py"}
    assert "parsing.py" in own_files([record], "read")


@live
@pytest.mark.parametrize("environment", ["asv", "asv-old"])
def test_each_combination_of_parameters_is_a_benchmark(environment: str, tmp_path: Path) -> None:
    python = python_of(environment, "asv")
    done = listed(python, written(tmp_path, FILES))
    assert done.returncode == 0, done.stderr
    found = selections(done.stdout)
    # Without the package Pympler, asv has no mem_list.
    expected = [name for name in UNTIMED if environment == "asv" or "mem_list" not in name]
    expected += ["suite.peakmem_list"] if environment == "asv-old" else []
    assert sorted(name for name, options in found.items() if options is not None) == TIMED
    assert sorted(name for name, options in found.items() if options is None) == sorted(expected)
    assert found[TIMED[1]] == ("--run=suite.Parse.time_parse", "--params=1, 'b\\nc'")


@live
def test_options_of_asv_choose_benchmarks(python: str, tmp_path: Path) -> None:
    folder = written(tmp_path, {f"inner/{name}": text for name, text in FILES.items()})
    options = ("--config", "inner/asv.conf.json", "--bench", r"parse\(1", "-b", "long")
    done = listed(python, folder, *options, PYTHONPATH="inner")
    assert done.returncode == 0, done.stderr
    assert [*selections(done.stdout)] == [*TIMED[:2], "suite.time_long"]
    done = listed(python, folder / "inner", "--bench", "track_")
    assert selections(done.stdout) == {
        f"suite.track_{name}": (f"--run=suite.track_{name}",)
        for name in ("infinite", "nothing", "size")
    }


@pytest.mark.parametrize(
    ("listing", "problem"),
    [
        ("", "cannot be read"),
        ('{"benchmarks": [{"name": "a", "type": "time", "params": [null]}', "cannot be read"),
        ('{"benchmarks": [{"name": 1}], "is_chosen": false}', "cannot be read"),
        (
            '{"benchmarks": [{"name": "a", "type": "time", "params": [null]}, '
            '{"name": "b", "type": "memory", "params": [null]}], "is_chosen": true}',
            "--bench chooses benchmarks with the metrics memory_bytes and time_s",
        ),
        (
            '{"benchmarks": [{"name": "b", "type": "peakmemory", "params": [null]}], '
            '"is_chosen": false}',
            "the benchmarks of asv have no time, but memory_bytes",
        ),
    ],
)
def test_a_listing_without_comparable_benchmarks_is_refused(listing: str, problem: str) -> None:
    with pytest.raises(UnusableInput) as refused:
        selections(listing)
    assert problem in refused.value.what


def test_ten_thousand_benchmarks_are_listed() -> None:
    params = [f"{number}" for number in range(10_000)]
    benchmark = {"name": "suite.time_it", "type": "time", "params": params}
    found = selections(json.dumps({"benchmarks": [benchmark], "is_chosen": False}))
    assert len(found) == 10_000
    assert found["suite.time_it(9999)"] == ("--run=suite.time_it", "--params=9999")


@live
@pytest.mark.parametrize("environment", ["asv", "asv-old"])
def test_a_process_reports_the_mean_of_one_benchmark(environment: str, tmp_path: Path) -> None:
    python, folder = python_of(environment, "asv"), written(tmp_path, FILES)
    parse = values_of(python, folder, "--run=suite.Parse.time_parse", "--params=2, 'b\\nc'")
    assert parse.keys() == {"time_s"}
    assert 0.0 < parse["time_s"][0] < 1.0
    assert parse["time_s"][1] == "s"
    for name in ("time_short", "time_long", "timeraw_import"):
        assert values_of(python, folder, f"--run=suite.{name}").keys() == {"time_s"}
    assert values_of(python, folder, "--run=suite.track_size") == {"tracked_value": (7.0, None)}
    peak = values_of(python, folder, "--run=suite.peakmem_list")
    assert peak["memory_bytes"][0] > 1e6
    assert peak["memory_bytes"][1] == "B"


@live
def test_memory_of_an_object_is_reported(python: str, tmp_path: Path) -> None:
    folder = written(tmp_path, FILES)
    assert values_of(python, folder, "--run=suite.mem_list") == {"memory_bytes": (2104.0, "B")}


@live
def test_attributes_of_the_user_replace_those_of_a_benchmark(python: str, tmp_path: Path) -> None:
    counted = 'def time_it():\n    open("/dev/stderr", "a").write("called ")\n'
    files = {**FILES, "perf/suite.py": counted}
    folder = written(tmp_path, files)
    options = ("--attribute", "number=2", "-a", "repeat=3", "-a", "warmup_time=0")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        done = run("asv", python, *options, "--run=suite.time_it")
    assert done.stderr.count("called") == 6


@live
@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("time_broken", "suite.time_broken: ValueError: no words"),
        ("time_exits", "suite.time_exits: SystemExit: 0"),
        ("TimeUnable.time_it", "suite.TimeUnable.time_it skipped itself"),
        ("time_skipped", "suite.time_skipped: NotImplementedError: not here"),
        ("track_nothing", "suite.track_nothing returned None, which is not a number"),
        ("track_infinite", "suite.track_infinite returned an infinite value"),
        ("gone", "suite.gone: ValueError: Could not find benchmark 'suite.gone'"),
    ],
)
def test_a_failed_benchmark_is_named_in_one_line(
    name: str, problem: str, python: str, tmp_path: Path
) -> None:
    message = failure(python, written(tmp_path, FILES), f"--run=suite.{name}")
    assert message.startswith("asv_runner 0.3.")
    assert message.endswith(problem)


@live
def test_a_failed_setup_cache_is_named(python: str, tmp_path: Path) -> None:
    suite = SUITE.replace("return [os.getpid()]", "raise OSError('disk')")
    folder = written(tmp_path, {**FILES, "perf/suite.py": suite})
    message = failure(python, folder, "--run=suite.Parse.time_parse", "--params=1, 'a'")
    assert message.endswith("setup_cache of suite.Parse.time_parse: OSError: disk")
    suite = SUITE.replace("return [os.getpid()]", "os._exit(1)")
    (folder / "perf/suite.py").write_text(suite)
    message = failure(python, folder, "--run=suite.Parse.time_parse", "--params=1, 'a'")
    assert message.endswith("setup_cache of suite.Parse.time_parse failed")


@live
@pytest.mark.parametrize(
    ("files", "options", "problem"),
    [
        ({"asv.conf.json": "{"}, (), "asv.conf.json cannot be read: json.decoder.JSONDecodeError"),
        ({"asv.conf.json": "[]"}, (), "asv.conf.json cannot be read: it is not an object"),
        ({"asv.conf.json": "{}"}, (), "there is no folder "),
        ({}, ("--config", "gone.json"), "there is no gone.json in "),
        ({}, ("--bench", "("), "--bench ( is not a regular expression"),
        ({}, ("--strange",), "error: unrecognized arguments: --strange"),
        ({"perf/suite.py": "import gone"}, (), "ModuleNotFoundError: No module named 'gone'"),
        ({"perf/suite.py": "def x("}, (), "SyntaxError"),
        (
            {"perf/suite.py": "def time_a(): pass\ndef time_b(): pass\ntime_b.__name__='time_a'"},
            (),
            "two benchmarks have the name suite.time_a",
        ),
    ],
)
def test_a_suite_that_cannot_be_listed_has_one_line(
    files: dict[str, str], options: tuple[str, ...], problem: str, python: str, tmp_path: Path
) -> None:
    done = listed(python, written(tmp_path, {**FILES, **files}), *options)
    assert done.returncode in (1, 2)
    assert problem in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr


def test_a_python_without_asv_is_named(tmp_path: Path) -> None:
    folder = written(tmp_path, FILES)
    done = listed(sys.executable, folder)
    assert done.returncode == 1
    assert done.stderr == (
        f"{sys.executable} cannot import asv_runner: install asv there, or name the Python of the "
        "suite after --\n"
    )
    # `true` is not a Python.
    assert failure("true", folder, "--run=x") == (
        "asv: true wrote no results: it is not a Python with asv"
    )


@live
def test_the_modules_are_those_of_the_revision(python: str, tmp_path: Path) -> None:
    own = written(tmp_path / "own", FILES)
    tree = written(tmp_path / "tree", {**FILES, "parsing.py": PARSING.replace("7", "8")})
    other = written(tmp_path / "other", FILES)
    gate = {"EQUIPOISE_GATE_TREE": str(tree), "EQUIPOISE_GATE_INSTEAD_OF": str(own)}
    name = "--run=suite.track_size"
    assert values_of(python, tree, name, **gate)["tracked_value"][0] == 8.0
    (tree / "src").mkdir()
    (tree / "parsing.py").rename(tree / "src/parsing.py")
    assert values_of(python, tree, name, **gate)["tracked_value"][0] == 8.0
    for elsewhere in (own, other):
        message = failure(python, tree, name, PYTHONPATH=str(elsewhere), **gate)
        assert message.startswith(
            f"asv: parsing was imported from {elsewhere / 'parsing.py'}, which is neither revision"
        )
    done = listed(python, tree, PYTHONPATH=str(own), **gate)
    assert done.returncode == 1
    assert "which is neither revision" in done.stderr


@gates_a_suite
@live
def test_a_gate_compares_the_unchanged_example(python: str, tmp_path: Path, gate: Gate) -> None:
    project = example_project(tmp_path, "asv")
    suite = (project.path / "benchmarks/benchmarks.py").read_text()
    # The patch has too little more work for a busy host.
    project.write("benchmarks/benchmarks.py", suite.replace("525", "50_000"))
    project.commit()
    path = f"{Path(python).parent}:{os.environ['PATH']}"
    answer = gate(project, "--baseline", "before", "--json", "-", PATH=path, PYTHONPATH="")
    assert answer.status == 1, answer
    result: dict[str, Any] = document(answer)
    assert {row["benchmark"]: row["outcome"] for row in result["gate"]["rows"]} == {
        "benchmarks.TimeSuite.time_keys": "slower",
        "benchmarks.TimeSuite.time_range": "slower",
        "benchmarks.TimeSuite.time_values": "slower",
    }
    assert "asv.conf.json configures asv, so this gate is: " in answer.err
    assert "benchmarks.MemSuite.mem_list has no time, and was not compared" in [
        warning["summary"] for warning in result["warnings"]
    ]
    options = ("--kind", "asv", "--blocks", "1", "--metrics", "memory_bytes", "--json", "-")
    words = ("--", python, "--bench", "mem_")
    answer = gate(project, "--baseline", "before", *options, *words, PYTHONPATH="")
    (row,) = document(answer)["gate"]["rows"]
    assert (row["benchmark"], row["ratio"]) == ("benchmarks.MemSuite.mem_list", 1.0)


def fake_project(folder: Path, *benchmarks: str) -> MadeRepository:
    """A repository with a program in place of Python, which lists these benchmarks."""
    project = repository(folder / "project")
    project.write("python", FAKE_PYTHON, executable=True)
    listing = f'{{"benchmarks": [{", ".join(benchmarks)}], "is_chosen": false}}'
    project.write("list.json", listing)
    project.write("results.json", '{"type": "time", "value": 0.5}')
    project.commit()
    return project


FAKE_GATE = ("--baseline", "HEAD~1", "--kind", "asv", "--blocks", "1", "--json", "-", "--")


def test_benchmarks_without_a_time_are_named(tmp_path: Path, gate: Gate) -> None:
    project = fake_project(tmp_path, TIMED_ONE % "time_a", TIMED_ONE % "time_b", MEMORY)
    project.write("list.json", (project.path / "list.json").read_text().replace("_b", "_c"))
    project.commit()
    result = document(gate(project, *FAKE_GATE, "./python", "-b", "x"))
    (row,) = result["gate"]["rows"]
    assert (row["benchmark"], row["candidate_median"]) == ("time_a", 0.5)
    assert [(warning["summary"], warning["hint"]) for warning in result["warnings"][:3]] == [
        (
            "time_b is only in the baseline, and was not compared",
            "compare it once both revisions have it",
        ),
        (
            "time_c is only in the candidate, and was not compared",
            "compare it once both revisions have it",
        ),
        (
            "mem_list(1) and mem_list(2) have no time, and were not compared",
            "choose another metric of asv with --metrics",
        ),
    ]
    assert result["conditions"][0]["command"][-3:] == ["-b", "x", "--run=time_a"]


def test_revisions_without_a_common_benchmark_are_refused(tmp_path: Path, gate: Gate) -> None:
    project = fake_project(tmp_path, TIMED_ONE % "time_a", MEMORY)
    project.write("list.json", (project.path / "list.json").read_text().replace("_a", "_c"))
    project.commit()
    answer = gate(project, *FAKE_GATE, "./python")
    assert answer.status == 2
    assert "the two revisions have no benchmark of asv in common" in answer.err


@live
def test_hostile_parameters_become_one_printable_name(python: str, tmp_path: Path) -> None:
    suite = (
        "class Hostile:\n"
        "    def __repr__(self):\n        return '\\x1b[31m<b>\\n@all'\n"
        "def time_it(hostile):\n    pass\n"
        "time_it.params = [Hostile(), Hostile()]\n"
    )
    folder = written(tmp_path, {**FILES, "perf/suite.py": suite})
    found = selections(listed(python, folder).stdout)
    assert [*found] == [rf"suite.time_it(\x1b[31m<b>\n@all ({number}))" for number in range(2)]
    options = found[r"suite.time_it(\x1b[31m<b>\n@all (1))"]
    assert options is not None
    assert values_of(python, folder, *options).keys() == {"time_s"}
