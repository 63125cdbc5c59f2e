"""What interventions did to a gap, in words that a manager can read, then numbers."""

from __future__ import annotations

from collections.abc import Sequence

from equipoise.model.why import Tested
from equipoise.stats.intervention import (
    CONFIRMED_ABOVE,
    REFUTED_WITHIN,
    InterventionEffect,
    describe_fraction,
)


def closes_so_far(found: InterventionEffect, ended_because: str | None) -> str:
    """Where an intervention stands, in a few words: ``97 % [90, 104]``."""
    if ended_because is not None:
        return "ended"
    return describe_fraction(found.logs.estimate, (found.logs.low, found.logs.high))


def tested_words(tested: Sequence[Tested]) -> str:
    """What was tried, as one sentence: ``Jemalloc closes 96 % [91, 101] of the gap; …``."""
    told = "; ".join(_clause(one) for one in tested)
    return f"{told[:1].upper()}{told[1:]}." if told else ""


def _clause(one: Tested) -> str:
    if one.unknown_because is not None:
        return f"{one.summary}: {one.unknown_because}"
    closes = describe_fraction(one.share, one.share_ci)
    if scales_disagree(one):
        seconds = describe_fraction(one.share_of_seconds, one.share_of_seconds_ci)
        return (
            f"{one.summary} closes {closes} of the gap as a ratio, but {seconds} of it in seconds"
        )
    by_the_faster = " by slowing the faster one" if closed_by_the_faster(one) else ""
    return f"{one.summary} closes {closes} of the gap{by_the_faster}"


def scales_disagree(one: Tested) -> bool:
    """Whether the ratio shrinks and the difference in seconds does not, or the other way round.

    An intervention that costs both conditions the same does so.
    """
    if one.share is None or one.share_of_seconds is None:
        return False
    return abs(one.share - one.share_of_seconds) > REFUTED_WITHIN


def closed_by_the_faster(one: Tested) -> bool:
    """Whether a gap was closed, but is not counted as explained (verdict.md §7)."""
    low, _ = one.share_ci
    return one.outcome == "open" and low is not None and low >= CONFIRMED_ABOVE
