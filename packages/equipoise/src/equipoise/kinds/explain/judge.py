"""Judge an experiment: choose the attempt of the next block, and decide when to stop.

An experiment is a campaign that tests the causes of a gap. An attempt is one intervention of an
experiment, with its blocks. An attempt is open until it has an outcome.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from equipoise.campaign.blocks import CostsOfBlock, read_block
from equipoise.campaign.interim import CampaignKind, InterimAnalysis
from equipoise.campaign.progress import ComparisonStatus
from equipoise.campaign.segment import Judge
from equipoise.design.coin import draw_intervention
from equipoise.kinds.explain.terms import ExperimentPlan, PlannedIntervention, experiment_of
from equipoise.measure.untimed import stderr_suffix
from equipoise.model.plan import Judgement, Plan, Stopping
from equipoise.model.record import Phase, Trial
from equipoise.stats.intervention import InterventionBlocks, describe_fraction, is_final

BASELINE, CANDIDATE = 0, 1
"""Indexes of the gap's conditions in the plan."""

SHARE_OF_FIRST_ATTEMPT = 0.5
"""Share of the blocks for the first open attempt, which tests the cause with the most seconds. If
all attempts shared the blocks evenly, a short experiment would decide no attempt."""

EVENLY_DIVIDED_SHARE = 0.25
"""Share of the blocks that the open attempts divide evenly. They divide the remaining blocks in
proportion to the seconds of their causes."""


class ExplainCampaign(CampaignKind):
    """The rules by which an experiment is judged and continues."""

    def judge(self, plan: Plan, stopping: Stopping) -> Judge:
        """Return the judge of an experiment."""
        return ExperimentJudge(plan, experiment_of(plan), stopping)


class ExperimentJudge(Judge):
    """The judge of the gap and of each attempt; ``stopping`` has the current limits."""

    def __init__(self, plan: Plan, terms: ExperimentPlan, stopping: Stopping) -> None:
        self._plan = plan
        self._gap_analysis = InterimAnalysis(plan, stopping)
        self._min_blocks = stopping.min_blocks
        self._attempts = attempts_of(terms, plan.judgement)
        self._has_no_gap = False

    def add(self, block: tuple[Trial, ...]) -> None:
        """Add one complete block without an analysis."""
        self._gap_analysis.add(block)
        block_costs = read_block(block, self._plan)
        for attempt in self._attempts:
            attempt.add_block(block_costs)

    def analyse(self) -> tuple[ComparisonStatus, ...]:
        """Return the status of the gap and of each attempt after the blocks so far."""
        gap_statuses = self._gap_analysis.analyse()
        self._has_no_gap = gap_statuses[0].verdict == "equivalent"
        return (*gap_statuses, *map(_status_of, self._attempts))

    def stop_reason(self) -> Literal["verdict", "precision"] | None:
        """Return the reason to stop after the last analysis; ``None`` to continue.

        Stop if there is no gap, or if the gap has a verdict and every attempt has an outcome.
        """
        reason = self._gap_analysis.stop_reason()
        return reason if self._has_no_gap or not self._open_attempts() else None

    def needed_conditions(self, phase: Phase, block: int) -> tuple[int, ...]:
        """Return the conditions that the next block needs.

        A warm-up block runs all open attempts. A measured block runs one open attempt, which is
        drawn. A resumed experiment has the same draws.
        """
        attempts = self._open_attempts()
        if phase == "measured" and attempts:
            chances = _chances(attempts)
            attempts = [attempts[draw_intervention(self._plan.seed, block, chances)]]
        needed = {BASELINE, CANDIDATE}.union(*(attempt.conditions for attempt in attempts))
        return tuple(sorted(needed))

    def tolerates(self, trial: Trial) -> bool:
        """Return whether this failed trial ends only an attempt, not the experiment."""
        return end_attempts(self._attempts, trial)

    def earliest_block(self) -> int:
        """Return the smallest number of blocks after which the gap can have a verdict."""
        return self._gap_analysis.earliest_block()

    def _open_attempts(self) -> list[Attempt]:
        gap_is_measured = self._gap_analysis.has_measured_enough
        return [
            attempt
            for attempt in self._attempts
            if attempt.planned.may_reach_cause
            and attempt.ended_because is None
            and not (gap_is_measured and attempt.has_outcome(self._min_blocks))
        ]


def attempts_of(terms: ExperimentPlan, judgement: Judgement) -> tuple[Attempt, ...]:
    """Return all attempts of an experiment; the attempts that can reach a cause share alpha."""
    level = judgement.alpha / max(1, sum(planned.may_reach_cause for planned in terms.attempts))
    return tuple(Attempt(planned, level, judgement.primary_metric) for planned in terms.attempts)


def end_attempts(attempts: Iterable[Attempt], trial: Trial) -> bool:
    """End the attempts to which a failed trial belongs; return whether there are any."""
    failed_attempts = [attempt for attempt in attempts if trial.condition in attempt.conditions]
    for attempt in failed_attempts:
        # To leave out only the failed block would break the randomisation.
        attempt.end(f"{trial.failure}{stderr_suffix(trial.error_tail)}")
    return bool(failed_attempts)


class Attempt:
    """One intervention and its blocks so far, on one metric.

    ``level`` is 1 minus the coverage of the interval for the fraction of the gap explained.
    """

    def __init__(self, planned: PlannedIntervention, level: float, metric: str) -> None:
        self.planned = planned
        self.level = level
        self._metric = metric
        self.blocks = InterventionBlocks(level)
        """Blocks that ran the attempt."""
        self.effect = self.blocks.rounded_effect()
        """Effect so far, with the ends of its confidence sets rounded outwards."""
        self._ordered_conditions = (
            planned.baseline_without,
            planned.candidate_without,
            planned.baseline_with,
            planned.candidate_with,
        )
        self.conditions = {*self._ordered_conditions} - {BASELINE, CANDIDATE}
        """Conditions of the attempt, without the two conditions of the gap."""
        self.ended_because: str | None = None
        """Failure that ended the attempt without an outcome; ``None`` if nothing failed."""

    def add_block(self, block: CostsOfBlock) -> None:
        """Add a block if it ran the attempt."""
        if self.ended_because is not None or self.planned.candidate_with not in block.positions:
            return
        if any(condition not in block.costs for condition in self._ordered_conditions):
            self.end(f"a trial with this change has no {self._metric}")
            return
        self.blocks.append(*(block.costs[condition] for condition in self._ordered_conditions))
        self.effect = self.blocks.rounded_effect()

    def end(self, reason: str) -> None:
        """End the attempt; a later reason does not replace the first."""
        self.ended_because = self.ended_because or reason

    def has_outcome(self, min_blocks: int) -> bool:
        """Return whether the outcome is final after at least ``min_blocks`` blocks."""
        return len(self.blocks) >= min_blocks and is_final(self.effect)


def _chances(attempts: list[Attempt]) -> list[float]:
    """Return the chance of each attempt in a draw; the sum is 1."""
    total = sum(attempt.planned.weight for attempt in attempts)
    share_by_seconds = 1.0 - SHARE_OF_FIRST_ATTEMPT - EVENLY_DIVIDED_SHARE
    chances = [
        EVENLY_DIVIDED_SHARE / len(attempts) + share_by_seconds * attempt.planned.weight / total
        for attempt in attempts
    ]
    chances[0] += SHARE_OF_FIRST_ATTEMPT
    return chances


def _status_of(attempt: Attempt) -> ComparisonStatus:
    fraction_of_gap = attempt.effect.log_fraction
    fraction_ci = (fraction_of_gap.low, fraction_of_gap.high)
    closed_part = describe_fraction(fraction_of_gap.estimate, fraction_ci)
    if attempt.ended_because is not None:
        closed_part = "ended"
    elif not attempt.planned.may_reach_cause:
        closed_part = "cannot reach the cause"
    return ComparisonStatus(
        f"with {attempt.planned.intervention}",
        attempt.effect.outcome,
        ratio=None,
        ratio_ci=(None, None),
        blocks=len(attempt.blocks),
        closed_fraction=closed_part,
    )
