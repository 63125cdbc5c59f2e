"""Causes in functions of the program, of Python, and of BLAS libraries."""

from __future__ import annotations

import re
from collections.abc import Iterator

from equipoise.why.causes.remaining import Cause, Extra, Remaining, sides
from equipoise.why.causes.vocabulary import (
    caller,
    in_function,
    is_named,
    largest,
    optional_sides,
    short_name,
)
from equipoise.why.differences.changes import (
    Change,
    Difference,
    Function,
    is_more,
    sum_of,
)
from equipoise.why.evidence.sources import Side

_SAME_INSTRUCTIONS = 0.02
"""Largest relative difference of equal work: threads start and meet a little differently."""

_MOSTLY = 0.8

_BLAS = re.compile(r"lib(open|f77|c|t|s|pt)?(blas|atlas|blis|lapack|mkl|flexiblas)[\w.+-]*")
_MAIN = 0.5
"""Least part of its library's time that a kernel has."""

_BLAS_SETTINGS = frozenset(
    f"environment {name}"
    for name in ("OPENBLAS_CORETYPE", "BLIS_ARCH_TYPE", "MKL_ENABLE_INSTRUCTIONS", "MKL_CBWR")
)


def more_time_in_function(remaining: Remaining) -> Iterator[Cause]:
    """Find functions that take longer themselves, or are called more often."""
    difference = remaining.difference
    for function, change in remaining.functions.items():
        if not is_more(change):
            continue
        extra = remaining.extra(functions=(function,))
        calling = caller(difference, function, extra.sides.extra)
        named = function if is_named(function.name) or calling is None else calling
        called_by = None if calling is None or calling == named else short_name(calling)
        has_name = is_named(named.name)
        what = f"{short_name(named)}()" if has_name else f"code without a name in {named.module}"
        yield extra.cause(
            "function",
            {
                "function": short_name(named),
                "module": named.module,
                "called_by": called_by,
                "instructions": optional_sides(difference.instructions.get(function.name)),
            },
            f"more time in {what}{in_function(called_by, ', called by ')}",
        )


def more_time_in_python_function(remaining: Remaining) -> Iterator[Cause]:
    """Find a Python function that takes longer with all that it calls, or is called more often.

    Its time in the interpreter and in the C library is its own.
    """
    difference = remaining.difference
    function = _innermost_python(difference)
    if function is None:
        return
    reached = difference.reached[function]
    native = {
        one: change
        for one, change in remaining.functions.items()
        if change.extra > 0 and one.kind != "python"
    }
    inside = remaining.extra(functions=(*native, function), entries=remaining.entries)
    heaviest = largest(native)
    seconds = min(inside.seconds, reached.extra)
    half = 0.0 if None in reached.extra_ci else reached.half_width
    yield Extra(reached, seconds, (seconds - half, seconds + half), 0.0, inside.claims).cause(
        "function",
        {
            "function": short_name(function),
            "module": function.name.partition(":")[2] or function.module,
            "inside": None if heaviest is None else heaviest.name,
        },
        f"more time in the Python function {short_name(function)}()",
    )


def _innermost_python(difference: Difference) -> Function | None:
    """Return the Python function with the extra time and the fewest other seconds.

    Callers have all of the time of what they call; the innermost has the fewest others.
    """
    longer = {
        function: change
        for function, change in difference.reached.items()
        if function.kind == "python" and is_more(change) and not function.name.startswith("<")
    }
    most = max((change.extra for change in longer.values()), default=0.0)
    inner = [one for one, change in longer.items() if change.extra >= _MOSTLY * most]
    return min(reversed(inner), key=lambda one: difference.of_slower(longer[one]), default=None)


def memory_contention(remaining: Remaining) -> Iterator[Cause]:
    """Find a function that takes longer on several threads, for the same work.

    The threads write into one cache line, or share what memory delivers. Where instructions were
    counted the function must have as many; where not, nothing else may differ.
    """
    difference = remaining.difference
    threads = difference.threads
    if threads is None or threads.extra != 0 or difference.of_slower(threads) < 2:
        return
    longer = {
        one: change
        for one, change in remaining.functions.items()
        if is_named(one.name) and is_more(change) and difference.of_faster(change) > 0
    }
    function = largest(longer)
    if function is None:
        return
    instructions = difference.instructions.get(function.name)
    if instructions is None:
        if not _is_all_that_differs(difference, longer[function]):
            return
        because = (
            "on several threads while nothing that was counted differs: they may contend for "
            "memory, or it has more to do (counting instructions would tell)"
        )
    else:
        if abs(instructions.extra) > _SAME_INSTRUCTIONS * difference.of_slower(instructions):
            return
        because = "for the same instructions: its threads contend for memory"
    times = difference.of_slower(longer[function]) / difference.of_faster(longer[function])
    yield remaining.extra(functions=(function,)).cause(
        "function",
        {
            "function": function.name,
            "module": function.module,
            "threads": sides(threads),
            "instructions": optional_sides(instructions),
        },
        f"{function.name}() takes {times:.3g} times as long {because}",
    )


def _is_all_that_differs(difference: Difference, longer: Change) -> bool:
    """Return whether a function's time is all that differs, as far as anything was counted."""
    work = difference.on_processor
    counts = [calls.count for name, calls in difference.calls.items() if name != "futex"]
    if difference.allocations is not None:
        counts.append(difference.allocations.count)
    # A program that was asked for more work would hardly ask the kernel for just as much.
    is_same = all(abs(count.extra) <= max(2.0, 0.01 * count.baseline) for count in counts)
    return is_same and work is not None and longer.extra >= _MOSTLY * work.extra


def wrong_blas_kernel(remaining: Remaining) -> Iterator[Cause]:
    """Find a BLAS library of which each condition uses another function for the same work.

    The library was told of another processor, or takes this one for another.
    """
    for module in dict.fromkeys(function.module for function in remaining.functions):
        if _BLAS.fullmatch(module):
            yield from _kernels_in(remaining, module)


def _kernels_in(remaining: Remaining, module: str) -> Iterator[Cause]:
    difference = remaining.difference
    of_slower, of_faster = difference.of_slower, difference.of_faster
    inside = {one: change for one, change in remaining.functions.items() if one.module == module}
    slow, fast = _main(inside, difference.slower), _main(inside, difference.faster)
    if slow is None or fast is None:
        return
    settings = {
        one.name: {"baseline": one.baseline, "candidate": one.candidate}
        for one in difference.settings
        if one.name.removeprefix("server ") in _BLAS_SETTINGS
    }
    extra = remaining.extra(functions=inside)
    if slow == fast:
        # A library without symbols, such as Debian's BLIS: only settings tell its kernels apart.
        if settings and not is_named(slow.name) and is_more(inside[slow]):
            variables = " and ".join(name.removeprefix("environment ") for name in settings)
            yield extra.cause(
                "configuration",
                {"function": None, "instead_of": None, "module": module, "settings": settings},
                f"{module}, whose functions have no names, takes longer with the setting of "
                f"{variables}",
            )
        return
    # It is certain that a kernel is used before it is certain how long it takes.
    if not is_more(inside[slow]) and not inside[fast].is_certain:
        return
    # Each is the kernel of one condition only.
    if 2 * of_faster(inside[slow]) > of_faster(inside[fast]):
        return
    if 2 * of_slower(inside[fast]) > of_slower(inside[slow]):
        return
    yield extra.cause(
        "configuration",
        {
            "function": slow.name,
            "instead_of": fast.name,
            "module": module,
            "settings": settings,
        },
        f"{module} computes with {slow.name}() instead of {fast.name}()",
    )


def _main(inside: dict[Function, Change], side: Side) -> Function | None:
    """Return the function that has most of its library's time in one condition."""
    total = getattr(sum_of(inside.values()), side)
    heaviest = max(inside, key=lambda one: float(getattr(inside[one], side)))
    return heaviest if getattr(inside[heaviest], side) > _MAIN * total > 0 else None
