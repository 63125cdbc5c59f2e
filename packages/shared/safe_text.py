"""Untrusted text stays text (rule 9), on a terminal and in a CSV file."""

from __future__ import annotations

import csv
import io
import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any

_UNSAFE = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})
"""Unicode categories: controls, directions, lone surrogates, private use, line separators."""

MAX_LINE_LETTERS = 400
"""Letters of a line that somebody else wrote, such as a failure, at most."""
MAX_NAME_LETTERS = 200
"""Letters of a name that is shown, at most: of a condition, a level, a host, or a commit."""


def visible(text: str) -> str:
    """Return the text with every character that could steer a terminal written as an escape."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        repr(character)[1:-1] if unicodedata.category(character) in _UNSAFE else character
        for character in text
    )


def visible_lines(text: str) -> str:
    """Return the text as `visible` does, but with its line feeds and tabs as they are."""
    return "".join(
        part if part in ("\n", "\t") else visible(part) for part in re.split(r"([\n\t])", text)
    )


def short_line(text: str, max_letters: int = MAX_LINE_LETTERS) -> str:
    """Return untrusted text as one line without controls, cut where it is longer than any text."""
    # What is far too long is cut before it is looked at letter by letter.
    line = visible(" ".join(text[: 4 * max_letters].split()))
    return line if len(line) <= max_letters else f"{line[: max_letters - 1]}…"


def shortened(text: str, max_letters: int = MAX_NAME_LETTERS) -> str:
    """Return the text as it is, or as `short_line` cuts it if it is too long."""
    return text if len(text) <= max_letters else short_line(text, max_letters)


def as_unicode(text: str) -> str:
    """Return text that any encoder and SQLite accept: bytes that are no text become escapes."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def csv_text(rows: Iterable[Sequence[Any]]) -> str:
    """Return rows as CSV, as RFC 4180 quotes them; ``None`` is an empty cell.

    A cell with the end of a line of any system stands in quotes. Python's writer leaves a lone
    carriage return bare where lines end in a line feed, and a reader ends the row there.
    """
    text = io.StringIO()
    plain = csv.writer(text, lineterminator="\n")
    quoting = csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)
    for row in rows:
        returns = any(isinstance(cell, str) and "\r" in cell for cell in row)
        (quoting if returns else plain).writerow(row)
    return text.getvalue()
