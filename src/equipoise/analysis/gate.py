"""Whether a gate lets the candidate through: a pure function of the plan and its blocks."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from equipoise.analysis.comparisons import Blocks, Pairing, pairings_of
from equipoise.campaign.blocks import block_seconds
from equipoise.design.command_line import joined_bisect_lines
from equipoise.model.gate import GateOutcome, GateResult, GateRow, GateShortage
from equipoise.model.plan import BENCHMARK, BENCHMARK_SUFFIX, GatePlan, Plan
from equipoise.model.quantities import counted
from equipoise.stats.gate_forecast import forecast_gate
from equipoise.stats.verdict import GateDecision, judge_gate


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
    by_metric = [pairings_of(plan, blocks, metric) for metric in gated.metrics]
    # Each benchmark with all of its metrics.
    pairings = list(itertools.chain.from_iterable(zip(*by_metric, strict=True)))
    effect, alpha = plan.judgement.min_effect, plan.judgement.alpha
    decisions = judge_gate([pairing.pairs for pairing in pairings], min_effect=effect, alpha=alpha)
    rows = tuple(_row(plan, *one) for one in zip(pairings, decisions, strict=True))
    outcomes = Counter(row.outcome for row in rows)
    return GateResult(
        baseline=gated.baseline,
        candidate=gated.candidate,
        min_effect=effect,
        passed=not (outcomes["slower"] or (gated.fails_undecided and outcomes["undecided"])),
        rows=rows,
        summary=_gate_sentence(gated, rows, outcomes, effect),
        again=gated.again,
        shortage=_shortage(plan, blocks, pairings, decisions),
        bisect=joined_bisect_lines(
            {
                row.benchmark: gated.bisect[row.benchmark]
                for row in rows
                if row.outcome == "slower" and row.benchmark in gated.bisect
            }
        ),
    )


def _shortage(
    plan: Plan, blocks: Blocks, pairings: Sequence[Pairing], decisions: Sequence[GateDecision]
) -> GateShortage | None:
    """Return what the undecided benchmarks would need; ``None`` if all are decided."""
    undecided = [one for one in decisions if one.outcome == "undecided"]
    if not undecided:
        return None
    forecasts = forecast_gate(
        [pairing.pairs for pairing in pairings],
        decisions,
        min_effect=plan.judgement.min_effect,
        alpha=plan.judgement.alpha,
        seed=plan.seed,
    )
    known = [one for one in forecasts if one is not None]
    return GateShortage(
        undecided=len(undecided),
        blocks=min(one.judged.blocks for one in undecided),
        block_s=sum(map(block_seconds, blocks.values())) / len(blocks),
        needed_blocks=(max(one.blocks for one in known) if len(known) == len(undecided) else None),
        is_lower_bound=any(one.is_lower_bound for one in known),
    )


def _row(plan: Plan, pairing: Pairing, decision: GateDecision) -> GateRow:
    judged = decision.judged
    row = GateRow(
        benchmark=benchmark_of(plan, pairing),
        metric=pairing.metric,
        baseline_median=_median(pairing.pairs.baseline),
        candidate_median=_median(pairing.pairs.candidate),
        ratio=judged.ratio,
        ratio_ci=judged.ratio_ci,
        equivalence_ci=judged.equivalence_ci,
        equivalence_level=judged.equivalence_level,
        level=judged.level,
        blocks=judged.blocks,
        outcome=decision.outcome,
        summary="",
    )
    return replace(row, summary=_row_sentence(row, plan.judgement.min_effect))


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


def _row_sentence(row: GateRow, min_effect: float) -> str:
    limit = f"slower by more than {min_effect:g} %"
    match row.outcome:
        case "slower":
            low = row.equivalence_ci[0]
            extent = "it ran out of time" if low is None else f"by at least {100 * (low - 1):.3g} %"
            return f"{row.benchmark} is {limit}, {extent}."
        case "passes":
            return f"{row.benchmark} is not {limit}."
        case "undecided":
            blocks = counted(row.blocks, "block")
            return f"whether {row.benchmark} is {limit} is not known after {blocks}."


def _gate_sentence(
    gated: GatePlan, rows: tuple[GateRow, ...], outcomes: Counter[GateOutcome], min_effect: float
) -> str:
    compared = f"{gated.candidate.label} against {gated.baseline.label}"
    if len(rows) == 1:
        return f"{compared}: {rows[0].summary}"
    limit = f"slower by more than {min_effect:g} %"
    if slower := outcomes["slower"]:
        counted = f"{slower} of {len(rows)} benchmarks {'is' if slower == 1 else 'are'} {limit}"
    else:
        counted = f"none of {len(rows)} benchmarks is known to be {limit}"
    undecided = f", {outcomes['undecided']} undecided" if outcomes["undecided"] else ""
    return f"{compared}: {counted}{undecided}."
