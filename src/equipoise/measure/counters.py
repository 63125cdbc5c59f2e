"""Counters that the launcher can read in a trial on request.

The launcher counts by ``perf_event_open`` (crates/launcher/src/counters.rs has the same names):
in the trial's process from its exec on and in all of its descendants, until its end was seen.
docs/doctor.md says what each counts, what is left out, and what counting costs.
"""

from __future__ import annotations

from collections.abc import Iterable

from equipoise.model.errors import UnusableInput

SOFTWARE_COUNTERS = ("task_clock", "page_faults", "context_switches", "cpu_migrations")
"""Counters of the kernel, which are there anywhere; ``task_clock`` is in seconds."""
HARDWARE_COUNTERS = (
    "cycles",
    "instructions",
    "cache_references",
    "cache_misses",
    "branches",
    "branch_misses",
)
"""Counters of the processor, where it has them."""
COUNTERS = (*SOFTWARE_COUNTERS, *HARDWARE_COUNTERS)


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
