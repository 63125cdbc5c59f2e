"""Whether an intervention reaches a cause, by synthetic evidence, and the consequences."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from equipoise.kinds.explain import outcome
from equipoise.kinds.explain.plan import ExperimentRequest, GapWithCauses, effective_plan
from equipoise.kinds.explain.reach import UnalteredEvidence, reach_checks_of
from equipoise.kinds.explain.terms import PlannedIntervention, experiment_of
from equipoise.model.plan import Plan
from equipoise.model.record import Accounting, Observation, RunRecord
from equipoise.model.why import ReachCheck
from equipoise.report.builders.why import interventions_section
from equipoise.report.document import Paragraph
from equipoise.why.evidence.collect import EvidenceRun
from equipoise.why.evidence.observer import FileUse
from equipoise.why.evidence.sources import EvidenceSet, Runs
from equipoise.why.interventions.intervention import ChangedProperty
from equipoise.why.result import result_of
from packages.equipoise.tests.kinds.explain.simulated import Truth, plan_and_seconds
from packages.equipoise.tests.kinds.explain.test_campaigns import NO_LIMIT, record_of, with_attempts
from packages.equipoise.tests.kinds.explain.test_plan import gap, intervention
from packages.equipoise.tests.why.differences.example_evidence import calls, sampled, system_calls

READS = UnalteredEvidence(
    EvidenceSet(
        system_calls=Runs(
            (system_calls(calls("read", 13, 0.01)),) * 2,
            (system_calls(calls("read", 20_013, 0.9)),) * 2,
        )
    )
)
OFTEN_AS_BEFORE = "read(2) was called as often as before: 20,013 times"


def unchanged_sentence(
    cause: str,
    known: UnalteredEvidence,
    with_it: object,
    changes: ChangedProperty = "evidence of the cause",
    **evidence: object,
) -> str | None:
    """Return the sentence that one observed run left a cause unchanged."""
    plan, _ = plan_and_seconds(2.0, (Truth(1.0),), stopping=NO_LIMIT, seed=1)
    named = replace(experiment_of(plan).causes[0], cause=cause, evidence=evidence)
    attempt = replace(experiment_of(plan).attempts[0], causes=(cause,))
    plan = replace(plan, terms=replace(experiment_of(plan), causes=(named,), attempts=(attempt,)))

    def observe(_: Plan, run: EvidenceRun) -> Observation:
        assert run.condition == attempt.candidate_with
        return observation_of(run, with_it)

    made = reach_checks_of(plan, attempt, changes, known, observe)
    return next((change.unchanged_sentence for change in made), None)


def observation_of(run: EvidenceRun, with_it: object) -> Observation:
    """An observation that holds this run of a source, or failed if there is none."""
    document = None if with_it is None else msgspec.json.encode(with_it)
    failure = "the observer is missing" if with_it is None else None
    return Observation(run.source, run.condition, run.repetition, 0, 0.0, document, failure)


@pytest.mark.parametrize(
    ("after", "sentence"),
    [
        (13, None),
        (10_013, None),
        (10_014, "read(2) was called 10,014 times, 20,013 times before"),
        (20_013, OFTEN_AS_BEFORE),
        (30_000, "read(2) was called 30,000 times, 20,013 times before"),
    ],
)
def test_half_of_the_surplus_of_calls_must_be_gone(after: int, sentence: str | None) -> None:
    run = system_calls(calls("read", after, 0.5))
    assert unchanged_sentence("tiny_reads", READS, run, syscall="read") == sentence


def test_counts_of_a_run_with_lost_records_are_not_compared() -> None:
    complete = system_calls(calls("read", 20_013, 0.9))
    after = system_calls(calls("read", 20_013, 0.9), lost_records=1)
    assert unchanged_sentence("tiny_reads", READS, after, syscall="read") is None
    runs = READS.evidence.system_calls
    lossy = (system_calls(calls("read", 15_000, 0.9), lost_records=10_026),)
    some_lost = UnalteredEvidence(
        EvidenceSet(system_calls=replace(runs, candidate=lossy + runs.candidate))
    )
    assert unchanged_sentence("tiny_reads", some_lost, complete, syscall="read") == OFTEN_AS_BEFORE
    all_lost = UnalteredEvidence(EvidenceSet(system_calls=replace(runs, candidate=lossy)))
    assert unchanged_sentence("tiny_reads", all_lost, complete, syscall="read") is None


def test_an_intervention_that_could_not_be_observed_is_tried_as_before() -> None:
    assert unchanged_sentence("tiny_reads", READS, None, syscall="read") is None


def test_without_earlier_system_calls_there_is_no_sentence() -> None:
    after = system_calls(calls("read", 20_013, 0.9))
    assert unchanged_sentence("tiny_reads", UnalteredEvidence(), after, syscall="read") is None


def test_a_slower_baseline_is_the_one_whose_calls_must_fall() -> None:
    runs = READS.evidence.system_calls
    known = UnalteredEvidence(
        EvidenceSet(system_calls=Runs(runs.candidate, runs.baseline)), "baseline"
    )
    plan, _ = plan_and_seconds(2.0, (Truth(1.0),), stopping=NO_LIMIT, seed=1)
    attempt = replace(experiment_of(plan).attempts[0], causes=("tiny_reads",))
    named = replace(experiment_of(plan).causes[0], cause="tiny_reads", evidence={"syscall": "read"})
    plan = replace(plan, terms=replace(experiment_of(plan), causes=(named,)))
    run_conditions: list[int] = []

    def observe(_: Plan, run: EvidenceRun) -> Observation:
        run_conditions.append(run.condition)
        return observation_of(run, system_calls(calls("read", 20_013, 0.9)))

    (made,) = reach_checks_of(plan, attempt, "evidence of the cause", known, observe)
    assert made.unchanged_sentence == OFTEN_AS_BEFORE
    assert run_conditions == [attempt.baseline_with]


def test_output_that_goes_elsewhere_must_leave_the_file_of_the_evidence() -> None:
    def run(**writes: int) -> Any:
        used = (FileUse(f"/{name}", 0, 0, count, count, 0, 0.1) for name, count in writes.items())
        return system_calls(calls("write", sum(writes.values()), 0.1), files=tuple(used))

    known = UnalteredEvidence(
        EvidenceSet(system_calls=Runs((run(log=2),) * 2, (run(log=500),) * 2))
    )
    named: dict[str, Any] = {"syscall": "write", "file": "/log"}
    assert unchanged_sentence("tiny_writes", known, run(null=500), "the output", **named) is None
    assert unchanged_sentence("tiny_writes", known, run(log=500), "the output", **named) == (
        "/log was written to as often as before: 500 times"
    )


def test_thread_counts_that_a_program_does_not_read_were_not_reached() -> None:
    run = Runs((system_calls(threads=8),) * 2, (system_calls(threads=8),) * 2)
    known = UnalteredEvidence(EvidenceSet(system_calls=run))
    assert unchanged_sentence("lock_waits", known, system_calls(threads=1), "threads") is None
    assert unchanged_sentence("lock_waits", known, system_calls(threads=8), "threads") == (
        "as many threads ran as before: 8"
    )


def test_pinning_does_not_reach_a_program_that_chooses_its_cpus_itself() -> None:
    run = system_calls(calls("sched_setaffinity", 1, 0.0))
    known = UnalteredEvidence(EvidenceSet(system_calls=Runs((run,) * 2, (run,) * 2)))
    assert unchanged_sentence("messages", known, system_calls(), "CPUs") is None
    assert unchanged_sentence("messages", known, run, "CPUs") == (
        "the program chose its CPUs itself: sched_setaffinity(2) was called once"
    )


def test_a_preloaded_allocator_must_take_the_place_of_the_one_that_ran() -> None:
    before = sampled({"main;malloc@program": 0.4, "main;work": 0.2})
    known = UnalteredEvidence(EvidenceSet(profile=Runs((before,) * 2, (before,) * 2)))
    after = sampled({"main;malloc@libjemalloc.so.2": 0.5, "main;work": 0.2})
    assert unchanged_sentence("more_allocations", known, after) is None
    assert unchanged_sentence("more_allocations", known, before) == (
        "the allocator in program ran for as long as before: 0.4 s"
    )


def test_the_function_of_a_library_that_is_swapped_must_no_longer_run() -> None:
    before = sampled({"main;kernel_old@libopenblas.so.0": 0.4})
    other = sampled({"main;kernel_new@libopenblas.so.0": 0.2})
    known = UnalteredEvidence(EvidenceSet(profile=Runs((other,) * 2, (before,) * 2)))
    named: dict[str, Any] = {"function": "kernel_old"}
    assert unchanged_sentence("wrong_blas_kernel", known, other, **named) is None
    assert unchanged_sentence("wrong_blas_kernel", known, before, **named) == (
        "kernel_old() ran for as long as before: 0.4 s"
    )


def test_too_few_samples_of_a_function_show_nothing() -> None:
    before = sampled({"main;kernel_old@libopenblas.so.0": 0.01})
    known = UnalteredEvidence(EvidenceSet(profile=Runs((sampled({}),) * 2, (before,) * 2)))
    assert unchanged_sentence("wrong_blas_kernel", known, before, function="kernel_old") is None


def reading_gap() -> GapWithCauses:
    """A gap whose only cause is many small reads."""
    made = gap(0.5)
    cause = replace(made.causes[0], cause="tiny_reads", evidence={"syscall": "read"})
    return replace(made, causes=(cause,), unaltered_evidence=READS)


def plan_of(reads: Sequence[int], *, most: int = 4) -> tuple[Plan, int]:
    """Return a plan of interventions with these counts of reads, and its observed runs."""
    trial_count = [intervention(f"number{place}", "tiny_reads") for place in range(len(reads))]
    request = ExperimentRequest(NO_LIMIT, alpha=0.05, seed=3, max_attempts=most)
    observed: list[EvidenceRun] = []

    def observe(plan: Plan, run: EvidenceRun) -> Observation:
        observed.append(run)
        place = next(iter(plan.conditions[run.condition].environment))
        count = reads[int(place.removeprefix("number"))]
        return observation_of(run, system_calls(calls("read", count, 0.1)))

    plan = effective_plan(reading_gap(), trial_count, request, observe)
    return plan, len(observed)


def attempts_of(plan: Plan) -> dict[str, PlannedIntervention]:
    return {attempt.intervention: attempt for attempt in experiment_of(plan).attempts}


def test_an_intervention_without_reach_leaves_its_place_to_another() -> None:
    plan, runs = plan_of([20_013, 13, 13], most=1)
    attempts = attempts_of(plan)
    reachable = {name: attempt.may_reach_cause for name, attempt in attempts.items()}
    assert reachable == {"number0": False, "number1": True}
    assert attempts["number0"].reach_checks == (ReachCheck(0, unchanged_sentence=OFTEN_AS_BEFORE),)
    assert runs == 2
    assert [omission.intervention for omission in experiment_of(plan).omitted] == ["number2"]


def test_every_intervention_is_observed_once() -> None:
    plan, runs = plan_of([20_013, 20_013, 20_013, 13])
    assert runs == 4
    reachable = [attempt.may_reach_cause for attempt in attempts_of(plan).values()]
    assert reachable == [False, False, False, True]


def missed_attempt(*places: int) -> dict[str, Any]:
    """An attempt that an observed run has shown to leave these causes as they were."""
    changes = tuple(ReachCheck(place, unchanged_sentence=OFTEN_AS_BEFORE) for place in places)
    return {"reach_checks": changes, "may_reach_cause": False}


def trial_count(record: RunRecord, place: int) -> int:
    """The number of trials with one attempt."""
    attempt = experiment_of(record.plan).attempts[place]
    return sum(trial.condition == attempt.candidate_with for trial in record.trials)


def test_an_attempt_that_reaches_nothing_has_no_trial_and_is_not_refuted(tmp_path: Path) -> None:
    record = record_of(
        tmp_path, (Truth(0.0), Truth(0.97)), lambda plan: with_attempts(plan, missed_attempt(0), {})
    )
    first, second = outcome.tested_causes(record)
    assert (first.status, second.status) == ("not reachable", "confirmed")
    assert trial_count(record, 0) == 0 < trial_count(record, 1)
    (test,) = first.tested
    assert (test.outcome, test.unchanged_sentence, test.blocks) == (
        "not reachable",
        OFTEN_AS_BEFORE,
        0,
    )
    assert test.unknown_because is None
    assert first.share_of_gap == 0.9
    assert first.summary.endswith(f"Intervention 0 cannot reach the cause ({OFTEN_AS_BEFORE}).")
    # The attempts that are tried share alpha among themselves.
    assert second.tested[0].significance_level == 0.05
    assert record.segments[-1].stopped_because == "verdict"


def test_a_campaign_of_attempts_that_reach_nothing_ends_with_its_gap(tmp_path: Path) -> None:
    record = record_of(tmp_path, (Truth(0.0),), lambda plan: with_attempts(plan, missed_attempt(0)))
    assert record.segments[-1].stopped_because == "verdict"
    assert {trial.condition for trial in record.trials} == {0, 1}
    section = interventions_section(result_of(record))
    assert section is not None
    texts = [part.text for part in section.parts if isinstance(part, Paragraph)]
    assert any("No intervention can change what the evidence names" in text for text in texts)


@pytest.mark.parametrize(("cannot_refute", "status"), [(False, "refuted"), (True, "open")])
def test_a_cause_is_refuted_by_interventions_that_reached_it_and_may_refute(
    tmp_path: Path, cannot_refute: bool, status: str
) -> None:
    both: dict[str, Any] = {"causes": ("cause 0",)}
    weak = {**both, "cannot_refute": cannot_refute}
    record = record_of(
        tmp_path,
        (Truth(0.0), Truth(0.0)),
        lambda plan: with_attempts(plan, {**both, **missed_attempt(0)}, weak),
    )
    first, _ = outcome.tested_causes(record)
    assert first.status == status
    outcomes = [attempt.outcome for attempt in first.tested]
    assert cannot_refute or outcomes == ["not reachable", "refuted"]


def test_one_attempt_may_reach_one_cause_and_not_another(tmp_path: Path) -> None:
    partly = {**missed_attempt(0), "may_reach_cause": True, "causes": ("cause 0", "cause 1")}
    record = record_of(
        tmp_path,
        (Truth(0.0), Truth(0.97)),
        lambda plan: with_attempts(plan, partly, {"causes": ()}),
    )
    first, second, _ = outcome.tested_causes(record)
    assert (first.status, second.status) == ("not reachable", "refuted")
    section = interventions_section(result_of(record))
    assert section is not None


def with_faults(record: RunRecord, faults: dict[int, int]) -> RunRecord:
    """Return the record with these page faults in the trials of each condition."""
    trials = tuple(
        replace(
            trial,
            accounting=replace(trial.accounting, minor_faults=faults.get(trial.condition, 100)),
        )
        for trial in record.trials
    )
    return replace(record, trials=trials)


@pytest.mark.parametrize(
    ("after", "status", "sentence"),
    [
        (5_000, "not reachable", "page faults happened as often as before: 5,000 times"),
        (3_000, "not reachable", "page faults happened 3,000 times, 5,000 times before"),
        (120, "refuted", None),
    ],
)
def test_page_faults_are_counted_in_the_campaign_s_own_trials(
    tmp_path: Path, after: int, status: str, sentence: str | None
) -> None:
    expected = {"reach_checks": (ReachCheck(0, decreasing_value="page_faults"),)}
    record = record_of(tmp_path, (Truth(0.0),), lambda plan: with_attempts(plan, expected))
    (cause,) = outcome.tested_causes(with_faults(record, {1: 5_000, 3: after}))
    assert cause.status == status
    assert cause.tested[0].unchanged_sentence == sentence
    assert cause.tested[0].share is not None


def test_unknown_page_faults_leave_the_outcome_as_it_is(tmp_path: Path) -> None:
    expected = {"reach_checks": (ReachCheck(0, decreasing_value="page_faults"),)}
    record = record_of(tmp_path, (Truth(0.0),), lambda plan: with_attempts(plan, expected))
    unknown = tuple(
        replace(trial, accounting=Accounting(wall_s=trial.accounting.wall_s))
        for trial in record.trials
    )
    (cause,) = outcome.tested_causes(replace(record, trials=unknown))
    assert cause.status == "refuted"


def test_an_intervention_that_closes_the_gap_is_confirmed_despite_the_counts(
    tmp_path: Path,
) -> None:
    expected = {
        "reach_checks": (
            ReachCheck(0, decreasing_value="page_faults"),
            ReachCheck(0, unchanged_sentence=OFTEN_AS_BEFORE),
        )
    }
    record = record_of(tmp_path, (Truth(0.97),), lambda plan: with_attempts(plan, expected))
    (cause,) = outcome.tested_causes(with_faults(record, {1: 5_000, 3: 5_000}))
    assert cause.status == "confirmed"
