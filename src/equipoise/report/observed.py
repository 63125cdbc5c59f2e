"""What was found in a log, on the screen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.table import Table
from rich.text import Text

from equipoise.model.observation_result import Bounds, Effect, ObservationResult, StratumResult
from equipoise.model.quantities import amount
from equipoise.model.safe_text import visible
from equipoise.report.renderers.terminal import console_for
from equipoise.report.units import interval_text, percent_change, significant


def print_observed(document: ObservationResult, *, color: bool) -> None:
    """Print the answer, what it rests on, and what can be held against it."""
    console = console_for(color)
    console.print(Text(visible(document.summary), style="bold"))
    for title, (headings, rows) in tables(document).items():
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), title=None)
        for place, heading in enumerate((title, *headings)):
            table.add_column(visible(heading), justify="left" if place == 0 else "right")
        for row in rows:
            table.add_row(*(Text(visible(cell)) for cell in row))
        console.print()
        console.print(table)
    console.print()
    for line in facts(document):
        console.print(Text(visible(line)))
    for warning in document.warnings:
        console.print(Text.assemble(("warning: ", "yellow"), visible(warning.summary)))
        console.print(Text(f"  hint: {visible(warning.hint)}"))


Rows = list[list[str]]


def tables(document: ObservationResult) -> dict[str, tuple[Sequence[str], Rows]]:
    """By title: the headings and the rows, of the effects, the balance and the bounds."""
    found: dict[str, tuple[Sequence[str], Rows]] = {
        "effect": (("estimate", "95 % interval"), list(_effects(document)))
    }
    found["balance"] = (
        (
            document.question.candidate,
            document.question.baseline,
            "apart",
            "kept",
            "matched",
            "apart",
        ),
        [
            [
                one.column,
                _value(one.candidate_before),
                _value(one.baseline_before),
                _apart(one.difference_before),
                _value(one.candidate_after),
                _value(one.baseline_after),
                _apart(one.difference_after),
            ]
            for one in document.balance
        ],
    )
    if document.hidden_bias is not None:
        as_ratio = document.naive.ratio is not None
        found["hidden factor"] = (
            ("95 % interval",),
            [
                [f"odds ×{bound.gamma:g}", _ends(bound.low, bound.high, as_ratio=as_ratio)]
                for bound in document.hidden_bias.bounds
            ],
        )
    if document.strata is not None:
        found["stratum"] = (
            ("rows", "estimate", "least alike", "apart", "odds to change it"),
            [_stratum(one) for one in document.strata.each],
        )
    return found


def facts(document: ObservationResult) -> Iterator[str]:
    """What the answer rests on, a line each."""
    rows, matching, question = document.rows, document.matching, document.question
    left_out = "".join(f"; {count:,} left out: {why}" for why, count in rows.left_out.items())
    yield (
        f"rows: {rows.candidate:,} of {question.candidate}, {rows.baseline:,} of "
        f"{question.baseline}{left_out}"
    )
    yield f"about: {document.about}"
    for one in document.dropped:
        yield f"  {one.column}: {_value(one.kept)} on average, {_value(one.dropped)} where dropped"
    caliper = "no caliper"
    if matching.caliper is not None:
        caliper = f"caliper {matching.caliper:g} sd on {', '.join(matching.caliper_on)}"
    adjusted = "; what was left is taken out by regression" if matching.adjusted else ""
    yield (
        f"matching: {matching.method}, {caliper}; {matching.pairs:,} pairs, "
        f"{matching.baseline_used:,} rows of {question.baseline} serve{adjusted}"
    )
    if document.clustering is not None:
        own = document.clustering
        yield (
            f"clusters: {own.by}: {own.clusters:,}, {own.with_candidate:,} with "
            f"{question.candidate}, {own.with_baseline:,} with {question.baseline}"
        )
    if document.strata is not None:
        own_strata = document.strata
        yield f"strata: {own_strata.column}: {own_strata.worst} is least alike after matching"
        if own_strata.shared_clusters:
            yield f"  {own_strata.shared_clusters:,} clusters have rows in several of them"
        for each in own_strata.each:
            if each.dropped is not None:
                yield f"  {each.name} takes no part: {each.dropped}"
    if document.hidden_bias is not None:
        yield f"hidden factor: {document.hidden_bias.summary}"
    if document.robustness is not None:
        yield f"robustness: {document.robustness.summary}"
    for placebo in document.placebos:
        yield f"placebo {placebo.kind}: {placebo.summary}"


def effect_cells(effect: Effect) -> list[str]:
    """An effect and its interval as cells."""
    return _cells(effect.ratio, effect.ratio_ci, effect.difference, effect.difference_ci)


def _stratum(one: StratumResult) -> list[str]:
    rows = f"{one.candidate_rows if one.matched_rows is None else one.matched_rows:,}"
    if one.difference is None:
        return [one.name, rows, "none", "", "", ""]
    return [
        one.name,
        rows,
        _cells(one.ratio, None, one.difference, None)[0],
        one.worst_column or "",
        _apart(one.worst_difference),
        "unknown" if one.gamma_to_change is None else f"×{one.gamma_to_change:.3g}",
    ]


def _effects(document: ObservationResult) -> Iterator[list[str]]:
    yield ["naive", *effect_cells(document.naive)]
    if document.matched is not None:
        yield ["comparable", *effect_cells(document.matched.effect)]
        for error in document.matched.errors:
            name = {"clusters": "by clusters", "abadie-imbens": "Abadie-Imbens"}[error.name]
            own = document.matched.effect
            cells = _cells(own.ratio, error.ratio_ci, own.difference, error.difference_ci)
            yield [f"  {name}", "", cells[1]]
        if document.matched.effect.ratio is not None:
            own = document.matched.effect
            yield [
                f"  in {document.question.outcome}",
                *_cells(None, None, own.difference, own.difference_ci),
            ]
    for period in document.periods:
        yield [
            f"from {period.begins}",
            *_cells(period.ratio, period.ratio_ci, period.difference, period.difference_ci),
        ]
    for placebo in document.placebos:
        if placebo.difference is not None:
            yield [
                f"placebo {placebo.name}",
                *_cells(placebo.ratio, placebo.ratio_ci, placebo.difference, placebo.difference_ci),
            ]


def _cells(
    ratio: float | None, ratio_ci: Bounds, difference: float, difference_ci: Bounds
) -> list[str]:
    if ratio is None:
        ends = "none" if difference_ci is None else _ends(*difference_ci, as_ratio=False)
        return [_signed(difference), ends]
    return [
        percent_change(ratio),
        "none" if ratio_ci is None else _ends(*ratio_ci, as_ratio=True),
    ]


def _ends(low: float | None, high: float | None, *, as_ratio: bool) -> str:
    if as_ratio:
        return interval_text(low, high)
    return " to ".join("unlimited" if end is None else _signed(end) for end in (low, high))


def _signed(value: float) -> str:
    return f"{'+' if value >= 0 else '-'}{amount(abs(value))}"


def _value(value: float | None) -> str:
    return "unknown" if value is None else significant(value)


def _apart(difference: float | None) -> str:
    return "unlimited" if difference is None else f"{difference:+.2f} sd"
