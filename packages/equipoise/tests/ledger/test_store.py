"""Recorded values can be read again, and cannot be changed."""

from __future__ import annotations

import gc
import math
import re
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from equipoise.ledger import FIRST_SEGMENT, Ledger, open_for_reading, open_for_writing
from equipoise.ledger.file import LedgerFile
from equipoise.model.errors import UnusableInput
from equipoise.model.plan import Condition, Hooks, Judgement, Measure, Output, Plan, Stopping
from equipoise.model.quantities import MAX_MEASURED_VALUE
from equipoise.model.record import (
    Accounting,
    Draw,
    FailureKind,
    RecordedWarning,
    RunSummary,
    Sample,
    Segment,
    Trial,
)
from packages.equipoise.tests.ledger.conftest import make_plan, make_trial, record_blocks, row_count

counts = st.none() | st.integers(-(2**63), 2**63 - 1)
measured = st.floats(-MAX_MEASURED_VALUE, MAX_MEASURED_VALUE)
times = st.none() | measured
texts = st.text(max_size=20)
accountings = st.builds(
    Accounting,
    wall_s=times,
    user_s=times,
    sys_s=times,
    max_rss_bytes=counts,
    minor_faults=counts,
    major_faults=counts,
    voluntary_switches=counts,
    involuntary_switches=counts,
    block_reads=counts,
    block_writes=counts,
    output_bytes=counts,
    counters=st.dictionaries(texts, times, max_size=3),
    unknown=st.dictionaries(texts, texts, max_size=3),
)
samples = st.builds(
    Sample,
    metric=texts,
    value=measured,
    iteration=counts,
    unit=st.none() | texts,
    better=st.sampled_from(["lower", "higher"]),
    resolution=st.none() | st.floats(0.0, exclude_min=True, allow_infinity=False),
)
trials = st.builds(
    Trial,
    phase=st.just("measured"),
    block=st.just(1),
    position=st.integers(0, 9),
    condition=st.just(0),
    started_at=st.floats(-1e11, 1e11),
    accounting=accountings,
    exit=st.none() | st.integers(0, 255),
    failure=st.none() | texts,
    failure_kind=st.none() | st.sampled_from(get_args(FailureKind)),
    washout=st.booleans(),
    error_tail=texts,
    covariates=st.dictionaries(texts, st.none() | measured, max_size=4),
    samples=st.lists(samples, max_size=4).map(tuple),
)


@settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.too_slow])
@given(
    recorded=st.lists(trials, max_size=4, unique_by=lambda trial: (trial.position, trial.washout))
)
def test_a_trial_comes_back_bit_for_bit(
    tmp_path_factory: pytest.TempPathFactory, recorded: list[Trial]
) -> None:
    path = tmp_path_factory.mktemp("round") / "ledger.db"
    with open_for_writing(path, durable=False) as ledger:
        run = ledger.begin_run(_plan_with_odd_text(), {}, 1.0)
        ledger.record_draw(run, Draw("measured", 1, (0,) * 10, 0))
        for trial in recorded:
            ledger.record_trial(run, trial)
    with open_for_reading(path) as ledger:
        record = ledger.read_run(run)
    # The text of a float is different for -0.0 and 0.0, and for any two neighbouring doubles.
    assert [repr(trial) for trial in record.trials] == [repr(trial) for trial in recorded]


def _plan_with_odd_text() -> Plan:
    return Plan(
        study="été \x00 'quoted'",
        conditions=(
            Condition(
                "a'; DROP TABLE run; --",
                ("printf", "\udcff is not UTF-8", "\n", ""),
                {"x": "1"},
                {"KEY": "\udc80"},
                Hooks(prepare="true", cleanup="rm -f 'x'"),
            ),
        ),
        measure=Measure("/w", input="in", output=Output("file", "out"), timeout_s=math.inf),
        stopping=Stopping(budget_s=0.1, precision=1e-300),
        judgement=Judgement(alpha=0.1 + 0.2),
        seed=2**63 - 1,
    )


def test_a_plan_comes_back_completely_with_bytes_that_are_not_text(ledger: Ledger) -> None:
    plan = _plan_with_odd_text()
    run = ledger.begin_run(plan, {}, 1.0)
    assert ledger.read_run(run).plan == plan
    assert ledger.runs()[0].commands == (plan.conditions[0].name,)


def test_text_that_is_not_unicode_is_kept_readable(ledger: Ledger) -> None:
    run = ledger.begin_run(make_plan(), {}, 1.0)
    ledger.record_draw(run, Draw("measured", 1, (0, 1), 0))
    ledger.record_trial(run, replace(make_trial(), failure="exit status 1", error_tail="a\udcffb"))
    assert ledger.read_run(run).trials[0].error_tail == r"a\udcffb"


def test_draws_segments_and_notices_come_back_in_the_order_of_writing(ledger: Ledger) -> None:
    here, there = {"host": "here", "cpus": 2, "load": [0.1, None]}, {"host": "there"}
    run = ledger.begin_run(make_plan(), here, 10.5)
    draws = [
        Draw("warmup", 1, (0, 1), 5),
        Draw("measured", 2, (1, 0), 0),
        Draw("measured", 1, (0, 1), 4095),
    ]
    for draw in draws:
        ledger.record_draw(run, draw)
    warnings = [
        RecordedWarning("b", "words", "hint"),
        RecordedWarning("a", "other words", "other hint"),
    ]
    for warning in warnings:
        ledger.record_warning(run, warning)
    ledger.end_segment(run, FIRST_SEGMENT, 11.5, "interrupted")
    assert ledger.begin_segment(run, there, 20.25) == 2
    assert ledger.begin_segment(run, here, 30.0) == 3
    ledger.end_segment(run, 3, 31.0, "verdict")

    record = ledger.read_run(run)
    assert record.id == run
    assert record.started_at == 10.5
    assert record.draws == tuple(draws)
    assert record.warnings == tuple(warnings)
    assert record.segments == (
        Segment(10.5, here, 11.5, "interrupted"),
        Segment(20.25, there),
        Segment(30.0, here, 31.0, "verdict"),
    )


def test_a_repeated_environment_is_stored_once(ledger: Ledger, path: Path) -> None:
    for _ in range(3):
        run = ledger.begin_run(make_plan(), {"host": "here"}, 1.0)
        ledger.begin_segment(run, {"host": "here"}, 2.0)
    assert row_count(path, "environment") == 1
    assert row_count(path, "segment") == 6


def test_a_trial_without_its_draw_is_refused_and_not_recorded(ledger: Ledger) -> None:
    run = ledger.begin_run(make_plan(), {}, 1.0)
    trial = replace(make_trial(block=1), samples=(Sample("latency_s", 0.5),))
    with pytest.raises(UnusableInput, match="does not accept"):
        ledger.record_trial(run, trial)
    assert ledger.read_run(run).trials == ()


def test_a_block_is_drawn_once_and_a_segment_ends_once(ledger: Ledger) -> None:
    run = ledger.begin_run(make_plan(), {}, 1.0)
    ledger.record_draw(run, Draw("measured", 1, (0, 1), 0))
    with pytest.raises(
        UnusableInput, match="measured block 1 of run .* was already drawn: another process"
    ):
        ledger.record_draw(run, Draw("measured", 1, (1, 0), 0))
    ledger.end_segment(run, FIRST_SEGMENT, 2.0, "verdict")
    with pytest.raises(UnusableInput, match="does not accept"):
        ledger.end_segment(run, FIRST_SEGMENT, 3.0, "budget")
    with pytest.raises(UnusableInput, match="does not accept"):
        ledger.end_segment(run, 99, 3.0, "budget")
    record = ledger.read_run(run)
    assert record.draws == (Draw("measured", 1, (0, 1), 0),)
    assert record.segments[0].stopped_because == "verdict"


def test_a_run_id_contains_its_time_and_sorts_by_it(ledger: Ledger) -> None:
    moments = [1_795_174_205.0, 1_795_174_206.9, 1_795_260_000.0]
    identifiers = [ledger.begin_run(make_plan(), {}, moment) for moment in moments]
    assert identifiers == sorted(identifiers)
    assert re.fullmatch(r"20261120-113005-[0-9a-f]{4}", identifiers[0])


def test_runs_that_begin_in_the_same_second_have_different_ids(ledger: Ledger) -> None:
    # 65,536 endings exist: of 600 random ids, two would be equal with probability 0.94.
    identifiers = {ledger.begin_run(make_plan(), {}, 1.0) for _ in range(600)}
    assert len(identifiers) == 600


def test_a_run_is_found_by_its_id_by_a_beginning_of_it_and_as_the_last(ledger: Ledger) -> None:
    first = ledger.begin_run(make_plan(seed=1), {}, 1_000_000.0)
    second = ledger.begin_run(make_plan(seed=2), {}, 2_000_000.0)
    assert ledger.read_run(first).plan.seed == 1
    assert ledger.read_run(first[:9]).plan.seed == 1
    assert ledger.read_run(second[:-1]).id == second
    assert ledger.read_run("last").id == second


def test_a_run_that_starts_in_the_future_is_not_the_last(ledger: Ledger) -> None:
    future = ledger.begin_run(make_plan(seed=2), {}, time.time() + 3600.0)
    assert ledger.read_run("last").id == future
    earlier = ledger.begin_run(make_plan(seed=1), {}, 1_000_000.0)
    assert ledger.read_run("last").id == earlier


def test_the_error_about_an_unknown_run_names_the_existing_runs(ledger: Ledger) -> None:
    identifiers = [ledger.begin_run(make_plan(), {}, 1e6 * number) for number in range(1, 8)]
    for unknown in ("nonsense", "'; DROP TABLE run; --", "\udcff", "%"):
        with pytest.raises(UnusableInput) as refusal:
            ledger.read_run(unknown)
        assert str(ledger.path) in refusal.value.what
        assert f"{identifiers[-1]} and 2 older" in refusal.value.what
        assert refusal.value.hint is not None
    with pytest.raises(UnusableInput, match="no run 'last'"):
        ledger.record_warning("last", RecordedWarning("a", "b", "c"))


def test_the_error_about_an_ambiguous_beginning_names_its_runs(ledger: Ledger) -> None:
    first = ledger.begin_run(make_plan(), {}, 1.0)
    second = ledger.begin_run(make_plan(), {}, 2.0)
    for beginning in ("19700101-", ""):
        with pytest.raises(UnusableInput, match="2 runs") as refusal:
            ledger.read_run(beginning)
        assert first in refusal.value.what
        assert second in refusal.value.what


def test_runs_are_in_the_order_of_their_start_even_if_recorded_later(ledger: Ledger) -> None:
    late, early = (ledger.begin_run(make_plan(), {}, started) for started in (2.0, 1.0))
    simultaneous = sorted(
        (ledger.begin_run(make_plan(), {}, 3.0) for _ in range(3)), key=ledger.identity_of
    )
    assert [run.id for run in ledger.runs()] == [early, late, *simultaneous]
    assert [run.id for run in ledger.runs_with_same_commands(make_plan())] == [
        early,
        late,
        *simultaneous,
    ]
    assert ledger.read_run("last").id == simultaneous[-1]


def test_a_ledger_without_runs_is_reported(ledger: Ledger) -> None:
    assert ledger.runs() == []
    for reference in ("last", "2026"):
        with pytest.raises(UnusableInput, match="has no run yet"):
            ledger.read_run(reference)


def test_a_summary_has_the_trials_and_the_end_of_the_latest_segment(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EQUIPOISE_HOST", "lab")
    first = ledger.begin_run(make_plan("a", "b"), {}, 1.0)
    record_blocks(ledger, first, range(1, 4))
    ledger.end_segment(first, FIRST_SEGMENT, 2.0, "interrupted")
    second = ledger.begin_run(make_plan("c", "d", "e"), {}, 3.0)
    assert ledger.runs() == [
        RunSummary(first, "compare", ("a", "b"), 1.0, 6, "interrupted", "lab"),
        RunSummary(second, "compare", ("c", "d", "e"), 3.0, 0, None, "lab"),
    ]
    ledger.begin_segment(first, {}, 4.0)
    assert ledger.runs()[0].stopped_because is None


def test_campaigns_of_the_same_commands_are_found(ledger: Ledger) -> None:
    same = [ledger.begin_run(make_plan("a", "b", seed=seed), {}, float(seed)) for seed in (1, 2, 3)]
    ledger.begin_run(make_plan("b", "a"), {}, 4.0)
    tuned = make_plan("a", "b", environment={"MALLOC_ARENA_MAX": "1"})
    ledger.begin_run(tuned, {}, 5.0)

    def ids(plan: Plan) -> list[str]:
        return [summary.id for summary in ledger.runs_with_same_commands(plan)]

    assert ids(make_plan("a", "b", seed=99)) == same
    assert ids(ledger.read_run(same[2]).plan) == same
    assert ids(make_plan("a", "c")) == []
    assert len(ids(tuned)) == 1


def test_campaigns_with_another_output_are_not_the_same_commands(ledger: Ledger) -> None:
    plan = make_plan("a", "b")
    first = ledger.begin_run(plan, {}, 1.0)
    conditions = tuple(
        replace(condition, output=Output("discard")) for condition in plan.conditions
    )
    elsewhere = replace(plan, conditions=conditions)
    run = ledger.begin_run(elsewhere, {}, 2.0)
    assert [run.id for run in ledger.runs_with_same_commands(plan)] == [first]
    assert [run.id for run in ledger.runs_with_same_commands(elsewhere)] == [run]
    assert ledger.read_run(run).plan == elsewhere


def test_the_search_for_the_same_commands_uses_an_index(ledger: Ledger, path: Path) -> None:
    connection = sqlite3.connect(path)
    steps = connection.execute(
        "EXPLAIN QUERY PLAN SELECT id FROM run WHERE commands_digest = x'00' ORDER BY number"
    ).fetchall()
    connection.close()
    assert "run_by_commands" in str(steps)


def test_reading_does_not_change_the_garbage_collector(ledger: Ledger) -> None:
    run = ledger.begin_run(make_plan(), {}, 1.0)
    ledger.read_run(run)
    assert gc.isenabled()
    gc.disable()
    try:
        ledger.read_run(run)
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_read_values_are_frozen_like_recorded_ones(ledger: Ledger) -> None:
    run = ledger.begin_run(make_plan(), {}, 1.0)
    record_blocks(ledger, run, range(1, 2))
    trial = ledger.read_run(run).trials[0]
    assert type(trial) is Trial
    assert trial == make_trial()
    with pytest.raises(AttributeError):
        trial.block = 2  # type: ignore[misc]


class Interrupted(sqlite3.Connection):
    """A connection on which a Ctrl-C arrives as a transaction begins."""

    def execute(self, statement: str, *parameters: Any) -> sqlite3.Cursor:
        cursor = super().execute(statement, *parameters)
        if statement.startswith("BEGIN"):
            raise KeyboardInterrupt
        return cursor


@pytest.mark.parametrize("transaction", ["writing", "reading"])
def test_ctrl_c_as_a_transaction_begins_leaves_none_open(transaction: str, tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    with closing(sqlite3.connect(path, isolation_level=None, factory=Interrupted)) as connection:
        connection.execute("CREATE TABLE run (number INTEGER)")
        ledger = LedgerFile(connection, path)
        with pytest.raises(KeyboardInterrupt), getattr(ledger, transaction)():
            raise AssertionError("the transaction has begun")
        assert not connection.in_transaction
