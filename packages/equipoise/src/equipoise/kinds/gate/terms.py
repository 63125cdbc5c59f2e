"""The terms of a gate, and its part of a result document."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from msgspec import Struct, field

from equipoise.model.errors import UnusableInput
from equipoise.model.kinds import TAG, Terms
from equipoise.model.quantities import Interval
from equipoise.model.result import ResultDocument
from equipoise.model.revisions import Revision
from equipoise.shared.spelling import option

if TYPE_CHECKING:
    from equipoise.model.record import RunRecord

STUDY = "gate"
"""The study of every plan of a gate."""
MIN_EFFECT = 2.0
"""Default smallest effect that matters, in percent."""


class GatePlan(Struct, Terms, frozen=True, tag_field=TAG, tag="gate"):
    """Terms of a gate; every contrast on every metric shares one false-discovery rate."""

    noun: ClassVar[str] = "gate"
    ranks: ClassVar[bool] = False
    not_adjustable_because: ClassVar[str | None] = "a gate is never adjusted"
    decisive_sides: ClassVar[int] = 2
    restart_hint: ClassVar[str | None] = "run the gate again"
    baseline: Revision
    candidate: Revision
    metrics: tuple[str, ...]
    fails_undecided: bool = False
    """Whether an undecided benchmark fails the gate."""
    bisect: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Words of the line that bisects a benchmark, by its name."""

    def check_resumable(self, run: str) -> None:
        """Refuse to continue: the trees of the revisions are gone."""
        raise UnusableInput(
            f"run {run} is a gate, whose two revisions are removed when it ends",
            hint=f"run equipoise gate again, with a larger {option('budget')}",
        )

    def check_explainable(self, record: RunRecord) -> None:
        """Refuse to explain: the trees of the revisions are gone."""
        raise UnusableInput(
            f"run {record.id} is a gate, whose two revisions are removed when it ends",
            hint="build both, compare them with equipoise compare, and explain that",
        )


GateOutcome = Literal["slower", "passes", "undecided"]
"""``slower``: the whole interval is beyond the smallest effect that matters, on the slower side.
``passes``: no part of it is. ``undecided``: a part of it is."""


class GateRow(Struct, frozen=True):
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
    equivalence_ci: Interval
    """Interval that decides the outcome; each of its two ends holds alone at ``level``."""
    equivalence_level: float
    """1 minus the coverage of ``equivalence_ci``."""


class GateShortage(Struct, frozen=True):
    """Blocks that an undecided gate has measured, and those that it needs."""

    undecided: int
    """Number of undecided benchmarks."""
    blocks: int
    """Blocks of the undecided benchmark that has the fewest."""
    block_s: float
    """Mean seconds of a block."""
    needed_blocks: int | None
    """Forecast number of blocks that decide all benchmarks, those measured included. Null if the
    change of a benchmark is so close to the smallest effect that matters that it has no forecast.
    """
    is_lower_bound: bool = False
    """Whether too few blocks ran for a forecast; then ``needed_blocks`` is the smallest number of
    blocks that can decide anything."""

    @property
    def needed_s(self) -> float | None:
        """Seconds that the needed blocks take; ``None`` without a forecast."""
        return None if self.needed_blocks is None else self.needed_blocks * self.block_s


class GateResult(Struct, frozen=True):
    """The result of a gate."""

    baseline: Revision
    candidate: Revision
    min_effect: float
    """Percent beyond which a slower candidate fails."""
    passed: bool
    rows: tuple[GateRow, ...]
    summary: str
    bisect: dict[str, str] = field(default_factory=dict)
    """Shell line that bisects each slower benchmark, by its name; the same line for all if one
    bisection can search them together."""
    shortage: GateShortage | None = None
    """Null if every benchmark is decided."""


class GateDocument(ResultDocument, frozen=True, kw_only=True, tag="gate"):
    """The result document of a gate."""

    gate: GateResult | None
    """Null if no block ended."""
