"""Data that are said to be on the disk and are not."""

from __future__ import annotations

from equipoise.explain.interventions.case import Case
from equipoise.explain.interventions.intervention import Intervention
from equipoise.explain.interventions.preloads import (
    NOTHING,
    OWN_IS_MISSING,
    SEEN,
    own_library,
    told,
)

CAUSES = frozenset({"sync_per_record"})


def offered(case: Case) -> tuple[Intervention, ...]:
    """Nobody may keep it: what was written is lost when the power fails."""
    return (
        Intervention(
            name="quick_sync",
            words="answering fsync at once",
            causes=CAUSES,
            alter=told("quick_sync", case.site),
            sham=told(NOTHING, case.site),
            verified=SEEN,
            impossible_because=None if own_library(case.site) else OWN_IS_MISSING,
        ),
    )
