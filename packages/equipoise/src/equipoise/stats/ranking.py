"""Which of several conditions may be the fastest, valid after any number of interim analyses.

There are two families of claims, each at alpha. The first family has the comparisons with the
baseline (`equipoise.stats.verdict.judge`). The second family has all pairs of candidates, judged in
the same way. So a ranking does not weaken the comparisons with the baseline.

A third statement names the *contenders*: the conditions that may still be the fastest. A condition
is out if it is slower than another condition. The levels of the tests of each condition add up to
alpha (Ville 1939; Bonferroni):

- For a candidate, the test against the baseline has alpha/2. The tests against all other candidates
  together have alpha/2.
- For the baseline, the tests against all candidates together have alpha.

So the chance that a fastest condition is ever out is at most alpha, for each condition separately.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence

from msgspec import Struct

from equipoise.model.plan import Contrast
from equipoise.model.result import Verdict
from equipoise.stats.sequence import PairedBlocks
from equipoise.stats.verdict import ComparisonVerdict, judge, judge_at_stop, margin_of

Pair = tuple[int, int]
"""Indices of two conditions: the baseline of their ratio, then the candidate."""


class RankedGroup(Struct, frozen=True):
    """Conditions that are ranked together, with the blocks of all their pairs."""

    baseline_pairs: dict[Pair, PairedBlocks]
    """Blocks of the baseline with each candidate."""
    candidate_pairs: dict[Pair, PairedBlocks]
    """Blocks of each pair of candidates."""

    @property
    def pairs(self) -> dict[Pair, PairedBlocks]:
        """Blocks of all pairs."""
        return {**self.baseline_pairs, **self.candidate_pairs}

    @property
    def members(self) -> tuple[int, ...]:
        """Conditions of the group, the baseline first."""
        return tuple(dict.fromkeys(member for pair in self.baseline_pairs for member in pair))


def candidate_pairs(contrasts: Sequence[Contrast]) -> Iterator[Pair]:
    """Return all pairs of the candidates of contrasts with one baseline."""
    return itertools.combinations((contrast.candidate for contrast in contrasts), 2)


def ranked_group(
    contrasts: Sequence[Contrast],
    baseline_blocks: Callable[[Contrast], PairedBlocks],
    candidate_blocks: Callable[[Pair], PairedBlocks],
) -> RankedGroup:
    """Return the group of contrasts with one baseline; the two functions return a pair's blocks."""
    return RankedGroup(
        {contrast.pair: baseline_blocks(contrast) for contrast in contrasts},
        {pair: candidate_blocks(pair) for pair in candidate_pairs(contrasts)},
    )


def contenders_of(
    group: RankedGroup, min_effect: float, alpha: float, *, min_blocks: int = 0
) -> tuple[int, ...]:
    """Return the members that may still be the fastest, or tied with the fastest, in order.

    A member is tied if it takes less than ``min_effect`` percent longer. The chance that a fastest
    member is ever missing is at most alpha. Only pairs with ``min_blocks`` or more blocks count.
    """
    margin, rival_count = margin_of(min_effect), len(group.baseline_pairs)

    def verdict_on(pair: Pair, level: float) -> Verdict:
        judged = judge_at_stop(group.pairs[pair], margin, level)
        return judged.verdict if judged.blocks >= min_blocks else "undecided"

    slower_members: set[int] = set()
    for baseline, candidate in group.baseline_pairs:
        match verdict_on((baseline, candidate), alpha):
            case "slower":
                slower_members.add(candidate)
            case "faster" if (
                verdict_on((baseline, candidate), 2.0 * alpha / rival_count) == "faster"
            ):
                slower_members.add(baseline)
    for first_candidate, second_candidate in group.candidate_pairs:
        match verdict_on((first_candidate, second_candidate), alpha / (rival_count - 1)):
            case "slower":
                slower_members.add(second_candidate)
            case "faster":
                slower_members.add(first_candidate)
    return tuple(member for member in group.members if member not in slower_members)


def judge_candidates(
    groups: Sequence[RankedGroup], min_effect: float, alpha: float
) -> dict[Pair, ComparisonVerdict]:
    """Judge all pairs of candidates of all groups, which share alpha.

    Parameters and errors are as in `equipoise.stats.verdict.judge`.
    """
    pairs = {pair: blocks for group in groups for pair, blocks in group.candidate_pairs.items()}
    verdicts = judge(list(pairs.values()), min_effect=min_effect, alpha=alpha)
    return dict(zip(pairs, verdicts, strict=True))


def open_pairs(
    group: RankedGroup, contenders: Sequence[int], verdicts: Mapping[Pair, Verdict]
) -> tuple[Pair, ...]:
    """Return the pairs of contenders that must be decided before the fastest is known.

    A pair with the verdict ``equivalent`` or ``mixed`` has no order, so it needs no decision. A
    pair without a verdict needs one.
    """
    return tuple(
        pair
        for pair in group.pairs
        if set(pair) <= set(contenders) and verdicts.get(pair) not in ("equivalent", "mixed")
    )
