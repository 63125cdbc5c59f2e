"""The terms of a gate: two revisions, and what lets the second one through."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from msgspec import Struct, field

from equipoise.model.errors import UnusableInput
from equipoise.model.kinds import TAG, Terms
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
    restart: ClassVar[str | None] = "run the gate again"
    baseline: Revision
    candidate: Revision
    metrics: tuple[str, ...]
    fails_undecided: bool = False
    """Whether what is not known passes or fails."""
    bisect: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Words of the line that finds the commit that made a benchmark slower, by its name."""

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
