"""A badge in SVG: the name of a benchmark, and what was measured and when."""

from __future__ import annotations

from hashlib import blake2b
from xml.etree import ElementTree

from equipoise.report.news import Badge, Tone
from equipoise.shared.safe_text import short_line, visible
from equipoise.site.manifest import BADGES

_COLORS: dict[Tone, str] = {
    "slower": "#b23c00",
    "faster": "#056d51",
    "equivalent": "#0f609b",
    "undecided": "#4d5661",
}
"""Background of the message: the colours of verdicts on a light page, with white text."""
_LABEL_COLOR = "#1b2026"
_SVG = "http://www.w3.org/2000/svg"
_LETTER_WIDTH, _MARGIN, _HEIGHT, _BASELINE = 6.6, 7, 20, 14
"""Pixels of a letter with 11 pixels, on average, of a margin, of the badge, and of its text."""
_NOT_IN_XML = {0xFFFE: "\\ufffe", 0xFFFF: "\\uffff"}
"""Escapes of the visible characters that XML 1.0 forbids (section 2.2)."""
_MAX_LABEL_LETTERS, _MAX_MESSAGE_LETTERS = 40, 90
_DIGEST_BYTES = 8


def badge_path(badge: Badge) -> str:
    """Return the path of a badge in the site; later badges of the benchmark have the same path."""
    digest = blake2b(badge.label.encode("utf-8", "backslashreplace"), digest_size=_DIGEST_BYTES)
    return f"{BADGES}/{digest.hexdigest()}.svg"


def badge_svg(badge: Badge, day: str) -> bytes:
    """Return a badge as SVG; ``day`` is the day of the campaign: ``2026-03-01``."""
    label = xml_text(short_line(badge.label, _MAX_LABEL_LETTERS))
    message = f"{xml_text(short_line(badge.message, _MAX_MESSAGE_LETTERS))} · {day}"
    label_width, message_width = _width(label), _width(message)
    svg = ElementTree.Element(
        "svg",
        xmlns=_SVG,
        width=str(label_width + message_width),
        height=str(_HEIGHT),
        role="img",
    )
    svg.set("aria-label", f"{label}: {message}")
    ElementTree.SubElement(svg, "title").text = f"{label}: {message}"
    for left, width, color, text in (
        (0, label_width, _LABEL_COLOR, label),
        (label_width, message_width, _COLORS[badge.tone], message),
    ):
        ElementTree.SubElement(
            svg, "rect", x=str(left), width=str(width), height=str(_HEIGHT), fill=color
        )
        element = ElementTree.SubElement(
            svg,
            "text",
            {
                "x": str(left + _MARGIN),
                "y": str(_BASELINE),
                "fill": "#ffffff",
                "font-family": "Verdana,DejaVu Sans,sans-serif",
                "font-size": "11",
                # The reader's font may be wider or narrower than the estimate.
                "textLength": str(width - 2 * _MARGIN),
                "lengthAdjust": "spacingAndGlyphs",
            },
        )
        element.text = text
    content: bytes = ElementTree.tostring(svg, encoding="utf-8", xml_declaration=True)
    return content


def xml_text(text: str) -> str:
    """Return text with an escape for each character that XML 1.0 cannot hold, even escaped."""
    return visible(text).translate(_NOT_IN_XML)


def _width(text: str) -> int:
    return round(_LETTER_WIDTH * len(text)) + 2 * _MARGIN
