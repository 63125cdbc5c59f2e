"""A block of functions: the draw, the numbers of a process, and failures."""

from __future__ import annotations

from typing import Any, cast

import pytest
from msgspec.structs import replace

from equipoise.design.coin import draw_block
from equipoise.kinds.functions.processes import MAX_WAITING_PROCESSES, Answer
from equipoise.kinds.functions.runner import (
    WARMUP_BATCHES,
    FunctionRunner,
    instructions_of_block,
    keys_prepared_with,
    padding_bytes,
    steady_ns,
)
from equipoise.kinds.functions.trial_runs import ROUNDS, TrialRunResult, calls_and_rounds
from equipoise.model.record import Trial
from packages.equipoise.tests.kinds.functions.scripted import (
    NoCovariates,
    ScriptedProcesses,
    plan_of_functions,
)
from packages.equipoise.tests.scripted import FINISHED


def trials_of(answer: Answer, block: int = 1) -> list[Trial]:
    """The trials of a block whose process gave this answer."""

    class Answering(ScriptedProcesses):
        def run(self, *_: Any) -> Answer:
            return answer

    plan = plan_of_functions("f()", "g()")
    runner = FunctionRunner(plan, Answering(1), cast(Any, NoCovariates()))
    draw = draw_block(plan, "measured", block)
    return [
        run().trial for place in range(len(draw.order)) for run in runner.trials_at(draw, place)
    ]


def test_one_process_gives_each_function_a_trial_with_one_number() -> None:
    processes = ScriptedProcesses(1)
    plan = plan_of_functions("f()", "g()")
    runner = FunctionRunner(plan, processes, cast(Any, NoCovariates()))
    draw = draw_block(plan, "measured", 4)
    trials = [runner.trials_at(draw, place)[0]().trial for place in range(2)]
    assert processes.keys == [("measured", 4)]
    assert [trial.condition for trial in trials] == list(draw.order)
    for trial in trials:
        whole = [sample for sample in trial.samples if sample.iteration is None]
        assert [sample.metric for sample in whole] == ["call_s"]
        assert len(trial.samples) == WARMUP_BATCHES + ROUNDS + 1
        assert trial.accounting.max_rss_bytes is None
        assert "every function" in trial.accounting.unknown["max_rss_bytes"]


def test_the_orders_of_definitions_and_rounds_depend_on_places_only() -> None:
    plan = plan_of_functions("f()", "g()")
    for block in range(1, 30):
        draw = draw_block(plan, "measured", block)
        exchanged = replace(draw, order=draw.order[::-1])
        ours, theirs = instructions_of_block(plan, draw), instructions_of_block(plan, exchanged)
        assert [1 - place for place in ours["definition_order"]] == theirs["definition_order"]
        rounds = [[1 - place for place in round_] for round_ in ours["round_orders"]]
        assert rounds == theirs["round_orders"]


def test_every_process_and_every_round_has_a_new_order() -> None:
    plan = plan_of_functions("f()", "g()")
    orders = [
        instructions_of_block(plan, draw_block(plan, "measured", block)) for block in range(1, 201)
    ]
    first_defined = sum(instruction["definition_order"][0] for instruction in orders)
    first_run = sum(round_[0] for instruction in orders for round_ in instruction["round_orders"])
    assert 70 <= first_defined <= 130
    assert 0.46 <= first_run / (200 * (WARMUP_BATCHES + ROUNDS)) <= 0.54


def test_warm_up_within_a_process_is_left_out() -> None:
    warming = [900, *[300, 290, 310] * 3, *[100, 101, 99, 100] * 4]
    assert steady_ns(warming) == pytest.approx(100.0, abs=1.0)
    assert steady_ns([900, 100, 102]) == 101.0
    assert steady_ns([900]) == 900.0


def test_a_neighbour_that_wakes_up_late_does_not_move_the_number_of_a_process() -> None:
    quiet = [500, *[100, 101, 99, 100] * 6]
    disturbed = [*quiet[:-8], *[800, 790, 810, 805] * 2]
    assert steady_ns(disturbed) == pytest.approx(steady_ns(quiet), rel=0.01)


def test_an_interrupted_batch_does_not_move_the_number_of_a_process() -> None:
    quiet = [500, *[100, 101, 99, 100] * 6]
    disturbed = [*quiet[:9], 4000, *quiet[10:]]
    assert steady_ns(disturbed) == pytest.approx(steady_ns(quiet), rel=0.01)


def test_a_function_that_raises_is_named_and_the_other_is_not() -> None:
    content = {"failed": 1, "stage": "call", "text": "ValueError: no"}
    for block in range(1, 6):
        # First, so that the campaign ends there and the block stays incomplete.
        failed, other = trials_of(Answer(FINISHED, content), block)
        assert (failed.condition, failed.failure) == (1, "call: ValueError: no")
        assert (other.condition, other.failure) == (0, None)


def test_a_process_that_dies_fails_every_function() -> None:
    died = replace(FINISHED, exit=None, signal=11)
    assert {trial.failure for trial in trials_of(Answer(died, None))} == {"signal 11 (SIGSEGV)"}


def test_the_function_that_ended_its_process_is_named_and_the_other_is_not() -> None:
    died = replace(FINISHED, exit=None, signal=11)
    for block in range(1, 6):
        failed, other = trials_of(Answer(died, None, running_index=1), block)
        assert (failed.condition, failed.failure) == (1, "signal 11 (SIGSEGV)")
        assert (other.condition, other.failure) == (0, None)


def test_processes_are_prepared_together_within_the_limits_of_the_campaign() -> None:
    plan = plan_of_functions("f()", "g()", blocks=10)
    assert len(keys_prepared_with(plan, ("measured", 1))) == MAX_WAITING_PROCESSES
    assert keys_prepared_with(plan, ("measured", 9)) == [("measured", 9), ("measured", 10)]
    assert keys_prepared_with(plan, ("warmup", 1)) == [("warmup", 1)]
    sizes = {padding_bytes(plan, key) for key in keys_prepared_with(plan, ("measured", 1))}
    assert len(sizes) > 1


def examined_functions(*calls_s: float) -> list[TrialRunResult]:
    return [TrialRunResult(call_s, 2 * call_s, changes_data=False) for call_s in calls_s]


def test_functions_that_take_about_as_long_get_the_same_number_of_calls() -> None:
    assert calls_and_rounds(examined_functions(1e-6, 1.1e-6), fresh_data=False) == (
        [256, 256],
        ROUNDS,
    )
    (quick, slow), _ = calls_and_rounds(examined_functions(1e-7, 1e-3), fresh_data=False)
    assert (quick, slow) == (4096, 1)


def test_slow_functions_get_fewer_batches() -> None:
    assert calls_and_rounds(examined_functions(0.02, 0.02), fresh_data=False) == ([1, 1], 6)
    assert calls_and_rounds(examined_functions(3.0, 3.0), fresh_data=False) == ([1, 1], 1)


def test_fresh_calls_make_short_batches_with_their_setup() -> None:
    calls, rounds = calls_and_rounds(examined_functions(1e-4, 1e-4), fresh_data=True)
    assert calls == [4, 4]
    assert rounds == ROUNDS


def test_functions_with_equal_numbers_of_calls_keep_them_with_their_setup() -> None:
    setups = [
        TrialRunResult(1e-5, call_and_setup_s, changes_data=True)
        for call_and_setup_s in (0.99e-3, 1.01e-3)
    ]
    calls, _ = calls_and_rounds(setups, fresh_data=True)
    assert calls == [1, 1]
