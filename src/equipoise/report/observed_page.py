"""What was found in a log, as one page that can be sent."""

from __future__ import annotations

from equipoise.figures.library import require_figures
from equipoise.figures.observed import observed_figures
from equipoise.model.observed import Observed
from equipoise.report.html import placed, rendered
from equipoise.report.observed import effect_cells, facts, tables


def observed_page(document: Observed) -> str:
    """One self-contained HTML page; the same document gives the same bytes.

    Raises
    ------
    UnusableInput
        altair or vl-convert is not installed.
    """
    require_figures()
    drawn = [placed(figure, f"observed-{figure.name}") for figure in observed_figures(document)]
    answer = None if document.matched is None else effect_cells(document.matched.effect)
    named = [line.partition(": ")[::2] for line in facts(document)]
    return rendered(
        "observed.html.jinja",
        [chart for _, chart in drawn],
        document=document,
        answer=answer,
        tone=_tone(document),
        facts=named,
        tables=tables(document),
        shown=[view for view, _ in drawn],
    )


def _tone(document: Observed) -> str:
    """The colour of the answer: that of the verdict with these words."""
    if document.matched is None:
        return "undecided"
    own = document.matched.effect
    ends, none = (own.difference_ci, 0.0) if own.ratio is None else (own.ratio_ci, 1.0)
    if ends is None or ends[0] <= none <= ends[1]:
        return "undecided"
    return "slower" if ends[0] > none else "faster"
