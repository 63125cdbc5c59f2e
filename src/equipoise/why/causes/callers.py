"""Which function of the program a place belongs to."""

from __future__ import annotations

from collections.abc import Mapping

from equipoise.why.causes.remaining import Extra
from equipoise.why.causes.wording import called, is_named, of_slower
from equipoise.why.differences.result import Change, Difference, FaultsChange, Function

_SAME = 0.8
"""A caller has at least so much of the extra time of what it calls: stacks are cut sometimes."""

_FRAME = frozenset({"_start", "__libc_start_main", "__libc_start_call_main", "<module>", "clone3"})
"""What every program is called from."""


def named(difference: Difference, function: Function, seconds: float) -> Function:
    """The function itself if it has a name, else the nearest caller that has one."""
    if is_named(function.name):
        return function
    return caller(difference, function, seconds) or function


def caller(difference: Difference, function: Function, seconds: float) -> Function | None:
    """The nearest named caller through which the function got these extra seconds.

    Known only as far as seconds tell: a caller has all of them, and of several callers the
    nearest has the fewest others. Of equal ones it is the last, as stacks are read inwards.
    """
    around = {
        one: change
        for one, change in difference.reached.items()
        if one != function
        and is_named(one.name)
        and one.name.partition(":")[0] not in _FRAME
        and change.extra >= _SAME * seconds > 0
    }
    inwards = reversed(around)
    return min(inwards, key=lambda one: of_slower(difference, around[one]), default=None)


def toucher(difference: Difference, faults: FaultsChange, extra: Extra) -> str | None:
    """Who touches the pages that fault more, by name, if that is known."""
    function = with_most(faults.by_function)
    return None if function is None else called(named(difference, function, extra.sides.extra))


def with_most(changes: Mapping[Function, Change]) -> Function | None:
    """The function of which the slower condition has most more."""
    more = [function for function, change in changes.items() if change.extra > 0]
    return max(more, key=lambda function: changes[function].extra, default=None)
