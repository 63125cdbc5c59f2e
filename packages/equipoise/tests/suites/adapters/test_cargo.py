"""Suites of cargo: criterion, divan and bencher in one workspace, with CodSpeed's crates, too."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from packages.equipoise.tests.cli.conftest import Gate
from packages.equipoise.tests.kinds.gate.test_command import document
from packages.equipoise.tests.suites.adapters.example_projects import (
    GATE_OPTIONS,
    example_with_more_work,
    fetched_tool,
    gates_a_suite,
)
from packages.equipoise.tests.suites.test_trial import reported, run

WORKSPACE = Path(__file__).parent / "cargo_workspace"
COMPILED = Path(__file__).parents[5] / "target" / "cargo_workspace"
"""Compiled once; the test costs little from then on."""
TWO_PROGRAMS = """
equipoise: program parser/speed/speed-0123456789abcdef
test sum ... bench:   5 ns/iter (+/- 1)
test only ... bench:  6 ns/iter (+/- 1)

equipoise: program writer/speed/speed-fedcba9876543210
test sum ... bench:   7 ns/iter (+/- 1)
speed     fastest       │ slowest       │ median        │ mean          │ samples │ iters
╰─ sum    4.77 ns       │ 11.15 ns      │ 4.784 ns      │ 8.0 ns        │ 100     │ 51200

"""


def offline() -> dict[str, str]:
    """Variables with which cargo finds the fetched crates, and compiles them fast."""
    return {
        "CARGO_HOME": str(fetched_tool("cargo", "registry")),
        "CARGO_NET_OFFLINE": "true",
        "CARGO_PROFILE_BENCH_OPT_LEVEL": "0",
    }


def test_equal_names_of_two_programs_begin_with_the_program(tmp_path: Path) -> None:
    (tmp_path / "printed").write_text(TWO_PROGRAMS)
    values = reported(tmp_path, "cargo", "cat", str(tmp_path / "printed"))
    assert {name: metric["value"] for name, metric in values.items()} == {
        "parser/speed: sum time_s": pytest.approx(5e-9),
        "only time_s": pytest.approx(6e-9),
        "writer/speed: sum time_s": pytest.approx(7e-9),
        "speed::sum time_s": pytest.approx(8e-9),
    }


def test_each_program_of_criterion_has_a_folder_of_its_own(tmp_path: Path) -> None:
    writes = (
        "import json, os, pathlib\n"
        "for package, ns in (('a', 40.0), ('b', 50.0)):\n"
        "    print(f'equipoise: program {package}/speed/speed-{package}', flush=True)\n"
        "    print('test sum ... bench:   9 ns/iter (+/- 1)', flush=True)\n"
        "    results = os.environ['EQUIPOISE_CARGO_RESULTS']\n"
        "    folder = pathlib.Path(results, f'speed-{package}', 'sum', 'new')\n"
        "    folder.mkdir(parents=True)\n"
        "    sample = {'iters': [1.0, 2.0], 'times': [ns, 2 * ns]}\n"
        "    (folder / 'sample.json').write_text(json.dumps(sample))\n"
        "    (folder / 'benchmark.json').write_text(json.dumps({'full_id': 'sum'}))\n"
    )
    values = reported(tmp_path, "cargo", sys.executable, "-c", writes)
    assert {name: metric["value"] for name, metric in values.items()} == {
        "a/speed: sum time_s": pytest.approx(40e-9),
        "b/speed: sum time_s": pytest.approx(50e-9),
    }


def test_an_error_in_the_output_names_the_program(tmp_path: Path) -> None:
    (tmp_path / "printed").write_text(TWO_PROGRAMS.replace("8.0 ns ", "8.0 ly "))
    done = run("cargo", "cat", str(tmp_path / "printed"))
    assert done.returncode == 1
    assert done.stderr.startswith(
        "cargo: the output of writer/speed: line 3: 'speed::sum' has no times, or the text is cut"
    )


@pytest.mark.parametrize(
    ("variables", "arguments", "limit"),
    [
        ({}, (), "0.1"),
        ({"DIVAN_MAX_TIME": "3"}, (), "3"),
        ({"DIVAN_MIN_TIME": "1"}, (), "none"),
        ({}, ("--", "--min-time=1"), "none"),
    ],
)
def test_divan_has_a_limit_unless_the_user_set_one(
    variables: dict[str, str], arguments: tuple[str, ...], limit: str, tmp_path: Path
) -> None:
    text = "echo test limit-${DIVAN_MAX_TIME-none} ... bench: 1 ns/iter"
    values = reported(tmp_path, "cargo", "sh", "-c", text, *arguments, folder=None, **variables)
    assert [*values] == [f"limit-{limit} time_s"]


@gates_a_suite
@pytest.mark.live("cargo")
def test_a_workspace_of_criterion_divan_and_bencher_and_their_copies_of_codspeed(
    tmp_path: Path,
) -> None:
    variables = {**offline(), "CARGO_TARGET_DIR": str(COMPILED)}
    manifest = ("--manifest-path", str(WORKSPACE / "Cargo.toml"), "--locked")
    values = reported(tmp_path, "cargo", "cargo", "bench", *manifest, folder=None, **variables)
    of_divan = ("with_divan::prints", "with_divan::sums::1000", "with_divan::sums::2000")
    assert {*values} == {
        f"{package}/{program}: {name} time_s"
        for package in ("compat", "original")
        for program, names in {
            "with_bencher": ("sums",),
            "with_criterion": ("sums of criterion",),
            "with_divan": of_divan,
        }.items()
        for name in names
    }
    for metric in (metric for name, metric in values.items() if "sums" in name):
        assert 10e-9 < metric["value"] < 1e-3, values
    assert not (COMPILED / "criterion").exists()


@gates_a_suite
@pytest.mark.live("cargo", "git")
def test_more_work_in_the_example_is_found(tmp_path: Path, gate: Gate) -> None:
    variables = offline()
    project = example_with_more_work(tmp_path, "cargo", "compute(n - 6)", "3 * compute(n)")
    # Without criterion, which takes a minute to compile.
    command = ("cargo", "bench", "-p", "with-divan", "--", "16")
    options = ("--kind", "cargo", *GATE_OPTIONS)
    build = ("--build", "cargo bench --no-run -p with-divan")
    answer = gate(project, "--baseline", "HEAD~1", *options, *build, "--", *command, **variables)
    assert answer.status == 1, answer
    (row,) = document(answer)["gate"]["rows"]
    assert (row["benchmark"], row["outcome"]) == ("example::fibonacci::16", "slower")
