"""The table of sources: what can observe a run, and how each is started and read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

from msgspec import Struct

from equipoise.model.errors import UnusableInput
from equipoise.why.evidence import allocations, instructions, system_calls
from equipoise.why.evidence.allocations import Allocations
from equipoise.why.evidence.instructions import Instructions
from equipoise.why.evidence.process import Process
from equipoise.why.evidence.stacks import Sampled, SampledSource, read_sampled, wrap_sampled
from equipoise.why.evidence.system_calls import SystemCalls


class Source(Struct, frozen=True):
    """One way to observe a run."""

    wrap: Callable[[Process, Path], Process]
    """Returns the process under the observer, which writes into the folder."""
    read: Callable[[Path], Any]
    """Returns what the observer wrote into the folder, a value of type ``document``."""
    document: type
    """A struct that JSON can hold."""


def _sampled(name: SampledSource) -> Source:
    return Source(partial(wrap_sampled, name), partial(read_sampled, name), Sampled)


SOURCES: Mapping[str, Source] = MappingProxyType(
    {
        "system_calls": Source(system_calls.wrap, system_calls.read, SystemCalls),
        "profile": _sampled("profile"),
        "page_faults": _sampled("page_faults"),
        "waits": _sampled("waits"),
        "allocations": Source(allocations.wrap, allocations.read, Allocations),
        "instructions": Source(instructions.wrap, instructions.read, Instructions),
    }
)
"""All sources by name. Each name is a field of `EvidenceSet`."""
ON_REQUEST = "instructions"
"""The source that takes 20 to 100 times the run time."""
BY_DEFAULT = tuple(name for name in SOURCES if name != ON_REQUEST)


def known_sources(names: Sequence[str]) -> tuple[str, ...]:
    """Return the named sources, each once, in the order in which they were named.

    Raises
    ------
    UnusableInput
        A name is of no source, or none was named.
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
