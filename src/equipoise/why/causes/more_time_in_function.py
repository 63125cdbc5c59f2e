"""A function itself takes longer."""

from __future__ import annotations

from equipoise.why.causes.callers import caller
from equipoise.why.causes.found import Found
from equipoise.why.causes.remaining import Remaining
from equipoise.why.causes.wording import called, is_more, is_named, sides, spoken
from equipoise.why.differences.result import Function

CAUSE = "more_time_in_function"
WORDS = "a function takes longer, or is called more often"


def find(remaining: Remaining) -> tuple[Found, ...]:
    """Every function with certainly more time of its own."""
    return tuple(
        _found(remaining, function)
        for function, change in remaining.functions.items()
        if is_more(change)
    )


def _found(remaining: Remaining, function: Function) -> Found:
    difference = remaining.difference
    extra = remaining.extra(functions=(function,))
    outer = caller(difference, function, extra.sides.extra)
    shown = function if is_named(function.name) or outer is None else outer
    by = f", called by {called(outer)}()" if outer is not None and outer != shown else ""
    instructions = difference.instructions.get(function.name)
    return extra.found(
        cause=CAUSE,
        kind="function",
        evidence={
            "function": called(shown),
            "module": shown.module,
            "called_by": None if outer is None or outer == shown else called(outer),
            "instructions": None if instructions is None else sides(instructions),
        },
        words=f"more time in {spoken(shown)}{by}",
    )
