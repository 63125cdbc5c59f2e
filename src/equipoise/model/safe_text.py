"""Untrusted text stays text (rule 9): what a terminal would obey is shown, not sent."""

from __future__ import annotations

import unicodedata

_UNSAFE = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})
"""Unicode categories: controls, directions, lone surrogates, private use, line separators."""


def visible(text: str) -> str:
    """Return the text with every character that could steer a terminal written as an escape."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        repr(character)[1:-1] if unicodedata.category(character) in _UNSAFE else character
        for character in text
    )
