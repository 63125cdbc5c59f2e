"""The screen of operating system primitives: a table for each class, a line for each row."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich.table import Table
from rich.text import Text

from equipoise.model.primitives import CLASS, PRIMITIVE_METRICS
from equipoise.model.result import ConditionResult, ResultDocument
from equipoise.report.safe_text import visible
from equipoise.report.units import shower, spread_words

UNKNOWN = "–"


def is_of_primitives(document: ResultDocument) -> bool:
    """Whether nothing is compared and every condition reports what a probe does, or cannot."""
    return not document.comparisons and all(
        metric_of(one) is not None for one in document.conditions
    )


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
    for name, conditions in groups.items():
        yield _table(name.replace("_", " ") or "row", conditions, width)


def summary_words(document: ResultDocument) -> str:
    """How many rows have a number, how many have not, and what the intervals are over."""
    rows = len(document.conditions)
    unknown = sum(1 for one in document.conditions if one.unknown)
    wide = sum(1 for one in document.conditions if one.spread_because)
    words = f"{rows} rows"
    if unknown:
        words += f"; {unknown} without a number here, with the reason"
    if wide:
        words += f"; {wide} spread widely, with what that goes with"
    return f"{words}; medians and intervals over processes, each the median of its batches"


def _table(heading: str, conditions: Iterable[ConditionResult], width: int) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(visible(heading), no_wrap=True, min_width=width)
    for name in ("median", "95 % interval", "spread", "processes"):
        right = name in ("median", "spread", "processes")
        table.add_column(name, justify="right" if right else "left", no_wrap=True)
    table.add_column("why", overflow="fold")
    for condition in conditions:
        table.add_row(Text(visible(condition.name)), *_cells(condition))
    return table


def _cells(condition: ConditionResult) -> Iterator[Text]:
    metric = metric_of(condition) or PRIMITIVE_METRICS[0]
    summary = condition.metrics.get(metric)
    if summary is None:
        yield from [Text(UNKNOWN)] * 4
        yield Text(visible(condition.unknown.get(metric, "")), style="yellow")
        return
    show = shower(metric)
    low, high = summary.median_ci
    yield Text(show(summary.median), style="bold")
    yield Text(UNKNOWN if low is None or high is None else f"{show(low)} to {show(high)}")
    yield Text(spread_words(summary))
    yield Text(str(condition.trials - condition.failures))
    yield Text(visible(condition.spread_because.get(metric, "")), style="dim")
