"""The errors that a user of the laboratory sees, and the exit statuses of the command line."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from equipoise.shared.errors import EXIT_UNUSABLE_INPUT as EXIT_UNUSABLE_INPUT
from equipoise.shared.errors import EquipoiseError as EquipoiseError
from equipoise.shared.errors import UnusableInput as UnusableInput

EXIT_DONE = 0
EXIT_GATE_FAILED = 1
EXIT_CONDITION_FAILED = 3
EXIT_INTERNAL_ERROR = 70
"""A defect of Equipoise: EX_SOFTWARE of sysexits.h."""
EXIT_OUTPUT_FAILED = 74
"""Standard output could not be written: EX_IOERR of sysexits.h."""
EXIT_INTERRUPTED = 130


@runtime_checkable
class UserError(Protocol):
    """An error that the user can correct, of this package or of `equipoise_matching`.

    `equipoise_matching` has its own class with these fields, so that neither wheel needs the other.
    """

    what: str
    """The problem and its place."""
    hint: str | None
    """The action that solves the problem."""
    exit_status: int


class TookNoEffect(UnusableInput):
    """A setting of a condition (``what``) had no effect, so the name of the condition is wrong.

    ``study_key`` is the key of the setting in the table of a level of a study. ``value`` is
    the setting's value or variable, if the key can have several.
    """

    def __init__(
        self, condition: str, what: str, *, hint: str, study_key: str, value: str | None = None
    ) -> None:
        super().__init__(f"{condition} did not take effect: {what}", hint=hint)
        self.condition = condition
        self.study_key = study_key
        self.value = value


class ConditionFailed(EquipoiseError):
    """Exit status 3: a condition failed and no verdict could be given."""

    exit_status = EXIT_CONDITION_FAILED
