"""The page of an effect from a log: the answer, what it rests on, and what speaks against it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from equipoise.report.builders.analysis import answer_of, method_parts, table_of
from equipoise.report.document import (
    Document,
    Facts,
    Figures,
    NumberRow,
    Origin,
    Part,
    Section,
    Warnings,
    with_interval,
)
from equipoise_matching.observation.report import observation_report
from equipoise_matching.observation.result import ObservationResult

if TYPE_CHECKING:
    from equipoise.figures.gallery import Figure


def observation_document(result: ObservationResult, command: str) -> Document:
    """Build the document of an observation; ``command``, if there is one, observes it again."""
    report, question = observation_report(result), result.question
    parts: tuple[Part, ...] = (
        answer_of(report, _tone(result)),
        Figures(lambda: _figures(result)),
        *map(table_of, report.tables),
        Section("What it rests on", (Facts(report.facts),)),
        *([Warnings(report.warnings)] if report.warnings else []),
        *method_parts(report, command),
    )
    return Document(
        name="observed",
        title=f"{question.candidate} against {question.baseline}",
        parts=parts,
        numbers=(*_effect_numbers(result), *_balance_numbers(result)),
        origin=Origin(
            f"What does {question.candidate} change of {question.outcome}, against "
            f"{question.baseline}? From {question.source}",
            command,
        ),
    )


def _figures(result: ObservationResult) -> Iterator[Figure]:
    """Draw the effects, then the balance."""
    from equipoise.figures.gallery import Figure
    from equipoise_matching.charts.balance import HOW_TO_READ_LOVE_PLOT
    from equipoise_matching.charts.estimates import HOW_TO_READ_EFFECTS
    from equipoise_matching.observation.drawing import balance_chart, effects_chart

    how_to_read = HOW_TO_READ_EFFECTS.replace("{unit}", result.question.unit)
    yield Figure("effects", how_to_read, effects_chart(result))
    yield Figure("balance", HOW_TO_READ_LOVE_PLOT, balance_chart(result))


def _tone(result: ObservationResult) -> str:
    """Return the verdict whose colour the answer has."""
    if result.matched is None:
        return "undecided"
    effect = result.matched.effect
    if effect.interval is None or not effect.excludes_zero:
        return "undecided"
    if result.question.unit not in ("rows", "runs"):
        # The outcome may be an income: neither direction is bad.
        return "equivalent"
    return "slower" if effect.interval[0] > (0.0 if effect.ratio is None else 1.0) else "faster"


def _effect_numbers(result: ObservationResult) -> Iterator[NumberRow]:
    for name, _, effect in result.effects:
        yield {
            "kind": "effect",
            "name": name,
            **with_interval("ratio", effect.ratio, effect.ratio_ci),
            **with_interval("difference", effect.difference, effect.difference_ci),
        }


def _balance_numbers(result: ObservationResult) -> Iterator[NumberRow]:
    for one in result.balance:
        yield {
            "kind": "covariate",
            "name": one.column,
            "candidate_before": one.candidate_before,
            "baseline_before": one.baseline_before,
            "apart_before_sd": one.difference_before,
            "candidate_after": one.candidate_after,
            "baseline_after": one.baseline_after,
            "apart_after_sd": one.difference_after,
            "ks_before": one.ks_before,
            "ks_after": one.ks_after,
            "term": one.term,
            "term_apart_after_sd": one.term_after,
        }
