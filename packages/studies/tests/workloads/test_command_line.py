"""`equipoise-workload` on its command line: every workload, and every wrong word."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from packages.equipoise.tests.programs import finished

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def run(native_folder: Path) -> Run:
    """Runs the program without a metrics file."""

    def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        own = {name: value for name, value in os.environ.items() if name != "EQUIPOISE_METRICS"}
        return finished([native_folder / "equipoise-workload", *arguments], env=own | environment)

    return run


def test_the_list_names_every_workload_with_one_line(run: Run) -> None:
    done = run("--list")
    assert done.returncode == 0
    names = [line.split()[0] for line in done.stdout.splitlines()]
    assert names == [
        *("dgemm", "fragment", "genmatch2006", "hashwalk", "invert", "malloc", "sort", "spin"),
        "wordsearch",
    ]


@pytest.mark.parametrize("arguments", [("--help",), ("malloc", "--help"), ("spin", "-h")])
def test_help_shows_the_usage(run: Run, arguments: tuple[str, ...]) -> None:
    done = run(*arguments)
    assert done.returncode == 0
    assert done.stdout.startswith("usage: equipoise-workload")


def test_without_a_metrics_path_the_metric_goes_to_standard_output(run: Run) -> None:
    line = json.loads(run("spin", "--work", "1000").stdout)
    assert line["value"] > 0
    assert (line["metric"], line["unit"], line["better"]) == ("ns_per_step", "ns", "lower")


TICK_S = time.clock_getres(time.CLOCK_MONOTONIC)


def test_time_reports_the_resolution_of_its_clock_in_the_same_unit(run: Run) -> None:
    spun = json.loads(run("spin", "--work", "1000").stdout)
    assert spun["resolution"] == pytest.approx(1e9 * TICK_S / 1000)
    lines = map(json.loads, run("malloc", "--count", "1000").stdout.splitlines())
    steps = {line["metric"]: line.get("resolution") for line in lines if "metric" in line}
    assert steps["work_s"] == pytest.approx(1e-9 * steps["ns_per_pair"])
    assert steps["faults_per_pair"] is None


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ((), "malloc, sort, spin"),
        (("qsort",), "qsort"),
        (("--nonsense",), "--nonsense"),
        (("spin", "--work"), "--work"),
        (("spin", "--work", "0"), "--work"),
        (("spin", "--work", "1e6"), "1e6"),
        (("spin", "extra"), "extra"),
        (("malloc", "--size", "0"), "--size"),
        (("malloc", "--size", "-5"), "-5"),
        (("malloc", "--count", "many"), "many"),
        (("malloc", "--touch", "some"), "page, all, none"),
        (("malloc", "--pattern", "lifo:3"), "immediate, fifo:K, random:K"),
        (("malloc", "--pattern", "fifo:0"), "fifo:0"),
        (("malloc", "--threads", "100000"), "--threads"),
        (("malloc", "--verbose"), "--verbose"),
        (("fragment", "--keep", "101"), "--keep"),
        (("fragment", "--smallest", "9", "--largest", "8"), "--largest 8 is below"),
        (("sort", "--count", "0"), "--count"),
        (("dgemm", "--size", "0"), "--size"),
        (("invert", "--repeat", "0"), "--repeat"),
        (("genmatch2006", "--algorithm", "slow"), "scythe, blas, fast"),
        (("genmatch2006", "--rows", "100"), "--rows 100: all these rows are of one arm"),
        (("genmatch2006", "--weights", "1,2"), "10 positive numbers"),
    ],
)
def test_wrong_argument_gives_one_line_and_status_2(
    run: Run, arguments: tuple[str, ...], named: str
) -> None:
    done = run(*arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert named in done.stderr


def test_unusable_metrics_path_exits_with_status_1(run: Run, tmp_path: Path) -> None:
    metrics_file = str(tmp_path / "nowhere" / "metrics")
    done = run("spin", "--work", "10", EQUIPOISE_METRICS=metrics_file)
    assert done.returncode == 1
    assert metrics_file in done.stderr
