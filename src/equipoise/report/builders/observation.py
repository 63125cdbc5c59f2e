"""An effect from a log as a document: the answer, what it rests on, and what speaks against it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from equipoise_matching.matching.match import VARIANCE_NEIGHBORS
from equipoise_matching.observation.result import (
    Effect,
    ObservationResult,
    Period,
    Placebo,
    StratumResult,
)
from equipoise.model.quantities import Interval
from equipoise.report.document import (
    UNKNOWN,
    Answer,
    Claim,
    Column,
    Document,
    Facts,
    Figures,
    NumberRow,
    Origin,
    Part,
    Section,
    Table,
    Warnings,
    computation_parts,
    with_interval,
)
from equipoise.report.units import (
    change_text,
    estimate_and_interval,
    interval_text,
    percent_change,
    significant,
)
from equipoise.shared.numbers import signed_amount

if TYPE_CHECKING:
    from equipoise.figures.gallery import Figure



def observation_document(result: ObservationResult, command: str) -> Document:
    """Build the document of an observation; ``command``, if there is one, observes it again."""

    def figures() -> Iterator[Figure]:
        from equipoise_matching.charts.estimates import observed_figures

        return observed_figures(result)

    question, refusal = result.question, result.refusal
    estimate, interval = "", ""
    if result.matched is not None:
        estimate, ends = _effect_cells(result.matched.effect)
        interval = f"95 % interval {ends}"
    claim = Claim(
        badge="refused" if refusal else "observed",
        tone=_tone(result),
        text=result.summary,
        estimate=estimate,
        interval=interval,
        remarks=(refusal.hint,) if refusal else (),
    )
    method = (*_METHOD, _ROWS if result.clustering is None else _CLUSTERS)
    parts: tuple[Part, ...] = (
        Answer("", claims=(claim,), warnings=len(result.warnings)),
        Figures(figures),
        *_tables(result),
        Section("What it rests on", (Facts(tuple(_facts(result))),)),
        *([Warnings(result.warnings)] if result.warnings else []),
        *computation_parts(method, command),
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








