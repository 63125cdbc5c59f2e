"""A gate's decision on which comparisons are too slow, valid after any number of interim analyses.

The null hypothesis of each comparison is that the candidate is slower by no more than the smallest
effect that matters. A comparison fails where the whole interval lies beyond that effect. Of K
comparisons R fail if each does so at level alpha·R/K, R the largest possible: inverting the
intervals at the stop gives an e-value of at least K/(alpha·R) against each of these hypotheses, so
that this is e-BH (Wang and Ramdas 2022), and the expected share of failures without cause is at
most alpha. Where nothing is too slow, the chance that anything fails is at most alpha.

Failing and passing look at one side of the interval each, which has alpha for itself. A candidate
whose mean cost exceeds the baseline's by more than that effect does not pass, whatever a typical
run takes: it stays undecided.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

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
    select_most,
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
    earlier = {} if cache is None else cache
    tested = len(comparisons)

    @functools.cache
    def at(level: float) -> list[ComparisonVerdict]:
        if tested == 1:
            return [judge_alone(comparisons[0], margin, level)]
        return judge_cached(comparisons, margin, level, earlier)

    means_veto = any(blocks.rules.means_veto_equivalence for blocks in comparisons)

    def is_within(judged: ComparisonVerdict) -> bool:
        means_allow = not means_veto or judged.ln_mean_ratio <= margin
        return judged.equivalence_high <= margin and means_allow

    slower = select_most(at, lambda judged: judged.equivalence_low > margin, alpha, tested)
    passes = select_most(at, is_within, alpha, tested)
    others = at(alpha / tested) if tested else []
    return tuple(
        GateDecision("slower", slower[place])
        if place in slower
        else GateDecision("passes", passes[place])
        if place in passes
        else GateDecision("undecided", judged)
        for place, judged in enumerate(others)
    )
