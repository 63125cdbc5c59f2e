"""The fraction of a gap that an intervention explains, and the verdict on the cause."""

from __future__ import annotations

import math

import msgspec.structs
import numpy as np
import pytest
from scipy.stats import binom

from equipoise._native import FractionSequence
from equipoise.model.errors import UnusableInput
from equipoise.model.quantities import leaves_out
from equipoise.stats.arrays import FloatArray
from equipoise.stats.intervention import (
    ExplainedFraction,
    InterventionBlocks,
    InterventionEffect,
    describe_fraction,
    is_final,
)

BLOCKS = 40
LEVEL = 0.05


def effect_of(
    seconds: tuple[float, float, float, float], *, sd: float = 0.02, seed: int = 1
) -> InterventionEffect:
    """The result of forty blocks of A, B, A_w and B_w with these times and multiplicative noise."""
    generator = np.random.default_rng(seed)
    costs: FloatArray = np.array(seconds)[:, None] * np.exp(generator.normal(0.0, sd, (4, BLOCKS)))
    blocks = InterventionBlocks(LEVEL)
    for block in costs.T:
        blocks.append(*map(float, block))
    return blocks.exact_effect()


def test_an_intervention_that_makes_the_candidate_as_fast_is_confirmed() -> None:
    result = effect_of((0.010, 0.024, 0.010, 0.0104))
    assert result.outcome == "confirmed"
    assert result.log_fraction.low is not None
    assert result.log_fraction.low > 0.8
    assert result.from_candidate == pytest.approx(0.95, abs=0.05)
    assert result.from_baseline == pytest.approx(0.0, abs=0.05)


def test_a_cost_added_to_both_is_not_confirmed_although_the_ratio_shrinks() -> None:
    result = effect_of((0.010, 0.020, 0.110, 0.120))
    assert result.outcome == "open"
    assert result.log_fraction.low is not None
    assert result.log_fraction.low > 0.5
    assert result.seconds_fraction.estimate == pytest.approx(0.0, abs=0.3)


def test_a_gap_closed_by_slowing_the_baseline_is_not_confirmed() -> None:
    result = effect_of((0.010, 0.024, 0.024, 0.024))
    assert result.outcome == "open"
    assert result.from_baseline == pytest.approx(1.0, abs=0.05)


def test_for_a_faster_candidate_the_baseline_must_come_nearer() -> None:
    assert effect_of((0.024, 0.010, 0.0104, 0.010)).outcome == "confirmed"
    by_slowing = effect_of((0.024, 0.010, 0.024, 0.024))
    assert by_slowing.outcome == "open"
    assert by_slowing.from_candidate == pytest.approx(1.0, abs=0.05)


@pytest.mark.parametrize(
    ("seconds", "outcome", "final"),
    [
        ((0.010, 0.024, 0.010, 0.0104), "confirmed", True),
        ((0.010, 0.024, 0.010, 0.024), "refuted", True),
        ((0.010, 0.024, 0.010, 0.0192), "open", True),
        ((0.010, 0.024, 0.010, 0.0180), "open", True),
        ((0.010, 0.020, 0.110, 0.120), "open", True),
        ((0.010, 0.024, 0.010, 0.036), "open", True),
        ((0.010, 0.0102, 0.010, 0.0102), "open", False),
    ],
    ids=[
        "closed",
        "nothing",
        "a third",
        "nearly a half",
        "adds a cost",
        "widened",
        "lost in noise",
    ],
)
def test_an_outcome_is_final_if_more_blocks_would_change_nothing_relevant(
    seconds: tuple[float, float, float, float], outcome: str, final: bool
) -> None:
    effect = effect_of(seconds)
    assert (effect.outcome, is_final(effect)) == (outcome, final)


def test_a_confirmed_share_gets_blocks_until_it_is_as_precise_as_a_refuted_one() -> None:
    effect = effect_of((0.010, 0.024, 0.010, 0.010))
    wide = msgspec.structs.replace(effect.log_fraction, intervals=((0.52, 1.3),))
    assert effect.outcome == "confirmed"
    assert is_final(effect)
    assert not is_final(msgspec.structs.replace(effect, log_fraction=wide))


def test_outcomes_that_are_wrong_are_rare() -> None:
    """Half of the gap is truly explained, so neither outcome is true."""
    half = 0.010 * np.sqrt(2.4)
    wrong = sum(
        effect_of((0.010, 0.024, 0.010, half), sd=0.1, seed=seed).outcome != "open"
        for seed in range(30)
    )
    assert wrong <= binom.ppf(0.999, 30, LEVEL)


def test_an_invalid_level_or_cost_is_refused() -> None:
    with pytest.raises(UnusableInput, match="the level of an intervention cannot be 1"):
        InterventionBlocks(1.0)
    with pytest.raises(UnusableInput, match="cost -1"):
        InterventionBlocks(LEVEL).append(1.0, 1.0, -1.0, 1.0)


CAMPAIGNS = 200


def gaps_of(
    generator: np.random.Generator, *, gap: float, share: float, noise: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Gaps without and with the intervention; ``noise`` has shape (4, n), in the order drawn."""
    shuffled = generator.permuted(noise, axis=0)
    without = gap + shuffled[1] - shuffled[0]
    with_it = (1.0 - share) * gap + shuffled[3] - shuffled[2]
    return without, with_it


def sequence_of(gaps: FloatArray, gaps_with: FloatArray) -> FractionSequence:
    sequence = FractionSequence(LEVEL)
    for gap, gap_with in zip(gaps, gaps_with, strict=True):
        sequence.push(float(gap), float(gap_with))
    return sequence


def explained_fraction(gaps: FloatArray, gaps_with: FloatArray) -> ExplainedFraction:
    sequence = sequence_of(gaps, gaps_with)
    return ExplainedFraction(sequence.estimate(), tuple(sequence.exact_set()))


def normal(generator: np.random.Generator) -> FloatArray:
    return generator.normal(0.0, 0.03, (4, BLOCKS))


def heavy(generator: np.random.Generator) -> FloatArray:
    values: FloatArray = 0.02 * generator.standard_t(2, (4, BLOCKS))
    return values


def drifting(generator: np.random.Generator) -> FloatArray:
    """Each trial is 1 % slower than the previous one, and the second of a block 5 % slower."""
    trial = np.arange(4 * BLOCKS).reshape(BLOCKS, 4).T
    slot = np.array([0.0, 0.05, 0.0, 0.0])[:, None]
    values: FloatArray = 0.01 * trial + slot + generator.normal(0.0, 0.02, (4, BLOCKS))
    return values


@pytest.mark.parametrize("noise", [normal, heavy, drifting])
@pytest.mark.parametrize("share", [0.0, 0.8])
def test_the_set_after_every_block_contains_the_true_share(noise: object, share: float) -> None:
    assert callable(noise)
    generator = np.random.default_rng(7)
    missed = 0
    for _ in range(CAMPAIGNS):
        without, with_it = gaps_of(generator, gap=0.1, share=share, noise=noise(generator))
        missed += not sequence_of(without, with_it).fits(share)
    assert missed <= binom.ppf(0.999, CAMPAIGNS, LEVEL)


def test_most_of_a_clear_gap_is_bounded_after_forty_blocks() -> None:
    """A gap of 10 %, sd 3 % and a share of 0.8 gives about [0.60, 0.95]."""
    generator = np.random.default_rng(8)
    ends = []
    for _ in range(20):
        without, with_it = gaps_of(generator, gap=0.1, share=0.8, noise=normal(generator))
        effect = explained_fraction(without, with_it)
        assert len(effect.intervals) == 1
        ends.append((effect.low, effect.high))
    low, high = np.median(np.array(ends, dtype=float), axis=0)
    assert 0.5 < low < 0.7
    assert 0.9 < high < 1.05


def test_shares_inside_the_set_fit_and_those_outside_do_not() -> None:
    generator = np.random.default_rng(9)
    without, with_it = gaps_of(generator, gap=0.1, share=0.5, noise=normal(generator))
    effect = explained_fraction(without, with_it)
    assert effect.low is not None
    assert effect.high is not None
    assert sequence_of(without, with_it).fits(effect.low + 1e-4)
    assert sequence_of(without, with_it).fits(effect.high - 1e-4)
    assert not sequence_of(without, with_it).fits(effect.low)
    assert not sequence_of(without, with_it).fits(effect.high)


def test_a_gap_that_is_lost_in_noise_bounds_no_share() -> None:
    generator = np.random.default_rng(10)
    without, with_it = gaps_of(generator, gap=0.0, share=0.5, noise=normal(generator))
    effect = explained_fraction(without, with_it)
    assert effect.low is None
    assert effect.high is None


@pytest.mark.parametrize("share", [0.0, 0.9734, 1.0])
def test_a_set_far_narrower_than_the_shares_tried_is_found(share: float) -> None:
    """A ratio of a hundred, as a cache or a sync causes, with a noise of 1 %."""
    generator = np.random.default_rng(12)
    noise = generator.normal(0.0, 0.01, (4, BLOCKS))
    without, with_it = gaps_of(generator, gap=math.log(100.0), share=share, noise=noise)
    effect = explained_fraction(without, with_it)
    assert effect.low is not None
    assert effect.high is not None
    assert effect.low < share < effect.high < effect.low + 0.01


def test_blocks_added_one_by_one_give_the_same_set_with_ends_rounded_outwards() -> None:
    generator = np.random.default_rng(13)
    without, with_it = gaps_of(generator, gap=0.1, share=0.5, noise=normal(generator))
    sequence = sequence_of(without, with_it)
    exactly = explained_fraction(without, with_it)
    rounded = ExplainedFraction(sequence.estimate(), tuple(sequence.rounded_set()))
    assert rounded.estimate == exactly.estimate
    assert rounded.low is not None
    assert rounded.high is not None
    assert exactly.lies_within(rounded.low, rounded.high)
    assert rounded.high - rounded.low < 0.05 + (exactly.high or 0.0) - (exactly.low or 0.0)


def test_without_blocks_there_is_no_result() -> None:
    effect = explained_fraction(np.array([]), np.array([]))
    assert effect.estimate is None
    assert effect.intervals == ((None, None),)


def test_blocks_with_two_timeouts_of_a_pair_are_not_evidence() -> None:
    generator = np.random.default_rng(11)
    without, with_it = gaps_of(generator, gap=0.1, share=0.8, noise=normal(generator))
    nothing = np.full(5, math.nan)
    longer = explained_fraction(
        np.concatenate((without, nothing)), np.concatenate((with_it, nothing))
    )
    assert longer == explained_fraction(without, with_it)


def test_a_candidate_that_always_times_out_leaves_no_share_that_fits() -> None:
    effect = explained_fraction(np.full(30, math.inf), np.full(30, 0.001))
    assert effect.intervals == ()
    assert effect.estimate is None
    assert not effect.lies_within(-1.0, 2.0)


@pytest.mark.parametrize("level", [0.0, 1.0, math.nan])
def test_an_invalid_level_is_refused(level: float) -> None:
    with pytest.raises(ValueError, match="a level must be between 0 and 1"):
        FractionSequence(level)


def test_with_a_gap_that_varies_by_block_the_estimate_is_near_the_truth_and_in_its_set() -> None:
    """The separate medians of the two gaps were outside the set in 42 % of such campaigns."""
    generator = np.random.default_rng(7)
    outside, errors = 0, []
    for _ in range(30):
        blocks = InterventionBlocks(LEVEL)
        for gap in 0.7 * np.exp(generator.normal(size=40)):
            noise = generator.normal(0.0, 0.05, 4)
            costs = np.exp(noise + [0.0, gap, 0.0, 0.7 * gap])
            blocks.append(*map(float, costs))
        logs = blocks.rounded_effect().log_fraction
        assert logs.estimate is not None
        errors.append(abs(logs.estimate - 0.3))
        outside += leaves_out((logs.low, logs.high), logs.estimate)
    assert outside <= 1
    assert np.median(errors) < 0.03


def test_an_estimate_outside_of_its_set_is_not_shown() -> None:
    assert describe_fraction(0.38, (-0.14, 0.06)) == "-14 to 6 % (no single fraction)"


def test_a_share_reads_in_percent_and_an_end_that_is_not_known_is_left_open() -> None:
    assert describe_fraction(0.97, (0.944, 0.99)) == "97 % [94, 99]"
    assert describe_fraction(-0.001, (-0.03, 0.02)) == "0 % [-3, 2]"
    assert describe_fraction(0.5, (None, 0.75)) == "50 % […, 75]"
    assert describe_fraction(0.5, (None, None)) == "about 50 %"
    assert describe_fraction(None, (None, None)) == "unknown"
