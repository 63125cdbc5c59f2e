"""Tables with a row for each condition: of a comparison, and of a study in groups."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from equipoise.figures.quantity import metric_name
from equipoise.figures.size_values import (
    MIN_SIZES,
    exponent_text,
    numeric_factors,
    scaling_laws,
)
from equipoise.figures.theme import color_of
from equipoise.figures.trial_values import analysed_values
from equipoise.model.plan import PRIMARY_METRIC
from equipoise.model.result import Comparison, ConditionResult, ResultDocument
from equipoise.report.document import (
    PAGE,
    SCREEN,
    TEXT,
    UNKNOWN,
    Cell,
    Column,
    Histogram,
    Name,
    Row,
    Styled,
    Table,
)
from equipoise.report.units import (
    byte_count,
    change_text,
    estimate_and_interval,
    metric_value,
    ratio_interval,
    spread_text,
    with_coverage,
)
from equipoise.stats.scaling import ScalingLaw, describe_law

MOST_OTHERS = 60


def screen_table(document: ResultDocument) -> Table:
    """Build the terminal's table: a median, its spread and a histogram for each condition."""
    metric = PRIMARY_METRIC if document.imported is None else document.imported.metric
    values = analysed_values(document, metric)
    rows: list[Row] = []
    for condition in document.conditions:
        summary = condition.metrics.get(metric)
        shape: Cell = UNKNOWN
        if summary is not None:
            ends = metric_value(summary.min, metric), metric_value(summary.max, metric)
            shape = Histogram(values[condition.name], summary.min, summary.max, ends)
        rows.append((condition.name, *_median_cells(condition, metric), shape))
    return Table((Column("condition", "name"), *_MEDIAN_COLUMNS, Column("shape")), tuple(rows))


def grouped_table(document: ResultDocument, primary: Sequence[Comparison]) -> Table:
    """Build the terminal's table of a study: a group for each combination of the other factors."""
    metric = primary[0].metric
    factor = compared_factor(document, primary[0])
    judged = {one.candidate: one for one in primary}
    baselines = {one.baseline for one in primary}
    rows: list[Row] = []
    for levels, conditions in _groups(document.conditions, factor).items():
        if levels:
            heading = ", ".join(f"{name} {level}" for name, level in levels)
            rows.append((Styled(heading, "strong"),))
        rows += (
            (
                condition.levels.get(factor or "", condition.name),
                *_median_cells(condition, metric),
                *_verdict_cells(judged.get(condition.name), condition.name in baselines),
            )
            for condition in conditions
        )
    columns = (
        Column(factor or "condition", "name"),
        *_MEDIAN_COLUMNS,
        Column("against baseline", "number"),
        Column("interval"),
        Column("verdict"),
    )
    return Table(columns, tuple(rows), forms=SCREEN)


def written_table(document: ResultDocument, primary: Sequence[Comparison]) -> Table:
    """Build the table for Markdown, LaTeX and a notebook, with the verdict of each condition."""
    metric = document.primary_metric
    imported = () if document.imported is None else document.imported.comparisons
    judged: dict[str, tuple[str, str, str]] = {}
    for one in primary:
        change, interval = estimate_and_interval(one.ratio, one.ratio_ci)
        judged[one.candidate] = (change, _intervals(one, interval), one.verdict)
    for sample in imported:
        change, interval = estimate_and_interval(
            sample.ratio, sample.ratio_ci, unknown="unknown", unlimited="unknown"
        )
        judged[sample.candidate] = (change, interval, "imported")
    baselines = {one.baseline for one in primary} | {sample.baseline for sample in imported}
    rows: list[Row] = []
    for condition in document.conditions:
        median, interval, middle, _, memory, _, trials = _description(condition, metric)
        nothing = ("baseline" if condition.name in baselines else UNKNOWN, "", "")
        verdict = judged.get(condition.name, nothing) if judged else ()
        rows.append((condition.name, median, interval, middle, memory, trials, *verdict))
    headings = [f"Median {metric_name(metric)}", "95 % interval", "Middle 90 %", "Peak memory"]
    headings += ["Trials", *(("Against baseline", "Interval", "Verdict") if judged else ())]
    columns = (Column("Condition", "name"), *(Column(heading, "number") for heading in headings))
    return Table(columns, tuple(rows), forms=TEXT)


def page_table(document: ResultDocument) -> Table:
    """Build the page's table, with the command and the colour of each condition."""
    metric = document.primary_metric
    rows: list[Row] = []
    for index, condition in enumerate(document.conditions):
        command = shlex.join(condition.command)
        name = Name(condition.name, color_of(index), "" if command == condition.name else command)
        rows.append((name, *_description(condition, metric)))
    headings = (
        f"Median {metric_name(metric)}",
        "95 % interval",
        "Middle 90 %",
        "Fastest" if is_time(metric) else "Least",
        "Peak memory",
        "Drift",
        "Trials",
    )
    columns = (Column("Condition", "name"), *(Column(one, "number") for one in headings))
    return Table(columns, tuple(rows), label="Conditions", forms=PAGE)


def equivalence_text(comparison: Comparison) -> str:
    """Return the interval that decided on ``equivalent``; empty where another one decided.

    It is the interval of the ratio itself in campaigns of the first release.
    """
    level, interval = comparison.equivalence_level, comparison.equivalence_ci
    decided = comparison.verdict == "equivalent" or comparison.means_veto
    if not decided or level is None or interval == comparison.ratio_ci:
        return ""
    shared = comparison.alpha * level / comparison.level
    return with_coverage(ratio_interval(interval), level, shared, "equivalence interval")


def _intervals(comparison: Comparison, ratio_ci: str) -> str:
    """Return the interval of a ratio, and the one that decided where that is another."""
    return ", ".join(filter(None, (ratio_ci, equivalence_text(comparison))))


def others_table(others: Sequence[Comparison]) -> Table:
    """Build the table of comparisons on other metrics."""
    columns = (
        Column("other metrics"),
        Column("candidate"),
        Column("change", "number"),
        Column("interval"),
        Column("costs"),
    )
    rows = tuple(
        (
            one.metric,
            one.candidate,
            *_effect_cells(one),
            {"slower": "more", "faster": "less"}.get(one.verdict, one.verdict),
        )
        for one in others
    )
    return Table(columns, rows, label="Other metrics", most_rows=MOST_OTHERS)


def scaling_tables(document: ResultDocument, metric: str, compared: str | None) -> Iterator[Table]:
    """Build a table for each factor that is a size and not what is compared."""
    for factor in numeric_factors(document, metric):
        laws = scaling_laws(document, factor, metric)
        if factor != compared and laws:
            yield _scaling_table(factor, metric, laws)


def compared_factor(document: ResultDocument, comparison: Comparison) -> str | None:
    """Return the factor in whose levels the two conditions of a comparison differ."""
    levels = {condition.name: condition.levels for condition in document.conditions}
    baseline, candidate = levels[comparison.baseline], levels[comparison.candidate]
    return next((name for name in candidate if baseline.get(name) != candidate[name]), None)


def is_time(metric: str) -> bool:
    """Return whether a metric is a time, so that less of it is faster."""
    return metric.endswith("_s") and not metric.endswith("_per_s")


_MEDIAN_COLUMNS = (
    Column("median", "number"),
    Column("95 % interval"),
    Column("spread", "number"),
    Column("peak", "number"),
)


def _median_cells(condition: ConditionResult, metric: str) -> tuple[Cell, ...]:
    cost = condition.metrics.get(metric)
    if cost is None:
        return (UNKNOWN,) * 4
    low, high = cost.median_ci
    return (
        Styled(metric_value(cost.median, metric), "strong"),
        UNKNOWN if low is None or high is None else _range(low, high, metric),
        spread_text(cost),
        _peak_memory(condition),
    )


def _verdict_cells(comparison: Comparison | None, is_baseline: bool) -> tuple[Cell, ...]:
    if comparison is None:
        return (Styled("baseline" if is_baseline else UNKNOWN, "dim"), "", "")
    return (
        *_effect_cells(comparison),
        Styled(comparison.verdict, comparison.verdict),
    )


def _effect_cells(comparison: Comparison) -> tuple[str, str]:
    """Return the estimate of a comparison and its intervals."""
    change, interval = estimate_and_interval(
        comparison.ratio, comparison.ratio_ci, unknown=UNKNOWN, unlimited="open"
    )
    return change, _intervals(comparison, interval)


def _description(condition: ConditionResult, metric: str) -> tuple[str, ...]:
    """Return median, interval, middle 90 %, least, peak memory, drift and trials."""
    summary = condition.metrics.get(metric)
    distribution = [condition.unknown.get(metric, UNKNOWN), *[UNKNOWN] * 3]
    drift = None
    if summary is not None:
        low, high = summary.median_ci
        drift = summary.drift
        distribution = [
            metric_value(summary.median, metric),
            "too few trials" if low is None or high is None else _range(low, high, metric),
            _range(summary.p05, summary.p95, metric),
            metric_value(summary.min, metric),
        ]
    failures = f", {condition.failures} failed" if condition.failures else ""
    return (
        *distribution,
        _peak_memory(condition),
        change_text(None if drift is None else drift.ratio, UNKNOWN),
        f"{condition.trials}{failures}",
    )


def _peak_memory(condition: ConditionResult) -> str:
    memory = condition.metrics.get("max_rss_bytes")
    return "unknown" if memory is None else byte_count(memory.median)


def _range(low: float, high: float, metric: str) -> str:
    return f"{metric_value(low, metric)} to {metric_value(high, metric)}"


def _groups(
    conditions: Sequence[ConditionResult], factor: str | None
) -> dict[tuple[tuple[str, str], ...], list[ConditionResult]]:
    """Group conditions, in the order of the plan, by the levels of the other factors that vary."""
    names = {name for condition in conditions for name in condition.levels} - {factor}
    varying = {name for name in names if len({one.levels.get(name) for one in conditions}) > 1}
    groups: dict[tuple[tuple[str, str], ...], list[ConditionResult]] = {}
    for condition in conditions:
        levels = tuple(pair for pair in condition.levels.items() if pair[0] in varying)
        groups.setdefault(levels, []).append(condition)
    return groups


def _scaling_table(factor: str, metric: str, laws: dict[str, ScalingLaw]) -> Table:
    several = any(len(law.sizes) > MIN_SIZES for law in laws.values())
    columns = [Column(f"{metric} by {factor} (N)", "name"), Column("N^")]
    if several:
        columns += [
            Column("N^ beside log N"),
            Column("misses by", "number"),
            Column("simple laws that fit every size", "name"),
        ]
    rows: list[Row] = []
    for name, law in laws.items():
        row = [name, exponent_text(law.power_law)]
        if several:
            simple = ", ".join(describe_law(*one) for one in law.simple) or "none"
            row += [
                exponent_text(law.exponents[1]),
                f"{100 * law.power_law.largest_miss:.1f} %",
                simple if law.can_tell else "too few blocks to exclude one",
            ]
        rows.append(tuple(row))
    return Table(tuple(columns), tuple(rows), forms=SCREEN)
