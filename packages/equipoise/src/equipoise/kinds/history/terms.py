"""The terms of one campaign of a history: the commits whose curve it draws."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from equipoise.model.errors import UnusableInput
from equipoise.model.kinds import TAG
from equipoise.model.plan import Contrast, Plan
from equipoise.model.revisions import Revision
from equipoise.revisions.terms import CommitsPlan
from equipoise.shared.spelling import option

if TYPE_CHECKING:
    from equipoise.model.record import RunRecord

STUDY = "history"
"""The study of every campaign of a history."""


class HistoryPlan(CommitsPlan, frozen=True, kw_only=True, tag_field=TAG, tag="history"):
    """Terms of one campaign of a history: the commits whose curve it draws (docs/statistics.md).

    Its commits begin with the baseline. The campaigns of one series are one history: what they
    claim is a function of the blocks of all of them, in the order in which they began.
    """

    noun: ClassVar[str] = "history"
    not_adjustable_because: ClassVar[str | None] = "a history is never adjusted"
    anew: ClassVar[str] = "begin another campaign of the history"
    baseline: Revision
    latest: Revision
    """The last of the commits, as the user asked for it."""
    selected: tuple[int, ...]
    """Conditions that the curve shows; the first and the last always, others only where something
    changes between two of them."""
    series: str
    """Digest of what makes campaigns one history: the host, the baseline, the command, the build,
    the metric and the terms of judgement."""
    era: str
    """Digest of what numbers of different campaigns share if they can be compared: the toolchain,
    the kernel, the processor."""
    earlier: tuple[str, ...] = ()
    """Run ids of the earlier campaigns of the series in the ledger, in the order in which they
    began."""
    only_new: bool = False
    """Whether it asks only about commits that no earlier campaign of the series knew."""

    def contrasts(self, plan: Plan) -> tuple[Contrast, ...]:
        """Return nothing: its claims rest on all campaigns of its series."""
        return ()

    def check_explainable(self, record: RunRecord) -> None:
        """Refuse to explain: a bisection explains a change."""
        raise UnusableInput(
            f"run {record.id} is a campaign of a history, whose commits are not explained",
            hint="explain a change by its two commits: equipoise bisect --good PARENT --bad COMMIT "
            f"--why, with the same {option('build')} and command",
        )


def history_of(plan: Plan) -> HistoryPlan:
    """Return the terms of a campaign of a history."""
    assert isinstance(plan.terms, HistoryPlan), "only a campaign of a history belongs to a series"
    return plan.terms
