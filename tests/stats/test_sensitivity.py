"""What can be seen in so many blocks, against campaigns with known truth."""

from __future__ import annotations

import math

import numpy as np

from equipoise.stats.sensitivity import FOUND_IN, smallest_effect
from tests.stats.simulated import at_least, campaign, white

ALPHA = 0.05


def null_differences(sd: float, blocks: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.random.default_rng(1).normal(0.0, sd * math.sqrt(2.0), blocks)


def test_the_effect_that_it_names_is_found_as_often_as_it_says() -> None:
    effect = smallest_effect(null_differences(0.02, 2400), 100, alpha=ALPHA, seed=3)
    assert effect is not None
    generator = np.random.default_rng(9)
    found = sum(
        campaign(white(0.02), generator, 100, effect).engine.blocks_to_exclude(0.0, ALPHA)
        is not None
        for _ in range(300)
    )
    # The effect itself rests on 60 campaigns: allow its share to be off by three errors.
    assert found >= at_least(300, FOUND_IN - 3 * math.sqrt(0.09 / 60))


def test_it_shrinks_with_the_noise_and_with_the_time() -> None:
    noisy, quiet = (
        smallest_effect(null_differences(sd, 2400), 200, alpha=ALPHA, seed=3) for sd in (0.04, 0.01)
    )
    assert noisy is not None
    assert quiet is not None
    assert 3.5 < noisy / quiet < 4.5
    longer = smallest_effect(null_differences(0.04, 2400), 20_000, alpha=ALPHA, seed=3)
    assert longer is not None
    assert longer < noisy / 5


def test_what_cannot_be_seen_is_not_named() -> None:
    assert smallest_effect(null_differences(0.02, 2400), 7, alpha=ALPHA, seed=3) is None
    assert smallest_effect(null_differences(5.0, 2400), 20, alpha=ALPHA, seed=3) is None
    assert smallest_effect(null_differences(0.02, 5), 100, alpha=ALPHA, seed=3) is None
