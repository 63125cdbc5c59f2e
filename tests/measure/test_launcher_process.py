"""What a trial asks for its own process is set in it, and in nothing else."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import msgspec.structs
import pytest

from equipoise.measure.launcher import Launcher, Request
from equipoise.model.plan import Output, Process


@pytest.fixture
def said(
    launcher: Launcher, shell: Callable[[str], Request], tmp_path: Path
) -> Callable[[str, Process], str]:
    """What a shell script says under the given settings."""

    def run(script: str, process: Process) -> str:
        output = Output("file", str(tmp_path / "said"))
        request = msgspec.structs.replace(shell(script), process=process, output=output)
        report = launcher.run(request)
        assert report.exit == 0, (report.could_not_start, report.error_tail)
        return (tmp_path / "said").read_text()

    return run


STACK = "grep -F '[stack]' /proc/self/maps"
FLAGS = "grep THP_enabled /proc/self/status"


def test_addresses_are_the_same_where_they_are_not_drawn(said: Callable[..., str]) -> None:
    fixed = {said(STACK, Process(random_addresses=False)) for _ in range(3)}
    assert len(fixed) == 1
    assert len({said(STACK, Process(random_addresses=True)) for _ in range(5)}) > 1
    assert len({said(STACK, Process()) for _ in range(5)}) > 1


def test_it_runs_on_the_cpus_that_were_asked_for(said: Callable[..., str]) -> None:
    allowed = sorted(os.sched_getaffinity(0))
    last = allowed[-1]
    found = said("grep Cpus_allowed_list /proc/self/status", Process(cpus=(last,)))
    assert found.split() == ["Cpus_allowed_list:", str(last)]
    assert said("nproc", Process()).strip() == str(len(allowed))


def test_a_cpu_that_is_not_there_stops_the_trial(
    launcher: Launcher, shell: Callable[[str], Request]
) -> None:
    request = msgspec.structs.replace(shell("exit 0"), process=Process(cpus=(1000,)))
    report = launcher.run(request)
    assert report.could_not_start == "CPUs [1000]: Invalid argument"
    assert launcher.run(shell("exit 0")).exit == 0


def test_a_cpu_number_beyond_the_kernels_set_stops_the_trial_and_not_the_launcher(
    launcher: Launcher, shell: Callable[[str], Request]
) -> None:
    request = msgspec.structs.replace(shell("exit 0"), process=Process(cpus=(0, 1024)))
    report = launcher.run(request)
    assert report.could_not_start == (
        "CPUs [0, 1024]: CPU 1024 is out of range: Equipoise supports CPUs 0 to 1023"
    )
    assert launcher.run(shell("exit 0")).exit == 0


def test_huge_pages_are_forbidden_to_one_trial_and_not_to_the_next(
    said: Callable[..., str],
) -> None:
    before = said(FLAGS, Process())
    assert said(FLAGS, Process(huge_pages=False)).split() == ["THP_enabled:", "0"]
    assert said(FLAGS, Process(huge_pages=True)).split() == ["THP_enabled:", "1"]
    assert said(FLAGS, Process()) == before
