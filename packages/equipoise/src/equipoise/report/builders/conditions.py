"""Builds tables with a row for each condition: for the terminal, a page, and texts.

- A suffix of a heading, such as ``:number``, is not shown: it sets the layout of the column (see
  `columns_and_rows`).
- The metric that a campaign compares is its primary metric; `PRIMARY_METRIC`, the wall time, is
  only the default. Further requested metrics are the other metrics.
- Comparisons have ratios of costs. A table shows ratios of values, as `shown_comparison` returns.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from equipoise.figures.quantity import metric_name
from equipoise.figures.values import (
    MIN_SIZES,
    analysed_values,
    exponent_text,
    numeric_factors,
    scaling_laws,
)
from equipoise.model.inverse_ratios import ComparisonT, with_ratios_of_values
from equipoise.model.metrics import is_time, verdict_word
from equipoise.model.plan import COMPARE_STUDY, PRIMARY_METRIC
from equipoise.model.result import Comparison, ConditionResult, ResultDocument
from equipoise.report.document import (
    PAGE,
    TERMINAL,
    TEXT_AND_NOTEBOOK,
    UNKNOWN,
    Cell,
    ConditionName,
    HeadedCells,
    Histogram,
    StyledText,
    Table,
    columns_and_rows,
)
from equipoise.report.units import (
    byte_count,
    capitalized,
    change_text,
    estimate_and_interval,
    interval_text,
    metric_formatter,
    metric_value,
    range_text,
    spread_text,
    with_coverage,
)
from equipoise.shared.theme import color_of
from equipoise.stats.scaling import ScalingLaw, describe_law

MAX_OTHER_METRIC_ROWS = 60
"""Maximum number of comparisons on other metrics that a terminal shows."""
MAX_METRIC_COLUMNS = 3
"""Maximum number of other metrics with a column in the main table; more are in extra tables."""


def terminal_table(result: ResultDocument) -> Table:
    """Build the terminal's table: a median, its spread and a histogram for each condition."""
    metric = result.primary_metric
    columns = _MainColumns.of(result)
    values = analysed_values(result, metric)
    rows: list[HeadedCells] = []
    for condition in result.conditions:
        summary = condition.metrics.get(metric)
        histogram: Cell = UNKNOWN
        if summary is not None:
            ends = metric_value(summary.min, metric), metric_value(summary.max, metric)
            histogram = Histogram(values[condition.name], summary.min, summary.max, ends)
        rows.append(
            (
                ("condition:name", condition.name),
                *columns.primary_cells(condition),
                ("shape", histogram),
                *columns.other_cells(condition),
            )
        )
    return Table(*columns_and_rows(rows), notes=columns.notes)


def grouped_table(result: ResultDocument) -> Table:
    """Build the terminal's table of a study, in groups: a group differs in one factor only."""
    columns, comparisons = _MainColumns.of(result), result.primary_comparisons
    factor = compared_factor(result, comparisons[0])
    by_candidate = {comparison.candidate: comparison for comparison in comparisons}
    baselines = {comparison.baseline for comparison in comparisons}
    # In `compare`, the name of a condition already contains its levels.
    has_full_names = result.run.study == COMPARE_STUDY
    heading = "condition" if has_full_names else factor or "condition"
    rows: list[HeadedCells] = []
    for levels, conditions in _groups_by_levels(result.conditions, factor).items():
        if levels and not has_full_names:
            group = ", ".join(f"{name} {level}" for name, level in levels)
            rows.append((("", StyledText(group, "strong")),))
        for condition in conditions:
            name = condition.name
            shown_name = name if has_full_names else condition.levels.get(factor or "", name)
            rows.append(
                (
                    (f"{heading}:name", shown_name),
                    *columns.primary_cells(condition),
                    *_verdict_cells(by_candidate.get(name), result, name in baselines),
                    *columns.other_cells(condition),
                )
            )
    return Table(*columns_and_rows(rows), notes=columns.notes, forms=TERMINAL)


def text_table(result: ResultDocument) -> Table:
    """Build the table for Markdown, LaTeX and a notebook, with the verdict of each condition."""
    columns, comparisons = _MainColumns.of(result), result.primary_comparisons
    # Sample comparisons are about trials without a random order, so they have no verdict.
    sample_comparisons = result.samples
    # By candidate: the change against the baseline, the interval, and the verdict.
    verdict_cells: dict[str, tuple[str, str, str]] = {}
    for comparison in comparisons:
        shown = shown_comparison(result, comparison)
        change, interval = estimate_and_interval(shown.ratio, shown.ratio_ci)
        verdict_text = shown_verdict(result, comparison)
        intervals = _intervals_text(shown, interval)
        verdict_cells[comparison.candidate] = (change, intervals, verdict_text)
    for sample in sample_comparisons:
        change, interval = estimate_and_interval(
            sample.ratio, sample.ratio_ci, unknown="unknown", unlimited="unknown"
        )
        # In place of a verdict, the table has the name of the kind of campaign.
        verdict_cells[sample.candidate] = (change, interval, result.kind.name)
    baselines = {comparison.baseline for comparison in comparisons}
    baselines |= {sample.baseline for sample in sample_comparisons}
    rows: list[HeadedCells] = []
    for condition in result.conditions:
        no_verdict = ("baseline" if condition.name in baselines else UNKNOWN, "", "")
        verdict = verdict_cells.get(condition.name, no_verdict) if verdict_cells else ()
        headings = ("Against baseline:number", "Interval:number", "Verdict:number")
        rows.append(
            (
                ("Condition:name", condition.name),
                *_distribution_cells(condition, columns.primary_metric),
                *columns.memory_cells(condition, "Peak memory"),
                ("Trials:number", _trials_text(condition)),
                *zip(headings, verdict, strict=False),
                *columns.capitalized_other_cells(condition),
            )
        )
    return Table(*columns_and_rows(rows), notes=columns.notes, forms=TEXT_AND_NOTEBOOK)


def page_table(result: ResultDocument) -> Table:
    """Build the table of an HTML page, with the command and the colour of each condition."""
    columns = _MainColumns.of(result)
    metric = columns.primary_metric
    rows: list[HeadedCells] = []
    for index, condition in enumerate(result.conditions):
        command = shlex.join(condition.command)
        other_command = "" if command == condition.name else command
        name = ConditionName(condition.name, color_of(index), other_command)
        summary = condition.metrics.get(metric)
        minimum = UNKNOWN if summary is None else metric_value(summary.min, metric)
        drift = None if summary is None or summary.drift is None else summary.drift.ratio
        rows.append(
            (
                ("Condition:name", name),
                *_distribution_cells(condition, metric),
                ("Fastest:number" if is_time(metric) else "Least:number", minimum),
                *columns.memory_cells(condition, "Peak memory"),
                ("Drift:number", change_text(drift, UNKNOWN)),
                ("Trials:number", _trials_text(condition)),
                *columns.capitalized_other_cells(condition),
            )
        )
    return Table(*columns_and_rows(rows), label="Conditions", notes=columns.notes, forms=PAGE)


def further_tables(result: ResultDocument) -> Iterator[Table]:
    """Build the tables of the other metrics that have no column in the main table."""
    further_metrics = _MainColumns.of(result).further_metrics
    column_count = MAX_METRIC_COLUMNS + 1
    for begin in range(0, len(further_metrics), column_count):
        metrics = further_metrics[begin : begin + column_count]
        more_is_better = [metric for metric in metrics if metric in result.more_is_better]
        rows = (
            (("condition:name", condition.name), *_median_cells(condition, metrics, "median {}"))
            for condition in result.conditions
        )
        yield Table(
            *columns_and_rows(rows),
            label="Medians of further metrics",
            notes=_more_is_better_notes(more_is_better),
        )


def equivalence_text(comparison: Comparison) -> str:
    """Return the text of the equivalence interval, with its coverage.

    The text is empty if this interval did not allow the verdict ``equivalent``, or if it is the
    interval of the ratio.
    """
    level, interval = comparison.equivalence_level, comparison.equivalence_ci
    # With `means_forbid_equivalence`, this interval allowed the verdict, but the means forbade it.
    allows_equivalent = comparison.verdict == "equivalent" or comparison.means_forbid_equivalence
    if not allows_equivalent or interval == comparison.ratio_ci:
        return ""
    # The equivalence intervals of all comparisons together have this alpha.
    shared_alpha = comparison.alpha * level / comparison.significance_level
    text = interval_text(interval, "still unlimited")
    return with_coverage(text, level, shared_alpha, "equivalence interval")


def _intervals_text(comparison: Comparison, ratio_interval: str) -> str:
    return ", ".join(filter(None, (ratio_interval, equivalence_text(comparison))))


def other_metrics_table(result: ResultDocument, comparisons: Sequence[Comparison]) -> Table:
    """Build the table of comparisons on metrics other than the primary metric."""
    rows = (
        {
            "other metrics": comparison.metric,
            "candidate": comparison.candidate,
            **_effect_cells(shown_comparison(result, comparison)),
            "verdict": shown_verdict(result, comparison),
        }
        for comparison in comparisons
    )
    return Table(*columns_and_rows(rows), label="Other metrics", max_rows=MAX_OTHER_METRIC_ROWS)


def scaling_tables(result: ResultDocument, metric: str, excluded: str | None) -> Iterator[Table]:
    """Build a table for each factor whose levels are sizes, except the factor ``excluded``."""
    for factor in numeric_factors(result, metric):
        laws = scaling_laws(result, factor, metric)
        if factor != excluded and laws:
            yield _scaling_table(factor, metric, laws)


def compared_factor(result: ResultDocument, comparison: Comparison) -> str | None:
    """Return the factor whose level differs between the two conditions of a comparison."""
    levels = {condition.name: condition.levels for condition in result.conditions}
    baseline, candidate = levels.get(comparison.baseline, {}), levels.get(comparison.candidate, {})
    return next((name for name in candidate if baseline.get(name) != candidate[name]), None)


def shown_comparison(result: ResultDocument, comparison: ComparisonT) -> ComparisonT:
    """Return a comparison with ratios of values instead of ratios of costs.

    Both ratios differ only if more of a metric is better: then one is the inverse of the other.
    """
    more_is_better = comparison.metric in result.more_is_better
    return with_ratios_of_values(comparison) if more_is_better else comparison


def shown_verdict(result: ResultDocument, comparison: Comparison) -> str:
    """Return the verdict as a word that fits its metric, such as ``slower`` or ``more``."""
    metric, more_is_better = comparison.metric, comparison.metric in result.more_is_better
    return verdict_word(comparison.verdict, metric, more_is_better=more_is_better)


class _MainColumns(Struct, frozen=True):
    """Metrics with a column in the main table, and metrics without a column."""

    primary_metric: str
    median_heading: str
    """Heading of the median of the primary metric."""
    other_metrics: tuple[str, ...]
    """Metrics in the last columns: some other metrics, then the wall time of the process."""
    further_metrics: tuple[str, ...]
    """Other metrics without a column in the main table."""
    has_memory: bool
    """Whether the peak memory has a column although it was not requested."""
    notes: tuple[str, ...]
    """Notes below the table."""

    @classmethod
    def of(cls, result: ResultDocument) -> _MainColumns:
        """Return the metrics of a result."""
        primary_metric = result.primary_metric
        metrics = [comparison.metric for comparison in result.comparisons]
        # A campaign with only one condition has a typical value in place of comparisons.
        if result.typical is not None:
            metrics += result.typical.other_metrics
        requested_metrics = [
            metric
            for metric in dict.fromkeys(metrics)
            if metric not in (primary_metric, PRIMARY_METRIC)
        ]
        other_metrics = requested_metrics[:MAX_METRIC_COLUMNS]
        has_random_order = result.has_random_order
        has_time = any(PRIMARY_METRIC in condition.metrics for condition in result.conditions)
        # Functions share a process, so the time of the process belongs to no single function.
        owns_process = not result.shares_processes
        if has_random_order and owns_process and has_time and primary_metric != PRIMARY_METRIC:
            other_metrics.append(PRIMARY_METRIC)
        median_heading = "median"
        if primary_metric != PRIMARY_METRIC and has_random_order:
            median_heading = f"median {metric_name(primary_metric)}"
        shown_metrics = (primary_metric, *other_metrics)
        more_is_better = [metric for metric in shown_metrics if metric in result.more_is_better]
        return cls(
            primary_metric,
            median_heading,
            tuple(other_metrics),
            tuple(requested_metrics[MAX_METRIC_COLUMNS:]),
            owns_process and "max_rss_bytes" not in (primary_metric, *requested_metrics),
            _more_is_better_notes(more_is_better),
        )

    def primary_cells(self, condition: ConditionResult) -> Iterator[tuple[str, Cell]]:
        """Yield the median of the primary metric, its interval and spread, and the peak memory."""
        summary = condition.metrics.get(self.primary_metric)
        median: Cell = UNKNOWN
        interval, spread = UNKNOWN, UNKNOWN
        if summary is not None:
            format_value = metric_formatter(self.primary_metric)
            median = StyledText(format_value(summary.median), "strong")
            spread = spread_text(summary)
            interval = range_text(summary.median_ci, format_value)
        yield f"{self.median_heading}:number", median
        yield "95 % interval", interval
        yield "spread:number", spread
        yield from self.memory_cells(condition, "peak")

    def memory_cells(self, condition: ConditionResult, heading: str) -> Iterator[tuple[str, Cell]]:
        """Yield the peak memory if it has a column."""
        if self.has_memory:
            memory = condition.metrics.get("max_rss_bytes")
            yield f"{heading}:number", "unknown" if memory is None else byte_count(memory.median)

    def other_cells(self, condition: ConditionResult) -> Iterator[tuple[str, Cell]]:
        """Yield the medians of the other metrics."""
        return _median_cells(condition, self.other_metrics, "{}")

    def capitalized_other_cells(self, condition: ConditionResult) -> Iterator[tuple[str, Cell]]:
        """Yield the medians of the other metrics under capitalized headings."""
        return ((capitalized(heading), cell) for heading, cell in self.other_cells(condition))


def _more_is_better_notes(metrics: Sequence[str]) -> tuple[str, ...]:
    return tuple(f"For {metric_name(metric)}, more is better." for metric in metrics)


def _median_cells(
    condition: ConditionResult, metrics: Sequence[str], heading: str
) -> Iterator[tuple[str, Cell]]:
    """Yield the median of each metric; ``heading`` has ``{}`` in place of the metric's name."""
    for metric in metrics:
        summary = condition.metrics.get(metric)
        median = UNKNOWN if summary is None else metric_value(summary.median, metric)
        yield f"{heading.format(metric_name(metric))}:number", median


def _verdict_cells(
    comparison: Comparison | None, result: ResultDocument, is_baseline: bool
) -> Iterator[tuple[str, Cell]]:
    change: Cell = StyledText("baseline" if is_baseline else UNKNOWN, "dim")
    interval, verdict = "", StyledText("")
    if comparison is not None:
        change, interval = _effect_cells(shown_comparison(result, comparison)).values()
        verdict = StyledText(shown_verdict(result, comparison), comparison.verdict)
    yield "against baseline:number", change
    yield "interval", interval
    yield "verdict", verdict


def _effect_cells(comparison: Comparison) -> Mapping[str, str]:
    change, interval = estimate_and_interval(
        comparison.ratio, comparison.ratio_ci, unknown=UNKNOWN, unlimited="open"
    )
    return {"change:number": change, "interval": _intervals_text(comparison, interval)}


def _distribution_cells(condition: ConditionResult, metric: str) -> Iterator[tuple[str, Cell]]:
    summary = condition.metrics.get(metric)
    median, interval, middle_range = condition.unknown.get(metric, UNKNOWN), UNKNOWN, UNKNOWN
    if summary is not None:
        format_value = metric_formatter(metric)
        median = format_value(summary.median)
        interval = range_text(summary.median_ci, format_value, "too few trials")
        middle_range = range_text((summary.p05, summary.p95), format_value)
    yield f"Median {metric_name(metric)}:number", median
    yield "95 % interval:number", interval
    yield "Middle 90 %:number", middle_range


def _trials_text(condition: ConditionResult) -> str:
    failures = f", {condition.failures} failed" if condition.failures else ""
    return f"{condition.trials}{failures}"


def _groups_by_levels(
    conditions: Sequence[ConditionResult], factor: str | None
) -> dict[tuple[tuple[str, str], ...], list[ConditionResult]]:
    """Group conditions by their levels of the varying factors, without ``factor``."""
    factors = {name for condition in conditions for name in condition.levels} - {factor}
    varying_factors = {
        name for name in factors if len({other.levels.get(name) for other in conditions}) > 1
    }
    groups: dict[tuple[tuple[str, str], ...], list[ConditionResult]] = {}
    for condition in conditions:
        levels = tuple(
            (name, level) for name, level in condition.levels.items() if name in varying_factors
        )
        groups.setdefault(levels, []).append(condition)
    return groups


def _scaling_table(factor: str, metric: str, laws: dict[str, ScalingLaw]) -> Table:
    """Build the table of exponents of fitted laws; the keys of ``laws`` are the names of rows."""
    has_simple_laws = any(len(law.sizes) > MIN_SIZES for law in laws.values())
    rows: list[Mapping[str, Cell]] = []
    for name, law in laws.items():
        row: dict[str, Cell] = {
            f"{metric} by {factor} (N):name": name,
            "N^": exponent_text(law.power_law),
        }
        if has_simple_laws:
            _, exponent_with_log, *_ = law.exponents
            simple_laws = ", ".join(describe_law(*powers) for powers in law.simple_laws) or "none"
            row |= {
                "N^ with log N": exponent_text(exponent_with_log),
                "misses by:number": f"{100 * law.power_law.largest_deviation:.1f} %",
                "simple laws that fit every size:name": simple_laws
                if law.has_intervals
                else "too few blocks to exclude one",
            }
        rows.append(row)
    return Table(*columns_and_rows(rows), forms=TERMINAL)
