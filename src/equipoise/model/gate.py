"""A gate: two revisions of one repository, and whether the later one is too slow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from equipoise.model.interval import Interval

STUDY = "gate"
"""The study of every plan that has a gate."""

GateOutcome = Literal["slower", "passes", "undecided"]
"""``slower``: the whole interval lies beyond the smallest effect that matters, on the slower side.
``passes``: none of it does. ``undecided``: some of it does."""

BENCHMARK = "benchmark"
"""The factor whose levels are the benchmarks of a gate, each a process of its own."""
REVISION = "revision"
"""The factor whose levels are compared."""
OF_BENCHMARK = " time_s"
"""What stands behind the name of a benchmark in the metric that a process of several reports."""

_SHOWN_DIGITS = 10


@dataclass(frozen=True, slots=True)
class Revision:
    """One revision as it was checked out."""

    asked: str
    """As the user named it."""
    commit: str
    """The whole name of its commit."""
    uncommitted: bool = False
    """Whether the changes of tracked files in the working tree were put on top of it."""

    @property
    def shown(self) -> str:
        """``main (1a2b3c4d5e)``."""
        changes = " with uncommitted changes" if self.uncommitted else ""
        return f"{self.asked} ({self.commit[:_SHOWN_DIGITS]}{changes})"


@dataclass(frozen=True, slots=True)
class Gated:
    """What makes a plan a gate; every contrast on every metric shares one false-discovery rate."""

    baseline: Revision
    candidate: Revision
    metrics: tuple[str, ...]
    fails_undecided: bool = False
    """Whether what is not known passes or fails."""
    again: str = ""
    """The shell line that runs it again."""


@dataclass(frozen=True, slots=True)
class GateRow:
    """One benchmark: the candidate revision against the baseline on one metric."""

    benchmark: str
    metric: str
    baseline_median: float | None
    candidate_median: float | None
    ratio: float | None
    ratio_ci: Interval
    level: float
    """1 minus the coverage of ``ratio_ci``."""
    blocks: int
    outcome: GateOutcome
    summary: str


@dataclass(frozen=True, slots=True)
class GateResult:
    """Whether the gate lets the candidate through."""

    baseline: Revision
    candidate: Revision
    min_effect: float
    """In percent: slower by more than this fails."""
    passed: bool
    rows: tuple[GateRow, ...]
    summary: str
    again: str
    """The shell line that runs it again in the repository, coin and revisions included."""
