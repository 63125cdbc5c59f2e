"""Only covariates read before a trial adjust a verdict; the ledger gives the same adjustment."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from equipoise.analysis.comparisons import primary_comparisons
from equipoise.analysis.result import analyse_campaign
from equipoise.campaign.blocks import QUANTA, add_block, read_block
from equipoise.campaign.plans import compare_plan
from equipoise.design.commands import CompareOptions
from equipoise.kinds.gate.analysis import gate_result
from equipoise.kinds.gate.terms import GatePlan
from equipoise.ledger.rows import plan_from_text, to_text
from equipoise.model.errors import UnusableInput
from equipoise.model.plan import COVARIATES_BEFORE_TRIAL, Hooks, Judgement, Plan
from equipoise.model.record import Draw, RunRecord, Segment, Trial
from equipoise.model.revisions import BENCHMARK, Revision
from equipoise.report.builders.result import ReportInput
from equipoise.stats.resolution import Resolution
from equipoise.stats.sequence import PairedBlocks
from packages.equipoise.tests.plans import plan_of, trial_of
from packages.equipoise.tests.report.forms import page, screen


def adjusting(*names: str) -> Plan:
    """A plan with adjustment."""
    return plan_of(*names, judgement=Judgement(adjust_by=COVARIATES_BEFORE_TRIAL))


def blocks_of(plan: Plan, covariate: str) -> dict[int, tuple[Trial, ...]]:
    """Blocks whose times depend on a covariate, with little noise."""
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


def test_a_covariate_read_before_the_trials_adjusts_and_is_named_in_the_result() -> None:
    plan = adjusting()
    (comparison,) = primary_comparisons(plan, blocks_of(plan, "load_1_minute"))
    adjusted = comparison.adjusted_by
    assert adjusted is not None
    assert adjusted.covariate == "load_1_minute"
    # The covariate explains nine tenths of the variance of the differences.
    assert adjusted.spread_ratio < 0.45
    assert adjusted.blocks > 50
    assert "adjusted" not in comparison.summary
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
    plan = adjusting()
    (comparison,) = primary_comparisons(plan, blocks_of(plan, covariate))
    assert comparison.adjusted_by is not None
    assert comparison.adjusted_by.covariate == covariate


def test_a_mediator_is_never_used() -> None:
    plan = adjusting()
    for covariate in ("run_delay_s", "steal_s", "pressure_cpu_s", "frequency_hz"):
        (comparison,) = primary_comparisons(plan, blocks_of(plan, covariate))
        assert comparison.adjusted_by is None


@pytest.mark.parametrize("option", ["setup", "prepare", "conclude"])
def test_nothing_is_adjusted_if_a_condition_runs_a_program_between_trials(option: str) -> None:
    plan = adjusting()
    hooks = Hooks(**{option: "true"})
    conditions = tuple(replace(condition, hooks=hooks) for condition in plan.conditions)
    plan = replace(plan, conditions=conditions)
    (comparison,) = primary_comparisons(plan, blocks_of(plan, "load_1_minute"))
    assert comparison.adjusted_by is None


def test_nothing_is_adjusted_if_a_condition_runs_before_its_own_reading() -> None:
    plan = adjusting()
    plan = replace(plan, measure=replace(plan.measure, washout=True))
    (comparison,) = primary_comparisons(plan, blocks_of(plan, "load_1_minute"))
    assert comparison.adjusted_by is None


def test_nothing_is_adjusted_unless_the_user_chooses_it() -> None:
    plan = plan_of()
    assert plan.adjust_by == ()
    (comparison,) = primary_comparisons(plan, blocks_of(plan, "load_1_minute"))
    assert comparison.adjusted_by is None


def test_nothing_is_adjusted_with_a_third_condition() -> None:
    assert adjusting("a", "b").adjust_by == COVARIATES_BEFORE_TRIAL
    assert adjusting("a", "b", "c").adjust_by == ()


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"commands": ("true", "true 1", "true 2")}, "3 conditions"),
        ({"control": True}, "3 conditions"),
        ({"commands": ("true",)}, "1 condition "),
        ({"washout": True}, "washout"),
        ({"prepare": ("true",)}, "hook"),
        ({"layouts": 3}, "layouts"),
        ({"what_varies": True, "commands": ("true",)}, "what_varies"),
    ],
)
def test_an_impossible_adjustment_is_refused_with_the_reason(
    options: dict[str, Any], reason: str
) -> None:
    given = {"commands": ("true", "true 1"), "adjust": True}
    with pytest.raises(UnusableInput, match=reason) as error:
        compare_plan(CompareOptions(**{**given, **options}))
    assert error.value.hint


def test_only_with_the_option_every_covariate_read_before_a_trial_is_used() -> None:
    for adjust, names in ((True, COVARIATES_BEFORE_TRIAL), (False, ())):
        plan, _ = compare_plan(CompareOptions(("true", "true 1"), adjust=adjust))
        assert plan.adjust_by == plan.judgement.adjust_by == names


def test_a_gate_adjusts_nothing() -> None:
    plan = replace(
        adjusting(),
        conditions=tuple(
            replace(condition, levels={BENCHMARK: "x"}) for condition in adjusting().conditions
        ),
        terms=GatePlan(Revision("main", "1" * 40), Revision("HEAD", "2" * 40), ("wall_s",)),
    )
    result = gate_result(plan, blocks_of(plan, "load_1_minute"))
    assert result is not None
    assert "adjusted" not in result.rows[0].summary
    plain = replace(plan, judgement=Judgement())
    assert result == gate_result(plain, blocks_of(plain, "load_1_minute"))


def test_an_interim_analysis_and_the_result_adjust_alike() -> None:
    plan = adjusting()
    blocks = blocks_of(plan, "load_1_minute")
    pairs = PairedBlocks(resolution=Resolution(QUANTA["wall_s"]))
    for block in blocks.values():
        add_block(pairs, read_block(block, plan), plan.contrasts[0], plan)
    (comparison,) = primary_comparisons(plan, blocks)
    low, high = pairs.engine.running_interval(plan.judgement.alpha)
    assert comparison.ratio_ci == (math.exp(low), math.exp(high))


def test_a_plan_of_an_older_ledger_adjusts_nothing() -> None:
    stored = to_text(adjusting())
    assert plan_from_text(stored).adjust_by == adjusting().adjust_by != ()
    names = ",".join(f'"{name}"' for name in COVARIATES_BEFORE_TRIAL)
    older = stored.replace(f'"adjust_by":[{names}]', '"unused":0')
    assert older != stored
    assert plan_from_text(older).adjust_by == ()


def test_the_sentence_is_below_the_verdict_unless_it_is_empty() -> None:
    plan = adjusting()
    draws: list[Draw] = []
    trials: list[Trial] = []
    for block in blocks_of(plan, "load_1_minute").values():
        draws.append(Draw("measured", block[0].block, tuple(trial.condition for trial in block), 0))
        trials.extend(block)
    segment = Segment(0.0, {})
    record = RunRecord("x", plan, 0.0, (segment,), tuple(draws), tuple(trials), (), ())
    document = analyse_campaign(record)
    (comparison,) = document.comparisons
    assert comparison.adjusted_by is not None
    summary = comparison.adjusted_by.summary
    assert summary in " ".join(screen(document).split())
    assert summary in page([ReportInput(document)])
    silent = replace(comparison, adjusted_by=replace(comparison.adjusted_by, summary=""))
    document = replace(document, comparisons=(silent,))
    assert "adjusted" not in screen(document)
    assert "Adjusted" not in page([ReportInput(document)])
