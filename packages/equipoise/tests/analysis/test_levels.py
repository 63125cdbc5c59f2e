"""A campaign over layouts reports the variance of layouts and one effect in two scopes."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import msgspec.structs
import numpy as np
import pytest

from equipoise.analysis.levels import pooled_by_level
from equipoise.analysis.result import analyse_campaign
from equipoise.campaign.blocks import complete_blocks
from equipoise.campaign.interim import InterimAnalysis
from equipoise.design.coin import draw_block
from equipoise.design.layouts import with_layouts
from equipoise.model.plan import Judgement, Plan, Stopping
from equipoise.model.record import Draw, RunRecord, Sample, Trial
from equipoise.model.result import ResultDocument, VarianceByLevel
from packages.equipoise.tests.campaign.test_conduct import Stage
from packages.equipoise.tests.plans import plan_of, trial_of
from packages.equipoise.tests.schema import validated

LAYOUTS = 8
Cost = Callable[[Draw, int, np.random.Generator], float]
"""Cost of the condition at a place of a block."""


def planned(blocks: int = 4 * LAYOUTS, *, layouts: int = LAYOUTS) -> Plan:
    """A plan with this number of layouts, or without layouts for 0."""
    plan = plan_of(stopping=Stopping(blocks=blocks, budget_s=1e9), seed=3)
    return with_layouts(plan, layouts) if layouts else plan


def record_of(plan: Plan, cost: Cost, *, seed: int = 1, blocks: int | None = None) -> RunRecord:
    """A campaign of this plan, with random costs."""
    generator = np.random.default_rng(seed)
    draws = [
        draw_block(plan, "measured", block)
        for block in range(1, 1 + (blocks or plan.stopping.blocks or 0))
    ]
    trials = [
        trial_of(draw, place, cost(draw, place, generator)) for draw in draws for place in (0, 1)
    ]
    return RunRecord("r", plan, 0.0, (), tuple(draws), tuple(trials), ())


def cost_by_layout(effects: np.ndarray[tuple[int], np.dtype[np.float64]], noise: float) -> Cost:
    """The candidate takes e^effect times as long, with the effect of the layout."""

    def cost(draw: Draw, place: int, generator: np.random.Generator) -> float:
        own = effects[(draw.layout or 1) - 1] if draw.order[place] == 1 else 0.0
        return 0.01 * math.exp(own + noise * generator.normal())

    return cost


def ratio_of(document: ResultDocument) -> VarianceByLevel:
    """The variance by level of the only comparison."""
    (comparison,) = document.comparisons
    assert comparison.by_level is not None
    return comparison.by_level


EFFECTS = np.array([0.11, -0.04, 0.02, 0.08, -0.01, 0.05, 0.10, -0.03])


def test_different_layouts_have_most_of_the_variance_and_both_scopes_are_reported() -> None:
    document = validated(analyse_campaign(record_of(planned(), cost_by_layout(EFFECTS, 0.003))))
    found = ratio_of(document)
    assert [component.level for component in found.components] == ["layout", "trial"]
    assert [component.units for component in found.components] == [LAYOUTS, 4 * LAYOUTS]
    layout = found.components[0]
    assert layout.share > 0.95
    assert layout.variance_ci[0] <= np.var(EFFECTS, ddof=1) <= layout.variance_ci[1]
    assert found.geometric_mean == pytest.approx(math.exp(EFFECTS.mean()), rel=0.005)
    assert (found.within_scope, found.across_scope) == ("these 8 layouts", "across layouts")
    (low, high), (least, most) = found.within_ci, found.across_ci
    assert low is not None and high is not None and least is not None and most is not None
    # The ratio over the layouts drawn differs from 1; that over layouts in general may be 1.
    assert low > 1.0
    assert least < low < high < most
    (comparison,) = document.comparisons
    assert comparison.scope == "across processes and memory layouts, in this campaign on this host"
    assert comparison.ratio_ci == found.across_ci
    these = comparison.in_drawn_layouts
    assert these is not None
    assert these.scope == "across processes, in these 8 layouts, in this campaign on this host"


def test_over_layouts_that_differ_the_headline_is_about_layouts_in_general() -> None:
    # The candidate is certainly slower in these layouts, but not in layouts in general.
    document = validated(analyse_campaign(record_of(planned(96), cost_by_layout(EFFECTS, 0.003))))
    (comparison,) = document.comparisons
    these = comparison.in_drawn_layouts
    assert these is not None
    assert (comparison.verdict, these.verdict) == ("undecided", "slower")
    assert comparison.summary.startswith("Across layouts: ")
    low, high = comparison.ratio_ci
    assert low is not None and high is not None and low < 1.0 < high


def test_a_campaign_over_layouts_stops_by_the_verdict_that_it_reports() -> None:
    for effects in (EFFECTS, np.full(LAYOUTS, 0.05)):
        record = record_of(planned(96), cost_by_layout(effects, 0.003))
        interim = InterimAnalysis(record.plan, record.plan.stopping)
        for block in complete_blocks(record.draws, record.trials).values():
            interim.add(block)
        (status,) = interim.analyse()
        (comparison,) = analyse_campaign(record).comparisons
        assert (status.verdict, status.ratio_ci) == (comparison.verdict, comparison.ratio_ci)
        assert interim.stop_reason() == (None if effects is EFFECTS else "verdict")


def test_advice_is_new_layouts_only_if_layouts_differ() -> None:
    found = ratio_of(analyse_campaign(record_of(planned(), cost_by_layout(EFFECTS, 0.003))))
    first, second = found.advice
    assert (first.level, second.level) == ("layout", "trial")
    # 32 blocks have 64 trials of 10 ms: a minute is 3000 blocks, or 750 more layouts of four
    # blocks.
    assert first.more_units == pytest.approx(750, rel=0.1)
    assert first.narrowed_fraction == pytest.approx(
        1 - math.sqrt(8 / (8 + first.more_units)), abs=0.01
    )
    assert second.narrowed_fraction < 0.05
    assert found.advice_summary is not None
    assert found.advice_summary.startswith("one more minute on new layouts narrows the interval by")


def test_a_condition_has_its_own_variance_by_level() -> None:
    document = analyse_campaign(record_of(planned(), cost_by_layout(EFFECTS, 0.003)))
    baseline, candidate = (
        condition.metrics["wall_s"].by_level for condition in document.conditions
    )
    assert baseline is not None and candidate is not None
    assert baseline.components[0].share < 0.5
    assert candidate.components[0].share > 0.95
    assert baseline.geometric_mean == pytest.approx(0.01, rel=0.01)


def test_the_rows_and_the_run_tell_the_layouts() -> None:
    plan = planned()
    document = validated(analyse_campaign(record_of(plan, cost_by_layout(EFFECTS, 0.003))))
    assert document.run.layouts == plan.layouts
    assert sorted({row.layout or 0 for row in document.trials}) == list(range(1, LAYOUTS + 1))


def test_an_interval_beyond_every_number_has_no_limit_on_that_side() -> None:
    """With three layouts and an alpha of 1e-9, the quantile of Student's t is above 10,000."""
    plan = msgspec.structs.replace(planned(12, layouts=3), judgement=Judgement(alpha=1e-9))
    found = ratio_of(
        validated(analyse_campaign(record_of(plan, cost_by_layout(EFFECTS[:3], 0.003))))
    )
    assert found.across_ci == (0.0, None)


def test_one_block_per_layout_is_too_few_and_has_a_reason() -> None:
    found = ratio_of(
        validated(
            analyse_campaign(record_of(planned(), cost_by_layout(EFFECTS, 0.003), blocks=LAYOUTS))
        )
    )
    assert found.unknown_because is not None
    assert "too few blocks" in found.unknown_because
    assert (found.geometric_mean, found.components, found.advice_summary) == (None, (), None)


def test_a_timeout_has_no_logarithm_and_that_is_said() -> None:
    record = record_of(planned(), cost_by_layout(EFFECTS, 0.003))
    late = msgspec.structs.replace(
        record.trials[5], failure_kind="timed out", failure="timed out after 1 s"
    )
    trials = (*record.trials[:5], late, *record.trials[6:])
    found = ratio_of(analyse_campaign(msgspec.structs.replace(record, trials=trials)))
    assert "timed out" in (found.unknown_because or "")


def test_without_layouts_and_iterations_there_is_nothing_to_split() -> None:
    document = analyse_campaign(record_of(planned(layouts=0), cost_by_layout(EFFECTS, 0.01)))
    assert document.comparisons[0].by_level is None
    assert document.conditions[0].metrics["wall_s"].by_level is None
    assert document.run.layouts == ()


def with_iterations(trial: Trial, generator: np.random.Generator, count: int) -> Trial:
    """A trial that reports this number of iterations, each about as long as it, and their mean."""
    level = (trial.accounting.wall_s or 0.0) / (2 * count)
    times = level * np.exp(0.02 * generator.normal(size=count))
    samples = [Sample("iteration_s", float(time), place) for place, time in enumerate(times)]
    samples.append(Sample("iteration_s", float(times.mean())))
    return msgspec.structs.replace(trial, samples=tuple(samples))


def record_with_iterations(plan: Plan) -> RunRecord:
    """A campaign whose trials have an sd of 5 %, and their iterations one of 2 %."""
    plan = msgspec.structs.replace(plan, judgement=Judgement(primary_metric="iteration_s"))
    generator = np.random.default_rng(5)
    record = record_of(plan, cost_by_layout(np.zeros(LAYOUTS), 0.05))
    trials = tuple(with_iterations(trial, generator, 10) for trial in record.trials)
    return msgspec.structs.replace(record, trials=trials)


def test_iterations_are_the_lowest_level_and_never_trials() -> None:
    found = ratio_of(validated(analyse_campaign(record_with_iterations(planned(layouts=0)))))
    assert [component.level for component in found.components] == ["trial", "iteration"]
    assert [component.units for component in found.components] == [32, 320]
    trial, iteration = found.components
    assert trial.variance == pytest.approx(2 * 0.05**2, rel=0.5)
    assert iteration.variance == pytest.approx(2 * 0.02**2, rel=0.3)
    assert [advice.level for advice in found.advice] == ["trial", "iteration"]
    # Half of the time of a trial is not spent in iterations.
    assert "more iterations" in (found.advice_summary or "")


def test_iterations_in_trials_in_layouts_are_three_levels() -> None:
    found = ratio_of(analyse_campaign(record_with_iterations(planned())))
    assert [component.level for component in found.components] == ["layout", "trial", "iteration"]


def test_campaigns_and_boots_are_levels_above() -> None:
    records = [
        record_of(
            msgspec.structs.replace(planned(), seed=seed), cost_by_layout(EFFECTS, 0.01), seed=seed
        )
        for seed in range(4)
    ]
    (contrast,) = records[0].plan.contrasts
    places, first = [(0, 0), (0, 0), (0, 1), (0, 1)], [4 * LAYOUTS] * 4
    found = pooled_by_level(records, contrast, places, first)
    assert found is not None
    assert [component.level for component in found.components] == [
        "boot",
        "campaign",
        "layout",
        "trial",
    ]
    assert [component.units for component in found.components] == [2, 4, 32, 128]
    assert (found.across_scope, found.advice) == ("across boots", ())
    alone = pooled_by_level(records, contrast, [(0, 0)] * 4, first)
    assert alone is not None
    assert alone.components[0].level == "campaign"


def test_a_resumed_campaign_has_the_layouts_that_it_would_have_had(tmp_path: Path) -> None:
    plan = msgspec.structs.replace(planned(2 * LAYOUTS), judgement=Judgement(alpha=1e-9))
    stage = Stage(tmp_path)
    run_id = stage.interrupt(plan, block=5, place=0)
    stage.ledger.close()
    again = Stage(tmp_path)
    record = again.ledger.read_run(again.resume(run_id))
    assert record.plan.layouts == plan.layouts
    measured = [draw for draw in record.draws if draw.phase == "measured"]
    assert measured == [draw_block(plan, "measured", draw.block) for draw in measured]
    assert {draw.layout for draw in measured} == set(range(1, LAYOUTS + 1))


def test_a_slow_mode_is_associated_with_its_layout() -> None:
    effects = np.zeros(4)
    effects[2] = 0.4
    record = record_of(planned(80, layouts=4), cost_by_layout(effects, 0.01))
    companions = analyse_campaign(record).conditions[1].metrics["wall_s"].mode_associations
    assert (companions[0].covariate, companions[0].value) == ("layout", 3.0)


def test_a_slow_mode_is_associated_with_random_addresses_that_cause_it() -> None:
    plan = planned(6 * 16, layouts=16)
    coins = np.array([layout.random_addresses for layout in plan.layouts], dtype=np.float64)
    assert 4 < coins.sum() < 12
    record = record_of(plan, cost_by_layout(0.4 * coins, 0.01))
    named = analyse_campaign(record).conditions[1].metrics["wall_s"].mode_associations
    assert (named[0].covariate, named[0].value) == ("random_addresses", 1.0)
