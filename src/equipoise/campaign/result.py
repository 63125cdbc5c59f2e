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
    complete_blocks,
    cost_in,
    cut_blocks,
    left_out_because,
)
from equipoise.campaign.comparisons import (
    Blocks,
    control_comparison,
    other_comparisons,
    primary_comparisons,
)
from equipoise.campaign.shape import shape_of
from equipoise.campaign.warnings import warnings_of
from equipoise.campaign.what_varies import sources_of_spread
from equipoise.campaign.words import control_words
from equipoise.model.bulk import collector_at_rest, fast_maker
from equipoise.model.plan import Plan
from equipoise.model.record import RunRecord, Sitting
from equipoise.model.result import (
    SCHEMA,
    ConditionResult,
    ControlResult,
    MetricSummary,
    ResultDocument,
    RunInfo,
    TrialRow,
)
from equipoise.model.trial import Trial
from equipoise.stats.arrays import FloatArray

ACCOUNTED = ("wall_s", "user_s", "sys_s", "max_rss_bytes", "minor_faults", "major_faults")
"""What is described of every condition; a workload's own metrics are described beside it."""


def document_of(record: RunRecord) -> ResultDocument:
    """Compute the result document of one campaign."""
    with collector_at_rest():
        return _document_of(record)


def _document_of(record: RunRecord) -> ResultDocument:
    plan = record.plan
    blocks = complete_blocks(record.draws, record.trials)
    primary = primary_comparisons(plan, blocks)
    others, unknown = other_comparisons(plan, blocks)
    control = _control(record, blocks)
    return ResultDocument(
        schema=SCHEMA,
        run=_run_info(record, len(blocks)),
        environment=record.sittings[0].environment if record.sittings else {},
        conditions=tuple(_condition_result(record, index, blocks) for index in plan.described),
        comparisons=primary + others,
        control=control,
        why=sources_of_spread(plan, blocks),
        warnings=(
            *warnings_of(record, primary, control, cut_blocks(record, blocks)),
            *unknown,
        ),
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


def _control(record: RunRecord, blocks: Blocks) -> ControlResult | None:
    plan = record.plan
    comparison = control_comparison(plan, blocks)
    if plan.control is None or comparison is None:
        return None
    low, high = comparison.ratio_ci
    excludes_one = (low is not None and low > 1.0) or (high is not None and high < 1.0)
    return ControlResult(
        condition=_condition_result(record, plan.control, blocks),
        comparison=comparison,
        excludes_one=excludes_one,
        words=control_words(excludes_one=excludes_one, alpha=comparison.alpha),
    )


def _condition_result(record: RunRecord, index: int, blocks: Blocks) -> ConditionResult:
    plan, trials = record.plan, record.trials
    condition = plan.conditions[index]
    paddings = {one.block: one.padding_bytes for one in record.draws if one.phase == "measured"}
    analysed = [trial for block in blocks.values() for trial in block if trial.condition == index]
    failures = sum(trial.condition == index and trial.failure is not None for trial in trials)
    own = dict.fromkeys(s.metric for t in analysed for s in t.samples if s.iteration is None)
    metrics: dict[str, MetricSummary] = {}
    for metric in dict.fromkeys((*ACCOUNTED, *plan.measure.counters, *own)):
        known, values = _known(analysed, metric)
        if known:
            metrics[metric] = shape_of(plan, metric, values, known, paddings)
    return ConditionResult(
        name=condition.name,
        levels=condition.levels,
        command=condition.command,
        trials=len(analysed),
        failures=failures,
        metrics=metrics,
    )


def _known(trials: Sequence[Trial], metric: str) -> tuple[list[Trial], FloatArray]:
    """The trials that ended by themselves and know the metric, in order, and its values."""
    read = cost_in(metric)
    found = [(one, read(one)) for one in trials if not one.timed_out]
    known = [(one, value) for one, value in found if value is not None]
    return [one for one, _ in known], np.array([value for _, value in known], dtype=np.float64)


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
