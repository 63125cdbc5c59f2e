"""Whole observations, of logs whose truth is known."""

from __future__ import annotations

import math

import msgspec.structs
import numpy as np
import pytest

from equipoise_matching.observation.analysis import observe
from equipoise_matching.observation.result import ObservationResult
from equipoise_matching.shared.errors import UnusableInput
from packages.matching.tests.observation.logs import EFFECT, Log, loaded_log, question


def observed(log: Log, **options: object) -> ObservationResult:
    return observe(log, question(**options), source="log")


def warning_codes(result: ObservationResult) -> list[str]:
    return [warning.code for warning in result.warnings]


def test_the_naive_answer_is_wrong_and_the_matched_interval_contains_the_truth() -> None:
    result = observed(loaded_log())
    assert result.naive.ratio_ci is not None
    assert result.naive.ratio_ci[0] > 1.0
    assert result.matched is not None
    assert result.matched.effect.ratio_ci is not None
    low, high = result.matched.effect.ratio_ci
    assert low < math.exp(EFFECT) < high < 1.0
    assert result.matched.interval_method == "clusters"
    assert [error.name for error in result.matched.errors] == ["abadie-imbens", "clusters"]
    assert result.summary.startswith("Without matching, the log suggests that version 2.0 ")
    assert "most of the raw difference comes from load" in result.summary


def test_the_same_seed_gives_the_same_document_whatever_the_threads() -> None:
    log = loaded_log(150)
    expected = observed(log, method="genetic", covariates=("load", "unmoved"), threads=1)
    assert expected == observed(log, method="genetic", covariates=("load", "unmoved"), threads=2)


def test_exchanging_the_versions_inverts_the_naive_ratio() -> None:
    log = loaded_log()
    result, exchanged = observed(log), observed(log, values="1.0:2.0")
    assert result.naive.ratio is not None
    assert exchanged.naive.ratio == pytest.approx(1.0 / result.naive.ratio)


def test_unbalanced_covariates_are_refused_with_the_column_and_the_missing_rows() -> None:
    log = loaded_log()
    log["load"] = log["load"] + np.where(log["version"] == "2.0", 50.0, 0.0)
    result = observed(log)
    assert result.refusal is not None
    assert result.refusal.code == "unbalanced"
    assert result.refusal.summary.startswith("load still differs by")
    assert "rows of 1.0 with load between" in result.refusal.hint
    (missing,) = result.refusal.needed
    assert missing.baseline_rows == 0 or missing.candidate_rows > missing.baseline_rows
    assert result.matched is None
    assert result.hidden_bias is None
    assert "No answer can be given" in result.summary


def test_fewer_than_ten_clusters_of_a_version_are_refused() -> None:
    result = observed(loaded_log(days=6))
    assert result.refusal is not None
    assert result.refusal.code == "few-clusters"
    assert "only 6 clusters (day)" in result.refusal.summary
    assert result.matched is None
    assert observed(loaded_log(days=6), cluster=()).matched is not None


def test_independent_rows_have_a_warning() -> None:
    result = observed(loaded_log(), cluster=())
    assert result.clustering is None
    assert result.matched is not None
    assert result.matched.interval_method == "abadie-imbens"
    assert "rows-independent" in warning_codes(result)
    assert "few-neighbours" not in warning_codes(result)


def test_rows_without_a_comparable_row_of_their_version_have_a_warning() -> None:
    log = loaded_log()
    # Cells of one or two rows of a version.
    log["cell"] = np.round(log["load"] * 40.0)
    result = observed(log, cluster=(), covariates=(), exact=("cell",))
    (warning,) = [entry for entry in result.warnings if entry.code == "few-neighbours"]
    assert "of the matched rows have no comparable row of the same version" in warning.summary
    assert "few-neighbours" not in warning_codes(observed(log, covariates=(), exact=("cell",)))


def test_a_covariate_that_the_version_changes_is_warned_of() -> None:
    log = loaded_log()
    log["minor_faults"] = log["load"] + 1.0
    log["queue"] = log["load"] + 2.0
    options = {"covariates": ("load", "minor_faults", "queue"), "mediators": ("queue",)}
    (warning,) = [entry for entry in observed(log, **options).warnings if entry.code == "mediator"]
    assert "changes minor_faults, queue" in warning.summary


def test_the_scope_names_the_number_of_dropped_rows() -> None:
    log = loaded_log()
    new = np.flatnonzero(log["version"] == "2.0")
    log["load"] = log["load"].copy()
    log["load"][new[::4]] += 40.0
    result = observed(log)
    assert result.matching.candidate_dropped >= len(new[::4])
    assert (
        f"the other {result.matching.candidate_dropped} have no comparable row of 1.0"
        in result.scope
    )
    (load,) = result.dropped_means
    assert load.dropped_mean > load.matched_mean


def test_an_outcome_of_zero_has_a_difference_only() -> None:
    log = loaded_log()
    log["wall_s"] = log["wall_s"] - float(np.median(log["wall_s"]))
    with pytest.raises(UnusableInput, match="0 or less"):
        observed(log)
    result = observed(log, ratio=False)
    assert result.naive.ratio is None
    assert result.matched is not None
    assert result.matched.effect.ratio is None
    assert result.matched.effect.difference_ci is not None


def test_a_placebo_outcome_that_the_version_cannot_have_moved_shows_nothing() -> None:
    (placebo,) = observed(loaded_log(), placebo_outcomes=("unmoved",)).placebos
    assert placebo.shows_effect is False


def test_a_placebo_outcome_that_differs_warns() -> None:
    log = loaded_log()
    log["unmoved"] = log["unmoved"] + np.where(log["version"] == "2.0", 1.0, 0.0)
    result = observed(log, placebo_outcomes=("unmoved",))
    assert "placebo-outcome" in warning_codes(result)


def with_periods(effect_before: float) -> Log:
    """Rows of the first half are from before the new version: the column names the hosts' group."""
    log = loaded_log(800, days=80)
    early = np.arange(800) < 400
    new = log["version"] == "2.0"
    log["period"] = np.where(early, "before", "after").astype(object)
    moved = np.where(early & new, effect_before - EFFECT, 0.0)
    log["wall_s"] = log["wall_s"] * np.exp(moved)
    return log


def test_a_placebo_period_takes_no_part_in_the_answer_and_shows_no_effect() -> None:
    result = observed(with_periods(0.0), placebo_period=("period", "before"))
    (placebo,) = result.placebos
    assert placebo.shows_effect is False
    assert result.rows.left_out == {"the placebo period period=before": 400}
    assert result.rows.candidate + result.rows.baseline == 400


def test_an_effect_in_the_placebo_period_warns() -> None:
    result = observed(with_periods(0.1), placebo_period=("period", "before"))
    assert "placebo-period" in warning_codes(result)


def test_a_placebo_period_without_both_versions_is_unknown_with_a_reason() -> None:
    log = loaded_log()
    early = (np.arange(400) < 80) & (log["version"] == "1.0")
    log["period"] = np.where(early, "before", "after").astype(object)
    (placebo,) = observed(log, placebo_period=("period", "before")).placebos
    assert placebo.shows_effect is None
    assert placebo.summary.startswith("unknown: ")


def test_an_effect_that_changes_in_time_is_reported_by_period_with_a_warning() -> None:
    log = loaded_log(800, days=80)
    late = (np.arange(800) >= 400) & (log["version"] == "2.0")
    log["wall_s"] = log["wall_s"] * np.where(late, 1.3, 1.0)
    result = observed(log)
    assert len(result.periods) == 4
    first, last = result.periods[0], result.periods[-1]
    assert first.ratio is not None
    assert last.ratio is not None
    assert first.ratio < 1.0 < last.ratio
    assert "effect-changes" in warning_codes(result)
    rows = sum(period.candidate_rows for period in result.periods)
    assert rows == result.matching.candidate_matched


def test_unknown_columns_and_columns_with_two_roles_are_refused() -> None:
    with pytest.raises(UnusableInput, match="^covariates: there is no column lod"):
        observed(loaded_log(), covariates=("lod",))
    with pytest.raises(UnusableInput, match="wall_s is named by outcome and by covariates"):
        observed(loaded_log(), covariates=("wall_s",))
    with pytest.raises(UnusableInput, match="no row has day=99"):
        observed(loaded_log(), placebo_period=("day", "99"))


def test_the_rows_of_another_version_are_counted() -> None:
    log = loaded_log()
    log["version"] = log["version"].copy()
    log["version"][:10] = "3.0"
    assert observed(log, leave_others_out=True).rows.left_out == {"another version": 10}


def test_the_document_is_frozen_data() -> None:
    result = observed(loaded_log(150))
    assert msgspec.structs.replace(result) == result
    assert result.question.covariates == ("load",)
