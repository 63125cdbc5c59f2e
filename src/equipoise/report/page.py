"""What the page says, in words: everything that the template shows, and nothing to compute."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from equipoise.figures.quantity import metric_name
from equipoise.figures.theme import color_of
from equipoise.model.findings import Findings
from equipoise.model.record import CampaignWarning
from equipoise.model.result import (
    Comparison,
    ConditionResult,
    MetricSummary,
    ReferenceComparison,
    ResultDocument,
)
from equipoise.report.again import again_of
from equipoise.report.against import lines_below, row_words, title_words
from equipoise.report.control_view import ControlView, control_view
from equipoise.report.environment_view import UNKNOWN, EnvironmentView, environment_view
from equipoise.report.flame_graph import FlameGraphView
from equipoise.report.headline import headline, is_many
from equipoise.report.levels import scope_rows
from equipoise.report.primitives import (
    is_of_primitives,
    metric_of,
    processes_of,
    why_words,
)
from equipoise.report.primitives_view import PrimitivesView, primitives_view
from equipoise.report.shape_view import ShapeView, shape_view
from equipoise.report.shell_line import shell_line
from equipoise.report.strip import strip_of
from equipoise.report.tested import InterventionsView, interventions_view
from equipoise.report.units import byte_count, metric_value, percent_change, significant
from equipoise.report.verdict_view import VerdictView, imported_views, ratio_interval
from equipoise.report.why import WhyView, because_words, is_of_gap, why_view

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
    said: tuple[str, ...]
    """Below the title, a line each."""
    verdicts: tuple[VerdictView, ...]
    density: str
    """How small the verdicts must be to fit the first screen: empty, compact or many."""
    findings: Findings | None
    """A study's own."""
    columns: tuple[str, ...]
    conditions: tuple[ConditionView, ...]
    primitives: PrimitivesView | None
    """In the place of the conditions, where they are operating system primitives."""
    others: tuple[tuple[str, ...], ...]
    """Comparisons on other metrics: metric, candidate, verdict, change, interval."""
    against: AgainstView | None
    shape: ShapeView
    first_figures: tuple[FigureView, ...]
    """A study's own, and every comparison beside the others."""
    figures: tuple[FigureView, ...]
    extra_time: WhyView | None
    interventions: InterventionsView | None
    flame_graph: FlameGraphView | None
    why: tuple[str, ...]
    control: ControlView | None
    warnings: tuple[CampaignWarning, ...]
    how_it_ran: tuple[tuple[str, str], ...]
    environment: EnvironmentView
    again: str
    show: str


def run_view(
    document: ResultDocument,
    number: int,
    figures: tuple[FigureView, ...],
    again: str | None,
    flame_graph: FlameGraphView | None = None,
    first_figures: tuple[FigureView, ...] = (),
) -> RunView:
    """Put a document into words.

    Parameters
    ----------
    number
        Of the campaign on its page, from 1.
    again
        The command that runs it again; put together from the document if ``None``.
    first_figures
        Those that stand right below the answer.
    """
    metric = document.primary_metric
    primary = [one for one in document.comparisons if one.metric == metric]
    by_themselves = is_of_primitives(document)
    extra_time = why_view(document)
    answer = headline(document, primary)
    verdicts = tuple(_verdict(one, document) for one in primary) or imported_views(document)
    return RunView(
        anchor=f"run-{number}",
        name=document.run.id,
        title=answer.words,
        titled=answer.above_verdicts,
        said=answer.said,
        verdicts=verdicts,
        density=_density(verdicts),
        findings=document.findings,
        columns=PRIMITIVE_COLUMNS if by_themselves else _columns(metric),
        conditions=tuple(
            _condition(one, index, metric_of(one) or metric if by_themselves else metric)
            for index, one in enumerate(document.conditions)
        ),
        primitives=primitives_view(document),
        others=tuple(_other(one) for one in document.comparisons if one.metric != metric),
        against=None if document.against is None else _against(document.against),
        shape=shape_view(document, primary, metric),
        first_figures=first_figures,
        figures=figures,
        extra_time=extra_time,
        interventions=interventions_view(document),
        flame_graph=flame_graph,
        why=(
            *(one.summary for one in document.why if extra_time is None or not is_of_gap(one)),
            *(_why_of_rows(document) if by_themselves else ()),
        ),
        control=None if document.control is None else control_view(document.control),
        warnings=document.warnings,
        how_it_ran=_how_it_ran(document),
        environment=environment_view(document.environment),
        again=again or again_of(document),
        show=shell_line(["equipoise", "show", document.run.id]),
    )


def _density(verdicts: Sequence[VerdictView]) -> str:
    if is_many(len(verdicts)):
        return "many"
    long = any(len(one.words) + len(one.because) > LONG_WORDS for one in verdicts)
    return "compact" if len(verdicts) > 1 or long else ""


def _against(held: ReferenceComparison) -> AgainstView:
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


def _verdict(one: Comparison, document: ResultDocument) -> VerdictView:
    return VerdictView(
        verdict=one.verdict,
        words=one.summary,
        candidate=one.candidate,
        baseline=one.baseline,
        change="not known yet" if one.ratio is None else percent_change(one.ratio),
        interval=ratio_interval(one.ratio_ci),
        coverage=f"{100 * (1 - one.level):g} %",
        strip=strip_of(one),
        facts=tuple(_facts(one)),
        because=because_words(document, one),
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
    return (
        f"Median {metric_name(metric)}",
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
