"""What only waits for time to pass waits no more."""

from __future__ import annotations

from equipoise.why.interventions.case import Case
from equipoise.why.interventions.intervention import Intervention
from equipoise.why.interventions.preloads import (
    NOTHING,
    SEEN,
    told,
    why_not_own,
)

CAUSES = frozenset({"sleeping"})


def offered(case: Case) -> tuple[Intervention, ...]:
    """A test only: a program that sleeps until something has happened asks in vain, and often."""
    return (
        Intervention(
            name="no_sleep",
            words="answering sleeps at once",
            causes=CAUSES,
            alter=told("no_sleep", case.site),
            sham=told(NOTHING, case.site),
            verified=SEEN,
            impossible_because=why_not_own(case.site),
        ),
    )
