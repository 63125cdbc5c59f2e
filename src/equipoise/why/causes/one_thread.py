"""The same work is done by fewer threads, one after another."""

from __future__ import annotations

import math

from equipoise.why.causes.found import Found
from equipoise.why.causes.remaining import Remaining
from equipoise.why.causes.wording import instead, of_faster, of_slower, sides
from equipoise.why.differences.changes import is_certain

CAUSE = "one_thread"
WORDS = "the same work is done by fewer threads or processes at once"

_SAME = 0.25
"""The work differs by no more than this share of itself."""

_AT_ONCE = 1.1
"""Seconds on processors for each second that passes, at least, where threads ran at once."""


def find(remaining: Remaining) -> tuple[Found, ...]:
    """Fewer threads, as many seconds on processors, and more seconds that pass."""
    difference = remaining.difference
    threads, work = difference.threads, difference.on_processor
    if threads is None or work is None or threads.extra >= 0 or not is_certain(threads):
        return ()
    if abs(work.extra) > _SAME * of_slower(difference, work):
        return ()
    if of_faster(difference, work) < _AT_ONCE * of_faster(difference, difference.gap):
        return ()
    waited_s = sum(max(0.0, change.extra) for change in difference.waits.values())
    seconds = remaining.gap_s - max(0.0, work.extra) - waited_s
    low, high = difference.gap.extra_ci
    half = math.inf if low is None or high is None else (high - low) / 2
    return (
        Found(
            cause=CAUSE,
            kind="process",
            evidence={
                "threads": sides(threads),
                "processor_seconds": sides(work),
                "seconds": sides(difference.gap),
            },
            seconds=seconds,
            seconds_ci=(seconds - half, seconds + half) if math.isfinite(half) else (None, None),
            words=(
                f"the same work is done by fewer threads ({instead(difference, threads)}), one "
                "after another"
            ),
            claims=frozenset(),
        ),
    )
