"""What no report may hold: an element, an attribute or a command that a document brought."""

from __future__ import annotations

import csv
import io
import re
from html.parser import HTMLParser

from markdown_it import MarkdownIt

from tests.fuzz.case import WrongResult
from tests.fuzz.mutators import MARKER

_BROUGHT = frozenset({MARKER, "iframe", "object", "embed", "base", "form", "textarea"})
_ADDRESSES = ("javascript:", "http://example.com", "https://example.com", "data:text")
_LATEX = re.compile(r"\\(input|write18|end\{tabular\} \{|fuzzed)")


class _Elements(HTMLParser):
    """Refuses what acts by itself or is of a document's text."""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Judge an element."""
        if tag in _BROUGHT:
            raise WrongResult(f"an element of the document's text is in the page: {tag}")
        for name, value in attrs:
            if name.startswith("on"):
                raise WrongResult(f"an attribute of the document's text is in the page: {name}")
            if name in ("href", "src") and (value or "").strip().lower().startswith(_ADDRESSES):
                raise WrongResult(f"an address of the document's text is in the page: {value!r}")
        self._is_script = tag == "script"

    def handle_data(self, data: str) -> None:
        """Judge a text; what a script element holds is given here, too."""
        if self.lasttag == "script" and data.strip() == "alert(1)":
            raise WrongResult("a script of the document's text is in the page")


def check_html(page: str) -> None:
    """Check a page.

    Raise `WrongResult` if a text of the document became an element, an attribute or a script.
    """
    parser = _Elements()
    parser.feed(page)
    parser.close()


def check_markdown(text: str) -> None:
    """Check the page that a forge makes of Markdown."""
    check_html(MarkdownIt("commonmark", {"html": True}).enable("table").render(text))


def check_latex(text: str) -> None:
    """Check that LaTeX is brought no command."""
    found = _LATEX.search(text.replace("\\end{tabular}\n", ""))
    if found is not None:
        raise WrongResult(f"a command of the document's text is in the LaTeX: {found[0]}")


def check_csv(text: str) -> None:
    """Check that each row has the cells of the header."""
    rows = list(csv.reader(io.StringIO(text, newline="")))
    widths = {len(row) for row in rows}
    if len(widths) > 1:
        raise WrongResult(f"rows of {sorted(widths)} cells")
