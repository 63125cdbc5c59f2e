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
    """An error that the user can end, of this package or of one beside it.

    `equipoise_matching` has a class of its own with these fields: neither wheel needs the other.
    """

    what: str
    hint: str | None
    exit_status: int


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
