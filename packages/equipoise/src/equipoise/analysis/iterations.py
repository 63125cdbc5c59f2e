"""Iterations within trials: their classes, and comparisons in the steady state.

A comparison uses one number of each trial, computed from that trial alone by the same rule for
every condition. Exchanging two conditions in a block exchanges their numbers, so the bets of the
verdict are as fair as on any other metric (docs/explanation/modes.md).
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from equipoise.analysis.comparisons import Blocks, judge_pairings, pairing_of
from equipoise.campaign.blocks import TIMED_OUT, as_cost, place_costs
from equipoise.model.iterations import IterationShape, Stretch, TrialIterations
from equipoise.model.plan import Contrast, Plan
from equipoise.model.record import Better, Sample, Trial
from equipoise.model.result import Comparison, SteadyComparison
from equipoise.stats.arrays import FloatArray
from equipoise.stats.resolution import Resolution
from equipoise.stats.warm_up import (
    MIN_ITERATIONS,
    TrialShape,
    WorkloadShape,
    classify_trial,
    workload_of,
)

ESTIMAND = "typical within-block ratio of the means of the steady states"


class ClassifiedTrial(Struct, frozen=True):
    """One analysed trial on one metric."""

    trial: Trial
    better: Better
    shape: TrialShape | None
    """Shape of its costs; ``None`` if they could not be classified."""

    @property
    def cost(self) -> float | None:
        """Number of the trial in a comparison; ``None`` if it has none."""
        if self.trial.timed_out:
            return TIMED_OUT
        return None if self.shape is None else self.shape.final_mean


class ClassifiedCondition(Struct, frozen=True):
    """The analysed trials of one condition on one metric."""

    trials: tuple[ClassifiedTrial, ...]
    workload: WorkloadShape | None

    @property
    def more_is_better(self) -> bool:
        """Whether a cost is the inverse of the metric."""
        return any(trial.better == "higher" for trial in self.trials)

    @property
    def not_classed(self) -> int:
        """Number of trials that ended without enough iterations."""
        return sum(trial.cost is None for trial in self.trials)

    def why_not_steady(self) -> str | None:
        """Return the reason why it has no steady state; ``None`` if it has one."""
        if self.not_classed:
            return (
                f"{self.not_classed} of its {len(self.trials)} trials reported fewer than "
                f"{MIN_ITERATIONS} iterations"
            )
        if self.workload is None:
            return "none of its trials ended"
        if not self.workload.has_steady_state:
            return f"it has no steady state ({self.workload.summary})"
        if any(trial.final_mean < 0.0 for trial in self.workload.trials):
            return "its iterations have values below 0, which make no ratio"
        return None


Classifications = Mapping[int, Mapping[str, ClassifiedCondition]]
"""Conditions by their index in the plan, then by each metric that has iterations."""


def iterations_in(samples: Iterable[Sample]) -> dict[str, list[Sample]]:
    """Return the iterations of a trial by metric, in their order."""
    by_metric: dict[str, list[Sample]] = defaultdict(list)
    for sample in samples:
        if sample.iteration is not None:
            by_metric[sample.metric].append(sample)
    for reported in by_metric.values():
        reported.sort(key=lambda sample: sample.iteration or 0)
    return dict(by_metric)


def classify_iterations(
    analysed: Mapping[int, Sequence[Trial]], no_series: Collection[str] = ()
) -> Classifications:
    """Classify the iterations of all analysed trials, given in the order in which they ran.

    Metrics in ``no_series`` are skipped: their iterations are not a course in time.
    """
    by_condition = {
        condition: _classify_by_metric(trials, no_series) for condition, trials in analysed.items()
    }
    return {condition: classed for condition, classed in by_condition.items() if classed}


def iteration_shape(classed: ClassifiedCondition) -> IterationShape:
    """Return the classes of a condition's iterations for the result document."""
    workload = classed.workload
    trials = tuple(_trial_iterations(trial, trial.shape) for trial in classed.trials if trial.shape)
    if workload is None:
        summary = f"not classed: no trial has {MIN_ITERATIONS} iterations"
        return IterationShape(None, False, trials, classed.not_classed, summary)
    return IterationShape(
        workload.kind, workload.has_steady_state, trials, classed.not_classed, workload.summary
    )


def steady_comparisons(
    plan: Plan, blocks: Blocks, classed: Classifications
) -> tuple[SteadyComparison, ...]:
    """Compare each candidate with its baseline in the steady state, where both have one.

    All these comparisons share alpha, including those that are not possible, which count as without
    evidence. If neither condition reports enough iterations to be classified, nothing is reported:
    a few measurements in a process are not a course that could become steady.
    """
    sides = [
        (contrast, classed.get(contrast.baseline, {}), classed.get(contrast.candidate, {}))
        for contrast in plan.contrasts
    ]
    reported = [
        (contrast, metric, [side[metric] for side in (baseline, candidate) if metric in side])
        for contrast, baseline, candidate in sides
        for metric in {**baseline, **candidate}
    ]
    candidates = [
        (contrast, metric, _why_not_comparable(plan, classed, contrast, metric))
        for contrast, metric, conditions in reported
        if any(condition.workload is not None for condition in conditions)
    ]
    pairings = [
        pairing_of(
            plan,
            metric,
            place_costs(plan, blocks, _costs(blocks, classed, metric)),
            contrast,
            # A mean of many iterations has finer steps than a single iteration: they are inferred.
            Resolution(None, classed[contrast.candidate][metric].more_is_better),
        )
        for contrast, metric, reason in candidates
        if reason is None
    ]
    judged = iter(judge_pairings(plan, pairings, unreported=len(reported) - len(pairings)))
    return tuple(
        _steady_comparison(plan, contrast, metric, next(judged) if reason is None else reason)
        for contrast, metric, reason in candidates
    )


def _steady_comparison(
    plan: Plan, contrast: Contrast, metric: str, judged: Comparison | str
) -> SteadyComparison:
    """Return the comparison, or the reason why there is none, for the result document."""
    baseline, candidate = plan.names_of(contrast)
    if isinstance(judged, str):
        what = f"{candidate} against {baseline}: no comparison of {metric} in the steady state"
        return SteadyComparison(baseline, candidate, metric, None, f"{what}: {judged}.")
    summary = f"In the steady state: {judged.summary}"
    comparison = replace(judged, estimand=ESTIMAND, summary=summary)
    return SteadyComparison(baseline, candidate, metric, comparison, summary)


def _classify_by_metric(
    trials: Sequence[Trial], no_series: Collection[str]
) -> dict[str, ClassifiedCondition]:
    reported = [iterations_in(trial.samples) if trial.samples else {} for trial in trials]
    conditions = {}
    for metric in dict.fromkeys(itertools.chain.from_iterable(reported)):
        if metric not in no_series:
            classed = tuple(
                _classify_costs(trial, by_metric.get(metric, []))
                for trial, by_metric in zip(trials, reported, strict=True)
            )
            shapes = [trial.shape for trial in classed if trial.shape is not None]
            conditions[metric] = ClassifiedCondition(classed, workload_of(shapes))
    return conditions


def _classify_costs(trial: Trial, samples: Sequence[Sample]) -> ClassifiedTrial:
    better = samples[0].better if samples else "lower"
    costs = np.array([as_cost(sample) for sample in samples], dtype=np.float64)
    # The iterations until a timeout are not a whole course.
    known = not trial.timed_out and bool(np.isfinite(costs).all())
    return ClassifiedTrial(trial, better, classify_trial(costs) if known else None)


def _trial_iterations(trial: ClassifiedTrial, shape: TrialShape) -> TrialIterations:
    def in_unit(cost: float) -> float:
        return cost if trial.better == "lower" else 1.0 / cost

    return TrialIterations(
        block=trial.trial.block,
        kind=shape.kind,
        stretches=tuple(
            Stretch(stretch.begin, stretch.end, in_unit(stretch.level))
            for stretch in shape.segments.segments
        ),
        steady_from=shape.steady_from,
        steady=None if shape.steady is None else in_unit(shape.steady),
    )


def _why_not_comparable(
    plan: Plan, classed: Classifications, contrast: Contrast, metric: str
) -> str | None:
    """Return the reason why two steady states cannot be compared; ``None`` if they can."""
    control = () if plan.control is None else (plan.control,)
    for place in (contrast.baseline, *control, contrast.candidate):
        condition = classed.get(place, {}).get(metric)
        name = plan.conditions[place].name
        if condition is None:
            return f"{name} reported no iterations of it"
        if (reason := condition.why_not_steady()) is not None:
            return f"{name}: {reason}"
    return None


def _costs(blocks: Blocks, classed: Classifications, metric: str) -> FloatArray:
    """Return the cost of every trial of the blocks, in their order; NaN if it has none."""
    costs = {
        (condition, trial.trial.block): trial.cost
        for condition, metrics in classed.items()
        if metric in metrics
        for trial in metrics[metric].trials
    }
    trials = itertools.chain.from_iterable(blocks.values())
    # None becomes NaN.
    return np.array(
        [costs.get((trial.condition, trial.block)) for trial in trials], dtype=np.float64
    )
