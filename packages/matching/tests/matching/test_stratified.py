"""Matching inside strata: one effect over all of them, with errors; R's Matchby beside it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from equipoise_matching import MatchByResult, match, match_balance, match_by
from equipoise_matching.shared.errors import UnusableInput
from packages.matching.tests.matching.golden import columns
from packages.matching.tests.matching.nsw import lalonde

GENERATOR = np.random.default_rng(17)
ROWS = 240
X = GENERATOR.normal(size=(ROWS, 2))
TREAT = (GENERATOR.random(ROWS) < 0.35).astype(float)
Y = X.sum(axis=1) + TREAT + GENERATOR.normal(size=ROWS)
BY = GENERATOR.integers(0, 6, ROWS)
WEIGHTS = GENERATOR.uniform(0.5, 2.0, ROWS)


def pairs(result: Any) -> set[tuple[int, int, float]]:
    return {
        (int(treated), int(control), round(float(weight), 12))
        for treated, control, weight in zip(
            result.treated_index, result.control_index, result.weights, strict=True
        )
    }


def lonely() -> tuple[Any, Any]:
    """Strata of which one has controls only and one treated units only."""
    by = np.where(BY == 4, 40, BY)
    treat = np.where(BY == 0, 0.0, np.where(by == 40, 1.0, TREAT))
    return by, treat


@settings(max_examples=30, deadline=None)
@given(
    estimand=st.sampled_from(["ATT", "ATC", "ATE"]),
    m=st.sampled_from([1, 2, 300]),
    metric=st.sampled_from(["inverse_variance", "mahalanobis"]),
    caliper=st.sampled_from([None, 0.4]),
    weighted=st.booleans(),
    r_compatible=st.booleans(),
)
def test_each_stratum_is_matched_as_if_it_were_alone(
    estimand: Any, m: int, metric: str, caliper: float | None, weighted: bool, r_compatible: bool
) -> None:
    weights = WEIGHTS if weighted else None
    options: dict[str, Any] = {
        "estimand": estimand,
        "m": m,
        "metric": metric,
        "caliper": caliper,
        "r_compatible": r_compatible,
    }
    try:
        result = match_by(Y, TREAT, X, BY, ties=True, weights=weights, **options)
    except UnusableInput:
        assert caliper is not None
        return
    together = set()
    for place, stratum in enumerate(result.strata):
        rows = np.flatnonzero(stratum.values[0] == BY)
        of_stratum = None if weights is None else weights[rows]
        try:
            alone = match(Y[rows], TREAT[rows], X[rows], weights=of_stratum, **options)
        except UnusableInput:
            assert stratum.n_weighted == 0
            continue
        together |= {
            (int(rows[treated]), int(rows[control]), weight)
            for treated, control, weight in pairs(alone)
        }
        assert stratum.estimate == pytest.approx(alone.estimate)
        assert stratum.n_dropped == alone.n_dropped
        if result.effective_caliper is not None:
            assert result.effective_caliper[place] == pytest.approx(alone.effective_caliper)
    assert pairs(result) == together


@pytest.mark.parametrize("estimand", ["ATT", "ATC", "ATE"])
def test_one_stratum_is_a_match_with_its_errors(estimand: Any) -> None:
    stratified = match_by(
        Y, TREAT, X, np.zeros(ROWS), estimand=estimand, variance_neighbors=2, caliper=0.5
    )
    plain = match(Y, TREAT, X, estimand=estimand, variance_neighbors=2, caliper=0.5)
    for name in ("estimate", "se", "se_standard", "se_conditional", "p_value", "n_dropped"):
        assert getattr(stratified, name) == pytest.approx(getattr(plain, name)), name
    assert pairs(stratified) == pairs(plain)
    assert list(stratified.dropped_index) == list(plain.dropped_index)


def test_strata_that_lack_an_arm_are_skipped_and_reported() -> None:
    by, treat = lonely()
    result = match_by(Y, treat, X, by)
    assert [stratum.values for stratum in result.skipped] == [(0,), (40,)]
    assert {stratum.estimate for stratum in result.skipped} == {None}
    assert list(result.dropped_index) == list(np.flatnonzero(by == 40))
    assert result.n_dropped == len(result.dropped_index)
    assert "2 (0, 40)" in result.summary()
    inside = ~np.isin(by, (0, 40))
    without = match_by(Y[inside], treat[inside], X[inside], by[inside])
    assert (result.estimate, result.se) == (without.estimate, without.se)


def test_r_counts_the_treated_of_skipped_strata_in_its_error() -> None:
    by, treat = lonely()
    right = match_by(Y, treat, X, by, variance_neighbors=0)
    as_in_r = match_by(Y, treat, X, by, ties=True, r_compatible=True)
    assert as_in_r.estimate == pytest.approx(right.estimate)
    # Theorem 7 of Abadie and Imbens with the effects of all treated, 0 for those unmatched.
    frame = right.to_frame()
    treated = frame["treated_index"].to_numpy()
    control = frame["control_index"].to_numpy()
    weight = frame["weight"].to_numpy()
    difference = Y[treated] - Y[control]
    effect = np.average(difference, weights=weight)
    common = 0.5 * np.average((difference - effect) ** 2, weights=weight)
    served = np.bincount(control, weight, ROWS)
    squares = np.bincount(control, weight**2, ROWS)
    effects = np.bincount(treated, weight * difference, ROWS)
    matched = np.unique(treated)
    for rows, result in ((matched, right), (np.flatnonzero(treat == 1), as_in_r)):
        variance = (common * (served**2 - squares)).sum() + ((effects[rows] - effect) ** 2).sum()
        assert result.se == pytest.approx(np.sqrt(variance) / len(rows))
    assert len(matched) < treat.sum()


@pytest.mark.parametrize(
    ("options", "has_error", "in_r"),
    [
        ({}, True, False),
        ({"ties": True}, True, True),
        ({"ties": True, "estimand": "ATC"}, True, False),
        ({"ties": True, "estimand": "ATE"}, True, False),
        ({"replace": False}, False, False),
    ],
)
def test_r_has_an_error_of_abadie_and_imbens_for_the_treated_with_all_ties_only(
    options: dict[str, Any], has_error: bool, in_r: bool
) -> None:
    assert (match_by(Y, TREAT, X, BY, **options).se is not None) == has_error
    assert (match_by(Y, TREAT, X, BY, r_compatible=True, **options).se is not None) == in_r


def test_ties_are_kept_by_default_but_not_in_r() -> None:
    rounded = np.round(X)
    right = match_by(Y, TREAT, rounded, BY)
    as_in_r = match_by(Y, TREAT, rounded, BY, r_compatible=True)
    assert len(right.weights) > len(as_in_r.weights) == right.n_weighted


def test_r_counts_the_dropped_as_treated_units_less_pairs_for_every_estimand() -> None:
    right = match_by(Y, TREAT, X, BY, estimand="ATC")
    as_in_r = match_by(Y, TREAT, X, BY, estimand="ATC", r_compatible=True)
    assert right.n_dropped == 0
    assert as_in_r.n_dropped == TREAT.sum() - (TREAT == 0).sum()


def test_r_takes_0_for_the_neighbour_that_an_arm_lacks() -> None:
    # Each control of a stratum needs two more controls and there is one.
    by = np.repeat([0, 1], 4)
    treat = np.tile([1, 1, 0, 0], 2)
    x = np.array([1.0, 1.1, 1.0, 1.1, 2.0, 2.1, 2.0, 2.1])
    y = np.array([1.0, 2.0, 16.0, 5.0, 3.0, 4.0, 16.0, 5.0])
    options: dict[str, Any] = {"variance_neighbors": 2, "variance": "sample", "ties": True}
    right = match_by(y, treat, x, by, **options)
    as_in_r = match_by(y, treat, x, by, r_compatible=True, **options)
    per_arm: dict[bool, float] = {}
    for zero in (False, True):
        zeros = [0.0] * zero
        per_arm[zero] = sum(
            2 * float(np.var([*y[rows], *zeros], ddof=1))
            for rows in ([0, 1], [2, 3], [4, 5], [6, 7])
        )
    assert right.se == pytest.approx(np.sqrt(per_arm[False]) / 4)
    assert as_in_r.se == pytest.approx(np.sqrt(per_arm[True]) / 4)


def test_factors_together_are_their_interaction_however_they_are_given() -> None:
    first, second = BY % 2, np.array(["a", "b", "c"])[BY % 3]
    single_factor = match_by(Y, TREAT, X, BY)
    frame = pandas.DataFrame({"first": first, "second": second})
    ways: list[Any] = [
        frame,
        {"first": first, "second": second},
        np.column_stack([first.astype(object), second.astype(object)]),
        pandas.DataFrame({"first": first, "second": pandas.Categorical(second)}),
    ]
    for by in ways:
        several = match_by(Y, TREAT, X, by)
        assert pairs(several) == pairs(single_factor)
        assert several.estimate == single_factor.estimate
        assert {len(stratum.values) for stratum in several.strata} == {2}
    assert match_by(Y, TREAT, X, frame).by == ("first", "second")


def test_the_order_of_rows_and_the_threads_change_nothing() -> None:
    once = match_by(Y, TREAT, X, BY, threads=1)
    order = GENERATOR.permutation(ROWS)
    shuffled = match_by(Y[order], TREAT[order], X[order], BY[order], threads=3)
    back = {(int(order[t]), int(order[c]), w) for t, c, w in pairs(shuffled)}
    assert back == pairs(once)
    assert shuffled.se == pytest.approx(once.se, rel=1e-12)


def test_each_stratum_draws_its_own_random_ties() -> None:
    # Many copies of a stratum: with the same draw in each, one control would serve.
    copies = 40
    by = np.repeat(np.arange(copies), 3)
    treat = np.tile([1.0, 0.0, 0.0], copies)
    result = match_by(None, treat, np.zeros(3 * copies), by, ties=False)
    assert len(result.weights) == copies
    assert len(np.unique(result.control_index % 3)) == 2


def test_a_covariate_that_is_constant_in_a_stratum_counts_for_nothing_there() -> None:
    x = X.copy()
    x[BY == 3, 1] = 0.1
    result = match_by(Y, TREAT, x, BY)
    rows = np.flatnonzero(BY == 3)
    alone = match(Y[rows], TREAT[rows], x[rows, 0])
    inside = {(t, c) for t, c, _ in pairs(result) if BY[t] == 3}
    assert inside == {(int(rows[t]), int(rows[c])) for t, c, _ in pairs(alone)}


def test_the_frames_have_a_row_for_each_pair_and_for_each_stratum() -> None:
    by, treat = lonely()
    result = match_by(Y, treat, X, {"n": by})
    frame = result.to_frame()
    assert list(frame.columns) == ["treated_index", "control_index", "weight", "stratum"]
    values = np.array([stratum.values[0] for stratum in result.strata])
    assert (values[frame["stratum"]] == by[frame["treated_index"]]).all()
    strata = result.strata_frame()
    assert list(strata.columns)[:2] == ["n", "n"]
    assert strata["n_weighted"].sum() == pytest.approx(result.n_weighted)
    assert strata["skipped"].sum() == 2


def test_balance_and_another_outcome_take_a_stratified_match() -> None:
    result = match_by(Y, TREAT, X, BY)
    balance = match_balance(X, TREAT, result, boot=0)
    assert balance.after is not None
    other = match(2 * Y, TREAT, X, reuse=result)
    assert result.estimate is not None
    assert other.estimate == pytest.approx(2 * result.estimate)


def test_progress_reports_up_to_the_end() -> None:
    reports: list[tuple[int, int]] = []
    match_by(Y, TREAT, X, BY, threads=1, progress=lambda done, of: reports.append((done, of)))
    assert reports[-1] == (ROWS, ROWS)
    assert reports == sorted(reports)


@pytest.mark.parametrize(
    ("by", "message"),
    [
        (BY[:5], r"by, factor 'by' has 5 rows and X has 240"),
        (np.where(BY == 0, np.nan, BY), r"by, factor 'by' is missing in rows? \d+"),
        ({"site": [None, *["a"] * (ROWS - 1)]}, r"factor 'site' is missing in row 0"),
        ({}, r"by has no column"),
        (np.zeros((ROWS, 1, 1)), r"by has shape \(240, 1, 1\)"),
        (np.arange(ROWS), r"each of the 240 strata of by lacks treated units or controls"),
    ],
)
def test_strata_that_cannot_be_used_are_refused_with_factor_and_rows(by: Any, message: str) -> None:
    with pytest.raises(UnusableInput, match=message):
        match_by(Y, TREAT, X, by)


def test_the_published_numbers_of_matchby() -> None:
    data = lalonde()
    by = {name: data[name] for name in ("age", "educ", "black")}
    x = np.column_stack(list(by.values()))
    result = match_by(data["re78"], data["treat"], x, by, ties=True, r_compatible=True)
    assert result.estimate == pytest.approx(1907.307353, rel=2e-5)
    assert result.se == pytest.approx(598.0616018, rel=2e-5)
    assert result.se_standard == pytest.approx(863.19, abs=0.02)
    assert result.n_weighted == pytest.approx(119)
    # Without the 66 whom R counts as if their effect were 0.
    right = match_by(data["re78"], data["treat"], x, by)
    assert right.estimate == pytest.approx(result.estimate)
    assert right.n_dropped == 185 - 119
    assert (right.se or 0.0) > (result.se or 0.0)


def in_r(script: str, folder: Path) -> dict[str, Any]:
    """Return the JSON that R prints; the data are in the folder."""
    process = subprocess.run(
        ["Rscript", "-e", script], cwd=folder, capture_output=True, text=True, check=False
    )
    if "no package called" in process.stderr:
        pytest.skip("misses Matching or jsonlite: apt-get install r-cran-matching r-cran-jsonlite")
    assert process.returncode == 0, process.stderr
    answer: dict[str, Any] = json.loads(process.stdout)
    return answer


@pytest.mark.live("Rscript", package="r-base-core")
def test_r_s_matchby_gives_the_same_numbers(tmp_path: Path) -> None:
    cases: dict[str, tuple[str, dict[str, Any]]] = {
        "plain": ("", {}),
        "three": ("M=3", {"m": 3}),
        "caliper": ("caliper=0.3", {"caliper": 0.3}),
        "exact": ("exact=c(F,T,F,F)", {"exact": [False, True, False, False]}),
        "mahalanobis": ("Weight=2", {"metric": "mahalanobis"}),
        "neighbours": ("Var.calc=2", {"variance_neighbors": 2}),
        "both": ("Var.calc=2,caliper=0.5", {"variance_neighbors": 2, "caliper": 0.5}),
    }
    data = columns("disc")
    random = np.random.default_rng(29)
    by = random.integers(0, 9, len(data["y"]))
    # One stratum without treated units, one without controls.
    treat = np.where(by == 0, 0.0, np.where(by == 1, 1.0, data["treat"]))
    pandas.DataFrame(data).assign(treat=treat, by=by).to_csv(tmp_path / "data.csv", index=False)
    calls = [
        f"{name}_{kind}=f({more + ',' if more else ''}{arguments})"
        for name, (more, _) in cases.items()
        for kind, arguments in (
            ("ai", "AI=TRUE"),
            ("ATC", "estimand='ATC',ties=TRUE"),
            ("ATE", "estimand='ATE',ties=TRUE"),
        )
    ]
    answers = in_r(
        "suppressMessages(library(Matching)); d <- read.csv('data.csv');"
        "f <- function(...) { r <- suppressWarnings(Matchby(d$y, d$treat,"
        " as.matrix(d[, c('a','b','c','d')]), d$by, print.level=0, ...));"
        " list(est=r$est, se=r$se, std=r$se.standard, drops=r$ndrops, t=r$index.treated,"
        " c=r$index.control, w=r$weights) };"
        f"cat(jsonlite::toJSON(list({','.join(calls)}), digits=NA, auto_unbox=TRUE, null='null'))",
        tmp_path,
    )
    x = np.column_stack([data[name] for name in "abcd"])
    for name, (_, options) in cases.items():
        for kind in ("ai", "ATC", "ATE"):
            estimand: Any = "ATT" if kind == "ai" else kind
            result: MatchByResult = match_by(
                data["y"], treat, x, by, estimand=estimand, ties=True, r_compatible=True, **options
            )
            answer = answers[f"{name}_{kind}"]
            theirs = {
                (int(t) - 1, int(c) - 1, round(float(w), 12))
                for t, c, w in zip(answer["t"], answer["c"], answer["w"], strict=True)
            }
            assert pairs(result) == theirs, (name, kind)
            assert result.estimate == pytest.approx(answer["est"], rel=1e-8), (name, kind)
            assert result.se_standard == pytest.approx(answer["std"], rel=1e-8), (name, kind)
            assert result.n_dropped == pytest.approx(answer["drops"]), (name, kind)
            if kind == "ai":
                assert result.se == pytest.approx(answer["se"], rel=1e-8), (name, kind)
            else:
                assert result.se is answer["se"] is None
