"""Counters that the launcher can read in a trial on request.

The launcher counts by ``perf_event_open`` (crates/launcher/src/counters.rs has the same names):
in the trial's process from its exec on and in all of its descendants, until its end was seen.
docs/doctor.md says what is left out, and what counting costs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Literal

from msgspec import Struct

from equipoise.model.errors import UnusableInput


class Counter(Struct, frozen=True):
    """A counter and its unit."""

    unit: str | None
    """``s``, or ``None`` for a plain number."""
    source: Literal["software", "hardware"]
    """The kernel counts it anywhere; or the processor, where its counters are there."""
    what: str


COUNTERS: Mapping[str, Counter] = MappingProxyType(
    {
        "task_clock": Counter("s", "software", "time on a processor"),
        "page_faults": Counter(None, "software", "page faults, minor and major"),
        "context_switches": Counter(None, "software", "times that a thread gave up its processor"),
        "cpu_migrations": Counter(None, "software", "times that a thread moved to another one"),
        "cycles": Counter(None, "hardware", "cycles of the processor, as it was clocked"),
        "instructions": Counter(None, "hardware", "instructions that were carried out"),
        "cache_references": Counter(None, "hardware", "accesses to the last level of cache"),
        "cache_misses": Counter(None, "hardware", "accesses that it could not serve"),
        "branches": Counter(None, "hardware", "branches that were carried out"),
        "branch_misses": Counter(None, "hardware", "branches that were predicted wrongly"),
    }
)


def counters_among(metrics: Iterable[str]) -> tuple[str, ...]:
    """Return the metrics that the launcher has to count."""
    return tuple(name for name in metrics if name in COUNTERS)


def check_names(names: Iterable[str]) -> None:
    """Raise `UnusableInput`, which names all counters, for a name that is none."""
    for name in names:
        if name not in COUNTERS:
            raise UnusableInput(
                f"no counter is called {name!r}", hint=f"there are {', '.join(COUNTERS)}"
            )
