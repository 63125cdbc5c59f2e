"""Covariates of a log: the columns in which rows must be alike."""

from __future__ import annotations

import numpy as np
import pytest

from equipoise_matching.observation.covariates import default_covariates, read_covariates
from equipoise_matching.shared.errors import UnusableInput
from packages.matching.tests.observation.logs import loaded_log, question


def test_texts_become_an_indicator_column_for_each_but_the_first() -> None:
    covariates = read_covariates(loaded_log(), question(covariates=("load", "host_type")))
    assert covariates.names == ("load", "host_type=arm")
    assert covariates.log_columns == ("load", "host_type")
    assert set(covariates.matrix[:, 1]) == {0.0, 1.0}


def test_exact_columns_are_not_matched_on_twice() -> None:
    covariates = read_covariates(
        loaded_log(), question(covariates=("load", "host_type"), exact=("host_type",))
    )
    assert covariates.names == ("load",)
    assert covariates.exact_names == ("host_type",)


def test_default_covariates_leave_out_mediators_times_and_places() -> None:
    log = loaded_log()
    log |= {"user_s": log["wall_s"], "host": log["host_type"], "row": np.arange(400)}
    log |= {"gap": np.where(np.arange(400) == 3, np.nan, 1.0), "mine": log["unmoved"]}
    request = question(covariates=None, placebo_outcomes=("unmoved",), mediators=("mine",))
    assert default_covariates(log, request) == ("load", "host_type")


def test_too_many_texts_are_refused_with_a_hint() -> None:
    names = np.array([f"h{place}" for place in range(30)], dtype=object)
    with pytest.raises(UnusableInput, match="30 different texts") as refused:
        read_covariates({"host": names}, question(covariates=("host",)))
    assert 'exact="host"' in str(refused.value.hint)


def test_a_missing_number_is_refused_with_its_row() -> None:
    with pytest.raises(UnusableInput, match="load is missing in row 1"):
        read_covariates({"load": np.array([1.0, np.nan])}, question())


def test_nothing_to_match_on_is_refused() -> None:
    with pytest.raises(UnusableInput, match="no covariate"):
        read_covariates(loaded_log(), question(covariates=()))
