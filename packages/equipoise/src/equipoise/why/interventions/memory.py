"""Interventions in memory: allocators, glibc's tunables, huge pages, memory given back."""

from __future__ import annotations

import os

from equipoise.design.libraries import KEEP_FREED_MEMORY, PRELOADS
from equipoise.measure.environment.hardware import HUGE_PAGES, transparent_huge_pages
from equipoise.measure.environment.system import Unknown
from equipoise.model.plan import Condition
from equipoise.model.study import Level
from equipoise.why.interventions.intervention import (
    PRELOAD,
    Case,
    Intervention,
    cannot_preload,
    preload,
    preloaded_libraries,
    tunables,
    with_preload,
    with_process,
    with_tunables,
)

_RETURNED = frozenset({"blocks_returned_at_free", "page_faults"})
_ALLOCATED = frozenset({"blocks_returned_at_free", "more_allocations", "page_faults"})
_SMALL_PAGES = frozenset({"huge_pages_off", "page_faults", "fork_of_large_process"})

_LIBRARIES = frozenset(library for allocator in PRELOADS for library in allocator.preload)
_FIRST_ALLOCATOR = "jemalloc"
"""Allocator that is tried first: one is enough to show whether the allocator is the cause."""

_LARGE_STEPS = {"glibc.malloc.top_pad": str(64 << 20)}
_HUGE_IN_MALLOC = {"glibc.malloc.hugetlb": "1"}


def memory_interventions(case: Case) -> tuple[Intervention, ...]:
    """Return the interventions in memory, with only one of the allocators."""
    no_huge_pages = _no_huge_pages_reason(case)
    return (
        tunables(
            case,
            "never_mmap",
            "keeping freed memory (mmap_max=0)",
            _RETURNED,
            KEEP_FREED_MEMORY,
        ),
        tunables(
            case,
            "large_heap_steps",
            "growing the heap by 64 MiB (top_pad)",
            frozenset({"more_allocations"}),
            _LARGE_STEPS,
            only_confirms=True,
        ),
        *(
            _allocator_intervention(allocator, case)
            for allocator in PRELOADS
            if allocator.name == _FIRST_ALLOCATOR
        ),
        # MADV_DONTNEED promises pages of zeros: writing zeros costs less than a new page.
        preload(
            case,
            "keep_pages",
            "keeping the pages that madvise gives back",
            frozenset({"memory_given_back"}),
        ),
        Intervention(
            name="huge_pages",
            summary="allowing huge pages",
            causes=_SMALL_PAGES,
            alter=_with_huge_pages,
            impossible_because=no_huge_pages,
            only_confirms=True,
        ),
        tunables(
            case,
            "malloc_huge_pages",
            "asking for huge pages in malloc (hugetlb=1)",
            _SMALL_PAGES,
            _HUGE_IN_MALLOC,
            further_change=_with_huge_pages,
            only_confirms=True,
            impossible_because=no_huge_pages,
        ),
        preload(
            case,
            "huge_mappings",
            "asking for huge pages for all large memory",
            _SMALL_PAGES,
            further_change=lambda condition: with_tunables(
                _with_huge_pages(condition), _HUGE_IN_MALLOC, case.site
            ),
            impossible_because=no_huge_pages,
        ),
        Intervention(
            name="no_huge_pages",
            summary="forbidding huge pages",
            causes=frozenset({"page_faults"}),
            alter=lambda condition: with_process(condition, huge_pages=False),
            impossible_because=no_huge_pages,
            only_confirms=True,
        ),
    )


def other_allocators(case: Case) -> tuple[Intervention, ...]:
    """Return the interventions of the other allocators, those with a Debian package first."""
    others = sorted(PRELOADS, key=lambda allocator: allocator.package is None)
    return tuple(
        _allocator_intervention(other, case) for other in others if other.name != _FIRST_ALLOCATOR
    )


def _allocator_intervention(allocator: Level, case: Case) -> Intervention:
    """Return the intervention that preloads an allocator in place of the condition's own."""
    (name,) = allocator.preload
    path = case.site.find_library(name)
    library = path or name

    def alter(condition: Condition) -> Condition:
        names = [os.path.basename(path) for path in preloaded_libraries(condition, case.site)]
        if name in names and len(_LIBRARIES.intersection(names)) == 1:
            return condition
        return with_preload(condition, library, case.site, instead_of=_LIBRARIES)

    return Intervention(
        name=allocator.name,
        summary=allocator.name,
        causes=_ALLOCATED,
        alter=alter,
        impossible_because=cannot_preload(
            path,
            allocator.package or name,
            f"apt install {allocator.package}" if allocator.package else "run `make build`",
        ),
        # Users should not depend on our own library.
        advice=f"{PRELOAD}={library} {{command}}" if allocator.package else None,
    )


def _with_huge_pages(condition: Condition) -> Condition:
    # A condition that does not forbid huge pages allows them.
    is_forbidden = condition.measured_process.process.huge_pages is False
    return with_process(condition, huge_pages=True) if is_forbidden else condition


def _no_huge_pages_reason(case: Case) -> str | None:
    """Return why no trial can have huge pages on this host; ``None`` if trials can."""
    try:
        setting = transparent_huge_pages(case.host)
    except Unknown as reason:
        return f"this kernel has no transparent huge pages ({reason}): run it on one that has"
    if setting == "never":
        return f"this host gives no process huge pages: echo madvise | sudo tee {HUGE_PAGES}"
    return None
