"""The schedule of a gate: the budget of a suite goes where it decides something."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from benchmarks.schedule.run import MIN_EFFECT, SimulatedSuite, scheduled_gate, suite_plan
from equipoise.analysis.result import analyse_campaign
from equipoise.campaign.blocks import complete_blocks
from equipoise.campaign.progress import CampaignProgress, ProgressListener
from equipoise.cli.progress import ProgressLines
from equipoise.kinds.gate.earlier import with_known_noises
from equipoise.kinds.gate.schedule import ComparisonState, OpenBenchmark, choose
from equipoise.kinds.gate.terms import GateDocument, GatePlan
from equipoise.kinds.gate.verdict import GateJudge
from equipoise.model.plan import Plan, Stopping
from equipoise.model.record import CampaignWarning
from equipoise.stats.sequence import PairedBlocks
from equipoise.stats.verdict import margin_of
from packages.equipoise.tests.campaign.test_conduct import Stage
from packages.equipoise.tests.schema import validated
from packages.equipoise.tests.scripted import ScriptedRunner
from packages.equipoise.tests.stats.simulated import costs_and_orders, white

NOISY = 1
"""Index of the benchmark that the budget of `suite` cannot decide."""


class NoisyRunner(ScriptedRunner):
    """Trials of four benchmarks, of which one varies a hundred times as much as the others."""

    def _run(self, draw, place):  # type: ignore[no-untyped-def]
        self.noise = 0.5 if draw.order[place] // 2 == NOISY else 0.005
        return super()._run(draw, place)


class Listener(ProgressListener):
    """Keeps the warnings of the latest block."""

    def __init__(self) -> None:
        self.warnings: dict[int, CampaignWarning] = {}

    def block_ended(self, progress: CampaignProgress) -> None:
        for index, status in enumerate(progress.statuses):
            if status.warning is not None:
                self.warnings.setdefault(index, status.warning)


def suite(budget_s: float = 6.0) -> Plan:
    return suite_plan(4, 1, Stopping(budget_s=budget_s, leave_out_decided=True))


def stage_of(folder: Path) -> Stage:
    stage = Stage(folder)
    stage.runner = NoisyRunner(stage.clock, medians=(0.01,) * 8)
    return stage


def document_of(stage: Stage) -> GateDocument:
    document = validated(analyse_campaign(stage.ledger.read_run("last")))
    assert isinstance(document, GateDocument)
    return document


def test_a_benchmark_that_the_budget_cannot_decide_is_named_early_and_says_what_it_needs(
    tmp_path: Path,
) -> None:
    stage, listener = stage_of(tmp_path), Listener()
    stage.start(suite(), listener)
    assert set(listener.warnings) == {NOISY}
    warning = listener.warnings[NOISY]
    assert warning.summary.startswith("the budget probably cannot decide 1: it needs about ")
    gate = document_of(stage).gate
    assert gate is not None
    assert [row.outcome for row in gate.rows] == ["passes", "undecided", "passes", "passes"]
    forecast = gate.rows[NOISY].forecast
    assert forecast is not None
    assert forecast.seconds > 6.0
    assert forecast.seconds == pytest.approx(0.02 * forecast.blocks, rel=0.5)
    assert forecast.min_effect is not None
    assert forecast.min_effect_s is not None
    assert forecast.min_effect > MIN_EFFECT
    assert forecast.min_effect_s < forecast.seconds
    assert f"--min-effect {forecast.min_effect:g} would decide in" in gate.rows[NOISY].summary
    assert [row.forecast for row in gate.rows if row.outcome == "passes"] == [None] * 3
    assert gate.shortage is not None
    assert gate.shortage.needed_s == pytest.approx(forecast.seconds, rel=0.2)


def test_the_time_that_others_leave_goes_to_the_undecided_benchmark(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stage = stage_of(tmp_path)
    stage.start(suite(), ProgressLines(None))
    assert capsys.readouterr().err.count("the budget probably cannot decide 1: ") == 1
    gate = document_of(stage).gate
    assert gate is not None
    blocks = [row.blocks for row in gate.rows]
    assert blocks[NOISY] > 5 * max(blocks[:NOISY] + blocks[NOISY + 1 :])


def test_the_blocks_follow_from_the_ledger_alone(tmp_path: Path) -> None:
    stage = stage_of(tmp_path)
    stage.start(suite(1.0))
    record = stage.ledger.read_run("last")
    judge = GateJudge(record.plan, record.plan.stopping)
    draws = record.measured_draws
    for number, block in complete_blocks(record.draws, record.trials).items():
        assert set(judge.needed_conditions("measured", number)) == set(draws[number].order)
        judge.add(block)
        judge.analyse()
    assert len({len(draw.order) for draw in draws.values()}) > 1


def test_an_earlier_gate_gives_the_noise_of_the_same_benchmarks(tmp_path: Path) -> None:
    stage = stage_of(tmp_path)
    stage.start(suite())
    cpu_model = stage.ledger.read_run("last").environment["cpu_model"]
    assert with_known_noises(suite(), stage.ledger, "another processor") == suite()
    plan = with_known_noises(suite(), stage.ledger, cpu_model)
    assert isinstance(plan.terms, GatePlan)
    noises = plan.terms.known_noises
    assert len(noises) == 4
    spreads = [0.0 if noise is None else noise.spread for noise in noises]
    # The spread of a ratio of two trials.
    assert spreads[NOISY] == pytest.approx(0.5 * math.sqrt(2), rel=0.4)
    assert max(spreads[:NOISY] + spreads[NOISY + 1 :]) < 0.03
    listener = Listener()
    stage.start(plan, listener)
    assert set(listener.warnings) == {NOISY}


def test_with_a_number_of_blocks_every_block_has_all_undecided_benchmarks(tmp_path: Path) -> None:
    stage, plan = stage_of(tmp_path), suite()
    stage.start(replace(plan, stopping=replace(plan.stopping, blocks=12)))
    gate = document_of(stage).gate
    assert gate is not None
    assert gate.rows[NOISY].blocks == 12


def test_benchmarks_that_look_slower_come_first_and_undecidable_ones_last() -> None:
    def benchmark(index: int, blocks: int, needed: float, *, slower: bool) -> OpenBenchmark:
        return OpenBenchmark(index, blocks, 1.0, needed, slower)

    benchmarks = [
        benchmark(0, 10, 500.0, slower=True),
        benchmark(1, 10, 12.0, slower=False),
        benchmark(2, 10, 40.0, slower=True),
        benchmark(3, 2, math.inf, slower=False),
    ]
    orders = []
    while benchmarks:
        # A block of 5 % of 30 s has one benchmark of 1 s.
        (chosen,) = choose(benchmarks, 30.0 + 1e-9, 5)
        orders.append(chosen)
        benchmarks = [each for each in benchmarks if each.index != chosen]
    assert orders == [3, 2, 1, 0]


@pytest.mark.parametrize(("percent", "sd"), [(5.0, 0.01), (5.0, 0.04), (0.0, 0.02)])
def test_the_forecast_is_near_the_blocks_that_simulated_benchmarks_take(
    percent: float, sd: float
) -> None:
    margin, effect = margin_of(MIN_EFFECT), math.log1p(percent / 100)
    took = [
        PairedBlocks(
            *costs_and_orders(white(sd), np.random.default_rng(seed), 400, effect)
        ).engine.blocks_to_exclude(margin, 0.02)
        for seed in range(40)
    ]
    median = float(np.median([400 if blocks is None else blocks for blocks in took]))
    # The spread and the effect are known, without an error.
    state = ComparisonState(0, math.sqrt(2.0) * sd, effect)
    assert median / 1.6 < state.needed_blocks(margin, 0.02) < 1.6 * median


def test_a_scheduled_suite_finds_the_slowdowns_in_a_tenth_of_the_time() -> None:
    found = false = 0
    for seed, noise in enumerate(("normal", "drift", "autocorrelated")):
        simulated = SimulatedSuite(noise, seed, 20, 4)
        # A tenth of 250 blocks of every benchmark.
        budget_s = 0.1 * 250 * 2.0 * float(simulated.seconds.sum())
        gate = scheduled_gate(simulated, seed, budget_s)
        assert gate.seconds < 1.1 * budget_s
        found += gate.found
        false += gate.false
    # 12 planted; with a recall of 95 %, one in a thousand such tests finds fewer than 9.
    assert found >= 9
    # At a false-discovery rate of 5 %, one in a thousand has more.
    assert false <= 4
