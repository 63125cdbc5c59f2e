"""Another allocator in both conditions."""

from __future__ import annotations

import os

from equipoise.design.libraries import PRELOADED, Allocator
from equipoise.model.plan import Condition
from equipoise.why.interventions.case import Case
from equipoise.why.interventions.intervention import Intervention
from equipoise.why.interventions.preloads import (
    SEEN,
    VARIABLE,
    preloaded,
    why_not,
    with_preload,
)

CAUSES = frozenset({"blocks_returned_at_free", "more_allocations", "page_faults"})
LIBRARIES = frozenset(allocator.library for allocator in PRELOADED)
FIRST = "jemalloc"
"""One swap tells whether it is the allocator; which one is best is another question."""


def offered(case: Case) -> tuple[Intervention, ...]:
    """One allocator, in the place of one that is preloaded already."""
    return tuple(_swap(one, case) for one in PRELOADED if one.name == FIRST)


def others_offered(case: Case) -> tuple[Intervention, ...]:
    """The others, those that a user can keep first."""
    others = sorted(PRELOADED, key=lambda one: one.package is None)
    return tuple(_swap(one, case) for one in others if one.name != FIRST)


def _swap(allocator: Allocator, case: Case) -> Intervention:
    found = case.site.find_library(allocator.library)
    library = found or allocator.library

    def alter(condition: Condition) -> Condition:
        already = [os.path.basename(one) for one in preloaded(condition, case.site)]
        if allocator.library in already and len(LIBRARIES.intersection(already)) == 1:
            return condition
        return with_preload(condition, library, case.site, instead_of=LIBRARIES)

    return Intervention(
        name=allocator.name,
        words=allocator.name,
        causes=CAUSES,
        alter=alter,
        verified=SEEN,
        impossible_because=why_not(
            found,
            allocator.package or allocator.library,
            f"apt install {allocator.package}" if allocator.package else "run `make build`",
        ),
        # Nobody should depend on a library of ours.
        advice=f"{VARIABLE}={library} {{command}}" if allocator.package else None,
    )
