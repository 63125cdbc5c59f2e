"""The feed of changes in Atom (RFC 4287), with addresses relative to the feed."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from xml.etree import ElementTree

from msgspec import Struct

from equipoise.model.quantities import iso_time
from equipoise.report.news import Change
from equipoise.site.badges import xml_text
from equipoise.site.manifest import FEED, INDEX

MAX_ENTRIES = 100
"""Number of changes in the feed, the latest first."""
_ATOM = "http://www.w3.org/2005/Atom"
_NAMESPACE = uuid.UUID("6f0a9d2e-7c1b-5e0f-9a34-2b7d51c80e66")
"""Namespace of the identifiers of feeds and entries (RFC 9562, section 5.5)."""


class DatedChange(Struct, frozen=True):
    """A change, with the campaign that reported it first."""

    change: Change
    at: float
    """Start of the campaign, in seconds since the epoch."""
    page: str | None
    noun: str


def identifier_of(text: str) -> str:
    """Return an Atom identifier that is always the same for a text."""
    # A lone surrogate has no UTF-8, which a UUID needs.
    return uuid.uuid5(_NAMESPACE, text.encode("utf-8", "backslashreplace").decode()).urn


def atom_feed(title: str, identifier: str, changes: Sequence[DatedChange], at: float) -> bytes:
    """Return the feed; ``changes`` are the latest first, and ``at`` is the time of the latest run.

    The same changes give the same bytes.
    """
    feed = ElementTree.Element("feed", xmlns=_ATOM)
    _add(feed, "id", identifier)
    _add(feed, "title", title)
    _add(feed, "updated", iso_time(at))
    ElementTree.SubElement(feed, "link", rel="self", href=FEED)
    ElementTree.SubElement(feed, "link", rel="alternate", type="text/html", href=INDEX)
    _add(ElementTree.SubElement(feed, "author"), "name", "Equipoise")
    for dated in changes[:MAX_ENTRIES]:
        entry = ElementTree.SubElement(feed, "entry")
        _add(entry, "id", identifier_of(dated.change.key))
        _add(entry, "title", dated.change.summary)
        _add(entry, "updated", iso_time(dated.at))
        address = dated.page or INDEX
        ElementTree.SubElement(entry, "link", rel="alternate", type="text/html", href=address)
        _add(entry, "summary", f"{dated.change.summary} Found by a {dated.noun}.")
    content: bytes = ElementTree.tostring(feed, encoding="utf-8", xml_declaration=True)
    return content + b"\n"


def _add(parent: ElementTree.Element, name: str, text: str) -> None:
    ElementTree.SubElement(parent, name).text = xml_text(text)
