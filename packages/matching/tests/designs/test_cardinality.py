"""Cardinality and profile matching: the largest balanced samples, by brute force and by bounds."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from equipoise_matching import cardinality_match, profile_match
from equipoise_matching.designs import largest_sample
from equipoise_matching.designs.cardinality import pooled_spreads
from equipoise_matching.designs.design import Design
from equipoise_matching.designs.units import design_units
from equipoise_matching.shared.errors import UnusableInput
from packages.matching.tests.matching.nsw import lalonde

Floats = NDArray[np.float64]
GENERATOR = np.random.default_rng(39)
ROWS = 900
X = GENERATOR.normal(size=(ROWS, 4))
TREAT = (GENERATOR.random(ROWS) < 1 / (1 + np.exp(1 - X[:, 0] - X[:, 1] / 2))).astype(int)
TOLERANCE = 1e-6
"""Largest excess of a sum of deviations over its limit that the solver may leave."""
MAX_BRUTE_FORCE_ROWS = 12


def subsets(rows: int) -> NDArray[np.bool_]:
    """Return all subsets of the rows, shape (2**rows, rows)."""
    return np.array(list(itertools.product([False, True], repeat=rows)))


def largest_size(treat: Any, matrix: Floats, tolerance: float, ratio: int) -> int:
    """Return the largest number of treated rows of a balanced sample, by trying all samples."""
    units = design_units(treat, matrix)
    spreads = pooled_spreads(units)
    columns = matrix[:, spreads > 0] / spreads[spreads > 0]
    chosen = subsets(len(treat))
    treated, controls = (chosen[:, units.arm == arm].sum(axis=1) for arm in (1, 0))
    is_candidate = (treated > 0) & (controls == ratio * treated)
    if not is_candidate.any():
        return 0
    chosen, treated = chosen[is_candidate], treated[is_candidate]
    signs = np.where(units.treated, 1.0, -1.0 / ratio)
    sums = np.abs(chosen @ (columns * signs[:, np.newaxis]))
    is_balanced = (sums <= tolerance * treated[:, np.newaxis] + TOLERANCE).all(axis=1)
    return int(treated[is_balanced].max(initial=0))


@st.composite
def small_tables(draw: st.DrawFn) -> tuple[Any, Floats]:
    rows = draw(st.integers(4, MAX_BRUTE_FORCE_ROWS))
    treat = np.array(draw(st.lists(st.integers(0, 1), min_size=rows, max_size=rows)))
    treat[:2] = (0, 1)
    columns = draw(st.integers(1, 3))
    seed = draw(st.integers(0, 10_000))
    return treat, np.random.default_rng(seed).integers(0, 9, size=(rows, columns)).astype(float)


def check_balance(design: Design, tolerance: float) -> None:
    units, chosen = design.units, design.weights > 0
    spreads = pooled_spreads(units)
    means = [units.matrix[chosen & (units.arm == arm)].mean(axis=0) for arm in (0, 1)]
    assert (np.abs(means[1] - means[0]) <= (tolerance + 2 * TOLERANCE) * spreads).all()


@settings(max_examples=60, deadline=None)
@given(
    table=small_tables(),
    tolerance=st.sampled_from([0.0, 0.02, 0.1, 0.5]),
    ratio=st.sampled_from([1, 1, 2]),
)
def test_no_sample_of_a_small_table_is_larger(
    table: tuple[Any, Floats], tolerance: float, ratio: int
) -> None:
    treat, matrix = table
    size = largest_size(treat, matrix, tolerance, ratio)
    try:
        design = cardinality_match(treat, matrix, tolerances=tolerance, ratio=ratio)
    except UnusableInput as error:
        is_separated = "one value in all treated rows" in error.what
        assert is_separated or (size == 0 and "no sample of" in error.what)
        return
    assert int(design.weights[treat == 1].sum()) == size
    assert int(design.weights[treat == 0].sum()) == ratio * size
    check_balance(design, tolerance)
    assert design.details["Upper bound"] == size
    assert design.details["Proof"] != "none"


@settings(max_examples=40, deadline=None)
@given(table=small_tables(), tolerance=st.sampled_from([0.05, 0.3]), target=st.integers(2, 6))
def test_no_sample_near_a_profile_is_larger(
    table: tuple[Any, Floats], tolerance: float, target: int
) -> None:
    treat, matrix = table
    spreads = pooled_spreads(design_units(treat, matrix))
    is_constant = (spreads == 0) & (matrix != target).any(axis=0)
    sizes = []
    for arm in (0, 1):
        rows = matrix[treat == arm]
        chosen = subsets(len(rows))[1:]
        count = chosen.sum(axis=1)
        deviations = np.abs(chosen @ ((rows - target)[:, spreads > 0] / spreads[spreads > 0]))
        is_near = (deviations <= tolerance * count[:, np.newaxis] + TOLERANCE).all(axis=1)
        sizes.append(0 if is_constant.any() else int(count[is_near].max(initial=0)))
    profile = [float(target)] * matrix.shape[1]
    if not all(sizes):
        with pytest.raises(UnusableInput, match="the arm"):
            profile_match(treat, matrix, profile, tolerances=tolerance)
        return
    design = profile_match(treat, matrix, profile, tolerances=tolerance)
    assert [int(design.weights[treat == arm].sum()) for arm in (0, 1)] == sizes


def test_a_rounded_sample_as_large_as_the_relaxation_needs_no_branch_and_bound() -> None:
    design = cardinality_match(TREAT, X)
    assert design.details["Proof"] == "the bound of the linear relaxation"
    assert design.details["Upper bound"] == int(design.weights[TREAT == 1].sum())
    check_balance(design, 0.05)
    assert "Warning" not in design.details


def test_branch_and_bound_finds_the_size_of_the_rounded_sample(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rounded = cardinality_match(TREAT, X)
    monkeypatch.setattr(largest_sample, "MAX_ROUNDED_SIZES", 0)
    branched = cardinality_match(TREAT, X)
    assert branched.details["Upper bound"] == rounded.details["Upper bound"]
    assert branched.weights.sum() == rounded.weights.sum()
    check_balance(branched, 0.05)


def test_branch_and_bound_proves_a_size_below_the_bound_of_the_relaxation() -> None:
    # Shares of all rows are balanced: 10 · 1 is 4 · 1 + 7 · 6/7. Of whole rows, only 5 equals 5.
    design = cardinality_match([1, 1, 1, 0, 0, 0], {"x": [0, 10, 5, 4, 7, 5]}, tolerances=0)
    assert design.weights.tolist() == [0.0, 0.0, 1.0, 0.0, 0.0, 1.0]
    assert design.details["Proof"] == "branch and bound"
    assert design.details["Upper bound"] == 1


def test_a_tighter_tolerance_never_gives_a_larger_sample() -> None:
    sizes = [
        cardinality_match(TREAT, X, tolerances=tolerance).weights.sum()
        for tolerance in (0.5, 0.1, 0.01)
    ]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] > sizes[-1]


def test_without_imbalance_all_rows_of_the_smaller_arm_stay() -> None:
    generator = np.random.default_rng(3)
    matrix = generator.normal(size=(500, 3))
    treat = (np.arange(500) < 150).astype(int)
    design = cardinality_match(treat, matrix, tolerances=0.3, ratio=2)
    assert int(design.weights[treat == 1].sum()) == 150
    assert int(design.weights[treat == 0].sum()) == 300


def test_lalondes_experiment_keeps_nearly_all_treated_rows() -> None:
    data = lalonde()
    names = ("age", "educ", "black", "hisp", "married", "nodegr", "re74", "re75")
    columns = {name: data[name] for name in names}
    design = cardinality_match(data["treat"], columns, tolerances=0.05)
    check_balance(design, 0.05)
    assert design.details["Upper bound"] == int(design.weights[data["treat"] == 1].sum()) == 177


def test_tolerances_can_differ_by_column() -> None:
    design = cardinality_match(TREAT, X, tolerances={"x0": 0.0001, "x1": np.inf})
    units, chosen = design.units, design.weights > 0
    gaps = [
        abs(
            units.matrix[chosen & units.treated, column].mean()
            - units.matrix[chosen & ~units.treated, column].mean()
        )
        / pooled_spreads(units)[column]
        for column in range(4)
    ]
    assert gaps[0] <= 0.0001 + TOLERANCE
    assert gaps[1] > 0.05
    assert max(gaps[2:]) <= 0.05 + TOLERANCE


def test_samples_of_several_arms_have_the_means_of_the_profile() -> None:
    generator = np.random.default_rng(4)
    matrix = generator.normal(size=(1200, 3))
    arm = np.argmax(matrix + generator.gumbel(size=(1200, 3)) * 2, axis=1)
    labels = np.array(["a", "b", "c"])[arm]
    design = profile_match(labels, matrix, matrix.mean(axis=0), tolerances=0.02)
    for label in "abc":
        means = matrix[(labels == label) & (design.weights > 0)].mean(axis=0)
        gaps = np.abs(means - matrix.mean(axis=0)) / pooled_spreads(design.units)
        assert (gaps <= 0.02 + TOLERANCE).all()
        assert design.details[f"{label}, proof"] != "none"
    assert design.weights.sum() > 600


def test_columns_without_a_target_are_left_out() -> None:
    alone = profile_match(TREAT, X[:, :1], [0.2])
    design = profile_match(TREAT, X, {"x0": 0.2})
    assert design.weights.sum() == alone.weights.sum()


def test_a_sample_that_is_not_proven_largest_warns(monkeypatch: pytest.MonkeyPatch) -> None:
    start = largest_sample.LargestSample(np.ones(4, dtype=np.bool_), 90, 100, "branch and bound")
    monkeypatch.setattr("equipoise_matching.designs.cardinality.largest_sample", lambda *_: start)
    matrix = np.array([[0.0], [1.0], [0.5], [0.7]])
    design = cardinality_match([1, 1, 0, 0], matrix)
    assert design.details["Proof"] == "none"
    assert "90 of at most 100 were found, a gap of 10.00%" in design.summary()


def test_the_same_call_gives_the_same_sample() -> None:
    first, second = (cardinality_match(TREAT, X, tolerances=0.01) for _ in range(2))
    np.testing.assert_array_equal(first.weights, second.weights)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tolerances": -0.1}, "the tolerance of x0 is -0.1"),
        ({"tolerances": np.nan}, "the tolerance of x0 is nan"),
        ({"tolerances": "small"}, "tolerances is 'small'"),
        ({"tolerances": [0.1, 0.2]}, "tolerances has 2 values and X has 4 columns"),
        ({"tolerances": {"age": 0.1}}, "tolerances names 'age', which is not a column of X"),
        ({"ratio": 0}, "ratio is 0"),
        ({"ratio": 1.5}, "ratio is 1.5"),
        ({"ratio": 899}, "no sample of 899 controls for each treated row"),
        ({"time_limit": 0}, "time_limit is 0"),
        ({"time_limit": np.inf}, "time_limit is inf"),
        ({"gap": 1}, "gap is 1"),
        ({"X": np.column_stack([X, TREAT])}, "x4 has one value in all treated rows and another"),
        ({"X": np.where(X > 2, np.nan, X)}, "x0 is missing in rows"),
        ({"treat": np.zeros(ROWS)}, "treat has one value in all 900 rows"),
        ({"X": X + 1000 * TREAT[:, np.newaxis]}, "no sample of 1 control for each treated row"),
    ],
)
def test_an_error_names_the_fault(options: dict[str, Any], message: str) -> None:
    arguments: dict[str, Any] = {"treat": TREAT, "X": X}
    with pytest.raises(UnusableInput, match=message) as raised:
        cardinality_match(**(arguments | options))
    assert raised.value.hint


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"target": [0, 0]}, "target has 2 values and X has 4 columns"),
        ({"target": {"age": 3}}, "target names 'age', which is not a column of X"),
        ({"target": {}}, "target names no column"),
        ({"target": {"x0": np.nan}}, "the target of x0 is nan"),
        ({"target": {"x0": "old"}}, "the target of x0 is 'old'"),
        ({"target": {"x0": 50}}, "all rows of the arm Controls are beyond the target of x0"),
        ({"target": {"x4": 0.5}, "X": np.column_stack([X, TREAT])}, "beyond the target of x4"),
        ({"target": [0] * 4, "time_limit": -1}, "time_limit is -1"),
    ],
)
def test_an_error_of_a_profile_names_the_fault(options: dict[str, Any], message: str) -> None:
    arguments: dict[str, Any] = {"treat": TREAT, "X": X}
    with pytest.raises(UnusableInput, match=message) as raised:
        profile_match(**(arguments | options))
    assert raised.value.hint
