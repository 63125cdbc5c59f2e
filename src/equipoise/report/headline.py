"""The answer of a result in one sentence, and the lines that stand right below it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from equipoise.model.result import Comparison, ReferenceComparison, ReferenceRow, ResultDocument
from equipoise.report.against import lines_below, title_words
from equipoise.report.primitives import is_of_primitives, summary_words
from equipoise.report.study_table import MOST_SENTENCES, verdict_counts
from equipoise.report.units import percent_change

CHANGED_SHOWN = 6
"""Rows against another result, those that changed most."""


@dataclass(frozen=True, slots=True)
class Headline:
    """What a reader sees first."""

    words: str
    said: tuple[str, ...] = ()
    """A line each."""
    above_verdicts: bool = True
    """Whether it stands by itself: otherwise it is the first verdict's own sentence."""


def headline(document: ResultDocument, primary: Sequence[Comparison]) -> Headline:
    """The one sentence of a result of any kind.

    Parameters
    ----------
    primary
        The comparisons on the metric that decides.
    """
    if document.gate is not None:
        outcome = "passes" if document.gate.passed else "fails"
        return Headline(f"The gate {outcome}: {document.gate.summary}")
    if document.findings is not None and document.findings.answer:
        return Headline(document.findings.answer, tuple(_counted(primary)))
    if not primary and document.against is not None:
        return _against(document.against)
    if len(primary) > MOST_SENTENCES:
        return Headline(verdict_counts(primary), tuple(_largest(primary)))
    if primary:
        return Headline(primary[0].summary, above_verdicts=False)
    return _without_verdict(document)


def has_many(document: ResultDocument) -> bool:
    """Whether so many are compared on the metric that decides."""
    metric = document.primary_metric
    return is_many(sum(one.metric == metric for one in document.comparisons))


def is_many(count: int) -> bool:
    """Whether so many comparisons stand in a section of their own below the answer."""
    return count > MOST_SENTENCES


def _counted(primary: Sequence[Comparison]) -> Iterator[str]:
    if is_many(len(primary)):
        yield f"{verdict_counts(primary)}."


def _largest(primary: Sequence[Comparison]) -> Iterator[str]:
    """The largest difference that was called."""
    called = [
        (abs(math.log(one.ratio)), place)
        for place, one in enumerate(primary)
        if one.ratio is not None and one.verdict in ("faster", "slower", "mixed")
    ]
    if called:
        yield f"The largest difference: {primary[max(called)[1]].summary}"


def _against(held: ReferenceComparison) -> Headline:
    changed, *others = lines_below(held)
    told = [("Costs more", 1.0), ("Costs less", -1.0)]
    lists = (_listed(held.rows, words, sign) for words, sign in told)
    title = title_words(held)
    return Headline(
        changed, (*filter(None, lists), f"{title[:1].upper()}{title[1:]}.", *others[:1])
    )


def _listed(rows: Sequence[ReferenceRow], words: str, sign: float) -> str:
    """The rows that changed in one direction, those that changed most first."""
    found = sorted(
        (
            (abs(math.log(one.ratio)), one.name, percent_change(one.ratio))
            for one in rows
            if one.changed and one.ratio is not None and sign * math.log(one.ratio) > 0
        ),
        key=lambda one: -one[0],
    )
    if not found:
        return ""
    shown = ", ".join(f"{name} {change}" for _, name, change in found[:CHANGED_SHOWN])
    more = len(found) - CHANGED_SHOWN
    return f"{words}: {shown}" + (f" and {more} more." if more > 0 else ".")


def _without_verdict(document: ResultDocument) -> Headline:
    imported = document.imported
    if imported is not None and imported.comparisons:
        if is_many(len(imported.comparisons)):
            return Headline(
                f"{len(imported.comparisons)} comparisons of imported trials", (imported.summary,)
            )
        return Headline(imported.comparisons[0].summary, above_verdicts=False)
    if is_of_primitives(document):
        known = (document.environment.get(one) for one in ("system", "kernel"))
        system = " ".join(str(one) for one in known if one) or "this system"
        machine = document.environment.get("cpu_model")
        on = f" on {machine}" if machine else ""
        return Headline(
            f"Operating system primitives: {system}{on}", (f"{summary_words(document)}.",)
        )
    names = " and ".join(one.name for one in document.conditions)
    return Headline(f"{names}: nothing was compared")
