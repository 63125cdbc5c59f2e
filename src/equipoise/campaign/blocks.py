"""From recorded trials to the arrays that statistics take.

Which trials count is decided here and only here, by rules that never look at a time.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from equipoise.model.plan import Plan
from equipoise.model.record import RunRecord
from equipoise.model.trial import CUT_BLOCK, WARMUP_RUN, WASHOUT_RUN, Trial

TIMED_OUT = math.inf
"""The cost of a trial that timed out: slower than every other (rule 1)."""


@dataclass(frozen=True, slots=True)
class PairedBlocks:
    """Baseline and one candidate in the complete blocks of a campaign.

    All arrays have shape ``(blocks,)``; costs are in the metric's unit, ``inf`` for a trial
    that timed out.
    """

    baseline: NDArray[np.float64]
    candidate: NDArray[np.float64]
    baseline_first: NDArray[np.bool_]


def complete_blocks(plan: Plan, trials: Iterable[Trial]) -> dict[int, tuple[Trial, ...]]:
    """The measured blocks in which every condition finished, by number, in position order.

    A block that an interruption cut is left out whole and never completed later: completing
    it would let whoever interrupts choose (verdict.md §1).
    """
    by_block: dict[int, list[Trial]] = defaultdict(list)
    for trial in trials:
        if trial.phase == "measured" and not trial.washout:
            by_block[trial.block].append(trial)
    return {
        number: tuple(sorted(block, key=lambda trial: trial.position))
        for number, block in sorted(by_block.items())
        if len(block) == len(plan.conditions)
    }


def left_out_because(trial: Trial, complete: dict[int, tuple[Trial, ...]]) -> str | None:
    """Why a trial is not analysed; ``None`` if it is."""
    if trial.phase == "warmup":
        return WARMUP_RUN
    if trial.washout:
        return WASHOUT_RUN
    return None if trial.block in complete else CUT_BLOCK


def cut_blocks(record: RunRecord) -> int:
    """How many measured blocks were drawn and begun but never completed."""
    complete = complete_blocks(record.plan, record.trials)
    drawn = {draw.block for draw in record.draws if draw.phase == "measured"}
    return len(drawn) - len(complete)


def cost(trial: Trial, metric: str) -> float | None:
    """What a trial cost in one metric; ``None`` if that is not known."""
    if trial.timed_out:
        return TIMED_OUT
    own = [s.value for s in trial.samples if s.metric == metric and s.iteration is None]
    if own:
        return own[-1]
    value = getattr(trial.accounting, metric, None)
    return None if value is None else float(value)


def paired_blocks(
    blocks: Iterable[tuple[Trial, ...]], candidate: int, metric: str, baseline: int = 0
) -> PairedBlocks:
    """Pair a candidate with the baseline, block by block.

    Raises
    ------
    LookupError
        A trial of either does not know the metric.
    """
    pairs: list[tuple[float, float, bool]] = []
    for block in blocks:
        found = {trial.condition: trial for trial in block}
        first, second = found[baseline], found[candidate]
        a, b = cost(first, metric), cost(second, metric)
        if a is None or b is None:
            raise LookupError(metric)
        pairs.append((a, b, first.position < second.position))
    return PairedBlocks(
        baseline=np.array([a for a, _, _ in pairs], dtype=np.float64),
        candidate=np.array([b for _, b, _ in pairs], dtype=np.float64),
        baseline_first=np.array([first for _, _, first in pairs], dtype=np.bool_),
    )
