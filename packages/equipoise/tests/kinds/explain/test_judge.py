"""The judge of a campaign of interventions: its next attempt, and its stop."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec.structs

from equipoise.campaign.interim import InterimAnalysis, judge_for
from equipoise.campaign.segment import Judge
from equipoise.design.coin import draw_block
from equipoise.model.plan import Plan, Stopping
from equipoise.model.record import Draw, Trial
from packages.equipoise.tests.kinds.explain.simulated import Truth, plan_and_seconds
from packages.equipoise.tests.plans import plan_of, trial_of

FOUR = tuple(Truth(share, weight=weight) for share, weight in ((0.0, 8.0), (0.5, 1.0), (1.0, 1.0)))


def plan_with(truths: Sequence[Truth], gap: float = 2.0) -> tuple[Plan, tuple[float, ...]]:
    return plan_and_seconds(gap, truths, stopping=Stopping(), seed=4)


def block(plan: Plan, seconds: Sequence[float], number: int, judge: Judge) -> tuple[Trial, ...]:
    """Return the next block; its times differ slightly from the truth."""
    draw = draw_block(plan, "measured", number, judge.needed_conditions("measured", number))
    return tuple(
        trial_of(draw, place, seconds[condition] * (1.0 + 1e-4 * ((7 * number + place) % 5)))
        for place, condition in enumerate(draw.order)
    )


def test_a_plan_that_explains_nothing_has_the_usual_judge() -> None:
    assert isinstance(judge_for(plan_of(), Stopping()), InterimAnalysis)


def test_a_block_holds_the_gap_and_one_attempt() -> None:
    plan, _ = plan_with((Truth(0.0), Truth(1.0, 0.001, has_sham=True)))
    judge = judge_for(plan, plan.stopping)
    needed = {judge.needed_conditions("measured", number) for number in range(1, 40)}
    assert needed == {(0, 1, 2, 3), (0, 1, 4, 5, 6, 7)}


def test_everything_warms_up() -> None:
    plan, _ = plan_with(FOUR)
    judge = judge_for(plan, plan.stopping)
    assert judge.needed_conditions("warmup", 1) == tuple(range(8))


def test_the_cause_with_most_seconds_is_drawn_most_and_none_is_starved() -> None:
    plan, _ = plan_with(FOUR)
    judge = judge_for(plan, plan.stopping)
    drawn = Counter(judge.needed_conditions("measured", number)[2] for number in range(1, 601))
    assert drawn[2] > 400
    assert min(drawn[4], drawn[6]) > 50


def test_the_draw_follows_from_the_seed_the_block_and_the_blocks_before() -> None:
    plan, seconds = plan_with(FOUR)
    first = judge_for(plan, plan.stopping)
    blocks: list[tuple[Trial, ...]] = []
    for number in range(1, 13):
        blocks.append(block(plan, seconds, number, first))
        first.add(blocks[-1])
        first.analyse()
    replayed = judge_for(plan, plan.stopping)
    for trials in blocks:
        replayed.add(trials)
    replayed.analyse()
    ahead = [first.needed_conditions("measured", number) for number in range(13, 60)]
    assert [replayed.needed_conditions("measured", number) for number in range(13, 60)] == ahead
    assert len(set(ahead)) > 1
    other = judge_for(msgspec.structs.replace(plan, seed=5), plan.stopping)
    assert [other.needed_conditions("measured", number) for number in range(1, 13)] != [
        tuple(sorted({trial.condition for trial in trials})) for trials in blocks
    ]


def test_it_settles_when_the_gap_is_called_and_every_attempt_has_its_outcome() -> None:
    plan, seconds = plan_with((Truth(0.0), Truth(1.0)))
    judge = judge_for(plan, plan.stopping)
    number = 0
    while judge.stop_reason() is None and number < 100:
        number += 1
        judge.add(block(plan, seconds, number, judge))
        gap, *attempts = judge.analyse()
    assert judge.stop_reason() == "verdict"
    assert gap.verdict == "slower"
    assert [attempt.verdict for attempt in attempts] == ["refuted", "confirmed"]
    assert [attempt.candidate for attempt in attempts] == [
        "with intervention 0",
        "with intervention 1",
    ]
    assert attempts[1].closed_fraction.startswith("100 % [")
    assert sum(attempt.blocks for attempt in attempts) == gap.blocks == number
    assert judge.needed_conditions("measured", number + 1) == (0, 1)


def test_an_attempt_with_its_outcome_gets_no_more_blocks() -> None:
    plan, seconds = plan_with((Truth(1.0), Truth(0.35)))
    judge = judge_for(plan, plan.stopping)
    decided_at = None
    for number in range(1, 40):
        judge.add(block(plan, seconds, number, judge))
        confirmed = judge.analyse()[1]
        if confirmed.verdict == "confirmed" and decided_at is None:
            decided_at = confirmed.blocks
    assert decided_at is not None
    assert judge.analyse()[1].blocks == decided_at


def test_it_settles_when_there_is_no_gap_to_explain() -> None:
    plan, seconds = plan_with((Truth(0.0),), gap=1.0)
    judge = judge_for(plan, plan.stopping)
    for number in range(1, 80):
        judge.add(block(plan, seconds, number, judge))
        judge.analyse()
    assert judge.stop_reason() == "verdict"
    assert judge.analyse()[0].verdict == "equivalent"


def test_a_failed_attempt_ends_alone_and_a_failure_of_the_gap_is_not_tolerated() -> None:
    plan, seconds = plan_with((Truth(0.0), Truth(1.0)))
    judge = judge_for(plan, plan.stopping)
    draw = Draw("warmup", 1, tuple(range(6)), 0)
    assert judge.tolerates(trial_of(draw, 3, 0.01, failure="signal 11 (SIGSEGV)"))
    assert not judge.tolerates(trial_of(draw, 1, 0.01, failure="exit status 1"))
    assert {judge.needed_conditions("measured", number) for number in range(1, 20)} == {
        (0, 1, 4, 5)
    }
    judge.add(block(plan, seconds, 1, judge))
    assert judge.analyse()[1].closed_fraction == "ended"
