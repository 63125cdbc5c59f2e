"""The choice of clusters: rows that are not independent."""

from __future__ import annotations

import numpy as np
import pytest

from equipoise_matching.observation.clusters import Clusters, choose_clusters, windows_of_runs
from equipoise_matching.shared.errors import UnusableInput
from packages.matching.tests.observation.logs import question

NEW = np.tile([True, False], 200)
DAY = np.arange(400) // 10


def chosen(log: dict[str, object], **more: object) -> Clusters | None:
    columns = {name: np.asarray(column) for name, column in log.items()}
    return choose_clusters(columns, question(**more), NEW)


def test_a_window_holds_two_runs_of_a_version() -> None:
    new = np.array([True, True, False, True, False, False, True])
    assert windows_of_runs(np.arange(7.0), new).tolist() == [0, 0, 0, 1, 1, 1, 2]


def test_windows_follow_time_and_not_the_order_of_the_rows() -> None:
    new = np.array([False, True, False, True])
    assert windows_of_runs(np.array([1.0, 2.0, 0.0, 3.0]), new).tolist() == [0, 0, 0, 0]
    assert windows_of_runs(np.arange(4.0), new).tolist() == [0, 0, 1, 1]


def test_the_coarsest_known_column_with_ten_clusters_of_each_version_forms_the_clusters() -> None:
    clusters = chosen({"host": np.arange(400) % 3, "day": DAY, "job": np.arange(400) // 4})
    assert clusters is not None
    assert clusters.by == "day"


def test_without_a_column_of_ten_clusters_the_column_with_the_most_forms_them() -> None:
    clusters = chosen({"host": np.arange(400) % 3, "day": np.arange(400) // 50})
    assert clusters is not None
    assert clusters.by == "day"


def test_a_time_makes_windows() -> None:
    clusters = chosen({"timestamp": np.arange(400.0)})
    assert clusters is not None
    assert clusters.by == "windows of two runs in timestamp"
    assert int(clusters.code.max()) + 1 == 200


def test_there_are_no_clusters_without_a_known_column_or_by_request() -> None:
    assert chosen({"load": DAY}) is None
    assert chosen({"day": DAY}, cluster=()) is None


def test_a_column_with_a_missing_value_is_not_chosen_for_clusters() -> None:
    for missing in (None, float("nan")):
        hosts = np.array([missing, *map(str, DAY[1:])], dtype=object)
        assert chosen({"host": hosts}) is None


def test_the_coarser_of_nested_columns_counts_and_overlapping_columns_are_refused() -> None:
    job = np.arange(400) // 5
    clusters = chosen({"day": DAY, "job": job}, cluster=("job", "day"))
    assert clusters is not None
    assert clusters.by == "day"
    with pytest.raises(UnusableInput, match="overlap"):
        chosen({"day": DAY, "rack": np.arange(400) % 7}, cluster=("day", "rack"))
