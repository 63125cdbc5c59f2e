"""Coarsened exact matching: bins, strata, weights, the imbalance L1, and pairs within strata."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pandas
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise_matching import cem
from equipoise_matching.designs import coarsening, stratum_pairs
from equipoise_matching.designs.design import LEFT_OUT, Design
from equipoise_matching.designs.strata import number_strata
from equipoise_matching.shared.errors import UnusableInput

GENERATOR = np.random.default_rng(37)
ROWS = 400
X = {
    "age": GENERATOR.normal(40, 10, ROWS).round(1),
    "educ": GENERATOR.integers(6, 17, ROWS),
    "married": GENERATOR.integers(0, 2, ROWS),
}
TREAT = (GENERATOR.random(ROWS) < 1 / (1 + np.exp((50 - X["age"]) / 8))).astype(int)
THREE_ARMS = np.array(["low", "medium", "high"])[GENERATOR.integers(0, 3, ROWS)]


def strata_of(design: Design) -> Any:
    assert design.strata is not None
    return design.strata


@st.composite
def tables(draw: st.DrawFn) -> tuple[Any, dict[str, Any]]:
    """Return a treatment with both arms, and columns of few numbers and texts."""
    rows = draw(st.integers(4, 40))
    treat = np.array(draw(st.lists(st.integers(0, 1), min_size=rows, max_size=rows)))
    treat[:2] = (0, 1)
    number = st.sampled_from([-1e300, -2.0, 0.0, 0.5, 1.0, 3.0, 1e300])
    columns: dict[str, Any] = {
        "number": draw(st.lists(number, min_size=rows, max_size=rows)),
        "text": draw(st.lists(st.sampled_from("abc"), min_size=rows, max_size=rows)),
    }
    return treat, columns


@settings(max_examples=60, deadline=None)
@given(table=tables(), cutpoints=st.sampled_from([None, "sturges", "scott", "fd", 1, 3, [0, 1]]))
def test_rows_of_a_stratum_share_every_bin_and_both_arms(
    table: tuple[Any, dict[str, Any]], cutpoints: Any
) -> None:
    treat, columns = table
    numbers = np.array(columns["number"])
    bins, _ = coarsening.bin_codes(numbers, cutpoints, "number")
    keys = list(zip(bins.tolist(), columns["text"], strict=True))
    arms_of: dict[Any, set[int]] = {}
    for key, arm in zip(keys, treat.tolist(), strict=True):
        arms_of.setdefault(key, set()).add(arm)
    complete = {key for key, arms in arms_of.items() if len(arms) == 2}
    if not complete:
        with pytest.raises(UnusableInput, match="has rows of both arms"):
            cem(treat, columns, cutpoints=cutpoints)
        return
    strata = strata_of(cem(treat, columns, cutpoints=cutpoints))
    assert [key in complete for key in keys] == (strata != LEFT_OUT).tolist()
    for first, second in itertools.combinations(range(len(keys)), 2):
        if keys[first] in complete and keys[second] in complete:
            assert (keys[first] == keys[second]) == (strata[first] == strata[second])


@settings(max_examples=40, deadline=None)
@given(table=tables(), estimand=st.sampled_from(["ATT", "ATC", "ATE"]))
def test_the_weights_of_each_arm_sum_to_the_rows_of_the_estimand_in_each_stratum(
    table: tuple[Any, dict[str, Any]], estimand: Any
) -> None:
    treat, columns = table
    try:
        design = cem(treat, columns, cutpoints=2, estimand=estimand)
    except UnusableInput:
        return
    strata = strata_of(design)
    for stratum in range(int(strata.max()) + 1):
        is_inside = strata == stratum
        wanted = {"ATT": treat == 1, "ATC": treat == 0, "ATE": treat >= 0}[estimand]
        for arm in (0, 1):
            total = design.weights[is_inside & (treat == arm)].sum()
            assert total == pytest.approx((is_inside & wanted).sum())
    assert (design.weights[strata == LEFT_OUT] == 0).all()


def test_bins_have_the_published_numbers() -> None:
    # 100 values from 0 to 99: log2(100) + 1 = 7.6; sd 29.01 and interquartile range 49.5.
    values = np.arange(100.0)
    assert [coarsening.bin_codes(values, rule, "x")[1] for rule in ("sturges", "scott", "fd")] == [
        8,
        5,
        5,
    ]


def test_a_value_at_a_cut_point_is_in_the_bin_above() -> None:
    codes, count = coarsening.bin_codes(np.array([1.0, 2.0, 3.0, 4.0]), [4, 2, 2], "x")
    assert (codes.tolist(), count) == ([0, 1, 1, 2], 3)


def test_bins_of_equal_width_divide_a_range_that_overflows() -> None:
    codes, count = coarsening.bin_codes(np.array([-1e308, -1e307, 1e307, 1e308]), 4, "x")
    assert (codes.tolist(), count) == ([0, 1, 2, 3], 4)


def test_without_an_interquartile_range_fd_uses_scotts_rule() -> None:
    values = np.concatenate([np.zeros(90), np.arange(1.0, 11.0)])
    assert (
        coarsening.bin_codes(values, "fd", "x")[1] == coarsening.bin_codes(values, "scott", "x")[1]
    )


def test_columns_that_a_mapping_does_not_name_take_sturges() -> None:
    mapped = cem(TREAT, X, cutpoints={"age": 5})
    spelled = cem(TREAT, X, cutpoints={"age": 5, "educ": "sturges", "married": "sturges"})
    assert mapped.strata is not None
    np.testing.assert_array_equal(mapped.strata, strata_of(spelled))


def test_none_matches_on_the_values_themselves() -> None:
    strata = strata_of(cem(TREAT, {"educ": X["educ"]}, cutpoints=None))
    for stratum in range(int(strata.max()) + 1):
        assert len(set(X["educ"][strata == stratum].tolist())) == 1
    assert int(strata.max()) + 1 == len(set(X["educ"].tolist()))


def test_grouped_categories_count_as_one() -> None:
    color = np.array(["red", "green", "blue", "grey"])
    treat = [1, 0, 1, 0]
    design = cem(treat, {"color": color}, grouping={"color": [["red", "green"], ["blue", "grey"]]})
    assert strata_of(design).tolist() == [1, 1, 0, 0]
    with pytest.raises(UnusableInput, match="none of the 4 strata"):
        cem(treat, {"color": color})


def test_numbers_can_be_grouped_as_categories() -> None:
    design = cem([1, 0, 1, 0], {"code": [1, 2, 3, 4]}, grouping={"code": [[1, 4], [2, 3]]})
    assert strata_of(design).tolist() == [0, 1, 1, 0]


def test_frames_mappings_and_arrays_give_the_same_design() -> None:
    frame = pandas.DataFrame(X)
    designs = [cem(TREAT, table) for table in (X, frame, frame.to_numpy(), frame.to_numpy(object))]
    for design in designs[1:]:
        np.testing.assert_array_equal(strata_of(design), strata_of(designs[0]))


def test_the_order_of_the_rows_does_not_matter() -> None:
    order = np.random.default_rng(1).permutation(ROWS)
    shuffled = cem(TREAT[order], {name: column[order] for name, column in X.items()})
    np.testing.assert_array_equal(strata_of(shuffled), strata_of(cem(TREAT, X))[order])


def test_strata_of_several_arms_have_every_arm() -> None:
    design = cem(THREE_ARMS, X, cutpoints=3, estimand="ATE")
    strata = strata_of(design)
    assert design.units.arms == ("high", "low", "medium")
    for stratum in range(int(strata.max()) + 1):
        assert set(THREE_ARMS[strata == stratum]) == {"low", "medium", "high"}
    sums = [design.weights[THREE_ARMS == arm].sum() for arm in design.units.arms]
    assert sums == pytest.approx([(strata != LEFT_OUT).sum()] * 3)
    focal = cem(THREE_ARMS, X, cutpoints=3, focal="medium")
    assert set(focal.weights[(THREE_ARMS == "medium") & (strata_of(focal) >= 0)]) == {1.0}


def test_the_imbalance_is_0_within_equal_arms_and_1_without_a_common_cell() -> None:
    value = np.repeat([1.0, 2.0, 3.0], 20)
    same = cem(np.tile([0, 1], 30), {"value": value}, cutpoints=None)
    assert same.details["Imbalance L1 before"] == pytest.approx(0, abs=1e-12)
    shifted = np.where(np.arange(60) < 40, 0, 1)
    shifted[0] = 1
    apart = cem(shifted, {"value": value}, cutpoints=1)
    # One of 21 treated rows is in the cell of the controls with 1, which are 19 of 39.
    assert apart.details["Imbalance L1 before"] == pytest.approx(20 / 21)


def test_the_imbalance_of_several_arms_is_that_of_the_worst_two() -> None:
    value = {"value": np.tile([1.0, 2.0], 30)}
    arms = np.repeat(["a", "b", "c"], 20)
    arms[[0, 2, 4, 6]] = "c"
    design = cem(arms, value, cutpoints=None, estimand="ATE")
    # Shares of value 1: a 6 of 16, b 10 of 20, c 14 of 24.
    assert design.details["Imbalance L1 before"] == pytest.approx(14 / 24 - 6 / 16)
    assert design.details["Imbalance L1 after"] == pytest.approx(0, abs=1e-12)


def test_matching_on_few_values_removes_the_imbalance() -> None:
    columns = {"educ": X["educ"], "married": X["married"]}
    design = cem(TREAT, columns, cutpoints=None)
    assert design.details["Imbalance L1 before"] > 0.1
    assert design.details["Imbalance L1 after"] == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_pairs_have_the_smallest_total_distance_of_all_pairings(seed: int) -> None:
    generator = np.random.default_rng(seed)
    treat = np.array([1, 1, 1, 0, 0, 0, 0, 0] if seed % 2 else [1, 1, 1, 1, 1, 0, 0, 0])
    matrix = generator.normal(size=(8, 2))
    design = cem(treat, matrix, cutpoints=1, k2k=True)
    points = stratum_pairs.whitened(matrix)
    groups = [np.flatnonzero(treat == arm) for arm in (0, 1)]
    smaller, larger = sorted(groups, key=len)

    def total(partners: Any) -> float:
        return float(np.sqrt(((points[smaller] - points[partners]) ** 2).sum(axis=1)).sum())

    best = min(total(list(chosen)) for chosen in itertools.permutations(larger, len(smaller)))
    pairs = design.pairs()
    assert len(pairs) == len(smaller)
    assert (treat[pairs] == [1, 0]).all()
    distances = np.sqrt(((points[pairs[:, 0]] - points[pairs[:, 1]]) ** 2).sum(axis=1))
    assert distances.sum() == pytest.approx(best)


def test_pairs_stay_within_their_stratum() -> None:
    cells = strata_of(cem(TREAT, X, cutpoints=3))
    design = cem(TREAT, X, cutpoints=3, k2k=True)
    pairs = design.pairs()
    np.testing.assert_array_equal(cells[pairs[:, 0]], cells[pairs[:, 1]])
    counts = [np.bincount(cells[(cells >= 0) & (arm == TREAT)]) for arm in (0, 1)]
    assert len(pairs) == np.minimum(*counts).sum()
    assert len(np.unique(pairs)) == 2 * len(pairs)


def test_large_strata_are_paired_in_the_order_of_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stratum_pairs, "MAX_ASSIGNMENT_CELLS", 10)
    treat = np.array([1, 1, 1, 0, 0, 0, 0, 0])
    values = np.array([5.0, 4.0, 9.0, 4.4, 4.9, 8.0, 1.0, 20.0])
    design = cem(treat, {"value": values}, cutpoints=1, k2k=True)
    assert design.pairs().tolist() == [[0, 4], [1, 3], [2, 5]]
    assert design.details["Strata paired in the order of the rows"] == 1


def test_each_row_of_the_smaller_arm_takes_the_nearest_row_that_remains(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(stratum_pairs, "MAX_ASSIGNMENT_CELLS", 10)
    matrix = np.random.default_rng(8).normal(size=(90, 3)) @ [[1, 2, 0], [0, 3, 1], [0, 0, 9]]
    treat = (np.arange(90) % 3 == 0).astype(int)
    points = stratum_pairs.whitened(matrix)
    remaining = np.flatnonzero(treat == 0).tolist()
    expected = []
    for row in np.flatnonzero(treat == 1).tolist():
        nearest = min(
            remaining, key=lambda other: float(((points[row] - points[other]) ** 2).sum())
        )
        remaining.remove(nearest)
        expected.append([row, nearest])
    assert cem(treat, matrix, cutpoints=1, k2k=True).pairs().tolist() == expected


def test_whitened_coordinates_have_the_mahalanobis_distance() -> None:
    matrix = np.random.default_rng(2).normal(size=(30, 3)) @ [[1, 2, 0], [0, 3, 1], [0, 0, 1e6]]
    inverse = np.linalg.inv(np.cov(matrix.T))
    points = stratum_pairs.whitened(np.column_stack([matrix, matrix[:, 0], np.ones(30)]))
    for first, second in ((0, 1), (5, 20), (29, 3)):
        difference = matrix[first] - matrix[second]
        distance = float(((points[first] - points[second]) ** 2).sum())
        assert distance == pytest.approx(difference @ inverse @ difference)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.lists(st.integers(0, 2**61), min_size=12, max_size=12), min_size=1, max_size=6))
def test_codes_of_any_size_are_numbered_without_overflow(codes: list[list[int]]) -> None:
    columns = [np.array(column, dtype=np.int64) for column in codes]
    strata, count = number_strata(columns)
    keys = list(zip(*codes, strict=True))
    ordered = sorted(set(keys))
    assert strata.tolist() == [ordered.index(key) for key in keys]
    assert count == len(ordered)


def test_a_text_column_of_many_values_is_matched_exactly() -> None:
    school = np.array([f"school {index // 4}" for index in range(ROWS)])
    treat = np.tile([0, 1], ROWS // 2)
    design = cem(treat, {"school": school})
    assert int(strata_of(design).max()) + 1 == ROWS // 4
    assert len(design.units.names) == 20


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"X": {"age": X["age"], "educ": [1, 2]}}, "educ has 2 rows and X has 400"),
        ({"X": {"age": np.where(X["age"] > 50, np.nan, X["age"])}}, "age is missing in rows"),
        ({"X": {"age": [None, *"a" * (ROWS - 1)]}}, "age is missing in row 0"),
        ({"X": {}}, "X has no columns"),
        ({"X": [[1, 2], [3]] * 4}, "X has rows or cells of unequal lengths"),
        ({"X": {"a": [["x"], *"b" * (ROWS - 1)]}}, "unequal lengths"),
        ({"treat": np.zeros(ROWS)}, "treat has one value in all 400 rows"),
        ({"cutpoints": {"wage": 3}}, "cutpoints names 'wage', which is not a column"),
        ({"cutpoints": "quartiles"}, "there is no rule 'quartiles'"),
        ({"cutpoints": 0}, "cutpoints of age: 0 is not a number of bins"),
        ({"cutpoints": 2.5}, "cutpoints of age: 2.5 is not a list of finite numbers"),
        ({"cutpoints": {"age": [1, np.inf]}}, "is not a list of finite numbers"),
        ({"cutpoints": True}, "is not a list of finite numbers"),
        ({"grouping": {"wage": []}}, "grouping names 'wage', which is not a column"),
        ({"grouping": [["a"]]}, "grouping is of type list"),
        ({"grouping": {"educ": [[99]]}}, "grouping of educ names 99, which does not occur"),
        ({"grouping": {"educ": [[8], [8]]}}, "grouping of educ names 8 twice"),
        ({"grouping": {"educ": ["89"]}}, "is not a list of categories"),
        (
            {"grouping": {"educ": [[8, 9]]}, "cutpoints": {"educ": 2}},
            "cutpoints names the column educ, which has no bins",
        ),
        ({"estimand": "ATX"}, "there is no estimand 'ATX'"),
        ({"focal": 2}, "focal is 2, which is not an arm"),
        ({"focal": 1, "estimand": "ATE"}, "focal=1 cannot be used with the ATE"),
        ({"treat": THREE_ARMS}, "the ATT needs the arm that the effect is about"),
        (
            {"treat": THREE_ARMS, "estimand": "ATE", "k2k": True},
            "k2k pairs rows of two arms, but there are 3",
        ),
        ({"X": {"id": np.arange(ROWS)}, "cutpoints": None}, "none of the 400 strata"),
        ({"X": {"id": [f"id {row}" for row in range(ROWS)]}}, "id alone has 400 bins"),
    ],
)
def test_an_error_names_the_fault_and_its_place(options: dict[str, Any], message: str) -> None:
    arguments: dict[str, Any] = {"treat": TREAT, "X": X}
    with pytest.raises(UnusableInput, match=message) as raised:
        cem(**(arguments | options))
    assert raised.value.hint


def test_a_constant_column_is_one_bin() -> None:
    design = cem(TREAT, {**X, "one": np.ones(ROWS)}, k2k=True)
    np.testing.assert_array_equal(strata_of(design), strata_of(cem(TREAT, X, k2k=True)))
