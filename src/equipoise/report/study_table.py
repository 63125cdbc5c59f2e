"""The screen of a study: a row for each condition, grouped by where it was compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from rich.table import Table
from rich.text import Text

from equipoise.model.result import Comparison, ConditionResult, ResultDocument, Verdict
from equipoise.report.safe_text import visible
from equipoise.report.units import (
    byte_count,
    interval_words,
    percent_change,
    shower,
    spread_words,
)

MOST_SENTENCES = 3
"""So many comparisons are told in sentences; more of them, or any in strata, in a table."""

VERDICT_STYLE: dict[Verdict, str] = {
    "faster": "bold green",
    "slower": "bold red",
    "equivalent": "bold blue",
    "mixed": "bold yellow",
    "undecided": "bold",
}


def belongs_in_a_table(primary: Sequence[Comparison]) -> bool:
    """Whether the comparisons are too many for a sentence each."""
    return len(primary) > MOST_SENTENCES or any(one.stratum for one in primary)


def study_table(document: ResultDocument, primary: Sequence[Comparison]) -> Table:
    """A row for each condition, under a heading for each combination of the other factors."""
    metric = primary[0].metric
    factor = compared_factor(document, primary[0])
    judged = {one.candidate: one for one in primary}
    baselines = {one.baseline for one in primary}
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(factor or "condition", no_wrap=True, overflow="ellipsis", max_width=40)
    for heading in ("median", "95 % interval", "spread", "peak", "against baseline", "interval"):
        right = heading in ("median", "spread", "peak", "against baseline")
        table.add_column(heading, justify="right" if right else "left", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    group: dict[str, str] | None = None
    for condition in _grouped(document.conditions, factor):
        others = _others(document.conditions, condition, factor)
        if others != group:
            group = others
            words = ", ".join(f"{name} {level}" for name, level in others.items())
            if words:
                table.add_row(Text(visible(words), style="bold"))
        table.add_row(
            Text(visible(condition.levels.get(factor or "", condition.name))),
            *_description(condition, metric),
            *_comparison(judged.get(condition.name), baseline=condition.name in baselines),
        )
    return table


def verdict_counts(primary: Sequence[Comparison]) -> str:
    """How many comparisons came out how."""
    counts = Counter(one.verdict for one in primary)
    found = ", ".join(f"{counts[name]} {name}" for name in VERDICT_STYLE if counts[name])
    words = f"{len(primary)} comparisons: {found}"
    to_go = [one.blocks_to_go for one in primary if one.blocks_to_go is not None]
    if to_go:
        words += f"; about {min(to_go)} more blocks would probably decide the next"
    return words


def compared_factor(document: ResultDocument, comparison: Comparison) -> str | None:
    """The factor in whose levels the two conditions of a comparison differ."""
    levels = {condition.name: condition.levels for condition in document.conditions}
    baseline, candidate = levels[comparison.baseline], levels[comparison.candidate]
    return next((name for name in candidate if baseline.get(name) != candidate[name]), None)


def _grouped(
    conditions: Sequence[ConditionResult], factor: str | None
) -> Iterator[ConditionResult]:
    """In the order of the plan, but those of one group together."""
    groups: dict[tuple[tuple[str, str], ...], list[ConditionResult]] = {}
    for condition in conditions:
        key = tuple((name, level) for name, level in condition.levels.items() if name != factor)
        groups.setdefault(key, []).append(condition)
    for group in groups.values():
        yield from group


def _others(
    conditions: Sequence[ConditionResult], condition: ConditionResult, factor: str | None
) -> dict[str, str]:
    """The levels of the other factors that vary."""
    return {
        name: level
        for name, level in condition.levels.items()
        if name != factor and any(other.levels.get(name) != level for other in conditions)
    }


def _description(condition: ConditionResult, metric: str) -> Iterator[Text]:
    cost = condition.metrics.get(metric)
    memory = condition.metrics.get("max_rss_bytes")
    if cost is None:
        yield from [Text("–")] * 4
        return
    show = shower(metric)
    low, high = cost.median_ci
    yield Text(show(cost.median), style="bold")
    yield Text("–" if low is None or high is None else f"{show(low)} to {show(high)}")
    yield Text(spread_words(cost))
    yield Text("unknown" if memory is None else byte_count(memory.median))


def _comparison(one: Comparison | None, *, baseline: bool) -> Iterator[Text]:
    if one is None:
        yield from [Text("baseline" if baseline else "–", style="dim"), Text(), Text()]
        return
    yield Text("–" if one.ratio is None else percent_change(one.ratio))
    # "unlimited to unlimited" in every row of a young study would tell nobody anything.
    yield Text("open" if one.ratio_ci == (None, None) else interval_words(*one.ratio_ci))
    yield Text(one.verdict, style=VERDICT_STYLE[one.verdict])
