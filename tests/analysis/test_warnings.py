"""The warnings that matter, and none that does not."""

from __future__ import annotations

import msgspec.structs

from equipoise.analysis.warnings import warnings_of
from equipoise.model.plan import Stopping
from equipoise.model.record import CampaignWarning, Draw, RunRecord, Trial
from equipoise.model.result import CarryOver, Comparison
from tests.plans import plan_of

CALM = Comparison(
    baseline="old",
    candidate="new",
    metric="wall_s",
    estimand="typical within-block ratio",
    ratio=1.10,
    ratio_ci=(1.08, 1.12),
    e_value=100.0,
    verdict="slower",
    min_effect=1.0,
    alpha=0.05,
    blocks=20,
    mean_ratio=1.1,
    mean_ratio_ci=(1.08, 1.12),
    probability_slower=1.0,
    probability_slower_ci=(0.8, 1.0),
    minimum_misleads=False,
    scope="",
    summary="",
    level=0.05,
)


def record(
    blocks: int = 20, notices: tuple[CampaignWarning, ...] = (), **stopping: float
) -> RunRecord:
    return RunRecord(
        id="r",
        plan=plan_of(stopping=Stopping(**stopping)),  # type: ignore[arg-type]
        started_at=0.0,
        segments=(),
        draws=tuple(Draw("measured", number, (0, 1), 0) for number in range(1, blocks + 1)),
        trials=(),
        notices=notices,
    )


def codes(comparison: Comparison, cut: int = 0, given: RunRecord | None = None) -> list[str]:
    given = given or record()
    complete: dict[int, tuple[Trial, ...]] = dict.fromkeys(range(len(given.draws) - cut), ())
    return [one.code for one in warnings_of(given, [comparison], None, complete)]


def test_a_calm_campaign_has_none() -> None:
    assert codes(CALM) == []


def test_cut_blocks_are_warned_of_over_five_per_cent() -> None:
    assert codes(CALM, cut=1) == []
    assert codes(CALM, cut=2) == ["cut_blocks"]


def test_carry_over_is_warned_of_with_its_mend() -> None:
    carried = CarryOver(ratio=1.03, ratio_ci=(1.025, 1.035), trials=100)
    one = msgspec.structs.replace(CALM, carry_over=carried)
    warned = warnings_of(record(blocks=0), [one], None, {})
    assert [one.code for one in warned] == ["carry_over"]
    assert "1.030 times" in warned[0].summary
    assert "--washout" in warned[0].hint


def test_a_carry_over_that_is_lost_in_noise_is_not_warned_of() -> None:
    carried = CarryOver(ratio=1.03, ratio_ci=(0.99, 1.07), trials=100)
    assert codes(msgspec.structs.replace(CALM, carry_over=carried)) == []


def test_a_misleading_minimum_is_warned_of() -> None:
    assert codes(msgspec.structs.replace(CALM, minimum_misleads=True)) == ["minimum_misleads"]


def test_an_interval_that_almost_touches_none_is_told_to_be_inflated() -> None:
    touching = msgspec.structs.replace(CALM, ratio=1.05, ratio_ci=(1.002, 1.10))
    assert codes(touching) == ["inflated"]
    mirrored = msgspec.structs.replace(
        CALM, ratio=0.95, ratio_ci=(1 / 1.10, 1 / 1.002), verdict="faster"
    )
    assert codes(mirrored) == ["inflated"]


def test_precision_that_was_asked_for_takes_the_inflation_away() -> None:
    touching = msgspec.structs.replace(CALM, ratio=1.05, ratio_ci=(1.002, 1.10))
    assert codes(touching, given=record(precision=1.0)) == []


def test_what_was_noticed_while_it_ran_is_told_once() -> None:
    notice = CampaignWarning("left_processes", "new left processes behind", "let it wait")
    assert codes(CALM, given=record(notices=(notice, notice))) == ["left_processes"]
