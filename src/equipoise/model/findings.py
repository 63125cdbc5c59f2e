"""What a study says beyond its verdicts: tables, paragraphs and, drawn elsewhere, figures."""

from __future__ import annotations

from msgspec import Struct


class FindingTable(Struct, frozen=True):
    """A table of words; whoever shows it escapes and aligns them."""

    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    """Each as long as the headings."""
    notes: tuple[str, ...] = ()
    """How its numbers are made, a line each."""


class Findings(Struct, frozen=True):
    """What the numbers of a study say."""

    tables: tuple[FindingTable, ...] = ()
    paragraphs: tuple[str, ...] = ()
    answer: str = ""
    """What the study asked and found, in one sentence; empty where nothing can be said yet."""
