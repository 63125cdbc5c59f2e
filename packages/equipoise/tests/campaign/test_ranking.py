"""The fastest condition: the cost of finding it, its error rate, and its text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from msgspec import Struct
from msgspec.structs import replace

from equipoise.analysis.ranking import ranked_groups
from equipoise.analysis.result import analyse_campaign
from equipoise.campaign.blocks import complete_blocks
from equipoise.campaign.interim import InterimAnalysis
from equipoise.campaign.plans import compare_plan
from equipoise.design.coin import draw_block
from equipoise.design.commands import CompareOptions
from equipoise.model.errors import UnusableInput
from equipoise.model.plan import Contrast, Judgement, Plan, Stopping
from equipoise.model.record import Draw, RunRecord, Segment, Trial
from equipoise.model.result import Ranking, Verdict
from equipoise.stats.ranking import Pair, contenders_of, judge_candidates
from packages.equipoise.tests.campaign.test_conduct import Stage
from packages.equipoise.tests.plans import plan_of, trial_of
from packages.equipoise.tests.schema import validated
from packages.equipoise.tests.stats.simulated import at_most

LEAVING = Stopping(leave_out_decided=True, min_seconds=0.0)


class Simulated(Struct):
    """A campaign with simulated times."""

    plan: Plan
    draws: list[Draw]
    trials: list[Trial]

    @property
    def ranking(self) -> Ranking:
        """The ranking in the result document of the campaign."""
        segment = Segment(0.0, {})
        record = RunRecord(
            "x", self.plan, 0.0, (segment,), tuple(self.draws), tuple(self.trials), (), ()
        )
        (ranking,) = analyse_campaign(record).ranking
        return ranking

    def claims(self) -> tuple[dict[Pair, Verdict], tuple[int, ...]]:
        """The verdicts on pairs of candidates and the contenders, without a document."""
        judgement = self.plan.judgement
        groups = ranked_groups(self.plan, complete_blocks(self.draws, self.trials))
        judged = judge_candidates(groups, judgement.min_effect, judgement.alpha)
        contenders = contenders_of(groups[0], judgement.min_effect, judgement.alpha)
        return {pair: judgement.verdict for pair, judgement in judged.items()}, contenders


def plan_with(ratios: tuple[float, ...], seed: int, *, min_effect: float = 1.0) -> Plan:
    """A plan with one condition per ratio; the first is the baseline."""
    names = "abcdefgh"[: len(ratios)]
    judgement = Judgement(min_effect=min_effect)
    return plan_of(*names, stopping=LEAVING, judgement=judgement, seed=seed)


def simulated(plan: Plan, ratios: tuple[float, ...], sd: float, blocks: int) -> Simulated:
    """Run a plan until it stops or has this number of blocks; analyse it after each block."""
    noise = np.random.default_rng(plan.seed)
    interim = InterimAnalysis(plan, plan.stopping)
    campaign = Simulated(plan, [], [])
    for block in range(1, blocks + 1):
        draw = draw_block(plan, "measured", block, interim.needed_conditions("measured", block))
        times = [ratios[place] * float(np.exp(sd * noise.normal())) for place in draw.order]
        trials = tuple(trial_of(draw, place, time) for place, time in enumerate(times))
        campaign.draws.append(draw)
        campaign.trials += trials
        interim.add(trials)
        if block >= interim.earliest_block():
            interim.analyse()
        if interim.stop_reason() is not None:
            break
    return campaign


ONE_EQUAL = (1.0, 1.1, 1.1, 1.1, 1.0)
"""Three candidates 10 % slower, one equal."""


def test_a_decided_candidate_that_cannot_be_the_fastest_leaves() -> None:
    trials = {}
    for leaves in (False, True):
        plans = [plan_with(ONE_EQUAL, seed) for seed in range(6)]
        stopping = replace(LEAVING, leave_out_decided=leaves)
        runs = [simulated(replace(plan, stopping=stopping), ONE_EQUAL, 0.01, 300) for plan in plans]
        trials[leaves] = sum(len(run.trials) for run in runs)
    assert trials[True] < 0.6 * trials[False]


def test_a_comparison_of_the_command_line_leaves_out_and_ranks() -> None:
    plan, _ = compare_plan(CompareOptions(("true", "true 1", "true 2")))
    assert plan.stopping.leave_out_decided
    assert len(plan.ranked_groups) == 1
    off, _ = compare_plan(CompareOptions(("true", "true 1", "true 2"), ranking=False))
    assert not off.ranked_groups
    pair, _ = compare_plan(CompareOptions(("true", "true 1")))
    assert not pair.ranked_groups


def test_candidates_that_may_be_the_fastest_run_on_until_it_is_known() -> None:
    ratios = (1.0, 0.9, 0.85)
    plan = plan_with(ratios, 3)
    with_ranking = simulated(plan, ratios, 0.03, 200)
    without_ranking = simulated(replace(plan, ranking=False), ratios, 0.03, 200)
    assert len(with_ranking.draws) > len(without_ranking.draws)
    # The baseline is decided and not the fastest: only the two candidates continue.
    assert set(with_ranking.draws[-1].order) == {1, 2}
    assert re.fullmatch(
        r"c is the fastest of 3: 1\d\.\d % less time than a\.", with_ranking.ranking.summary
    )
    assert [condition.name for condition in with_ranking.ranking.conditions] == ["c", "b", "a"]
    assert with_ranking.ranking.conditions[-1].slower_than == ("c", "b")


def test_the_control_leaves_with_the_baseline() -> None:
    ratios = (1.0, 0.9, 0.89, 1.0)
    plan = replace(plan_with(ratios, 3), control=3)
    campaign = simulated(plan, ratios, 0.02, 60)
    assert {0, 3} <= set(campaign.draws[0].order)
    assert set(campaign.draws[-1].order) == {1, 2}


def test_no_verdict_of_equal_conditions_is_more_frequent_than_alpha() -> None:
    """With five equal conditions no verdict is true, and each of them may be named the fastest."""
    campaigns, alarms, missing = 40, 0, 0
    for seed in range(campaigns):
        plan = plan_with((1.0,) * 5, seed, min_effect=0.0)
        verdicts, contenders = simulated(plan, (1.0,) * 5, 0.05, 18).claims()
        alarms += any(verdict != "undecided" for verdict in verdicts.values())
        missing += 2 not in contenders
    assert alarms <= at_most(campaigns, 0.05)
    assert missing <= at_most(campaigns, 0.05)


def test_at_most_alpha_of_the_claims_among_candidates_are_false() -> None:
    ratios = (1.0, 1.0, 1.0, 1.1, 1.1)
    campaigns, false_rates, missing = 30, 0.0, 0
    for seed in range(campaigns):
        plan = plan_with(ratios, seed, min_effect=0.0)
        verdicts, contenders = simulated(plan, ratios, 0.03, 20).claims()
        claimed = [pair for pair, verdict in verdicts.items() if verdict != "undecided"]
        false = sum(ratios[first] == ratios[second] for first, second in claimed)
        false_rates += false / max(1, len(claimed))
        missing += 1 not in contenders
    # A rate is between 0 and 1, so a sum of rates varies no more than a count with the same mean.
    assert false_rates <= at_most(campaigns, 0.05)
    assert missing <= at_most(campaigns, 0.05)


def test_a_name_that_stands_alone_is_wrong_in_at_most_alpha_of_campaigns() -> None:
    """The fastest leads three others by 0.5 %; `python -m benchmarks.ranking.run` has more
    cases."""
    ratios = (1.005, 1.0, 1.005, 1.005)
    campaigns, named, wrong, missing = 24, 0, 0, 0
    for seed in range(campaigns):
        plan = plan_with(ratios, seed, min_effect=0.0)
        _, contenders = simulated(plan, ratios, 0.005, 40).claims()
        named += contenders == (1,)
        wrong += len(contenders) == 1 and contenders != (1,)
        missing += 1 not in contenders
    assert named > 0
    assert wrong <= at_most(campaigns, 0.05)
    assert missing <= at_most(campaigns, 0.05)


def test_the_sentence_names_all_conditions_that_may_be_the_fastest() -> None:
    ratios = (1.005, 1.0, 1.005, 1.005, 1.1)
    ranking = simulated(plan_with(ratios, 1), ratios, 0.02, 20).ranking
    assert ranking.leader == ranking.contenders[0]
    assert set(ranking.contenders) == set("abcd")
    *first, last = ranking.contenders
    names = f"{', '.join(first)} or {last}"
    assert ranking.summary.startswith(f"{names} is the fastest of 5; {ranking.leader} leads so far")


def test_a_pair_has_only_blocks_in_which_both_ran() -> None:
    campaign = simulated(plan_with(ONE_EQUAL, 5), ONE_EQUAL, 0.01, 100)
    orders = [set(draw.order) for draw in campaign.draws]
    for pair in campaign.ranking.pairs:
        both = {"abcde".index(pair.baseline), "abcde".index(pair.candidate)}
        assert pair.blocks == sum(both <= order for order in orders)


def test_a_campaign_that_is_read_back_needs_the_same_conditions() -> None:
    ratios = (1.0, 0.9, 0.9, 1.1)
    campaign = simulated(plan_with(ratios, 2), ratios, 0.03, 60)
    by_block: dict[int, list[Trial]] = {}
    for trial in campaign.trials:
        by_block.setdefault(trial.block, []).append(trial)
    assert {len(draw.order) for draw in campaign.draws} >= {2, 4}
    for draw in campaign.draws[8::5]:
        interim = InterimAnalysis(campaign.plan, campaign.plan.stopping)
        for number in range(1, draw.block):
            interim.add(tuple(by_block[number]))
        interim.analyse()
        needed = interim.needed_conditions("measured", draw.block)
        assert draw == draw_block(campaign.plan, "measured", draw.block, needed)


def rankings_of_a_study(folder: Path) -> Iterator[Ranking]:
    """The rankings of two tasks with three levels each."""
    stage = Stage(folder, medians=(0.01, 0.02, 0.03, 0.02, 0.01, 0.01), noise=0.01)
    plan = plan_of(*"abcdef", stopping=replace(LEAVING, blocks=120, budget_s=1e9))
    conditions = tuple(
        replace(condition, levels={"level": condition.name.upper(), "task": str(place // 3)})
        for place, condition in enumerate(plan.conditions)
    )
    contrasts = tuple(
        Contrast(first, first + step, "level", {"task": str(first // 3)})
        for first in (0, 3)
        for step in (1, 2)
    )
    stage.start(replace(plan, conditions=conditions, chosen_contrasts=contrasts))
    yield from validated(analyse_campaign(stage.ledger.read_run("last"))).ranking


def test_a_study_has_a_ranking_for_each_group(tmp_path: Path) -> None:
    first, second = rankings_of_a_study(tmp_path)
    assert re.fullmatch(
        r"At task 0: A is the fastest of 3: B takes (2|2\.0\d|1\.9\d) times as long as A\.",
        first.summary,
    )
    tie = (
        r"At task 1: (E and F|F and E) tie as the fastest of 3, within 1 %: 2 times as fast as D\."
    )
    assert re.fullmatch(tie, second.summary)
    assert second.conditions[0].tied_with
    assert second.conditions[-1].name not in second.contenders
    assert second.leader == second.contenders[0]


def test_an_impossible_ranking_gives_a_notice_or_an_error_if_it_was_requested() -> None:
    many = tuple(f"true {number}" for number in range(25))
    plan, warnings = compare_plan(CompareOptions(many))
    assert not plan.ranked_groups
    (warning,) = warnings
    assert warning.code == "no_ranking"
    assert "25 conditions cannot be ranked" in warning.summary
    assert "ranking=False" in warning.hint
    _, layouts = compare_plan(CompareOptions(many[:3], layouts=2, aslr="on"))
    assert "with layouts" in layouts[0].summary
    for asked in (
        CompareOptions(many, ranking=True),
        CompareOptions(("true",), ranking=True),
        CompareOptions(many[:3], layouts=2, aslr="on", ranking=True),
    ):
        with pytest.raises(UnusableInput, match="cannot be ranked|there is nothing to rank"):
            compare_plan(asked)


@pytest.mark.parametrize(
    "options",
    [
        CompareOptions(tuple(f"true {number}" for number in range(25)), ranking=False),
        CompareOptions(("true", "true 1"), layouts=2, aslr="on", ranking=True),
        CompareOptions(("true", "true 1", "true 2"), ranking=True),
    ],
)
def test_no_notice_mentions_an_unneeded_ranking(options: CompareOptions) -> None:
    _, warnings = compare_plan(options)
    assert warnings == ()
