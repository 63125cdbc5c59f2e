"""Each fork takes longer, as more memory has to be copied or marked for it."""

from __future__ import annotations

from equipoise.why.causes.calls import FOR_CHILDREN, FORKS, PAGE_FAULT
from equipoise.why.causes.found import Found
from equipoise.why.causes.remaining import Remaining
from equipoise.why.causes.wording import counted, is_more, of_faster, of_slower, sides

CAUSE = "fork_of_large_process"
WORDS = "each fork takes longer: the tables of a large memory are copied, and torn down again"

_LONGER = 2.0
_SAME = 2.0
"""With more processes than so many times as many, it is their number."""


def find(remaining: Remaining) -> tuple[Found, ...]:
    """About as many forks, each much longer."""
    difference = remaining.difference
    forked = [name for name in FORKS if name in difference.calls and name != "vfork"]
    syscall = max(forked, key=lambda name: difference.calls[name].seconds.extra, default=None)
    if syscall is None:
        return ()
    calls = difference.calls[syscall]
    slower, faster = of_slower(difference, calls.count), of_faster(difference, calls.count)
    # Samples come to some kernels' forks and miss those of others.
    sampled = is_more(remaining.doors.get(syscall))
    inside = remaining.doors[syscall] if sampled else calls.seconds
    if not 0 < faster <= slower <= _SAME * faster or not is_more(inside):
        return ()
    each_s, usual_s = of_slower(difference, inside) / slower, of_faster(difference, inside) / faster
    if each_s < _LONGER * usual_s:
        return ()
    faults = difference.faults is not None and is_more(difference.faults.count)
    others = (PAGE_FAULT, "exit_group") if faults else ("exit_group",)
    extra = remaining.extra(
        doors=(*others, syscall) if sampled else others,
        called=() if sampled else (syscall,),
        waits=FOR_CHILDREN,
    )
    resident = difference.accounts.get("max_rss_bytes")
    return (
        extra.found(
            cause=CAUSE,
            kind="process",
            evidence={
                "syscall": syscall,
                "calls": sides(calls.count),
                "call_seconds": sides(inside),
                "resident_bytes": None if resident is None else sides(resident),
            },
            words=(
                f"{counted(slower)} forks ({syscall}) take {1e6 * each_s:,.0f} microseconds of a "
                "processor each, several times as long"
            ),
        ),
    )
