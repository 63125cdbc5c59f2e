"""What a result shows in place of a hidden value: ``$NAME``, the name of its variable.

A placeholder is written so that a line with it can be run by whoever has the variable set.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable

_OWN_PLACEHOLDER = re.compile(
    r"(?:[^=]*:)?(?P<name>[A-Za-z_][A-Za-z0-9_]*)=(?P<placeholder>\$(?P=name)(?:_[0-9]+)?)"
)
"""``TOKEN=$TOKEN``; after a colon in ``2:TOKEN=$TOKEN``, the value of ``--env``."""
_UNSAFE_BETWEEN_DOUBLE_QUOTES = re.compile(r"[\"\\`!$]")


def placeholder(name: str, number: int) -> str:
    """Return the text that stands for a hidden value of the variable.

    Parameters
    ----------
    number
        Counts the different values of one variable from 1: ``$TOKEN``, ``$TOKEN_2``.
    """
    return f"${name}" if number == 1 else f"${name}_{number}"


def quoted_but_for_placeholders(word: str, quote: Callable[[str], str]) -> str:
    """Quote a word for a shell, which expands the placeholders in it and nothing else.

    Only an assignment of a placeholder of the same name counts (``TOKEN=$TOKEN``), and only where
    it is a whole word of the command that the word holds. A shell's line in the word is not
    opened: the inner shell expands its placeholders.

    Parameters
    ----------
    quote
        Quotes a text for a shell.
    """
    found = _placeholders_in(word)
    if not found:
        return quote(word)
    pieces = re.split(rf"(=(?:{'|'.join(map(re.escape, found))})(?![A-Za-z0-9_]))", word)
    literal = "".join(pieces[::2])
    if literal.isprintable() and not _UNSAFE_BETWEEN_DOUBLE_QUOTES.search(literal):
        return f'"{word}"'
    return "".join(
        f'="{piece[1:]}"' if place % 2 else quote(piece)
        for place, piece in enumerate(pieces)
        if piece
    )


def _placeholders_in(word: str) -> tuple[str, ...]:
    """The placeholders that are assigned in the word, the longest first."""
    try:
        parts = shlex.split(word)
    except ValueError:
        parts = [word]
    matches = map(_OWN_PLACEHOLDER.fullmatch, parts)
    return tuple(sorted({one["placeholder"] for one in matches if one}, key=len, reverse=True))
