"""Random data and options: R's package Matching, run beside ours, gives the same answers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from equipoise_matching.matching.balance import match_balance
from equipoise_matching.matching.distributions import DifferenceSummary, ks_boot, qq_stats
from equipoise_matching.matching.match import MatchResult, match
from equipoise_matching.matching.options import rows_in_common_range
from equipoise_matching.matching.univariate import UnivariateBalance, balance_uv
from equipoise_matching.shared.errors import UnusableInput
from packages.matching.tests.matching import r_match
from packages.matching.tests.matching.nsw import lalonde
from packages.matching.tests.matching.r_match import Case, Floats

pytestmark = pytest.mark.live("Rscript", package="r-base-core")

MATCHES, BALANCES, SAMPLES = 400, 100, 150
RELATIVE = 1e-8
ROUNDING = 1e-10
"""Error relative to the outcome's spread: an effect near 0 is a difference of large sums."""


@dataclass(frozen=True)
class AnsweredCase:
    """A case and R's answer."""

    case: Case
    answer: dict[str, Any]


@pytest.fixture(scope="module")
def answered_cases(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[AnsweredCase]]:
    """All cases with R's answers, by kind; R runs once."""
    cases = {
        "match": [r_match.case(seed) for seed in range(MATCHES)],
        "balance": [r_match.balance_case(seed) for seed in range(BALANCES)],
        "univariate": [r_match.univariate_case(seed) for seed in range(SAMPLES)],
    }
    questions = [
        {"kind": kind, "asked": case.theirs} for kind, some in cases.items() for case in some
    ]
    answers = iter(r_match.answers_of_r(questions, tmp_path_factory.mktemp("r")))
    return {
        kind: [AnsweredCase(case, next(answers)) for case in some] for kind, some in cases.items()
    }


def number(value: Any) -> float:
    """Return a number of R's, which writes NA as a text and NULL as an empty list."""
    return float("nan") if value in (None, [], {}, "NA") else float(value)


def number_or_nan(value: float | None) -> float:
    return float("nan") if value is None else value


def cases_with_a_match(
    entries: list[AnsweredCase],
) -> list[tuple[int, Case, dict[str, Any], MatchResult]]:
    """Return the cases in which R finds a match; check that we find none in the others."""
    matched = []
    for place, entry in enumerate(entries):
        answer = entry.answer
        if answer.get("none"):
            with pytest.raises(UnusableInput, match="no unit has a valid match"):
                match(**entry.case.ours, r_compatible=True)
        elif "error" in answer:
            assert is_known_to_stop(entry), (place, answer["error"])
        else:
            matched.append((place, entry.case, answer, match(**entry.case.ours, r_compatible=True)))
    return matched


def is_known_to_stop(entry: AnsweredCase) -> bool:
    """R stops at restrictions of rows that are gone, and at arms that weigh less than M."""
    options, message = entry.case.ours, entry.answer["error"]
    if "Index out of range" in message:
        return options.get("common_support") is True and "restrict" in options
    if "weights" not in options or "dimension in Matrix" not in message:
        return False
    # Common support only makes an arm lighter.
    lightest = min(float(options["weights"][options["treat"] == arm].sum()) for arm in (0, 1))
    return lightest < options["m"] or options.get("common_support") is True


def regression_is_regular(case: Case, result: MatchResult) -> bool:
    """Whether R's normal equations among the matched rows keep eight digits."""
    options = case.ours
    rows = np.arange(len(options["X"]))
    if options.get("common_support"):
        first, treated = options["X"][:, 0], options["treat"].astype(np.uint8)
        rows = rows_in_common_range(first, treated, "x", options.get("distance_tolerance", 1e-5))
    z, treat = options.get("covariates", options["X"])[rows], options["treat"][rows]
    ends = np.where(result.matched_treated, result.control_index, result.treated_index)
    weight = np.bincount(ends, result.weights, len(z))
    for arm in (0, 1):
        in_arm = (treat == arm) & (weight > 0)
        if in_arm.any():
            design = np.column_stack([np.ones(in_arm.sum()), z[in_arm]])
            condition = np.linalg.cond(design * np.sqrt(weight[in_arm])[:, np.newaxis])
            if len(design) < design.shape[1] or condition > 1e3:
                return False
    return True


def test_pairs_weights_and_who_is_dropped_are_those_of_r(
    answered_cases: dict[str, list[AnsweredCase]],
) -> None:
    compared = cases_with_a_match(answered_cases["match"])
    assert len(compared) > 0.9 * MATCHES
    for place, case, answer, result in compared:
        order = np.lexsort((result.control_index, result.treated_index))
        theirs = [np.atleast_1d(answer[name]) for name in ("treated", "control", "weights")]
        placed = np.lexsort((theirs[1], theirs[0]))
        assert (result.treated_index[order] == theirs[0][placed]).all(), place
        assert (result.control_index[order] == theirs[1][placed]).all(), place
        np.testing.assert_allclose(result.weights[order], theirs[2][placed], rtol=RELATIVE)
        assert sorted(result.dropped_index) == sorted(answer["dropped"]), place
        assert result.n_weighted == pytest.approx(answer["wnobs"], rel=RELATIVE)
        assert result.n == answer["nobs"], place
        if "weights" not in case.ours:
            assert result.n_dropped == pytest.approx(answer["ndrops"], abs=1e-9), place


def test_effects_and_errors_are_those_of_r(answered_cases: dict[str, list[AnsweredCase]]) -> None:
    irregular = 0
    for place, case, answer, result in cases_with_a_match(answered_cases["match"]):
        spread = float(np.std(case.ours["y"]))
        np.testing.assert_allclose(
            [number_or_nan(result.estimate_unadjusted), number_or_nan(result.se_standard)],
            [number(answer["est_noadj"]), number(answer["se_standard"])],
            rtol=RELATIVE,
            atol=ROUNDING * spread,
            err_msg=str(place),
        )
        if case.ours.get("bias_adjust") and not regression_is_regular(case, result):
            irregular += 1
            continue
        np.testing.assert_allclose(
            [number_or_nan(result.estimate), number_or_nan(result.se)],
            [number(answer["est"]), number(answer["se"])],
            rtol=RELATIVE,
            atol=ROUNDING * spread,
            err_msg=str(place),
        )
        # A difference of two variances: its precision follows from theirs.
        np.testing.assert_allclose(
            number_or_nan(result.se_conditional) ** 2,
            number(answer["se_cond"]) ** 2,
            rtol=RELATIVE,
            atol=ROUNDING * spread**2,
            err_msg=str(place),
        )
    assert irregular <= 0.01 * MATCHES


def test_calipers_are_those_of_r(answered_cases: dict[str, list[AnsweredCase]]) -> None:
    compared = 0
    for place, _, answer, result in cases_with_a_match(answered_cases["match"]):
        theirs = answer["ecaliper"]
        assert (result.effective_caliper is None) == (theirs in (None, [], {})), place
        if result.effective_caliper is not None:
            # R gives the range of a column without a limit.
            limited = np.isfinite(result.effective_caliper)
            np.testing.assert_allclose(
                result.effective_caliper[limited], np.atleast_1d(theirs)[limited], rtol=RELATIVE
            )
            compared += 1
    assert compared > 0.2 * MATCHES


def assert_same_balance(
    ours: UnivariateBalance, theirs: dict[str, Any], spread: float, where: object
) -> None:
    """Every number of a covariate's balance."""
    names = (
        "mean_treated",
        "mean_control",
        "variance_treated",
        "variance_control",
        "variance_ratio",
        "sdiff",
        "sdiff_pooled",
        "t_p_value",
    )
    for name in names:
        assert getattr(ours, name) == pytest.approx(
            number(theirs[name]), rel=RELATIVE, abs=ROUNDING * spread, nan_ok=True
        ), (where, name)
    names_in_r = {"ecdf_differences": "qq", "quantile_differences": "qq_raw"}
    for name, name_in_r in names_in_r.items():
        result: DifferenceSummary = getattr(ours, name)
        assert (result.mean, result.median, result.max) == pytest.approx(
            theirs[name_in_r], rel=RELATIVE, abs=1e-12 * max(1.0, spread)
        ), (where, name)
    assert (ours.ks is not None) == ("ks" in theirs), where
    if ours.ks is not None:
        assert ours.ks.statistic == pytest.approx(theirs["ks"], abs=1e-12), where
        assert ours.ks.p_value == pytest.approx(theirs["ks_p"], rel=RELATIVE, abs=1e-12), where


def test_balance_before_and_after_is_that_of_r(
    answered_cases: dict[str, list[AnsweredCase]],
) -> None:
    for place, entry in enumerate(answered_cases["balance"]):
        assert "error" not in entry.answer, (place, entry.answer)
        case, answer = entry.case.ours, entry.answer
        result = match(None, **case["match"], r_compatible=True)
        x: Floats = case["match"]["X"]
        balance = match_balance(
            x,
            case["match"]["treat"],
            result,
            boot=0,
            paired=case["paired"],
            weights=case["weights"],
            r_compatible=True,
        )
        assert balance.after is not None
        assert balance.smallest_after is not None
        for column in range(x.shape[1]):
            spread = float(np.std(x[:, column]))
            for side in ("before", "after"):
                ours, theirs = getattr(balance, side)[column], answer[side][column]
                assert_same_balance(ours, theirs, spread, (place, side, column))
        for side, smallest in (
            ("before", balance.smallest_before),
            ("after", balance.smallest_after),
        ):
            assert smallest.value == pytest.approx(
                number(answer[f"smallest_{side}"]), rel=RELATIVE, abs=1e-12
            ), (place, side)


def test_two_samples_compare_as_in_r(answered_cases: dict[str, list[AnsweredCase]]) -> None:
    for place, entry in enumerate(answered_cases["univariate"]):
        assert "error" not in entry.answer, (place, entry.answer)
        ours, answer = entry.case.ours, entry.answer
        assert_same_balance(balance_uv(**ours), answer, 1.0, place)
        samples = ours["treated"], ours["control"]
        for name, standardize in (("qq_alone", True), ("qq_raw_alone", False)):
            result = qq_stats(*samples, standardize=standardize, r_compatible=True)
            assert (result.mean, result.median, result.max) == pytest.approx(
                answer[name], rel=RELATIVE
            )
        test = ks_boot(*samples, boot=0, r_compatible=True)
        assert [test.statistic, test.p_value] == pytest.approx(answer["ks_alone"], rel=RELATIVE)


def test_the_balance_of_dehejia_and_wahba_is_that_of_r(tmp_path: Path) -> None:
    """DehejiaWahba: every covariate of their score, before and after matching on it."""
    data = lalonde()
    squares = {f"{name}2": data[name] ** 2 for name in ("age", "educ", "re74", "re75")}
    treat = data.pop("treat")
    del data["re78"]
    design = np.column_stack([*data.values(), *squares.values()])
    scaled = np.column_stack([np.ones(445), (design - design.mean(axis=0)) / design.std(axis=0)])
    score = scaled @ np.linalg.lstsq(scaled, treat, rcond=None)[0]
    (answer,) = r_match.answers_of_r(
        [
            {
                "kind": "balance",
                "asked": {
                    "match": {"Tr": treat.tolist(), "X": score[:, np.newaxis].tolist()},
                    "covariates": design.tolist(),
                    "paired": True,
                },
            }
        ],
        tmp_path,
    )
    result = match(None, treat, score, r_compatible=True)
    balance = match_balance(design, treat, result, boot=0, r_compatible=True)
    assert balance.after is not None
    for column in range(design.shape[1]):
        spread = float(np.std(design[:, column]))
        assert_same_balance(balance.before[column], answer["before"][column], spread, column)
        assert_same_balance(balance.after[column], answer["after"][column], spread, column)
