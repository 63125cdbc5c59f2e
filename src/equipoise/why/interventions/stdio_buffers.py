"""Large buffers for what a program writes through the C library's streams."""

from __future__ import annotations

from equipoise.model.plan import Condition
from equipoise.why.interventions.case import Case
from equipoise.why.interventions.intervention import Alter, Intervention
from equipoise.why.interventions.preloads import (
    NOTHING,
    SEEN,
    told,
    why_not_own,
)
from equipoise.why.interventions.settings import variable, with_variables

WRITES = frozenset({"tiny_writes"})
BOTH = WRITES | {"tiny_reads"}
PYTHON = "PYTHONUNBUFFERED"


def offered(case: Case) -> tuple[Intervention, ...]:
    """A test only: the hint is in the program, which asked for no buffer or flushes each line."""
    missing = why_not_own(case.site)
    return (
        Intervention(
            name="large_buffers",
            words="giving stdio buffers of 256 KiB",
            causes=BOTH,
            alter=_buffered("large_buffers", case),
            sham=told(NOTHING, case.site),
            verified=SEEN,
            impossible_because=missing,
        ),
        Intervention(
            name="late_flush",
            words="giving stdio buffers of 256 KiB that fflush leaves alone",
            causes=WRITES,
            alter=_buffered("late_flush", case),
            sham=told(NOTHING, case.site),
            verified=SEEN,
            impossible_because=missing,
        ),
    )


def _buffered(word: str, case: Case) -> Alter:
    preload = told(word, case.site)

    def alter(condition: Condition) -> Condition:
        # Python has buffers of its own; empty is as if it were not set.
        own = {PYTHON: ""} if variable(condition, PYTHON, case.site) else {}
        return with_variables(preload(condition), own)

    return alter
