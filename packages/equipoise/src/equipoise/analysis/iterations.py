"""Classifies the iterations within trials, and compares conditions in the steady state.

A trial may repeat its work and report the time of each iteration. The first iterations warm up; a
steady state may follow. The *shape* of a trial has its class, such as ``warm-up``, and stretches of
about equal means. A comparison uses one number for each trial: the mean of its steady state.
This number depends only on this trial, so the bets of the verdict stay fair
(docs/explanation/modes.md).
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from equipoise.analysis.comparisons import Blocks, costs_of_contrast, judge_contrasts
from equipoise.campaign.blocks import TIMED_OUT, arrange_costs, as_cost
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
"""Quantity that a comparison of steady states estimates."""


class ClassifiedTrial(Struct, frozen=True):
    """An analysed trial on one metric, with the shape of its iterations."""

    trial: Trial
    better: Better
    shape: TrialShape | None
    """Shape of the costs of the iterations; ``None`` if they cannot be classified."""

    @property
    def cost(self) -> float | None:
        """Cost of the trial in a comparison of steady states; ``None`` if unknown."""
        if self.trial.timed_out:
            return TIMED_OUT
        return None if self.shape is None else self.shape.final_mean


class ClassifiedCondition(Struct, frozen=True):
    """The analysed trials of one condition on one metric."""

    trials: tuple[ClassifiedTrial, ...]
    shape: WorkloadShape | None
    """Shape that the trials have in common; ``None`` if no trial could be classified."""

    @property
    def more_is_better(self) -> bool:
        """Whether a cost is the inverse of the metric."""
        return any(trial.better == "higher" for trial in self.trials)

    @property
    def unclassified_trials(self) -> int:
        """Number of trials without enough iterations to be classified."""
        return sum(trial.cost is None for trial in self.trials)

    def why_not_steady(self) -> str | None:
        """Return the reason why there is no steady state; ``None`` if there is one."""
        if self.unclassified_trials:
            return (
                f"{self.unclassified_trials} of its {len(self.trials)} trials reported fewer than "
                f"{MIN_ITERATIONS} iterations"
            )
        if self.shape is None:
            return "none of its trials ended"
        if not self.shape.has_steady_state:
            return f"it has no steady state ({self.shape.summary})"
        if any(trial.final_mean < 0.0 for trial in self.shape.trials):
            return "its iterations have values below 0, which make no ratio"
        return None


Classifications = Mapping[int, Mapping[str, ClassifiedCondition]]
"""Classified conditions, by index in the plan and then by metric."""


def iterations_in(samples: Iterable[Sample]) -> dict[str, list[Sample]]:
    """Return the reported iterations of a trial, by metric and in the order of iterations."""
    by_metric: dict[str, list[Sample]] = defaultdict(list)
    for sample in samples:
        if sample.iteration is not None:
            by_metric[sample.metric].append(sample)
    for iterations in by_metric.values():
        iterations.sort(key=lambda sample: sample.iteration or 0)
    return dict(by_metric)


def classify_iterations(
    trials_by_condition: Mapping[int, Sequence[Trial]],
    metrics_without_time_order: Collection[str] = (),
) -> Classifications:
    """Classify the iterations of all analysed trials, given in the order in which they ran.

    ``metrics_without_time_order`` are left out, because they cannot show a warm-up.
    """
    classified = {
        condition: _classify_by_metric(trials, metrics_without_time_order)
        for condition, trials in trials_by_condition.items()
    }
    return {condition: by_metric for condition, by_metric in classified.items() if by_metric}


def iteration_shape(condition: ClassifiedCondition) -> IterationShape:
    """Return the classified iterations of a condition for the result document."""
    shape = condition.shape
    trials = tuple(
        _trial_iterations(trial, trial.shape) for trial in condition.trials if trial.shape
    )
    if shape is None:
        summary = f"not classed: no trial has {MIN_ITERATIONS} iterations"
        return IterationShape(None, False, trials, condition.unclassified_trials, summary)
    return IterationShape(
        shape.kind, shape.has_steady_state, trials, condition.unclassified_trials, shape.summary
    )


def steady_comparisons(
    plan: Plan, blocks: Blocks, classified: Classifications
) -> tuple[SteadyComparison, ...]:
    """Compare each candidate with its baseline in the steady state, if both have one.

    The comparisons share alpha. A comparison that is not possible counts as a comparison without
    evidence. If neither condition reports enough iterations of a metric, the metric is left out.
    """
    contrasts_and_metrics = [
        (contrast, metric)
        for contrast in plan.contrasts
        for metric in {
            **classified.get(contrast.baseline, {}),
            **classified.get(contrast.candidate, {}),
        }
    ]
    planned_comparisons = [
        (contrast, metric, _why_not_comparable(plan, classified, contrast, metric))
        for contrast, metric in contrasts_and_metrics
        if any(_is_classified(classified, condition, metric) for condition in contrast.pair)
    ]
    contrast_costs = [
        costs_of_contrast(
            plan,
            metric,
            arrange_costs(plan, blocks, _steady_costs(blocks, classified, metric)),
            contrast,
            # The resolution of a mean is finer than the resolution of the metric, and unknown.
            Resolution(None, classified[contrast.candidate][metric].more_is_better),
        )
        for contrast, metric, reason in planned_comparisons
        if reason is None
    ]
    unreported_count = len(contrasts_and_metrics) - len(contrast_costs)
    comparisons = iter(judge_contrasts(plan, contrast_costs, unreported_count=unreported_count))
    return tuple(
        _steady_comparison(plan, contrast, metric, next(comparisons) if reason is None else reason)
        for contrast, metric, reason in planned_comparisons
    )


def _is_classified(classified: Classifications, condition: int, metric: str) -> bool:
    classified_condition = classified.get(condition, {}).get(metric)
    return classified_condition is not None and classified_condition.shape is not None


def _steady_comparison(
    plan: Plan, contrast: Contrast, metric: str, outcome: Comparison | str
) -> SteadyComparison:
    """Return a comparison; ``outcome`` is the judged comparison, or why there is none."""
    baseline, candidate = plan.names_of(contrast)
    if isinstance(outcome, str):
        subject = f"{candidate} against {baseline}: no comparison of {metric} in the steady state"
        return SteadyComparison(baseline, candidate, metric, None, f"{subject}: {outcome}.")
    summary = f"In the steady state: {outcome.summary}"
    comparison = replace(outcome, estimand=ESTIMAND, summary=summary)
    return SteadyComparison(baseline, candidate, metric, comparison, summary)


def _classify_by_metric(
    trials: Sequence[Trial], metrics_without_time_order: Collection[str]
) -> dict[str, ClassifiedCondition]:
    iterations = [iterations_in(trial.samples) if trial.samples else {} for trial in trials]
    conditions = {}
    for metric in dict.fromkeys(itertools.chain.from_iterable(iterations)):
        if metric not in metrics_without_time_order:
            classified_trials = tuple(
                _classify_costs(trial, by_metric.get(metric, []))
                for trial, by_metric in zip(trials, iterations, strict=True)
            )
            shapes = [trial.shape for trial in classified_trials if trial.shape is not None]
            conditions[metric] = ClassifiedCondition(classified_trials, workload_of(shapes))
    return conditions


def _classify_costs(trial: Trial, samples: Sequence[Sample]) -> ClassifiedTrial:
    better = samples[0].better if samples else "lower"
    costs = np.array([as_cost(sample) for sample in samples], dtype=np.float64)
    # A timeout cuts the iterations off.
    is_complete = not trial.timed_out and bool(np.isfinite(costs).all())
    return ClassifiedTrial(trial, better, classify_trial(costs) if is_complete else None)


def _trial_iterations(classified_trial: ClassifiedTrial, shape: TrialShape) -> TrialIterations:
    def as_value(cost: float) -> float:
        return cost if classified_trial.better == "lower" else 1.0 / cost

    return TrialIterations(
        block=classified_trial.trial.block,
        kind=shape.kind,
        stretches=tuple(
            Stretch(stretch.begin, stretch.end, as_value(stretch.level))
            for stretch in shape.segmentation.segments
        ),
        steady_from=shape.steady_from,
        steady_mean=None if shape.steady_mean is None else as_value(shape.steady_mean),
    )


def _why_not_comparable(
    plan: Plan, classified: Classifications, contrast: Contrast, metric: str
) -> str | None:
    control_indices = () if plan.control is None else (plan.control,)
    for index in (contrast.baseline, *control_indices, contrast.candidate):
        condition = classified.get(index, {}).get(metric)
        name = plan.conditions[index].name
        if condition is None:
            return f"{name} reported no iterations of this metric"
        if (reason := condition.why_not_steady()) is not None:
            return f"{name}: {reason}"
    return None


def _steady_costs(blocks: Blocks, classified: Classifications, metric: str) -> FloatArray:
    """Return the cost of every trial of the blocks, in their order; NaN if unknown."""
    costs = {
        (condition, classified_trial.trial.block): classified_trial.cost
        for condition, by_metric in classified.items()
        if metric in by_metric
        for classified_trial in by_metric[metric].trials
    }
    trials = itertools.chain.from_iterable(blocks.values())
    # None becomes NaN.
    return np.array(
        [costs.get((trial.condition, trial.block)) for trial in trials], dtype=np.float64
    )
