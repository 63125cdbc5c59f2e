"""Evidence is gathered in runs that are trials in everything but their command."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from equipoise.measure.launcher import Report, Request, Starter
from equipoise.measure.workload_metrics import METRICS_VARIABLE
from equipoise.model.errors import ConditionFailed, UnusableInput
from equipoise.model.plan import (
    PADDING_VARIABLE,
    Condition,
    Hooks,
    Layout,
    Measure,
    Output,
    Plan,
    Process,
    Server,
)
from equipoise.model.record import Observation
from equipoise.why.evidence import collect as collecting
from equipoise.why.evidence import observer
from equipoise.why.evidence.allocations import Allocations
from equipoise.why.evidence.collect import EvidenceRun, collect, default_repetitions, draw_runs
from equipoise.why.evidence.observer import Process as ObservedProcess
from equipoise.why.evidence.observer import SampledStacks, SystemCalls
from equipoise.why.evidence.sources import (
    DEFAULT_SOURCES,
    SOURCES,
    known_sources,
    latest_conditions,
    observations_of_pair,
)
from packages.equipoise.tests.plans import plan_of
from packages.equipoise.tests.scripted import FINISHED, ScriptedStarter
from packages.equipoise.tests.why.evidence.programs import NOBODY, by_name, compiled, opened_to_all

CALLS = (
    '{"version":1,"method":"ptrace","wall_s":0.1,"end":{"exit":%d,"signal":null},"processes":1,'
    '"threads":1,"programs":1,"waiting_s":0.0,"calls":[],"files":[],"locks":[],"unseen":[],"lost_records":0}'
)


def starting(starter: Starter) -> Callable[[Path], AbstractContextManager[Starter]]:
    @contextmanager
    def factory(scratch: Path) -> Iterator[Starter]:
        yield starter

    return factory


def plan_with(condition: Condition, measure: Measure | None = None) -> Plan:
    """A plan whose first condition is this one."""
    plan = plan_of(measure=measure or Measure("/tmp"))
    return replace(plan, conditions=(condition, plan.conditions[1]))


def collected(
    starter: Starter, plan: Plan, runs: Sequence[EvidenceRun], longest_trial_s: float = 0.1
) -> list[Observation]:
    factory = starting(starter)
    made = collect(
        plan, runs, longest_trial_s=longest_trial_s, starter_factory=factory, now=lambda: 5.0
    )
    return list(made)


def writes_calls(status: int = 0) -> Callable[[Request], None]:
    """Return a writer of the document of a command that ended with this status."""

    def write(request: Request) -> None:
        output = request.argv[request.argv.index("--output") + 1]
        Path(output).write_text(CALLS % status)

    return write


BOTH = (EvidenceRun("system_calls", 0, 1), EvidenceRun("system_calls", 1, 1))


def test_each_source_sees_both_conditions_equally_often() -> None:
    runs = draw_runs(0, 2, DEFAULT_SOURCES, 3, seed=1)
    expected = {
        (source, condition, n)
        for source in DEFAULT_SOURCES
        for condition in (0, 2)
        for n in (1, 2, 3)
    }
    assert {(run.source, run.condition, run.repetition) for run in runs} == expected
    assert len(runs) == len(expected)


def test_the_order_is_drawn_anew_for_each_repetition_and_each_seed() -> None:
    def order(seed: int, repetition: int) -> list[tuple[str, int]]:
        runs = draw_runs(0, 1, DEFAULT_SOURCES, 2, seed)
        return [(run.source, run.condition) for run in runs if run.repetition == repetition]

    assert order(1, 1) == order(1, 1)
    assert order(1, 1) != order(1, 2)
    assert order(1, 1) != order(2, 1)


def test_each_condition_is_equally_often_first() -> None:
    seeds = 2000
    first = sum(draw_runs(0, 1, ("profile",), 2, seed)[0].condition for seed in range(seeds))
    # Five standard errors of a fair coin.
    assert abs(first - seeds / 2) < 5 * (seeds / 4) ** 0.5


def test_known_observations_are_not_repeated() -> None:
    known = Observation("profile", 1, 2, 7, 1.0, b"{}", None)
    runs = draw_runs(0, 1, ("profile",), 2, 1, (known,))
    assert EvidenceRun("profile", 1, 2) not in runs
    assert len(runs) == 3


def test_long_runs_are_repeated_less() -> None:
    assert (default_repetitions(10.0), default_repetitions(10.1)) == (3, 2)


def test_program_gets_the_same_inputs_as_in_a_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    output = Output("file", "/tmp/out")
    condition = Condition(
        "a",
        ("/bin/a", "--flag"),
        environment={"LD_PRELOAD": "libjemalloc.so.2", "A": "1"},
        process=Process(cpus=(0,), huge_pages=False),
    )
    plan = plan_with(condition, Measure("/srv", input="/etc/words", output=output, timeout_s=0.5))
    starter = ScriptedStarter()
    collected(starter, plan, [EvidenceRun("allocations", 0, 1), *BOTH[:1]], longest_trial_s=2.0)
    recorded, traced = starter.requests
    assert recorded.argv == ("/bin/a", "--flag")
    recorder, behind = recorded.environment["LD_PRELOAD"].split()
    assert (Path(recorder).name, behind) == ("libequipoise_recorder.so", "libjemalloc.so.2")
    assert Path(traced.argv[0]).name == "equipoise-evidence"
    assert traced.argv[-3:] == ("--", "/bin/a", "--flag")
    assert traced.environment["LD_PRELOAD"] == "libjemalloc.so.2"
    for request in starter.requests:
        assert (request.environment["HOME"], request.environment["A"]) == ("/home/me", "1")
        assert METRICS_VARIABLE in request.environment
        assert PADDING_VARIABLE in request.environment
        assert (request.working_folder, request.input, request.output, request.process) == (
            "/srv",
            "/etc/words",
            output,
            condition.process,
        )
        assert request.timeout_s >= 20.0


def test_in_a_layout_the_program_has_its_longer_path() -> None:
    plan = replace(plan_of(), layouts=(Layout(100, 3, random_addresses=False),))
    starter = ScriptedStarter()
    collected(starter, plan, BOTH[:1])
    (request,) = starter.requests
    assert request.argv[-1] == "/bin////a"
    assert request.process.random_addresses is False
    assert len(request.environment[PADDING_VARIABLE]) == 100


def test_hooks_run_before_and_after_and_are_not_observed(tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    says = f'echo "$1 ${{EQUIPOISE_ALLOCATIONS:-unobserved}}" >> {seen}'
    lines = (says.replace("$1", name) for name in ("setup", "prepare", "conclude", "cleanup"))
    condition = Condition("a", ("/bin/a",), hooks=Hooks(*lines))
    plan = plan_with(condition, Measure(str(tmp_path)))
    collected(ScriptedStarter(), plan, [EvidenceRun("allocations", 0, n) for n in (1, 2)])
    names = [line.split() for line in seen.read_text().splitlines()]
    assert names == [
        [name, "unobserved"]
        for name in ("setup", "prepare", "conclude", "prepare", "conclude", "cleanup")
    ]


def test_failed_hook_ends_the_observation_after_cleanup(tmp_path: Path) -> None:
    hooks = Hooks(prepare="exit 3", cleanup=f"touch {tmp_path}/cleaned")
    condition = Condition("a", ("/bin/a",), hooks=hooks)
    plan = plan_with(condition, Measure(str(tmp_path)))
    with pytest.raises(ConditionFailed, match="--prepare of a failed"):
        collected(ScriptedStarter(), plan, BOTH)
    assert (tmp_path / "cleaned").exists()


def test_no_run_starts_before_the_caller_has_the_observation_before() -> None:
    starter = ScriptedStarter(does=writes_calls())
    made = collect(plan_of(), BOTH, longest_trial_s=0.1, starter_factory=starting(starter))
    assert len(starter.requests) == 0
    for taken, observation in enumerate(made, start=1):
        assert len(starter.requests) == taken
        assert observation.position == taken - 1


def test_document_of_the_source_is_returned() -> None:
    starter = ScriptedStarter(does=writes_calls())
    first, second = collected(starter, plan_of(), BOTH)
    assert (first.source, first.condition, first.repetition) == ("system_calls", 0, 1)
    assert (second.condition, second.observed_at, second.failure) == (1, 5.0, None)
    assert second.document is not None
    assert msgspec.json.decode(second.document, type=SystemCalls).method == "ptrace"


def test_unusable_source_is_quoted_and_the_others_continue() -> None:
    class Forbidden(ScriptedStarter):
        def run(self, request: Request, on_wait: object = None) -> Report:
            if "waits" in request.argv:
                self.requests.append(request)
                message = "chatter\nequipoise-evidence: perf_event_open: not permitted\n"
                return replace(FINISHED, exit=1, error_tail=message)
            return super().run(request)

    starter = Forbidden(does=writes_calls())
    waits, calls = collected(starter, plan_of(), [EvidenceRun("waits", 0, 1), BOTH[0]])
    assert (waits.document, waits.failure) == (None, "perf_event_open: not permitted")
    assert calls.failure is None


def test_a_missing_observer_is_found_out_before_anything_is_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(observer, "native_programs", lambda: tmp_path)
    starter = ScriptedStarter()
    (observation,) = collected(starter, plan_of(), BOTH[:1])
    assert observation.failure is not None
    assert "equipoise-evidence is missing" in observation.failure
    assert starter.requests == []


def test_a_missing_valgrind_is_the_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    (observation,) = collected(ScriptedStarter(), plan_of(), [EvidenceRun("instructions", 0, 1)])
    assert observation.failure == "valgrind, which counts instructions, is missing"


@pytest.mark.parametrize(
    ("ignored", "failure"), [(False, "a fails under this source: exit status 3"), (True, None)]
)
def test_a_program_that_fails_under_a_source_is_a_failure_unless_failures_are_ignored(
    ignored: bool, failure: str | None
) -> None:
    plan = plan_of(measure=Measure("/", ignore_failure=ignored))
    (observation,) = collected(ScriptedStarter(does=writes_calls(3)), plan, BOTH[:1])
    assert observation.failure == failure
    assert (observation.document is None) is not ignored


def test_a_run_that_takes_for_ever_is_stopped_and_is_a_failure() -> None:
    starter = ScriptedStarter(replace(FINISHED, exit=None, signal=9, timed_out=True))
    (observation,) = collected(starter, plan_of(), BOTH[:1])
    assert observation.failure == "timed out after 60 s"


def test_the_latest_observation_of_a_pair_counts_and_no_other_pair() -> None:
    def seen(condition: int, position: int, at: float, repetition: int = 1) -> Observation:
        return Observation("profile", condition, repetition, position, at, b"{}", None)

    first = (seen(0, 0, 1.0), seen(1, 1, 2.0))
    other_pair = (seen(2, 0, 3.0), seen(0, 1, 4.0))
    later = (seen(1, 0, 5.0), seen(0, 1, 6.0, repetition=2))
    observations = (*first, *other_pair, *later)
    assert {
        observation.observed_at for observation in observations_of_pair(observations, 0, 1)
    } == {1.0, 5.0, 6.0}
    assert {
        observation.observed_at for observation in observations_of_pair(observations, 0, 2)
    } == {3.0, 4.0}
    assert latest_conditions(observations[:4]) == {0, 2}
    assert latest_conditions(()) == frozenset()


@pytest.mark.parametrize("names", [("profile", "nosuch"), ()])
def test_a_source_that_does_not_exist_is_refused(names: tuple[str, ...]) -> None:
    with pytest.raises(UnusableInput) as refusal:
        known_sources(names)
    assert all(source in str(refusal.value.hint) for source in SOURCES)


def real(command: tuple[str, ...], *sources: str, server: Server | None = None) -> dict[str, bytes]:
    """Return the documents of these sources for one real run each."""
    condition = Condition("real", command, server=server)
    plan = plan_with(condition)
    runs = [EvidenceRun(source, 0, 1) for source in sources]
    observations = list(collect(plan, runs, longest_trial_s=0.1))
    assert [observation.failure for observation in observations] == [None] * len(runs)
    return {
        observation.source: observation.document
        for observation in observations
        if observation.document is not None
    }


@pytest.mark.skipif(os.geteuid() != 0, reason="samples may be forbidden to other users")
def test_every_usual_source_sees_a_real_command() -> None:
    busy = "sum(range(3_000_000)); __import__('time').sleep(0.05)"
    documents = real((sys.executable, "-c", busy), *DEFAULT_SOURCES)
    assert msgspec.json.decode(documents["profile"], type=SampledStacks).samples > 0
    assert msgspec.json.decode(documents["page_faults"], type=SampledStacks).samples > 0
    assert (msgspec.json.decode(documents["waits"], type=SampledStacks).total or 0.0) > 0.049
    assert msgspec.json.decode(documents["system_calls"], type=SystemCalls).programs == 1
    assert msgspec.json.decode(documents["allocations"], type=Allocations).allocations > 100


@pytest.mark.skipif(os.geteuid() != 0, reason="samples may be forbidden to other users")
def test_children_that_die_and_programs_of_other_users_are_no_failure(tmp_path: Path) -> None:
    changes = compiled(tmp_path, "int main(void) { return 0; }", name="changes")
    os.chown(changes, NOBODY, NOBODY)
    changes.chmod(0o6755)
    opened_to_all(tmp_path)
    line = f"sh -c 'kill -9 $$'; (sleep 0.01 &); {changes} && exec true"
    assert set(real(("/bin/sh", "-c", line), *DEFAULT_SOURCES)) == {*DEFAULT_SOURCES}


def test_a_program_that_dies_under_every_source_is_a_failure_of_each() -> None:
    condition = Condition("dies", ("/bin/sh", "-c", "kill -SEGV $$"))
    plan = plan_with(condition)
    runs = [EvidenceRun(source, 0, 1) for source in ("system_calls", "allocations")]
    observations = list(collect(plan, runs, longest_trial_s=0.1))
    assert [observation.failure for observation in observations] == [
        "dies fails under this source: signal 11 (SIGSEGV)"
    ] * 2


FETCH = "import urllib.request as u; [u.urlopen('http://127.0.0.1:{port}/').read() for _ in '123']"
HTTP = (sys.executable, "-m", "http.server", "{port}", "--bind", "127.0.0.1")


def test_server_is_observed_and_its_client_is_not() -> None:
    served = Server(HTTP, ready_s=20.0)
    documents = real((sys.executable, "-c", FETCH), "system_calls", "allocations", server=served)
    calls = msgspec.json.decode(documents["system_calls"], type=SystemCalls)
    assert by_name(calls)["accept4"].count >= 3
    # The server was told to stop, through its observer; the client ended by itself.
    assert (calls.end.exit, calls.end.signal) == (None, signal.SIGTERM)
    assert msgspec.json.decode(documents["allocations"], type=Allocations).allocations > 1000


def test_a_server_whose_observer_is_refused_is_a_failure_and_the_next_source_is_tried(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refused(process: ObservedProcess, folder: Path) -> ObservedProcess:
        """Complain and end, as the observer does where the kernel forbids samples."""
        says = "echo 'equipoise-evidence: not permitted' >&2; exit 1"
        return ObservedProcess(("/bin/sh", "-c", says), process.environment)

    monkeypatch.setattr(
        collecting, "SOURCES", {**SOURCES, "waits": replace(SOURCES["waits"], wrap=refused)}
    )
    condition = Condition(
        "served", (sys.executable, "-c", FETCH), server=Server(HTTP, ready_s=20.0)
    )
    plan = plan_with(condition)
    runs = [EvidenceRun("waits", 0, 1), EvidenceRun("allocations", 0, 1)]
    observations = list(collect(plan, runs, longest_trial_s=0.1))
    assert observations[0].failure is not None
    assert observations[0].failure.startswith("not permitted")
    assert observations[1].failure is None
