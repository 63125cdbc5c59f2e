"""Washouts: extra runs that keep carry-over out of a comparison.

Carry-over is the effect of a trial on the next trial. When a campaign could stop, each difference
is fitted together with carry-over. If carry-over could explain a whole difference, its comparison
restarts: from then on only blocks with washouts count for it (docs/methods/carry-over.md).

In a block with washouts, the coin draws one condition. This condition runs before each counted
trial. So the first washout has position 0 in the block, and the first counted trial position 1.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import numpy as np

from equipoise.campaign.blocks import complete_blocks
from equipoise.model.plan import Contrast, Plan
from equipoise.model.record import RunRecord, Trial
from equipoise.stats.carry_over import FittedDifference, fit_differences

Blocks = Mapping[int, tuple[Trial, ...]]
"""Trials of each block, by the number of the block."""
MAX_CONDITIONS = 40
"""Maximum number k of conditions for which carry-over is fitted: the time grows with k³."""


def may_add_washouts(plan: Plan) -> bool:
    """Return whether a campaign of this plan can continue with washouts.

    The campaign cannot add washouts, and only warns, in these cases:

    - All blocks have washouts already (``--washout``).
    - The functions of a process alternate, so no function runs right before another.
    - With layouts, a restart would leave layouts half measured.
    - With more than `MAX_CONDITIONS` conditions, the fit takes too long.
    - With ``--duet``, no trial runs before another of its block.
    - With ``--adjust``, the fit of the covariates needs the blocks before the restart.
    - In a bisection, a history, an experiment of `why` and a fleet, comparisons stop together, so
      one comparison alone cannot restart.
    """
    if len(plan.conditions) > MAX_CONDITIONS:
        return False
    return not (
        plan.measure.washout
        or plan.layouts
        or plan.measure.cpu_sets
        or plan.adjust_by
        or (plan.terms is not None and not plan.terms.may_add_washouts)
        or plan.membership is not None
    )


def is_washout_block(block: tuple[Trial, ...]) -> bool:
    """Return whether a complete block has washouts."""
    return block[0].position == 1


def restarted_conditions(plan: Plan, conditions: Collection[int]) -> frozenset[int]:
    """Return the conditions whose trials before the washouts no longer count.

    ``conditions`` ran in the first block with washouts. A comparison restarts if both of its
    conditions are among ``conditions``. The trials of its baseline, and of the control, still count
    if another comparison has this baseline and does not restart.
    """
    restarted = [contrast for contrast in plan.contrasts if set(contrast.pair) <= set(conditions)]
    kept_baselines = {contrast.baseline for contrast in plan.contrasts if contrast not in restarted}
    left_out = {index for contrast in restarted for index in contrast.pair} - kept_baselines
    # The control is a second run of the baseline.
    if plan.control is not None and plan.contrasts[0].baseline in left_out:
        left_out.add(plan.control)
    return frozenset(left_out)


def first_washout_block(plan: Plan, blocks: Blocks) -> int | None:
    """Return the number of the first complete block with washouts.

    ``None`` if there is no such block, or if the user requested washouts in all blocks.
    """
    if plan.measure.washout:
        return None
    return next((number for number, block in blocks.items() if is_washout_block(block)), None)


def decisive_blocks(plan: Plan, complete: Blocks) -> dict[int, tuple[Trial, ...]]:
    """Return the trials that decide the verdicts, by block.

    If a comparison restarted, its trials before the first block with washouts are left out.
    """
    washout_start = first_washout_block(plan, complete)
    if washout_start is None:
        return dict(complete)
    left_out = restarted_conditions(plan, [trial.condition for trial in complete[washout_start]])
    decisive: dict[int, tuple[Trial, ...]] = {}
    is_after_restart = False
    for number, block in complete.items():
        is_after_restart = is_after_restart or number == washout_start
        excluded = frozenset() if is_after_restart else left_out
        trials = tuple(trial for trial in block if trial.condition not in excluded)
        if trials:
            decisive[number] = trials
    return decisive


def blocks_before_washouts(plan: Plan, complete: Blocks) -> dict[int, tuple[Trial, ...]]:
    """Return the complete blocks before the first block with washouts."""
    washout_start = first_washout_block(plan, complete)
    if washout_start is None:
        return dict(complete)
    numbers = list(complete)
    return {number: complete[number] for number in numbers[: numbers.index(washout_start)]}


def analysed_blocks(record: RunRecord) -> dict[int, tuple[Trial, ...]]:
    """Return the trials of a campaign that decide its verdicts, by block."""
    return decisive_blocks(record.plan, complete_blocks(record.draws, record.trials))


class CarryOverTrials:
    """Collects the costs of trials in the order in which they ran, and fits carry-over."""

    def __init__(self, plan: Plan) -> None:
        self._control = plan.control
        self._baseline = plan.contrasts[0].baseline if plan.contrasts else 0
        self._blocks: list[int] = []
        self._conditions: list[int] = []
        self._costs: list[float] = []
        self._fits: dict[int, dict[int, FittedDifference]] = {}
        """Fits to the blocks so far, by baseline."""

    def add(self, number: int, order: Iterable[int], costs: Mapping[int, float]) -> None:
        """Add a block: its conditions in the order in which they ran, and their costs."""
        self._fits.clear()
        for condition in order:
            self._blocks.append(number)
            is_control = condition == self._control
            self._conditions.append(self._baseline if is_control else condition)
            self._costs.append(costs.get(condition, np.nan))

    def fit(self, contrast: Contrast) -> FittedDifference | None:
        """Fit a difference and its carry-over; ``None`` if the orders cannot separate them yet."""
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
