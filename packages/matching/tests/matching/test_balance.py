"""Balance before and after matching: R's answers, the tables, and bad input."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import polars
import pytest

from equipoise_matching.matching.balance import Balance, match_balance
from equipoise_matching.matching.univariate import UnivariateBalance
from equipoise_matching.shared.errors import UnusableInput
from packages.matching.tests.matching.golden import answers
from packages.matching.tests.matching.r_balance import Pairs, data, nearest

R_NAMES = {
    "sdiff": "sdiff",
    "sdiff_pooled": "sdiff_pooled",
    "mean_tr": "mean_treated",
    "mean_co": "mean_control",
    "var_tr": "variance_treated",
    "var_co": "variance_control",
    "var_ratio": "variance_ratio",
    "p_value": "t_p_value",
}
ANSWERS: dict[str, Any] = answers("balance")
CASES = [
    (name, side, place)
    for name, case in ANSWERS.items()
    for side in ("before", "after")
    for place in range(len(case["vars"]))
]


def balance_of(name: str, **more: Any) -> Balance:
    frame = data(name)
    case = ANSWERS[name]
    covariates = [variable for variable in case["vars"] if variable in frame]
    pairs = nearest(frame[covariates].to_numpy(dtype=float), frame["treat"].to_numpy() == 1)
    formula = "treat ~ " + " + ".join(variable.replace("^", "**") for variable in case["vars"])
    return match_balance(formula, frame, pairs, boot=0, **more)


@pytest.mark.parametrize(("name", "side", "place"), CASES)
def test_every_number_of_r_is_met(name: str, side: str, place: int) -> None:
    balance = balance_of(name, r_compatible=True)
    ours: UnivariateBalance = getattr(balance, side)[place]
    r = ANSWERS[name][side][place]
    for theirs, field in R_NAMES.items():
        assert getattr(ours, field) == pytest.approx(r[theirs], rel=1e-8, abs=1e-12), field
    for theirs, quantiles in (("qq", ours.ecdf_differences), ("qq_raw", ours.quantile_differences)):
        expected = (r[theirs]["meandiff"], r[theirs]["mediandiff"], r[theirs]["maxdiff"])
        assert (quantiles.mean, quantiles.median, quantiles.max) == pytest.approx(
            expected, rel=1e-8, abs=1e-12
        )
    if "ks_p" in r:
        assert ours.ks is not None
        assert ours.ks.statistic == pytest.approx(r["ks_stat"], rel=1e-8, abs=1e-12)
        assert ours.ks.p_value == pytest.approx(r["ks_p"], rel=1e-8, abs=1e-12)
    else:
        assert ours.ks is None, "two values have no KS test"


@pytest.mark.parametrize("name", list(ANSWERS))
def test_the_smallest_p_values_are_those_of_r(name: str) -> None:
    balance, r = balance_of(name, r_compatible=True), ANSWERS[name]
    assert balance.smallest_before.value == pytest.approx(r["bm_smallest"], rel=1e-8)
    assert balance.smallest_after is not None
    assert balance.smallest_after.value == pytest.approx(r["am_smallest"], rel=1e-8)


def test_the_smallest_p_value_names_its_variable_and_test() -> None:
    balance = balance_of("cont", r_compatible=True)
    assert balance.smallest_before.tests == (("x3", "t"),)
    assert balance.smallest_after is not None
    assert balance.smallest_after.tests == (("I(x1 ** 2)", "t"),)


def test_without_ties_only_the_pooled_difference_is_not_that_of_r() -> None:
    frame = data("cont")
    tied = nearest(frame[["x1", "x2"]].to_numpy(), frame["treat"].to_numpy() == 1)
    _, first = np.unique(tied.treated_index, return_index=True)
    single = Pairs(tied.treated_index[first], tied.control_index[first], np.ones(len(first)))
    ours, r = (
        match_balance("treat ~ x1 + x3", frame, single, boot=50, seed=1, r_compatible=compatible)
        for compatible in (False, True)
    )
    assert ours.after is not None and r.after is not None
    for our_balance, r_balance in zip(ours.after, r.after, strict=True):
        assert our_balance.sdiff_pooled != r_balance.sdiff_pooled
        assert replace(our_balance, sdiff_pooled=0.0) == replace(r_balance, sdiff_pooled=0.0)


def test_ties_count_by_their_weights_and_r_counts_rows() -> None:
    ours, r = balance_of("disc").of("c")[1], balance_of("disc", r_compatible=True).of("c")[1]
    assert ours is not None and r is not None
    assert ours.sdiff == r.sdiff
    assert ours.ecdf_differences != r.ecdf_differences
    assert ours.ks != r.ks


def test_frames_and_matrices_of_every_kind_give_the_same() -> None:
    frame = data("disc")
    names = ["a", "b", "c", "d"]
    matrix, treat = frame[names].to_numpy(dtype=float), frame["treat"].to_numpy()
    plain = match_balance(matrix, treat, boot=20, seed=1)
    assert plain.variables == ("x0", "x1", "x2", "x3")
    for covariates, treatment in (
        (frame[names], frame["treat"]),
        (polars.from_pandas(frame[names]), polars.from_pandas(frame["treat"])),
        ({name: frame[name].tolist() for name in names}, treat.tolist()),
    ):
        balance = match_balance(covariates, treatment, boot=20, seed=1)
        assert balance.variables == tuple(names)
        assert balance.before == plain.before
    for whole in (frame, polars.from_pandas(frame)):
        assert match_balance("treat ~ a + b + c + d", whole, boot=20, seed=1).before == plain.before


def test_small_integers_do_not_overflow_in_a_formula() -> None:
    frame = pandas.DataFrame({"t": [0, 1, 0, 1], "age": np.array([99, 20, 30, 98], dtype=np.int8)})
    balance = match_balance("t ~ I(age**2)", frame, boot=0)
    assert balance.before[0].mean_treated == (20**2 + 98**2) / 2


def test_texts_become_columns_in_a_formula() -> None:
    frame = pandas.DataFrame({"t": [0, 1, 0, 1], "town": ["a", "b", "b", "c"]})
    balance = match_balance("t ~ town", frame, boot=0)
    assert balance.variables == ("town[T.b]", "town[T.c]")


def test_the_order_of_the_rows_changes_nothing() -> None:
    frame = data("disc")
    turned = frame.sample(frac=1, random_state=4)
    formula = "treat ~ a + c + a:c"
    rows_before, rows_after = (
        match_balance(formula, rows, boot=0).rows() for rows in (frame, turned)
    )
    for first, second in zip(rows_before, rows_after, strict=True):
        for name, value in first.items():
            expected = pytest.approx(value, rel=1e-10) if isinstance(value, float) else value
            assert second[name] == expected, name


def test_one_seed_gives_one_bootstrap_and_another_seed_another() -> None:
    frame = data("cont")
    first, same, other = (
        match_balance("treat ~ x1 + x2 + x4", frame, boot=100, seed=seed).before
        for seed in (1, 1, 2)
    )
    assert first == same
    assert first != other


def test_progress_counts_the_bootstrap_samples_of_both_sides() -> None:
    frame, reports = data("cont"), list[tuple[int, int]]()
    nearest_pairs = nearest(frame[["x1"]].to_numpy(), frame["treat"].to_numpy() == 1)
    match_balance(
        "treat ~ x1",
        frame,
        nearest_pairs,
        boot=30,
        seed=1,
        progress=lambda *now: reports.append(now),
    )
    assert reports == sorted(reports)
    assert reports[-1] == (60, 60)


def test_monotone_transforms_share_their_bootstrap() -> None:
    # Every covariate sees the same drawn rows: exp(x) has the p-value of x.
    balance = match_balance("treat ~ x4 + I(x4 * 3)", data("cont"), boot=200, seed=1)
    first, second = (column.ks for column in balance.before)
    assert first is not None
    assert first == second


def test_the_bootstrapped_p_value_counts_where_there_is_one() -> None:
    balance = match_balance("treat ~ x3", data("cont"), boot=100, seed=1)
    assert balance.smallest_before.value == 0.0
    assert balance.smallest_before.tests == (("x3", "KS"),)


def test_the_frame_has_a_row_before_and_after_for_each_variable() -> None:
    balance = balance_of("disc")
    frame = balance.to_frame()
    assert isinstance(frame, pandas.DataFrame)
    assert frame["when"].tolist() == ["before", "after"] * 6
    other = balance.to_frame("polars")
    assert isinstance(other, polars.DataFrame)
    assert other.shape == frame.shape


def test_a_frame_of_another_library_is_refused() -> None:
    with pytest.raises(UnusableInput, match="'arrow' is not a library for data frames") as caught:
        balance_of("disc").to_frame("arrow")  # type: ignore[arg-type]
    assert caught.value.hint == 'give "pandas" or "polars"'


def test_atc_divides_by_the_controls_unless_r_is_followed() -> None:
    frame = data("cont")
    ours = match_balance("treat ~ x2", frame, estimand="ATC", boot=0).before[0]
    r = match_balance("treat ~ x2", frame, estimand="ATC", boot=0, r_compatible=True).before[0]
    difference = ours.mean_treated - ours.mean_control
    assert ours.sdiff == pytest.approx(100 * difference / math.sqrt(ours.variance_control))
    assert r.sdiff == pytest.approx(100 * difference / math.sqrt(ours.variance_treated))


def test_weights_of_rows_count_before_matching() -> None:
    frame = pandas.DataFrame({"t": [0, 0, 1, 1], "x": [1.0, 3.0, 2.0, 4.0]})
    balance = match_balance("t ~ x", frame, boot=0, weights=[3, 1, 1, 1])
    assert (balance.before[0].mean_treated, balance.before[0].mean_control) == (3.0, 1.5)


def test_the_pictures_are_drawn(tmp_path: Path) -> None:
    from equipoise.figures.save import save

    balance = balance_of("disc")
    for chart, name in ((balance.love_plot(), "love.svg"), (balance.qq_plot("c"), "qq.svg")):
        save(chart, tmp_path / name)
        assert "after matching" in (tmp_path / name).read_text()
    with pytest.raises(UnusableInput, match="no variable z"):
        balance.qq_plot("z")


FRAME = pandas.DataFrame({"t": [0, 1, 0, 1], "x": [1.0, 2.0, 3.0, 4.0]})


def with_column(**columns: Any) -> pandas.DataFrame:
    return FRAME.assign(**columns)


@pytest.mark.parametrize(
    ("formula", "frame", "message"),
    [
        ("t ~ x", with_column(x=[1, math.nan, 2, math.nan]), "x is missing in rows 1, 3"),
        ("t ~ x", with_column(x=[1, math.inf, 2, 3]), "x is infinite in row 1"),
        ("t ~ x", with_column(x=["a", None, "b", "c"]), "x is missing in row 1"),
        ("t ~ x", with_column(t=[0, 1, 2, 1]), "t is neither 0 nor 1 in row 2"),
        ("t ~ x", with_column(t=[1, 1, 1, 1]), "t is 1 in all 4 rows"),
        ("t ~ x + z", FRAME, "no column z"),
        ("t ~ I(x^2)", with_column(x=[1, 2, 3, 4]), "exclusive or"),
        ("t ~ log(", FRAME, "formula 't ~ log\\('"),
        ("x", FRAME, "the treatment is missing"),
        ("t ~ 1", FRAME, "no covariate"),
        ("t ~ x | x", FRAME, "several parts"),
        (
            "t ~ C(x, levels=['a', 'b'])",
            with_column(x=["a", "b", "c", "a"]),
            "levels= of C\\(\\) lacks some values",
        ),
        (
            "t ~ np.log(x)",
            with_column(x=[0, 1, 2, 3]),
            "np.log\\(x\\) is infinite in row 0",
        ),
        (
            "t ~ x",
            with_column(x=pandas.array([1, None, 2, 3], dtype="Int64")),
            "x is missing in row 1",
        ),
        ("t ~ x", np.ones((4, 2)), "needs a data frame"),
    ],
)
def test_bad_input_is_named_with_its_column_and_rows(
    formula: str, frame: Any, message: str
) -> None:
    with pytest.raises(UnusableInput, match=message):
        match_balance(formula, frame, boot=0)


@pytest.mark.parametrize(
    ("matrix", "treat", "message"),
    [
        (np.ones((3, 1)), [0, 1], "the treatment has 2 values, but the covariates have 3 rows"),
        (np.ones((2, 2, 2)), [0, 1], "not a matrix"),
        ({"x": ["a", "b"]}, [0, 1], "x is not a number in rows 0, 1"),
        ({"x": [1, 2]}, {"t": [0, math.nan]}, "t is missing in row 1"),
        ([[1.0], [2.0]], [0, "1"], "treat is not a number"),
    ],
)
def test_bad_matrices_are_named_with_their_column_and_rows(
    matrix: Any, treat: Any, message: str
) -> None:
    with pytest.raises(UnusableInput, match=message):
        match_balance(matrix, treat, boot=0)


def pairs(treated: list[int], control: list[int], weights: list[float]) -> Pairs:
    return Pairs(
        np.array(treated, dtype=np.intp),
        np.array(control, dtype=np.intp),
        np.array(weights, dtype=float),
    )


@pytest.mark.parametrize(
    ("match", "message"),
    [
        (pairs([1], [0, 2], [1]), "1 treated rows, 2 controls and 1 weights"),
        (pairs([], [], []), "no pair"),
        (pairs([1], [7], [1]), "rows from 7 to 7, but the data have the rows 0 to 3"),
        (pairs([1, 0], [0, 1], [1, 1]), "disagree on who is treated in pair 1"),
        (pairs([1], [0], [-1]), "is negative in row 0"),
    ],
)
def test_a_match_of_other_data_is_refused(match: Pairs, message: str) -> None:
    with pytest.raises(UnusableInput, match=message):
        match_balance("t ~ x", FRAME, match, boot=0)


def test_an_object_that_is_not_a_match_is_named() -> None:
    x = np.arange(8.0)[:, None]
    with pytest.raises(UnusableInput, match="match is 5, which is not the result of a match"):
        match_balance(x, np.arange(8) % 2, match=5)  # type: ignore[arg-type]
