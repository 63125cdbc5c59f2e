"""What looks at a campaign that tests explanations, and says what it tries next."""

from __future__ import annotations

from typing import Literal

from equipoise.campaign.blocks import read_block
from equipoise.campaign.interim import InterimAnalysis
from equipoise.campaign.progress import ComparisonStatus
from equipoise.design.coin import draw_intervention
from equipoise.model.plan import ExperimentPlan, Plan, Stopping
from equipoise.model.record import Phase, Trial
from equipoise.why.experiment.tries import BASELINE, CANDIDATE, Tried, Tries
from equipoise.why.experiment.words import closes_so_far

FOR_THE_FIRST = 0.5
"""This part of the blocks goes to the open attempt that stands first, that of the cause with the
most seconds: spread over all, a short campaign would decide none."""

SPREAD_EVENLY = 0.25
"""This part goes to all open attempts alike, the rest by the seconds of their causes."""


class Experiment:
    """Judges the gap and each attempt as the blocks come, by the same rules as the result."""

    def __init__(self, plan: Plan, explains: ExperimentPlan, stopping: Stopping) -> None:
        self._plan = plan
        self._gap = InterimAnalysis(plan, stopping)
        self._min_blocks = stopping.min_blocks
        self._tries = Tries(explains, plan.judgement)
        self._nothing_to_explain = False

    def add(self, block: tuple[Trial, ...]) -> None:
        """Take one complete block without looking, as when a campaign is read back."""
        self._gap.add(block)
        self._tries.take(read_block(block, self._plan))

    def analyse(self) -> tuple[ComparisonStatus, ...]:
        """Look: where the gap and each attempt stand after the blocks so far."""
        gap = self._gap.analyse()
        self._nothing_to_explain = gap[0].verdict == "equivalent"
        return (*gap, *map(_status, self._tries.each))

    def stop_reason(self) -> Literal["verdict", "precision"] | None:
        """Why no further block is needed, as of the last look; ``None`` while one is.

        Nothing is needed where there is no gap, or it is called and every attempt has its outcome.
        """
        why = self._gap.stop_reason()
        return why if self._nothing_to_explain or not self._open() else None

    def needed_conditions(self, phase: Phase, block: int) -> tuple[int, ...]:
        """The conditions that this block needs, which comes next.

        All that is open warms up. A measured block tries one of the attempts that are open: which,
        is a function of the seed, the number of the block and the blocks so far, drawn before and
        apart from its order, so the order stays a fair coin given all of that, and a campaign that
        is read back goes on alike.
        """
        attempts = self._open()
        if phase == "measured" and attempts:
            weights = _shares(attempts)
            attempts = [attempts[draw_intervention(self._plan.seed, block, weights)]]
        needed = {BASELINE, CANDIDATE}.union(*(one.conditions for one in attempts))
        return tuple(sorted(needed))

    def tolerates(self, trial: Trial) -> bool:
        """Whether only an attempt ends because this trial failed."""
        return self._tries.fail(trial)

    def earliest_block(self) -> int:
        """The least number of blocks after which the gap can be called."""
        return self._gap.earliest_block()

    def _open(self) -> list[Tried]:
        return [one for one in self._tries.each if not one.is_settled(self._min_blocks)]


def _shares(attempts: list[Tried]) -> list[float]:
    """How often each is drawn; they add up to 1."""
    total = sum(one.attempt.weight for one in attempts)
    by_seconds = 1.0 - FOR_THE_FIRST - SPREAD_EVENLY
    shares = [
        SPREAD_EVENLY / len(attempts) + by_seconds * one.attempt.weight / total for one in attempts
    ]
    shares[0] += FOR_THE_FIRST
    return shares


def _status(one: Tried) -> ComparisonStatus:
    found = one.so_far
    return ComparisonStatus(
        f"with {one.attempt.intervention}",
        found.outcome,
        None,
        (None, None),
        blocks=one.blocks,
        closes=closes_so_far(found, one.ended_because),
    )
