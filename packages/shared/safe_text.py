"""Functions that make untrusted text safe (rule 9) for a terminal and a CSV file."""

from __future__ import annotations

import csv
import io
import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any

_UNSAFE_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})
"""Unicode categories of controls, directions, lone surrogates, private use, line separators."""
MAX_LINE_LETTERS = 400
"""Maximum length of a line of untrusted text, such as the reason of a failure."""
MAX_NAME_LETTERS = 200
"""Maximum length of the shown name of a condition, a level, a host, or a commit."""


def visible(text: str) -> str:
    """Return the text with an escape for each character that could control a terminal."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        repr(character)[1:-1]
        if unicodedata.category(character) in _UNSAFE_CATEGORIES
        else character
        for character in text
    )


def visible_lines(text: str) -> str:
    """Return the text as `visible` does, but keep its line feeds and tabs."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        part if part in ("\n", "\t") else visible(part) for part in re.split(r"([\n\t])", text)
    )


def short_line(text: str, max_letters: int = MAX_LINE_LETTERS) -> str:
    """Return untrusted text as one line without control characters, cut to a maximum length."""
    # Cut a very long text before the slow check of each character.
    line = visible(" ".join(text[: 4 * max_letters].split()))
    return line if len(line) <= max_letters else f"{line[: max_letters - 1]}…"


def shortened(text: str, max_letters: int = MAX_NAME_LETTERS) -> str:
    """Return the text; if it is too long, cut it by `short_line`."""
    return text if len(text) <= max_letters else short_line(text, max_letters)


def as_unicode(text: str) -> str:
    """Return text that every encoder accepts, with escapes for undecodable bytes."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def csv_text(rows: Iterable[Sequence[Any]]) -> str:
    """Return rows as CSV, quoted by RFC 4180; ``None`` is an empty cell.

    A cell with a carriage return is quoted, because a reader may end the row there. By default,
    Python's writer does not quote this cell.
    """
    text = io.StringIO()
    plain_writer = csv.writer(text, lineterminator="\n")
    quoting_writer = csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)
    for row in rows:
        has_return = any(isinstance(cell, str) and "\r" in cell for cell in row)
        (quoting_writer if has_return else plain_writer).writerow(row)
    return text.getvalue()
