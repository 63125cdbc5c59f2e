"""Renderer that writes the pages of a site: the page of a campaign, the index, and its lists.

A list is a page with lines for which the index has no room. The lines of all lists are also in a
script, which the index loads when the reader searches: a page from ``file://`` may load a script,
but no other data.

All pages share one style and one script, which are files next to them, so a page has a few
kilobytes. A page loads these files and nothing else, also from ``file://``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec
from msgspec import Struct

from equipoise.figures.save import vega_library
from equipoise.report.document import Document
from equipoise.report.news import Tone
from equipoise.report.renderers.html import (
    page_environment,
    page_script,
    readable_text,
    render_page,
    template_text,
)
from equipoise.shared.pictures import require_figures

ASSETS = "assets"
"""Folder of the files that all pages share."""
_STYLE, _SCRIPT, _SEARCH = f"{ASSETS}/site.css", f"{ASSETS}/page.js", f"{ASSETS}/search.js"
LISTED_LINES = f"{ASSETS}/lines.js"
"""Path of the script with the lines of all lists."""
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
    total: int
    """Number of lines, including those on lists."""
    rest: str | None = None
    """Address of the list that continues the lines; relative to the index."""


class ListPage(Struct, frozen=True):
    """A page that continues a section of the index. It is one folder below the index."""

    title: str
    lines: Sequence[Line]
    before: str
    """Address of the page with the lines before these, relative to the index."""
    after: str | None
    """Address of the page with the lines after these, relative to the index."""


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


def index_page(title: str, sections: Sequence[IndexSection], *, feed: str) -> bytes:
    """Return the index; ``feed`` is the address of the feed."""
    listed_count = sum(section.total - len(section.lines) for section in sections)
    return _rendered(
        "site_index.html.jinja",
        title=title,
        sections=sections,
        feed=feed,
        listed_count=listed_count,
        listed_lines=LISTED_LINES,
        **_addresses(""),
    )


def list_page(title: str, page: ListPage) -> bytes:
    """Return a list; ``title`` is the title of the index."""
    return _rendered("site_list.html.jinja", site_title=title, page=page, **_addresses("../"))


def listed_lines(lines: Iterable[Line]) -> bytes:
    """Return the script with the lines of all lists, for the search of the index."""
    rows = [
        [readable_text(line.text), line.page, readable_text(" · ".join(line.facts)), line.tone]
        for line in lines
    ]
    return b"globalThis.listedLines = " + msgspec.json.encode(rows) + b";\n"


def _rendered(template: str, **context: object) -> bytes:
    text = page_environment(has_several=False).get_template(template).render(**context)
    return text.encode("utf-8", "backslashreplace")


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
