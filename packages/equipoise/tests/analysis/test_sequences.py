"""The sequences from the result document of a campaign equal those from its ledger."""

from __future__ import annotations

import msgspec.structs
import numpy as np
import pytest

from equipoise.analysis.result import analyse_campaign
from equipoise.analysis.sequences import sequences_of, sequences_of_document
from equipoise.model.plan import Judgement
from equipoise.model.record import Draw, Phase, RunRecord, Sample
from equipoise.model.result import ResultDocument
from equipoise.report.json_document import decode, encode
from packages.equipoise.tests.plans import plan_of, trial_of

BLOCKS = 25


def record_of(*names: str) -> RunRecord:
    """A campaign in which each condition takes 4 % longer than the previous one."""
    generator = np.random.default_rng(3)
    phases: list[tuple[Phase, int]] = [("warmup", 1), ("measured", BLOCKS)]
    draws = [
        Draw(phase, block, tuple(generator.permutation(len(names)).tolist()), 0)
        for phase, blocks in phases
        for block in range(1, blocks + 1)
    ]
    trials = [
        trial_of(draw, place, 0.01 * 1.04**condition * float(np.exp(0.01 * generator.normal())))
        for draw in draws
        for place, condition in enumerate(draw.order)
    ]
    return RunRecord("r", plan_of(*names), 0.0, (), tuple(draws), tuple(trials), ())


def two_commands() -> RunRecord:
    """A campaign of two commands."""
    return record_of("a", "b")


def with_a_control() -> RunRecord:
    """A campaign whose baseline runs twice per block."""
    record = record_of("a", "b", "a (control)")
    return msgspec.structs.replace(record, plan=msgspec.structs.replace(record.plan, control=2))


def with_timeouts_and_a_cut_block() -> RunRecord:
    """A campaign with trials that timed out and a last block of one trial."""
    record = record_of("a", "b")
    trials = tuple(
        msgspec.structs.replace(
            trial, failure_kind="timed out", failure="timed out after 1 s", exit=None
        )
        if trial.block in (3, 9) and trial.condition == 1
        else trial
        for trial in record.trials[:-1]
    )
    return msgspec.structs.replace(record, trials=trials)


def better_when_higher() -> RunRecord:
    """A campaign whose primary metric is reported by the workload; higher is better."""
    record = record_of("a", "b")
    judgement = Judgement(primary_metric="requests")
    return msgspec.structs.replace(
        record,
        plan=msgspec.structs.replace(record.plan, judgement=judgement),
        trials=tuple(
            msgspec.structs.replace(
                trial,
                samples=(
                    Sample("requests", 1.0 / (trial.accounting.wall_s or 1.0), better="higher"),
                ),
            )
            for trial in record.trials
        ),
    )


def through_a_file(record: RunRecord) -> ResultDocument:
    """The document after it was written and read."""
    return decode(encode(analyse_campaign(record)), "result.json")


@pytest.mark.parametrize(
    "record",
    [
        two_commands(),
        record_of("a", "b", "c"),
        with_a_control(),
        with_timeouts_and_a_cut_block(),
        better_when_higher(),
    ],
    ids=["two", "three", "control", "timeouts", "higher"],
)
def test_the_sequences_are_those_of_the_ledger(record: RunRecord) -> None:
    document = through_a_file(record)
    assert document == analyse_campaign(record)
    assert sequences_of_document(document) == sequences_of(record)
    assert sequences_of(record)


def test_a_document_whose_trials_do_not_lead_to_its_interval_has_no_sequence() -> None:
    document = through_a_file(two_commands())
    assert (
        sequences_of_document(msgspec.structs.replace(document, trials=document.trials[:30])) == {}
    )
    other = tuple(
        msgspec.structs.replace(comparison, metric="nothing") for comparison in document.comparisons
    )
    assert sequences_of_document(msgspec.structs.replace(document, comparisons=other)) == {}
    assert sequences_of_document(msgspec.structs.replace(document, comparisons=())) == {}
    assert (
        sequences_of_document(msgspec.structs.replace(document, conditions=document.conditions[:1]))
        == {}
    )
