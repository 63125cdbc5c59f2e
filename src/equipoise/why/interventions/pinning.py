"""One CPU, or all of them."""

from __future__ import annotations

from dataclasses import replace

from equipoise.model.plan import Condition
from equipoise.why.interventions.case import Case
from equipoise.why.interventions.intervention import Intervention
from equipoise.why.interventions.settings import process_of, with_process

PINNED = frozenset({"lock_waits", "memory_contention", "messages"})
FREED = frozenset({"one_thread"})
SEEN = (
    "the launcher starts no trial on other CPUs, and a server that is ready is looked at; a "
    "program that chooses its CPUs itself goes its own way"
)


def offered(case: Case) -> tuple[Intervention, ...]:
    """The last CPU, as the first often serves the interrupts; and every CPU that is ours."""
    ours = case.site.cpus
    few = None if len(ours) > 1 else "we may use one CPU only: allow more with taskset"
    last = ours[-1:]
    return (
        Intervention(
            only_confirms=True,
            name="pinning",
            words="pinning to one CPU",
            causes=PINNED,
            alter=lambda condition: _on(condition, last),
            verified=SEEN,
            impossible_because=few,
            advice=f"taskset -c {','.join(map(str, last))} {{command}}",
        ),
        Intervention(
            only_confirms=True,
            name="every_cpu",
            words="letting it use every CPU",
            causes=FREED,
            # Without a setting it may use them all.
            alter=lambda one: _on(one, ours) if process_of(one).cpus is not None else one,
            verified=SEEN,
            impossible_because=few,
        ),
    )


def _on(condition: Condition, cpus: tuple[int, ...]) -> Condition:
    return with_process(condition, replace(process_of(condition), cpus=cpus))
