"""Published numbers: Imbens's Stata log, Sekhon (2011), and R's package, on LaLonde's data.

causaldata has more digits than R's copy of the data: what R printed agrees to about 1e-5, and
what R computed from causaldata (packages/matching/tests/golden/lalonde.json) to 1e-8.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from equipoise_matching.matching.balance import match_balance
from equipoise_matching.matching.match import MatchResult, match
from packages.matching.tests.matching.golden import METRICS, answers
from packages.matching.tests.matching.nsw import NAMES, lalonde

FOUR = ("age", "educ", "re74", "re75")
SAMPLE: dict[str, Any] = {"estimand": "ATE", "variance": "sample"}
IMBENS: list[tuple[tuple[str, ...], dict[str, Any], float, float, int]] = [
    (("age",), {}, 1.78519111481212, 0.686716677322528, 5251),
    (FOUR, {}, 1.71440714918138, 0.740129179632503, 733),
    (FOUR, {"m": 3}, 1.53630268121115, 0.661930423623259, 1670),
    (FOUR, {"estimand": "ATT"}, 1.72691301785071, 0.83662963230848, 327),
    (FOUR, {"estimand": "ATC"}, 1.70550874262821, 0.820095935752824, 406),
    (FOUR, {"metric": "mahalanobis"}, 1.59261673326378, 0.684729829415588, 729),
    (FOUR, {"metric": np.ones(4)}, 1.71440714918138, 0.740129179632503, 733),
    (FOUR, {"bias_adjust": True}, 1.63091519500783, 0.74523360642055, 733),
    (FOUR, {"exact": True}, 1.3692891250634, 0.404228086032945, 378),
    (FOUR, {"variance": "population"}, 1.71440714918138, 0.743384632957198, 733),
    (FOUR, {"variance_neighbors": 3}, 1.71440714918138, 0.696272433717223, 733),
]


def table(data: dict[str, Any], names: tuple[str, ...]) -> Any:
    return np.column_stack([data[name] for name in names])


def matched(names: tuple[str, ...], *, outcome_unit: float = 1.0, **options: Any) -> MatchResult:
    """A match of the published data on these covariates, as R has it."""
    data = lalonde()
    y, x = data["re78"] / outcome_unit, table(data, names)
    return match(y, data["treat"], x, r_compatible=True, **options)


@pytest.mark.parametrize(("names", "more", "effect", "error", "pairs"), IMBENS)
def test_the_stata_log_of_imbens(
    names: tuple[str, ...], more: dict[str, Any], effect: float, error: float, pairs: int
) -> None:
    result = matched(names, outcome_unit=1000, **(SAMPLE | more))
    assert result.estimate == pytest.approx(effect, rel=2e-5)
    assert result.se == pytest.approx(error, rel=2e-5)
    assert len(result.weights) == pairs


def test_adjusting_for_other_covariates_than_those_matched_on() -> None:
    z = table(lalonde(), ("married", "age"))
    result = matched(FOUR, outcome_unit=1000, bias_adjust=True, covariates=z, **SAMPLE)
    assert result.estimate == pytest.approx(1.71968656670868, rel=2e-5)
    assert result.se == pytest.approx(0.743608513017050, rel=2e-5)


def test_observation_weights() -> None:
    weights = np.exp((lalonde()["educ"] - 10.1) / 2)
    result = matched(FOUR, outcome_unit=1000, weights=weights, **SAMPLE)
    assert result.estimate == pytest.approx(3.14695956932726, rel=2e-5)
    assert result.se == pytest.approx(1.070914907138643, rel=2e-5)
    assert len(result.weights) == 1155
    assert result.n_weighted == pytest.approx(661.147, abs=1e-3)


def test_everything_at_once_on_the_treated() -> None:
    data = lalonde()
    weights = np.exp((data["educ"] - 10.1) / 2)
    result = matched(
        FOUR,
        outcome_unit=1000,
        m=3,
        bias_adjust=True,
        covariates=table(data, ("married", "age")),
        metric=np.ones(4),
        exact=True,
        variance_neighbors=3,
        weights=weights,
    )
    assert result.estimate == pytest.approx(3.16566014738572, rel=2e-5)
    assert result.se == pytest.approx(0.265657268489384, rel=2e-5)
    assert (len(result.weights), result.n_dropped) == (130, 152)
    assert result.n_weighted == pytest.approx(60.015, abs=1e-3)
    assert weights[result.dropped_index].sum() == pytest.approx(262.694, abs=1e-3)


def test_everything_at_once_on_all() -> None:
    data = lalonde()
    result = matched(
        ("age", "educ", "re74"),
        outcome_unit=1000,
        estimand="ATE",
        m=3,
        bias_adjust=True,
        covariates=table(data, ("age", "re75")),
        metric="mahalanobis",
        exact=True,
        weights=np.exp((data["educ"] - 10.1) / 2),
        variance="sample",
    )
    assert result.estimate == pytest.approx(3.50457962724634, rel=2e-5)
    assert result.se == pytest.approx(0.574613885901435, rel=2e-5)
    assert (len(result.weights), result.n_dropped) == (305, 366)


@pytest.mark.parametrize("case", answers("lalonde")["match"], ids=str)
def test_ten_covariates(case: dict[str, Any]) -> None:
    metric = METRICS[case["metric"]]
    result = matched(NAMES, estimand=case["estimand"], m=case["m"], metric=metric)
    assert result.estimate == pytest.approx(case["est"], rel=1e-8)
    assert result.se == pytest.approx(case["se"], rel=1e-8)
    assert result.se_standard == pytest.approx(case["se_standard"], rel=1e-8)
    assert len(result.weights) == case["pairs"]


@pytest.mark.parametrize("case", answers("lalonde")["stacked"], ids=str)
def test_stacked_data(case: dict[str, Any]) -> None:
    data = lalonde()
    copies = case["copies"]
    result = match(
        np.tile(data["re78"], copies),
        np.tile(data["treat"], copies),
        np.tile(table(data, NAMES), (copies, 1)),
        estimand=case["estimand"],
        r_compatible=True,
    )
    assert result.estimate == pytest.approx(case["est"], rel=1e-8)
    assert result.se == pytest.approx(case["se"], rel=1e-8)
    assert len(result.weights) == case["pairs"]


def test_units_without_a_match_count_in_r_s_error_but_not_in_the_right_one() -> None:
    data = lalonde()
    exact = [name in ("age", "educ") for name in NAMES]
    y, treat, x = data["re78"], data["treat"], table(data, NAMES)
    as_in_r = match(y, treat, x, exact=exact, r_compatible=True)
    right = match(y, treat, x, exact=exact, variance_neighbors=0)
    assert as_in_r.n_dropped == right.n_dropped == 49
    assert len(as_in_r.weights) == 222
    assert as_in_r.estimate == pytest.approx(1741.62353456, rel=2e-5)
    assert right.estimate == pytest.approx(as_in_r.estimate)
    assert as_in_r.se == pytest.approx(683.60554701, rel=2e-5)
    assert as_in_r.se_standard == pytest.approx(780.39938947, rel=2e-5)
    assert right.se == pytest.approx(925.57, abs=0.1)


def test_bias_adjustment_with_the_mahalanobis_metric() -> None:
    result = matched(NAMES, metric="mahalanobis", bias_adjust=True)
    assert result.estimate == pytest.approx(1676.78075041, rel=2e-5)
    assert result.se == pytest.approx(822.79940547, rel=2e-5)


PUBLISHED_BY_R = [
    ("inverse_variance", "ATT", 1, 1686.10959432, 866.39985248, 725.22940366, 267),
    ("inverse_variance", "ATT", 4, 1895.00885404, 771.94982151, 701.32072702, 859),
    ("inverse_variance", "ATE", 1, 1934.34025719, 823.03224378, 485.02942009, 598),
    ("inverse_variance", "ATE", 4, 1665.14567173, 683.65327728, 446.38365657, 1964),
    ("inverse_variance", "ATC", 1, 2110.96592115, 964.45075375, 650.05313308, 331),
    ("inverse_variance", "ATC", 4, 1501.58917662, 692.86207589, 578.30368279, 1105),
    ("mahalanobis", "ATT", 1, 1782.84230243, 823.35960361, 679.29919726, 267),
    ("mahalanobis", "ATT", 4, 1849.54131737, 763.80109694, 691.51933035, 841),
    ("mahalanobis", "ATE", 1, 2211.50056730, 822.32883357, 481.85298856, 595),
    ("mahalanobis", "ATE", 4, 1667.06100952, 678.90636331, 441.91859143, 1939),
    ("mahalanobis", "ATC", 1, 2516.50740962, 996.34092466, 667.57844515, 328),
    ("mahalanobis", "ATC", 4, 1537.21925201, 692.97686583, 574.29919522, 1098),
]


@pytest.mark.parametrize(
    ("metric", "estimand", "m", "effect", "error", "error_of_pairs", "pairs"), PUBLISHED_BY_R
)
def test_ten_covariates_as_r_printed_them_on_its_own_copy_of_the_data(
    metric: str,
    estimand: Any,
    m: int,
    effect: float,
    error: float,
    error_of_pairs: float,
    pairs: int,
) -> None:
    result = matched(NAMES, estimand=estimand, m=m, metric=metric)
    assert result.estimate == pytest.approx(effect, rel=2e-6)
    assert result.se == pytest.approx(error, rel=2e-6)
    assert result.se_standard == pytest.approx(error_of_pairs, rel=2e-6)
    assert len(result.weights) == pairs


def test_the_experiment_s_own_difference_and_its_error_by_least_squares() -> None:
    data = lalonde()
    design = np.column_stack([np.ones(445), data["treat"]])
    slopes, squares, _, _ = np.linalg.lstsq(design, data["re78"], rcond=None)
    covariance = np.linalg.inv(design.T @ design) * squares[0] / (445 - 2)
    assert slopes[1] == pytest.approx(1794.343, abs=0.01)
    assert np.sqrt(covariance[1, 1]) == pytest.approx(632.85, abs=0.01)


def test_exact_columns_drop_276_in_the_stata_log() -> None:
    assert matched(FOUR, exact=True, **SAMPLE).n_dropped == 276


@pytest.mark.parametrize("case", answers("lalonde")["fitness"], ids=lambda case: str(case["pairs"]))
def test_the_balance_that_a_genetic_search_maximises(case: dict[str, Any]) -> None:
    """Paired t-tests and KS of 11 covariates; where a column has two values the t-test twice."""
    data = lalonde()
    x = table(data, NAMES)
    result = match(None, data["treat"], x, estimand="ATE", metric=case["par"], r_compatible=True)
    assert len(result.weights) == case["pairs"]
    balanced = np.column_stack([x, data["re74"] * data["re75"]])
    balance = match_balance(balanced, data["treat"], result, boot=0, r_compatible=True)
    assert balance.after is not None
    values = []
    for column in balance.after:
        values += [column.t_p_value, column.t_p_value if column.ks is None else column.ks.p_value]
    assert sorted(values) == pytest.approx(case["fitness"], rel=1e-8)
