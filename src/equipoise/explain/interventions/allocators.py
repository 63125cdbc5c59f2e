"""Another allocator in both conditions."""

from __future__ import annotations

import os

from equipoise.design.allocators import PRELOADED, Allocator
from equipoise.explain.interventions.case import Case
from equipoise.explain.interventions.intervention import Intervention
from equipoise.explain.interventions.preloads import SEEN, VARIABLE, preloaded, with_preload
from equipoise.model.plan import Condition

CAUSES = frozenset({"blocks_returned_at_free", "more_allocations", "page_faults"})
OTHERS = frozenset(allocator.library for allocator in PRELOADED)


def offered(case: Case) -> tuple[Intervention, ...]:
    """Each allocator that can be preloaded, in the place of one that is preloaded already."""
    return tuple(_swap(allocator, case) for allocator in PRELOADED)


def _swap(allocator: Allocator, case: Case) -> Intervention:
    found = case.site.find_library(allocator.library)
    library = found or allocator.library

    def alter(condition: Condition) -> Condition:
        already = [os.path.basename(one) for one in preloaded(condition, case.site)]
        if allocator.library in already and len(OTHERS.intersection(already)) == 1:
            return condition
        return with_preload(condition, library, case.site, instead_of=OTHERS)

    return Intervention(
        name=allocator.name,
        words=allocator.name,
        causes=CAUSES,
        alter=alter,
        verified=SEEN,
        impossible_because=None if found else _missing(allocator),
        # Nobody should depend on a library of ours.
        advice=f"{VARIABLE}={library} {{command}}" if allocator.package else None,
    )


def _missing(allocator: Allocator) -> str:
    if allocator.package is None:
        return f"{allocator.library} is missing: run `make build`, or install the package again"
    return f"{allocator.package} is not installed: apt install {allocator.package}"
