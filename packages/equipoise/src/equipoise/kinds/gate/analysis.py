"""Compute the result of a gate from its plan and its recorded blocks."""

from __future__ import annotations

import itertools
import shlex
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from equipoise.analysis.assignments import Replacer, replace_command_line_values
from equipoise.analysis.comparisons import Blocks, ContrastCosts, costs_of_contrasts
from equipoise.analysis.kind import AnalysisKind, KindResult
from equipoise.analysis.redaction import TextReplacements
from equipoise.campaign.blocks import block_seconds
from equipoise.design.command_line import shell_line, shell_line_with_placeholders
from equipoise.kinds.gate.counts import counts_clause, counts_sentence
from equipoise.kinds.gate.schedule import forecast_blocks, needed_time_clause, row_forecast
from equipoise.kinds.gate.terms import (
    GateOutcome,
    GatePlan,
    GateResult,
    GateRow,
    GateRowForecast,
    GateShortage,
    TouchedOrder,
)
from equipoise.kinds.gate.verdict import (
    GateDecision,
    MeanSeconds,
    comparison_state,
    forecast_gate,
    judge_of,
    min_blocks_of,
)
from equipoise.model.plan import Plan
from equipoise.model.quantities import counted
from equipoise.model.record import RunRecord
from equipoise.model.revisions import BENCHMARK, BENCHMARK_SUFFIX
from equipoise.stats.exact_counts import repeats_exactly
from equipoise.stats.verdict import margin_of


class GateAnalysis(AnalysisKind):
    """Analysis of a gate: additions to the result of the comparisons."""

    def result(self, record: RunRecord, blocks: Blocks) -> KindResult:
        """Return the decision of the gate, and the outcomes that replace the verdicts."""
        gate = gate_result(record.plan, blocks)
        outcomes = None if gate is None else tuple(row.outcome for row in gate.rows)
        return KindResult({"gate": gate}, outcomes=outcomes)

    def replace_in_terms(self, terms: GatePlan, replacement: Replacer) -> GatePlan:
        """Return the terms after replacing values of variables in the bisect lines."""
        return replace(
            terms,
            bisect_argvs={
                name: replace_command_line_values(argv, replacement)
                for name, argv in terms.bisect_argvs.items()
            },
        )

    def hide_in_terms(self, terms: GatePlan, hidden: TextReplacements) -> GatePlan:
        """Return the terms without hidden values in the names of benchmarks."""
        return replace(
            terms,
            bisect_argvs={
                hidden.replace_in_text(name): argv for name, argv in terms.bisect_argvs.items()
            },
            places={
                hidden.replace_in_text(name): replace(
                    place, path=hidden.replace_in_text(place.path)
                )
                for name, place in terms.places.items()
            },
            touched=None if terms.touched is None else _hide_in_files(terms.touched, hidden),
            failures={
                hidden.replace_in_text(name): hidden.replace_in_text(reason)
                for name, reason in terms.failures.items()
            },
        )


def _hide_in_files(touched: TouchedOrder, hidden: TextReplacements) -> TouchedOrder:
    return replace(
        touched,
        files=tuple((hidden.replace_in_text(path), blob) for path, blob in touched.files),
        benchmarks=tuple(
            known
            if known.unknown_because is None
            else replace(known, unknown_because=hidden.replace_in_text(known.unknown_because))
            for known in touched.benchmarks
        ),
    )


def gate_result(plan: Plan, blocks: Blocks) -> GateResult | None:
    """Judge all benchmarks together; return ``None`` if no block is complete.

    Raise `UnusableInput` if a trial has no value for one of the metrics.
    """
    terms = plan.terms
    assert isinstance(terms, GatePlan)
    if not blocks:
        return None
    costs_of_metrics = [costs_of_contrasts(plan, blocks, metric) for metric in terms.metrics]
    # Costs in the order of the benchmarks: all metrics of one benchmark are next to each other.
    contrast_costs = list(itertools.chain.from_iterable(zip(*costs_of_metrics, strict=True)))
    min_effect = plan.judgement.min_effect
    paired_blocks = [costs.paired_blocks for costs in contrast_costs]
    judge_all = judge_of(terms)
    decisions = judge_all(paired_blocks, min_effect=min_effect, alpha=plan.judgement.alpha)
    times = _benchmark_times(plan, blocks)
    forecasts = _row_forecasts(plan, contrast_costs, decisions, times)
    rows = tuple(
        _gate_row(plan, costs, decision, forecast)
        for costs, decision, forecast in zip(contrast_costs, decisions, forecasts, strict=True)
    )
    outcomes = Counter(row.outcome for row in rows)
    return GateResult(
        baseline=terms.baseline,
        candidate=terms.candidate,
        min_effect=min_effect,
        passed=not (outcomes["slower"] or (terms.fails_undecided and outcomes["undecided"])),
        rows=rows,
        summary=_gate_sentence(terms, rows, outcomes, min_effect),
        shortage=_shortage(plan, blocks, contrast_costs, decisions)
        if len(plan.contrasts) == 1 or terms.counted_by
        else _shared_shortage(plan, rows, times),
        counted_by=terms.counted_by,
        relinking=terms.relinking,
        functions=terms.functions,
        failures=terms.failures,
        bisect_lines=joined_bisect_lines(
            {
                row.benchmark: terms.bisect_argvs[row.benchmark]
                for row in rows
                if row.outcome == "slower" and row.benchmark in terms.bisect_argvs
            }
        ),
    )


def _shortage(
    plan: Plan,
    blocks: Blocks,
    contrast_costs: Sequence[ContrastCosts],
    decisions: Sequence[GateDecision],
) -> GateShortage | None:
    """Return the shortage of a gate with one benchmark, or with counts; ``None`` if decided."""
    terms = plan.terms
    assert isinstance(terms, GatePlan)
    undecided = [decision for decision in decisions if decision.outcome == "undecided"]
    if not undecided:
        return None
    forecasts = forecast_gate(
        [costs.paired_blocks for costs in contrast_costs],
        decisions,
        min_effect=plan.judgement.min_effect,
        alpha=plan.judgement.alpha,
        min_blocks=min_blocks_of(terms, plan.judgement.alpha),
        seed=plan.seed,
    )
    known_forecasts = [forecast for forecast in forecasts if forecast is not None]
    block_s = _mean_block_seconds(terms, blocks)
    needed_blocks = (
        max(forecast.blocks for forecast in known_forecasts)
        if len(known_forecasts) == len(undecided)
        else None
    )
    return GateShortage(
        undecided=len(undecided),
        blocks=min(decision.verdict.blocks for decision in undecided),
        block_s=block_s,
        needed_blocks=needed_blocks,
        needed_s=None if needed_blocks is None else needed_blocks * block_s,
        is_lower_bound=any(forecast.is_lower_bound for forecast in known_forecasts),
    )


def _mean_block_seconds(terms: GatePlan, blocks: Blocks) -> float:
    """Return the mean seconds of a block; if its programs are linked again, with the links."""
    starts_s = sorted(min(trial.started_at for trial in block) for block in blocks.values())
    if terms.relinking is None or len(starts_s) < 2:
        return sum(map(block_seconds, blocks.values())) / len(blocks)
    return (starts_s[-1] - starts_s[0]) / (len(starts_s) - 1)


def _shared_shortage(
    plan: Plan, rows: Sequence[GateRow], times: MeanSeconds
) -> GateShortage | None:
    """Return the shortage of a suite; ``None`` if all benchmarks are decided."""
    metric_count = len(rows) // len(plan.contrasts)
    undecided: dict[int, list[GateRow]] = defaultdict(list)
    for index, row in enumerate(rows):
        if row.outcome == "undecided":
            undecided[index // metric_count].append(row)
    if not undecided:
        return None
    spent_s = sum(map(times.spent, range(len(plan.contrasts))))
    needed_s: float | None = spent_s
    needed_blocks: int | None = 0
    for benchmark, open_rows in undecided.items():
        forecasts = [row.forecast for row in open_rows if row.forecast is not None]
        if len(forecasts) < len(open_rows) or needed_s is None or needed_blocks is None:
            needed_s = needed_blocks = None
            continue
        needed_s += max(forecast.seconds for forecast in forecasts) - times.spent(benchmark)
        needed_blocks = max(needed_blocks, *(forecast.blocks for forecast in forecasts))
    return GateShortage(
        undecided=sum(map(len, undecided.values())),
        blocks=min(row.blocks for rows in undecided.values() for row in rows),
        block_s=sum(map(times.of, undecided)),
        needed_blocks=needed_blocks,
        needed_s=needed_s,
    )


def _benchmark_times(plan: Plan, blocks: Blocks) -> MeanSeconds:
    times = MeanSeconds(plan.contrasts, ())
    for block in blocks.values():
        times.add(block)
    return times


def _row_forecasts(
    plan: Plan,
    contrast_costs: Sequence[ContrastCosts],
    decisions: Sequence[GateDecision],
    times: MeanSeconds,
) -> tuple[GateRowForecast | None, ...]:
    """Return the forecast of each undecided comparison of a suite; ``None`` for the others."""
    terms, judgement = plan.terms, plan.judgement
    assert isinstance(terms, GatePlan)
    count, undecided_count = (
        len(decisions),
        sum(decision.outcome == "undecided" for decision in decisions),
    )
    if len(plan.contrasts) == 1 or not undecided_count or terms.counted_by:
        return (None,) * count
    margin = margin_of(judgement.min_effect)
    states = [
        comparison_state(costs.paired_blocks, known, margin, decision.outcome)
        for costs, decision, known in zip(
            contrast_costs, decisions, terms.known_noises or (None,) * count, strict=True
        )
    ]
    needed = forecast_blocks(states, min_effect=judgement.min_effect, alpha=judgement.alpha)
    return tuple(
        row_forecast(
            state,
            needed[index],
            times.of(index // len(terms.metrics)),
            plan.stopping.budget_s / undecided_count,
            min_effect=judgement.min_effect,
            alpha=judgement.alpha,
        )
        if not state.is_decided
        else None
        for index, state in enumerate(states)
    )


def _gate_row(
    plan: Plan, costs: ContrastCosts, decision: GateDecision, forecast: GateRowForecast | None
) -> GateRow:
    verdict, terms = decision.verdict, plan.terms
    assert isinstance(terms, GatePlan)
    benchmark = benchmark_of(plan, costs)
    has_exact_interval = verdict.equivalence_low == verdict.equivalence_high
    row = GateRow(
        benchmark=benchmark,
        metric=costs.metric,
        baseline_median=finite_median(costs.paired_blocks.baseline),
        candidate_median=finite_median(costs.paired_blocks.candidate),
        ratio=verdict.ratio,
        ratio_ci=verdict.ratio_ci,
        equivalence_ci=verdict.equivalence_ci,
        equivalence_level=verdict.equivalence_level,
        significance_level=verdict.level,
        blocks=verdict.blocks,
        outcome=decision.outcome,
        summary="",
        place=terms.places.get(benchmark),
        exact=has_exact_interval
        and bool(terms.counted_by)
        and repeats_exactly(costs.paired_blocks),
        forecast=forecast,
    )
    sentence = counts_sentence if terms.counted_by else _row_sentence
    return replace(row, summary=sentence(row, plan.judgement.min_effect))


def benchmark_of(plan: Plan, costs: ContrastCosts) -> str:
    """Return the benchmark's name: a metric that a tool reports, or a level of a factor."""
    condition = plan.conditions[costs.contrast.candidate]
    assert isinstance(plan.terms, GatePlan)
    if plan.terms.counted_by:
        name, _, metric = costs.metric.rpartition(" ")
        return f"{name or condition.levels[BENCHMARK]}: {metric}"
    if costs.metric.endswith(BENCHMARK_SUFFIX):
        return costs.metric.removesuffix(BENCHMARK_SUFFIX)
    name = condition.levels[BENCHMARK]
    return name if len(plan.terms.metrics) == 1 else f"{name}: {costs.metric}"


def finite_median(costs: NDArray[np.float64]) -> float | None:
    """Return the median of costs; ``None`` if it timed out, or without a cost."""
    median = float(np.median(costs)) if len(costs) else np.inf
    return median if np.isfinite(median) else None


def _row_sentence(row: GateRow, min_effect: float) -> str:
    claim = f"slower by more than {min_effect:g} %"
    match row.outcome:
        case "slower":
            low = row.equivalence_ci[0]
            extent = "it ran out of time" if low is None else f"by at least {100 * (low - 1):.3g} %"
            return f"{row.benchmark} is {claim}, {extent}."
        case "passes":
            return f"{row.benchmark} is not {claim}."
        case "undecided" if not row.blocks:
            return f"{row.benchmark} was not measured: the budget ended before its first block."
        case "undecided":
            blocks = counted(row.blocks, "block")
            sentence = f"whether {row.benchmark} is {claim} is not known after {blocks}"
            needs = "" if row.forecast is None else f": it {needed_time_clause(row.forecast)}"
            return f"{sentence}{needs}."


def _gate_sentence(
    terms: GatePlan, rows: tuple[GateRow, ...], outcomes: Counter[GateOutcome], min_effect: float
) -> str:
    revisions = f"{terms.candidate.label} against {terms.baseline.label}"
    failed = f" {counted(len(terms.failures), 'benchmark')} failed." if terms.failures else ""
    if len(rows) == 1:
        return f"{revisions}: {rows[0].summary}{failed}"
    claim = f"slower by more than {min_effect:g} %"
    if terms.counted_by:
        clause = counts_clause(rows, outcomes, min_effect)
    elif slower := outcomes["slower"]:
        clause = f"{slower} of {len(rows)} benchmarks {'is' if slower == 1 else 'are'} {claim}"
    else:
        clause = f"none of {len(rows)} benchmarks is known to be {claim}"
    undecided_clause = f", {outcomes['undecided']} undecided" if outcomes["undecided"] else ""
    return f"{revisions}: {clause}{undecided_clause}.{failed}"


def joined_bisect_lines(bisect_argvs: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Return the shell line that bisects each benchmark; one line for all benchmarks if possible.

    Argument vectors are joined if they differ only in ``--metrics`` (with a tool), or only in the
    command of the benchmark.
    """
    argvs = list(bisect_argvs.values())
    # Joined words are quoted, but a placeholder such as $TOKEN must not be.
    if len(bisect_argvs) > 1 and not any("$" in word for argv in argvs for word in argv):
        joined_argv = _joined_by_metrics(argvs) or _joined_by_command(argvs, list(bisect_argvs))
        if joined_argv is not None:
            return dict.fromkeys(bisect_argvs, shell_line(joined_argv))
    return {name: shell_line_with_placeholders(argv) for name, argv in bisect_argvs.items()}


def _joined_by_metrics(argvs: Sequence[Sequence[str]]) -> list[str] | None:
    first_argv = list(argvs[0])
    if "--kind" not in first_argv or "--metrics" not in first_argv:
        return None
    index = first_argv.index("--metrics") + 1
    if len({(*argv[:index], *argv[index + 1 :]) for argv in argvs}) > 1:
        return None
    return [*first_argv[:index], ",".join(argv[index] for argv in argvs), *first_argv[index + 1 :]]


def _joined_by_command(argvs: Sequence[Sequence[str]], names: Sequence[str]) -> list[str] | None:
    if any("--" not in argv or "=" in name for argv, name in zip(argvs, names, strict=True)):
        return None
    separator = argvs[0].index("--")
    joined_argv = list(argvs[0][:separator])
    if any(list(argv[: argv.index("--")]) != joined_argv for argv in argvs):
        return None
    for argv, name in zip(argvs, names, strict=True):
        joined_argv += ["--bench", f"{name}={shlex.join(argv[separator + 1 :])}"]
    return joined_argv
