"""Two trials run at once, each on CPUs of its own, which follow the order of the block."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from equipoise.measure.duet import DuetRunner, two_cpu_sets
from equipoise.measure.environment import CovariateReader, Host
from equipoise.measure.launcher import Launcher, OnWait, PairLauncher, Report, Request
from equipoise.measure.workload_metrics import METRICS_VARIABLE
from equipoise.model.errors import EquipoiseError, UnusableInput
from equipoise.model.plan import Hooks, Measure, Process
from equipoise.model.record import Draw, Sample
from packages.equipoise.tests.measure.conftest import Shell
from packages.equipoise.tests.plans import plan_of
from packages.equipoise.tests.scripted import FINISHED, ScriptedStarter

CPUS = sorted(os.sched_getaffinity(0))
NEEDS_TWO_CPUS = pytest.mark.skipif(len(CPUS) < 2, reason="only one CPU may be used")


def host_with_cores(folder: Path, cores: dict[int, str]) -> Host:
    """A host whose CPUs are hardware threads of these cores, in the kernel's format."""
    for cpu, threads in cores.items():
        topology = folder / f"sys/devices/system/cpu/cpu{cpu}/topology"
        topology.mkdir(parents=True)
        (topology / "thread_siblings_list").write_text(f"{threads}\n", encoding="ascii")
    return Host(folder)


def test_each_trial_gets_half_of_the_cpus(tmp_path: Path) -> None:
    host = host_with_cores(tmp_path, {cpu: str(cpu) for cpu in range(4)})
    assert two_cpu_sets(host, range(4)) == ((0, 1), (2, 3))


def test_both_sets_are_equally_large(tmp_path: Path) -> None:
    host = host_with_cores(tmp_path, {cpu: str(cpu) for cpu in range(3)})
    assert two_cpu_sets(host, range(3)) == ((0,), (1,))


def test_the_threads_of_a_core_belong_to_one_trial(tmp_path: Path) -> None:
    host = host_with_cores(tmp_path, {0: "0,2", 1: "1,3", 2: "0,2", 3: "1,3"})
    assert two_cpu_sets(host, range(4)) == ((0, 2), (1, 3))


def test_a_core_of_which_one_thread_is_allowed_makes_no_unequal_sets(tmp_path: Path) -> None:
    host = host_with_cores(tmp_path, {0: "0,2", 1: "1,3", 2: "0,2"})
    assert two_cpu_sets(host, (0, 1, 2)) == ((0,), (1,))


def test_the_threads_of_the_only_core_are_shared_out(tmp_path: Path) -> None:
    host = host_with_cores(tmp_path, {0: "0-1", 1: "0-1"})
    assert two_cpu_sets(host, (0, 1)) == ((0,), (1,))


def test_a_host_without_a_description_of_its_cores_is_taken_as_it_is(tmp_path: Path) -> None:
    assert two_cpu_sets(Host(tmp_path), (3, 7)) == ((3,), (7,))


def test_one_cpu_is_refused_with_its_number(tmp_path: Path) -> None:
    with pytest.raises(UnusableInput, match="needs two CPUs, but Equipoise may use only CPU 5"):
        two_cpu_sets(Host(tmp_path), (5,))


@pytest.fixture
def pair_launcher(launcher_program: Path) -> Iterator[PairLauncher]:
    with Launcher(launcher_program) as first, Launcher(launcher_program) as second:
        yield PairLauncher((first, second))


def test_two_trials_that_wait_for_each_other_both_end(
    pair_launcher: PairLauncher, shell: Shell, tmp_path: Path
) -> None:
    for name in ("first", "second"):
        os.mkfifo(tmp_path / name)
    # Opening a FIFO for writing waits for its reader, so neither could end before the other began.
    reports = pair_launcher.run_pair(
        (
            shell("echo hello > first; read answer < second; test $answer = here"),
            shell("read greeting < first; echo here > second; test $greeting = hello"),
        )
    )
    assert [(report.exit, report.timed_out) for report in reports] == [(0, False), (0, False)]
    assert all(report.started_ns is not None for report in reports)


@NEEDS_TWO_CPUS
def test_each_of_two_trials_runs_on_its_own_cpu(pair_launcher: PairLauncher, shell: Shell) -> None:
    request = shell("grep Cpus_allowed_list /proc/self/status >&2")
    first, second = (replace(request, process=Process(cpus=(cpu,))) for cpu in CPUS[:2])
    reports = pair_launcher.run_pair((first, second))
    assert [report.error_tail.split()[-1] for report in reports] == [str(cpu) for cpu in CPUS[:2]]
    assert [report.cpu for report in reports] == CPUS[:2]


def test_one_of_two_trials_may_fail_or_time_out(pair_launcher: PairLauncher, shell: Shell) -> None:
    endless = replace(shell("sleep 300 & wait"), timeout_s=0.3)
    stopped, failed = pair_launcher.run_pair((endless, shell("exit 3")))
    assert (stopped.timed_out, failed.exit) == (True, 3)
    again = pair_launcher.run_pair((shell("exit 0"), shell("exit 0")))
    assert [report.exit for report in again] == [0, 0]


def test_a_start_in_the_far_future_is_refused(launcher_program: Path, shell: Shell) -> None:
    with (
        Launcher(launcher_program) as launcher,
        pytest.raises(EquipoiseError, match="more than a second away"),
    ):
        launcher.run(replace(shell("exit 0"), start_at_ns=2**62))


class ScriptedPair:
    """Runs two trials on a scripted clock; each reports a metric with its place."""

    def __init__(self) -> None:
        self.pairs: list[tuple[Request, Request]] = []

    def run_pair(
        self, requests: tuple[Request, Request], on_wait: OnWait | None = None
    ) -> tuple[Report, Report]:
        self.pairs.append(requests)
        for place, request in enumerate(requests):
            Path(request.environment[METRICS_VARIABLE]).write_text(
                f'{{"metric": "place", "value": {place}}}\n', encoding="ascii"
            )
        first = replace(FINISHED, started_ns=1_000_000_000)
        return first, replace(first, started_ns=1_500_000_000)


def duet_runner(folder: Path, pair: ScriptedPair, starter: ScriptedStarter) -> DuetRunner:
    measure = Measure(str(folder), cpu_sets=((0,), (1,)))
    plan = plan_of(measure=measure)
    hooks = Hooks(prepare="echo prepare >> hooks", conclude="echo conclude >> hooks")
    plan = replace(plan, conditions=tuple(replace(one, hooks=hooks) for one in plan.conditions))
    return DuetRunner(
        plan,
        starter,
        folder / "scratch",
        {"PATH": os.environ["PATH"]},
        CovariateReader(Host(folder / "nowhere")),
        now=lambda: 103.0,
        pair_starter=pair,
        monotonic_ns=lambda: 2_000_000_000,
    )


def test_a_block_at_once_has_one_function_and_a_report_of_each_trial(tmp_path: Path) -> None:
    (tmp_path / "scratch").mkdir()
    pair, starter = ScriptedPair(), ScriptedStarter()
    runner = duet_runner(tmp_path, pair, starter)
    draw = Draw("measured", 4, (1, 0), 0)
    (run,) = runner.trials_at(draw, 0)
    assert runner.trials_at(draw, 1) == ()
    first = run()
    assert first.at_once is not None
    trials = [first.trial, first.at_once.trial]
    assert [(trial.condition, trial.position) for trial in trials] == [(1, 0), (0, 1)]
    assert [trial.samples for trial in trials] == [(Sample("place", 0.0),), (Sample("place", 1.0),)]
    assert [trial.started_at for trial in trials] == [102.0, 102.5]
    (requests,) = pair.pairs
    assert [request.process.cpus for request in requests] == [(0,), (1,)]
    assert [request.argv for request in requests] == [("/bin/b",), ("/bin/a",)]
    assert starter.requests == []
    hooks = (tmp_path / "hooks").read_text(encoding="ascii").split()
    assert hooks == ["prepare", "prepare", "conclude", "conclude"]


def test_the_pilot_runs_in_turns_on_all_cpus_and_at_once_alternately(tmp_path: Path) -> None:
    (tmp_path / "scratch").mkdir()
    pair, starter = ScriptedPair(), ScriptedStarter()
    runner = duet_runner(tmp_path, pair, starter)
    # Block 1 is the warm-up.
    for block in (2, 3):
        draw = Draw("warmup", block, (1, 0), 0)
        for position in (0, 1):
            for run in runner.trials_at(draw, position):
                run()
    assert [request.process.cpus for request in starter.requests] == [None, None]
    assert len(pair.pairs) == 1
