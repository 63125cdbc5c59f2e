"""The one error that a user of Equipoise sees."""

from __future__ import annotations

EXIT_DONE = 0
EXIT_GATE_FAILED = 1
EXIT_UNUSABLE_INPUT = 2
EXIT_CONDITION_FAILED = 3
EXIT_INTERNAL_ERROR = 70
"""A defect of Equipoise: EX_SOFTWARE of sysexits.h."""
EXIT_OUTPUT_FAILED = 74
"""Standard output could not be written: EX_IOERR of sysexits.h."""
EXIT_INTERRUPTED = 130

LONGEST_TEXT = 1000
"""Largest number of letters of one part of an error, which may quote a name of any length."""


class EquipoiseError(Exception):
    """An error that the user can end.

    ``what`` says what is wrong, naming the thing and the place; ``hint`` is one thing that the user
    can do about it. The middle of more than `LONGEST_TEXT` letters is left out of each.
    """

    exit_status = EXIT_UNUSABLE_INPUT
    """Exit status of the command line (docs/commands.md)."""

    def __init__(self, what: str, *, hint: str | None = None) -> None:
        self.what = _shortened(what)
        self.hint = None if hint is None else _shortened(hint)
        super().__init__(self.what if hint is None else f"{self.what}\n{self.hint}")


def _shortened(text: str) -> str:
    """Return the text with its middle left out if it is too long.

    The place stands at the beginning and the reason at the end: both stay.
    """
    if len(text) <= LONGEST_TEXT:
        return text
    half = LONGEST_TEXT // 2
    return f"{text[:half]} … ({len(text) - 2 * half} letters) … {text[-half:]}"


class UnusableInput(EquipoiseError):
    """Exit status 2: a command line, a file or a ledger that cannot be used."""


class TookNoEffect(UnusableInput):
    """A condition is not what its name says: ``what`` did not take effect.

    ``key`` is the key of a level's table that sets it in a study; ``value`` tells which of several
    values it is there.
    """

    def __init__(
        self, condition: str, what: str, *, hint: str, key: str, value: str | None = None
    ) -> None:
        super().__init__(f"{condition} did not take effect: {what}", hint=hint)
        self.condition = condition
        self.key = key
        self.value = value


class ConditionFailed(EquipoiseError):
    """Exit status 3: a condition failed and no verdict could be given."""

    exit_status = EXIT_CONDITION_FAILED
