"""Transparent huge pages: allowed, forbidden by prctl(2), or asked for by malloc."""

from __future__ import annotations

from dataclasses import replace

from equipoise.measure.environment.hardware import HUGE_PAGES, transparent_huge_pages
from equipoise.measure.environment.host import Unknown
from equipoise.model.plan import Condition
from equipoise.why.interventions.case import Case
from equipoise.why.interventions.glibc_policies import SEEN, advice_of, with_tunables
from equipoise.why.interventions.intervention import Alter, Intervention
from equipoise.why.interventions.preloads import NOTHING, told, why_not_own
from equipoise.why.interventions.preloads import SEEN as PRELOADED
from equipoise.why.interventions.settings import process_of, with_process

OFF = frozenset({"huge_pages_off", "page_faults", "fork_of_large_process"})
FAULTS = frozenset({"page_faults"})
ASKED_FOR = {"glibc.malloc.hugetlb": "1"}
SET = "the launcher starts no trial for which the kernel refuses the setting (PR_SET_THP_DISABLE)"


def offered(case: Case) -> tuple[Intervention, ...]:
    """Both ways, as a gap may come from either."""
    reason = _impossible(case)
    mapped = told("huge_mappings", case.site)
    return (
        Intervention(
            only_confirms=True,
            name="huge_pages",
            words="allowing huge pages",
            causes=OFF,
            alter=_allowed,
            verified=SET,
            impossible_because=reason,
        ),
        Intervention(
            only_confirms=True,
            name="malloc_huge_pages",
            words="asking for huge pages in malloc (hugetlb=1)",
            causes=OFF,
            alter=lambda condition: with_tunables(_allowed(condition), ASKED_FOR, case),
            verified=SEEN,
            impossible_because=reason,
            advice=advice_of(ASKED_FOR),
        ),
        Intervention(
            name="huge_mappings",
            words="asking for huge pages for all large memory",
            causes=OFF,
            alter=lambda one: with_tunables(mapped(_allowed(one)), ASKED_FOR, case),
            sham=told(NOTHING, case.site),
            verified=f"{PRELOADED}; {SEEN}",
            impossible_because=reason or why_not_own(case.site),
        ),
        Intervention(
            only_confirms=True,
            name="no_huge_pages",
            words="forbidding huge pages",
            causes=FAULTS,
            alter=_set(allowed=False),
            verified=SET,
            impossible_because=reason,
        ),
    )


def _allowed(condition: Condition) -> Condition:
    # They are allowed where nobody forbids them.
    return _set(allowed=True)(condition) if process_of(condition).huge_pages is False else condition


def _set(*, allowed: bool) -> Alter:
    def alter(condition: Condition) -> Condition:
        return with_process(condition, replace(process_of(condition), huge_pages=allowed))

    return alter


def _impossible(case: Case) -> str | None:
    try:
        chosen = transparent_huge_pages(case.host)
    except Unknown as reason:
        return f"this kernel has no transparent huge pages ({reason}): run it on one that has"
    if chosen == "never":
        return f"this host gives nobody huge pages: echo madvise | sudo tee {HUGE_PAGES}"
    return None
