"""The screen of operating system primitives: a table for each class, a line for each row."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rich.table import Table
from rich.text import Text

from equipoise.model.primitives import CLASS, PRIMITIVE_METRICS
from equipoise.model.result import ConditionResult, ResultDocument, TrialRow
from equipoise.report.safe_text import visible
from equipoise.report.units import shower, spread_words

UNKNOWN = "–"


def is_of_primitives(document: ResultDocument) -> bool:
    """Whether nothing is compared and every condition reports what a probe does, or cannot."""
    conditions = document.conditions
    reported = [metric_of(one) is not None for one in conditions]
    return bool(conditions) and not document.comparisons and all(reported)


def metric_of(condition: ConditionResult) -> str | None:
    """What its probe reports; ``None`` if it is no probe's."""
    return next(
        (one for one in PRIMITIVE_METRICS if one in condition.metrics or one in condition.unknown),
        None,
    )


def primitives_tables(document: ResultDocument) -> Iterator[Table]:
    """A table for each class, in the order of the plan."""
    groups: dict[str, list[ConditionResult]] = {}
    for condition in document.conditions:
        groups.setdefault(condition.levels.get(CLASS, ""), []).append(condition)
    width = max((len(one.name) for one in document.conditions), default=0)
    processes = processes_of(document)
    for name, conditions in groups.items():
        table = _empty(name.replace("_", " ") or "row", width)
        for one in conditions:
            table.add_row(Text(visible(one.name)), *_cells(one, processes[one.name]))
        yield table


@dataclass(frozen=True, slots=True)
class Processes:
    """The analysed processes of one row."""

    known: int
    """That reported its metric."""
    failed: int
    failure: str
    """Of the first of these; empty if none failed."""


def processes_of(document: ResultDocument) -> dict[str, Processes]:
    """For each condition, how many of its processes reported and how many failed, and of what."""
    rows: dict[str, list[TrialRow]] = {one.name: [] for one in document.conditions}
    for row in document.trials:
        if row.analysed and row.condition in rows:
            rows[row.condition].append(row)
    found: dict[str, Processes] = {}
    for condition in document.conditions:
        metric = metric_of(condition) or PRIMITIVE_METRICS[0]
        failed = [one for one in rows[condition.name] if one.failure is not None]
        reason = failed[0].unknown.get(metric, failed[0].failure or "") if failed else ""
        known = sum(1 for one in rows[condition.name] if metric in one.metrics)
        found[condition.name] = Processes(known, len(failed), reason)
    return found


def why_words(condition: ConditionResult, processes: Processes) -> str:
    """Why a row has no number, some of its processes have none, or it spreads; empty if neither."""
    metric = metric_of(condition) or PRIMITIVE_METRICS[0]
    if metric not in condition.metrics:
        return condition.unknown.get(metric, "")
    parts = [condition.spread_because.get(metric, "")]
    if processes.failed:
        parts.append(f"{processes.failed} processes failed: {processes.failure}")
    return "; ".join(part for part in parts if part)


def summary_words(document: ResultDocument) -> str:
    """How many rows have a number, how many have not, and what the intervals are over."""
    rows = len(document.conditions)
    unknown = sum(1 for one in document.conditions if one.unknown)
    wide = sum(1 for one in document.conditions if one.spread_because)
    words = f"{rows} rows"
    if unknown:
        words += f"; {unknown} without a number here, with the reason"
    if wide:
        words += f"; {wide} spread widely, with what goes with that"
    return f"{words}; medians and intervals over processes, each the median of its batches"


def _empty(heading: str, width: int) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(visible(heading), no_wrap=True, min_width=width)
    for name in ("median", "95 % interval", "spread", "processes"):
        right = name in ("median", "spread", "processes")
        table.add_column(name, justify="right" if right else "left", no_wrap=True)
    table.add_column("why", overflow="fold")
    return table


def _cells(condition: ConditionResult, processes: Processes) -> Iterator[Text]:
    metric = metric_of(condition) or PRIMITIVE_METRICS[0]
    summary = condition.metrics.get(metric)
    why = visible(why_words(condition, processes))
    if summary is None:
        yield from [Text(UNKNOWN)] * 4
        yield Text(why, style="yellow")
        return
    show = shower(metric)
    low, high = summary.median_ci
    yield Text(show(summary.median), style="bold")
    yield Text(UNKNOWN if low is None or high is None else f"{show(low)} to {show(high)}")
    yield Text(spread_words(summary))
    yield Text(str(processes.known))
    yield Text(why, style="dim")
