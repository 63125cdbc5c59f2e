"""Operating system primitives: a table for each class, a row for each probe."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from equipoise.model.primitives import CLASS, PRIMITIVE_METRICS
from equipoise.model.result import ConditionResult, ResultDocument, TrialRow
from equipoise.report.document import UNKNOWN, Cell, Column, Styled, Table
from equipoise.report.units import metric_formatter, spread_text

WIDE_PERCENT = 10
"""Spread between processes from which the analysis looks for a cause."""


def is_of_primitives(document: ResultDocument) -> bool:
    """Return whether nothing is compared and every condition is a probe's."""
    conditions = document.conditions
    probes = [probe_metric(one) is not None for one in conditions]
    return bool(conditions) and not document.comparisons and all(probes)


def probe_metric(condition: ConditionResult) -> str | None:
    """Return what the condition's probe reports; ``None`` if the condition is no probe's."""
    return next(
        (one for one in PRIMITIVE_METRICS if one in condition.metrics or one in condition.unknown),
        None,
    )


def primitives_tables(document: ResultDocument) -> Iterator[Table]:
    """Build a table for each class, in the order of the plan."""
    groups: dict[str, list[ConditionResult]] = {}
    for condition in document.conditions:
        group = condition.levels.get(CLASS, document.run.study).replace("_", " ")
        groups.setdefault(group, []).append(condition)
    processes: dict[str, list[TrialRow]] = {one.name: [] for one in document.conditions}
    for trial in document.trials:
        if trial.analysed and trial.condition in processes:
            processes[trial.condition].append(trial)
    columns = (
        Column(""),
        Column("Median", "number"),
        Column("95 % interval"),
        Column("Spread", "number"),
        Column("Processes", "number"),
        Column("Why", "words"),
    )
    for group, conditions in groups.items():
        rows = tuple((one.name, *_cells(one, processes[one.name])) for one in conditions)
        yield Table(columns, rows, title=group or "row")


def primitives_tiles(document: ResultDocument) -> Iterator[tuple[str, str]]:
    """Yield the first row of each class that has a number, as its name and its median."""
    classes = set()
    for condition in document.conditions:
        group = condition.levels.get(CLASS, document.run.study).replace("_", " ")
        metric = probe_metric(condition)
        if group not in classes and metric in condition.metrics:
            classes.add(group)
            median = metric_formatter(metric)(condition.metrics[metric].median)
            yield f"{group}: {condition.name}", median


def primitives_sentence(document: ResultDocument) -> str:
    """Return how many rows have a number, how many vary, and what the intervals are over."""
    rows = len(document.conditions)
    unknown = sum(1 for one in document.conditions if one.unknown)
    wide = sum(1 for one in document.conditions if one.spread_because)
    sentences = []
    if wide:
        sentences.append(
            f"{wide} of {rows} rows {'varies' if wide == 1 else 'vary'} by more than "
            f"{WIDE_PERCENT} % between processes; the last column names what they vary with."
        )
    if unknown:
        have = "has" if unknown == 1 else "have"
        sentences.append(
            f"{unknown} of {rows} rows {have} no number here; the last column says why."
        )
    return " ".join(
        [
            *(sentences or [f"{rows} rows."]),
            "Medians and intervals are over processes; each process gives the median of its "
            "batches.",
        ]
    )


def _cells(condition: ConditionResult, processes: Sequence[TrialRow]) -> Iterator[Cell]:
    """Yield the cells of a row from its summary and its analysed processes."""
    metric = probe_metric(condition) or PRIMITIVE_METRICS[0]
    summary = condition.metrics.get(metric)
    if summary is None:
        yield from [UNKNOWN] * 4
        yield Styled(condition.unknown.get(metric, ""), "caution")
        return
    show = metric_formatter(metric)
    low, high = summary.median_ci
    yield Styled(show(summary.median), "strong")
    yield UNKNOWN if low is None or high is None else f"{show(low)} to {show(high)}"
    yield spread_text(summary)
    yield str(sum(metric in process.metrics for process in processes))
    reasons = [condition.spread_because.get(metric, "")]
    failed = [process for process in processes if process.failure is not None]
    if failed:
        failure = failed[0].unknown.get(metric, failed[0].failure or "")
        reasons.append(f"{len(failed)} processes failed: {failure}")
    yield Styled("; ".join(filter(None, reasons)), "dim")
