"""The answer of a verification, from its terms and its record."""

from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import replace

from equipoise.analysis.result import analyse_campaign
from equipoise.kinds.verify.command import exit_status_of
from equipoise.kinds.verify.terms import (
    CANDIDATE,
    OUTPUT_SOURCE,
    EarlierVerification,
    Objection,
    OutputDifference,
    VerifyDocument,
    VerifyPlan,
    VerifyResult,
)
from equipoise.model.record import Observation, RecordedWarning, RunRecord
from equipoise.why.result import result_of
from packages.equipoise.tests.screens.results import VERIFY_TERMS, verification

FASTER, SLOWER, SAME = (0.010, 0.008), (0.010, 0.012), (0.010, 0.010)
LEFT = RecordedWarning("left_processes", "it left processes", "wait for them", CANDIDATE)
PROC = Objection("reads_proc", "/proc/uptime")
DIFFERENCE = OutputDifference("measured", 1, 3, "right", "wrong")


def answer_of(record: RunRecord) -> VerifyResult:
    """The answer that every command computes, the same with and without the module of causes."""
    document = result_of(record)
    assert isinstance(document, VerifyDocument)
    analysed = analyse_campaign(record)
    assert isinstance(analysed, VerifyDocument)
    assert analysed.verify == document.verify
    return document.verify


def with_difference(record: RunRecord) -> RunRecord:
    """The record of a campaign with a wrong output."""
    document = msgspec.json.encode(DIFFERENCE)
    observation = Observation(OUTPUT_SOURCE, CANDIDATE, 1, 0, 0.0, document, None)
    return replace(record, observations=(observation,))


@pytest.mark.parametrize(
    ("medians", "answer", "status"),
    [(FASTER, "certified", 0), (SLOWER, "not faster", 1), (SAME, "not faster", 1)],
)
def test_the_verdict_decides_without_an_objection(
    medians: tuple[float, float], answer: str, status: int
) -> None:
    verify = answer_of(verification(VERIFY_TERMS, medians))
    assert (verify.answer, exit_status_of(verify)) == (answer, status)


def test_an_undecided_verdict_cannot_say() -> None:
    record = verification(VERIFY_TERMS, FASTER)
    few = [draw for draw in record.draws if draw.block <= 2]
    trials = tuple(trial for trial in record.trials if trial.block <= 2)
    verify = answer_of(replace(record, draws=tuple(few), trials=trials))
    assert (verify.answer, exit_status_of(verify)) == ("cannot say", 3)
    none = answer_of(replace(record, draws=(), trials=()))
    assert (none.answer, none.ratio) == ("cannot say", None)


@pytest.mark.parametrize("medians", [FASTER, SLOWER])
def test_an_objection_outweighs_the_verdict(medians: tuple[float, float]) -> None:
    objected = verification(replace(VERIFY_TERMS, objections=(PROC,)), medians)
    left = replace(verification(VERIFY_TERMS, medians), warnings=(LEFT,))
    for record, kind in ((objected, "reads_proc"), (left, "left_process")):
        verify = answer_of(record)
        assert (verify.answer, verify.objections[0].kind) == ("cannot say", kind)
        assert verify.hint is not None


def test_processes_that_the_baseline_leaves_too_are_no_objection() -> None:
    both = (LEFT, replace(LEFT, condition=0))
    verify = answer_of(replace(verification(VERIFY_TERMS, FASTER), warnings=both))
    assert verify.answer == "certified"


def test_a_wrong_output_outweighs_an_objection() -> None:
    record = verification(replace(VERIFY_TERMS, objections=(PROC,)), FASTER)
    verify = answer_of(with_difference(record))
    assert verify.answer == "wrong output"
    assert verify.difference == DIFFERENCE
    assert verify.summary == "Wrong output in block 1: line 3 is `wrong` instead of `right`."


def test_a_baseline_without_an_output_leaves_a_faster_candidate_unchecked() -> None:
    record = verification(VERIFY_TERMS, FASTER)
    first = record.trials[0]
    slow = next(trial for trial in record.trials if trial.condition == 0)
    timed_out = replace(slow, failure="timed out after 1 s", failure_kind="timed out")
    trials = tuple(timed_out if trial is slow else trial for trial in record.trials)
    assert first.block == slow.block == 1
    verify = answer_of(replace(record, trials=trials))
    assert (verify.answer, verify.compared_blocks) == ("cannot say", len(record.draws) - 1)
    assert "ran out of time in 1 block" in verify.summary


@pytest.mark.parametrize(
    ("interval", "medians", "replicates", "overlap", "status"),
    [
        ((0.7, 0.9), FASTER, True, True, 0),
        ((0.1, 0.2), FASTER, True, False, 0),
        ((0.7, 0.9), SAME, False, False, 1),
    ],
)
def test_a_replay_needs_the_same_answer_and_compares_the_sizes(
    interval: tuple[float, float],
    medians: tuple[float, float],
    replicates: bool,
    overlap: bool,
    status: int,
) -> None:
    earlier = EarlierVerification("0" * 32, 0.8, interval, ())
    terms: VerifyPlan = replace(VERIFY_TERMS, earlier=earlier)
    verify = answer_of(verification(terms, medians))
    assert verify.replay is not None
    assert (verify.replay.replicates, verify.replay.intervals_overlap) == (replicates, overlap)
    assert exit_status_of(verify) == status
