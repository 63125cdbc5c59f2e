"""From the ledger's record of a campaign to its result document: a pure function.

The same record gives the same document, byte for byte: every resampling is seeded by the
campaign's own seed.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np

from equipoise.campaign.blocks import (
    QUANTA,
    BlockCosts,
    block_costs,
    complete_blocks,
    cost_in,
    cut_blocks,
    left_out_because,
)
from equipoise.campaign.warnings import warnings_of
from equipoise.campaign.words import verdict_words
from equipoise.model.bulk import collector_at_rest, fast_maker
from equipoise.model.plan import Plan
from equipoise.model.record import RunRecord, Sitting
from equipoise.model.result import (
    SCHEMA,
    CarryOver,
    Comparison,
    ConditionResult,
    MetricSummary,
    ResultDocument,
    RunInfo,
    TrialRow,
)
from equipoise.model.trial import Trial
from equipoise.stats.arrays import FloatArray
from equipoise.stats.carry_over import carry_over
from equipoise.stats.describe import describe
from equipoise.stats.means import ratio_of_means
from equipoise.stats.minimum import minimum_misleads
from equipoise.stats.probability import probability_slower
from equipoise.stats.sequence import PairedBlocks
from equipoise.stats.verdict import Judged, blocks_to_go, judge

ESTIMAND = "typical within-block ratio"
SCOPE = "across processes, in this campaign on this host"
ACCOUNTED = ("wall_s", "user_s", "sys_s", "max_rss_bytes", "minor_faults", "major_faults")
"""What is described of every condition; a workload's own metrics are described beside it."""

Blocks = dict[int, tuple[Trial, ...]]


def document_of(record: RunRecord) -> ResultDocument:
    """Compute the result document of one campaign."""
    with collector_at_rest():
        return _document_of(record)


def _document_of(record: RunRecord) -> ResultDocument:
    plan = record.plan
    blocks = complete_blocks(plan, record.trials)
    comparisons = _comparisons(plan, blocks)
    return ResultDocument(
        schema=SCHEMA,
        run=_run_info(record, len(blocks)),
        environment=record.sittings[0].environment if record.sittings else {},
        conditions=tuple(
            _condition_result(plan, index, record.trials, blocks)
            for index in range(len(plan.conditions))
        ),
        comparisons=comparisons,
        control=None,
        why=(),
        warnings=warnings_of(record, comparisons, cut_blocks(record, blocks)),
        trials=_rows(plan, record.trials, blocks),
    )


def _run_info(record: RunRecord, blocks: int) -> RunInfo:
    last = record.sittings[-1] if record.sittings else Sitting(record.started_at, {})
    return RunInfo(
        id=record.id,
        study=record.plan.study,
        started=_iso(record.started_at),
        ended=None if last.ended_at is None else _iso(last.ended_at),
        seed=record.plan.seed,
        blocks=blocks,
        stopped_because=last.stopped_because,
    )


def _comparisons(plan: Plan, blocks: Blocks) -> tuple[Comparison, ...]:
    if not blocks:
        return ()
    metric = plan.judgement.primary_metric
    candidates = range(1, len(plan.conditions))
    costs = block_costs(blocks, metric)
    pairs = [costs.paired(candidate, QUANTA.get(metric, 0.0)) for candidate in candidates]
    judgement = plan.judgement
    judged = judge(pairs, min_effect=judgement.min_effect, alpha=judgement.alpha)
    to_go = blocks_to_go(
        pairs, judged, min_effect=judgement.min_effect, alpha=judgement.alpha, seed=plan.seed
    )
    return tuple(
        _comparison(
            plan,
            candidate,
            pair,
            one,
            more,
            _carry_over(plan, costs, candidate),
        )
        for candidate, pair, one, more in zip(candidates, pairs, judged, to_go, strict=True)
    )


def _carry_over(plan: Plan, costs: BlockCosts, candidate: int) -> CarryOver | None:
    """What carries over; nothing can be said where each condition ran before itself."""
    if plan.measure.washout:
        return None
    return carry_over(costs.orders, costs.costs, candidate=candidate, follows=costs.follows)


def _comparison(
    plan: Plan,
    candidate: int,
    pairs: PairedBlocks,
    judged: Judged,
    to_go: int | None,
    carried: CarryOver | None,
) -> Comparison:
    judgement = plan.judgement
    baseline_name, candidate_name = plan.conditions[0].name, plan.conditions[candidate].name
    means = ratio_of_means(pairs.baseline, pairs.candidate, seed=plan.seed)
    slower = probability_slower(pairs, level=judgement.alpha)
    return Comparison(
        baseline=baseline_name,
        candidate=candidate_name,
        metric=judgement.primary_metric,
        estimand=ESTIMAND,
        ratio=judged.ratio,
        ratio_ci=judged.ratio_ci,
        e_value=judged.e_value,
        verdict=judged.verdict,
        min_effect=judgement.min_effect,
        alpha=judgement.alpha,
        blocks=judged.blocks,
        mean_ratio=means.ratio,
        mean_ratio_ci=means.ratio_ci,
        probability_slower=slower.share,
        probability_slower_ci=slower.interval,
        minimum_misleads=minimum_misleads(
            float(np.min(pairs.baseline)),
            float(np.min(pairs.candidate)),
            typical=judged.typical,
            verdict=judged.verdict,
            min_effect=judgement.min_effect,
        ),
        scope=SCOPE,
        words=verdict_words(
            judged.verdict,
            baseline_name,
            candidate_name,
            judged.ratio,
            min_effect=judgement.min_effect,
            mean_ratio=means.ratio,
            blocks=judged.blocks,
            blocks_to_go=to_go,
        ),
        level=judged.level,
        blocks_to_go=to_go,
        carry_over=carried,
    )


def _condition_result(
    plan: Plan, index: int, trials: Sequence[Trial], blocks: Blocks
) -> ConditionResult:
    condition = plan.conditions[index]
    analysed = [trial for block in blocks.values() for trial in block if trial.condition == index]
    failures = sum(trial.condition == index and trial.failure is not None for trial in trials)
    own = dict.fromkeys(s.metric for t in analysed for s in t.samples if s.iteration is None)
    metrics: dict[str, MetricSummary] = {}
    for metric in (*ACCOUNTED, *own):
        values = _known(analysed, metric)
        if len(values):
            metrics[metric] = describe(values, seed=plan.seed)
    return ConditionResult(
        name=condition.name,
        levels=condition.levels,
        command=condition.command,
        trials=len(analysed),
        failures=failures,
        metrics=metrics,
    )


def _known(trials: Sequence[Trial], metric: str) -> FloatArray:
    """The values of a metric over the trials that ended by themselves, in order."""
    read = cost_in(metric)
    values = (read(trial) for trial in trials if not trial.timed_out)
    return np.array([value for value in values if value is not None], dtype=np.float64)


def _rows(plan: Plan, trials: Sequence[Trial], blocks: Blocks) -> tuple[TrialRow, ...]:
    make = fast_maker(TrialRow)
    return tuple(make(*_row_values(plan, trial, blocks)) for trial in trials)


def _row_values(plan: Plan, trial: Trial, blocks: Blocks) -> tuple[Any, ...]:
    """The fields of a ``TrialRow``, in its order."""
    reason = left_out_because(trial, blocks)
    own = trial.accounting
    iterations: dict[str, list[float]] = {}
    for sample in trial.samples:
        if sample.iteration is not None:
            iterations.setdefault(sample.metric, []).append(sample.value)
    return (
        trial.block,
        trial.position,
        plan.conditions[trial.condition].name,
        trial.phase,
        reason is None,
        reason,
        own.wall_s,
        own.user_s,
        own.sys_s,
        own.max_rss_bytes,
        own.minor_faults,
        own.major_faults,
        own.voluntary_switches,
        own.involuntary_switches,
        trial.exit,
        trial.failure,
        own.unknown,
        trial.covariates,
        {s.metric: s.value for s in trial.samples if s.iteration is None},
        iterations,
    )


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
