"""Judge a campaign of a history while it runs: add each block, and choose the next one."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from equipoise.campaign.blocks import CostsOfBlock
from equipoise.campaign.progress import ComparisonStatus
from equipoise.design.limits import CampaignLimits
from equipoise.kinds.history.statistics import History
from equipoise.kinds.history.terms import history_terms
from equipoise.model.plan import Plan, Stopping
from equipoise.model.quantities import counted, joined
from equipoise.model.record import RunRecord
from equipoise.model.revisions import short_name
from equipoise.revisions.judging import REFERENCE_COMMIT, Builds, CommitsJudge


def campaigns_of_series(record: RunRecord) -> tuple[RunRecord, ...]:
    """Return all campaigns of the series up to this campaign, in the order of their starts."""
    assert (
        tuple(campaign.id for campaign in record.earlier_runs)
        == history_terms(record.plan).earlier_ids
    ), "a campaign of a history is read with the earlier campaigns of its series"
    return (*record.earlier_runs, record)


def read_history(records: Sequence[RunRecord]) -> History:
    """Return the history after the campaigns of a series, in the order of their starts."""
    history = _empty_history(records[0].plan)
    for record in records:
        HistoryJudge(record.plan, record.plan.stopping, history=history).replay(record)
    return history


def check_judgement(limits: CampaignLimits) -> None:
    """Raise `UnusableInput` if the limits have no smallest effect that matters."""
    judgement = limits.judgement()
    History(alpha=judgement.alpha, min_effect=judgement.min_effect)


class HistoryJudge(CommitsJudge):
    """Interim analysis of a campaign of a history, which also chooses the next block.

    ``earlier`` has the earlier campaigns, in the order of their starts. ``history`` is the history
    after the earlier campaigns, or ``None``.
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
            history = read_history(earlier) if earlier else _empty_history(plan)
        self.history = history
        """History after the blocks so far."""
        self._cached_choice: tuple[object, tuple[int, ...]] = (None, ())
        """Key of the cache (the arguments of the choice), and the chosen conditions."""
        self._update_count = 0
        """Number of added blocks and withdrawn commits. Each may change the next choice."""
        self._block_count = 0
        terms = history_terms(plan)
        history.begin_campaign(
            [commit.hash for commit in terms.commits],
            terms.selected,
            terms.era,
            only_new=terms.only_new,
        )

    def _add_costs(self, number: int, blocks: Mapping[int, CostsOfBlock]) -> None:
        # A history measures one benchmark, which has the index 0.
        block = blocks[0]
        self._update_count += 1
        self._block_count += 1
        if block.resolution is not None:
            self.history.set_resolution(block.resolution)
        self.history.add(block.costs, sorted(block.costs, key=block.positions.__getitem__))

    def _withdraw_from_search(self, commit: int, benchmark: int) -> None:
        self._update_count += 1
        self.history.withdraw(commit)

    def _choose_conditions(self, built: Collection[int], build_trials: float) -> tuple[int, ...]:
        # The check for a stop and the next block need the same choice.
        arguments = (self._update_count, frozenset(built), build_trials)
        cached_arguments, conditions = self._cached_choice
        if cached_arguments != arguments:
            conditions = self.history.next_block(built, build_trials)
            self._cached_choice = (arguments, conditions)
        return conditions

    def analyse(self) -> tuple[ComparisonStatus, ...]:
        """Return one status, with the number of measured commits and the certain changes."""
        measured_count, changes = self.history.progress()
        conditions = self.plan.conditions
        progress = f"{counted(measured_count, 'commit')} measured"
        if changes:
            commits = joined([short_name(change.pair.later_hash) for change in changes])
            progress += f", changes at {commits}"
        return (
            ComparisonStatus(
                conditions[-1].name,
                "undecided",
                None,
                (None, None),
                baseline=conditions[REFERENCE_COMMIT].name,
                blocks=self._block_count,
                search_status=progress,
            ),
        )


def _empty_history(plan: Plan) -> History:
    judgement = plan.judgement
    return History(alpha=judgement.alpha, min_effect=judgement.min_effect)
