"""A conclusion as one page that can be sent."""

from __future__ import annotations

from collections.abc import Iterable

from equipoise.figures.gallery import Figure
from equipoise.figures.save import require_figures
from equipoise.model.conclusion import Conclusion
from equipoise.report.html import placed, rendered


def conclusion_page(found: Conclusion, figures: Iterable[Figure]) -> str:
    """One self-contained HTML page; the same conclusion and figures give the same bytes.

    Raises
    ------
    UnusableInput
        altair or vl-convert is not installed.
    """
    require_figures()
    drawn = [
        placed(figure, f"{figure.name}-{place}") for place, figure in enumerate(figures, start=1)
    ]
    return rendered(
        "conclusion.html.jinja",
        [chart for _, chart in drawn],
        found=found,
        figures_shown=[view for view, _ in drawn],
    )
