"""A result beside a reference result: of another host, or of this one earlier."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from equipoise.model.errors import UnusableInput
from equipoise.model.interval import Interval
from equipoise.model.primitives import OS_STUDY, PRIMITIVE_METRICS
from equipoise.model.record import UNAVAILABLE
from equipoise.model.result import (
    ConditionResult,
    EnvironmentDifference,
    ReferenceComparison,
    ReferenceRow,
    ResultDocument,
    TrialRow,
)
from equipoise.stats.sessions import (
    LEAST_PROCESSES,
    Changes,
    RowChange,
    Session,
    changes_between,
    difference_between_sessions,
)


class _Row(Struct, frozen=True):
    """One row of a result: its costs, and its median as it was reported."""

    metric: str
    session: Session
    median: float


def compare_with_reference(
    there: ResultDocument,
    here: ResultDocument,
    *,
    min_effect: float,
    alpha: float,
) -> ReferenceComparison:
    """Hold every row that is in either result against the other.

    A row is a condition on the primary metric of the result here; of `equipoise os`, on the metric
    of its probe. Conditions of the two are the same by name, or else by their command.

    Parameters
    ----------
    min_effect
        In percent: a change up to it is none.
    alpha
        The false-discovery rate among the rows that are called changed.

    Raises
    ------
    UnusableInput
        No row has a number in both.
    """
    metrics = PRIMITIVE_METRICS if here.run.study == OS_STUDY else (here.primary_metric,)
    there = _named_as(there, here)
    more_is_better = {*there.more_is_better, *here.more_is_better}
    rows_there, rows_here = (dict(_rows(one, metrics, more_is_better)) for one in (there, here))
    both = [
        name
        for name, row in rows_here.items()
        if name in rows_there and rows_there[name].metric == row.metric
    ]
    if not both:
        raise UnusableInput(
            f"run {there.run.id} has no row with a number in common with this one",
            hint=f"hold it against a result with the same rows and their {' or '.join(metrics)}",
        )
    earlier = [rows_there[name].session for name in both]
    later = [rows_here[name].session for name in both]
    differences = document_differences(there, here)
    between = 0.0 if differences else difference_between_sessions(earlier, later)
    found = changes_between(earlier, later, min_effect=min_effect, alpha=alpha, between=between)
    changes = dict(zip(both, found.rows, strict=True))
    names = dict.fromkeys(one.name for one in (*here.conditions, *there.conditions))
    return ReferenceComparison(
        run=there.run.id,
        started=there.run.started,
        rows=tuple(
            _known_row(name, rows_there[name], rows_here[name], changes[name])
            if name in changes
            else _unknown_row(
                name,
                metrics,
                {"there": (rows_there.get(name), there), "here": (rows_here.get(name), here)},
            )
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


def _named_as(there: ResultDocument, here: ResultDocument) -> ResultDocument:
    """Give what is there under another name, and has the same command, the name it has here."""
    names_here = {one.name for one in here.conditions}
    names_there = {one.name for one in there.conditions}
    by_command = {one.command: one.name for one in here.conditions if one.name not in names_there}
    renamed = {
        one.name: by_command[one.command]
        for one in there.conditions
        if one.command and one.name not in names_here and one.command in by_command
    }
    if len(set(renamed.values())) < len(renamed):
        return there
    return replace(
        there,
        conditions=tuple(
            replace(one, name=renamed.get(one.name, one.name)) for one in there.conditions
        ),
        trials=tuple(
            replace(one, condition=renamed.get(one.condition, one.condition))
            for one in there.trials
        ),
    )


def _rows(
    result: ResultDocument, metrics: Sequence[str], more_is_better: Collection[str]
) -> Iterator[tuple[str, _Row]]:
    """Yield a row for each condition whose trials all have a number."""
    for condition in result.conditions:
        trials = _trials(condition, result)
        metric = next((one for one in metrics if any(_value(row, one) for row in trials)), None)
        if metric is None:
            continue
        known = [(row, value) for row in trials if (value := _value(row, metric)) is not None]
        if len(known) < len(trials) and result.run.study != OS_STUDY:
            continue
        values = np.array([value for _, value in known], dtype=np.float64)
        blocks = np.array([row.block for row, _ in known], dtype=np.int64)
        if result.imported is not None and result.imported.source.order != "in blocks":
            # The files have no blocks: each trial is one of its own.
            first = result.conditions.index(condition) * len(result.trials)
            blocks = np.arange(first, first + len(known))
        costs = 1.0 / values if metric in more_is_better else values
        yield condition.name, _Row(metric, Session(costs, blocks), float(np.median(values)))


def _trials(condition: ConditionResult, result: ResultDocument) -> list[TrialRow]:
    return [one for one in result.trials if one.analysed and one.condition == condition.name]


def _value(row: TrialRow, metric: str) -> float | None:
    """Return a trial's value of a metric if it is above 0 and the trial ended by itself."""
    if row.failure is not None and row.failure.startswith((UNAVAILABLE, "timed out")):
        return None
    value = row.metrics.get(metric, getattr(row, metric, None))
    return float(value) if value is not None and math.isfinite(value) and value > 0 else None


def _known_row(name: str, there: _Row, here: _Row, change: RowChange) -> ReferenceRow:
    few = min(len(one.session.costs) for one in (there, here)) < LEAST_PROCESSES
    return ReferenceRow(
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
    name: str, metrics: Sequence[str], sides: Mapping[str, tuple[_Row | None, ResultDocument]]
) -> ReferenceRow:
    (there, _), (here, _) = sides["there"], sides["here"]
    reasons = [
        f"{side}: {_why_missing(name, result, metrics)}"
        for side, (row, result) in sides.items()
        if row is None
    ]
    found = here or there
    return ReferenceRow(
        name=name,
        metric=metrics[0] if found is None else found.metric,
        there=None if there is None else there.median,
        here=None if here is None else here.median,
        ratio=None,
        ratio_ci=(None, None),
        p_value=None,
        changed=None,
        unknown="; ".join(reasons) or "the two report different metrics",
    )


def _why_missing(name: str, result: ResultDocument, metrics: Sequence[str]) -> str:
    condition = next((one for one in result.conditions if one.name == name), None)
    if condition is None:
        return "not measured"
    for reason in condition.unknown.values():
        return reason
    trials = _trials(condition, result)
    without = sum(1 for row in trials if not any(_value(row, one) for one in metrics))
    if not without:
        return "not measured"
    return f"{without} of {len(trials)} trials have no {' or '.join(metrics)} above 0"


def _interval(low: float, high: float) -> Interval:
    if not (math.isfinite(low) and math.isfinite(high)):
        return (None, None)
    return (math.exp(low), math.exp(high))


def _scope(found: Changes, between: float, *, alike: bool) -> str:
    """Return the scope of the ratios, and what the intervals allow for."""
    halves = max(found.here.halves, found.there.halves)
    together = 100.0 * math.expm1(math.hypot(found.here.together, found.there.together))
    words = (
        "across processes, of these two sessions, which were not interleaved: whatever differs "
        "between them stands in the ratio. The intervals hold the spread between processes"
    )
    if min(found.here.blocks, found.there.blocks) == 0:
        return f"{words}; so few rows do not tell how sessions drift"
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


IGNORED_FACTS = frozenset(
    {
        # Another session of the same host: nothing in them changes what is measured.
        "boot_id",
        "certificate",
        "mapped",
        "environment_bytes",
        "time_zone",
        "unknown",
        "variables_set_but_withheld",
    }
)
"""Facts that differ between any two sessions, or stand elsewhere in the result."""
ENVIRONMENT = "environment"
"""Name for all that a file of another tool does not say of its host."""


def document_differences(
    there: ResultDocument, here: ResultDocument
) -> tuple[EnvironmentDifference, ...]:
    """Return the differences between the environments of two results.

    Of an imported run only what its files say is known. What is known of one side only is then no
    difference by itself: the whole `environment` is one that is unknown, even where both files say
    the same.
    """
    differences = environment_differences(there.environment, here.environment)
    recorded = (there.imported is None, here.imported is None)
    return differences if all(recorded) else _partly_known(differences, recorded)


def differences_to_host(
    there: ResultDocument, host: Mapping[str, Any]
) -> tuple[EnvironmentDifference, ...]:
    """Return the differences between a result and a campaign that is yet to run.

    Parameters
    ----------
    host
        The environment that it will run in.
    """
    differences = environment_differences(there.environment, host)
    return differences if there.imported is None else _partly_known(differences, (False, True))


def _partly_known(
    differences: Sequence[EnvironmentDifference], recorded: tuple[bool, bool]
) -> tuple[EnvironmentDifference, ...]:
    return (
        EnvironmentDifference(ENVIRONMENT, *("recorded" if one else None for one in recorded)),
        *(
            one
            for one in differences
            if None not in (one.there, one.here) and one.name != "imported_from"
        ),
    )


def environment_differences(
    there: Mapping[str, Any], here: Mapping[str, Any]
) -> tuple[EnvironmentDifference, ...]:
    """Return the facts that differ or that one side lacks, in the order of the later side."""
    earlier, later = dict(_flattened(there)), dict(_flattened(here))
    return tuple(
        EnvironmentDifference(name, earlier.get(name), later.get(name))
        for name in {**later, **earlier}
        if earlier.get(name) != later.get(name)
    )


def _flattened(environment: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Names and plain values; what is in a table has the name of the table before its own."""
    for name, value in environment.items():
        if not prefix and name in IGNORED_FACTS:
            continue
        if isinstance(value, Mapping):
            yield from _flattened(value, f"{prefix}{name}.")
        else:
            # JSON knows no tuples.
            yield f"{prefix}{name}", list(value) if isinstance(value, tuple) else value
