"""One page that can be sent: the answer first, then the pictures, and no request to anyone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from equipoise.figures.gallery import Figure, Sequences, gallery
from equipoise.figures.save import (
    content_policy,
    require_figures,
    script_json,
    vega_library,
)
from equipoise.figures.theme import configuration
from equipoise.figures.trial_values import EVERY_TRIAL
from equipoise.model.result import ResultDocument
from equipoise.report.flame_graph import flame_graph_view
from equipoise.report.headline import has_many
from equipoise.report.packing import Packed, pack
from equipoise.report.page import FigureView, RunView, run_view

_TEMPLATES = Path(__file__).parent / "templates"
_SCRIPTS = ("tables.js", "page.js", "take.js")
_ROWS_FOR_VECTORS = 1500
"""Beyond so many marks a page of vectors becomes slow to scroll; pixels do not."""


_AT_A_GLANCE = frozenset({"ratios"})
"""Of many comparisons: all in one figure."""


@dataclass(frozen=True, slots=True)
class Reported:
    """One campaign on a page."""

    document: ResultDocument
    sequences: Sequences = field(default_factory=dict)
    """For each candidate, where its interval stood after each block; may lack some."""
    again: str | None = None
    """The command that runs it again; put together from the document by default."""
    own_figures: tuple[Figure, ...] = ()
    """A study's own, which come first."""
    flame_graph: bytes | None = None
    """SVG, of the gap that the document explains."""


def page(reported: Sequence[Reported]) -> str:
    """One self-contained HTML page; the same campaigns give the same bytes.

    At most ``EVERY_TRIAL`` trials are drawn one by one over the whole page: beyond, each
    campaign gets its part of them and bins what is more.

    Raises
    ------
    UnusableInput
        altair or vl-convert is not installed.
    """
    require_figures()
    packed: list[Packed] = []
    views: list[RunView] = []
    for number, one in enumerate(reported, start=1):
        first: list[FigureView] = []
        others: list[FigureView] = []
        own = len(one.own_figures)
        figures = figures_of(one, every_trial=_share(reported))
        for place, figure in enumerate(figures, start=1):
            view, chart = placed(figure, f"run-{number}-{figure.name}-{place}")
            leads = place <= own or (figure.name in _AT_A_GLANCE and has_many(one.document))
            (first if leads else others).append(view)
            packed.append(chart)
        flames = flame_graph_view(one.flame_graph)
        views.append(
            run_view(
                one.document, number, tuple(others), one.again, flames, first_figures=tuple(first)
            )
        )
    return rendered("page.html.jinja", packed, runs=views)


def placed(figure: Figure, anchor: str) -> tuple[FigureView, Packed]:
    """A figure's words, and its chart for the script of the page."""
    specification: dict[str, Any] = figure.chart.to_dict()
    title = specification.pop("title")
    specification.pop("config")
    view = FigureView(
        anchor=anchor,
        title=title["text"],
        notes=tuple(title.get("subtitle", ())),
        how_to_read=figure.how_to_read,
        description=specification["description"],
        height=int(specification["height"]),
    )
    return view, pack(anchor, specification)


def figures_of(one: Reported, *, every_trial: int = EVERY_TRIAL) -> Iterator[Figure]:
    """The figures of a campaign: a study's own, then the usual ones.

    Parameters
    ----------
    every_trial
        Beyond so many trials a figure bins them and says so.
    """
    yield from one.own_figures
    yield from gallery(one.document, one.sequences, every_trial=every_trial)


def _share(reported: Sequence[Reported]) -> int:
    """How many trials of each campaign are drawn one by one."""
    total = sum(len(one.document.trials) for one in reported)
    return EVERY_TRIAL if total <= EVERY_TRIAL else EVERY_TRIAL // len(reported)


def rendered(template: str, packed: Sequence[Packed], **own: Any) -> str:
    """A template of this folder as a page that makes no request, with its charts.

    Parameters
    ----------
    own
        What the template speaks of; everything in it is escaped.
    """
    import jinja2
    from markupsafe import Markup

    library = vega_library()
    script = _script()
    figures = {
        "renderer": "svg" if sum(one.rows for one in packed) <= _ROWS_FOR_VECTORS else "canvas",
        "themes": {theme: configuration(theme) for theme in ("light", "dark")},
        "charts": [{"anchor": one.anchor, "specification": one.specification} for one in packed],
        "tables": {name: table for one in packed for name, table in one.tables.items()},
    }
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    text = environment.get_template(template).render(
        **own,
        # Ours or escaped by script_json; everything else goes through autoescape.
        style=Markup((_TEMPLATES / "page.css").read_text(encoding="utf-8")),
        library=Markup(library),
        script=Markup(script),
        figures=Markup(script_json(figures)),
        policy=content_policy(library, script),
    )
    # A command line may hold bytes that are no text.
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _script() -> str:
    """The page's own script: its parts share one scope, and nothing of it is seen outside."""
    parts = [(_TEMPLATES / name).read_text(encoding="utf-8") for name in _SCRIPTS]
    return "\n".join(['(() => {\n"use strict";', *parts, "})();"])
