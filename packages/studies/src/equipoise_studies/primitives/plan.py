"""The plan of a campaign of operating system primitives, and its special rules."""

from __future__ import annotations

import os
from typing import Any, ClassVar

from equipoise.analysis.kind import AnalysisKind
from equipoise.design.limits import CampaignLimits
from equipoise.model.kinds import Terms
from equipoise.model.plan import Judgement, Measure, Plan, Stopping
from equipoise_studies.primitives import probes
from equipoise_studies.primitives.rows import (
    ALPHA,
    FULL,
    MIN_BLOCKS,
    MIN_EFFECT,
    OS_STUDY,
    PRIMITIVE_METRICS,
    QUICK,
    TIMEOUT_S,
)


def primitives_plan(names: tuple[str, ...], limits: CampaignLimits, *, quick: bool = False) -> Plan:
    """Return the plan that measures primitives of the operating system.

    ``names`` has names of rows, probes or tables; without names, all rows are measured. Raise
    `UnusableInput` if a name is unknown, the limits contradict each other, or the probes are
    missing.
    """
    program = probes.probe_program()
    rows = probes.chosen_rows(probes.probe_rows(program), names)
    effort = QUICK if quick else FULL
    blocks = limits.blocks or effort.blocks
    default_stopping = Stopping(
        blocks, min(MIN_BLOCKS, blocks), min_blocks_explicit=True, budget_s=effort.budget_s
    )
    return Plan(
        study=OS_STUDY,
        conditions=probes.conditions_of_rows(rows, program, effort),
        # If a row cannot be measured here, the report has the reason, and the campaign goes on.
        measure=limits.measure(Measure(os.getcwd(), timeout_s=TIMEOUT_S, ignore_failure=True)),
        stopping=limits.stopping(default_stopping),
        judgement=limits.judgement(default=Judgement(alpha=ALPHA, min_effect=MIN_EFFECT)),
        seed=limits.seed_or_random(),
        chosen_contrasts=(),
    )


class PrimitivesRules(Terms):
    """Rules for a campaign of primitives."""

    __slots__ = ()

    describes_single_condition: ClassVar[bool] = False
    rows_show_failures: ClassVar[bool] = True


class PrimitivesAnalysis(AnalysisKind):
    """Analysis of a campaign of primitives. Each row is compared by the metric of its probe."""

    keeps_rows_with_failures = True

    def row_metrics(self, document: Any) -> tuple[str, ...]:
        """Return the metrics of probes; each probe reports one metric."""
        return PRIMITIVE_METRICS
