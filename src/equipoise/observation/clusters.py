"""Which rows are not independent: windows of time, days, hosts, jobs (verdict.md §9)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise.matching.stratified import levels_of
from equipoise.model.errors import UnusableInput
from equipoise.observation.question import Log, Question

LEAST = 10
"""Clusters that each arm needs: with fewer the error itself is a guess."""

NAMES = frozenset(
    {
        "window", "deployment", "job", "job_id", "build", "build_id", "pipeline", "commit",
        "day", "date", "week", "host", "hostname", "machine", "node", "runner", "pod",
        "campaign", "run", "block",
    }
)  # fmt: skip
"""Columns that are taken for clusters unless --cluster says otherwise."""
TIMES = frozenset(
    {"time", "timestamp", "ts", "started", "started_at", "start_time", "datetime", "when"}
)
"""Columns that say when a row was measured."""
_MOSTLY_DISTINCT = 0.5
RUNS_A_WINDOW = 2


@dataclass(frozen=True, slots=True)
class Clusters:
    """``code`` (rows,) is the cluster of each row; ``by`` says in words what a cluster is."""

    by: str
    code: NDArray[np.int64]


def is_known_cluster(name: str) -> bool:
    """Whether a column of this name says when or where a row was measured."""
    return name.lower() in NAMES | TIMES


def time_of(log: Log) -> tuple[str, NDArray[np.float64]] | None:
    """The first column that says when, and its values as numbers that grow with time."""
    for name, column in log.items():
        if column.dtype.kind == "M" and not np.isnat(column).any():
            return name, column.astype("datetime64[us]").astype(np.float64)
    for name, column in log.items():
        known = name.lower() in TIMES | {"day", "date", "week"}
        if not known:
            continue
        if column.dtype.kind in "iuf" and np.isfinite(column.astype(np.float64)).all():
            return name, column.astype(np.float64)
        if column.dtype.kind == "O" and all(hasattr(one, "isoformat") for one in column.tolist()):
            return name, np.asarray(column, dtype="datetime64[us]").astype(np.float64)
    return None


def clusters_of(log: Log, question: Question, treated: NDArray[np.bool_]) -> Clusters | None:
    """The clusters that were asked for, or the coarsest known ones with enough of each arm.

    ``None`` if no column is known, or none is wanted. Where no known one has enough, the one with
    the most clusters: the answer is then refused, not given with a wrong error.

    Raises
    ------
    UnusableInput
        Two columns overlap, or a value is missing.
    """
    if question.cluster == ():
        return None
    if question.cluster is not None:
        return _asked(log, question.cluster, treated)
    taken = {question.treatment, question.outcome, *question.placebo_outcomes}
    found = [
        _of_column(log, name, treated)
        for name in log
        if is_known_cluster(name) and name not in taken and _is_whole(log[name])
    ]
    if not found:
        return None
    enough = [one for one in found if min(arm_clusters(one, treated)) >= LEAST]
    if enough:
        return min(enough, key=lambda one: int(one.code.max()))
    return max(found, key=lambda one: min(arm_clusters(one, treated)))


def arm_clusters(clusters: Clusters, treated: NDArray[np.bool_]) -> tuple[int, int]:
    """How many clusters hold treated rows, and how many hold others."""
    return (
        len(np.unique(clusters.code[treated])),
        len(np.unique(clusters.code[~treated])),
    )


def windows_of_runs(time: NDArray[np.float64], treated: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Windows of two runs each: a run is a stretch of time in which one arm only was measured."""
    order = np.argsort(time, kind="stable")
    changed = np.diff(treated[order].astype(np.int8)) != 0
    run = np.concatenate([[0], np.cumsum(changed)])
    window = np.empty(len(time), dtype=np.int64)
    window[order] = run // RUNS_A_WINDOW
    return window


def _asked(log: Log, names: tuple[str, ...], treated: NDArray[np.bool_]) -> Clusters:
    found = [_of_column(log, name, treated) for name in names]
    found.sort(key=lambda one: int(one.code.max()))
    coarsest = found[0]
    for finer in found[1:]:
        together = np.unique(finer.code * (int(coarsest.code.max()) + 1) + coarsest.code)
        if len(together) > int(finer.code.max()) + 1:
            raise UnusableInput(
                f"--cluster: {coarsest.by} and {finer.by} overlap: a {finer.by} lies in several "
                f"of {coarsest.by}, so no row is in one cluster only",
                hint="name the one whose rows depend more on each other",
            )
    return coarsest


def _of_column(log: Log, name: str, treated: NDArray[np.bool_]) -> Clusters:
    column = log[name]
    code = levels_of(column, name)
    is_time = column.dtype.kind in "Mf" or name.lower() in TIMES
    if is_time and int(code.max()) + 1 > _MOSTLY_DISTINCT * len(column):
        # The order of the levels is that of time.
        return Clusters(
            f"windows of two runs in {name}", windows_of_runs(code.astype(np.float64), treated)
        )
    return Clusters(name, code)


def _is_whole(column: NDArray[Any]) -> bool:
    """Whether no value is missing."""
    if column.dtype.kind == "f":
        return not np.isnan(column).any()
    if column.dtype.kind == "M":
        return not np.isnat(column).any()
    return column.dtype.kind != "O" or all(one is not None for one in column.tolist())
