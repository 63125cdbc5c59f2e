"""A Python function takes longer, with all that it calls."""

from __future__ import annotations

from equipoise.why.causes.found import Found
from equipoise.why.causes.remaining import Remaining
from equipoise.why.causes.wording import called, is_more, of_slower, sides
from equipoise.why.differences.result import Difference, Function

CAUSE = "more_time_in_python_function"
WORDS = "a Python function takes longer, with all that it calls, or is called more often"

_SAME = 0.8


def find(remaining: Remaining) -> tuple[Found, ...]:
    """The innermost Python function in which the extra time is.

    What it calls in the interpreter and in the C library is its own time.
    """
    difference = remaining.difference
    function = _innermost(difference)
    if function is None:
        return ()
    reached = difference.reached[function]
    mine = [
        one
        for one, change in remaining.functions.items()
        if change.extra > 0 and one.kind != "python"
    ]
    inside = remaining.extra(functions=(*mine, function), doors=remaining.doors)
    seconds = min(inside.seconds, reached.extra)
    heaviest = max(mine, key=lambda one: remaining.functions[one].extra, default=None)
    low, high = reached.extra_ci
    half = 0.0 if low is None or high is None else (high - low) / 2
    return (
        Found(
            cause=CAUSE,
            kind="function",
            evidence={
                "function": called(function),
                "module": function.name.partition(":")[2] or function.module,
                "inside": None if heaviest is None else heaviest.name,
                "seconds": sides(reached),
            },
            seconds=seconds,
            seconds_ci=(seconds - half, seconds + half),
            words=f"more time in the Python function {called(function)}()",
            claims=inside.claims,
        ),
    )


def _innermost(difference: Difference) -> Function | None:
    """Callers have all of the time of what they call; the innermost has the fewest others."""
    longer = {
        function: change
        for function, change in difference.reached.items()
        if function.kind == "python" and is_more(change) and not function.name.startswith("<")
    }
    most = max((change.extra for change in longer.values()), default=0.0)
    inner = [one for one, change in longer.items() if change.extra >= _SAME * most]
    return min(reversed(inner), key=lambda one: of_slower(difference, longer[one]), default=None)
