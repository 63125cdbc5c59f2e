"""Washouts: the blocks that decide after carry-over could explain a difference that was called.

At the stop, each difference is fitted together with carry-over. If carry-over could explain a whole
difference, the campaign continues with washouts: the coin draws one condition for the whole block,
which runs before each counted trial. Only such blocks count for that difference, by bets that begin
with the first of them (docs/methods/carry-over.md).

The ledger shows the phase: the first counted trial of a block with washouts has position 1. So a
resumed campaign needs neither the clock nor its limits to continue.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import numpy as np

from equipoise.campaign.blocks import complete_blocks
from equipoise.model.plan import Contrast, Plan
from equipoise.model.record import RunRecord, Trial
from equipoise.stats.carry_over import FittedDifference, fit_differences

Blocks = Mapping[int, tuple[Trial, ...]]
MAX_CONDITIONS = 40
"""Maximum number of conditions whose carry-over is fitted: the work grows with its cube."""


def may_add_washouts(plan: Plan) -> bool:
    """Return whether a campaign of this plan can continue with washouts; others only warn.

    - Under ``--washout`` every block has them.
    - Functions share a process, in which no condition runs right before another.
    - Other kinds of campaigns continue with washouts only if their terms allow it.
    - Across layouts the unit is the layout, and a restart would leave layouts half measured.
    - With very many conditions the fit takes too long between blocks.
    - With ``--adjust`` the slopes are learnt from the blocks that a restart leaves out.
    - A bisection, a history, an experiment of `why` and a host of a fleet share rules of stopping
      with other campaigns or commits; a restart of one comparison would break them.
    """
    if len(plan.conditions) > MAX_CONDITIONS:
        return False
    return not (
        plan.measure.washout
        or plan.layouts
        or plan.adjust_by
        or (plan.terms is not None and not plan.terms.may_add_washouts)
        or plan.membership is not None
    )


def is_washout_block(block: tuple[Trial, ...]) -> bool:
    """Return whether a washout ran before each trial of a complete block."""
    return block[0].position == 1


def restarted_conditions(plan: Plan, conditions: Collection[int]) -> frozenset[int]:
    """Return the conditions whose trials before the washouts no longer count.

    ``conditions`` are those of the first complete block with washouts. Every comparison with both
    conditions among them starts again. A baseline and its control keep their trials while another
    comparison needs them.
    """
    restarted = [contrast for contrast in plan.contrasts if set(contrast.pair) <= set(conditions)]
    still_needed = {contrast.baseline for contrast in plan.contrasts if contrast not in restarted}
    left_out = {member for contrast in restarted for member in contrast.pair} - still_needed
    if plan.control is not None and plan.contrasts[0].baseline in left_out:
        left_out.add(plan.control)
    return frozenset(left_out)


def first_washouts(plan: Plan, blocks: Blocks) -> int | None:
    """Return the first complete block of the washouts with which a campaign continued.

    ``None`` without washouts, and if the user chose them from the first block on.
    """
    if plan.measure.washout:
        return None
    return next((number for number, block in blocks.items() if is_washout_block(block)), None)


def decisive_blocks(plan: Plan, complete: Blocks) -> dict[int, tuple[Trial, ...]]:
    """Return the complete blocks without the trials that washouts replaced."""
    first = first_washouts(plan, complete)
    if first is None:
        return dict(complete)
    left_out = restarted_conditions(plan, [trial.condition for trial in complete[first]])
    decisive: dict[int, tuple[Trial, ...]] = {}
    has_begun = False
    for number, block in complete.items():
        has_begun = has_begun or number == first
        decisive_trials = (
            block if has_begun else tuple(t for t in block if t.condition not in left_out)
        )
        if decisive_trials:
            decisive[number] = decisive_trials
    return decisive


def ordinary_blocks(plan: Plan, complete: Blocks) -> dict[int, tuple[Trial, ...]]:
    """Return the complete blocks before the first one with washouts; all where there is none."""
    first = first_washouts(plan, complete)
    if first is None:
        return dict(complete)
    numbers = list(complete)
    return {number: complete[number] for number in numbers[: numbers.index(first)]}


def analysed_blocks(record: RunRecord) -> dict[int, tuple[Trial, ...]]:
    """Return the blocks and trials of a campaign that its result rests on."""
    return decisive_blocks(record.plan, complete_blocks(record.draws, record.trials))


class CarryOverTrials:
    """The trials that a difference and its carry-over are fitted to, in the order of their run."""

    def __init__(self, plan: Plan) -> None:
        self._control = plan.control
        self._baseline = plan.contrasts[0].baseline if plan.contrasts else 0
        self._blocks: list[int] = []
        self._conditions: list[int] = []
        self._costs: list[float] = []
        self._fits: dict[int, dict[int, FittedDifference]] = {}
        """Fits to the blocks so far, by baseline."""

    def add(self, number: int, order: Iterable[int], costs: Mapping[int, float]) -> None:
        """Add a block: the conditions in the order in which they ran, and their costs."""
        self._fits.clear()
        for condition in order:
            self._blocks.append(number)
            # The control is the baseline, run a second time.
            same = condition == self._control
            self._conditions.append(self._baseline if same else condition)
            self._costs.append(costs.get(condition, np.nan))

    def fit(self, contrast: Contrast) -> FittedDifference | None:
        """Fit a difference and its carry-over; ``None`` while the orders cannot separate them."""
        baseline = contrast.baseline
        if baseline not in self._fits:
            costs = np.array(self._costs)
            self._fits[baseline] = (
                {}
                if np.isnan(costs).any()
                else fit_differences(
                    np.array(self._blocks, dtype=np.int64),
                    np.array(self._conditions, dtype=np.int64),
                    costs,
                    baseline=baseline,
                )
            )
        return self._fits[baseline].get(contrast.candidate)
