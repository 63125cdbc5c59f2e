"""A result of primitives held against another one: of another host, or of this one earlier."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from equipoise.campaign.comparable import environment_differences
from equipoise.model.against import Against, RowAgainst
from equipoise.model.errors import UnusableInput
from equipoise.model.interval import Interval
from equipoise.model.primitives import BANDWIDTH, PRIMITIVE_METRICS
from equipoise.model.result import ResultDocument
from equipoise.stats.sessions import (
    LEAST_PROCESSES,
    Changes,
    RowChange,
    Session,
    between_alike,
    changes_between,
)


@dataclass(frozen=True, slots=True)
class _Row:
    """One row of a result: its costs, and its median as it was reported."""

    metric: str
    session: Session
    median: float


def against(
    there: ResultDocument, here: ResultDocument, *, min_effect: float, alpha: float
) -> Against:
    """Hold every row that is in either result against the other.

    Raises
    ------
    UnusableInput
        No row has a number in both.
    """
    rows_there, rows_here = dict(_rows(there)), dict(_rows(here))
    both = [
        name
        for name, row in rows_here.items()
        if name in rows_there and rows_there[name].metric == row.metric
    ]
    if not both:
        raise UnusableInput(
            f"run {there.run.id} has no row with a number in common with this one",
            mend="hold it against a result of `equipoise os` with the same rows",
        )
    earlier = [rows_there[name].session for name in both]
    later = [rows_here[name].session for name in both]
    differences = environment_differences(there.environment, here.environment)
    between = 0.0 if differences else between_alike(earlier, later)
    found = changes_between(earlier, later, min_effect=min_effect, alpha=alpha, between=between)
    changes = dict(zip(both, found.rows, strict=True))
    names = dict.fromkeys(one.name for one in (*here.conditions, *there.conditions))
    return Against(
        run=there.run.id,
        started=there.run.started,
        rows=tuple(
            _known_row(name, rows_there[name], rows_here[name], changes[name])
            if name in changes
            else _unknown_row(name, rows_there.get(name), rows_here.get(name), there, here)
            for name in names
        ),
        differences=differences,
        geometric_mean=math.exp(found.mean),
        geometric_mean_ci=_interval(found.mean_low, found.mean_high),
        geometric_mean_rows=len(both),
        min_effect=min_effect,
        alpha=alpha,
        level=found.level,
        between_sessions=100.0 * math.expm1(between),
        scope=_scope(found, between, alike=not differences),
    )


def _rows(result: ResultDocument) -> Iterator[tuple[str, _Row]]:
    gathered: dict[str, list[tuple[int, float]]] = {}
    metrics: dict[str, str] = {}
    for trial in result.trials:
        metric = next((one for one in PRIMITIVE_METRICS if one in trial.metrics), None)
        if trial.analysed and metric is not None and trial.metrics[metric] > 0:
            metrics[trial.condition] = metric
            gathered.setdefault(trial.condition, []).append((trial.block, trial.metrics[metric]))
    for name, listed in gathered.items():
        values = np.array([value for _, value in listed], dtype=np.float64)
        blocks = np.array([block for block, _ in listed], dtype=np.int64)
        costs = 1.0 / values if metrics[name] == BANDWIDTH else values
        yield name, _Row(metrics[name], Session(costs, blocks), float(np.median(values)))


def _known_row(name: str, there: _Row, here: _Row, change: RowChange) -> RowAgainst:
    few = min(len(one.session.costs) for one in (there, here)) < LEAST_PROCESSES
    return RowAgainst(
        name=name,
        metric=here.metric,
        there=there.median,
        here=here.median,
        ratio=math.exp(change.difference),
        ratio_ci=_interval(change.low, change.high),
        p_value=None if few else change.p_value,
        changed=None if few else change.changed,
        unknown="one process on a side: its spread is not known" if few else None,
    )


def _unknown_row(
    name: str,
    there: _Row | None,
    here: _Row | None,
    result_there: ResultDocument,
    result_here: ResultDocument,
) -> RowAgainst:
    sides = [
        f"{side}: {_why_missing(name, result)}"
        for side, row, result in (("there", there, result_there), ("here", here, result_here))
        if row is None
    ]
    found = here or there
    return RowAgainst(
        name=name,
        metric=PRIMITIVE_METRICS[0] if found is None else found.metric,
        there=None if there is None else there.median,
        here=None if here is None else here.median,
        ratio=None,
        ratio_ci=(None, None),
        p_value=None,
        changed=None,
        unknown="; ".join(sides) or "the two report different metrics",
    )


def _why_missing(name: str, result: ResultDocument) -> str:
    condition = next((one for one in result.conditions if one.name == name), None)
    if condition is None:
        return "not measured"
    return next(iter(condition.unknown.values()), "not measured")


def _interval(low: float, high: float) -> Interval:
    if not (math.isfinite(low) and math.isfinite(high)):
        return (None, None)
    return (math.exp(low), math.exp(high))


def _scope(found: Changes, between: float, *, alike: bool) -> str:
    """What the ratios are about, and what the intervals allow for."""
    halves = max(found.here.halves, found.there.halves)
    together = 100.0 * math.expm1(math.hypot(found.here.together, found.there.together))
    words = (
        "across processes, of these two sessions, which were not interleaved: whatever differs "
        "between them stands in the ratio. The intervals hold the spread between processes"
    )
    if min(found.here.blocks, found.there.blocks) == 0:
        return f"{words}; so few rows do not tell how sessions drift: measure them all for that"
    if halves > 1.0:
        words += f", its variance ×{halves:.2g} because halves of a session differ"
    words += f", and ±{together:.2g} % for what moved all rows together"
    if alike:
        return (
            f"{words}. Nothing known of the two environments differs, so that what half of the "
            "rows differ by is taken for what sessions differ by: "
            f"±{100.0 * math.expm1(between):.2g} % more"
        )
    return (
        f"{words}. What another session would have shown beyond that is not known: "
        "measure each side twice"
    )
