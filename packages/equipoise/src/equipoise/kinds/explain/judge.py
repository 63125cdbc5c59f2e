"""The judge of a test of causes: it chooses the next intervention, and the stop."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from equipoise.campaign.blocks import BlockRead, read_block
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
"""Places of the gap's conditions in the plan."""

SHARE_OF_FIRST_ATTEMPT = 0.5
"""Share of the blocks for the first open attempt, whose cause has the most seconds. If all attempts
shared them, a short campaign would decide none."""

EQUAL_SHARE = 0.25
"""Share of the blocks that is divided equally among open attempts; the seconds of their causes
divide the rest."""


class ExplainCampaign(CampaignKind):
    """The interim analysis of a test of causes."""

    def judge(self, plan: Plan, stopping: Stopping) -> Judge:
        """Return the judge of the gap and of each attempt."""
        return Experiment(plan, experiment_of(plan), stopping)


class Experiment(Judge):
    """The judge of the gap and of each attempt, by the rules of the result.

    ``stopping`` has the limits of the plan, or those of a resumed campaign.
    """

    def __init__(self, plan: Plan, terms: ExperimentPlan, stopping: Stopping) -> None:
        self._plan = plan
        self._gap = InterimAnalysis(plan, stopping)
        self._min_blocks = stopping.min_blocks
        self._attempts = attempts_of(terms, plan.judgement)
        self._has_no_gap = False

    def add(self, block: tuple[Trial, ...]) -> None:
        """Add one complete block without an analysis, as for a campaign that is read back."""
        self._gap.add(block)
        read = read_block(block, self._plan)
        for attempt in self._attempts:
            attempt.take(read)

    def analyse(self) -> tuple[ComparisonStatus, ...]:
        """Return the status of the gap and of each attempt after the blocks so far."""
        gap = self._gap.analyse()
        self._has_no_gap = gap[0].verdict == "equivalent"
        return (*gap, *map(_status, self._attempts))

    def stop_reason(self) -> Literal["verdict", "precision"] | None:
        """Return why no further block is needed, by the last analysis; ``None`` if one is.

        No block is needed if there is no gap, or if the gap is called and every attempt has
        its outcome.
        """
        reason = self._gap.stop_reason()
        return reason if self._has_no_gap or not self._open() else None

    def needed_conditions(self, phase: Phase, block: int) -> tuple[int, ...]:
        """Return the conditions that the next block needs.

        All open attempts warm up. A measured block tries one open attempt, which is drawn by the
        seed, the number of the block and the blocks so far. The order of the block is drawn
        separately, so it stays a fair coin, and a campaign that is read back has the same draws.
        """
        attempts = self._open()
        if phase == "measured" and attempts:
            weights = _weights(attempts)
            attempts = [attempts[draw_intervention(self._plan.seed, block, weights)]]
        needed = {BASELINE, CANDIDATE}.union(*(attempt.conditions for attempt in attempts))
        return tuple(sorted(needed))

    def tolerates(self, trial: Trial) -> bool:
        """Return whether this failed trial ends an attempt and not the campaign."""
        return take_failure(self._attempts, trial)

    def earliest_block(self) -> int:
        """Return the least number of blocks after which the gap can be called."""
        return self._gap.earliest_block()

    def _open(self) -> list[Attempt]:
        may_settle = self._gap.has_measured_enough
        return [
            each
            for each in self._attempts
            if each.planned.is_reachable
            and each.ended_because is None
            and not (may_settle and each.has_outcome(self._min_blocks))
        ]


def attempts_of(terms: ExperimentPlan, judgement: Judgement) -> tuple[Attempt, ...]:
    """Return all attempts of a campaign, without a block; those that reach a cause share alpha."""
    level = judgement.alpha / max(1, sum(attempt.is_reachable for attempt in terms.attempts))
    return tuple(Attempt(attempt, level, judgement.primary_metric) for attempt in terms.attempts)


def take_failure(attempts: Iterable[Attempt], trial: Trial) -> bool:
    """End the attempts with a failed trial; return whether there is one."""
    failed = [attempt for attempt in attempts if trial.condition in attempt.conditions]
    for attempt in failed:
        # A failure must not leave out a block (rule 1).
        attempt.end(f"{trial.failure}{stderr_suffix(trial.error_tail)}")
    return bool(failed)


class Attempt:
    """One intervention and its blocks so far, on the primary metric.

    ``level`` is 1 minus the coverage of its interval.
    """

    def __init__(self, planned: PlannedIntervention, level: float, metric: str) -> None:
        self.planned = planned
        self.level = level
        self._metric = metric
        self.blocks = InterventionBlocks(level)
        """Blocks in which the intervention was tried."""
        self.effect = self.blocks.rounded_effect()
        """Effect so far; the ends of its sets are rounded outwards."""
        self._conditions_in_order = (
            planned.baseline_without,
            planned.candidate_without,
            planned.baseline_with,
            planned.candidate_with,
        )
        self.conditions = {*self._conditions_in_order} - {BASELINE, CANDIDATE}
        """Conditions of the attempt, without those of the gap."""
        self.ended_because: str | None = None
        """Reason why it has no outcome: a failure of one of its conditions."""

    def take(self, block: BlockRead) -> None:
        """Add a block if it tried the intervention."""
        if self.ended_because is not None or self.planned.candidate_with not in block.positions:
            return
        if any(condition not in block.costs for condition in self._conditions_in_order):
            self.end(f"a trial with it has no {self._metric}")
            return
        self.blocks.append(*(block.costs[condition] for condition in self._conditions_in_order))
        self.effect = self.blocks.rounded_effect()

    def end(self, because: str) -> None:
        """End the attempt; the first reason counts."""
        self.ended_because = self.ended_because or because

    def has_outcome(self, min_blocks: int) -> bool:
        """Return whether the outcome is final after at least ``min_blocks`` blocks."""
        return len(self.blocks) >= min_blocks and is_final(self.effect)


def _weights(attempts: list[Attempt]) -> list[float]:
    """Return the chance of each attempt in a draw; the sum is 1."""
    total = sum(attempt.planned.weight for attempt in attempts)
    by_seconds = 1.0 - SHARE_OF_FIRST_ATTEMPT - EQUAL_SHARE
    weights = [
        EQUAL_SHARE / len(attempts) + by_seconds * attempt.planned.weight / total
        for attempt in attempts
    ]
    weights[0] += SHARE_OF_FIRST_ATTEMPT
    return weights


def _status(attempt: Attempt) -> ComparisonStatus:
    logs = attempt.effect.logs
    closes = describe_fraction(logs.estimate, (logs.low, logs.high))
    if attempt.ended_because is not None:
        closes = "ended"
    elif not attempt.planned.is_reachable:
        closes = "cannot reach it"
    return ComparisonStatus(
        f"with {attempt.planned.intervention}",
        attempt.effect.outcome,
        None,
        (None, None),
        blocks=len(attempt.blocks),
        closes=closes,
    )
