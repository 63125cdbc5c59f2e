"""glibc's own allocator under other settings (ld.so(8), "Tunables"; reference: systems.md §3)."""

from __future__ import annotations

from equipoise.design.libraries import (
    NEVER_GIVEN_BACK,
    TUNABLES_VARIABLE,
    tunables_of,
    tunables_text,
)
from equipoise.model.plan import Condition
from equipoise.why.interventions.case import Case
from equipoise.why.interventions.intervention import Intervention
from equipoise.why.interventions.settings import variable, with_variables

RETURNED = frozenset({"blocks_returned_at_free", "page_faults"})
GROWN = frozenset({"more_allocations"})
SEEN = "glibc's loader must list the tunables as they were set"
LARGE_STEPS = {"glibc.malloc.top_pad": str(64 << 20)}


def offered(case: Case) -> tuple[Intervention, ...]:
    """Freed memory is kept, or the heap grows by large steps."""
    return (
        Intervention(
            name="never_mmap",
            words="keeping freed memory (mmap_max=0)",
            causes=RETURNED,
            alter=lambda condition: with_tunables(condition, NEVER_GIVEN_BACK, case),
            verified=SEEN,
            advice=advice_of(NEVER_GIVEN_BACK),
        ),
        Intervention(
            only_confirms=True,
            name="large_heap_steps",
            words="growing the heap by 64 MiB (top_pad)",
            causes=GROWN,
            alter=lambda condition: with_tunables(condition, LARGE_STEPS, case),
            verified=SEEN,
            advice=advice_of(LARGE_STEPS),
        ),
    )


def with_tunables(condition: Condition, tunables: dict[str, str], case: Case) -> Condition:
    """The condition with these tunables, beside others that it has."""
    known = tunables_of(variable(condition, TUNABLES_VARIABLE, case.site) or "")
    if tunables.items() <= known.items():
        return condition
    return with_variables(condition, {TUNABLES_VARIABLE: tunables_text({**known, **tunables})})


def advice_of(tunables: dict[str, str]) -> str:
    """The line that keeps them."""
    return f"{TUNABLES_VARIABLE}={tunables_text(tunables)} {{command}}"
