"""Strata matched alone and put together, on logs whose truth is known."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from equipoise_matching.matching.frames import take_rows
from equipoise_matching.observation.analysis import observe
from equipoise_matching.observation.question import Question
from equipoise_matching.observation.result import ObservationResult
from equipoise_matching.observation.strata import StratifiedLog, observe_strata, stratum_seed
from equipoise_matching.shared.errors import UnusableInput
from packages.matching.tests.observation.logs import EFFECT, Log, loaded_log, question

DAY = {"cluster": ("day",)}


def by(column: str, log: Log) -> StratifiedLog[Any]:
    """The strata of a log in memory."""
    rows = {name: log[column] == name for name in sorted(set(log[column].tolist()))}
    versions = {"version": np.unique(log["version"])}
    return StratifiedLog(column, rows, versions, lambda rows: take_rows(log, rows))


def observed(log: Log, *, column: str = "host_type", **options: Any) -> ObservationResult:
    return observe_strata(by(column, log), question(**{**DAY, **options}), source="log")


def test_the_strata_together_hold_the_truth_where_the_naive_answer_is_wrong() -> None:
    result = observed(loaded_log(800))
    assert result.naive.ratio is not None
    assert result.naive.ratio > 1.0
    assert result.matched is not None
    assert result.matched.effect.ratio_ci is not None
    low, high = result.matched.effect.ratio_ci
    assert low < math.exp(EFFECT) < high < 1.0
    assert result.strata is not None
    assert [stratum.name for stratum in result.strata.results] == ["amd", "arm"]
    assert result.strata.shared_clusters == 40


@pytest.mark.parametrize("method", ["mahalanobis", "propensity"])
@pytest.mark.parametrize("cluster", [("day",), ()])
def test_a_single_stratum_gives_the_answer_of_all_rows_together(
    method: str, cluster: tuple[str, ...]
) -> None:
    log = loaded_log()
    log["host_type"] = np.full(400, "arm", dtype=object)
    options: dict[str, Any] = {"method": method, "cluster": cluster}
    stratified = observed(log, **options)
    whole = observe(log, question(**options, seed=stratum_seed(0, "arm")), source="log")
    assert stratified.matched is not None
    assert whole.matched is not None
    assert stratified.matched.effect.ratio == pytest.approx(whole.matched.effect.ratio)
    assert stratified.matched.interval_method == whole.matched.interval_method
    for error, expected in zip(stratified.matched.errors, whole.matched.errors, strict=True):
        assert error.log_error == pytest.approx(expected.log_error)
        assert error.ratio_ci == pytest.approx(expected.ratio_ci)
        assert error.difference_ci == pytest.approx(expected.difference_ci)
    assert stratified.naive.ratio_ci == pytest.approx(whole.naive.ratio_ci)
    assert stratified.naive.difference_ci == pytest.approx(whole.naive.difference_ci)
    assert (stratified.clustering, stratified.matching, stratified.balance) == (
        whole.clustering,
        whole.matching,
        whole.balance,
    )
    assert stratified.hidden_bias is not None
    assert whole.hidden_bias is not None
    assert stratified.hidden_bias.gamma_to_change == whole.hidden_bias.gamma_to_change


def test_each_stratum_weighs_as_many_rows_of_the_candidate_as_were_matched() -> None:
    log = loaded_log(600)
    log["wall_s"] = log["wall_s"] * np.where(
        (log["host_type"] == "arm") & (log["version"] == "2.0"), 2.0, 1.0
    )
    result = observed(log)
    assert result.strata is not None
    assert result.matched is not None
    parts = [(stratum.matched_rows, stratum.ratio) for stratum in result.strata.results]
    total = sum(rows or 0 for rows, _ in parts)
    expected = sum((rows or 0) / total * math.log(ratio or 1.0) for rows, ratio in parts)
    assert result.matched.effect.ratio == pytest.approx(math.exp(expected))
    assert parts[1][1] == pytest.approx(2.0 * math.exp(EFFECT), rel=0.05)
    assert result.hidden_bias is not None
    assert result.hidden_bias.gamma_to_change is None
    assert "different signs" in result.hidden_bias.summary


def test_errors_that_a_day_shares_across_strata_widen_the_interval() -> None:
    draw = np.random.default_rng(5)
    log = loaded_log(800)
    shared = draw.normal(0.0, 0.1, 40)[log["day"]]
    # Each day has one version: the effect of a day cannot be separated from the version.
    log["version"] = np.where(log["day"] % 2 == 0, "2.0", "1.0").astype(object)
    log["wall_s"] = log["wall_s"] * np.exp(shared)
    apart = dict(log)
    apart["day"] = log["day"] + 100 * (log["host_type"] == "arm")
    errors = []
    for rows in (log, apart):
        matched = observed(rows).matched
        assert matched is not None
        errors.append(matched.errors[1].log_error or 0.0)
    # One draw a day for both strata, or taken as two: the variance is twice the half.
    assert errors[0] > 1.2 * errors[1]


def test_the_interval_contains_the_truth_at_its_level_where_strata_share_days() -> None:
    hits = 0
    for seed in range(40):
        draw, log = np.random.default_rng(1000 + seed), loaded_log(seed=seed)
        day = log["day"]
        lean = draw.normal(0.0, 1.0, 40)[day]
        new = draw.random(400) < 1.0 / (1.0 + np.exp(1.4 - 0.7 * log["load"] - lean))
        log["version"] = np.where(new, "2.0", "1.0").astype(object)
        noise = draw.normal(0.0, 0.03, 40)[day] + draw.normal(0.0, 0.02, 400)
        kind = 0.3 * (log["host_type"] == "arm")
        log["wall_s"] = np.exp(0.1 * log["load"] + EFFECT * new + kind + noise)
        matched = observed(log).matched
        assert matched is not None
        assert matched.effect.ratio_ci is not None
        low, high = matched.effect.ratio_ci
        hits += low < math.exp(EFFECT) < high
    # Of 40 intervals at 95 % fewer than 34 hold once in 300.
    assert hits >= 34


def test_a_stratum_that_cannot_be_judged_is_named_with_its_rows() -> None:
    log = loaded_log(600)
    log["rack"] = np.array(["a", "b", "c"], dtype=object)[np.arange(600) % 3]
    rack_b, rack_c = log["rack"] == "b", log["rack"] == "c"
    log["version"][rack_b & (np.arange(600) >= 150)] = "1.0"
    log["load"][rack_b & (log["version"] == "2.0")] += 50.0
    log["version"][rack_c] = "1.0"
    result = observed(log, column="rack")
    assert result.strata is not None
    reasons = {stratum.name: stratum.reason for stratum in result.strata.results}
    assert reasons["a"] is None
    assert "load still differs by" in (reasons["b"] or "")
    assert reasons["c"] == "no row of 2.0"
    assert result.strata.worst_stratum == "a"
    rows = int(np.count_nonzero(rack_b & (log["version"] == "2.0")))
    assert f"{rows:,} of b: load still differs" in result.scope
    assert result.rows.candidate == int(np.count_nonzero(log["version"] == "2.0"))
    assert result.matched is not None


def test_an_answer_about_less_than_half_of_the_candidates_rows_is_refused() -> None:
    log = loaded_log(600)
    log["rack"] = np.where(np.arange(600) % 3 == 0, "a", "b").astype(object)
    log["load"][(log["rack"] == "b") & (log["version"] == "2.0")] += 50.0
    result = observed(log, column="rack")
    assert result.refusal is not None
    assert result.refusal.code == "few-strata"
    assert "within rack: b (load still differs" in result.refusal.summary
    assert result.matched is None
    assert result.hidden_bias is None
    log["load"][log["version"] == "2.0"] += 50.0
    with pytest.raises(UnusableInput, match="no stratum has an answer: a"):
        observed(log, column="rack")


def test_strata_may_have_few_clusters_each_if_all_have_enough_together() -> None:
    log = loaded_log(800)
    log["month"] = np.array(["m1", "m2", "m3", "m4", "m5"], dtype=object)[log["day"] // 8]
    result = observed(log, column="month")
    assert result.matched is not None
    assert result.matched.effect.ratio_ci is not None
    assert result.clustering is not None
    assert result.clustering.clusters == 40
    assert result.strata is not None
    assert result.strata.shared_clusters == 0
    with_few_clusters = observed({**log, "day": log["day"] // 5}, column="month")
    assert with_few_clusters.refusal is not None
    assert with_few_clusters.refusal.code == "few-clusters"


def test_the_same_seed_gives_the_same_document_whatever_the_other_strata() -> None:
    log = loaded_log(300)
    options: dict[str, Any] = {"method": "genetic", "covariates": ("load", "unmoved")}
    result = observed(log, **options)
    assert result == observed(log, threads=2, **options)
    alone = observed(take_rows(log, log["host_type"] == "arm"), **options)
    assert result.strata is not None
    assert alone.strata is not None
    assert result.strata.results[1] == alone.strata.results[0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"covariates": None}, "default covariates could differ"),
        ({"cluster": None}, "default clusters could differ"),
        ({"placebo_outcomes": ("unmoved",)}, "cannot be combined over strata"),
    ],
)
def test_options_that_could_differ_between_strata_are_refused(
    options: dict[str, Any], message: str
) -> None:
    with pytest.raises(UnusableInput, match=message):
        observed(loaded_log(), **options)


def test_rows_of_other_versions_take_no_part_whatever_their_values() -> None:
    log = loaded_log(600)
    log["rack"] = np.array(["a", "b", "c"], dtype=object)[np.arange(600) % 3]
    other = (log["rack"] == "c") | (np.arange(600) < 60)
    log["version"][other], log["wall_s"][other] = "0.9", 0.0
    with pytest.raises(UnusableInput, match="3 values"):
        observed(log, column="rack")
    result = observed(log, column="rack", leave_others_out=True)
    assert result.matched is not None
    assert result.rows.left_out == {"another version": int(np.count_nonzero(other))}
    assert result.rows.read == 600


def test_wrong_input_names_its_stratum() -> None:
    log = loaded_log()
    log["wall_s"][np.flatnonzero(log["host_type"] == "arm")[0]] = 0.0
    with pytest.raises(UnusableInput, match="stratum arm: wall_s is 0 or less"):
        observed(log)


def test_the_question_needs_no_covariate_where_columns_are_equal() -> None:
    log = loaded_log(800)
    log["busy"] = (log["load"] > 2.0).astype(np.float64)
    request: Question = question(covariates=None, exact=("busy",), cluster=("day",))
    result = observe_strata(by("host_type", log), request, source="log")
    assert result.question.exact == ("busy",)
    assert result.matched is not None
