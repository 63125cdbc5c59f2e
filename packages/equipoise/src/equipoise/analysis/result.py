"""Computes the result document of a campaign from its record.

The same record always gives the same document: the campaign's seed seeds every resampling.
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from equipoise.analysis.carry_over import with_carry_over_checks
from equipoise.analysis.comparisons import (
    Blocks,
    control_comparison,
    other_comparisons,
    primary_comparisons,
)
from equipoise.analysis.duet import duet_of
from equipoise.analysis.iterations import (
    Classifications,
    classify_iterations,
    iteration_shape,
    iterations_in,
    steady_comparisons,
)
from equipoise.analysis.kind import analysis_of
from equipoise.analysis.levels import cost_by_level, ratios_by_level, sources_of_spread
from equipoise.analysis.ranking import rankings
from equipoise.analysis.shape import (
    is_wide,
    shape_of,
    typical_value,
    warnings_of_typical,
    why_unknown,
    why_wide,
)
from equipoise.analysis.warnings import warnings_of
from equipoise.analysis.wording import control_sentence
from equipoise.campaign.blocks import (
    MEASURED_METRICS,
    complete_blocks,
    left_out_because,
    resolution_of,
    values_by_metric,
)
from equipoise.campaign.interim import DESCRIBED_CONDITION
from equipoise.campaign.washouts import decisive_blocks
from equipoise.design.command_line import command_of_plan
from equipoise.model.garbage_collection import paused_garbage_collector
from equipoise.model.kinds import load
from equipoise.model.plan import Condition, Plan
from equipoise.model.quantities import excludes_one, iso_time
from equipoise.model.record import Draw, RunRecord, Segment, Trial
from equipoise.model.result import (
    SCHEMA,
    ConditionResult,
    ControlResult,
    MetricSummary,
    ResultDocument,
    RunInfo,
    TrialRow,
    TypicalValue,
)
from equipoise.stats.describe import describe_quantiles

DESCRIBED_METRICS = ("wall_s", "user_s", "sys_s", "max_rss_bytes", "minor_faults", "major_faults")
"""Metrics that every condition has, besides the metrics that its workload reports."""
_BRIEF_METRICS = ("wall_s", "max_rss_bytes")
"""Metrics of a brief description, besides the primary metric."""


def analyse_campaign(record: RunRecord) -> ResultDocument:
    """Compute the result document of a campaign; `why.result.result_of` adds causes of gaps."""
    # Squares of huge values in an imported file overflow. The results are null.
    with paused_garbage_collector(), np.errstate(over="ignore", invalid="ignore"):
        return _document_of(record, _condition_result)


def analyse_comparisons(record: RunRecord) -> ResultDocument:
    """Compute the result document of a campaign, with the quantiles of few metrics.

    Modes, drifts and other metrics take most of the time of `analyse_campaign`.
    """
    with paused_garbage_collector(), np.errstate(over="ignore", invalid="ignore"):
        return _document_of(record, _briefly_described_condition)


def _document_of(record: RunRecord, describe: Callable[..., ConditionResult]) -> ResultDocument:
    """Return the kind's own document, or the document of a comparison with the kind's additions.

    ``describe`` has the parameters of `_condition_result`.
    """
    plan = record.plan
    rules, kind = plan.rules, analysis_of(plan.terms)
    own_document = kind.document(record)
    if own_document is not None:
        return own_document
    complete = complete_blocks(record.draws, record.trials)
    blocks = decisive_blocks(plan, complete)
    by_condition = _trials_by_condition(record, blocks)
    # Without an order drawn by Equipoise, no verdict is valid (rule 1).
    has_random_order = rules.has_random_order
    comparisons = primary_comparisons(plan, blocks) if has_random_order else ()
    comparisons = with_carry_over_checks(plan, complete, comparisons)
    others, metric_warnings = other_comparisons(plan, blocks) if has_random_order else ((), ())
    # The times of functions are already those of a steady state (functions.runner).
    has_steady_states = has_random_order and not rules.shares_processes
    steady = steady_comparisons(plan, blocks, by_condition.iterations) if has_steady_states else ()
    by_level = ratios_by_level(plan, comparisons, blocks, by_condition.draws) if comparisons else ()
    control = _control(plan, blocks, by_condition)
    additions = kind.result(record, blocks)
    typical = typical_value(plan, blocks)
    warned_comparisons = () if additions.has_own_sentences else comparisons
    document_class: type[ResultDocument] = load(plan.kind.document)
    return document_class(
        schema=SCHEMA,
        run=run_info(record, len(complete)),
        environment=record.environment,
        conditions=tuple(
            describe(plan, index, by_condition, typical)
            for index in plan.described
            # A campaign over very many commits shows only the commits that ran.
            if rules.shows_every_condition or index in by_condition.analysed
        ),
        comparisons=by_level + others,
        control=control,
        why=sources_of_spread(plan, blocks),
        warnings=(
            *warnings_of(record, warned_comparisons, control, blocks, additions.outcomes),
            *metric_warnings,
            *additions.warnings,
            *warnings_of_typical(plan, blocks),
        ),
        trials=trial_rows(record, complete, blocks),
        steady_state=steady,
        more_is_better=increasing_metrics(record.trials),
        ranking=rankings(plan, blocks, comparisons),
        resolutions=_known_resolutions(plan, blocks),
        typical=typical,
        duet=duet_of(record),
        **additions.fields,
    )


def increasing_metrics(trials: Iterable[Trial]) -> tuple[str, ...]:
    """Return the metrics for which the workloads reported that more is better."""
    samples = (sample for trial in trials for sample in trial.samples)
    return tuple(dict.fromkeys(sample.metric for sample in samples if sample.better == "higher"))


def _known_resolutions(plan: Plan, blocks: Blocks) -> dict[str, float]:
    judgement = plan.judgement
    first_block = next(iter(blocks.values()), ())
    reported_metrics = (sample.metric for trial in first_block for sample in trial.samples)
    metrics = dict.fromkeys((judgement.primary_metric, *judgement.other_metrics, *reported_metrics))
    quanta = {metric: resolution_of(blocks, metric).quantum for metric in metrics}
    return {metric: quantum for metric, quantum in quanta.items() if quantum is not None}


def run_info(record: RunRecord, blocks: int) -> RunInfo:
    """Return facts about a campaign; ``blocks`` is its number of complete blocks."""
    last_segment = record.segments[-1] if record.segments else Segment(record.started_at, {})
    return RunInfo(
        id=record.id,
        study=record.plan.study,
        started=iso_time(record.started_at),
        ended=None if last_segment.ended_at is None else iso_time(last_segment.ended_at),
        seed=record.plan.seed,
        blocks=blocks,
        stopped_because=record.stopped_because,
        layouts=record.plan.layouts,
        command_line=command_of_plan(record.plan),
    )


def _control(plan: Plan, blocks: Blocks, by_condition: _TrialsByCondition) -> ControlResult | None:
    comparison = control_comparison(plan, blocks)
    if plan.control is None or comparison is None:
        return None
    has_difference = excludes_one(comparison.ratio_ci)
    return ControlResult(
        condition=_condition_result(plan, plan.control, by_condition),
        comparison=comparison,
        excludes_one=has_difference,
        summary=control_sentence(excludes_one=has_difference, alpha=comparison.alpha),
    )


class _TrialsByCondition(Struct, frozen=True):
    """Facts about the trials, by index of the condition unless a field has another key."""

    analysed: Mapping[int, list[Trial]]
    failures: Mapping[int, int]
    """Number of failed trials."""
    draws: Mapping[int, Draw]
    """Draw of each measured block, by block number."""
    iterations: Classifications


def _trials_by_condition(record: RunRecord, blocks: Blocks) -> _TrialsByCondition:
    analysed: dict[int, list[Trial]] = defaultdict(list)
    for block in blocks.values():
        for trial in block:
            analysed[trial.condition].append(trial)
    return _TrialsByCondition(
        analysed,
        Counter(trial.condition for trial in record.trials if trial.failure is not None),
        record.measured_draws,
        classify_iterations(analysed, record.plan.rules.metrics_without_time_order),
    )


def _briefly_described_condition(
    plan: Plan, index: int, by_condition: _TrialsByCondition, typical: TypicalValue | None = None
) -> ConditionResult:
    """Describe the quantiles of the primary metric, the time and the peak memory."""
    condition = plan.conditions[index]
    analysed = by_condition.analysed.get(index, [])
    described = dict.fromkeys((plan.judgement.primary_metric, *_BRIEF_METRICS))
    values_of = values_by_metric(_with_values(analysed), described).items()
    known = {metric: values[~np.isnan(values)] for metric, values in values_of}
    return ConditionResult(
        name=condition.name,
        levels=condition.levels,
        command=condition.command,
        trials=len(analysed),
        failures=by_condition.failures.get(index, 0),
        metrics={
            metric: describe_quantiles(values) for metric, values in known.items() if len(values)
        },
    )


def _with_values(trials: Iterable[Trial]) -> list[Trial]:
    """Return the trials with valid values: none that timed out, or that this host cannot run."""
    return [trial for trial in trials if not trial.timed_out and not trial.is_unavailable]


def _condition_result(
    plan: Plan, index: int, by_condition: _TrialsByCondition, typical: TypicalValue | None = None
) -> ConditionResult:
    """Describe each metric of a condition; for a study, also say why a metric has no value."""
    condition = plan.conditions[index]
    analysed = by_condition.analysed.get(index, [])
    reported_metrics = dict.fromkeys(
        sample.metric for trial in analysed for sample in trial.samples if sample.iteration is None
    )
    valid = _with_values(analysed)
    metrics: dict[str, MetricSummary] = {}
    spread_reasons: dict[str, str] = {}
    primary_metric = plan.judgement.primary_metric
    compared_metrics = (primary_metric, *plan.judgement.other_metrics)
    shown_metrics = (*DESCRIBED_METRICS, *filter(MEASURED_METRICS.__contains__, compared_metrics))
    described = dict.fromkeys((*shown_metrics, *plan.measure.counters, *reported_metrics))
    for metric, values in values_by_metric(valid, described).items():
        is_known = ~np.isnan(values)
        if not is_known.any():
            continue
        trials = valid if is_known.all() else list(itertools.compress(valid, is_known.tolist()))
        summary = shape_of(plan, metric, values[is_known], trials, by_condition.draws)
        if metric == primary_metric:
            by_level = cost_by_level(plan, analysed, by_condition.draws)
            summary = replace(summary, by_level=by_level)
            if typical is not None and index == DESCRIBED_CONDITION:
                summary = replace(summary, median_ci=typical.median_ci)
        metrics[metric] = summary
        if metric in condition.reports and is_wide(summary):
            spread_reasons[metric] = why_wide(metric, values[is_known], trials, seed=plan.seed)
    return ConditionResult(
        name=condition.name,
        levels=condition.levels,
        command=condition.command,
        trials=len(analysed),
        failures=by_condition.failures.get(index, 0),
        metrics=metrics,
        unknown={
            metric: why_unknown(analysed, metric)
            for metric in condition.reports
            if metric not in metrics
        },
        spread_because=spread_reasons,
        iterations={
            metric: iteration_shape(classified)
            for metric, classified in by_condition.iterations.get(index, {}).items()
        },
    )


def trial_rows(record: RunRecord, complete: Blocks, decisive: Blocks) -> tuple[TrialRow, ...]:
    """Return the row of every trial; only trials of ``decisive`` blocks are analysed."""
    layouts = {(draw.phase, draw.block): draw.layout for draw in record.draws}
    return tuple(
        _row(
            trial,
            record.plan.conditions[trial.condition],
            left_out_because(trial, complete, decisive),
            layouts.get((trial.phase, trial.block)),
        )
        for trial in record.trials
    )


def _row(trial: Trial, condition: Condition, reason: str | None, layout: int | None) -> TrialRow:
    accounting = trial.accounting
    reported_values = {
        sample.metric: sample.value for sample in trial.samples if sample.iteration is None
    }
    missing_reasons = {
        metric: why_unknown([trial], metric)
        for metric in condition.reports
        if metric not in reported_values
    }
    # Most trials report no iterations.
    iterations = iterations_in(trial.samples) if trial.samples else {}
    return TrialRow(
        trial.block,
        trial.position,
        condition.name,
        trial.phase,
        reason is None,
        reason,
        accounting.wall_s,
        accounting.user_s,
        accounting.sys_s,
        accounting.max_rss_bytes,
        accounting.minor_faults,
        accounting.major_faults,
        accounting.voluntary_switches,
        accounting.involuntary_switches,
        trial.exit,
        trial.failure,
        trial.failure_kind,
        {**accounting.unknown, **missing_reasons} if missing_reasons else accounting.unknown,
        trial.covariates,
        reported_values,
        {metric: [sample.value for sample in samples] for metric, samples in iterations.items()},
        layout,
    )
