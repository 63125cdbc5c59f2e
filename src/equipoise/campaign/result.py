"""From the ledger's record of a campaign to its result document: a pure function.

The same record gives the same document, byte for byte: every resampling is seeded by the
campaign's own seed.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np

from equipoise.campaign.blocks import (
    complete_blocks,
    cut_blocks,
    is_unavailable,
    left_out_because,
    values_in,
)
from equipoise.campaign.comparisons import (
    Blocks,
    control_comparison,
    other_comparisons,
    primary_comparisons,
)
from equipoise.campaign.reported import is_wide, why_unknown, why_wide
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
    gathered = _gathered(record, blocks)
    control = _control(plan, blocks, gathered)
    return ResultDocument(
        schema=SCHEMA,
        run=_run_info(record, len(blocks)),
        environment=record.sittings[0].environment if record.sittings else {},
        conditions=tuple(_condition_result(plan, index, gathered) for index in plan.described),
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


def _control(plan: Plan, blocks: Blocks, gathered: _Gathered) -> ControlResult | None:
    comparison = control_comparison(plan, blocks)
    if plan.control is None or comparison is None:
        return None
    low, high = comparison.ratio_ci
    excludes_one = (low is not None and low > 1.0) or (high is not None and high < 1.0)
    return ControlResult(
        condition=_condition_result(plan, plan.control, gathered),
        comparison=comparison,
        excludes_one=excludes_one,
        words=control_words(excludes_one=excludes_one, alpha=comparison.alpha),
    )


@dataclass(frozen=True, slots=True)
class _Gathered:
    """What the trials of all conditions say, gathered in one pass: there may be very many."""

    analysed: Mapping[int, list[Trial]]
    failures: Mapping[int, int]
    paddings: Mapping[int, int]
    """For each measured block, by how many bytes its environments were enlarged."""


def _gathered(record: RunRecord, blocks: Blocks) -> _Gathered:
    analysed: dict[int, list[Trial]] = defaultdict(list)
    for block in blocks.values():
        for trial in block:
            analysed[trial.condition].append(trial)
    return _Gathered(
        analysed,
        Counter(one.condition for one in record.trials if one.failure is not None),
        {one.block: one.padding_bytes for one in record.draws if one.phase == "measured"},
    )


def _condition_result(plan: Plan, index: int, gathered: _Gathered) -> ConditionResult:
    condition = plan.conditions[index]
    analysed = gathered.analysed.get(index, [])
    own = dict.fromkeys(s.metric for t in analysed for s in t.samples if s.iteration is None)
    # A trial that was stopped for its time took unknown amounts of everything; one that could not
    # do its work here has no amount of it.
    ended = [trial for trial in analysed if not trial.timed_out and not is_unavailable(trial)]
    metrics: dict[str, MetricSummary] = {}
    spread_because: dict[str, str] = {}
    for metric, reported in values_in(
        dict.fromkeys((*ACCOUNTED, *plan.measure.counters, *own)), ended
    ).items():
        known, values = _known(ended, reported)
        if not known:
            continue
        metrics[metric] = shape_of(plan, metric, values, known, gathered.paddings)
        if metric in condition.reports and is_wide(metrics[metric]):
            spread_because[metric] = why_wide(metric, values, known, seed=plan.seed)
    return ConditionResult(
        name=condition.name,
        levels=condition.levels,
        command=condition.command,
        trials=len(analysed),
        failures=gathered.failures.get(index, 0),
        metrics=metrics,
        unknown={
            metric: why_unknown(analysed) for metric in condition.reports if metric not in metrics
        },
        spread_because=spread_because,
    )


def _known(ended: list[Trial], values: Sequence[float | None]) -> tuple[list[Trial], FloatArray]:
    """The trials whose value is known, in order, and the values."""
    if None in values:
        both = zip(ended, values, strict=True)
        known = [(one, value) for one, value in both if value is not None]
        ended, values = [one for one, _ in known], [value for _, value in known]
    return ended, np.array(values, dtype=np.float64)


def _rows(plan: Plan, trials: Sequence[Trial], blocks: Blocks) -> tuple[TrialRow, ...]:
    make = fast_maker(TrialRow)
    return tuple(make(*_row_values(plan, trial, blocks)) for trial in trials)


def _row_values(plan: Plan, trial: Trial, blocks: Blocks) -> tuple[Any, ...]:
    """The fields of a ``TrialRow``, in its order."""
    reason = left_out_because(trial, blocks)
    own = trial.accounting
    condition = plan.conditions[trial.condition]
    reported = {s.metric: s.value for s in trial.samples if s.iteration is None}
    missing = {one: why_unknown([trial]) for one in condition.reports if one not in reported}
    iterations: dict[str, list[float]] = {}
    for sample in trial.samples:
        if sample.iteration is not None:
            iterations.setdefault(sample.metric, []).append(sample.value)
    return (
        trial.block,
        trial.position,
        condition.name,
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
        {**own.unknown, **missing} if missing else own.unknown,
        trial.covariates,
        reported,
        iterations,
    )


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
