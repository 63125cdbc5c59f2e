"""The screen: a line for each condition, the verdict in words, the warnings that matter."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from equipoise.figures.trial_values import analysed_values
from equipoise.model.plan import PRIMARY_METRIC
from equipoise.model.record import CampaignWarning, RunSummary
from equipoise.model.result import (
    Comparison,
    ConditionResult,
    ControlResult,
    GateResult,
    ResultDocument,
)
from equipoise.report.against import print_against
from equipoise.report.histogram import text_histogram
from equipoise.report.imported import imported_words, print_imported
from equipoise.report.levels import levelled, print_levels
from equipoise.report.primitives import is_of_primitives, primitives_tables, summary_words
from equipoise.report.safe_text import visible
from equipoise.report.scaling_table import scaling_tables
from equipoise.report.shape import (
    drift_words,
    iteration_words,
    modes_words,
    states_words,
    steady_words,
)
from equipoise.report.study_table import (
    VERDICT_STYLE,
    belongs_in_a_table,
    compared_factor,
    study_table,
    verdict_counts,
)
from equipoise.report.tested import print_tested
from equipoise.report.units import (
    byte_count,
    interval_words,
    metric_value,
    percent_change,
    significant,
    spread_words,
)
from equipoise.report.what_varies import print_sources
from equipoise.report.why import print_why

EARLIER_SHOWN = 5
OTHERS_SHOWN = 60
ALIKE_SHOWN = 3
"""Of warnings of one code, of drifts and of comparisons in the steady state."""
SHAPES_SHOWN = 6


def print_result(
    document: ResultDocument, earlier: Sequence[RunSummary], ledger: Path, *, color: bool
) -> None:
    """Print one campaign's result to stdout."""
    console = console_for(color)
    primary = [one for one in document.comparisons if one.metric == document.primary_metric]
    if belongs_in_a_table(primary):
        console.print(study_table(document, primary))
        console.print()
        console.print(verdict_counts(primary))
        for table in scaling_tables(
            document, document.primary_metric, compared_factor(document, primary[0])
        ):
            console.print()
            console.print(table)
    elif is_of_primitives(document):
        for table in primitives_tables(document):
            console.print(table)
            console.print()
        console.print(summary_words(document))
    else:
        console.print(_conditions_table(document, console))
        for comparison in primary:
            console.print()
            console.print(_verdict(comparison))
    if document.against is not None:
        print_against(console, document.against)
    if document.imported is not None:
        console.print()
        print_imported(console, document.imported)
    others = [one for one in document.comparisons if one not in primary]
    if others:
        console.print()
        console.print(_others_table(others))
    for one in document.steady_state[:ALIKE_SHOWN]:
        console.print()
        console.print(Text(visible(steady_words(one))))
    _say_how_many_more(console, len(document.steady_state))
    if document.control is not None:
        console.print()
        console.print(_control(document.control))
    if document.gate is not None:
        console.print()
        console.print(_gate(document.gate))
    print_levels(console, levelled(document))
    print_sources(console, document)
    print_why(console, document)
    print_tested(console, document)
    console.print()
    console.print(_how_it_ran(document, ledger), style="dim", highlight=False)
    if not is_of_primitives(document):
        # How long the process of a probe takes says nothing of what it measures.
        _print_alike(console, list(_shapes(document)), SHAPES_SHOWN)
        _print_alike(console, list(_drifts(document)), ALIKE_SHOWN)
    _print_warnings(console, document.warnings)
    _print_earlier(console, earlier)


def _print_alike(console: Console, lines: Sequence[str], shown: int) -> None:
    for line in lines[:shown]:
        console.print(Text(line, style="dim"))
    _say_how_many_more(console, len(lines), shown)


def _print_warnings(console: Console, warnings: Sequence[CampaignWarning]) -> None:
    for code in dict.fromkeys(warning.code for warning in warnings):
        alike = [warning for warning in warnings if warning.code == code]
        for warning in alike[:ALIKE_SHOWN]:
            console.print(Text.assemble(("warning: ", "yellow"), visible(warning.summary)))
            console.print(Text(f"  hint: {visible(warning.hint)}"))
        _say_how_many_more(console, len(alike))


def _say_how_many_more(console: Console, alike: int, shown: int = ALIKE_SHOWN) -> None:
    if alike > shown:
        console.print(f"  and {alike - shown} more like these; --json has all", style="dim")


def print_runs(runs: Sequence[RunSummary], *, color: bool) -> None:
    """Print one line for each campaign."""
    console = console_for(color)
    if not runs:
        console.print("no campaigns yet")
        return
    table = Table(box=None, pad_edge=False)
    for heading in ("run", "started", "trials", "stopped", "conditions"):
        table.add_column(heading, justify="right" if heading == "trials" else "left")
    for run in runs:
        table.add_row(
            Text(run.id),
            Text(_local_time(run.started_at)),
            Text(str(run.trials)),
            Text(run.stopped_because or "not ended"),
            Text(visible(" | ".join(run.commands)), overflow="ellipsis", no_wrap=True),
        )
    console.print(table)


def console_for(color: bool) -> Console:
    """What prints to stdout."""
    # A pipe has no width: without a generous one, long names would be wrapped into the data.
    console = Console(no_color=not color, highlight=False, markup=False, emoji=False)
    return (
        console
        if console.is_terminal
        else Console(no_color=not color, highlight=False, markup=False, emoji=False, width=160)
    )


@dataclass(frozen=True, slots=True)
class _Layout:
    """How much of the table a terminal has room for."""

    name_width: int
    bins: int
    ends: bool
    """Whether the least and the greatest value stand beside the histogram."""


_UNBOUNDED = 10_000

_LAYOUTS = (
    _Layout(40, 20, ends=True),
    _Layout(24, 20, ends=True),
    _Layout(24, 16, ends=False),
    _Layout(14, 8, ends=False),
)


def _conditions_table(document: ResultDocument, console: Console) -> Table:
    """The fullest table that fits the terminal."""
    for layout in _LAYOUTS:
        table = _table_in(layout, document)
        unbounded = console.options.update(max_width=_UNBOUNDED)
        if console.measure(table, options=unbounded).maximum <= console.width:
            break
    return table


def _table_in(layout: _Layout, document: ResultDocument) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("condition", overflow="ellipsis", max_width=layout.name_width, no_wrap=True)
    table.add_column("median", justify="right", no_wrap=True)
    table.add_column("95 % interval", no_wrap=True)
    table.add_column("spread", justify="right", no_wrap=True)
    table.add_column("peak", justify="right", no_wrap=True)
    table.add_column("least to most" if layout.ends else "shape", no_wrap=True)
    metric = _shown_metric(document)
    values = analysed_values(document, metric)
    for condition in document.conditions:
        table.add_row(*_condition_row(condition, metric, values[condition.name], layout))
    return table


def _shown_metric(document: ResultDocument) -> str:
    """What a line for a condition is about: its time, unless it was imported without one."""
    return PRIMARY_METRIC if document.imported is None else document.imported.metric


def _condition_row(
    condition: ConditionResult, metric: str, values: Sequence[float], layout: _Layout
) -> Iterable[Text]:
    name = visible(condition.name)
    if len(name) > layout.name_width:
        name = name[: layout.name_width - 1] + "…"
    summary = condition.metrics.get(metric)
    memory = condition.metrics.get("max_rss_bytes")
    if summary is None:
        return [Text(name), *[Text("–")] * 5]
    low, high = (None if end is None else metric_value(end, metric) for end in summary.median_ci)
    picture = text_histogram(values, summary.min, summary.max, layout.bins)
    if layout.ends:
        ends = [metric_value(end, metric) for end in (summary.min, summary.max)]
        picture = f"{ends[0]} {picture} {ends[1]}"
    return [
        Text(name),
        Text(metric_value(summary.median, metric), style="bold"),
        Text("–" if low is None or high is None else f"{low} to {high}"),
        Text(spread_words(summary)),
        Text("unknown" if memory is None else byte_count(memory.median)),
        Text(picture),
    ]


def _others_table(others: Sequence[Comparison]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for heading in ("other metrics", "candidate", "ratio", "interval", "costs"):
        table.add_column(heading, justify="right" if heading == "ratio" else "left")
    for one in others[:OTHERS_SHOWN]:
        table.add_row(
            Text(visible(one.metric)),
            Text(visible(one.candidate)),
            Text("–" if one.ratio is None else percent_change(one.ratio)),
            Text("open" if one.ratio_ci == (None, None) else interval_words(*one.ratio_ci)),
            Text({"slower": "more", "faster": "less"}.get(one.verdict, one.verdict)),
        )
    if len(others) > OTHERS_SHOWN:
        table.add_row(Text(f"and {len(others) - OTHERS_SHOWN} more; --json has all", style="dim"))
    return table


def _control(control: ControlResult) -> Text:
    text = Text.assemble(("control: ", "bold"), visible(control.summary))
    low, high = control.comparison.ratio_ci
    if low is not None or high is not None:
        text.append(f"; interval {interval_words(low, high)}")
    return text


def _verdict(comparison: Comparison) -> Text:
    text = Text()
    text.append(f"{comparison.verdict}: ", style=VERDICT_STYLE[comparison.verdict])
    text.append(visible(comparison.summary))
    low, high = comparison.ratio_ci
    if low is not None or high is not None:
        names = f"{comparison.candidate} against {comparison.baseline}"
        what = "time" if comparison.metric == PRIMARY_METRIC else comparison.metric
        text.append(f"\n  {visible(what)} of {visible(names)}: ")
        text.append("" if comparison.ratio is None else percent_change(comparison.ratio))
        text.append(f", {100 * (1 - comparison.level):g} % interval {interval_words(low, high)}")
    text.append(f"\n  {_how_sure(comparison)}")
    if comparison.disagreement and not comparison.minimum_misleads:
        # Where the minimum misleads, a warning says so.
        text.append(f"\n  statistics disagree: {visible(comparison.disagreement)}")
    return text


def _how_sure(comparison: Comparison) -> str:
    parts = [f"e-value {significant(comparison.e_value)} against no difference"]
    if comparison.probability_slower is not None:
        parts.append(f"slower in {100 * comparison.probability_slower:.0f} % of blocks")
    if comparison.mean_ratio is not None:
        parts.append(f"ratio of means {percent_change(comparison.mean_ratio)}")
    return ", ".join(parts)


def _gate(gate: GateResult) -> Text:
    passed = Text("passes", "bold green") if gate.passed else Text("fails", "bold red")
    return Text.assemble("gate: ", passed, f": {visible(gate.summary)}")


def _how_it_ran(document: ResultDocument, ledger: Path) -> str:
    run = document.run
    if document.imported is not None:
        return imported_words(document.imported, run.id, ledger)
    compared = document.comparisons
    if compared:
        scope = compared[0].scope
    elif not run.blocks:
        scope = "nothing: no block is complete"
    elif is_of_primitives(document):
        scope = "across processes, in this campaign on this host"
    else:
        scope = "nothing was compared"
    certificate = document.environment.get("certificate")
    return (
        f"{run.blocks} blocks; stopped by: {visible(run.stopped_because or 'it did not end')}; "
        f"scope: {visible(scope)}\n"
        f"run {visible(run.id)}, seed {run.seed}, ledger {visible(str(ledger))}"
        + (f"\ncertificate of this host: {visible(str(certificate))}" if certificate else "")
    )


def _shapes(document: ResultDocument) -> Iterator[str]:
    """What is not flat: several modes, changes of state, and what the iterations did."""
    metric = document.primary_metric
    for condition in document.conditions:
        for words in iteration_words(condition):
            yield f"{visible(condition.name)}: {visible(words)}"
        summary = condition.metrics.get(metric)
        if summary is None:
            continue
        if (modes := modes_words(metric, summary)) is not None:
            yield f"{visible(condition.name)}: {visible(modes)}"
        if (states := states_words(metric, summary)) is not None:
            yield f"change of state: {visible(condition.name)}: {states}"


def _drifts(document: ResultDocument) -> Iterator[str]:
    """A line for each condition whose time surely drifted by an effect that matters."""
    keeps = "the random order keeps that out of the verdict"
    if document.imported is not None:
        keeps = "nothing keeps that out of a ratio: the trials were not in random order"
    smallest = min((one.min_effect for one in document.comparisons), default=0.0)
    for condition in document.conditions:
        summary = condition.metrics.get(_shown_metric(document))
        if summary is not None and (words := drift_words(summary, smallest)) is not None:
            yield f"drift: {visible(condition.name)} took {words}; {keeps}"


def _print_earlier(console: Console, earlier: Sequence[RunSummary]) -> None:
    if not earlier:
        return
    console.print(
        f"Other campaigns of the same commands in this ledger: {len(earlier)}. "
        "To pick the one that one likes is no evidence.",
        style="dim",
    )
    for other in earlier[-EARLIER_SHOWN:]:
        console.print(
            f"  {other.id}  {_local_time(other.started_at)}  {other.trials} trials  "
            f"{other.stopped_because or 'not ended'}",
            style="dim",
        )


def _local_time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds).astimezone().strftime("%Y-%m-%d %H:%M:%S")
