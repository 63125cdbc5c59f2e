"""The one error that a user of Equipoise sees."""

from __future__ import annotations

EXIT_UNUSABLE_INPUT = 2
MAX_TEXT_LETTERS = 1000
"""Largest number of letters of one part of an error, which may quote a name of any length."""


class EquipoiseError(Exception):
    """An error that the user can end.

    ``what`` says what is wrong, naming the thing and the place; ``hint`` is one thing that the user
    can do about it. The middle of more than `MAX_TEXT_LETTERS` letters is left out of each.

    Examples
    --------
    >>> error = EquipoiseError("there is no column 'wage'", hint="name one of age, trained")
    >>> print(error)
    there is no column 'wage'
    name one of age, trained
    """

    exit_status = EXIT_UNUSABLE_INPUT
    """Exit status of the command line (docs/reference/commands.md)."""

    def __init__(self, what: str, *, hint: str | None = None) -> None:
        self.what = _shortened(what)
        self.hint = None if hint is None else _shortened(hint)
        super().__init__(self.what if hint is None else f"{self.what}\n{self.hint}")


def _shortened(text: str) -> str:
    """Return the text with its middle left out if it is too long.

    The place stands at the beginning and the reason at the end: both stay.
    """
    if len(text) <= MAX_TEXT_LETTERS:
        return text
    half = MAX_TEXT_LETTERS // 2
    return f"{text[:half]} … ({len(text) - 2 * half} letters) … {text[-half:]}"


class UnusableInput(EquipoiseError):
    """Exit status 2: a command line, a file or a ledger that cannot be used."""
