"""The sources of evidence, by their names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol

from equipoise.model.errors import UnusableInput
from equipoise.why.evidence import (
    allocations,
    instructions,
    page_faults,
    profile,
    system_calls,
    waits,
)
from equipoise.why.evidence.observed import Process


class Source(Protocol):
    """What a file under ``explain/evidence/`` offers."""

    def wrap(self, process: Process, folder: Path) -> Process:
        """The process under the observer, which writes into the folder."""

    def read(self, folder: Path) -> Any:
        """What the observer wrote into the folder: a dataclass that JSON can hold."""


SOURCES: Mapping[str, Source] = MappingProxyType(
    {
        "system_calls": system_calls,
        "profile": profile,
        "page_faults": page_faults,
        "waits": waits,
        "allocations": allocations,
        "instructions": instructions,
    }
)
ON_REQUEST = "instructions"
"""It takes 20 to 100 times the run time."""
BY_DEFAULT = tuple(name for name in SOURCES if name != ON_REQUEST)


def known_sources(names: Sequence[str]) -> tuple[str, ...]:
    """The named sources, each once, in the order in which they were named.

    Raises
    ------
    UnusableInput
        There is no such source, or none was named.
    """
    unknown = [name for name in names if name not in SOURCES]
    if unknown or not names:
        raise UnusableInput(
            f"there is no source of evidence {unknown[0]!r}"
            if unknown
            else "no source of evidence is named",
            hint=f"name some of {', '.join(SOURCES)}",
        )
    return tuple(dict.fromkeys(names))
