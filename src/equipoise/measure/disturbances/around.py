"""Cheap checks of doctor before and after a campaign, which tell whether the host was busy.

Two looks at /proc take milliseconds. Work of our own is no disturbance: our own process, and the
children that it has waited for by the second look (the launcher and all trials).
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator

from msgspec import Struct

from equipoise.measure.disturbances import contention
from equipoise.measure.disturbances.host_state import (
    LENGTH_S,
    Activity,
    HostState,
    Moment,
    read_moment,
)
from equipoise.measure.environment.system import Host, Unknown
from equipoise.model.host import Disturbance
from equipoise.model.record import CampaignWarning

BUSY_SHARE = 0.25
"""Share of one CPU from which on the work of others is told."""
CODE = "busy_host"
_HINT = "close what else runs: `equipoise doctor` names it"
_BEFORE = (contention.load, contention.full_memory)
_WHILE = (contention.steal, contention.cpu_quota, contention.swap)

Clock = Callable[[], float]


class HostWatch(Struct, frozen=True):
    """A host at the begin of a campaign."""

    host: Host
    first: Moment
    children_s: float
    """CPU time of the children that had been waited for."""
    before: tuple[str, ...]
    """Sentences on what disturbed the host before the campaign."""


def children_seconds() -> float:
    """Return the CPU time of all descendants that we have waited for."""
    times = os.times()
    return times.children_user + times.children_system


def begin_watch(
    host: Host, *, clock: Clock = time.monotonic, children_s: Clock = children_seconds
) -> HostWatch | None:
    """Look at a host before a campaign; ``None`` where its processes cannot be seen."""
    try:
        first = read_moment(host, clock)
    except Unknown:
        return None
    before = _disturbing(_BEFORE, _state(host, first, first))
    return HostWatch(host, first, children_s(), tuple(before))


def busy_host(
    watch: HostWatch, *, clock: Clock = time.monotonic, children_s: Clock = children_seconds
) -> CampaignWarning | None:
    """Look at a host after a campaign; return what disturbed it, or ``None``.

    Call it when all trials have ended and have been waited for.
    """
    parts = [f"before the campaign {what}" for what in watch.before]
    try:
        state = _state(watch.host, watch.first, read_moment(watch.host, clock))
        if state.activity.seconds >= LENGTH_S:
            others = _others(state.activity, children_s() - watch.children_s)
            while_it_ran = [*others, *_disturbing(_WHILE, state)]
            parts += [f"while it measured, {what}" for what in while_it_ran]
    except Unknown as reason:
        parts += [f"what others did while it measured is unknown ({reason})"] if parts else []
    if not parts:
        return None
    return CampaignWarning(CODE, f"this host was busy: {'; '.join(parts)}", _HINT)


def _state(host: Host, first: Moment, last: Moment) -> HostState:
    return HostState(host, Activity(first, last), dict(os.environ))


def _disturbing(
    checks: tuple[Callable[[HostState], Iterator[Disturbance]], ...], state: HostState
) -> Iterator[str]:
    """Yield what disturbs trials now; what a check cannot read, only doctor names."""
    for check in checks:
        try:
            yield from (one.summary for one in check(state) if one.severity == "disturbs")
        except Unknown:
            continue


def _others(activity: Activity, own_children_s: float) -> Iterator[str]:
    """Yield the work of others, if it is much: the busiest processes by name."""
    processes = activity.busy_processes()
    own = own_children_s / activity.seconds
    unseen = max(0.0, activity.unseen_share() - own)
    if unseen < contention.UNSEEN_SHARE:
        # The kernel samples the processors' time.
        unseen = 0.0
    total = unseen + sum(process.share for process in processes)
    if total < BUSY_SHARE:
        return
    named = [one for one in processes if one.share >= contention.NAMED_SHARE]
    named = named[: contention.MOST_NAMED]
    rest = total - sum(process.share for process in named)
    texts = [f"process {one.number} ({one.name}) {_percent(one.share)}" for one in named]
    if rest >= contention.NAMED_SHARE:
        texts.append(f"{'others together' if named else 'other processes'} {_percent(rest)}")
    yield f"others used {_percent(total)} of a CPU: {', '.join(texts)}"


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"
