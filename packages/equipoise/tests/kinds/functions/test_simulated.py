"""Equal functions are rarely called different, and unequal ones are: simulated campaigns."""

from __future__ import annotations

from typing import Any, cast

from scipy.stats import binom

from equipoise.analysis.result import analyse_campaign
from equipoise.campaign.interim import InterimAnalysis
from equipoise.campaign.progress import ProgressListener
from equipoise.campaign.segment import SegmentInProgress
from equipoise.kinds.functions.result import FunctionsDocument
from equipoise.kinds.functions.runner import FunctionRunner
from equipoise.model.record import CampaignWarning, Draw, RunRecord, Segment, Trial
from packages.equipoise.tests.kinds.functions.scripted import (
    NoCovariates,
    ScriptedProcesses,
    plan_of_functions,
    ticking,
)

CAMPAIGNS = 200
BLOCKS = 16


class Memory:
    """A ledger that keeps nothing on a disk."""

    def __init__(self) -> None:
        self.draws: list[Draw] = []
        self.trials: list[Trial] = []

    def record_draw(self, run_id: str, draw: Draw) -> None:
        self.draws.append(draw)

    def record_trial(self, run_id: str, trial: Trial) -> None:
        self.trials.append(trial)

    def record_warning(self, run_id: str, warning: CampaignWarning) -> None:
        raise AssertionError(warning)


def campaign(seed: int, **processes: Any) -> tuple[str, RunRecord]:
    """The verdict where a campaign stopped, and its record."""
    plan = plan_of_functions(seed=seed, blocks=BLOCKS, min_seconds=0, warmup=0)
    runner = FunctionRunner(
        plan,
        ScriptedProcesses(seed, **processes),
        cast(Any, NoCovariates()),
        now=lambda: 1.7e9,
        clock=ticking(),
    )
    memory, judge = Memory(), InterimAnalysis(plan, plan.stopping)
    segment = SegmentInProgress(
        "run", plan, plan.stopping, memory, judge, ProgressListener(), ticking(0.001)
    )
    reason = segment.run(runner)
    trials, draws = tuple(memory.trials), tuple(memory.draws)
    segments = (Segment(1.7e9, {}, 1.7e9, reason),)
    record = RunRecord("run", plan, 1.7e9, segments, draws, trials, ())
    return judge.analyse()[0].verdict, record


def test_equal_functions_are_called_different_in_at_most_one_campaign_of_twenty() -> None:
    verdicts = [campaign(seed)[0] for seed in range(CAMPAIGNS)]
    different = sum(verdict in ("faster", "slower", "mixed") for verdict in verdicts)
    # At a rate of exactly 5 % one in a thousand tests exceeds this by chance.
    assert different <= binom.ppf(0.999, CAMPAIGNS, 0.05)


def test_a_difference_of_three_percent_is_found() -> None:
    verdicts = [
        campaign(seed, work=(1.0, 1.03), layout_sd=0.005, defined_first=0.0)[0]
        for seed in range(20)
    ]
    assert verdicts.count("slower") >= 18


def test_the_result_has_the_verdict_of_the_campaign() -> None:
    verdict, record = campaign(3, work=(1.0, 1.2))
    document = analyse_campaign(record)
    comparison = document.comparisons[0]
    assert (verdict, comparison.verdict) == ("slower", "slower")
    assert comparison.metric == "call_s"
    assert comparison.summary.startswith("g() is slower than f(): it takes ")
    assert isinstance(document, FunctionsDocument)
    assert document.functions == record.plan.terms
    assert document.steady_state == ()
    assert comparison.carry_over is None
