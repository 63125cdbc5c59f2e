"""Interventions in memory: allocators, glibc's tunables, huge pages, memory given back."""

from __future__ import annotations

import os

from equipoise.design.libraries import KEEP_FREED_MEMORY, PRELOADS
from equipoise.measure.environment.hardware import HUGE_PAGES_FILE, transparent_huge_pages
from equipoise.measure.environment.system import Unknown
from equipoise.model.plan import Condition
from equipoise.model.study import Level
from equipoise.why.interventions.intervention import (
    PRELOAD_VARIABLE,
    Case,
    Intervention,
    preload_intervention,
    preload_obstacle,
    preloaded_libraries,
    tunables_intervention,
    with_preload,
    with_process,
    with_tunables,
)

_RETURNED_MEMORY_CAUSES = frozenset({"blocks_returned_at_free", "page_faults"})
_ALLOCATOR_CAUSES = frozenset({"blocks_returned_at_free", "more_allocations", "page_faults"})
_PAGE_CAUSES = frozenset({"huge_pages_off", "page_faults", "fork_of_large_process"})

_ALLOCATOR_LIBRARIES = frozenset(library for allocator in PRELOADS for library in allocator.preload)
_FIRST_ALLOCATOR = "jemalloc"
"""Allocator that is tried first: one allocator can show whether the allocator is the cause."""

_LARGE_STEP_TUNABLES = {"glibc.malloc.top_pad": str(64 << 20)}
_HUGE_PAGE_TUNABLES = {"glibc.malloc.hugetlb": "1"}


def memory_interventions(case: Case) -> tuple[Intervention, ...]:
    """Return the interventions in memory, with the first allocator only."""
    no_huge_pages_reason = _no_huge_pages_reason(case)
    return (
        tunables_intervention(
            case,
            "never_mmap",
            "keeping freed memory (mmap_max=0)",
            _RETURNED_MEMORY_CAUSES,
            KEEP_FREED_MEMORY,
        ),
        tunables_intervention(
            case,
            "large_heap_steps",
            "growing the heap by 64 MiB (top_pad)",
            frozenset({"more_allocations"}),
            _LARGE_STEP_TUNABLES,
            cannot_refute=True,
        ),
        *(
            _allocator_intervention(allocator, case)
            for allocator in PRELOADS
            if allocator.name == _FIRST_ALLOCATOR
        ),
        # MADV_DONTNEED promises zeros. The library writes them, which costs less than new pages.
        preload_intervention(
            case,
            "keep_pages",
            "keeping the pages that madvise gives back",
            frozenset({"memory_given_back"}),
        ),
        Intervention(
            name="huge_pages",
            summary="allowing huge pages",
            causes=_PAGE_CAUSES,
            alter=_with_huge_pages,
            impossible_because=no_huge_pages_reason,
            cannot_refute=True,
        ),
        tunables_intervention(
            case,
            "malloc_huge_pages",
            "asking for huge pages in malloc (hugetlb=1)",
            _PAGE_CAUSES,
            _HUGE_PAGE_TUNABLES,
            further_change=_with_huge_pages,
            cannot_refute=True,
            impossible_because=no_huge_pages_reason,
        ),
        preload_intervention(
            case,
            "huge_mappings",
            "asking for huge pages for all large memory",
            _PAGE_CAUSES,
            further_change=lambda condition: with_tunables(
                _with_huge_pages(condition), _HUGE_PAGE_TUNABLES, case.site
            ),
            impossible_because=no_huge_pages_reason,
        ),
        Intervention(
            name="no_huge_pages",
            summary="forbidding huge pages",
            causes=frozenset({"page_faults"}),
            alter=lambda condition: with_process(condition, huge_pages=False),
            impossible_because=no_huge_pages_reason,
            cannot_refute=True,
        ),
    )


def other_allocators(case: Case) -> tuple[Intervention, ...]:
    """Return the interventions of the other allocators, those with a Debian package first."""
    allocators = sorted(PRELOADS, key=lambda allocator: allocator.package is None)
    return tuple(
        _allocator_intervention(allocator, case)
        for allocator in allocators
        if allocator.name != _FIRST_ALLOCATOR
    )


def _allocator_intervention(allocator: Level, case: Case) -> Intervention:
    """Return the intervention that preloads an allocator instead of other preloaded allocators."""
    (file_name,) = allocator.preload
    path = case.site.find_library(file_name)
    library = path or file_name

    def alter(condition: Condition) -> Condition:
        preloads = [os.path.basename(file) for file in preloaded_libraries(condition, case.site)]
        if file_name in preloads and len(_ALLOCATOR_LIBRARIES.intersection(preloads)) == 1:
            return condition
        return with_preload(condition, library, case.site, instead_of=_ALLOCATOR_LIBRARIES)

    return Intervention(
        name=allocator.name,
        summary=allocator.name,
        causes=_ALLOCATOR_CAUSES,
        alter=alter,
        impossible_because=preload_obstacle(
            path,
            allocator.package or file_name,
            f"apt install {allocator.package}" if allocator.package else "run `make build`",
        ),
        # Users should not depend on Equipoise's own library.
        advice=f"{PRELOAD_VARIABLE}={library} {{command}}" if allocator.package else None,
    )


def _with_huge_pages(condition: Condition) -> Condition:
    # A condition that does not forbid huge pages allows them.
    is_forbidden = condition.measured_process.process.huge_pages is False
    return with_process(condition, huge_pages=True) if is_forbidden else condition


def _no_huge_pages_reason(case: Case) -> str | None:
    """Return the reason why trials on this host cannot have huge pages, or ``None``."""
    try:
        setting = transparent_huge_pages(case.host)
    except Unknown as reason:
        return f"this kernel has no transparent huge pages ({reason}): use a kernel that has them"
    if setting == "never":
        return f"this host gives no process huge pages: echo madvise | sudo tee {HUGE_PAGES_FILE}"
    return None
