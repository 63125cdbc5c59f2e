"""The balance of a design: by hand, by published tables, beside R's MatchIt, and by properties."""

from __future__ import annotations

import math
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from equipoise_matching.designs.comparison import balance_of_imputations
from equipoise_matching.designs.covariate_balance import overlap_coefficient
from equipoise_matching.matching.balance import match_balance
from equipoise_matching.matching.distributions import Sample
from equipoise_matching.matching.match import match
from equipoise_matching.shared.errors import UnusableInput
from packages.matching.tests.designs.designs import confounded, weighted

TREAT = [1, 1, 1, 0, 0, 0, 0]
AGE = [30.0, 40.0, 50.0, 20.0, 30.0, 45.0, 65.0]
HALVES = [1.0, 1.0, 1.0, 0.0, 2.0, 1.0, 1.0]


def only(design: Any, **options: Any) -> Any:
    """Return the balance of the only covariate."""
    (variable,) = design.balance(**options).variables
    return variable


def test_means_differences_and_effective_sizes_are_those_computed_by_hand() -> None:
    age = only(weighted(TREAT, {"age": AGE}, HALVES))
    assert (age.before.mean_treated, age.before.mean_control) == (40.0, 40.0)
    assert age.after.mean_control == pytest.approx(170.0 / 4.0)
    # The standard deviation of 30, 40, 50 is 10.
    assert (age.before.difference, age.after.difference) == (0.0, pytest.approx(-0.25))
    sizes = weighted(TREAT, {"age": AGE}, HALVES).balance().sizes
    assert [(size.arm, size.rows, size.kept) for size in sizes] == [
        ("Controls", 4, 3),
        ("Treated", 3, 3),
    ]
    assert sizes[0].effective == pytest.approx(16.0 / 6.0)


def test_the_variance_ratio_uses_the_unbiased_variance_of_reliability_weights() -> None:
    age = only(weighted(TREAT, {"age": AGE}, HALVES))
    weights, values = np.array(HALVES[3:]), np.array(AGE[3:])
    mean = np.average(values, weights=weights)
    squares = (weights * (values - mean) ** 2).sum()
    variance = squares * weights.sum() / (weights.sum() ** 2 - (weights**2).sum())
    assert age.after.variance_ratio == pytest.approx(100.0 / variance, rel=1e-12)
    assert age.before.variance_ratio == pytest.approx(100.0 / np.var(values, ddof=1), rel=1e-12)


def test_the_ks_statistic_is_the_largest_distance_of_the_weighted_distribution_functions() -> None:
    age = only(weighted(TREAT, {"age": AGE}, HALVES))
    # At 30: a third of the treated, and half the weight of the controls.
    distances = {
        value: abs(
            np.mean(np.array(AGE[:3]) <= value)
            - np.average(np.array(AGE[3:]) <= value, weights=HALVES[3:])
        )
        for value in AGE
    }
    assert age.after.ks_statistic == pytest.approx(max(distances.values()))
    known = stats.ks_2samp(AGE[:3], AGE[3:]).statistic
    assert age.before.ks_statistic == pytest.approx(known)


@pytest.mark.parametrize(
    ("standardize", "variance"),
    [
        ("treated", np.var(AGE[:3], ddof=1)),
        ("controls", np.var(AGE[3:], ddof=1)),
        ("pooled", (np.var(AGE[:3], ddof=1) + np.var(AGE[3:], ddof=1)) / 2),
        ("all", np.var(AGE, ddof=1)),
    ],
)
def test_the_denominator_is_a_standard_deviation_before_matching(
    standardize: Any, variance: float
) -> None:
    age = only(weighted(TREAT, {"age": AGE}, HALVES), standardize=standardize)
    assert age.after.difference == pytest.approx(-2.5 / math.sqrt(variance), rel=1e-12)


@pytest.mark.parametrize(
    ("estimand", "denominator"),
    [("ATT", "treated"), ("ATC", "controls"), ("ATE", "pooled"), ("ATO", "pooled")],
)
def test_the_estimand_chooses_the_denominator(estimand: str, denominator: str) -> None:
    balance = weighted(TREAT, {"age": AGE}, estimand=estimand).balance()
    assert balance.standardize == denominator


def test_a_binary_covariate_is_compared_by_raw_shares_unless_standardized() -> None:
    design = weighted(TREAT, {"sex": [2, 2, 1, 1, 1, 2, 1]})
    raw, standardized = only(design), only(design, binary="standardized")
    assert raw.variable == "sex = 2"
    assert raw.before.difference == pytest.approx(2 / 3 - 1 / 4)
    # The variance of a share p is p (1 - p).
    assert standardized.before.difference == pytest.approx((2 / 3 - 1 / 4) / math.sqrt(2 / 9))
    assert raw.before.ks_statistic == pytest.approx(2 / 3 - 1 / 4)
    assert raw.before.overlap == pytest.approx(1 - (2 / 3 - 1 / 4))
    assert math.isnan(raw.before.variance_ratio)


def test_the_differences_are_those_of_match_balance() -> None:
    X, treat = confounded(300)
    result = match(None, treat, pandas.DataFrame(X))
    weights = np.bincount(
        np.concatenate([result.treated_index, result.control_index]),
        np.concatenate([result.weights, result.weights]),
        minlength=300,
    )
    balance = match_balance(X, treat, result, boot=0)
    ours = weighted(treat, X, weights).balance(binary="standardized")
    for name in ("age", "income"):
        before, after = balance.of(name)
        assert after is not None
        (variable,) = ours.of(name)
        assert 100 * variable.before.difference == pytest.approx(before.sdiff, rel=1e-12)
        assert variable.after.mean_control == pytest.approx(after.mean_control, rel=1e-12)
        assert variable.after.ks_statistic == pytest.approx(after.ecdf_differences.max, rel=1e-12)


def test_the_overlap_of_two_normal_samples_is_that_of_the_distributions() -> None:
    random = np.random.default_rng(1)
    treated, control = random.normal(1.0, 1.0, 40_000), random.normal(0.0, 1.0, 40_000)
    # The densities cross in the middle, half a standard deviation from both means.
    expected = 2.0 * stats.norm.cdf(-0.5)
    assert overlap_coefficient(Sample(treated), Sample(control)) == pytest.approx(
        expected, abs=0.01
    )
    weights = np.exp(control - 0.5)  # moves the mean of the controls to 1
    assert overlap_coefficient(Sample(treated), Sample(control, weights)) > 0.97


def test_equal_samples_overlap_wholly_and_distant_samples_not_at_all() -> None:
    values = np.random.default_rng(2).normal(size=200)
    assert overlap_coefficient(Sample(values), Sample(values)) == pytest.approx(1.0)
    assert overlap_coefficient(Sample(values), Sample(values + 100.0)) < 1e-6
    few = Sample(np.array([1.0, 2.0]))
    assert math.isnan(overlap_coefficient(few, few))


def test_many_equal_values_overlap_whatever_the_spread_of_the_others() -> None:
    # More than three quarters of the controls are 0, and less of the treated.
    treated = np.concatenate([np.zeros(74), np.linspace(100.0, 2000.0, 26)])
    controls = np.concatenate([np.zeros(76), np.linspace(100.0, 2000.0, 24)])
    assert overlap_coefficient(Sample(treated), Sample(controls)) > 0.95


def test_squares_and_products_are_compared_on_request() -> None:
    X, treat = confounded(100)
    balance = weighted(treat, X).balance(squares=True, interactions=True)
    names = [variable.variable for variable in balance.variables]
    assert names == [
        *("age", "income", "married", "age**2", "income**2"),
        *("age * income", "age * married", "income * married"),
    ]
    (product,) = balance.of("age * married")
    column = np.asarray(X["age"]) * X["married"]
    assert product.before.mean_treated == pytest.approx(column[treat == 1].mean(), rel=1e-12)


def test_each_cluster_is_compared_within_itself() -> None:
    X, treat = confounded(200)
    cluster = np.where(np.arange(200) < 90, "north", "south")
    balance = weighted(treat, X).balance(cluster=cluster)
    north = [variable for variable in balance.of("age") if variable.cluster == "north"]
    alone = weighted(treat[:90], {name: column[:90] for name, column in X.items()}).balance()
    assert [variable.before for variable in north] == [alone.of("age")[0].before]
    assert [size.rows for size in balance.sizes if size.cluster == "south"] == [
        int((treat[90:] == arm).sum()) for arm in (0, 1)
    ]
    assert "largest after" in balance.summary()


def test_a_cluster_without_one_arm_has_no_known_balance() -> None:
    design = weighted([1, 0, 1, 0, 0, 0], {"x": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]})
    balance = design.balance(cluster=[0, 0, 0, 0, 1, 1])
    unknown = [variable for variable in balance.variables if variable.cluster == "1"]
    assert [math.isnan(variable.after.difference) for variable in unknown] == [True]
    assert balance.overall().unknown == 1
    assert "1 of 2 differences are unknown" in balance.summary()


def test_imputed_data_sets_are_compared_one_by_one() -> None:
    X, treat = confounded(80)
    designs = [weighted(treat, {**X, "age": X["age"] + shift}) for shift in (0.0, 5.0)]
    balance = balance_of_imputations(designs)
    assert [variable.imputation for variable in balance.of("age")] == [1, 2]
    alone = designs[1].balance().of("age")[0]
    assert balance.of("age")[1].after == alone.after
    frame = balance.to_frame()
    assert isinstance(frame, pandas.DataFrame)
    assert set(frame["imputation"]) == {1, 2}


def test_several_arms_are_compared_in_pairs() -> None:
    treat = ["a", "b", "c"] * 20
    values = np.arange(60.0)
    balance = weighted(treat, {"x": values}, estimand="ATE").balance()
    assert [variable.comparison for variable in balance.variables] == ["b vs a", "c vs a", "c vs b"]
    deviation = math.sqrt(np.mean([np.var(values[arm::3], ddof=1) for arm in range(3)]))
    assert balance.variables[1].before.difference == pytest.approx(2.0 / deviation)


def test_the_focal_arm_of_several_arms_gives_the_denominator() -> None:
    treat = ["a", "b", "c"] * 20
    values = np.arange(60.0) ** 2
    design = weighted(treat, {"x": values}, details={"Focal arm": "b"})
    balance = design.balance()
    deviation = math.sqrt(np.var(values[1::3], ddof=1))
    assert balance.standardize == "treated"
    expected = (values[1::3].mean() - values[::3].mean()) / deviation
    assert balance.variables[0].before.difference == pytest.approx(expected)


def test_a_frame_has_two_rows_for_each_covariate() -> None:
    X, treat = confounded(50)
    frame = weighted(treat, X).balance().to_frame()
    assert isinstance(frame, pandas.DataFrame)
    assert list(frame["variable"]) == ["age", "age", "income", "income", "married", "married"]
    assert list(frame["when"][:2]) == ["before", "after"]
    assert "cluster" not in frame


def test_covariates_other_than_those_of_the_design_can_be_compared() -> None:
    X, treat = confounded(60)
    score = weighted(treat, {"score": X["age"]})
    balance = score.balance(covariates=X)
    assert [variable.variable for variable in balance.variables] == list(X)


def test_a_summary_names_the_worst_covariate_and_the_convention() -> None:
    X, treat = confounded(400)
    text = weighted(treat, X, method="cem").balance().summary()
    assert text.startswith("cem (ATT): the largest difference is")
    assert "(age)" in text.splitlines()[0]
    assert text.endswith(
        "Differences are in standard deviations of the treated rows, before matching. "
        "Those of binary covariates are raw."
    )
    assert "<table" in weighted(treat, X).balance()._repr_html_()


def test_covariates_beyond_the_threshold_are_named_the_largest_first() -> None:
    treat = [1] * 20 + [0] * 20
    values = np.tile(np.arange(20.0), 2)
    X = {"far": values + 30.0 * np.array(treat), "near": values, "off": values + np.array(treat)}
    assert weighted(treat, X).balance().unbalanced() == ("far", "off")
    assert weighted(treat, X).balance().unbalanced(0.5) == ("far",)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"standardize": "both"}, "standardize is 'both'"),
        ({"binary": "percent"}, "binary is 'percent'"),
        ({"cluster": [1, 2]}, "cluster has 2 rows and X has 7"),
        ({"cluster": [1.0, math.nan, 1, 1, 1, 1, 1]}, "cluster is missing in row 1"),
        ({"covariates": {"x": [1.0]}}, "the design has 7 rows and X has 1"),
    ],
)
def test_unusable_options_end_in_one_line(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UnusableInput) as caught:
        weighted(TREAT, {"age": AGE}).balance(**options)
    assert message in caught.value.what
    assert caught.value.hint


def test_too_many_clusters_are_refused() -> None:
    treat, values = np.arange(2000) % 2, np.arange(2000.0)
    with pytest.raises(UnusableInput, match="cluster has 2000 different values"):
        weighted(treat, {"x": values}).balance(cluster=values)


def test_squares_that_overflow_are_refused() -> None:
    with pytest.raises(UnusableInput, match=r"age\*\*2 is too large"):
        weighted(TREAT, {"age": [1e200 * age for age in AGE]}).balance(squares=True)


def test_an_arm_without_rows_after_matching_is_refused() -> None:
    with pytest.raises(UnusableInput, match="keeps no row of the arm controls"):
        weighted(TREAT, {"age": AGE}, [1, 1, 1, 0, 0, 0, 0]).balance()


def test_a_denominator_of_one_arm_is_refused_for_several_arms() -> None:
    design = weighted(["a", "b", "c"] * 4, {"x": np.arange(12.0)}, estimand="ATE")
    with pytest.raises(UnusableInput, match="standardize='treated' needs two arms"):
        design.balance(standardize="treated")


def test_a_constant_covariate_is_balanced() -> None:
    constant = only(weighted(TREAT, {"x": [3.0] * 7}))
    assert (constant.after.difference, constant.after.overlap) == (0.0, 1.0)
    assert math.isnan(constant.after.variance_ratio)


def test_two_different_constants_differ_infinitely_in_standard_deviations_of_an_arm() -> None:
    X = {"x": [1.0, 1.0, 1.0, 2.0, 2.0, 2.0, 3.0]}
    assert only(weighted(TREAT, X)).before.difference == -math.inf
    assert math.isfinite(only(weighted(TREAT, X), standardize="all").before.difference)
    assert "-∞" in weighted(TREAT, X).balance().summary()


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_the_scale_of_weights_and_covariates_changes_no_standardized_number(
    data: st.DataObject,
) -> None:
    count = data.draw(st.integers(6, 30))
    seed = data.draw(st.integers(0, 2**31))
    factor = data.draw(st.sampled_from([1e-150, 1e-3, 7.0, 1e150]))
    random = np.random.default_rng(seed)
    treat = np.arange(count) % 2
    values, weights = random.normal(size=count), random.random(count) + 0.01
    first = only(weighted(treat, {"x": values}, weights)).after
    second = only(weighted(treat, {"x": factor * values}, factor * weights)).after
    for name in ("difference", "variance_ratio", "ks_statistic", "overlap"):
        assert getattr(second, name) == pytest.approx(getattr(first, name), rel=1e-6, nan_ok=True)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**31), st.integers(2, 20))
def test_a_row_of_weight_two_counts_as_two_rows_in_means_and_distributions(
    seed: int, count: int
) -> None:
    random = np.random.default_rng(seed)
    treat = np.arange(2 * count) % 2
    values = random.integers(0, 6, 2 * count).astype(float)
    repeats = random.integers(1, 4, 2 * count)
    once = only(weighted(treat, {"x": values}, repeats), standardize="all").after
    rows = np.repeat(np.arange(2 * count), repeats)
    again = only(weighted(treat[rows], {"x": values[rows]}), standardize="all").after
    assert once.mean_treated == pytest.approx(again.mean_treated)
    assert once.mean_control == pytest.approx(again.mean_control)
    assert once.ks_statistic == pytest.approx(again.ks_statistic)


PUBLISHED = {
    "age": (-0.3094, 0.4400, 0.1577),
    "educ": (0.0550, 0.4959, 0.1114),
    "re74": (-0.7211, 0.5181, 0.4470),
    "re75": (-0.2903, 0.9563, 0.2876),
    "race_black": (0.6404, math.nan, 0.6404),
    "race_hispan": (-0.0827, math.nan, 0.0827),
    "married": (-0.3236, math.nan, 0.3236),
    "nodegree": (0.1114, math.nan, 0.1114),
}
"""Difference, variance ratio and KS statistic before matching of MatchIt's data ``lalonde``, as the
vignettes of cobalt ("Using cobalt") and MatchIt print them."""
COVARIATES = ("age", "educ", "race_black", "race_hispan", "married", "nodegree", "re74", "re75")
SCRIPT = """
library(MatchIt)
data("lalonde")
lalonde$race_black <- as.numeric(lalonde$race == "black")
lalonde$race_hispan <- as.numeric(lalonde$race == "hispan")
f <- treat ~ age + educ + race_black + race_hispan + married + nodegree + re74 + re75
folder <- commandArgs(TRUE)[1]
for (method in c("nearest", "cem", "subclass")) {
  m <- matchit(f, lalonde, method = method, estimand = ESTIMAND)
  s <- summary(m, un = TRUE, standardize = TRUE)
  after <- if (is.null(s$sum.matched)) s$sum.across else s$sum.matched
  for (when in c("before", "after")) {
    table <- if (when == "before") s$sum.all else after
    write.csv(table, file.path(folder, paste0(method, "-", when, ".csv")))
  }
  lalonde[[method]] <- m$weights
}
write.csv(lalonde, file.path(folder, "lalonde.csv"), row.names = FALSE)
"""


def matchit(folder: Path, estimand: str) -> pandas.DataFrame:
    """Run MatchIt in R on its data; return the data with a column of weights for each method."""
    script = folder / "balance.R"
    script.write_text(SCRIPT.replace("ESTIMAND", f'"{estimand}"'), encoding="utf-8")
    done = subprocess.run(
        ["Rscript", "--vanilla", str(script), str(folder)],
        capture_output=True,
        text=True,
        timeout=100.0,
        check=False,
    )
    if "there is no package called" in done.stderr:
        pytest.skip("misses MatchIt: apt-get install r-cran-matchit")
    assert done.returncode == 0, done.stderr
    return pandas.read_csv(folder / "lalonde.csv")


@pytest.mark.live("Rscript", package="r-base-core")
@pytest.mark.parametrize("estimand", ["ATT", "ATC"])
def test_balance_is_that_of_matchit_and_of_the_vignettes(tmp_path: Path, estimand: Any) -> None:
    people = matchit(tmp_path, estimand)
    X = people[list(COVARIATES)].astype(float)
    for method in ("nearest", "cem", "subclass"):
        design = weighted(people["treat"], X, people[method], estimand=estimand)
        balance = design.balance(binary="standardized")
        for when in ("before", "after"):
            table = pandas.read_csv(tmp_path / f"{method}-{when}.csv", index_col=0)
            for name in COVARIATES:
                pair = getattr(balance.of(name)[0], when)
                ours = (pair.mean_treated, pair.mean_control, pair.difference, pair.ks_statistic)
                theirs = table.loc[name]
                assert ours == pytest.approx(
                    tuple(
                        theirs[column]
                        for column in (
                            "Means Treated",
                            "Means Control",
                            "Std. Mean Diff.",
                            "eCDF Max",
                        )
                    ),
                    rel=1e-8,
                    abs=1e-12,
                ), (method, when, name)
                ratio = float(theirs["Var. Ratio"])
                assert pair.variance_ratio == pytest.approx(ratio, rel=1e-8, nan_ok=True)
    if estimand == "ATT":
        raw = weighted(people["treat"], X).balance()
        for name, expected in PUBLISHED.items():
            pair = raw.of(name)[0].before
            found = (pair.difference, pair.variance_ratio, pair.ks_statistic)
            assert found == pytest.approx(expected, abs=5e-5, nan_ok=True), name


EXTREMES = st.sampled_from([0.0, 1.0, -1.0, 2.0, 5e-324, 1e-300, 1e150, -1e150, 1e308, -1.7e308])


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_extreme_numbers_give_a_balance_or_one_line(data: st.DataObject) -> None:
    count = data.draw(st.integers(4, 12))
    treat = np.arange(count) % data.draw(st.sampled_from([2, 3]))
    columns = {
        name: data.draw(st.lists(EXTREMES | st.floats(-9, 9), min_size=count, max_size=count))
        for name in ("a", "b")
    }
    weight = st.sampled_from([0.0, 1.0, 5e-324, 1e300])
    weights = data.draw(st.lists(weight, min_size=count, max_size=count))
    options: dict[str, Any] = {
        "standardize": data.draw(st.sampled_from([None, "treated", "pooled", "all"])),
        "binary": data.draw(st.sampled_from(["raw", "standardized"])),
        "squares": data.draw(st.booleans()),
        "interactions": data.draw(st.booleans()),
        "cluster": data.draw(st.sampled_from([None, np.arange(count) % 2])),
    }
    try:
        balance = weighted(treat, columns, weights, estimand="ATE").balance(**options)
    except UnusableInput as error:
        assert "\n" not in error.what
        assert error.hint
        return
    assert balance.summary()
    for row in balance.rows():
        for name in ("ks_statistic", "overlap"):
            assert row[name] is None or 0.0 <= row[name] <= 1.0 + 1e-9
