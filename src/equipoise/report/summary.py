"""A result in one table with a few lines around it: what fits a pull request, a paper, a notebook.

Plain text throughout: whoever writes it in a form escapes it for that form.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from equipoise.model.findings import Findings
from equipoise.model.record import CampaignWarning
from equipoise.model.result import ResultDocument
from equipoise.report.environment_view import flattened
from equipoise.report.page import RunView, run_view
from equipoise.report.study_table import verdict_counts
from equipoise.report.verdict_view import VerdictView

FEW = 3
"""So many verdicts are told in sentences; of more, how many came out how."""
ALIKE_SHOWN = 3
"""Of warnings of one code."""
LEFT_TO_THE_PAGE = frozenset({"Fastest", "Least", "Drift"})
COMPARED = ("Against baseline", "Interval", "Verdict")
NAMED = frozenset(
    {"equipoise", "system", "kernel", "cpu model", "cpus", "governor", "memory", "hypervisor"}
)
"""Of the environment, what a reader asks for first; the page and the document have all."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """What was found, in words."""

    verdict: str
    """Empty where there is none."""
    words: str


@dataclass(frozen=True, slots=True)
class SummaryTable:
    """A row for each condition, in the order of the plan; every row as long as the headings."""

    headings: tuple[str, ...]
    """The first is of names, the others of figures and of verdicts."""
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Summary:
    """One result, in the order in which it is read."""

    sentences: tuple[Sentence, ...]
    """At least one."""
    table: SummaryTable
    notes: tuple[str, ...]
    warnings: tuple[CampaignWarning, ...]
    unsaid_warnings: int
    """That are like these."""
    how: tuple[tuple[str, str], ...]
    """How it was measured: what, and its value."""
    again: str
    """The command that runs it again."""
    findings: Findings
    """A study's own tables and paragraphs."""


def summary(document: ResultDocument, again: str | None = None) -> Summary:
    """Put a result into one table and a few lines.

    Parameters
    ----------
    again
        The command that runs it again; put together from the document if ``None``.
    """
    view = run_view(document, 1, (), again)
    warnings = tuple(_first_of_each(document.warnings))
    return Summary(
        sentences=tuple(_sentences(document, view)),
        table=_table(view),
        notes=tuple(_notes(view)),
        warnings=warnings,
        unsaid_warnings=len(document.warnings) - len(warnings),
        how=(
            *view.how_it_ran,
            *((key, value) for key, value in flattened(document.environment) if key in NAMED),
        ),
        again=view.again,
        findings=document.findings or Findings(),
    )


def _sentences(document: ResultDocument, view: RunView) -> Iterator[Sentence]:
    if view.findings is not None and view.findings.answer:
        yield Sentence("", view.findings.answer)
    if len(view.verdicts) > FEW:
        primary = [one for one in document.comparisons if one.metric == document.primary_metric]
        yield Sentence(
            "", verdict_counts(primary) if primary else f"{len(view.verdicts)} comparisons"
        )
    elif view.verdicts:
        for one in view.verdicts:
            yield Sentence(one.verdict, one.words)
            if one.because:
                yield Sentence("", one.because)
    elif not (view.findings and view.findings.answer):
        yield Sentence("", view.title)
        yield from (Sentence("", words) for words in view.said)


def _table(view: RunView) -> SummaryTable:
    kept = [place for place, name in enumerate(view.columns) if name not in LEFT_TO_THE_PAGE]
    compared = {one.candidate: (one.change, one.interval, one.verdict) for one in view.verdicts}
    baselines = {one.baseline for one in view.verdicts}
    return SummaryTable(
        headings=(
            "Condition",
            *(view.columns[place] for place in kept),
            *(COMPARED if compared else ()),
        ),
        rows=tuple(
            (
                condition.name,
                *(condition.cells[place] for place in kept),
                *(_compared(condition.name, compared, baselines) if compared else ()),
            )
            for condition in view.conditions
        ),
    )


def _compared(
    name: str, compared: dict[str, tuple[str, str, str]], baselines: set[str]
) -> tuple[str, str, str]:
    return compared.get(name, ("baseline" if name in baselines else "–", "", ""))


def _notes(view: RunView) -> Iterator[str]:
    if len(view.verdicts) <= FEW:
        yield from map(_facts, view.verdicts)
    for metric, candidate, verdict, change, interval in view.others:
        yield f"{metric} of {candidate}: {change} ({interval}), {verdict}"
    if view.control is not None:
        yield f"Control: {view.control.words}"
    yield from view.why


def _facts(one: VerdictView) -> str:
    facts = "; ".join(f"{name[:1].lower()}{name[1:]}: {value}" for name, value in one.facts)
    return (
        f"{one.candidate} against {one.baseline}: {one.change}, "
        f"{one.coverage} interval {one.interval}; {facts}"
    )


def _first_of_each(warnings: Sequence[CampaignWarning]) -> Iterator[CampaignWarning]:
    for code in dict.fromkeys(one.code for one in warnings):
        yield from [one for one in warnings if one.code == code][:ALIKE_SHOWN]
