"""Tables and facts as a piece of HTML for a notebook: self-contained, small, light or dark.

No colour is set, so that a notebook's own hold; no script and no style sheet.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

from equipoise.report.safe_text import visible

_LINE = "border-bottom:1px solid rgba(128,128,128,.4)"
_CELL = "padding:.2em .6em"


def text(plain: str) -> str:
    """Text as HTML, between tags or within an attribute, whatever it holds."""
    return html.escape(visible(plain.encode("utf-8", "backslashreplace").decode("utf-8")))


def table(headings: Sequence[str], rows: Iterable[Sequence[str]], names: int = 1) -> str:
    """A table under headings.

    Parameters
    ----------
    names
        So many columns are of names, to the left; the others are figures, to the right.
    """
    head = "".join(
        f'<th scope="col" style="{_LINE};{_CELL};text-align:{_side(place, names)}">{text(one)}</th>'
        for place, one in enumerate(headings)
    )
    body = "".join(f"<tr>{_row(cells, names)}</tr>" for cells in rows)
    return (
        '<div style="overflow-x:auto"><table style="border-collapse:collapse">'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def facts(pairs: Iterable[tuple[str, object]]) -> str:
    """Names and what they are, a line each."""
    body = "".join(
        f'<tr><th scope="row" style="{_CELL};text-align:left">{text(name)}</th>'
        f'<td style="{_CELL};text-align:left">{text(str(value))}</td></tr>'
        for name, value in pairs
    )
    return f'<table style="border-collapse:collapse"><tbody>{body}</tbody></table>'


def _row(cells: Sequence[str], names: int) -> str:
    return "".join(
        f'<td style="{_CELL};text-align:{_side(place, names)}">{text(cell)}</td>'
        for place, cell in enumerate(cells)
    )


def _side(place: int, names: int) -> str:
    return "left" if place < names else "right"
