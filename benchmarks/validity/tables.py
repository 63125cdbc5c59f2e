"""The tables, as text cells; ``show`` turns them into a screen or into Markdown."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.validity.campaign import BLOCKS, WARMUP
from benchmarks.validity.layouts import FOUND_EFFECT, ROUNDS, LayoutSummary
from benchmarks.validity.pooled import PooledSummary
from benchmarks.validity.rules import RULES
from benchmarks.validity.shares import Share
from benchmarks.validity.simulate import COVERED_EFFECT, EFFECTS
from benchmarks.validity.summary import VERDICTS, Length, Summary


@dataclass(frozen=True, slots=True)
class TextTable:
    """A title, a sentence that says how to read it, a header and rows."""

    title: str
    reading: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def holds_numbers(self, column: int) -> bool:
        """Whether every cell of a column begins like a number."""
        return all(row[column][0] in "0123456789<>–" for row in self.rows)


def tables_of(summaries: Sequence[Summary]) -> tuple[TextTable, ...]:
    """Tables of the scenarios in which Equipoise meets the other rules, in their order."""
    return (
        false_alarms(summaries),
        coverage_and_power(summaries),
        beside_others(summaries),
        not_claimed(summaries),
        legend(summaries),
    )


def pooled_stops(summaries: Sequence[PooledSummary]) -> TextTable:
    """Intervals of campaigns that stopped at their verdict and were pooled."""
    return TextTable(
        "Pooled stops: `show --pool` over campaigns that stopped at their verdict",
        "Percent of pools in which an interval left out the true ratio, with 95 % intervals. The "
        "common ratio is from all blocks. It also counts as missed if no ratio fits. The mean over "
        "campaigns is from the blocks before which a campaign could not stop. It is claimed in "
        "every row. Means at the stop, a wrong method: Student's interval of the mean of the "
        "ratios at the stop.",
        (
            "scenario",
            "what it is",
            "pools",
            "common ratio claimed",
            "misses the common ratio",
            "none fits",
            "misses the mean",
            "means at the stop",
        ),
        tuple(
            (
                one.scenario.name,
                one.scenario.words,
                str(one.common_missed.total),
                "yes" if one.scenario.claims_common_ratio else "no",
                with_error(one.common_missed),
                percent_of(one.none_fits),
                with_error(one.mean_missed),
                with_error(one.naive_missed),
            )
            for one in summaries
        ),
    )


def across_layouts(summaries: Sequence[LayoutSummary]) -> TextTable:
    """Claims across layouts, where layouts differ."""
    return TextTable(
        "Layouts that differ: the claim across layouts",
        "Percent of campaigns, with 95 % intervals. Layouts differ by the percentage of the name "
        f"and not on average; trials have sd 2 %; up to {ROUNDS} blocks in each layout. Claimed in "
        "every row: called different across layouts, and misses of the interval, in at most 5 %. "
        "The claim about the drawn layouts is not a claim about others. Found: a true "
        f"{FOUND_EFFECT:g} % on average, called slower across layouts.",
        (
            "scenario",
            "campaigns",
            "called different across layouts",
            "misses the mean",
            "called different in these layouts",
            f"finds {FOUND_EFFECT:g} %",
        ),
        tuple(
            (
                one.scenario.name,
                str(one.called.total),
                with_error(one.called),
                with_error(one.missed),
                percent_of(one.called_in_these),
                percent_of(one.found),
            )
            for one in summaries
        ),
    )


def false_alarms(summaries: Sequence[Summary]) -> TextTable:
    """How often two equal conditions are called different."""
    rules = tuple(rule.name for rule in RULES)
    rows = tuple(
        (
            summary.scenario.name,
            "yes" if summary.scenario.claims_error_rate else "no",
            with_error(summary.any_effect),
            with_error(summary.default),
            *(with_error(summary.peers[rule].called) for rule in rules),
        )
        for summary in summaries
        if summary.scenario.has_no_difference
    )
    return TextTable(
        "False alarms: no difference, called different",
        "Percent of campaigns, with 95 % binomial intervals. Equipoise computes its verdict after "
        f"each of up to {BLOCKS} blocks, once for any effect and once for 1 % or more. Where the "
        "column `claimed` has yes, it claims at most 5 %.",
        ("scenario", "claimed", "Equipoise, any", "Equipoise, ≥ 1 %", *rules),
        rows,
    )


def coverage_and_power(summaries: Sequence[Summary]) -> TextTable:
    """Whether intervals hold the truth, and how soon effects are found."""
    rows = tuple(
        (
            summary.scenario.name,
            "yes" if summary.scenario.claims_coverage else "no",
            with_error(summary.missed),
            "–" if summary.probability_missed is None else with_error(summary.probability_missed),
            *(
                f"{percent_of(found.slower)} · {blocks(found.length)}"
                for found in summary.found.values()
            ),
            percent_of(summary.found[COVERED_EFFECT].mixed),
            f"{percent_of(summary.verdicts['equivalent'])} · {blocks(summary.length)}",
        )
        for summary in summaries
        if summary.scenario.has_no_difference
    )
    return TextTable(
        "Equipoise: coverage and power",
        f"Misses the ratio: after any of {BLOCKS} blocks, the interval left out a true "
        f"{COVERED_EFFECT:g} %, or the effect that the scenario names. Misses P(slower): its "
        "interval left out the truth. Both are percent with 95 % intervals. Finds: percent of "
        "campaigns that ended `slower`, and blocks to any verdict, median/90th percentile. The "
        "effect of 1 % uses `--min-effect 0`, all others the default of 1 %.",
        (
            "scenario",
            "coverage claimed",
            "misses the ratio",
            "misses P(slower)",
            *(f"finds {percent:g} %" for percent in EFFECTS),
            f"`mixed` at {COVERED_EFFECT:g} %",
            "`equivalent` at 0 %",
        ),
        rows,
    )


def beside_others(summaries: Sequence[Summary]) -> TextTable:
    """A true 3 %, and what it costs to see it."""
    rules = tuple(rule.name for rule in RULES)
    rows = tuple(
        (
            summary.scenario.name,
            f"{percent_of(summary.found[COVERED_EFFECT].slower)} · "
            f"{runs(summary.found[COVERED_EFFECT].length.median)}",
            *(
                f"{percent_of(summary.peers[rule].found)} · {summary.peers[rule].median_runs:.0f}"
                for rule in rules
            ),
        )
        for summary in summaries
        if summary.scenario.has_no_difference
    )
    return TextTable(
        f"A true {COVERED_EFFECT:g} %: called slower",
        "Percent of campaigns · median number of runs, warm-up included. If a rule has many false "
        "alarms, its number here is not power: the rule calls anything different.",
        ("scenario", "Equipoise", *rules),
        rows,
    )


def not_claimed(summaries: Sequence[Summary]) -> TextTable:
    """What happens without an effect where exchangeability fails."""
    rules = tuple(rule.name for rule in RULES)
    rows = tuple(
        (
            summary.scenario.name,
            summary.scenario.why_not,
            *(percent_of(summary.verdicts[verdict]) for verdict in VERDICTS),
            percent_of(summary.warned),
            *(
                f"{percent_of(summary.peers[rule].called_faster)} / "
                f"{percent_of(summary.peers[rule].called_slower)}"
                for rule in rules
            ),
        )
        for summary in summaries
        if not summary.scenario.claims_error_rate
    )
    return TextTable(
        "Scenarios without a claim",
        "Percent of campaigns with each verdict (smallest effect that matters 1 %), percent that "
        "warn of carry-over. For the other rules: percent called faster / slower.",
        ("scenario", "why not", *VERDICTS, "warned", *rules),
        rows,
    )


def legend(summaries: Sequence[Summary]) -> TextTable:
    """What the names mean."""
    return TextTable(
        "The scenarios and the rules",
        "Sizes are relative to the time of a usual run.",
        ("name", "what it is"),
        tuple((one.scenario.name, one.scenario.words) for one in summaries)
        + tuple((rule.name, rule.words) for rule in RULES),
    )


def with_error(share: Share) -> str:
    """In percent, with its interval."""
    low, high = (100.0 * end for end in share.interval)
    return f"{100.0 * share.count / share.total:.1f} ({low:.1f}–{high:.1f})"


def percent_of(share: Share) -> str:
    """In percent; "<1" where it is not quite none, ">99" where it is not quite all."""
    value = 100.0 * share.count / share.total
    if 0 < value < 1:
        return "<1"
    return ">99" if 99 < value < 100 else f"{value:.0f}"


def blocks(length: Length) -> str:
    """Median and 90th percentile."""
    return f"{_number(length.median)}/{_number(length.ninetieth)}"


def runs(median_blocks: float) -> str:
    """Two for each block, and the warm-up."""
    if math.isinf(median_blocks):
        return f">{2 * (BLOCKS + WARMUP)}"
    return f"{2 * (median_blocks + WARMUP):.0f}"


def _number(count: float) -> str:
    return f">{BLOCKS}" if math.isinf(count) else f"{count:.0f}"
