"""The judge of a campaign that tests causes: what it tries next, and when it stops."""

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

FOR_THE_FIRST = 0.5
"""Part of the blocks for the first open attempt, that of the cause with the most seconds: spread
over all, the blocks of a short campaign would decide none."""

SPREAD_EVENLY = 0.25
"""Part of the blocks that all open attempts share equally; the seconds of their causes divide the
rest."""


class ExplainCampaign(CampaignKind):
    """How a test of causes is judged while it runs."""

    def judge(self, plan: Plan, stopping: Stopping) -> Judge:
        """Return the judge of the gap and of each attempt."""
        return Experiment(plan, experiment_of(plan), stopping)


class Experiment(Judge):
    """Judge of the gap and of each attempt as the blocks come, by the rules of the result.

    ``stopping`` holds the plan's limits, or later ones.
    """

    def __init__(self, plan: Plan, explains: ExperimentPlan, stopping: Stopping) -> None:
        self._plan = plan
        self._gap = InterimAnalysis(plan, stopping)
        self._min_blocks = stopping.min_blocks
        self._attempts = attempts_of(explains, plan.judgement)
        self._has_no_gap = False

    def add(self, block: tuple[Trial, ...]) -> None:
        """Take one complete block without an analysis, as when a campaign is read back."""
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
        """Return why no further block is needed, as of the last analysis; ``None`` if one is.

        No block is needed where there is no gap, or where the gap is called and every attempt has
        its outcome.
        """
        reason = self._gap.stop_reason()
        return reason if self._has_no_gap or not self._open() else None

    def needed_conditions(self, phase: Phase, block: int) -> tuple[int, ...]:
        """Return the conditions that the next block needs.

        All open attempts warm up. A measured block tries one open attempt. The draw depends on the
        seed, the number of the block and the blocks so far. It comes before the order of the block
        and apart from it, so the order stays a fair coin, and a campaign that is read back
        continues with the same draws.
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


def attempts_of(explains: ExperimentPlan, judgement: Judgement) -> tuple[Attempt, ...]:
    """Return all attempts of a campaign, without a block; those that reach a cause share alpha."""
    level = judgement.alpha / max(1, sum(attempt.is_reachable for attempt in explains.attempts))
    return tuple(Attempt(attempt, level, judgement.primary_metric) for attempt in explains.attempts)


def take_failure(attempts: Iterable[Attempt], trial: Trial) -> bool:
    """End the attempts that a failed trial belongs to; return whether there is one."""
    failed = [attempt for attempt in attempts if trial.condition in attempt.conditions]
    for attempt in failed:
        # No block is left out for a failure (rule 1).
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
        """Blocks in which it was tried."""
        self.so_far = self.blocks.rounded_effect()
        """Outcome so far, with sets whose ends are rounded outwards."""
        self._four = (
            planned.baseline_without,
            planned.candidate_without,
            planned.baseline_with,
            planned.candidate_with,
        )
        self.conditions = {*self._four} - {BASELINE, CANDIDATE}
        """Conditions that it does not share with the gap."""
        self.ended_because: str | None = None
        """Why it cannot have an outcome any more: one of its conditions failed."""

    def take(self, block: BlockRead) -> None:
        """Take a block, if the intervention was tried in it."""
        if self.ended_because is not None or self.planned.candidate_with not in block.places:
            return
        if any(condition not in block.costs for condition in self._four):
            self.end(f"a trial with it has no {self._metric}")
            return
        self.blocks.append(*(block.costs[condition] for condition in self._four))
        self.so_far = self.blocks.rounded_effect()

    def end(self, because: str) -> None:
        """End it for the first of several reasons."""
        self.ended_because = self.ended_because or because

    def has_outcome(self, min_blocks: int) -> bool:
        """Return whether its outcome is known after at least this many blocks."""
        return len(self.blocks) >= min_blocks and is_final(self.so_far)


def _weights(attempts: list[Attempt]) -> list[float]:
    """Return how often each attempt is drawn; the weights add up to 1."""
    total = sum(attempt.planned.weight for attempt in attempts)
    by_seconds = 1.0 - FOR_THE_FIRST - SPREAD_EVENLY
    weights = [
        SPREAD_EVENLY / len(attempts) + by_seconds * attempt.planned.weight / total
        for attempt in attempts
    ]
    weights[0] += FOR_THE_FIRST
    return weights


def _status(attempt: Attempt) -> ComparisonStatus:
    logs = attempt.so_far.logs
    closes = describe_fraction(logs.estimate, (logs.low, logs.high))
    if attempt.ended_because is not None:
        closes = "ended"
    elif not attempt.planned.is_reachable:
        closes = "cannot reach it"
    return ComparisonStatus(
        f"with {attempt.planned.intervention}",
        attempt.so_far.outcome,
        None,
        (None, None),
        blocks=len(attempt.blocks),
        closes=closes,
    )
