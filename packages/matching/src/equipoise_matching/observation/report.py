"""The report of an observation: the answer, its tables, its facts and the method."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from equipoise_matching.matching.match import VARIANCE_NEIGHBORS
from equipoise_matching.observation.result import (
    Effect,
    ObservationResult,
    Period,
    Placebo,
    StratumResult,
)
from equipoise_matching.report import UNKNOWN, Report, TextTable
from equipoise_matching.shared.numbers import Interval, signed_amount, significant
from equipoise_matching.shared.ratios import (
    change_text,
    estimate_and_interval,
    interval_text,
    percent_change,
)

_METHOD = (
    "Each row of the candidate is matched with the nearest row of the baseline, with replacement "
    "and all ties. Matching looks at covariates alone, not at the outcome. A regression among the "
    "baseline's rows, with the curves, steps and products that the rows show, removes what "
    "matching left (Abadie and Imbens 2011).",
    "Matching makes rows comparable in what was measured, not in what nobody measured. The hidden "
    "factor and the placebos show how much that could matter. docs/methods/effects-from-logs.md "
    "has each formula and its source.",
)
ROWS, STRATUM = "rows", "Stratum"
"""Name of the fact about the rows that take part, and title of the table of strata."""
_CLUSTER_INTERVAL = "The interval allows for rows of one cluster that move together."
_ROW_INTERVAL = (
    "The interval takes the rows as independent (Abadie and Imbens 2006). The variance of each row "
    f"comes from its {VARIANCE_NEIGHBORS} nearest rows of the same version, so that either version "
    "may be noisier than the other."
)
_ERROR_LABELS = {"clusters": "by clusters", "abadie-imbens": "Abadie-Imbens"}
"""Label of each method for the standard error."""


def observation_report(result: ObservationResult) -> Report:
    """Build the report: the effect among comparable rows, or the reason why there is none."""
    estimate, interval = "", ""
    if result.matched is not None:
        estimate, bounds = _effect_cells(result.matched.effect)
        interval = f"95 % interval {bounds}"
    return Report(
        badge="observed" if result.refusal is None else "refused",
        text=result.summary,
        estimate=estimate,
        interval=interval,
        remarks=() if result.refusal is None else (result.refusal.hint,),
        tables=tuple(_text_tables(result)),
        facts=tuple(_fact_rows(result)),
        warnings=result.warnings,
        method=(*_METHOD, _ROW_INTERVAL if result.clustering is None else _CLUSTER_INTERVAL),
    )


def _text_tables(result: ObservationResult) -> Iterator[TextTable]:
    yield _text_table("Effect", ("estimate", "95 % interval"), _effect_rows(result))
    question = result.question
    versions = (question.candidate, question.baseline)
    mean_headings = (*versions, "apart", "candidate, matched", "baseline, matched", "apart")
    headings = (*mean_headings, "distributions apart", "curve that differs most", "apart")
    rows = (
        (
            column.column,
            *map(_value_text, (column.candidate_before, column.baseline_before)),
            _standard_deviations(column.difference_before),
            *map(_value_text, (column.candidate_after, column.baseline_after)),
            _standard_deviations(column.difference_after),
            "" if column.ks_after is None else f"{column.ks_after:.2f}",
            column.term or "",
            "" if column.term is None else _standard_deviations(column.term_after),
        )
        for column in result.balance
    )
    yield _text_table("Balance", headings, rows)
    if result.hidden_bias is not None:
        as_ratio = result.naive.ratio is not None
        bounds = (
            (f"odds ×{bound.gamma:g}", _interval_cell((bound.low, bound.high), as_ratio))
            for bound in result.hidden_bias.bounds
        )
        kind = result.hidden_bias.kind
        unit = question.unit if kind == "pairs" else kind
        yield replace(
            _text_table("Hidden factor", ("95 % interval",), bounds),
            notes=(
                "Each row is the interval of the effect if something that was not measured "
                f"multiplied the odds of {question.treatment} {question.candidate} by this factor "
                f"between two comparable {unit}.",
            ),
        )
    if result.strata is not None:
        stratum_headings = ("rows", "estimate", "differs most", "apart", "odds to change it")
        yield _text_table(STRATUM, stratum_headings, map(_stratum_row, result.strata.results))


def _text_table(title: str, headings: Sequence[str], rows: Iterable[tuple[str, ...]]) -> TextTable:
    return TextTable(("", *headings), tuple(rows), title)


def _fact_rows(result: ObservationResult) -> Iterator[tuple[str, str]]:
    rows, matching, question = result.rows, result.matching, result.question
    left_out = "".join(f"; {count:,} left out: {why}" for why, count in rows.left_out.items())
    yield "log", question.source
    yield "seed", str(question.seed)
    yield (
        ROWS,
        f"{rows.candidate:,} of {question.candidate}, {rows.baseline:,} of "
        f"{question.baseline}{left_out}",
    )
    yield "about", result.scope
    for means in result.dropped_means:
        matched, dropped = _value_text(means.matched_mean), _value_text(means.dropped_mean)
        yield means.column, f"{matched} on average, {dropped} where dropped"
    caliper = "no caliper"
    if matching.caliper is not None:
        caliper = f"caliper {matching.caliper:g} sd on {', '.join(matching.caliper_on)}"
    regression = "; a regression removes what matching left" if matching.has_regression else ""
    yield (
        "matching",
        f"{matching.method}, {caliper}; {matching.pairs:,} pairs, which use "
        f"{matching.baseline_used:,} rows of {question.baseline}{regression}",
    )
    if matching.model:
        yield "model", matching.model
    if result.clustering is not None:
        clusters = result.clustering
        yield (
            "clusters",
            f"{clusters.by}: {clusters.clusters:,}, {clusters.with_candidate:,} with "
            f"{question.candidate}, {clusters.with_baseline:,} with {question.baseline}",
        )
    if result.strata is not None:
        strata = result.strata
        yield "strata", f"{strata.column}: {strata.worst_stratum} differs most after matching"
        if strata.shared_clusters:
            yield "shared clusters", f"{strata.shared_clusters:,} have rows in several strata"
        for stratum in strata.results:
            if stratum.reason is not None:
                yield stratum.name, f"takes no part: {stratum.reason}"
    if result.hidden_bias is not None:
        yield "hidden factor", result.hidden_bias.summary
    if result.robustness is not None:
        yield "robustness", result.robustness.summary
    for placebo in result.placebos:
        yield f"placebo {placebo.kind}", placebo.summary


def _stratum_row(stratum: StratumResult) -> tuple[str, ...]:
    matched = stratum.matched_rows
    rows = f"{stratum.candidate_rows if matched is None else matched:,}"
    if stratum.difference is None:
        return (stratum.name, rows, "none", "", "", "")
    estimate = signed_amount(stratum.difference)
    gamma = stratum.gamma_to_change
    return (
        stratum.name,
        rows,
        change_text(stratum.ratio, estimate),
        stratum.worst_column or "",
        _standard_deviations(stratum.worst_difference),
        "unknown" if gamma is None else f"×{gamma:.3g}",
    )


def _effect_rows(result: ObservationResult) -> Iterator[tuple[str, ...]]:
    for name, _, effect in result.effects:
        if effect.difference is not None:
            yield (name, *_effect_cells(effect))
        if name != "comparable" or result.matched is None:
            continue
        for error in result.matched.errors:
            as_ratio = effect.ratio is not None
            interval = _interval_cell(error.ratio_ci if as_ratio else error.difference_ci, as_ratio)
            yield (f"  {_ERROR_LABELS[error.name]}", "", interval)
        if effect.ratio is not None:
            difference = replace(effect, ratio=None)
            yield (f"  in {result.question.outcome}", *_effect_cells(difference))


def _effect_cells(effect: Effect | Period | Placebo) -> tuple[str, str]:
    """Return the texts of the ratio and its interval; without a ratio, of the difference."""
    if effect.ratio is not None:
        if effect.ratio_ci is None:
            return percent_change(effect.ratio), "none"
        return estimate_and_interval(effect.ratio, effect.ratio_ci)
    difference = UNKNOWN if effect.difference is None else signed_amount(effect.difference)
    return difference, _interval_cell(effect.difference_ci, as_ratio=False)


def _interval_cell(bounds: Interval | None, as_ratio: bool) -> str:
    if bounds is None:
        return "none"
    if as_ratio:
        return interval_text(bounds)
    return " to ".join("unlimited" if end is None else signed_amount(end) for end in bounds)


def _value_text(value: float | None) -> str:
    return "unknown" if value is None else significant(value)


def _standard_deviations(difference: float | None) -> str:
    return "unlimited" if difference is None else f"{difference:+.2f} sd"
