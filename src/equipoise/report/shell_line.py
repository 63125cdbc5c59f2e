"""Words as a line for a shell that can be copied from a page or a screen and means the same."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence

from equipoise.model.redaction import quoted_but_for_placeholders
from equipoise.report.safe_text import visible


def shell_line(words: Iterable[str]) -> str:
    """The words, quoted: whatever is in one of them, a shell reads it as it stands.

    A word that has what no screen shows (the end of a line, an escape, a change of direction, bytes
    that are no text) is written as ``$'…'``, which bash, ksh and zsh read (POSIX.1-2024, §2.2.4);
    all others are for any shell.
    """
    return " ".join(map(_quoted, words))


def shell_line_with_placeholders(words: Iterable[str]) -> str:
    """The words, quoted likewise, but a shell expands the placeholders of hidden values.

    ``2:TOKEN=$TOKEN`` becomes ``"2:TOKEN=$TOKEN"``.
    """
    return " ".join(quoted_but_for_placeholders(word, _quoted) for word in words)


def after_options(words: Sequence[str]) -> list[str]:
    """Words behind options: ``--`` keeps one that begins with a hyphen from being an option."""
    return ["--", *words] if any(word.startswith("-") for word in words) else list(words)


def _quoted(word: str) -> str:
    if visible(word) == word:
        return shlex.quote(word)
    return f"$'{''.join(map(_escaped, word))}'"


def _escaped(character: str) -> str:
    if character in "\\'":
        return f"\\{character}"
    if visible(character) == character:
        return character
    return "".join(f"\\x{byte:02x}" for byte in _bytes_of(character))


def _bytes_of(character: str) -> bytes:
    try:
        return character.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        # Out of a document: no command line can hold it.
        return character.encode("utf-8", "surrogatepass")
