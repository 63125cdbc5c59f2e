"""Read earlier gates in the ledger, and the noise of their benchmarks.

The noise only decides which benchmarks run first, and what the gate says about the time that they
need. No verdict depends on it (docs/methods/gate.md).
"""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Iterator

from msgspec.structs import replace

from equipoise.analysis.comparisons import costs_of_contrasts
from equipoise.campaign.blocks import complete_blocks
from equipoise.kinds.gate.schedule import MIN_BLOCKS_OF_FORECAST
from equipoise.kinds.gate.terms import STUDY, GatePlan, KnownNoise
from equipoise.kinds.gate.verdict import MeanSeconds
from equipoise.ledger import Ledger
from equipoise.model.errors import UnusableInput
from equipoise.model.plan import Condition, Contrast, Plan
from equipoise.model.record import RunRecord
from equipoise.model.revisions import BENCHMARK

MAX_EARLIER_GATES = 5
"""Maximum number of earlier gates that are read, the latest first."""

Benchmark = tuple[str, str, tuple[str, ...]]
"""Name of a benchmark, a metric, and the command without the folder of a checkout."""


def with_known_noises(plan: Plan, ledger: Ledger, cpu_model: str | None) -> Plan:
    """Return the plan of a gate with the noise of each comparison in earlier gates.

    An earlier gate counts if its host had the same CPU model, and ran the same benchmark in the
    same way: at once, or in turns. A plan with a single benchmark stays as it is, because there is
    nothing to schedule.
    """
    terms = plan.terms
    assert isinstance(terms, GatePlan)
    if len(plan.contrasts) == 1 or cpu_model is None:
        return plan
    benchmarks = [
        _identity(plan, contrast, metric)
        for contrast, metric in itertools.product(plan.contrasts, terms.metrics)
    ]
    known: dict[Benchmark, KnownNoise] = {}
    for record in earlier_gates(ledger):
        if known.keys() >= set(benchmarks):
            break
        is_alike = bool(record.plan.measure.cpu_sets) == bool(plan.measure.cpu_sets)
        if is_alike and record.environment.get("cpu_model") == cpu_model:
            known = noises_of(record) | known
    noises = tuple(known.get(benchmark) for benchmark in benchmarks)
    return replace(plan, terms=replace(terms, known_noises=noises)) if any(noises) else plan


def earlier_gates(ledger: Ledger) -> Iterator[RunRecord]:
    """Yield the latest gates of the ledger, the latest first; at most `MAX_EARLIER_GATES`."""
    run_ids = (run.id for run in reversed(ledger.runs()) if run.study == STUDY)
    for run_id in itertools.islice(run_ids, MAX_EARLIER_GATES):
        yield ledger.read_run(run_id)


def noises_of(record: RunRecord) -> dict[Benchmark, KnownNoise]:
    """Return the noise of each comparison of a gate; without those that have too few blocks."""
    plan, blocks = record.plan, complete_blocks(record.draws, record.trials)
    if not isinstance(plan.terms, GatePlan) or not blocks:
        return {}
    seconds = MeanSeconds(plan.contrasts, ())
    for block in blocks.values():
        seconds.add(block)
    noises: dict[Benchmark, KnownNoise] = {}
    for metric in plan.terms.metrics:
        try:
            all_costs = costs_of_contrasts(plan, blocks, metric)
        except UnusableInput:
            # A trial has no value: the earlier gate had no result for the metric.
            continue
        for index, costs in enumerate(all_costs):
            centre = costs.paired_blocks.engine.centre()
            count = len(costs.paired_blocks)
            if centre is None or count < MIN_BLOCKS_OF_FORECAST or not math.isfinite(centre[2]):
                continue
            noises[_identity(plan, costs.contrast, metric)] = KnownNoise(
                record.id, centre[2], seconds.of(index), count
            )
    return noises


def _identity(plan: Plan, contrast: Contrast, metric: str) -> Benchmark:
    condition = plan.conditions[contrast.candidate]
    return (
        condition.levels.get(BENCHMARK, condition.name),
        metric,
        command_outside_checkout(condition),
    )


def command_outside_checkout(condition: Condition) -> tuple[str, ...]:
    """Return the command of a benchmark; a path below the checkout is relative."""
    folder = condition.process.working_folder
    if folder is None:
        return condition.command
    return tuple(word.removeprefix(folder + os.sep) for word in condition.command)
