"""Whether a gate lets the candidate through: a pure function of the plan and its blocks."""

from __future__ import annotations

from collections import Counter

import numpy as np
from numpy.typing import NDArray

from equipoise.analysis.comparisons import Blocks, Pairing, pairing_of
from equipoise.campaign.blocks import block_costs
from equipoise.model.interval import Interval
from equipoise.model.plan import BENCHMARK, BENCHMARK_SUFFIX, GatePlan, Plan
from equipoise.model.result import GateOutcome, GateResult, GateRow
from equipoise.stats.gate import GateDecision, judge_gate


def gate_result(plan: Plan, blocks: Blocks) -> GateResult | None:
    """Judge every benchmark together; ``None`` for what is no gate, or where no block ended.

    Raises
    ------
    UnusableInput
        A trial does not know one of the metrics.
    """
    gated = plan.gated
    if gated is None or not blocks:
        return None
    costs = {metric: block_costs(plan, blocks, metric) for metric in gated.metrics}
    pairings = [
        pairing_of(plan, metric, costs[metric], contrast)
        for contrast in plan.contrasts
        for metric in gated.metrics
    ]
    judgement = plan.judgement
    gauged = judge_gate(
        [one.pairs for one in pairings], min_effect=judgement.min_effect, alpha=judgement.alpha
    )
    rows = tuple(_row(plan, pairing, one) for pairing, one in zip(pairings, gauged, strict=True))
    outcomes = Counter(row.outcome for row in rows)
    return GateResult(
        baseline=gated.baseline,
        candidate=gated.candidate,
        min_effect=judgement.min_effect,
        passed=not (outcomes["slower"] or (gated.fails_undecided and outcomes["undecided"])),
        rows=rows,
        summary=_gate_sentence(gated, rows, outcomes, judgement.min_effect),
        again=gated.again,
    )


def _row(plan: Plan, pairing: Pairing, gauged: GateDecision) -> GateRow:
    judged = gauged.judged
    name = benchmark_of(plan, pairing)
    return GateRow(
        benchmark=name,
        metric=pairing.metric,
        baseline_median=_median(pairing.pairs.baseline),
        candidate_median=_median(pairing.pairs.candidate),
        ratio=judged.ratio,
        ratio_ci=judged.ratio_ci,
        equivalence_ci=judged.equivalence_ci,
        level=judged.level,
        blocks=judged.blocks,
        outcome=gauged.outcome,
        summary=_row_sentence(name, gauged.outcome, judged.equivalence_ci, judged.blocks, plan),
    )


def benchmark_of(plan: Plan, pairing: Pairing) -> str:
    """Return the name of what a pairing compares: a process's own metric, or the process."""
    condition = plan.conditions[pairing.contrast.candidate]
    if pairing.metric.endswith(BENCHMARK_SUFFIX):
        return pairing.metric.removesuffix(BENCHMARK_SUFFIX)
    name = condition.levels[BENCHMARK]
    assert plan.gated is not None
    return name if len(plan.gated.metrics) == 1 else f"{name}: {pairing.metric}"


def _median(costs: NDArray[np.float64]) -> float | None:
    middle = float(np.median(costs)) if len(costs) else np.inf
    return middle if np.isfinite(middle) else None


def _row_sentence(
    name: str, outcome: GateOutcome, interval: Interval, blocks: int, plan: Plan
) -> str:
    limit = f"{plan.judgement.min_effect:g} %"
    match outcome:
        case "slower":
            low = interval[0]
            least = "it ran out of time" if low is None else f"by at least {100 * (low - 1):.3g} %"
            return f"{name} is slower by more than {limit}, {least}."
        case "passes":
            return f"{name} is not slower by more than {limit}."
        case "undecided":
            counted = "block" if blocks == 1 else "blocks"
            return (
                f"whether {name} is slower by more than {limit} is not known after "
                f"{blocks} {counted}."
            )


def _gate_sentence(
    gated: GatePlan, rows: tuple[GateRow, ...], outcomes: Counter[GateOutcome], min_effect: float
) -> str:
    compared = f"{gated.candidate.label} against {gated.baseline.label}"
    if len(rows) == 1:
        return f"{compared}: {rows[0].summary}"
    limit = f"slower by more than {min_effect:g} %"
    if slower := outcomes["slower"]:
        found = f"{slower} of {len(rows)} benchmarks {'is' if slower == 1 else 'are'} {limit}"
    else:
        found = f"none of {len(rows)} benchmarks is known to be {limit}"
    undecided = f", {outcomes['undecided']} undecided" if outcomes["undecided"] else ""
    return f"{compared}: {found}{undecided}."
