"""The report of primitives: a table for each class, and each row with its own metric.

The report is for results whose conditions are all probes, without comparisons. Such results come
from `equipoise os`, and from studies whose kind of campaign uses this report.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from equipoise.figures.gallery import ConfidenceSequences, Figure, KindFigures, optional_figure
from equipoise.model.quantities import counted
from equipoise.model.result import ConditionResult, ResultDocument, TrialRow
from equipoise.report.document import UNKNOWN, Cell, Statement, StyledText, Table, columns_and_rows
from equipoise.report.kind import KindReport, Title
from equipoise.report.units import metric_formatter, range_text, spread_text
from equipoise.shared.spelling import option
from equipoise_studies.primitives.rows import CLASS, PRIMITIVE_METRICS

WIDE_PERCENT = 10
"""Spread between processes above which a row counts as varying."""


class PrimitivesReport(KindReport):
    """Report of a campaign of probes. Other campaigns have the report of a comparison."""

    top_figures = frozenset(f"primitives_{metric}" for metric in PRIMITIVE_METRICS)

    def scope_of(self, document: ResultDocument) -> str | None:
        """Return the scope of the medians."""
        if not is_of_primitives(document) or not document.run.blocks:
            return None
        return "across processes, in this campaign on this host"

    def question(self, document: ResultDocument) -> str | None:
        """Return the question that the campaign answers."""
        if not is_of_primitives(document) or document.against is not None:
            return None
        return "What do operating system primitives cost here?"

    def title(self, document: ResultDocument, statements: Sequence[Statement]) -> Title | None:
        """Return the sentence above the tables; ``None`` if there is another answer."""
        has_finding = document.findings is not None and bool(document.findings.answer)
        has_answer = has_finding or document.against is not None or document.typical is not None
        if has_answer or not is_of_primitives(document):
            return None
        known = (document.environment.get(key) for key in ("system", "kernel"))
        system = " ".join(str(value) for value in known if value) or "this system"
        cpu = document.environment.get("cpu_model")
        on_cpu = f" on {cpu}" if cpu else ""
        return f"Operating system primitives: {system}{on_cpu}", _sentences(document)

    def tables(self, document: ResultDocument) -> tuple[Table, ...]:
        """Return a table for each class, in the order of the plan."""
        return tuple(_tables(document)) if is_of_primitives(document) else ()

    def brief_tables(self, document: ResultDocument) -> tuple[Table, ...]:
        """Return one table with the first row of each class that has a number."""
        return (_brief_table(document),) if is_of_primitives(document) else ()

    def tiles(self, document: ResultDocument) -> Iterator[tuple[str, str]]:
        """Yield name and median of the first row of each class that has a number."""
        if is_of_primitives(document) and document.against is None:
            yield from _tiles(document)

    def metric_of(self, document: ResultDocument, condition: ConditionResult) -> str:
        """Return the metric that a row's probe reports."""
        metric = probe_metric(condition) if is_of_primitives(document) else None
        return metric or document.primary_metric


class PrimitivesFigures(KindFigures):
    """The charts of a campaign of probes."""

    def gallery(self, document: Any, sequences: ConfidenceSequences) -> Iterator[Figure] | None:
        """Draw the rows of each metric; ``None`` if the document has other conditions."""
        return _figures(document) if is_of_primitives(document) else None


def is_of_primitives(document: ResultDocument) -> bool:
    """Return whether Equipoise measured only probes, and compared nothing."""
    if not document.conditions or document.comparisons or not document.has_random_order:
        return False
    return all(probe_metric(condition) is not None for condition in document.conditions)


def probe_metric(condition: ConditionResult) -> str | None:
    """Return the metric of the condition's probe; ``None`` if the condition is not a probe."""
    known = condition.metrics.keys() | condition.unknown.keys()
    return next((metric for metric in PRIMITIVE_METRICS if metric in known), None)


def _figures(document: ResultDocument) -> Iterator[Figure]:
    from equipoise_studies.primitives import charts

    for metric in PRIMITIVE_METRICS:
        chart = charts.primitives(document, metric)
        yield from optional_figure(f"primitives_{metric}", charts.HOW_TO_READ, chart)


def _tables(document: ResultDocument) -> Iterator[Table]:
    classes: dict[str, list[ConditionResult]] = {}
    for condition in document.conditions:
        class_name = condition.levels.get(CLASS, document.run.study).replace("_", " ")
        classes.setdefault(class_name, []).append(condition)
    processes: dict[str, list[TrialRow]] = {condition.name: [] for condition in document.conditions}
    for trial in document.trials:
        if trial.analysed and trial.condition in processes:
            processes[trial.condition].append(trial)
    for class_name, conditions in classes.items():
        columns, rows = columns_and_rows(
            _row(condition, processes[condition.name]) for condition in conditions
        )
        yield Table(columns, rows, title=class_name or "row")


def _first_of_each_class(document: ResultDocument) -> Iterator[tuple[str, str, ConditionResult]]:
    """Yield each class, with the metric and condition of its first row that has a number."""
    classes = set()
    for condition in document.conditions:
        class_name = condition.levels.get(CLASS, document.run.study).replace("_", " ")
        metric = probe_metric(condition)
        if class_name not in classes and metric in condition.metrics:
            classes.add(class_name)
            yield class_name, metric, condition


def _tiles(document: ResultDocument) -> Iterator[tuple[str, str]]:
    for class_name, metric, condition in _first_of_each_class(document):
        median = metric_formatter(metric)(condition.metrics[metric].median)
        yield f"{class_name}: {condition.name}", median


def _brief_table(document: ResultDocument) -> Table:
    rows: list[Mapping[str, Cell]] = []
    for _, metric, condition in _first_of_each_class(document):
        summary, show = condition.metrics[metric], metric_formatter(metric)
        rows.append(
            {
                "row:name": condition.name,
                "median:number": StyledText(show(summary.median), "strong"),
                "95 % interval": range_text(summary.median_ci, show),
                "spread:number": spread_text(summary),
            }
        )
    hidden = len(document.conditions) - len(rows)
    more = f"{counted(hidden, 'more row')}: {option('verbose')}, or the page of {option('report')}"
    notes = (f"The first row of each class; {more}.",) if hidden else ()
    return Table(*columns_and_rows(rows), notes=notes)


def _sentences(document: ResultDocument) -> tuple[str, ...]:
    row_count = len(document.conditions)
    unknown_count = sum(1 for condition in document.conditions if condition.unknown)
    wide_count = sum(1 for condition in document.conditions if condition.spread_because)
    sentences = []
    if wide_count:
        sentences.append(
            f"{wide_count} of {row_count} rows {'varies' if wide_count == 1 else 'vary'} by more "
            f"than {WIDE_PERCENT} % between processes; the full table names what they vary with."
        )
    if unknown_count:
        have = "has" if unknown_count == 1 else "have"
        sentences.append(
            f"{unknown_count} of {row_count} rows {have} no number here; "
            "the full table has the reasons."
        )
    medians = (
        "Medians and intervals are over processes; each process gives the median of its batches."
    )
    return (" ".join([*(sentences or [f"{row_count} rows."]), medians]),)


def _row(condition: ConditionResult, processes: Sequence[TrialRow]) -> Mapping[str, Cell]:
    metric = probe_metric(condition) or PRIMITIVE_METRICS[0]
    summary, show = condition.metrics.get(metric), metric_formatter(metric)
    median: Cell = UNKNOWN
    interval, spread, count = UNKNOWN, UNKNOWN, UNKNOWN
    explanation = StyledText(condition.unknown.get(metric, ""), "caution")
    if summary is not None:
        median, spread = StyledText(show(summary.median), "strong"), spread_text(summary)
        interval = range_text(summary.median_ci, show)
        count = str(sum(metric in process.metrics for process in processes))
        reasons = [condition.spread_because.get(metric, "")]
        failed = [process for process in processes if process.failure is not None]
        if failed:
            failure = failed[0].unknown.get(metric, failed[0].failure or "")
            reasons.append(f"{len(failed)} processes failed: {failure}")
        explanation = StyledText("; ".join(filter(None, reasons)), "dim")
    return {
        "": condition.name,
        "Median:number": median,
        "95 % interval": interval,
        "Spread:number": spread,
        "Processes:number": count,
        "Why:text": explanation,
    }
