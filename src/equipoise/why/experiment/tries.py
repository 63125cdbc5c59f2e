"""What the blocks of a campaign say of each intervention that it tries."""

from __future__ import annotations

from equipoise.campaign.blocks import BlockRead
from equipoise.measure.untimed import stderr_suffix
from equipoise.model.plan import ExperimentPlan, Judgement, PlannedIntervention
from equipoise.model.record import Trial
from equipoise.stats.intervention import InterventionBlocks, InterventionEffect, is_final

BASELINE, CANDIDATE = 0, 1
"""The conditions of the gap."""


class Tried:
    """One attempt and its blocks.

    Parameters
    ----------
    level
        1 minus the coverage of its interval.
    metric
        The primary one.
    """

    def __init__(self, attempt: PlannedIntervention, level: float, metric: str) -> None:
        self.attempt = attempt
        self.level = level
        self._metric = metric
        self._blocks = InterventionBlocks(level)
        self._so_far = self._blocks.rounded_effect()
        self._four = (
            attempt.baseline_without,
            attempt.candidate_without,
            attempt.baseline_with,
            attempt.candidate_with,
        )
        self.conditions = tuple(i for i in self._four if i not in (BASELINE, CANDIDATE))
        """Those that it does not share with the gap."""
        self.ended_because: str | None = None
        """Why nothing can come of it any more: one of its conditions failed."""

    @property
    def blocks(self) -> int:
        """In which it was tried."""
        return len(self._blocks)

    @property
    def so_far(self) -> InterventionEffect:
        """The outcome, with sets whose ends are rounded outwards."""
        return self._so_far

    def exactly(self) -> InterventionEffect:
        """The same outcome, with the ends of the sets as they are."""
        return self._blocks.exact_effect()

    def take(self, block: BlockRead) -> None:
        """Take a block, if this was tried in it."""
        if self.ended_because is not None or self.attempt.candidate_with not in block.places:
            return
        if any(condition not in block.costs for condition in self._four):
            self.ended_because = f"a trial with it has no {self._metric}"
            return
        self._blocks.append(*(block.costs[condition] for condition in self._four))
        self._so_far = self._blocks.rounded_effect()

    def fail(self, trial: Trial) -> None:
        """Take a trial with it that failed: a block of it is never left out for that (rule 1)."""
        if self.ended_because is None:
            self.ended_because = f"{trial.failure}{stderr_suffix(trial.error_tail)}"

    def is_settled(self, min_blocks: int) -> bool:
        """Whether it needs no further block."""
        if self.ended_because is not None:
            return True
        return self.blocks >= min_blocks and is_final(self._so_far)


class Tries:
    """All attempts of a campaign; they share alpha."""

    def __init__(self, explains: ExperimentPlan, judgement: Judgement) -> None:
        level = judgement.alpha / max(1, len(explains.attempts))
        self.each = tuple(
            Tried(attempt, level, judgement.primary_metric) for attempt in explains.attempts
        )

    def take(self, block: BlockRead) -> None:
        """Take one complete block."""
        for one in self.each:
            one.take(block)

    def fail(self, trial: Trial) -> bool:
        """Take a trial that failed; whether it is of an attempt alone, and ends no more than it."""
        of = [one for one in self.each if trial.condition in one.conditions]
        for one in of:
            one.fail(trial)
        return bool(of)
