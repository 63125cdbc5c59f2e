"""Clusters: groups of rows that are not independent, such as the rows of a day, host or job.

The times of a column are cut into windows if most of them are distinct. A run is a stretch of time
in which all rows have one version. A window has two successive runs, so it has rows of both
versions. The method is in docs/methods/effects-from-logs.md.
"""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from equipoise_matching.matching.frames import missing_in, value_indices_of
from equipoise_matching.matching.units import Floats, Indices, Truths
from equipoise_matching.observation.question import Log, Question
from equipoise_matching.shared.errors import UnusableInput
from equipoise_matching.shared.spelling import option

MIN_CLUSTERS = 10
"""Number of clusters that each version needs for a standard error."""
CLUSTER_NAMES = frozenset(
    {
        "window", "deployment", "job", "job_id", "build", "build_id", "pipeline", "commit",
        "day", "date", "week", "host", "hostname", "machine", "node", "runner", "pod",
        "campaign", "run", "block",
    }
)  # fmt: skip
"""Names of columns that form clusters unless ``--cluster`` names other columns."""
TIME_NAMES = frozenset(
    {"time", "timestamp", "ts", "started", "started_at", "start_time", "datetime", "when"}
)
"""Names of columns that hold the time of a measurement."""
_MAX_DISTINCT_SHARE = 0.5
"""If a larger share of the times in a column is distinct, the times are cut into windows."""
_RUNS_PER_WINDOW = 2
"""Number of runs in a window."""


class Clusters(Struct, frozen=True):
    """The cluster of each row (``code``), and the column or the windows that form them (``by``)."""

    by: str
    code: Indices

    def count(self, rows: Truths | Indices) -> int:
        """Return the number of clusters that the selected rows belong to."""
        return len(np.unique(self.code[rows]))

    def fewest_clusters(self, treated: Truths) -> int:
        """Return the number of clusters of the version with fewer clusters."""
        return min(self.count(treated), self.count(~treated))


def is_known_cluster(name: str) -> bool:
    """Return whether the name is a known name of a time, a host, a job or another cluster."""
    return name.lower() in CLUSTER_NAMES | TIME_NAMES


def time_of(log: Log) -> tuple[str, Floats] | None:
    """Return the name of the first column with times, and the times as numbers; else ``None``."""
    for name, column in log.items():
        if column.dtype.kind == "M" and not np.isnat(column).any():
            return name, column.astype("datetime64[us]").astype(np.float64)
    for name, column in log.items():
        if name.lower() not in TIME_NAMES | {"day", "date", "week"}:
            continue
        if column.dtype.kind in "iuf" and np.isfinite(column.astype(np.float64)).all():
            return name, column.astype(np.float64)
        if column.dtype.kind == "O" and all(hasattr(time, "isoformat") for time in column.tolist()):
            return name, np.asarray(column, dtype="datetime64[us]").astype(np.float64)
    return None


def choose_clusters(log: Log, question: Question, treated: Truths) -> Clusters | None:
    """Return the requested clusters, or the clusters of a column with a known name.

    The result is ``None`` if no column has a known name or the question excludes clusters. Several
    known columns may have enough clusters in each version; then the coarsest column is used. If no
    column has enough, the column with the most clusters is used, and a later step refuses.
    """
    if question.cluster == ():
        return None
    if question.cluster is not None:
        return _requested_clusters(log, question.cluster, treated)
    other_roles = {question.treatment, question.outcome, *question.placebo_outcomes}
    known = [
        _clusters_of_column(log, name, treated)
        for name in log
        if is_known_cluster(name) and name not in other_roles and not missing_in(log[name]).any()
    ]
    if not known:
        return None
    enough = [clusters for clusters in known if clusters.fewest_clusters(treated) >= MIN_CLUSTERS]
    if enough:
        return min(enough, key=lambda clusters: int(clusters.code.max()))
    return max(known, key=lambda clusters: clusters.fewest_clusters(treated))


def windows_of_runs(time: Floats, treated: Truths) -> Indices:
    """Return the window of each row; a window has ``_RUNS_PER_WINDOW`` successive runs."""
    order = np.argsort(time, kind="stable")
    changed = np.diff(treated[order].astype(np.int8)) != 0
    run = np.concatenate([[0], np.cumsum(changed)])
    window = np.empty(len(time), dtype=np.int64)
    window[order] = run // _RUNS_PER_WINDOW
    return window


def _requested_clusters(log: Log, names: tuple[str, ...], treated: Truths) -> Clusters:
    """Return the clusters of the coarsest column; it must contain the clusters of all others."""
    requested = [_clusters_of_column(log, name, treated) for name in names]
    requested.sort(key=lambda clusters: int(clusters.code.max()))
    coarsest = requested[0]
    for finer in requested[1:]:
        combinations = np.unique(finer.code * (int(coarsest.code.max()) + 1) + coarsest.code)
        if len(combinations) > int(finer.code.max()) + 1:
            raise UnusableInput(
                f"{option('cluster')}: {coarsest.by} and {finer.by} overlap: the rows of one "
                f"{finer.by} have several values of {coarsest.by}",
                hint=f"name only one of these columns: {option('cluster', coarsest.by)}",
            )
    return coarsest


def _clusters_of_column(log: Log, name: str, treated: Truths) -> Clusters:
    column = log[name]
    code = value_indices_of(column, name)
    is_time = column.dtype.kind in "Mf" or name.lower() in TIME_NAMES
    if is_time and int(code.max()) + 1 > _MAX_DISTINCT_SHARE * len(column):
        # The order of the levels is the order of time.
        windows = windows_of_runs(code.astype(np.float64), treated)
        return Clusters(f"windows of two runs in {name}", windows)
    return Clusters(name, code)
