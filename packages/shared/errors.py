"""The error that a user of Equipoise sees."""

from __future__ import annotations

EXIT_UNUSABLE_INPUT = 2
"""Exit status of the command line for an error that the user can correct."""
MAX_TEXT_LETTERS = 1000
"""Maximum length of a text of an error; an error may quote a very long name."""


class EquipoiseError(Exception):
    """An error that the user can correct.

    ``what`` is the problem, with the name and the place. ``hint`` is one thing to type or change.
    A long text loses its middle.

    Examples
    --------
    >>> error = EquipoiseError("no run is named x", hint="equipoise list shows the runs")
    >>> print(error)
    no run is named x
    equipoise list shows the runs
    """

    exit_status = EXIT_UNUSABLE_INPUT
    """Exit status of the command line (docs/reference/commands.md)."""

    def __init__(self, what: str, *, hint: str | None = None) -> None:
        self.what = _shortened(what)
        self.hint = None if hint is None else _shortened(hint)
        super().__init__(self.what if hint is None else f"{self.what}\n{self.hint}")


def _shortened(text: str) -> str:
    """Return the text; a long text loses its middle, but keeps the place and the reason."""
    if len(text) <= MAX_TEXT_LETTERS:
        return text
    half = MAX_TEXT_LETTERS // 2
    return f"{text[:half]} … ({len(text) - 2 * half} letters) … {text[-half:]}"


class UnusableInput(EquipoiseError):
    """A command line, an argument, a file or a ledger that cannot be used: exit status 2.

    Examples
    --------
    >>> error = UnusableInput("seed is -1", hint="give a whole number from 0 up")
    >>> error.what, error.hint
    ('seed is -1', 'give a whole number from 0 up')
    """
