"""``compare --duet`` with real programs: their CPUs, their pilot, and the refusals."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from equipoise.ledger import open_for_reading
from equipoise.model.errors import EXIT_UNUSABLE_INPUT
from packages.equipoise.tests.cli.conftest import Equipoise, compared, result_of
from packages.equipoise.tests.programs import finished

Script = Callable[[str, Sequence[str]], str]

CPUS = sorted(os.sched_getaffinity(0))
NEEDS_TWO_CPUS = pytest.mark.skipif(len(CPUS) < 2, reason="only one CPU may be used")

REPORTING_ITS_CPU = """
import json, os, sys
with open(os.environ["EQUIPOISE_METRICS"], "a") as metrics:
    json.dump({"metric": "first_cpu", "value": min(os.sched_getaffinity(0))}, metrics)
    metrics.write("\\n")
"""
HOLDING_A_LOCK = r"""
#include <fcntl.h>
#include <sys/file.h>
#include <time.h>
int main(int count, char **arguments) {
    flock(open(arguments[1], O_RDWR | O_CREAT, 0600), LOCK_EX);
    while (clock() < 40 * (CLOCKS_PER_SEC / 1000)) {}
    return 0;
}
"""


@pytest.fixture
def reporting(tmp_path: Path) -> tuple[str, str]:
    """Two commands that report the first CPU that they may use."""
    for name in ("a.py", "b.py"):
        (tmp_path / name).write_text(REPORTING_ITS_CPU)
    return f"{sys.executable} -S a.py", f"{sys.executable} -S b.py"


@pytest.fixture
def tolerant(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the pilot accept any slowdown, because this host may be busy."""
    monkeypatch.setattr("equipoise.campaign.pilot.MAX_SLOWDOWN", 1000.0)


@NEEDS_TWO_CPUS
@pytest.mark.usefixtures("tolerant")
def test_each_trial_has_cpus_of_its_own_and_the_coin_swaps_them(
    equipoise: Equipoise, reporting: tuple[str, str]
) -> None:
    limits = ("--blocks", "12", "--seed", "3", "--alpha", "1e-9", "--min-seconds", "0")
    result = compared(equipoise, *reporting, "--duet", *limits)
    cpus = [cpus[0] for cpus in result["duet"]["cpus"]]
    assert len(set(cpus)) == 2
    trials = [trial for trial in result["trials"] if trial["phase"] == "measured"]
    assert [trial["metrics"]["first_cpu"] for trial in trials] == [
        cpus[trial["position"]] for trial in trials
    ]
    by_condition: dict[str, set[float]] = {}
    for trial in trials:
        by_condition.setdefault(trial["condition"], set()).add(trial["metrics"]["first_cpu"])
    assert list(by_condition.values()) == [set(cpus), set(cpus)]
    (comparison,) = result["comparisons"]
    assert "run at once on CPU" in comparison["scope"]
    assert comparison["carry_over"] is None
    (pilot,) = result["duet"]["pilots"]
    assert pilot["pairs"] >= 5
    assert result["run"]["command_line"].count("--duet") == 1


@NEEDS_TWO_CPUS
@pytest.mark.usefixtures("tolerant")
def test_a_campaign_resumes_at_once_on_the_same_cpus_without_a_second_pilot(
    equipoise: Equipoise, reporting: tuple[str, str]
) -> None:
    limits = ("--alpha", "1e-9", "--min-seconds", "0")
    first = compared(equipoise, *reporting, "--duet", "--blocks", "3", *limits)
    resumed = result_of(equipoise("resume", "last", "--blocks", "6", "--json", "-"))
    assert resumed["run"]["blocks"] == 6
    assert resumed["duet"]["cpus"] == first["duet"]["cpus"]
    cpus = [cpus[0] for cpus in resumed["duet"]["cpus"]]
    trials = [trial for trial in resumed["trials"] if trial["phase"] == "measured"]
    assert len(trials) == 12
    assert all(trial["metrics"]["first_cpu"] == cpus[trial["position"]] for trial in trials)
    warmups = [
        sum(trial["phase"] == "warmup" for trial in result["trials"]) for result in (first, resumed)
    ]
    # A resumed campaign warms up again: one trial of each command.
    assert warmups[1] == warmups[0] + 2


@NEEDS_TWO_CPUS
@pytest.mark.live("cc", package="gcc")
def test_programs_that_hold_one_lock_are_refused_and_the_ledger_says_why(
    equipoise: Equipoise, tmp_path: Path
) -> None:
    (tmp_path / "lock.c").write_text(HOLDING_A_LOCK)
    subprocess.run(["cc", "-O2", "-o", "holder", "lock.c"], cwd=tmp_path, check=True)
    (tmp_path / "other").symlink_to("holder")
    answer = equipoise("compare", "./holder one.lock", "./other one.lock", "--duet")
    assert answer.status == EXIT_UNUSABLE_INPUT
    assert "waits for a lock, a file or a device that both use" in answer.err
    assert "hint: leave out --duet" in answer.err
    with open_for_reading(tmp_path / ".equipoise/ledger.db") as ledger:
        record = ledger.read_run("last")
    assert record.stopped_because == "its pilot"
    assert [warning.code for warning in record.warnings][:1] == ["duet_disturbed"]
    assert {trial.phase for trial in record.trials} == {"warmup"}
    shown = equipoise("show")
    assert "its pilot" in shown.out


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        (("true",), "runs two conditions at once, not 3"),
        (("--control",), "--control adds a third"),
        (("--washout",), "cannot be combined with --washout"),
        (("--adjust",), "trials that run at once have one reading"),
        (("--output", "same.txt"), "both commands would write to"),
        (("--cluster", "local:2"), "--duet cannot be combined with --cluster"),
    ],
)
@NEEDS_TWO_CPUS
def test_what_trials_at_once_cannot_do_is_refused_in_one_line(
    equipoise: Equipoise, more: tuple[str, ...], problem: str
) -> None:
    answer = equipoise("compare", "true", "sleep 0", "--duet", *more)
    assert answer.status == EXIT_UNUSABLE_INPUT
    assert problem in answer.err
    assert answer.err.count("\n") == 2


@NEEDS_TWO_CPUS
def test_a_single_command_is_refused(equipoise: Equipoise) -> None:
    answer = equipoise("compare", "true", "--duet")
    assert "runs two conditions at once, not 1" in answer.err
    assert answer.status == EXIT_UNUSABLE_INPUT
    assert "runs two at once" in equipoise("compare", "true", "--duet", "--what-varies").err


def test_a_host_with_one_cpu_is_refused_in_one_line(equipoise: Equipoise) -> None:
    os.sched_setaffinity(0, CPUS[:1])
    try:
        answer = equipoise("compare", "true", "sleep 0", "--duet")
    finally:
        os.sched_setaffinity(0, CPUS)
    assert answer.status == EXIT_UNUSABLE_INPUT
    assert f"--duet needs two CPUs, but Equipoise may use only CPU {CPUS[0]} here" in answer.err


@NEEDS_TWO_CPUS
@pytest.mark.usefixtures("tolerant")
def test_a_host_without_the_cpus_of_a_campaign_cannot_resume_it(
    equipoise: Equipoise, reporting: tuple[str, str]
) -> None:
    limits = ("--blocks", "1", "--alpha", "1e-9", "--quiet")
    assert equipoise("compare", *reporting, "--duet", *limits).status == 0
    os.sched_setaffinity(0, CPUS[:1])
    try:
        answer = equipoise("resume", "last", "--blocks", "2")
    finally:
        os.sched_setaffinity(0, CPUS)
    assert answer.status == EXIT_UNUSABLE_INPUT
    assert "run at once on CPU" in answer.err


@NEEDS_TWO_CPUS
@pytest.mark.live("cc", package="gcc")
def test_the_example_of_the_documentation_compares_its_two_programs(tmp_path: Path) -> None:
    example = Path(__file__).parents[4] / "docs/examples/duet/run.sh"
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = finished(
        [example, "--blocks", "3", "--quiet"], cwd=tmp_path, env={**os.environ, "PATH": path}
    )
    # On a busy host, the pilot may refuse them.
    assert done.returncode == 0 or "while old runs" in done.stderr or "while new" in done.stderr
