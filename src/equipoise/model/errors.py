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
"""Letters of one part of an error; a file or a name that it quotes may have any number."""


class EquipoiseError(Exception):
    """Something the user can hint: what is wrong, where, and the hint.

    Parameters
    ----------
    what
        What is wrong, naming the thing and the place. Of more than `LONGEST_TEXT` letters the
        middle is left out.
    hint
        What the user can do about it; likewise.
    exit_status
        What the command line exits with (design.md §4).
    """

    def __init__(
        self, what: str, *, hint: str | None = None, exit_status: int = EXIT_UNUSABLE_INPUT
    ) -> None:
        what = _shortened(what)
        hint = None if hint is None else _shortened(hint)
        super().__init__(what if hint is None else f"{what}\n{hint}")
        self.what = what
        self.hint = hint
        self.exit_status = exit_status


def _shortened(text: str) -> str:
    """Return the text with its middle left out if it is too long.

    The place stands at the beginning and the reason at the end: both stay.
    """
    if len(text) <= LONGEST_TEXT:
        return text
    kept = LONGEST_TEXT // 2
    return f"{text[:kept]} … ({len(text) - 2 * kept} letters) … {text[-kept:]}"


class UnusableInput(EquipoiseError):
    """Exit status 2: a command line, a file or a ledger that cannot be used."""


class TookNoEffect(UnusableInput):
    """A condition is not what its name says.

    Parameters
    ----------
    condition
        Its name.
    what
        What did not take effect.
    key, value
        Where a study sets it: a key of a level's table, and which of several it is there.
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

    def __init__(self, what: str, *, hint: str | None = None) -> None:
        super().__init__(what, hint=hint, exit_status=EXIT_CONDITION_FAILED)
