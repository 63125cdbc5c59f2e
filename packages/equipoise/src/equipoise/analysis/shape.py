"""Describes the distribution of a metric of one condition, and why it is wide or unknown.

A mode may be associated with a covariate, such as the CPU. A state is a series of trials with about
the same value. If nothing is compared, the result is the typical value of the only condition.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from msgspec.structs import replace

from equipoise.analysis.comparisons import Blocks
from equipoise.analysis.wording import typical_sentence
from equipoise.campaign.blocks import (
    TIMED_OUT,
    resolution_of,
    resolution_of_trials,
    values_by_metric,
)
from equipoise.campaign.interim import DESCRIBED_CONDITION
from equipoise.model.plan import Plan
from equipoise.model.record import CampaignWarning, Draw, Trial
from equipoise.model.result import MetricSummary, TypicalValue
from equipoise.shared.safe_text import MAX_LINE_LETTERS, shortened
from equipoise.stats.arrays import FloatArray
from equipoise.stats.associations import (
    MIN_TRIALS,
    Association,
    Covariate,
    mode_associations,
    strongest_association,
)
from equipoise.stats.changes import states
from equipoise.stats.describe import describe, is_visible, median_at_any_stop, rank_autocorrelation
from equipoise.stats.levels import variance_by_level
from equipoise.stats.modes import find_modes

CATEGORICAL_COVARIATES = frozenset({"cpu", "host"})
"""Covariates whose values are names, although they are stored as numbers."""
POSITION, CPU_SET, TIME, LAYOUT = "position", "cpu_set", "time", "layout"
ENVIRONMENT_BYTES, ARGUMENT_BYTES = "environment_bytes", "argument_bytes"
RANDOM_ADDRESSES = "random_addresses"
"""Covariates whose values the coin draws; `TIME` is the order of the trials."""


def shape_of(
    plan: Plan, metric: str, values: FloatArray, trials: Sequence[Trial], draws: Mapping[int, Draw]
) -> MetricSummary:
    """Describe one metric of one condition: its spread, its modes and their associations.

    The primary metric also gets its states. ``values`` has the finite values of the n ``trials`` in
    the order in which they ran, shape (n,). ``draws`` has the draw of each measured block.
    """
    known_resolution = resolution_of_trials(trials, metric)
    quantum = None if known_resolution is None else known_resolution.quantum
    resolution = 0.0 if quantum is None else quantum
    summary = describe(values, seed=plan.seed, resolution=resolution)
    if len(summary.modes) > 1 and len(values) >= MIN_TRIALS:
        mode_indices = find_modes(values, resolution=resolution).indices_of(values)
        covariates = observed_covariates(trials)
        if plan.rules.has_random_order:
            covariates = [*_recorded_covariates(trials), *_drawn_covariates(plan, trials, draws)]
        summary = replace(summary, mode_associations=mode_associations(mode_indices, covariates))
    if metric == plan.judgement.primary_metric and len(values) >= MIN_TRIALS:
        summary = replace(summary, states=states(values))
    return summary


def observed_covariates(trials: Sequence[Trial]) -> list[Covariate]:
    """Return the recorded covariates of the trials, and the time as a covariate."""
    return [*_recorded_covariates(trials), _time_covariate(trials)]


def _recorded_covariates(trials: Sequence[Trial]) -> Iterator[Covariate]:
    for name in dict.fromkeys(name for trial in trials for name in trial.covariates):
        column = _column([trial.covariates.get(name) for trial in trials])
        yield Covariate(
            name, column, is_categorical=name in CATEGORICAL_COVARIATES, is_independent=False
        )


def _drawn_covariates(
    plan: Plan, trials: Sequence[Trial], draws: Mapping[int, Draw]
) -> Iterator[Covariate]:
    set_count = len(plan.measure.cpu_sets)
    name = CPU_SET if set_count else POSITION
    positions = [trial.position % set_count if set_count else trial.position for trial in trials]
    yield Covariate(name, _column(positions), is_categorical=True, is_independent=True)
    yield _time_covariate(trials)
    draws_of_trials = [draws.get(trial.block) for trial in trials]
    layout_numbers = [None if draw is None else draw.layout for draw in draws_of_trials]
    # With layouts, the values below are drawn once for each layout.
    layout_count = len(set(layout_numbers)) if plan.layouts else None

    def covariate(name: str, values: Sequence[float | None], *, is_categorical: bool) -> Covariate:
        return Covariate(
            name, _column(values), is_categorical, is_independent=True, draw_count=layout_count
        )

    if plan.layouts:
        yield Covariate(LAYOUT, _column(layout_numbers), is_categorical=True, is_independent=True)
    padding_bytes = [None if draw is None else draw.padding_bytes for draw in draws_of_trials]
    yield covariate(ENVIRONMENT_BYTES, padding_bytes, is_categorical=False)
    if plan.layouts:
        layouts = [None if index is None else plan.layouts[index - 1] for index in layout_numbers]
        argument_bytes = [None if layout is None else layout.argument_bytes for layout in layouts]
        yield covariate(ARGUMENT_BYTES, argument_bytes, is_categorical=False)
        is_random = [None if layout is None else layout.random_addresses for layout in layouts]
        yield covariate(RANDOM_ADDRESSES, is_random, is_categorical=True)


def _time_covariate(trials: Sequence[Trial]) -> Covariate:
    """Return the order of the trials as a covariate; like drawn values, it is known exactly."""
    return Covariate(
        TIME, np.arange(len(trials), dtype=np.float64), is_categorical=False, is_independent=True
    )


def _column(values: Sequence[float | None]) -> FloatArray:
    return np.array(values, dtype=np.float64)


MIN_WIDE_SPREAD = 0.10
"""Minimum spread of a wide metric: half of (95th - 5th percentile) over the median."""


def why_unknown(trials: Sequence[Trial], metric: str) -> str:
    """Return the most frequent reason why these trials did not report a metric."""
    failures = Counter(_failure_reason(trial) for trial in trials if trial.failure is not None)
    unknown = (trial.accounting.unknown for trial in trials)
    reasons = failures or Counter(by_metric[metric] for by_metric in unknown if metric in by_metric)
    if reasons:
        return shortened(reasons.most_common(1)[0][0], MAX_LINE_LETTERS)
    return "its trials did not report it" if trials else "no trial of it is analysed"


def is_wide(summary: MetricSummary) -> bool:
    """Return whether a metric has a wide spread, which the report explains."""
    return summary.median > 0 and summary.p95 - summary.p05 > 2.0 * MIN_WIDE_SPREAD * summary.median


def why_wide(metric: str, values: FloatArray, trials: Sequence[Trial], *, seed: int) -> str:
    """Return the spread of a metric by level, and the covariate with the strongest association.

    ``values`` and ``trials`` are as in `shape_of`.
    """
    association = strongest_association(values, observed_covariates(trials))
    phrases = (_spread_phrase(metric, trials, seed), _association_phrase(association))
    return "; ".join(phrase for phrase in phrases if phrase)


def _failure_reason(trial: Trial) -> str:
    failure = trial.failure or ""
    if trial.is_unavailable:
        return failure
    lines = trial.error_tail.strip().splitlines()
    return f"{failure}: {lines[-1]}" if lines else failure


def _spread_phrase(metric: str, trials: Sequence[Trial], seed: int) -> str:
    """Return a phrase on the spread between processes and within a process; empty if unknown."""
    logarithms: list[float] = []
    process_indices: list[int] = []
    for index, trial in enumerate(trials):
        samples = (sample for sample in trial.samples if sample.iteration is not None)
        batches = [sample.value for sample in samples if sample.metric == metric]
        if len(batches) > 1 and min(batches) > 0:
            logarithms.extend(np.log(batches))
            process_indices.extend([index] * len(batches))
    if len(set(process_indices)) < 2:
        return ""
    levels = variance_by_level(
        np.array(logarithms), [np.array(process_indices)], ("process", "batch"), seed=seed % 2**32
    )
    process_percent, batch_percent = (
        100.0 * np.sqrt(max(0.0, component.variance)) for component in levels.components
    )
    processes = f"{_percent(process_percent)} between processes"
    return f"{processes}, {_percent(batch_percent)} between batches of one process"


def _percent(value: float) -> str:
    return f"{value:.0f} %" if value >= 10 else f"{value:.2g} %"


def _association_phrase(association: Association | None) -> str:
    if association is None:
        return "no observed factor explains it"
    change = "higher" if association.value is not None or association.correlation > 0 else "lower"
    if association.covariate == TIME:
        return f"{change} later in the campaign: it drifts"
    if association.value is not None:
        return f"{change} on {association.covariate} {association.value:g}"
    return f"{change} with more {association.covariate}"


SCOPE_OF_TYPICAL = (
    "across processes, in this campaign on this host, as long as nothing drifts and runs "
    "are independent of each other"
)


def typical_value(plan: Plan, blocks: Blocks) -> TypicalValue | None:
    """Return the median of the only condition, with an interval that is valid whenever you stop.

    ``None`` if the plan compares conditions, or no trial has the metric. A trial that timed out has
    the worst value.
    """
    if not plan.describes_single_condition:
        return None
    metric = plan.judgement.primary_metric
    sorted_values = np.sort(_described_values(plan, blocks))
    if not len(sorted_values):
        return None
    typical = TypicalValue(
        condition=plan.conditions[DESCRIBED_CONDITION].name,
        metric=metric,
        median=float(np.median(sorted_values)),
        median_ci=median_at_any_stop(sorted_values, plan.judgement.alpha),
        significance_level=plan.judgement.alpha,
        trials=len(sorted_values),
        scope=SCOPE_OF_TYPICAL,
        summary="",
        other_metrics=plan.judgement.other_metrics,
    )
    return replace(typical, summary=typical_sentence(typical))


def warnings_of_typical(plan: Plan, blocks: Blocks) -> Iterator[CampaignWarning]:
    """Yield a warning if runs of the only condition depend on earlier runs."""
    if not plan.describes_single_condition:
        return
    values = _described_values(plan, blocks)
    autocorrelation = rank_autocorrelation(values)
    if autocorrelation is not None and is_visible(autocorrelation, len(values)):
        yield CampaignWarning(
            "dependent_runs",
            "each run resembles the one before it (rank autocorrelation "
            f"{autocorrelation:.2f}): the interval of the median is too narrow",
            "compare the command with another one, because a verdict does not need independent "
            "runs, or measure again at another time",
        )


def _described_values(plan: Plan, blocks: Blocks) -> FloatArray:
    """Return the n known values of the only condition, in the order of its runs, shape (n,).

    A trial that timed out has the worst value: 0 if more is better, else infinity.
    """
    metric = plan.judgement.primary_metric
    trials = [
        trial
        for trial in itertools.chain.from_iterable(blocks.values())
        if trial.condition == DESCRIBED_CONDITION
    ]
    values = values_by_metric(trials, [metric])[metric]
    if resolution_of(blocks, metric).more_is_better:
        values[values == TIMED_OUT] = 0.0
    return values[~np.isnan(values)]
