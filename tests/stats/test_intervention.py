"""What an intervention did to a gap: the guards of verdict.md §7."""

from __future__ import annotations

import msgspec.structs
import numpy as np
import pytest
from scipy.stats import binom

from equipoise.model.errors import UnusableInput
from equipoise.stats.arrays import FloatArray
from equipoise.stats.intervention import InterventionBlocks, InterventionEffect, is_final

BLOCKS = 40
LEVEL = 0.05


def judged(
    seconds: tuple[float, float, float, float], *, sd: float = 0.02, seed: int = 1
) -> InterventionEffect:
    """Forty blocks of A, B, A_w and B_w that take so long, with multiplicative noise."""
    generator = np.random.default_rng(seed)
    costs: FloatArray = np.array(seconds)[:, None] * np.exp(generator.normal(0.0, sd, (4, BLOCKS)))
    blocks = InterventionBlocks(LEVEL)
    for block in costs.T:
        blocks.append(*map(float, block))
    return blocks.exact_effect()


def test_an_intervention_that_makes_the_candidate_as_fast_is_confirmed() -> None:
    result = judged((0.010, 0.024, 0.010, 0.0104))
    assert result.outcome == "confirmed"
    assert result.logs.low is not None
    assert result.logs.low > 0.8
    assert result.from_candidate == pytest.approx(0.95, abs=0.05)
    assert result.from_baseline == pytest.approx(0.0, abs=0.05)


def test_an_intervention_that_changes_nothing_is_refuted() -> None:
    assert judged((0.010, 0.024, 0.010, 0.024)).outcome == "refuted"


def test_a_cost_added_to_both_is_not_confirmed_though_the_ratio_shrinks() -> None:
    result = judged((0.010, 0.020, 0.110, 0.120))
    assert result.outcome == "open"
    assert result.logs.low is not None
    assert result.logs.low > 0.5
    assert result.seconds.estimate == pytest.approx(0.0, abs=0.3)


def test_a_gap_closed_by_slowing_the_baseline_is_not_confirmed() -> None:
    result = judged((0.010, 0.024, 0.024, 0.024))
    assert result.outcome == "open"
    assert result.from_baseline == pytest.approx(1.0, abs=0.05)


def test_of_a_faster_candidate_the_baseline_must_come_nearer() -> None:
    assert judged((0.024, 0.010, 0.0104, 0.010)).outcome == "confirmed"
    by_slowing = judged((0.024, 0.010, 0.024, 0.024))
    assert by_slowing.outcome == "open"
    assert by_slowing.from_candidate == pytest.approx(1.0, abs=0.05)


@pytest.mark.parametrize(
    ("seconds", "final"),
    [
        ((0.010, 0.024, 0.010, 0.0104), True),
        ((0.010, 0.024, 0.010, 0.024), True),
        ((0.010, 0.024, 0.010, 0.0180), True),
        ((0.010, 0.020, 0.110, 0.120), True),
        ((0.010, 0.024, 0.010, 0.036), True),
        ((0.010, 0.0102, 0.010, 0.0102), False),
    ],
    ids=["closed", "nothing", "a third", "adds a cost", "widened", "lost in noise"],
)
def test_it_is_final_where_more_blocks_would_tell_nothing_that_counts(
    seconds: tuple[float, float, float, float], final: bool
) -> None:
    assert is_final(judged(seconds)) is final


def test_what_is_confirmed_goes_on_until_it_is_as_well_known_as_what_is_refuted() -> None:
    found = judged((0.010, 0.024, 0.010, 0.010))
    wide = msgspec.structs.replace(found.logs, pieces=((0.52, 1.3),))
    assert found.outcome == "confirmed"
    assert is_final(found)
    assert not is_final(msgspec.structs.replace(found, logs=wide))


def test_an_intervention_that_closes_a_third_stays_open() -> None:
    assert judged((0.010, 0.024, 0.010, 0.0192)).outcome == "open"


def test_outcomes_that_are_wrong_are_rare() -> None:
    """Truly half closed: neither outcome is true."""
    half = 0.010 * np.sqrt(2.4)
    wrong = sum(
        judged((0.010, 0.024, 0.010, half), sd=0.1, seed=seed).outcome != "open"
        for seed in range(30)
    )
    assert wrong <= binom.ppf(0.999, 30, LEVEL)


def test_a_level_or_a_cost_that_is_none_is_refused() -> None:
    with pytest.raises(UnusableInput, match="the level is 1"):
        InterventionBlocks(1.0)
    with pytest.raises(UnusableInput, match="cost -1"):
        InterventionBlocks(LEVEL).append(1.0, 1.0, -1.0, 1.0)
