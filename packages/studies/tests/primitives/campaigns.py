"""Campaigns of probes that are never run, for several tests of ``equipoise os``."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from msgspec.structs import replace

from equipoise.design.coin import draw_block
from equipoise.measure.trials import TrialReport
from equipoise.model.plan import Judgement, Measure, Plan, Stopping
from equipoise.model.record import Better, Draw, RunRecord, Sample, Segment, Trial
from equipoise_studies.primitives.probes import conditions_of_rows
from equipoise_studies.primitives.rows import BANDWIDTH, LATENCY_METRIC, OS_STUDY, QUICK, ProbeRow
from packages.equipoise.tests.plans import trial_of
from packages.equipoise.tests.scripted import ScriptedClock

ROWS = (
    ProbeRow("null_call", "null_call", "system_calls", "getppid", LATENCY_METRIC),
    ProbeRow("fork", "fork", "process", "fork", LATENCY_METRIC),
    ProbeRow(
        "pipe_same_cpu",
        "pipe",
        "ipc",
        "a byte there and back",
        LATENCY_METRIC,
        ("--placement", "same_cpu"),
        "same_cpu",
    ),
    ProbeRow(
        "pipe_across_cpus",
        "pipe",
        "ipc",
        "a byte there and back",
        LATENCY_METRIC,
        ("--placement", "across_cpus"),
        "across_cpus",
    ),
    ProbeRow("memory_read", "memory_read", "memory", "bytes read", BANDWIDTH),
)
TYPICAL = {
    "null_call": 1.2e-7,
    "fork": 9e-5,
    "pipe_same_cpu": 4.5e-6,
    "pipe_across_cpus": 5e-5,
    "memory_read": 1.1e10,
}
BETWEEN = 0.01
"""How much the processes of a row differ, in log units."""

Value = Callable[[str, int, float], float]
"""Returns the value that a process reports, from its row, its block and its usual value."""


def plan_of_rows(*rows: ProbeRow, blocks: int = 7, seed: int = 3) -> Plan:
    """A plan of these rows; of all by default."""
    return Plan(
        study=OS_STUDY,
        conditions=conditions_of_rows(rows or ROWS, Path("/bin/equipoise-probe"), QUICK),
        measure=Measure(working_folder="/", ignore_failure=True, warmup=0),
        stopping=Stopping(blocks=blocks, min_blocks=1, min_blocks_explicit=True),
        judgement=Judgement(min_effect=5.0),
        seed=seed,
        chosen_contrasts=(),
        command_line=("equipoise", "os", "--quick", "--seed", str(seed)),
    )


@dataclass
class ProbeRunner:
    """Processes of probes that follow a script, for a plan."""

    plan: Plan
    clock: ScriptedClock = field(default_factory=ScriptedClock)
    value: Value = lambda name, block, usual: usual
    typical: Mapping[str, float] = field(default_factory=lambda: TYPICAL)
    """Usual value of each row, by its name."""
    failures: Mapping[str, str] = field(default_factory=dict)
    """Failures of processes by the name of the row."""
    generator: np.random.Generator = field(default_factory=lambda: np.random.default_rng(5))
    covariates: Callable[[int], dict[str, float | None]] = lambda block: {"load_1_minute": 0.1}
    before_trial: Callable[[Draw, int], None] = lambda draw, place: None

    def trials_at(self, draw: Draw, place: int) -> tuple[Callable[[], TrialReport], ...]:
        """One process at one place of a block."""
        return (lambda: TrialReport(self._run(draw, place), 0, None),)

    def _run(self, draw: Draw, place: int) -> Trial:
        self.before_trial(draw, place)
        condition = self.plan.conditions[draw.order[place]]
        self.clock.seconds += 0.05
        made = replace(trial_of(draw, place, 0.05), covariates=self.covariates(draw.block))
        if condition.name in self.failures:
            reason = self.failures[condition.name]
            return replace(made, exit=69, failure=reason, failure_kind="unavailable")
        metric = condition.reports[0]
        noise = math.exp(BETWEEN * self.generator.normal())
        median = self.value(condition.name, draw.block, self.typical[condition.name] * noise)
        better: Better = "higher" if metric == BANDWIDTH else "lower"
        batches = [median * factor for factor in (0.99, 1.0, 1.02)]
        return replace(
            made,
            samples=(
                Sample(metric, median, better=better),
                *(
                    Sample(metric, one, number, better=better)
                    for number, one in enumerate(batches, 1)
                ),
            ),
        )


def record_of(runner: ProbeRunner, environment: Mapping[str, object] | None = None) -> RunRecord:
    """A finished campaign of the runner's plan."""
    plan = runner.plan
    assert plan.stopping.blocks is not None
    blocks = range(1, plan.stopping.blocks + 1)
    draws = tuple(draw_block(plan, "measured", block) for block in blocks)
    trials = tuple(
        run().trial
        for draw in draws
        for place in range(len(draw.order))
        for run in runner.trials_at(draw, place)
    )
    surroundings = {"kernel": "6.1.0", "cpu_model": "Example CPU", **(environment or {})}
    segment = Segment(1.7e9, surroundings, 1.7e9 + 60.0, "block limit")
    return RunRecord(f"run-{plan.seed}", plan, 1.7e9, (segment,), draws, trials, ())
