"""What somebody who watches a campaign is told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from equipoise.model.interval import Interval
from equipoise.model.plan import Plan
from equipoise.model.result import Verdict
from equipoise.model.why import Outcome


@dataclass(frozen=True, slots=True)
class Standing:
    """Where one comparison, or one intervention, stands after the last block."""

    candidate: str
    verdict: Verdict | Outcome
    ratio: float | None
    ratio_ci: Interval
    baseline: str = ""
    blocks: int = 0
    """In which both ran."""
    closes: str = ""
    """What an intervention closes of a gap, in words; then there is no ratio."""


@dataclass(frozen=True, slots=True)
class Moment:
    """Where a campaign stands."""

    blocks: int
    """Analysed blocks so far."""
    elapsed_s: float
    """Spent so far, of the budget."""
    standings: tuple[Standing, ...]


class Watcher(Protocol):
    """Told of a campaign's progress, between trials only."""

    def begins(self, run_id: str, plan: Plan, earliest_block: int, blocks_before: int) -> None:
        """A segment begins after so many blocks; no verdict comes before ``earliest_block``."""

    def trial_ended(self, seconds: float, of: int) -> None:
        """One of the ``of`` trials of a block is over, with washout a pair; it took ``seconds``."""

    def warmed_up(self) -> None:
        """The warm-up trials are over."""

    def block_ended(self, moment: Moment) -> None:
        """A block is complete and has been judged."""

    def waits(self) -> None:
        """A long trial is running: called about once a second."""

    def ends(self) -> None:
        """The segment is over, for whatever reason."""


class Unwatched:
    """Nobody watches."""

    def begins(self, run_id: str, plan: Plan, earliest_block: int, blocks_before: int) -> None:
        """Say nothing."""

    def trial_ended(self, seconds: float, of: int) -> None:
        """Say nothing."""

    def warmed_up(self) -> None:
        """Say nothing."""

    def block_ended(self, moment: Moment) -> None:
        """Say nothing."""

    def waits(self) -> None:
        """Say nothing."""

    def ends(self) -> None:
        """Say nothing."""
