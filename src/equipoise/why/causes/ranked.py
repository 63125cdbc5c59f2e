"""All causes of a gap, by the seconds that they account for."""

from __future__ import annotations

from collections.abc import Sequence

from equipoise.model.interval import Interval
from equipoise.model.why import Explanation
from equipoise.why.causes.found import Found
from equipoise.why.causes.registry import RULES, Rule
from equipoise.why.causes.remaining import Remaining
from equipoise.why.causes.wording import is_more
from equipoise.why.differences.result import Difference

LEAST_SHARE = 0.05
"""Of the gap that a cause accounts for: the sources themselves cost a few per cent, so less cannot
be told from what observing did, and changing it would gain nothing that matters."""

OBSERVED_ONLY = "as observed and not tested"
"""So end the words of a cause until something was changed because of it."""


def causes(difference: Difference, rules: Sequence[Rule] = RULES) -> tuple[Explanation, ...]:
    """What evidence suggests, all open, the most seconds first.

    Rules are asked from the most specific to the most general, and what one has claimed no later
    one counts. Empty if the gap is not certain, or if no source saw what makes it.

    Parameters
    ----------
    rules
        Those that are asked; all that there are by default.
    """
    if not is_more(difference.gap):
        return ()
    remaining = Remaining(difference)
    accepted: list[Found] = []
    for rule in rules:
        of_rule = _accepted_of(rule, remaining)
        accepted += of_rule
        for found in of_rule:
            remaining = remaining.without(found)
    most_first = sorted(accepted, key=lambda found: -found.seconds)
    return tuple(_explanation(found, difference.gap.extra) for found in most_first)


def _accepted_of(rule: Rule, remaining: Remaining) -> tuple[Found, ...]:
    """What one rule finds that matters, the most seconds first.

    It is asked again after each, as what it has claimed is no longer there, until it finds nothing
    that it has not claimed.
    """
    accepted: list[Found] = []
    while True:
        new = [
            found
            for found in rule.find(remaining)
            if found.seconds >= LEAST_SHARE * remaining.gap_s
            and (not accepted or found.claims - remaining.claimed)
        ]
        if not new:
            return tuple(accepted)
        most = max(new, key=lambda found: found.seconds)
        accepted.append(most)
        remaining = remaining.without(most)


def _explanation(found: Found, gap_s: float) -> Explanation:
    share = min(1.0, found.seconds / gap_s)
    return Explanation(
        cause=found.cause,
        kind=found.kind,
        evidence=found.evidence,
        status="open",
        share_of_gap=share,
        share_ci=_shares(found.seconds_ci, gap_s),
        summary=(
            f"{found.words}: {found.seconds:.3g} s, {100 * share:.0f} % of the extra time, "
            f"{OBSERVED_ONLY}"
        ),
        seconds=found.seconds,
        seconds_ci=found.seconds_ci,
    )


def _shares(seconds_ci: Interval, gap_s: float) -> Interval:
    """Nothing can explain more than all of the gap."""
    low, high = seconds_ci
    return (
        None if low is None else min(1.0, low / gap_s),
        None if high is None else min(1.0, high / gap_s),
    )
