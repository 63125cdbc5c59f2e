"""Requests to the launcher follow the plan exactly, and trials record the actual events."""

from __future__ import annotations

from pathlib import Path

import msgspec.structs
import pytest

from equipoise.measure.environment import CovariateReader, Host
from equipoise.measure.launcher import Report, Request
from equipoise.measure.trials import TrialRunner, failure_of
from equipoise.measure.workload_metrics import METRICS_VARIABLE
from equipoise.model.plan import (
    PADDING_VARIABLE,
    PLAIN_PADDING_VARIABLE,
    Condition,
    Hooks,
    Layout,
    Measure,
    Output,
    Plan,
    Process,
)
from equipoise.model.record import Draw, Sample
from packages.equipoise.tests.plans import plan_of
from packages.equipoise.tests.scripted import FINISHED, ScriptedStarter


def runner(starter: ScriptedStarter, plan: Plan, folder: Path) -> TrialRunner:
    environment = {
        "HOME": "/home/me",
        "PATH": "/bin",
        METRICS_VARIABLE: "stale",
        PADDING_VARIABLE: "x",
    }
    # A host without files: every covariate is unknown.
    beside = CovariateReader(Host(folder / "nowhere"))
    return TrialRunner(plan, starter, folder, environment, beside, now=lambda: 123.0)


DRAW = Draw("measured", 4, (1, 0), 7)


def test_a_trial_gets_the_callers_environment_its_own_settings_and_the_padding(
    tmp_path: Path,
) -> None:
    plan = plan_of()
    second = msgspec.structs.replace(plan.conditions[1], environment={"HOME": "/tmp", "A": "1"})
    plan = msgspec.structs.replace(plan, conditions=(plan.conditions[0], second))
    starter = ScriptedStarter()
    runner(starter, plan, tmp_path).trials_at(DRAW, 0)[0]()
    request = starter.requests[0]
    assert request.argv == ("/bin/b",)
    assert request.environment == {
        "HOME": "/tmp",
        "PATH": "/bin",
        "A": "1",
        METRICS_VARIABLE: str(tmp_path / "metrics.jsonl"),
        PADDING_VARIABLE: "xxxxxxx",
    }


def test_without_own_variables_a_trial_has_only_a_plain_padding(tmp_path: Path) -> None:
    plan = plan_of(measure=Measure("/srv", own_variables=False))
    starter = ScriptedStarter()
    measured = runner(starter, plan, tmp_path)
    measured.environment = {**measured.environment, "EQUIPOISE_LEDGER": "/home/me/ledger"}
    measured.trials_at(DRAW, 0)[0]()
    assert starter.requests[0].environment == {
        "HOME": "/home/me",
        "PATH": "/bin",
        PLAIN_PADDING_VARIABLE: f"{tmp_path}/xxxxxxx",
    }


def test_input_output_folder_and_timeout_are_those_of_the_plan(tmp_path: Path) -> None:
    output = Output("file", "/tmp/out")
    plan = plan_of(measure=Measure("/srv", input="/etc/words", output=output, timeout_s=3.0))
    starter = ScriptedStarter()
    runner(starter, plan, tmp_path).trials_at(DRAW, 0)[0]()
    request = starter.requests[0]
    assert (request.working_folder, request.input, request.output, request.timeout_s) == (
        "/srv",
        "/etc/words",
        output,
        3.0,
    )


def test_a_condition_may_send_its_output_elsewhere(tmp_path: Path) -> None:
    plan = plan_of(measure=Measure("/srv", output=Output("file", "/tmp/out")))
    first, second = plan.conditions
    second = msgspec.structs.replace(second, output=Output("discard"))
    plan = msgspec.structs.replace(plan, conditions=(first, second))
    starter = ScriptedStarter()
    for place in (0, 1):
        runner(starter, plan, tmp_path).trials_at(DRAW, place)[0]()
    assert [request.output for request in starter.requests] == [
        Output("discard"),
        Output("file", "/tmp/out"),
    ]


def test_a_finished_trial_is_reported_as_measured(tmp_path: Path) -> None:
    report = runner(ScriptedStarter(), plan_of(), tmp_path).trials_at(DRAW, 1)[0]()
    trial = report.trial
    assert (trial.phase, trial.block, trial.position, trial.condition) == ("measured", 4, 1, 0)
    assert trial.started_at == 123.0
    assert trial.accounting.wall_s == 0.012345678
    assert trial.accounting.unknown == {"output_bytes": "not counted"}
    assert (trial.exit, trial.failure, trial.error_tail) == (0, None, "")


def test_metrics_of_a_workload_belong_only_to_their_own_trial(tmp_path: Path) -> None:
    def report_once(request: Request) -> None:
        if len(starter.requests) == 1:
            Path(request.environment[METRICS_VARIABLE]).write_text(
                '{"metric": "latency_s", "value": 0.5}\n', encoding="ascii"
            )

    starter = ScriptedStarter(does=report_once)
    trials = runner(starter, plan_of(), tmp_path)
    assert trials.trials_at(DRAW, 0)[0]().trial.samples == (Sample("latency_s", 0.5),)
    assert trials.trials_at(DRAW, 1)[0]().trial.samples == ()


def test_washouts_run_the_drawn_condition_before_each_trial(tmp_path: Path) -> None:
    trials = runner(ScriptedStarter(), plan_of(), tmp_path)
    draw = msgspec.structs.replace(DRAW, washout_condition=0)
    report = [run().trial for place in (0, 1) for run in trials.trials_at(draw, place)]
    assert [(t.condition, t.position, t.washout) for t in report] == [
        (0, 0, True),
        (1, 1, False),
        (0, 2, True),
        (0, 3, False),
    ]


@pytest.mark.parametrize(
    ("report", "description"),
    [
        (FINISHED, None),
        (msgspec.structs.replace(FINISHED, exit=3), "exit status 3"),
        (msgspec.structs.replace(FINISHED, exit=None, signal=11), "signal 11 (SIGSEGV)"),
        (
            msgspec.structs.replace(FINISHED, exit=None, signal=9, timed_out=True),
            "timed out after 2.5 s",
        ),
        (
            msgspec.structs.replace(FINISHED, exit=None, could_not_start="/x: Exec format error"),
            "could not be started: /x: Exec format error",
        ),
        (
            msgspec.structs.replace(FINISHED, exit=None, signal=9, out_of_memory=True),
            "signal 9 (SIGKILL): out of memory",
        ),
    ],
)
def test_a_failure_is_described(report: Report, description: str | None) -> None:
    assert failure_of(report, 2.5)[1] == description


def test_hooks_run_around_each_trial_and_around_all_of_them(tmp_path: Path) -> None:
    def append_word(word: str) -> str:
        return f"echo {word} >> {tmp_path}/diary"

    hooks = Hooks(
        append_word("setup"),
        append_word("prepare"),
        append_word("conclude"),
        append_word("cleanup"),
    )
    plan = plan_of(measure=Measure(str(tmp_path)))
    plan = msgspec.structs.replace(
        plan, conditions=(Condition("a", ("/bin/a",), hooks=hooks), plan.conditions[1])
    )

    def trial_runs(request: Request) -> None:
        with (tmp_path / "diary").open("a", encoding="ascii") as diary:
            diary.write(f"{request.argv[0]}\n")

    trials = runner(ScriptedStarter(does=trial_runs), plan, tmp_path)
    for place in (0, 1, 0, 1):
        trials.trials_at(DRAW, place)[0]()
    trials.clean_up()
    assert (tmp_path / "diary").read_text(encoding="ascii").split() == [
        "/bin/b",
        *("setup", "prepare", "/bin/a", "conclude"),
        "/bin/b",
        *("prepare", "/bin/a", "conclude", "cleanup"),
    ]


def test_a_workload_that_the_machine_forbids_is_distinguished_from_one_that_is_broken() -> None:
    stderr = '{"unavailable": "seccomp forbids fork"}\n'
    forbidden = msgspec.structs.replace(FINISHED, exit=69, error_tail=stderr)
    assert failure_of(forbidden, 1.0) == ("unavailable", "seccomp forbids fork")
    broken = msgspec.structs.replace(FINISHED, exit=69, error_tail="out of forks\n")
    assert failure_of(broken, 1.0) == ("failed", "exit status 69")


def test_in_a_layout_the_path_is_longer_and_the_arguments_are_unchanged(tmp_path: Path) -> None:
    plan = plan_of()
    linked = msgspec.structs.replace(
        plan.conditions[1], command=("/bin/b-{layout}", "x", "{layout}")
    )
    held = msgspec.structs.replace(plan.conditions[0], process=Process(random_addresses=True))
    plan = msgspec.structs.replace(
        plan, conditions=(held, linked), layouts=(Layout(9, 9, True), Layout(7, 3, False))
    )
    starter = ScriptedStarter()
    trials = runner(starter, plan, tmp_path)
    draw = msgspec.structs.replace(DRAW, layout=2)
    for place in range(2):
        for run in trials.trials_at(draw, place):
            run()
    first, second = starter.requests
    assert first.argv == ("/bin/b-2", "x", "2")
    assert first.program == "/bin////b-2"
    assert first.environment[PADDING_VARIABLE] == "x" * 7
    assert first.process.random_addresses is False
    # The address setting of a condition itself stays.
    assert second.process.random_addresses is True
    assert second.argv == ("/bin/a",)
