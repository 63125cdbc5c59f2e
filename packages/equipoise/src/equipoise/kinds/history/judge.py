"""The judge of a campaign of a history, which chooses the next block."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from equipoise.campaign.blocks import BlockRead
from equipoise.campaign.progress import ComparisonStatus
from equipoise.design.limits import CampaignLimits
from equipoise.kinds.history.statistics import History
from equipoise.kinds.history.terms import history_of
from equipoise.model.plan import Plan, Stopping
from equipoise.model.quantities import counted, joined
from equipoise.model.record import RunRecord
from equipoise.model.revisions import short_name
from equipoise.revisions.judging import REFERENCE_COMMIT, Builds, CommitsJudge


def series_of(record: RunRecord) -> tuple[RunRecord, ...]:
    """Return the campaigns of a history up to a recorded one, in the order of their starts."""
    assert tuple(campaign.id for campaign in record.earlier) == history_of(record.plan).earlier, (
        "a campaign of a history is read with the earlier ones of its series"
    )
    return (*record.earlier, record)


def read_history(records: Sequence[RunRecord]) -> History:
    """Return the history after all blocks of the campaigns of a series.

    Parameters
    ----------
    records
        At least one campaign, in the order of their starts.
    """
    history = _history_of(records[0].plan)
    for record in records:
        HistoryJudge(record.plan, record.plan.stopping, history=history).replay(record)
    return history


def check_judgement(limits: CampaignLimits) -> None:
    """Check the limits by which a history is judged.

    Raise `UnusableInput` if there is no smallest effect that matters.
    """
    judgement = limits.judgement()
    History(alpha=judgement.alpha, min_effect=judgement.min_effect)


class HistoryJudge(CommitsJudge):
    """The judge of a campaign of a history, which chooses the next block.

    Parameters
    ----------
    earlier
        Earlier campaigns of the series, in the order in which they began.
    history
        The history after their blocks, if it is already known.
    """

    def __init__(
        self,
        plan: Plan,
        stopping: Stopping,
        builds: Builds | None = None,
        earlier: Sequence[RunRecord] = (),
        history: History | None = None,
    ) -> None:
        super().__init__(plan, stopping, builds)
        if history is None:
            history = read_history(earlier) if earlier else _history_of(plan)
        self.history = history
        """The history after the blocks so far."""
        self._next: tuple[object, tuple[int, ...]] = (None, ())
        self._updates = 0
        self._blocks = 0
        terms = history_of(plan)
        history.begin_campaign(
            [commit.hash for commit in terms.commits],
            terms.selected,
            terms.era,
            only_new=terms.only_new,
        )

    def _add_costs(self, number: int, blocks: Mapping[int, BlockRead]) -> None:
        block = blocks[0]
        self._updates += 1
        self._blocks += 1
        if block.resolution is not None:
            self.history.set_resolution(block.resolution)
        self.history.add(block.costs, sorted(block.costs, key=block.positions.__getitem__))

    def _withdraw(self, commit: int, benchmark: int) -> None:
        self._updates += 1
        self.history.withdraw(commit)

    def _choose_conditions(self, built: Collection[int], build_trials: float) -> tuple[int, ...]:
        # The stop reason and the next block are asked for one after the other.
        question = (self._updates, frozenset(built), build_trials)
        if self._next[0] != question:
            self._next = (question, self.history.next_block(built, build_trials))
        return self._next[1]

    def analyse(self) -> tuple[ComparisonStatus, ...]:
        """Return the number of measured commits, and the changes that are certain."""
        measured, changes = self.history.progress()
        names = self.plan.conditions
        course = f"{counted(measured, 'commit')} measured"
        if changes:
            until = joined([short_name(change.pair.until) for change in changes])
            course += f", changes at {until}"
        return (
            ComparisonStatus(
                names[-1].name,
                "undecided",
                None,
                (None, None),
                baseline=names[REFERENCE_COMMIT].name,
                blocks=self._blocks,
                search=course,
            ),
        )


def _history_of(plan: Plan) -> History:
    judgement = plan.judgement
    return History(alpha=judgement.alpha, min_effect=judgement.min_effect)
