"""The form of a source of covariates, and the open file that it reads again and again."""

from __future__ import annotations

import os
from typing import Protocol

from equipoise.measure.surroundings.host import Host, Unknown


class Source(Protocol):
    """One source of covariates.

    Its constructor raises ``Unknown`` where the host does not offer it. Reading raises
    ``Unknown`` or ``OSError`` where it no longer does.
    """

    @property
    def names(self) -> tuple[str, ...]:
        """The covariates that it gives."""

    def before(self) -> None:
        """Read what is needed before a trial."""

    def after(self, cpu: int | None) -> tuple[float, ...]:
        """The covariates of the trial, in the order of ``names``.

        ``cpu`` is the one on which the trial ran last, if that is known.
        """

    def close(self) -> None:
        """Close its files."""


class OpenFile:
    """A small file of /proc or /sys that is opened once and read anew each time.

    Raises
    ------
    Unknown
        It cannot be opened.
    """

    def __init__(self, host: Host, name: str) -> None:
        self._name = name
        try:
            self._descriptor = os.open(host.path(name), os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise Unknown(f"{name}: {error.strerror}") from None

    def read(self, at_most: int = 512) -> bytes:
        """What stands at its beginning now.

        Raises
        ------
        Unknown
            It can no longer be read.
        """
        try:
            return os.pread(self._descriptor, at_most, 0)
        except OSError as error:
            raise Unknown(f"{self._name}: {error.strerror}") from None

    def nonsense(self) -> Unknown:
        """What to raise if what stands there makes no sense."""
        return Unknown(f"{self._name} has another form than the kernel documents")

    def close(self) -> None:
        """Close it."""
        os.close(self._descriptor)
