"""Pages that a program gives back with madvise are zeroed and kept."""

from __future__ import annotations

from equipoise.why.interventions.case import Case
from equipoise.why.interventions.intervention import Intervention
from equipoise.why.interventions.preloads import (
    NOTHING,
    SEEN,
    told,
    why_not_own,
)

CAUSES = frozenset({"memory_given_back"})


def offered(case: Case) -> tuple[Intervention, ...]:
    """MADV_DONTNEED promises zeroes: they are written, which costs less than a new page."""
    return (
        Intervention(
            name="keep_pages",
            words="keeping the pages that madvise gives back",
            causes=CAUSES,
            alter=told("keep_pages", case.site),
            sham=told(NOTHING, case.site),
            verified=SEEN,
            impossible_because=why_not_own(case.site),
        ),
    )
