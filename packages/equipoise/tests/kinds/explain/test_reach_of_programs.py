"""Interventions on planted programs: an observed run shows whether the named calls were reached."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from equipoise.kinds.explain.plan import ExperimentRequest, GapWithCauses, plan_experiment
from equipoise.kinds.explain.reach import UnalteredEvidence
from equipoise.kinds.explain.terms import experiment_of
from equipoise.measure.installation import host_site
from equipoise.model.plan import Judgement, Measure, Plan, Stopping
from equipoise.model.record import RunRecord
from equipoise.why.evidence.collect import collect, draw_runs
from equipoise.why.evidence.sources import EvidenceSet, decode_evidence
from packages.equipoise.tests.kinds.explain.simulated import cause_of
from packages.equipoise.tests.why.evidence.test_sampled import needs_kernel
from packages.equipoise.tests.why.planted.pairs import built, pairs

pytestmark = needs_kernel


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("planted")
    built(made)
    return made


@dataclass(frozen=True)
class PlantedProgram:
    """One intervention on a planted pair, and whether it changes the named calls."""

    pair: str
    intervention: str
    reaches: bool
    evidence: dict[str, Any] = field(default_factory=dict)
    """Evidence in addition to that of the pair."""
    before: str | None = None
    """Sentence about the calls that stayed unchanged."""


def evidence_with_all_records(plan: Plan) -> EvidenceSet:
    """Observe both commands; beside other work the observer may come too late for some records."""
    lost: list[int] = []
    for seed in range(5):
        runs = draw_runs(0, 1, ("system_calls",), 1, seed)
        evidence = decode_evidence(tuple(collect(plan, runs, longest_trial_s=1.0)), 0, 1)
        lost.append(sum(run.lost_records for run in evidence.system_calls.all_runs))
        if lost[-1] == 0:
            return evidence
    raise AssertionError(f"the observer lost records of system calls in every pair: {lost}")


TRIES = (
    PlantedProgram("unbuffered reads", "large_buffers", True),
    PlantedProgram(
        "reads without a buffer of stdio",
        "large_buffers",
        False,
        before="read(2) was called as often as before: 400,0",
    ),
    PlantedProgram("unbuffered writes", "large_buffers", True),
    PlantedProgram(
        "unbuffered writes",
        "output_to_file",
        False,
        evidence={"file": "{folder}/lines.txt"},
        before="/lines.txt was written to as often as before: 80,000 times",
    ),
    PlantedProgram("an extra fsync", "quick_sync", True),
    PlantedProgram("sleeping", "no_sleep", True),
    PlantedProgram("page faults through MADV_DONTNEED", "keep_pages", True),
    PlantedProgram(
        "35 KB churn under the 15 KB policy", "never_mmap", True, evidence={"syscall": "munmap"}
    ),
    PlantedProgram(
        "35 KB churn under the 15 KB policy", "dlmalloc", True, evidence={"syscall": "munmap"}
    ),
    PlantedProgram("many messages through a pipe", "pinning", True),
    PlantedProgram(
        "a contended mutex", "single_thread", False, before="as many threads ran as before: "
    ),
)


@pytest.mark.parametrize(
    "program", TRIES, ids=lambda program: f"{program.intervention} on {program.pair}"
)
def test_an_observed_run_shows_whether_the_named_calls_are_reached(
    program: PlantedProgram, folder: Path
) -> None:
    (planted,) = (pair for pair in pairs() if pair.name == program.pair)
    if planted.missing():
        pytest.skip(f"misses {', '.join(planted.missing())}")
    plan = Plan(
        study="compare",
        conditions=planted.conditions(folder),
        measure=Measure(working_folder=str(folder)),
        stopping=Stopping(),
        judgement=Judgement(),
        seed=1,
    )
    evidence = evidence_with_all_records(plan)
    record = RunRecord("20260301-101500-ab12", plan, 1.7e9, (), (), (), ())
    named = {planted.key: planted.value, **program.evidence}
    shown = {
        key: value.format(folder=folder) if isinstance(value, str) else value
        for key, value in named.items()
    }
    cause = replace(cause_of(planted.cause), evidence=shown)
    gap = GapWithCauses(record, plan.contrasts[0], (cause,), UnalteredEvidence(evidence), 1.0)
    request = ExperimentRequest(Stopping(), 0.05, 1, only=(program.intervention,))
    explains = experiment_of(plan_experiment(gap, request, host_site()))
    (attempt,) = explains.attempts
    assert attempt.may_reach_cause is program.reaches, attempt.reach_checks
    if program.before is not None:
        (expected,) = attempt.reach_checks
        assert expected.unchanged_sentence is not None
        assert program.before in expected.unchanged_sentence
