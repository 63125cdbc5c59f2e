"""Published numbers: Imbens's Stata log, Sekhon (2011), and R's package, on LaLonde's data.

causaldata has more digits than R's copy of the data: what R printed agrees to about 1e-5, and
what R computed from causaldata (tests/golden/lalonde.json) to 1e-8.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from equipoise.matching.match import match
from tests.matching.golden import METRICS, lalonde_cases
from tests.matching.nsw import NAMES, lalonde

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


@pytest.mark.parametrize(("names", "more", "effect", "error", "pairs"), IMBENS)
def test_the_stata_log_of_imbens(
    names: tuple[str, ...], more: dict[str, Any], effect: float, error: float, pairs: int
) -> None:
    data = lalonde()
    x = table(data, names)
    found = match(data["re78"] / 1000, data["treat"], x, r_compatible=True, **(SAMPLE | more))
    assert found.estimate == pytest.approx(effect, rel=2e-5)
    assert found.se == pytest.approx(error, rel=2e-5)
    assert len(found.weights) == pairs


def test_adjusting_for_other_covariates_than_those_matched_on() -> None:
    data = lalonde()
    z = table(data, ("married", "age"))
    found = match(
        data["re78"] / 1000,
        data["treat"],
        table(data, FOUR),
        bias_adjust=True,
        covariates=z,
        r_compatible=True,
        **SAMPLE,
    )
    assert found.estimate == pytest.approx(1.71968656670868, rel=2e-5)
    assert found.se == pytest.approx(0.743608513017050, rel=2e-5)


def test_observation_weights() -> None:
    data = lalonde()
    weights = np.exp((data["educ"] - 10.1) / 2)
    y, x = data["re78"] / 1000, table(data, FOUR)
    found = match(y, data["treat"], x, weights=weights, r_compatible=True, **SAMPLE)
    assert found.estimate == pytest.approx(3.14695956932726, rel=2e-5)
    assert found.se == pytest.approx(1.070914907138643, rel=2e-5)
    assert len(found.weights) == 1155
    assert found.n_weighted == pytest.approx(661.147, abs=1e-3)


def test_everything_at_once_on_the_treated() -> None:
    data = lalonde()
    weights = np.exp((data["educ"] - 10.1) / 2)
    found = match(
        data["re78"] / 1000,
        data["treat"],
        table(data, FOUR),
        m=3,
        bias_adjust=True,
        covariates=table(data, ("married", "age")),
        metric=np.ones(4),
        exact=True,
        variance_neighbors=3,
        weights=weights,
        r_compatible=True,
    )
    assert found.estimate == pytest.approx(3.16566014738572, rel=2e-5)
    assert found.se == pytest.approx(0.265657268489384, rel=2e-5)
    assert (len(found.weights), found.n_dropped) == (130, 152)
    assert found.n_weighted == pytest.approx(60.015, abs=1e-3)
    assert weights[found.dropped_index].sum() == pytest.approx(262.694, abs=1e-3)


def test_everything_at_once_on_all() -> None:
    data = lalonde()
    found = match(
        data["re78"] / 1000,
        data["treat"],
        table(data, ("age", "educ", "re74")),
        estimand="ATE",
        m=3,
        bias_adjust=True,
        covariates=table(data, ("age", "re75")),
        metric="mahalanobis",
        exact=True,
        weights=np.exp((data["educ"] - 10.1) / 2),
        variance="sample",
        r_compatible=True,
    )
    assert found.estimate == pytest.approx(3.50457962724634, rel=2e-5)
    assert found.se == pytest.approx(0.574613885901435, rel=2e-5)
    assert (len(found.weights), found.n_dropped) == (305, 366)


@pytest.mark.parametrize("case", lalonde_cases()["match"], ids=str)
def test_ten_covariates(case: dict[str, Any]) -> None:
    data = lalonde()
    found = match(
        data["re78"],
        data["treat"],
        table(data, NAMES),
        estimand=case["estimand"],
        m=case["m"],
        metric=METRICS[case["metric"]],
        r_compatible=True,
    )
    assert found.estimate == pytest.approx(case["est"], rel=1e-8)
    assert found.se == pytest.approx(case["se"], rel=1e-8)
    assert found.se_standard == pytest.approx(case["se_standard"], rel=1e-8)
    assert len(found.weights) == case["pairs"]


@pytest.mark.parametrize("case", lalonde_cases()["stacked"], ids=str)
def test_stacked_data(case: dict[str, Any]) -> None:
    data = lalonde()
    copies = case["copies"]
    found = match(
        np.tile(data["re78"], copies),
        np.tile(data["treat"], copies),
        np.tile(table(data, NAMES), (copies, 1)),
        estimand=case["estimand"],
        r_compatible=True,
    )
    assert found.estimate == pytest.approx(case["est"], rel=1e-8)
    assert found.se == pytest.approx(case["se"], rel=1e-8)
    assert len(found.weights) == case["pairs"]


def test_units_without_a_match_count_in_r_s_error_but_not_in_the_right_one() -> None:
    data = lalonde()
    exact = [name in ("age", "educ") for name in NAMES]
    y, treat, x = data["re78"], data["treat"], table(data, NAMES)
    as_in_r = match(y, treat, x, exact=exact, r_compatible=True)
    right = match(y, treat, x, exact=exact)
    assert as_in_r.n_dropped == right.n_dropped == 49
    assert len(as_in_r.weights) == 222
    assert as_in_r.estimate == pytest.approx(1741.62353456, rel=2e-5)
    assert right.estimate == pytest.approx(as_in_r.estimate)
    assert as_in_r.se == pytest.approx(683.60554701, rel=2e-5)
    assert as_in_r.se_standard == pytest.approx(780.39938947, rel=2e-5)
    assert right.se == pytest.approx(925.57, abs=0.1)


def test_bias_adjustment_with_the_mahalanobis_metric() -> None:
    data = lalonde()
    found = match(
        data["re78"],
        data["treat"],
        table(data, NAMES),
        metric="mahalanobis",
        bias_adjust=True,
        r_compatible=True,
    )
    assert found.estimate == pytest.approx(1676.78075041, rel=2e-5)
    assert found.se == pytest.approx(822.79940547, rel=2e-5)
