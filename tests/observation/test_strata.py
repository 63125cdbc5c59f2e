"""Strata matched alone and put together, on logs whose truth is known."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from equipoise.model.errors import UnusableInput
from equipoise.model.observation_result import ObservationResult
from equipoise.observation.analysis import observe
from equipoise.observation.question import Question, select_rows
from equipoise.observation.strata import StratifiedLog, observe_strata
from equipoise.observation.stratum import stratum_seed
from tests.observation.logs import EFFECT, Log, loaded_log, question

DAY = {"cluster": ("day",)}


def by(column: str, log: Log) -> StratifiedLog:
    """The strata of a log in memory."""
    names = tuple(sorted(set(log[column].tolist())))
    versions = {"version": np.unique(log["version"])}
    return StratifiedLog(
        column, names, versions, lambda name: select_rows(log, log[column] == name)
    )


def judged(log: Log, *, column: str = "host_type", **asked: Any) -> ObservationResult:
    return observe_strata(by(column, log), question(**{**DAY, **asked}), source="log")


def test_the_strata_together_hold_the_truth_where_the_naive_answer_is_wrong() -> None:
    found = judged(loaded_log(800))
    assert found.naive.ratio is not None
    assert found.naive.ratio > 1.0
    assert found.matched is not None
    assert found.matched.effect.ratio_ci is not None
    low, high = found.matched.effect.ratio_ci
    assert low < math.exp(EFFECT) < high < 1.0
    assert found.strata is not None
    assert [one.name for one in found.strata.each] == ["amd", "arm"]
    assert found.strata.shared_clusters == 40


@pytest.mark.parametrize("method", ["mahalanobis", "propensity"])
@pytest.mark.parametrize("cluster", [("day",), ()])
def test_one_stratum_alone_gives_what_all_rows_together_give(
    method: str, cluster: tuple[str, ...]
) -> None:
    log = loaded_log()
    log["host_type"] = np.full(400, "arm", dtype=object)
    asked: dict[str, Any] = {"method": method, "cluster": cluster}
    one = judged(log, **asked)
    whole = observe(log, question(**asked, seed=stratum_seed(0, "arm")), source="log")
    assert one.matched is not None
    assert whole.matched is not None
    assert one.matched.effect.ratio == pytest.approx(whole.matched.effect.ratio)
    assert one.matched.interval_by == whole.matched.interval_by
    for own, other in zip(one.matched.errors, whole.matched.errors, strict=True):
        assert own.log_error == pytest.approx(other.log_error)
        assert own.ratio_ci == pytest.approx(other.ratio_ci)
        assert own.difference_ci == pytest.approx(other.difference_ci)
    assert one.naive.ratio_ci == pytest.approx(whole.naive.ratio_ci)
    assert one.naive.difference_ci == pytest.approx(whole.naive.difference_ci)
    assert (one.clustering, one.matching, one.balance) == (
        whole.clustering,
        whole.matching,
        whole.balance,
    )
    assert one.hidden_bias is not None
    assert whole.hidden_bias is not None
    assert one.hidden_bias.gamma_to_change == whole.hidden_bias.gamma_to_change


def test_each_stratum_weighs_as_many_rows_of_the_candidate_as_were_matched() -> None:
    log = loaded_log(600)
    log["wall_s"] = log["wall_s"] * np.where(
        (log["host_type"] == "arm") & (log["version"] == "2.0"), 2.0, 1.0
    )
    found = judged(log)
    assert found.strata is not None
    assert found.matched is not None
    parts = [(one.matched_rows, one.ratio) for one in found.strata.each]
    total = sum(rows or 0 for rows, _ in parts)
    expected = sum((rows or 0) / total * math.log(ratio or 1.0) for rows, ratio in parts)
    assert found.matched.effect.ratio == pytest.approx(math.exp(expected))
    assert parts[1][1] == pytest.approx(2.0 * math.exp(EFFECT), rel=0.05)
    assert found.hidden_bias is not None
    assert found.hidden_bias.gamma_to_change is None
    assert "different signs" in found.hidden_bias.summary


def test_errors_that_a_day_shares_across_strata_widen_the_interval() -> None:
    draw = np.random.default_rng(5)
    log = loaded_log(800)
    shared = draw.normal(0.0, 0.1, 40)[log["day"]]
    # The days of one version and of the other: what a day shares is not told from the version.
    log["version"] = np.where(log["day"] % 2 == 0, "2.0", "1.0").astype(object)
    log["wall_s"] = log["wall_s"] * np.exp(shared)
    apart = dict(log)
    apart["day"] = log["day"] + 100 * (log["host_type"] == "arm")
    errors = []
    for one in (log, apart):
        matched = judged(one).matched
        assert matched is not None
        errors.append(matched.errors[1].log_error or 0.0)
    # One draw a day for both strata, or taken as two: the variance is twice the half.
    assert errors[0] > 1.2 * errors[1]


def test_the_interval_holds_the_truth_as_often_as_it_says_where_strata_share_days() -> None:
    held = 0
    for seed in range(40):
        draw, log = np.random.default_rng(1000 + seed), loaded_log(seed=seed)
        day = log["day"]
        lean = draw.normal(0.0, 1.0, 40)[day]
        new = draw.random(400) < 1.0 / (1.0 + np.exp(1.4 - 0.7 * log["load"] - lean))
        log["version"] = np.where(new, "2.0", "1.0").astype(object)
        noise = draw.normal(0.0, 0.03, 40)[day] + draw.normal(0.0, 0.02, 400)
        kind = 0.3 * (log["host_type"] == "arm")
        log["wall_s"] = np.exp(0.1 * log["load"] + EFFECT * new + kind + noise)
        matched = judged(log).matched
        assert matched is not None
        assert matched.effect.ratio_ci is not None
        low, high = matched.effect.ratio_ci
        held += low < math.exp(EFFECT) < high
    # Of 40 intervals at 95 % fewer than 34 hold once in 300.
    assert held >= 34


def test_a_stratum_that_cannot_be_judged_is_named_with_its_rows() -> None:
    log = loaded_log(600)
    log["rack"] = np.array(["a", "b", "c"], dtype=object)[np.arange(600) % 3]
    rack_b, rack_c = log["rack"] == "b", log["rack"] == "c"
    log["version"][rack_b & (np.arange(600) >= 150)] = "1.0"
    log["load"][rack_b & (log["version"] == "2.0")] += 50.0
    log["version"][rack_c] = "1.0"
    found = judged(log, column="rack")
    assert found.strata is not None
    reasons = {one.name: one.dropped for one in found.strata.each}
    assert reasons["a"] is None
    assert "load still differs by" in (reasons["b"] or "")
    assert reasons["c"] == "no row of 2.0"
    assert found.strata.worst == "a"
    rows = int(np.count_nonzero(rack_b & (log["version"] == "2.0")))
    assert f"{rows:,} of b: load still differs" in found.about
    assert found.rows.candidate == int(np.count_nonzero(log["version"] == "2.0"))
    assert found.matched is not None


def test_an_answer_about_less_than_half_of_the_candidates_rows_is_refused() -> None:
    log = loaded_log(600)
    log["rack"] = np.where(np.arange(600) % 3 == 0, "a", "b").astype(object)
    log["load"][(log["rack"] == "b") & (log["version"] == "2.0")] += 50.0
    found = judged(log, column="rack")
    assert found.refusal is not None
    assert found.refusal.code == "few-strata"
    assert "within rack: b (load still differs" in found.refusal.summary
    assert found.matched is None
    assert found.hidden_bias is None
    log["load"][log["version"] == "2.0"] += 50.0
    with pytest.raises(UnusableInput, match="no stratum can be judged: a"):
        judged(log, column="rack")


def test_strata_may_have_few_clusters_each_if_all_have_enough_together() -> None:
    log = loaded_log(800)
    log["month"] = np.array(["m1", "m2", "m3", "m4", "m5"], dtype=object)[log["day"] // 8]
    found = judged(log, column="month")
    assert found.matched is not None
    assert found.matched.effect.ratio_ci is not None
    assert found.clustering is not None
    assert found.clustering.clusters == 40
    assert found.strata is not None
    assert found.strata.shared_clusters == 0
    few = judged({**log, "day": log["day"] // 5}, column="month")
    assert few.refusal is not None
    assert few.refusal.code == "few-clusters"


def test_the_same_seed_gives_the_same_document_whatever_stands_beside_a_stratum() -> None:
    log = loaded_log(300)
    asked: dict[str, Any] = {"method": "genetic", "covariates": ("load", "unmoved")}
    one = judged(log, **asked)
    assert one == judged(log, threads=2, **asked)
    alone = judged(select_rows(log, log["host_type"] == "arm"), **asked)
    assert one.strata is not None
    assert alone.strata is not None
    assert one.strata.each[1] == alone.strata.each[0]


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"covariates": None}, "default covariates could differ"),
        ({"cluster": None}, "default clusters could differ"),
        ({"placebo_outcomes": ("unmoved",)}, "placebos cannot be combined"),
    ],
)
def test_what_would_not_be_the_same_in_each_stratum_is_refused(
    asked: dict[str, Any], words: str
) -> None:
    with pytest.raises(UnusableInput, match=words):
        judged(loaded_log(), **asked)


def test_rows_of_other_versions_take_no_part_whatever_they_hold() -> None:
    log = loaded_log(600)
    log["rack"] = np.array(["a", "b", "c"], dtype=object)[np.arange(600) % 3]
    other = (log["rack"] == "c") | (np.arange(600) < 60)
    log["version"][other], log["wall_s"][other] = "0.9", 0.0
    with pytest.raises(UnusableInput, match="3 values"):
        judged(log, column="rack")
    found = judged(log, column="rack", leave_others_out=True)
    assert found.matched is not None
    assert found.rows.left_out == {"another version": int(np.count_nonzero(other))}
    assert found.rows.read == 600


def test_wrong_input_names_its_stratum() -> None:
    log = loaded_log()
    log["wall_s"][np.flatnonzero(log["host_type"] == "arm")[0]] = 0.0
    with pytest.raises(UnusableInput, match="stratum arm: wall_s: 0 or less"):
        judged(log)


def test_the_question_needs_no_covariate_where_columns_are_equal() -> None:
    log = loaded_log(800)
    log["busy"] = (log["load"] > 2.0).astype(np.float64)
    asked: Question = question(covariates=None, exact=("busy",), cluster=("day",))
    found = observe_strata(by("host_type", log), asked, source="log")
    assert found.question.exact == ("busy",)
    assert found.matched is not None
