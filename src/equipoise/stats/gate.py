"""A gate's decision on which comparisons are too slow, valid however often one asks.

The null hypothesis of each comparison is that the candidate is slower by no more than the smallest
effect that matters. A comparison fails where the whole interval lies beyond that effect. Of K
comparisons R fail if each does so at level alpha·R/K, R the largest possible: inverting the
intervals at the stop gives an e-value of at least K/(alpha·R) against each of these hypotheses, so
that this is e-BH (Wang and Ramdas 2022), and the expected share of failures without cause is at
most alpha. Where nothing is too slow, the chance that anything fails is at most alpha.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from msgspec import Struct

from equipoise.model.result import GateOutcome
from equipoise.stats.sequence import PairedBlocks
from equipoise.stats.verdict import (
    ComparisonVerdict,
    VerdictCache,
    check_alpha,
    judge_alone,
    judge_cached,
    margin_of,
)


class GateDecision(Struct, frozen=True):
    """Outcome of one comparison at a gate, and the verdict whose interval it rests on."""

    outcome: GateOutcome
    judged: ComparisonVerdict


def judge_gate(
    comparisons: Sequence[PairedBlocks],
    *,
    min_effect: float,
    alpha: float,
    cache: VerdictCache | None = None,
) -> tuple[GateDecision, ...]:
    """Decide for each candidate whether it is slower by more than the smallest effect that matters.

    What passes is selected in the same manner as what fails, so that both are known at their level
    and one that got its outcome keeps it while the others get more blocks: R can only grow.

    Parameters
    ----------
    comparisons
        Blocks of each candidate.
    min_effect
        Smallest effect that matters, in percent from 0 up.
    alpha
        Between 0 and 1.
    cache
        Earlier verdicts on the same comparisons with the same smallest effect.

    Returns
    -------
    One for each comparison, in their order.

    Raises
    ------
    UnusableInput
        ``min_effect`` or ``alpha`` is out of range.
    """
    margin = margin_of(min_effect)
    check_alpha(alpha)
    cache = {} if cache is None else cache
    tested = len(comparisons)

    @functools.cache
    def at(level: float) -> list[ComparisonVerdict]:
        if tested == 1:
            return [judge_alone(comparisons[0], margin, level)]
        return [
            judge_cached(place, blocks, margin, level, cache)
            for place, blocks in enumerate(comparisons)
        ]

    def beyond(one: ComparisonVerdict) -> bool:
        return one.low > margin

    def within(one: ComparisonVerdict) -> bool:
        return one.high <= margin

    slower, passes = _selected(at, beyond, alpha, tested), _selected(at, within, alpha, tested)
    others = at(alpha / tested) if tested else []
    return tuple(
        GateDecision("slower", slower[place])
        if place in slower
        else GateDecision("passes", passes[place])
        if place in passes
        else GateDecision("undecided", judged)
        for place, judged in enumerate(others)
    )


def _selected(
    at: Callable[[float], list[ComparisonVerdict]],
    says: Callable[[ComparisonVerdict], bool],
    alpha: float,
    tested: int,
) -> dict[int, ComparisonVerdict]:
    """Return the most comparisons that all say so at their common level, by place."""
    wanted = tested
    while wanted:
        found = {place: one for place, one in enumerate(at(alpha * wanted / tested)) if says(one)}
        if len(found) >= wanted:
            return found
        wanted = len(found)
    return {}
