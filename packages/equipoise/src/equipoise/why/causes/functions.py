"""Causes in functions of the program, of Python, and of BLAS libraries."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from equipoise.why.causes.remaining import (
    Cause,
    Extra,
    Remaining,
    caller,
    in_function,
    is_named,
    largest,
    short_name,
)
from equipoise.why.differences.changes import Change, Difference, is_more
from equipoise.why.evidence.observer import Function

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
        calling = caller(difference, function)
        named = function if is_named(function.name) or calling is None else calling
        called_by = None if calling in (None, named) else short_name(calling)
        where = f"{short_name(named)}()"
        if not is_named(named.name):
            where = f"code without a name in {named.module}"
        yield extra.cause(
            "function",
            f"more time in {where}{in_function(called_by, ', called by ')}",
            function=short_name(named),
            module=named.module,
            called_by=called_by,
            instructions=difference.instructions.get(function.name),
        )


def more_time_in_python_function(remaining: Remaining) -> Iterator[Cause]:
    """Find a Python function that takes longer with all that it calls, or is called more often.

    Its time in the interpreter and in the C library is its own.
    """
    difference = remaining.difference
    longer = {
        function: change
        for function, change in difference.reached.items()
        if function.kind == "python" and is_more(change) and not function.name.startswith("<")
    }
    most_s = max((change.extra for change in longer.values()), default=0.0)
    # Callers have all of the time of what they call; the innermost has the fewest others.
    inner = [name for name, change in longer.items() if change.extra >= _MOSTLY * most_s]
    function = min(reversed(inner), key=lambda name: longer[name].slower, default=None)
    if function is None:
        return
    reached = longer[function]
    native = {
        function: change
        for function, change in remaining.functions.items()
        if change.extra > 0 and function.kind != "python"
    }
    inside = remaining.extra(functions=(*native, function), entries=remaining.entries)
    heaviest = largest(native)
    seconds = min(inside.seconds, reached.extra)
    half = 0.0 if None in reached.extra_ci else reached.half_width
    yield Extra(reached, seconds, (seconds - half, seconds + half), 0.0, inside.claims).cause(
        "function",
        f"more time in the Python function {short_name(function)}()",
        function=short_name(function),
        module=function.name.partition(":")[2] or function.module,
        inside=None if heaviest is None else heaviest.name,
    )


def memory_contention(remaining: Remaining) -> Iterator[Cause]:
    """Find a function that takes longer on several threads, for the same work.

    The threads write into one cache line, or share what memory delivers. Where instructions were
    counted the function must have as many; where not, nothing else may differ.
    """
    difference = remaining.difference
    threads = difference.threads
    if threads is None or threads.extra != 0 or threads.slower < 2:
        return
    longer = {
        one: change
        for one, change in remaining.functions.items()
        if is_named(one.name) and is_more(change) and change.faster > 0
    }
    function = largest(longer)
    if function is None:
        return
    change, instructions = longer[function], difference.instructions.get(function.name)
    if instructions is None:
        is_same_work = _is_all_that_differs(difference, change)
        because = (
            "on several threads while nothing that was counted differs: they may contend for "
            "memory, or it has more to do (counting instructions would tell)"
        )
    else:
        is_same_work = abs(instructions.extra) <= _SAME_INSTRUCTIONS * instructions.slower
        because = "for the same instructions: its threads contend for memory"
    if not is_same_work:
        return
    times = change.slower / change.faster
    yield remaining.extra(functions=(function,)).cause(
        "function",
        f"{function.name}() takes {times:.3g} times as long {because}",
        function=function.name,
        module=function.module,
        threads=threads,
        instructions=instructions,
    )


def _is_all_that_differs(difference: Difference, longer: Change) -> bool:
    """Return whether a function's time is all that differs, as far as anything was counted."""
    work = difference.on_processor
    counts = [calls.count for name, calls in difference.calls.items() if name != "futex"]
    if difference.allocations is not None:
        counts.append(difference.allocations.count)
    # A program with more work to do would hardly make just as many calls.
    is_same = all(abs(count.extra) <= max(2.0, 0.01 * count.baseline) for count in counts)
    return is_same and work is not None and longer.extra >= _MOSTLY * work.extra


def wrong_blas_kernel(remaining: Remaining) -> Iterator[Cause]:
    """Find a BLAS library of which each condition uses another function for the same work.

    The library is set to another processor, or takes this one for another.
    """
    for module in dict.fromkeys(function.module for function in remaining.functions):
        if _BLAS.fullmatch(module):
            yield from _kernels_in(remaining, module)


def _kernels_in(remaining: Remaining, module: str) -> Iterator[Cause]:
    inside = {one: change for one, change in remaining.functions.items() if one.module == module}
    slow = _main({one: change.slower for one, change in inside.items()})
    fast = _main({one: change.faster for one, change in inside.items()})
    if slow is None or fast is None:
        return
    settings = {
        setting.name: {"baseline": setting.baseline, "candidate": setting.candidate}
        for setting in remaining.difference.settings
        if setting.name.removeprefix("server ") in _BLAS_SETTINGS
    }
    names: dict[str, str | None] = {"function": slow.name, "instead_of": fast.name}
    if slow == fast:
        # A library without symbols, such as Debian's BLIS: only settings tell its kernels apart.
        if not settings or is_named(slow.name) or not is_more(inside[slow]):
            return
        names = dict.fromkeys(names)
        variables = " and ".join(name.removeprefix("environment ") for name in settings)
        summary = (
            f"{module}, whose functions have no names, takes longer with the setting of {variables}"
        )
    else:
        # It is certain that a kernel is used before it is certain how long it takes.
        is_used = is_more(inside[slow]) or inside[fast].is_certain
        is_of_slower = 2 * inside[fast].slower <= inside[slow].slower
        is_of_faster = 2 * inside[slow].faster <= inside[fast].faster
        if not (is_used and is_of_slower and is_of_faster):
            return
        summary = f"{module} computes with {slow.name}() instead of {fast.name}()"
    extra = remaining.extra(functions=inside)
    yield extra.cause("configuration", summary, **names, module=module, settings=settings)


def _main(seconds: Mapping[Function, float]) -> Function | None:
    """Return the function that has most of its library's time in one condition."""
    heaviest = max(seconds, key=lambda function: seconds[function])
    return heaviest if seconds[heaviest] > _MAIN * sum(seconds.values()) > 0 else None
