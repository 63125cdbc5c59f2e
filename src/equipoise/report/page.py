"""What the page says, in words: everything that the template shows, and nothing to compute."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from equipoise.figures.theme import color_of
from equipoise.model.against import Against
from equipoise.model.explains import WHY_STUDY
from equipoise.model.plan import PRIMARY_METRIC
from equipoise.model.primitives import OS_STUDY
from equipoise.model.record import Notice
from equipoise.model.result import (
    Comparison,
    ConditionResult,
    MetricSummary,
    ResultDocument,
)
from equipoise.report.against import lines_below, row_words, title_words
from equipoise.report.control_view import ControlView, control_view
from equipoise.report.flame_graph import FlameGraphView
from equipoise.report.levels import scope_rows
from equipoise.report.primitives import (
    is_of_primitives,
    metric_of,
    processes_of,
    summary_words,
    why_words,
)
from equipoise.report.shape_view import ShapeView, shape_view
from equipoise.report.strip import strip_of
from equipoise.report.tested import InterventionsView, interventions_view
from equipoise.report.units import byte_count, metric_value, percent_change, significant
from equipoise.report.verdict_view import VerdictView, imported_views, ratio_interval
from equipoise.report.why import WhyView, is_of_gap, why_view

UNKNOWN = "unknown"
PRIMITIVE_COLUMNS = (
    "Median",
    "95 % interval",
    "Middle 90 %",
    "Least",
    "Peak memory",
    "Drift",
    "Trials",
)
LONG_WORDS = 140
FEW = 3


@dataclass(frozen=True, slots=True)
class ConditionView:
    """One line of the table of conditions."""

    name: str
    command: str
    color: str
    cells: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FigureView:
    """A figure's place on the page, and its words."""

    anchor: str
    title: str
    notes: tuple[str, ...]
    how_to_read: str
    description: str
    height: int


@dataclass(frozen=True, slots=True)
class AgainstView:
    """The result held against another one."""

    title: str
    rows: tuple[tuple[str, ...], ...]
    """Name, there, here, ratio, interval, and what is to be said."""
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RunView:
    """One campaign on the page."""

    anchor: str
    name: str
    """Its id, which tells campaigns of the same commands apart."""
    title: str
    titled: bool
    """Whether the title stands above the verdicts, which do not answer the question themselves."""
    verdicts: tuple[VerdictView, ...]
    density: str
    """How small the verdicts must be to fit the first screen: empty, compact or many."""
    columns: tuple[str, ...]
    conditions: tuple[ConditionView, ...]
    others: tuple[tuple[str, ...], ...]
    """Comparisons on other metrics: metric, candidate, verdict, change, interval."""
    against: AgainstView | None
    shape: ShapeView
    figures: tuple[FigureView, ...]
    extra_time: WhyView | None
    interventions: InterventionsView | None
    flame_graph: FlameGraphView | None
    why: tuple[str, ...]
    control: ControlView | None
    warnings: tuple[Notice, ...]
    how_it_ran: tuple[tuple[str, str], ...]
    environment: tuple[tuple[str, str], ...]
    again: str
    show: str


def run_view(
    document: ResultDocument,
    number: int,
    figures: tuple[FigureView, ...],
    again: str | None,
    flame_graph: FlameGraphView | None = None,
) -> RunView:
    """Put a document into words.

    Parameters
    ----------
    number
        Of the campaign on its page, from 1.
    again
        The command that runs it again; put together from the document if ``None``.
    """
    metric = document.primary_metric
    primary = [one for one in document.comparisons if one.metric == metric]
    by_themselves = is_of_primitives(document)
    extra_time = why_view(document)
    return RunView(
        anchor=f"run-{number}",
        name=document.run.id,
        title=_title(document, primary),
        titled=document.gate is not None,
        verdicts=tuple(_verdict(one) for one in primary) or imported_views(document),
        density=_density(primary),
        columns=PRIMITIVE_COLUMNS if by_themselves else _columns(metric),
        conditions=tuple(
            _condition(one, index, metric_of(one) or metric if by_themselves else metric)
            for index, one in enumerate(document.conditions)
        ),
        others=tuple(_other(one) for one in document.comparisons if one.metric != metric),
        against=None if document.against is None else _against(document.against),
        shape=shape_view(document, primary, metric),
        figures=figures,
        extra_time=extra_time,
        interventions=interventions_view(document),
        flame_graph=flame_graph,
        why=(
            *(one.words for one in document.why if extra_time is None or not is_of_gap(one)),
            *(_why_of_rows(document) if by_themselves else ()),
        ),
        control=None if document.control is None else control_view(document.control),
        warnings=document.warnings,
        how_it_ran=_how_it_ran(document),
        environment=tuple(flattened(document.environment)),
        again=again or again_of(document),
        show=f"equipoise show {shlex.quote(document.run.id)}",
    )


def _title(document: ResultDocument, primary: Sequence[Comparison]) -> str:
    if document.gate is not None:
        return f"The gate {'passes' if document.gate.passed else 'fails'}: {document.gate.words}"
    if primary:
        return primary[0].words
    if document.imported is not None and document.imported.comparisons:
        return document.imported.comparisons[0].words
    return _title_without_verdict(document)


def _density(comparisons: Sequence[Comparison]) -> str:
    if len(comparisons) > FEW:
        return "many"
    long = any(len(one.words) > LONG_WORDS for one in comparisons)
    return "compact" if len(comparisons) > 1 or long else ""


def _title_without_verdict(document: ResultDocument) -> str:
    if is_of_primitives(document):
        return f"{document.run.study}: {summary_words(document)}"
    names = " and ".join(one.name for one in document.conditions)
    return f"{names}: nothing was compared"


def _against(held: Against) -> AgainstView:
    title = title_words(held)
    return AgainstView(
        title=title[:1].upper() + title[1:],
        rows=tuple((one.name, *row_words(one)) for one in held.rows),
        lines=lines_below(held),
    )


def _why_of_rows(document: ResultDocument) -> Iterator[str]:
    processes = processes_of(document)
    for condition in document.conditions:
        words = why_words(condition, processes[condition.name])
        if words:
            yield f"{condition.name}: {words}"


def again_of(document: ResultDocument) -> str:
    """The command that runs the campaign again, as far as the document knows it."""
    if document.imported is not None:
        return shlex.join(["equipoise", "import", *document.imported.source.files])
    if document.gate is not None:
        return document.gate.again
    if document.run.study == OS_STUDY:
        return f"equipoise os --seed {document.run.seed}"
    if document.run.study == WHY_STUDY:
        return f"equipoise why {document.run.id} --again --seed {document.run.seed}"
    layouts = ["--layouts", str(len(document.run.layouts))] if document.run.layouts else []
    seed = ["--seed", str(document.run.seed), *layouts]
    if document.run.study != "compare":
        return shlex.join(["equipoise", "run", document.run.study, *seed])
    parts = ["equipoise", "compare", *seed]
    if document.comparisons:
        first = document.comparisons[0]
        parts += ["--min-effect", f"{first.min_effect:g}", "--alpha", f"{first.alpha:g}"]
    commands = [shlex.join(condition.command) for condition in document.conditions]
    if commands != [condition.name for condition in document.conditions]:
        for condition in document.conditions:
            parts += ["-n", condition.name]
    return shlex.join([*parts, *commands])


def flattened(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Nested values as lines of a table; what is null is unknown."""
    for key, value in values.items():
        name = f"{prefix}{key}".replace("_", " ")
        if isinstance(value, Mapping) and value:
            yield from flattened(value, f"{prefix}{key}, ")
        elif isinstance(value, list | tuple):
            yield name, ", ".join(str(one) for one in value) or "none"
        elif isinstance(value, bool):
            yield name, "yes" if value else "no"
        elif str(key).endswith("_bytes") and isinstance(value, int | float):
            yield name.removesuffix(" bytes"), byte_count(value)
        else:
            yield name, UNKNOWN if value is None else str(value)


def _verdict(one: Comparison) -> VerdictView:
    return VerdictView(
        verdict=one.verdict,
        words=one.words,
        candidate=one.candidate,
        baseline=one.baseline,
        change="not known yet" if one.ratio is None else percent_change(one.ratio),
        interval=ratio_interval(one.ratio_ci),
        coverage=f"{100 * (1 - one.level):g} %",
        strip=strip_of(one),
        facts=tuple(_facts(one)),
    )


def _facts(one: Comparison) -> Iterator[tuple[str, str]]:
    yield "Evidence against no difference", f"e-value {significant(one.e_value)}"
    if one.probability_slower is not None:
        low, high = one.probability_slower_ci
        between = "" if low is None or high is None else f" ({100 * low:.0f} to {100 * high:.0f} %)"
        yield "Candidate slower in", f"{100 * one.probability_slower:.0f} % of blocks{between}"
    if one.mean_ratio is not None:
        interval = ratio_interval(one.mean_ratio_ci)
        yield "Total cost of many runs", f"{percent_change(one.mean_ratio)} ({interval})"
    if one.carry_over is not None:
        interval = ratio_interval(one.carry_over.ratio_ci)
        yield "Carry-over", f"{percent_change(one.carry_over.ratio)} ({interval})"
    if one.by_level is not None:
        yield from scope_rows(one.by_level)
    if one.blocks_to_go is not None:
        yield "Blocks to go", f"about {one.blocks_to_go} more would probably decide it"
    if one.minimum_misleads:
        yield "Minimum", "the fastest single runs name another winner: do not rank by the minimum"
    yield "Smallest effect that matters", f"{one.min_effect:g} %"
    yield "Holds for", one.scope


def _columns(metric: str) -> tuple[str, ...]:
    name = "time" if metric == PRIMARY_METRIC else metric.replace("_", " ")
    return (
        f"Median {name}",
        "95 % interval",
        "Middle 90 %",
        "Fastest",
        "Peak memory",
        "Drift",
        "Trials",
    )


def _condition(condition: ConditionResult, index: int, metric: str) -> ConditionView:
    summary = condition.metrics.get(metric)
    memory = condition.metrics.get("max_rss_bytes")
    trials = str(condition.trials)
    if condition.failures:
        trials += f", {condition.failures} failed"
    return ConditionView(
        name=condition.name,
        command=shlex.join(condition.command),
        color=color_of(index),
        cells=(
            *(_summary_cells(summary, metric) if summary else _without(condition, metric)),
            UNKNOWN if memory is None else byte_count(memory.median),
            "–" if summary is None else _drift(summary),
            trials,
        ),
    )


def _without(condition: ConditionResult, metric: str) -> tuple[str, ...]:
    """In the place of a summary: the reason, if one is known."""
    return (condition.unknown.get(metric, "–"), *("–",) * 3)


def _summary_cells(summary: MetricSummary, metric: str) -> tuple[str, ...]:
    low, high = summary.median_ci
    return (
        metric_value(summary.median, metric),
        "too few trials"
        if low is None or high is None
        else f"{metric_value(low, metric)} to {metric_value(high, metric)}",
        f"{metric_value(summary.p05, metric)} to {metric_value(summary.p95, metric)}",
        metric_value(summary.min, metric),
    )


def _drift(summary: MetricSummary) -> str:
    if summary.drift is None or summary.drift.ratio is None:
        return "–"
    return percent_change(summary.drift.ratio)


def _other(one: Comparison) -> tuple[str, ...]:
    return (
        one.metric.replace("_", " "),
        one.candidate,
        one.verdict,
        "not known yet" if one.ratio is None else percent_change(one.ratio),
        ratio_interval(one.ratio_ci),
    )


def _how_it_ran(document: ResultDocument) -> tuple[tuple[str, str], ...]:
    run = document.run
    if document.imported is not None:
        source = document.imported.source
        return (
            ("Run", run.id),
            ("Imported", run.started),
            ("From", ", ".join(source.files)),
            ("Measured by", source.tool or UNKNOWN),
            ("Order of the trials", source.order),
        )
    return (
        ("Run", run.id),
        ("Study", run.study),
        ("Started", run.started),
        ("Ended", run.ended or "it did not end"),
        ("Blocks", str(run.blocks)),
        ("Stopped by", run.stopped_because or "it did not end"),
        ("Seed", str(run.seed)),
    )
