"""Renderer that writes the pages of a site: the page of a campaign, and the index.

All pages share one style and one script, which are files next to them, so a page has a few
kilobytes. A page loads these files and nothing else, also from ``file://``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from equipoise.figures.save import vega_library
from equipoise.report.document import Document
from equipoise.report.news import Tone
from equipoise.report.renderers.html import (
    page_environment,
    page_script,
    render_page,
    template_text,
)
from equipoise.shared.pictures import require_figures

ASSETS = "assets"
"""Folder of the files that all pages share."""
_STYLE, _SCRIPT, _SEARCH = f"{ASSETS}/site.css", f"{ASSETS}/page.js", f"{ASSETS}/search.js"
CHART_LIBRARY = f"{ASSETS}/vega.js"
"""Path of the library that draws charts; only pages with charts load it."""
_POLICY = (
    "default-src 'none'; script-src 'self' file:; style-src 'self' file: 'unsafe-inline'; "
    "img-src data: blob:; base-uri 'none'; form-action 'none'"
)
"""Policy of every page: no inline script, and no file from outside of the site."""


class Line(Struct, frozen=True):
    """One line of the index: a campaign, a benchmark or a change."""

    text: str
    """The first words, which are the link if there is a page."""
    page: str | None
    """Address of the page, relative to the index."""
    facts: tuple[str, ...] = ()
    """Words below, such as the time and the host."""
    tone: Tone | None = None
    badge: str | None = None
    """Address of the badge, relative to the index."""


class IndexSection(Struct, frozen=True):
    """A heading of the index, and the lines below it."""

    title: str
    anchor: str
    lines: Sequence[Line]


def shared_files() -> Mapping[str, bytes]:
    """Return the files that all pages share, by their path in the site, without the library."""
    contents = {
        _STYLE: template_text("page.css") + template_text("site.css"),
        _SCRIPT: page_script(),
        _SEARCH: template_text("search.js"),
    }
    return {path: content.encode() for path, content in contents.items()}


def chart_library() -> bytes:
    """Return the library that draws charts; this takes seconds.

    Raise `UnusableInput` if altair or vl-convert is not installed.
    """
    require_figures()
    return vega_library().encode()


def campaign_page(document: Document, note: str) -> str:
    """Return the page of a campaign, one folder below the index.

    ``note`` is a sentence above the answer; it may be empty.
    """
    return render_page("site_campaign.html.jinja", [document], note=note, **_addresses("../"))


def index_page(title: str, sections: Sequence[IndexSection], *, feed: str) -> str:
    """Return the index; ``feed`` is the address of the feed."""
    text = (
        page_environment(has_several=False)
        .get_template("site_index.html.jinja")
        .render(title=title, sections=sections, feed=feed, **_addresses(""))
    )
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _addresses(top: str) -> Mapping[str, str]:
    """Return the policy and the addresses of the shared files, for a page below ``top``."""
    return {
        "policy": _POLICY,
        "home": f"{top}index.html",
        "style": f"{top}{_STYLE}",
        "script": f"{top}{_SCRIPT}",
        "library": f"{top}{CHART_LIBRARY}",
        "search": f"{top}{_SEARCH}",
    }
