"""Addresses that the kernel does not draw at random (ASLR off)."""

from __future__ import annotations

from dataclasses import replace

from equipoise.model.plan import Condition
from equipoise.why.interventions.case import Case
from equipoise.why.interventions.intervention import Intervention
from equipoise.why.interventions.settings import process_of, with_process

CAUSES = frozenset({"more_time_in_function"})


def offered(_: Case) -> tuple[Intervention, ...]:
    """The same addresses in each trial; nobody should keep that, as it makes attacks easier."""
    return (
        Intervention(
            only_confirms=True,
            name="fixed_addresses",
            words="fixing the addresses (ASLR off)",
            causes=CAUSES,
            alter=_fixed,
            verified="the launcher starts no trial for which the kernel refuses it (personality)",
        ),
    )


def _fixed(condition: Condition) -> Condition:
    return with_process(condition, replace(process_of(condition), random_addresses=False))
