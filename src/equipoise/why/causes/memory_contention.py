"""A function takes longer for the same work, on several threads: they contend for memory."""

from __future__ import annotations

from equipoise.why.causes.found import Found
from equipoise.why.causes.remaining import Remaining
from equipoise.why.causes.wording import is_more, is_named, of_faster, of_slower, sides
from equipoise.why.differences.result import Change, Difference, Function

CAUSE = "memory_contention"
WORDS = (
    "a function takes longer on several threads although nothing that was counted differs: they "
    "write into one cache line, or share what memory delivers"
)

_SAME = 0.02
"""Instructions that differ by less are the same work: threads start and meet a little otherwise."""

_MOSTLY = 0.8


def find(remaining: Remaining) -> tuple[Found, ...]:
    """The one function that takes the extra time of two or more threads.

    Where instructions were counted it must have as many; where not, nothing else may differ.
    """
    difference = remaining.difference
    threads = difference.threads
    if threads is None or threads.extra != 0 or of_slower(difference, threads) < 2:
        return ()
    longer = {
        function: change
        for function, change in remaining.functions.items()
        if is_named(function.name) and is_more(change) and of_faster(difference, change) > 0
    }
    function = max(longer, key=lambda one: longer[one].extra, default=None)
    if function is None:
        return ()
    counted = difference.instructions.get(function.name)
    if counted is not None:
        if abs(counted.extra) > _SAME * of_slower(difference, counted):
            return ()
    elif not _alone(difference, longer[function]):
        return ()
    extra = remaining.extra(functions=(function,))
    return (
        extra.found(
            cause=CAUSE,
            kind="function",
            evidence={
                "function": function.name,
                "module": function.module,
                "threads": sides(threads),
                "instructions": None if counted is None else sides(counted),
            },
            words=_words(difference, function, longer[function], counted),
        ),
    )


def _alone(difference: Difference, longer: Change) -> bool:
    """Whether this is all that differs, as far as anything was counted."""
    work = difference.on_processor
    more = [
        *(calls.count for name, calls in difference.calls.items() if name != "futex"),
        *([] if difference.allocations is None else [difference.allocations.count]),
    ]
    # A program that was asked for more work would hardly ask the kernel for just as much.
    same = all(abs(count.extra) <= max(2.0, 0.01 * count.baseline) for count in more)
    return same and work is not None and longer.extra >= _MOSTLY * work.extra


def _words(
    difference: Difference, function: Function, longer: Change, counted: Change | None
) -> str:
    times = of_slower(difference, longer) / of_faster(difference, longer)
    takes = f"{function.name}() takes {times:.3g} times as long"
    if counted is not None:
        return f"{takes} for the same instructions: its threads contend for memory"
    return (
        f"{takes} on several threads while nothing that was counted differs: they may contend for "
        "memory, or it has more to do (counting instructions would tell)"
    )
