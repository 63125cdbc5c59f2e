"""Strata of generalised full matching have the rows that they need, and are small."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from equipoise_matching import quick_match
from equipoise_matching.designs.design import LEFT_OUT
from equipoise_matching.shared.errors import UnusableInput

Floats = NDArray[np.float64]
ROUNDING = 1.0 + 1e-9


def distances_of(x: Floats) -> Floats:
    """Return the Mahalanobis distances of all pairs of rows, with the covariance of all rows."""
    precision = np.linalg.inv(np.atleast_2d(np.cov(x.T, bias=True)))
    differences = x[:, np.newaxis] - x[np.newaxis]
    squares = np.einsum("ijk,kl,ijl->ij", differences, precision, differences)
    return np.asarray(np.sqrt(np.maximum(squares, 0.0)))


def largest_distance(distances: Floats, strata: NDArray[np.int64]) -> float:
    """Return the largest distance of two rows of a stratum."""
    is_in = strata != LEFT_OUT
    together = (strata[:, np.newaxis] == strata) & is_in
    return float(distances[together].max())


def partitions(rows: int) -> Iterator[NDArray[np.int64]]:
    """Yield every division of the rows into strata, as the stratum of each row."""

    def grow(labels: list[int], count: int) -> Iterator[list[int]]:
        if len(labels) == rows:
            yield labels
            return
        for label in range(count + 1):
            yield from grow([*labels, label], max(count, label + 1))

    for labels in grow([], 0):
        yield np.array(labels)


def fits(strata: NDArray[np.int64], arm: NDArray[np.int64], needs: list[int], size: int) -> bool:
    """Return whether each stratum has the rows of each arm, and in all, that it needs."""
    counts = [np.bincount(strata[arm == index], minlength=strata.max() + 1) for index in (0, 1)]
    has_arms = all(int(count.min()) >= need for count, need in zip(counts, needs, strict=True))
    return has_arms and int(np.bincount(strata).min()) >= size


@pytest.mark.parametrize(
    ("needs", "size"), [([1, 1], 2), ([1, 1], 3), ([2, 1], 3)], ids=["1+1", "1+1 of 3", "2+1"]
)
def test_the_largest_distance_is_within_four_times_the_best(needs: list[int], size: int) -> None:
    all_partitions = list(partitions(7))
    ratios = []
    for seed in range(12):
        generator = np.random.default_rng(seed)
        x = generator.normal(size=(7, 2))
        arm = generator.permutation([0, 0, 0, 0, 1, 1, 1])
        distances = distances_of(x)
        best = min(
            largest_distance(distances, strata)
            for strata in all_partitions
            if fits(strata, arm, needs, size)
        )
        design = quick_match(arm, x, arm_sizes={0: needs[0], 1: needs[1]}, size=size)
        assert design.strata is not None
        assert fits(design.strata, arm, needs, size)
        ratios.append(largest_distance(distances, design.strata) / best)
        bound = design.details["Lower bound of the largest distance in a stratum"]
        assert bound <= best * ROUNDING
    assert 1.0 <= max(ratios) * ROUNDING and max(ratios) <= 4.0


@st.composite
def samples(draw: st.DrawFn) -> tuple[Floats, NDArray[np.int64]]:
    """Return covariates, with ties or without, and two to four arms of at least four rows."""
    generator = np.random.default_rng(draw(st.integers(0, 2**32)))
    rows, arms = draw(st.integers(30, 250)), draw(st.integers(2, 4))
    x = generator.normal(size=(rows, draw(st.integers(1, 4))))
    if draw(st.booleans()):
        x = np.round(x)
    x[0], x[1] = 3.0 * np.eye(1, x.shape[1]), -2.0
    arm = generator.integers(0, arms, rows)
    arm[: 4 * arms] = np.tile(np.arange(arms), 4)
    return x, arm


@settings(deadline=None, max_examples=60)
@given(samples(), st.integers(1, 3), st.integers(0, 4), st.sampled_from(["all", "estimand"]))
def test_each_stratum_has_the_rows_that_it_needs(
    sample: tuple[Floats, NDArray[np.int64]], need: int, more: int, target: Any
) -> None:
    x, arm = sample
    count = int(arm.max()) + 1
    size = need * count + more
    # The names of several arms are not numbers, so that one of them is the focal arm.
    labels = np.array(["a", "b", "c", "d"])[arm]
    design = quick_match(
        labels,
        x,
        estimand="ATT",
        focal="b",
        arm_sizes=need,
        size=size,
        metric="inverse_variance",
        target=target,
    )
    strata = design.strata
    assert strata is not None
    is_in = strata != LEFT_OUT
    assert is_in[arm == 1].all()
    if target == "all":
        assert is_in.all()
    for stratum in range(strata.max() + 1):
        counts = np.bincount(arm[strata == stratum], minlength=count)
        assert counts.min() >= need and counts.sum() >= size
    first_rows = [np.flatnonzero(strata == stratum)[0] for stratum in range(strata.max() + 1)]
    assert first_rows == sorted(first_rows)
    # Every arm has the weight of the focal arm.
    totals = np.bincount(arm, design.weights)
    assert totals == pytest.approx(np.full(count, (arm == 1).sum()))


def test_the_bound_holds_for_many_rows_and_arms() -> None:
    generator = np.random.default_rng(8)
    x, arm = generator.normal(size=(1500, 3)), generator.integers(0, 3, 1500)
    design = quick_match(arm, x, arm_sizes={0: 2}, size=6)
    assert design.strata is not None
    largest = largest_distance(distances_of(x), design.strata)
    seed_distance = design.details["Largest distance from a seed"]
    bound = design.details["Lower bound of the largest distance in a stratum"]
    assert bound <= largest * ROUNDING
    assert largest <= 2 * seed_distance * ROUNDING <= 4 * bound * ROUNDING**2


def test_the_lower_bound_is_the_largest_distance_to_a_needed_row() -> None:
    generator = np.random.default_rng(9)
    x, treat = generator.normal(size=(400, 2)), generator.random(400) < 0.3
    distances = distances_of(x)
    to_other_arm = np.where(treat[:, np.newaxis] != treat, distances, np.inf).min(axis=1)
    bound = quick_match(treat, x).details["Lower bound of the largest distance in a stratum"]
    assert bound == pytest.approx(to_other_arm.max(), rel=1e-9)


@pytest.mark.parametrize("size", [2, 5])
def test_the_order_of_the_rows_does_not_matter_without_ties(size: int) -> None:
    generator = np.random.default_rng(10)
    x, treat = generator.normal(size=(900, 3)), generator.random(900) < 0.3
    order = generator.permutation(900)
    plain, shuffled = (
        quick_match(treat[rows], x[rows], size=size).strata for rows in (np.arange(900), order)
    )
    assert plain is not None and shuffled is not None

    def members(strata: NDArray[np.int64], rows: NDArray[np.int64]) -> set[frozenset[int]]:
        groups = [rows[strata == stratum].tolist() for stratum in range(strata.max() + 1)]
        return {frozenset(group) for group in groups}

    assert members(shuffled, order) == members(plain, np.arange(900))


def test_the_number_of_threads_does_not_matter() -> None:
    generator = np.random.default_rng(11)
    x, treat = generator.normal(size=(4000, 4)), generator.random(4000) < 0.3
    one, two = (quick_match(treat, x, size=4, threads=threads).strata for threads in (1, 2))
    assert one is not None and two is not None
    assert (one == two).all()


@pytest.mark.parametrize("caliper", [0.2, 0.5, 1.0])
def test_no_two_rows_of_a_stratum_are_further_than_the_caliper(caliper: float) -> None:
    generator = np.random.default_rng(12)
    x, treat = generator.normal(size=(600, 2)), generator.random(600) < 0.4
    design = quick_match(treat, x, caliper=caliper)
    assert design.strata is not None
    assert 0 < largest_distance(distances_of(x), design.strata) <= caliper
    assert (design.weights[design.strata == LEFT_OUT] == 0).all()


def test_equal_rows_of_both_arms_are_one_stratum_at_distance_0() -> None:
    cells = np.array(list(itertools.product([0.0, 1.0], [0.0, 1.0, 2.0])))
    x = np.repeat(cells, 2000, axis=0)
    treat = np.tile([0, 1, 0, 0], 3000)
    design = quick_match(treat, x)
    assert design.strata is not None
    assert design.details["Largest distance from a seed"] == 0.0
    assert (x[np.unique(design.strata, return_index=True)[1]][design.strata] == x).all()


def test_weights_recover_the_effect_of_each_arm() -> None:
    generator = np.random.default_rng(13)
    rows = 20_000
    x = generator.normal(size=(rows, 2))
    arm = (generator.normal(size=rows) + x[:, 0]).clip(-1, 1).round().astype(int) + 1
    outcome = 2.0 * x[:, 0] + x[:, 1] + np.array([0.0, 1.0, 3.0])[arm]
    design = quick_match(arm, x)
    means = [
        np.average(outcome[arm == index], weights=design.weights[arm == index])
        for index in range(3)
    ]
    # Without weights, the differences are 2.6 and 6.1. The outcome has no other noise than x.
    assert np.diff(means) == pytest.approx([1.0, 2.0], abs=0.05)


GOOD: dict[str, Any] = {"treat": [1, 1, 0, 0, 0], "X": {"age": [25, 31, 24, 30, 52]}}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"treat": [1, 1, 1, 1, 1]}, "nothing to compare"),
        ({"treat": [1.0, np.nan, 0.0, 0.0, 1.0]}, "treat is missing in row 1"),
        ({"treat": [1, 0]}, "rows"),
        ({"X": {"age": [1.0, np.nan, 2.0, 3.0, 4.0]}}, "age is missing in row 1"),
        ({"X": {"age": [1.0, np.inf, 2.0, 3.0, 4.0]}}, "age is infinite in row 1"),
        ({"X": {"age": [1, 2, 3, 4, 5], "year": [7] * 5}}, "column 'year' is 7 in all rows"),
        ({"arm_sizes": 3}, "needs 3 rows of arm 1"),
        ({"arm_sizes": {2: 1}}, "names 2"),
        ({"arm_sizes": 0}, "arm_sizes"),
        ({"arm_sizes": None}, "arm_sizes of 0 is None"),
        ({"size": 6}, "size is 6"),
        ({"caliper": -0.5}, "caliper is -0.5"),
        ({"caliper": 1e-9}, "no stratum fits"),
        ({"metric": "euclid"}, "no metric"),
        ({"estimand": "ATX"}, "no estimand"),
        ({"estimand": "ATT", "focal": 7}, "focal is 7"),
        ({"focal": 1}, "cannot be used with ATE"),
        ({"treat": list("abcab"), "estimand": "ATT"}, "needs a focal arm"),
        ({"target": "some"}, "no target"),
    ],
)
def test_bad_input_is_one_error_with_a_hint(change: dict[str, Any], message: str) -> None:
    with pytest.raises(UnusableInput, match=message) as caught:
        quick_match(**(GOOD | change))
    assert caught.value.hint


def test_the_columns_of_a_frame_may_have_numbers_as_names() -> None:
    pandas = pytest.importorskip("pandas", reason="needs pandas")
    generator = np.random.default_rng(14)
    x, treat = generator.normal(size=(60, 2)), generator.random(60) < 0.4
    plain, framed = quick_match(treat, x).strata, quick_match(treat, pandas.DataFrame(x)).strata
    assert plain is not None and framed is not None
    assert (plain == framed).all()


def test_a_treatment_with_too_many_values_is_refused() -> None:
    with pytest.raises(UnusableInput, match="too many for arms"):
        quick_match(np.arange(100), np.arange(100.0))
