"""The guarantees with the judge's own stops and draws, by simulations with known shares."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from packages.equipoise.tests.kinds.explain.simulated import (
    ALPHA,
    NOISES,
    Truth,
    is_wrong,
    misses,
    simulated,
)

SHARES = (0.0, 0.5, 0.8, 1.0)
GAPS = (1.1, 1.5, 3.0)
EACH = 6
BLOCKS = 40
MIN_COVERAGE = 0.93


def test_the_intervals_cover_the_true_share_and_false_outcomes_are_rare() -> None:
    """One intervention at the whole of alpha, in the campaigns that gave a share."""
    generator = np.random.default_rng(20)
    known = missed = wrong = 0
    for noise in NOISES.values():
        for gap in GAPS:
            for share in SHARES:
                for _ in range(EACH):
                    (outcome,) = simulated(gap, [Truth(share)], noise, generator, blocks=BLOCKS)
                    known += outcome.share is not None
                    missed += misses(outcome, share)
                    wrong += is_wrong(outcome, share)
    # Few gaps are not called: a gap of a tenth with noise of 3 % needs about ten blocks.
    assert known > 0.95 * len(NOISES) * len(GAPS) * len(SHARES) * EACH
    assert missed <= (1.0 - MIN_COVERAGE) * known
    # One in a thousand such tests exceeds this at a true rate of exactly alpha.
    assert wrong <= binom.ppf(0.999, known, ALPHA)


@pytest.mark.parametrize("noise", NOISES)
def test_several_interventions_in_one_campaign_share_alpha(noise: str) -> None:
    generator = np.random.default_rng(21)
    campaigns, false = 12, 0
    decided = 0
    for _ in range(campaigns):
        truths = [Truth(share) for share in SHARES]
        outcomes = simulated(2.0, truths, NOISES[noise], generator, blocks=80)
        assert all(outcome.significance_level == ALPHA / 4 for outcome in outcomes)
        false += any(
            is_wrong(outcome, share) for outcome, share in zip(outcomes, SHARES, strict=True)
        )
        decided += (outcomes[0].outcome, outcomes[3].outcome) == ("refuted", "confirmed")
    assert false <= binom.ppf(0.999, campaigns, ALPHA)
    assert decided >= 0.75 * campaigns


def test_a_cost_that_both_bear_is_confirmed_in_no_campaign() -> None:
    """An additive cost: the ratio shrinks by more than half, the seconds stay equal."""
    generator = np.random.default_rng(22)
    for _ in range(6):
        (outcome,) = simulated(2.4, [Truth(0.0, machinery_s=0.1)], NOISES["normal"], generator)
        assert outcome.outcome == "open"
        assert outcome.share is not None
        assert outcome.share > 0.5
        low, high = outcome.share_of_seconds_ci
        assert low is None or low < 0.2
        assert high is None or high > -0.2


def test_a_sham_takes_out_what_the_machinery_costs() -> None:
    generator = np.random.default_rng(23)
    nothing, everything = Truth(0.0, 0.02, has_sham=True), Truth(1.0, 0.02, has_sham=True)
    for _ in range(6):
        outcomes = simulated(2.4, [nothing, everything], NOISES["heavy"], generator)
        assert [outcome.outcome for outcome in outcomes] == ["refuted", "confirmed"]
        assert not misses(outcomes[0], 0.0)


def test_without_a_gap_no_share_is_given_and_the_reason_is() -> None:
    generator = np.random.default_rng(24)
    for _ in range(4):
        (outcome,) = simulated(1.0, [Truth(0.5)], NOISES["normal"], generator, blocks=30)
        assert (outcome.outcome, outcome.share, outcome.share_ci) == ("open", None, (None, None))
        assert outcome.unknown_because is not None
        assert "the gap between A and B is itself undecided after 30 blocks" in (
            outcome.unknown_because
        )
