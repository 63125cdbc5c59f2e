"""The benchmark of adjusting by a covariate draws what it says, and fails where a claim breaks."""

from __future__ import annotations

import math

import numpy as np
import pytest

from benchmarks.validity.covariates import draw, saved


@pytest.mark.parametrize("memory", [0.0, 0.9])
@pytest.mark.parametrize("explained", [0.0, 0.5, 0.8])
def test_the_covariate_explains_the_stated_part_of_the_variance(
    explained: float, memory: float
) -> None:
    one = draw(np.random.default_rng(1), 20_000, explained=explained, percent=3.0, memory=memory)
    differences = np.log(one.candidate) - np.log(one.baseline)
    readings = one.covariates[:, 1, 0] - one.covariates[:, 0, 0]
    assert float(np.mean(differences)) == pytest.approx(math.log(1.03), abs=1e-3)
    assert float(np.std(differences)) == pytest.approx(0.02 * math.sqrt(2), rel=0.03)
    assert float(np.corrcoef(differences, readings)[0, 1] ** 2) == pytest.approx(
        explained, abs=0.02
    )


def test_what_the_candidate_leaves_behind_is_in_the_readings_and_not_in_the_times() -> None:
    ways = [
        draw(np.random.default_rng(2), 20_000, explained=0.5, percent=0.0, left_behind=left)
        for left in (0.0, 1.0)
    ]
    assert np.array_equal(ways[0].candidate, ways[1].candidate)
    moved = ways[1].covariates - ways[0].covariates
    # Half of all trials follow the candidate; half of the difference is within blocks.
    assert float(np.mean(moved)) == pytest.approx(math.sqrt(2) / 2, rel=0.03)
    within = moved[:, 1, 0] - moved[:, 0, 0]
    assert float(np.mean(within)) == pytest.approx(-math.sqrt(2) / 2, rel=0.05)


def test_the_table_of_blocks_holds_both_engines_with_and_without() -> None:
    row = saved(0.5, 40, seed=1)
    assert row.with_it < 0.75 * row.without
    assert row.with_it < 0.7 * row.first_release
    assert row.error > 0
