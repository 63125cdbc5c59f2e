"""Only what is read before a trial adjusts a verdict, and the ledger recomputes it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from msgspec.structs import replace

from equipoise.analysis.comparisons import primary_comparisons
from equipoise.analysis.gate import gate_result
from equipoise.campaign.blocks import QUANTA, add_block, read_block
from equipoise.ledger.rows import _plan, to_text
from equipoise.model.adjustment import COVARIATES_BEFORE_TRIAL
from equipoise.model.plan import (
    BENCHMARK,
    GatePlan,
    Hooks,
    Plan,
    Revision,
)
from equipoise.model.record import Draw, Trial
from equipoise.stats.sequence import PairedBlocks
from tests.plans import plan_of, trial_of


def blocks_of(plan: Plan, covariate: str) -> dict[int, tuple[Trial, ...]]:
    """Blocks whose times follow a covariate but for a little noise."""
    generator = np.random.default_rng(3)
    blocks = {}
    for number in range(1, 61):
        order = (0, 1) if generator.random() < 0.5 else (1, 0)
        trials = []
        for place in range(2):
            covariate_value = generator.normal()
            wall = math.exp(0.03 * covariate_value + 0.01 * generator.normal())
            trial = trial_of(Draw("measured", number, order, 0), place, wall)
            trials.append(replace(trial, covariates={covariate: covariate_value}))
        blocks[number] = tuple(trials)
    return blocks


def test_a_covariate_read_before_the_trials_adjusts_and_the_result_says_so() -> None:
    plan = plan_of()
    (comparison,) = primary_comparisons(plan, blocks_of(plan, "load_1_minute"))
    adjusted = comparison.adjusted_by
    assert adjusted is not None
    assert adjusted.covariate == "load_1_minute"
    # Of the differences' variance the covariate explains nine tenths.
    assert adjusted.spread_ratio < 0.45
    assert adjusted.blocks > 50
    assert comparison.summary.endswith(f". {adjusted.summary}.")
    low, high = adjusted.unadjusted_ratio_ci
    assert low is not None
    assert high is not None
    assert adjusted.unadjusted_ratio is not None
    assert low <= adjusted.unadjusted_ratio <= high
    assert comparison.ratio_ci != (low, high)
    share = round(100 * (1 - adjusted.spread_ratio**2))
    assert adjusted.summary.startswith(
        f"{adjusted.blocks} of 60 blocks were adjusted by load_1_minute, read before each trial, "
        f"which saved about {share} % of the blocks; unadjusted: "
    )


@pytest.mark.parametrize("covariate", COVARIATES_BEFORE_TRIAL)
def test_each_covariate_that_is_read_before_a_trial_may_adjust(covariate: str) -> None:
    plan = plan_of()
    (comparison,) = primary_comparisons(plan, blocks_of(plan, covariate))
    assert comparison.adjusted_by is not None
    assert comparison.adjusted_by.covariate == covariate


def test_a_mediator_is_never_used() -> None:
    plan = plan_of()
    for covariate in ("run_delay_s", "steal_s", "pressure_cpu_s", "frequency_hz"):
        (comparison,) = primary_comparisons(plan, blocks_of(plan, covariate))
        assert comparison.adjusted_by is None


@pytest.mark.parametrize("option", ["setup", "prepare", "conclude"])
def test_nothing_is_adjusted_where_a_condition_runs_something_between_trials(option: str) -> None:
    plan = plan_of()
    hooks = Hooks(**{option: "true"})
    conditions = tuple(replace(condition, hooks=hooks) for condition in plan.conditions)
    plan = replace(plan, conditions=conditions)
    (comparison,) = primary_comparisons(plan, blocks_of(plan, "load_1_minute"))
    assert comparison.adjusted_by is None


def test_nothing_is_adjusted_where_a_condition_runs_before_its_own_reading() -> None:
    plan = plan_of()
    plan = replace(plan, measure=replace(plan.measure, washout=True))
    (comparison,) = primary_comparisons(plan, blocks_of(plan, "load_1_minute"))
    assert comparison.adjusted_by is None


def test_a_row_of_a_gate_says_what_it_was_adjusted_by() -> None:
    plan = replace(
        plan_of(),
        conditions=tuple(replace(one, levels={BENCHMARK: "x"}) for one in plan_of().conditions),
        gated=GatePlan(Revision("main", "1" * 40), Revision("HEAD", "2" * 40), ("wall_s",)),
    )
    result = gate_result(plan, blocks_of(plan, "load_1_minute"))
    assert result is not None
    adjusted = result.rows[0].adjusted_by
    assert adjusted is not None
    assert result.rows[0].summary.endswith(f". {adjusted.summary}.")


def test_an_interim_analysis_and_the_result_adjust_alike() -> None:
    plan = plan_of()
    blocks = blocks_of(plan, "load_1_minute")
    pairs = PairedBlocks(quantum=QUANTA["wall_s"], engine=plan.judgement.engine)
    for block in blocks.values():
        add_block(pairs, read_block(block, plan), plan.contrasts[0], plan)
    (comparison,) = primary_comparisons(plan, blocks)
    low, high = pairs.engine.running_interval(plan.judgement.alpha)
    assert comparison.ratio_ci == (math.exp(low), math.exp(high))


def test_a_plan_of_an_older_ledger_adjusts_nothing() -> None:
    stored = to_text(plan_of())
    assert _plan(stored).adjust_by == plan_of().adjust_by != ()
    names = ",".join(f'"{name}"' for name in COVARIATES_BEFORE_TRIAL)
    older = stored.replace(f'"adjust_by":[{names}]', '"unused":0')
    assert older != stored
    assert _plan(older).adjust_by == ()
