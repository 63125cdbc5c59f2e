"""The rules that select the trials that count use no measured time."""

from __future__ import annotations

import math

import msgspec.structs
import pytest

from equipoise.analysis.comparisons import primary_comparisons
from equipoise.campaign.blocks import (
    add_block,
    complete_blocks,
    cost_function,
    cost_table,
    cut_block_count,
    left_out_because,
    read_block,
    resolution_of,
    resolution_of_trials,
)
from equipoise.campaign.interim import InterimAnalysis
from equipoise.model.errors import UnusableInput
from equipoise.model.plan import Contrast, Judgement
from equipoise.model.record import (
    CUT_BLOCK,
    WARMUP_RUN,
    WASHOUT_RUN,
    Draw,
    Phase,
    RunRecord,
    Sample,
    Trial,
)
from equipoise.stats.resolution import Resolution
from equipoise.stats.sequence import PairedBlocks
from packages.equipoise.tests.plans import plan_of, trial_of

FORWARD, BACKWARD = (0, 1), (1, 0)
PHASES: tuple[Phase, Phase] = ("warmup", "measured")


def block_of(number: int, order: tuple[int, ...], *walls: float) -> list[Trial]:
    draw = Draw("measured", number, order, 0)
    return [trial_of(draw, place, wall) for place, wall in enumerate(walls)]


def draws_of(trials: list[Trial], size: int = 2) -> list[Draw]:
    """The draws of complete blocks with this number of conditions."""
    numbers = dict.fromkeys(trial.block for trial in trials)
    return [Draw("measured", number, tuple(range(size)), 0) for number in numbers]


def test_a_block_counts_when_every_condition_finished() -> None:
    trials = block_of(1, FORWARD, 1.0, 2.0) + block_of(2, BACKWARD, 3.0)
    assert list(complete_blocks(draws_of(trials), trials)) == [1]


def test_an_interrupted_block_is_left_out_with_any_times() -> None:
    trials = block_of(1, FORWARD, 1.0, 2.0) + block_of(2, BACKWARD, 3.0)
    complete = complete_blocks(draws_of(trials), trials)
    assert [left_out_because(trial, complete) for trial in trials] == [None, None, CUT_BLOCK]


def test_warmup_and_washout_runs_are_kept_and_marked() -> None:
    warm_draw, measured = (Draw(phase, 1, FORWARD, 0) for phase in PHASES)
    warm = trial_of(warm_draw, 0, 1.0)
    washed = msgspec.structs.replace(block_of(1, FORWARD, 1.0)[0], washout=True)
    assert left_out_because(warm, {}) == WARMUP_RUN
    assert left_out_because(washed, {}) == WASHOUT_RUN
    assert complete_blocks([warm_draw, measured], [warm, washed]) == {}


def test_interrupted_blocks_are_counted_from_the_draws() -> None:
    record = RunRecord(
        id="r",
        plan=plan_of(),
        started_at=0.0,
        segments=(),
        draws=tuple(Draw("measured", number, FORWARD, 0) for number in (1, 2, 3)),
        trials=tuple(block_of(1, FORWARD, 1.0, 1.0) + block_of(2, FORWARD, 1.0)),
        warnings=(),
    )
    assert cut_block_count(record, complete_blocks(record.draws, record.trials)) == 2


def test_blocks_pair_the_candidate_with_the_baseline_and_remember_the_order() -> None:
    trials = block_of(1, FORWARD, 1.0, 2.0) + block_of(2, BACKWARD, 3.0, 4.0)
    complete = complete_blocks(draws_of(trials), trials)
    pairs = cost_table(plan_of(), complete, "wall_s").paired_blocks(
        Contrast(0, 1), resolution=Resolution(0.0)
    )
    again = PairedBlocks()
    for block in complete.values():
        add_block(again, read_block(block, plan_of()), Contrast(0, 1), plan_of())
    assert again.engine.ln_e_value() == pairs.engine.ln_e_value()
    assert costs_of(again) == costs_of(pairs) == [(1.0, 2.0), (4.0, 3.0)]


def test_a_trial_that_timed_out_costs_more_than_any_other() -> None:
    draw = Draw("measured", 1, FORWARD, 0)
    assert cost_function("wall_s")(trial_of(draw, 0, 1.0, timed_out=True)) == math.inf


def test_a_metric_of_the_workload_itself_is_a_cost_too() -> None:
    trial = msgspec.structs.replace(
        trial_of(Draw("measured", 1, FORWARD, 0), 0, 1.0),
        samples=(Sample("latency_s", 0.5), Sample("latency_s", 0.1, iteration=1)),
    )
    assert cost_function("latency_s")(trial) == 0.5
    assert cost_function("nonsense")(trial) is None


def test_a_metric_that_a_trial_does_not_know_is_not_guessed() -> None:
    trials = block_of(1, FORWARD, 1.0, 1.0)
    blocks = complete_blocks(draws_of(trials), trials)
    with pytest.raises(UnusableInput, match="has no joules: the workload did not report it"):
        cost_table(plan_of(), blocks, "joules")
    plan = plan_of(judgement=Judgement(primary_metric="joules"))
    with pytest.raises(UnusableInput, match="has no joules"):
        read_block(blocks[1], plan)


def test_a_metric_that_is_better_when_higher_costs_its_inverse() -> None:
    trial = msgspec.structs.replace(
        trial_of(Draw("measured", 1, FORWARD, 0), 0, 1.0),
        samples=(Sample("rate", 4.0, better="higher"), Sample("none", 0.0, better="higher")),
    )
    assert cost_function("rate")(trial) == 0.25
    assert cost_function("none")(trial) == math.inf


def test_a_control_is_pooled_into_the_baseline() -> None:
    order = (2, 0, 1)
    plan = msgspec.structs.replace(plan_of("a", "b", "a again"), control=2)
    trials = [t for n in range(1, 9) for t in block_of(n, order, 1.0 + n / 64, 1.0, 2.0)]
    complete = complete_blocks(draws_of(trials, 3), trials)
    pooled = cost_table(plan, complete, "wall_s").paired_blocks(
        Contrast(0, 1), resolution=Resolution(0.0), control=2
    )
    grown = PairedBlocks()
    for block in complete.values():
        add_block(grown, read_block(block, plan), Contrast(0, 1), plan)
    assert grown.engine.running_interval(0.05) == pooled.engine.running_interval(0.05)
    assert costs_of(grown) == costs_of(pooled)
    assert costs_of(pooled)[0] == (1.0 + 0.5 / 64, 2.0)


def costs_of(pairs: PairedBlocks) -> list[tuple[float, float]]:
    return list(zip(pairs.baseline.tolist(), pairs.candidate.tolist(), strict=True))


def reported_block(
    number: int, values: tuple[float, float], resolution: float | None
) -> tuple[Trial, ...]:
    return tuple(
        msgspec.structs.replace(
            trial,
            samples=(Sample("rate", value, better="higher", resolution=resolution),),
        )
        for trial, value in zip(block_of(number, FORWARD, 1.0, 1.0), values, strict=True)
    )


def test_the_resolution_of_a_metric_is_that_of_its_first_block() -> None:
    silent = tuple(block_of(1, FORWARD, 1.0, 1.0))
    blocks = {
        1: silent,
        2: reported_block(2, (5.0, 4.0), 0.5),
        3: reported_block(3, (5.0, 4.0), 2.0),
    }
    assert resolution_of_trials(silent, "rate") is None
    assert resolution_of(blocks, "rate") == Resolution(0.5, more_is_better=True)
    assert resolution_of(blocks, "minor_faults") == Resolution(1.0)
    assert resolution_of({1: reported_block(1, (5.0, 4.0), None)}, "rate") == Resolution(
        None, more_is_better=True
    )


@pytest.mark.parametrize("resolution", [None, 0.5])
def test_an_interim_analysis_uses_the_resolution_that_the_result_uses(
    resolution: float | None,
) -> None:
    plan = plan_of(judgement=Judgement(primary_metric="rate"))
    values = [(40.0 + n % 3, 38.0 + n % 4) for n in range(40)]
    blocks = {n: reported_block(n, costs, resolution) for n, costs in enumerate(values, start=1)}
    interim = InterimAnalysis(plan, plan.stopping)
    for block in blocks.values():
        interim.add(block)
    (status,) = interim.analyse()
    (comparison,) = primary_comparisons(plan, blocks)
    assert status.ratio_ci == comparison.ratio_ci
    assert status.verdict == comparison.verdict
