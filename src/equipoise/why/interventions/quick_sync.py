"""Data that are said to be on the disk and are not."""

from __future__ import annotations

from equipoise.why.interventions.case import Case
from equipoise.why.interventions.intervention import Intervention
from equipoise.why.interventions.preloads import (
    NOTHING,
    SEEN,
    told,
    why_not_own,
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
            impossible_because=why_not_own(case.site),
        ),
    )
