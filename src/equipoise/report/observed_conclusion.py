"""What was found in a log, as a conclusion that every form of a report is made from."""

from __future__ import annotations

from collections.abc import Iterator

from equipoise.model.conclusion import Cell, Conclusion
from equipoise.model.findings import FindingTable
from equipoise.model.observation_result import Bounds, ObservationResult
from equipoise.report.observed import effect_cells, facts, tables

_METHOD = (
    "Each row of the candidate is matched with its nearest of the baseline, with replacement and "
    "all ties, by covariates alone: the outcome is not looked at before they are balanced. What "
    "matching left is taken out by a regression among the baseline's rows (Abadie and Imbens "
    "2011).",
    "Rows are made comparable in what was measured; what nobody measured is not: that is what the "
    "hidden factor and the placebos are for. docs/observe.md has each formula and its source.",
)
_CLUSTERS = "The interval allows for rows of one cluster that move together."


def observed_conclusion(document: ObservationResult, again: str) -> Conclusion:
    """Put a document into words and tables.

    Parameters
    ----------
    again
        The command that observes it again.
    """
    question, refusal = document.question, document.refusal
    cells = None if document.matched is None else effect_cells(document.matched.effect)
    return Conclusion(
        title=f"{question.candidate} against {question.baseline}",
        badge="refused" if refusal else "observed",
        tone=_tone(document),
        words=document.summary,
        estimate=None if cells is None else (cells[0], cells[1]),
        beside=(refusal.hint,) if refusal else (),
        facts=(
            ("log", question.source),
            ("seed", str(question.seed)),
            *_facts(document),
        ),
        tables=tuple(
            FindingTable(title[:1].upper() + title[1:], ("", *headings), tuple(map(tuple, rows)))
            for title, (headings, rows) in tables(document).items()
        ),
        method=(*_METHOD, *(() if document.clustering is None else (_CLUSTERS,))),
        warnings=document.warnings,
        again=again,
        numbers=(*_effects(document), *_balance(document)),
    )


def _facts(document: ObservationResult) -> Iterator[tuple[str, str]]:
    for line in facts(document):
        name, _, value = line.partition(": ")
        yield name.strip(), value


def _tone(document: ObservationResult) -> str:
    """The colour of the answer: that of the verdict with these words."""
    if document.matched is None:
        return "undecided"
    own = document.matched.effect
    ends, none = (own.difference_ci, 0.0) if own.ratio is None else (own.ratio_ci, 1.0)
    if ends is None or ends[0] <= none <= ends[1]:
        return "undecided"
    return "slower" if ends[0] > none else "faster"


def _effects(document: ObservationResult) -> Iterator[dict[str, Cell]]:
    naive = document.naive
    yield _effect("naive", naive.ratio, naive.ratio_ci, naive.difference, naive.difference_ci)
    if document.matched is not None:
        own = document.matched.effect
        yield _effect("comparable", own.ratio, own.ratio_ci, own.difference, own.difference_ci)
    for one in document.periods:
        name = f"from {one.begins}"
        yield _effect(name, one.ratio, one.ratio_ci, one.difference, one.difference_ci)
    for placebo in document.placebos:
        name = f"placebo {placebo.kind} {placebo.name}"
        yield _effect(
            name, placebo.ratio, placebo.ratio_ci, placebo.difference, placebo.difference_ci
        )


def _effect(
    name: str, ratio: float | None, ratio_ci: Bounds, difference: float | None, ends: Bounds
) -> dict[str, Cell]:
    row: dict[str, Cell] = {"kind": "effect", "name": name}
    for what, value, interval in (("ratio", ratio, ratio_ci), ("difference", difference, ends)):
        low, high = (None, None) if interval is None else interval
        row |= {what: value, f"{what}_low": low, f"{what}_high": high}
    return row


def _balance(document: ObservationResult) -> Iterator[dict[str, Cell]]:
    for one in document.balance:
        yield {
            "kind": "covariate",
            "name": one.column,
            "candidate_before": one.candidate_before,
            "baseline_before": one.baseline_before,
            "apart_before_sd": one.difference_before,
            "candidate_after": one.candidate_after,
            "baseline_after": one.baseline_after,
            "apart_after_sd": one.difference_after,
        }
