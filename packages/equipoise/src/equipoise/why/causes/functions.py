"""Find causes in functions of the program, of Python, and of BLAS libraries."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from equipoise.why.causes.unclaimed import (
    Cause,
    TimeClaim,
    UnclaimedTime,
    function_phrase,
    is_named,
    largest_increase,
    named_caller,
    short_name,
)
from equipoise.why.differences.changes import Change, Difference, is_increase
from equipoise.why.evidence.observer import Function

_MAX_INSTRUCTIONS_DIFFERENCE = 0.02
"""Largest relative difference in instructions for equal work. It is above 0 because threads start
and synchronise a little differently in each run."""

_MIN_LARGE_SHARE = 0.8
"""Smallest share that counts as large: of the largest extra time, or of all extra time."""

_BLAS_FILE = re.compile(r"lib(open|f77|c|t|s|pt)?(blas|atlas|blis|lapack|mkl|flexiblas)[\w.+-]*")
_MIN_MAIN_SHARE = 0.5
"""Smallest share of a library's time that its main function takes."""

_BLAS_SETTINGS = frozenset(
    f"environment {name}"
    for name in ("OPENBLAS_CORETYPE", "BLIS_ARCH_TYPE", "MKL_ENABLE_INSTRUCTIONS", "MKL_CBWR")
)
"""Names of the settings that choose a library's kernels."""


def more_time_in_function(unclaimed: UnclaimedTime) -> Iterator[Cause]:
    """Find functions whose own time, without their callees, is longer."""
    difference = unclaimed.difference
    for function, change in unclaimed.functions.items():
        if not is_increase(change):
            continue
        claim = unclaimed.claim(functions=(function,))
        caller = named_caller(difference, function)
        named_function = function if is_named(function.name) or caller is None else caller
        caller_name = None if caller in (None, named_function) else short_name(caller)
        description = f"{short_name(named_function)}()"
        if not is_named(named_function.name):
            description = f"code without a name in {named_function.module}"
        yield claim.cause(
            "function",
            f"more time in {description}{function_phrase(caller_name, ', called by ')}",
            function=short_name(named_function),
            module=named_function.module,
            called_by=caller_name,
            instructions=difference.instructions.get(function.name),
        )


def more_time_in_python_function(unclaimed: UnclaimedTime) -> Iterator[Cause]:
    """Find a Python function that takes longer together with its callees.

    The cause also claims the extra time of native functions, such as those of the interpreter.
    """
    difference = unclaimed.difference
    increases = {
        function: change
        for function, change in difference.inclusive.items()
        if function.kind == "python" and is_increase(change) and not function.name.startswith("<")
    }
    max_extra_s = max((change.extra for change in increases.values()), default=0.0)
    # The time of a caller includes its callees, so the innermost function has the least time.
    min_extra_s = _MIN_LARGE_SHARE * max_extra_s
    long_functions = [name for name, change in increases.items() if change.extra >= min_extra_s]
    function = min(reversed(long_functions), key=lambda name: increases[name].slower, default=None)
    if function is None:
        return
    inclusive = increases[function]
    native_changes = {
        function: change
        for function, change in unclaimed.functions.items()
        if change.extra > 0 and function.kind != "python"
    }
    own_time = unclaimed.claim(
        functions=(*native_changes, function), entry_points=unclaimed.entry_points
    )
    slowest_native = largest_increase(native_changes)
    seconds = min(own_time.seconds, inclusive.extra)
    margin = 0.0 if None in inclusive.extra_ci else inclusive.half_width
    interval = (seconds - margin, seconds + margin)
    yield TimeClaim(inclusive, seconds, interval, 0.0, own_time.parts).cause(
        "function",
        f"more time in the Python function {short_name(function)}()",
        function=short_name(function),
        module=function.name.partition(":")[2] or function.module,
        inside=None if slowest_native is None else slowest_native.name,
    )


def memory_contention(unclaimed: UnclaimedTime) -> Iterator[Cause]:
    """Find a function that takes longer on several threads, for the same work.

    The threads write into one cache line, or share the bandwidth of memory. The work is the same if
    both conditions execute equally many instructions. If instructions were not counted, all other
    counts must be equal.
    """
    difference = unclaimed.difference
    threads = difference.threads
    if threads is None or threads.extra != 0 or threads.slower < 2:
        return
    increases = {
        function: change
        for function, change in unclaimed.functions.items()
        if is_named(function.name) and is_increase(change) and change.faster > 0
    }
    function = largest_increase(increases)
    if function is None:
        return
    change, instructions = increases[function], difference.instructions.get(function.name)
    if instructions is None:
        is_same_work = _is_only_difference(difference, change)
        circumstance = (
            "on several threads while nothing that was counted differs: they may contend for "
            "memory, or the function has more to do (counted instructions would show it)"
        )
    else:
        max_difference = _MAX_INSTRUCTIONS_DIFFERENCE * instructions.slower
        is_same_work = abs(instructions.extra) <= max_difference
        circumstance = "for the same instructions: its threads contend for memory"
    if not is_same_work:
        return
    slowdown = change.slower / change.faster
    yield unclaimed.claim(functions=(function,)).cause(
        "function",
        f"{function.name}() takes {slowdown:.3g} times as long {circumstance}",
        function=function.name,
        module=function.module,
        threads=threads,
        instructions=instructions,
    )


def _is_only_difference(difference: Difference, function_time: Change) -> bool:
    """Return whether the function's time is the only difference, as far as counts are known."""
    processor_time = difference.on_processor
    counts = [calls.count for name, calls in difference.calls.items() if name != "futex"]
    if difference.allocations is not None:
        counts.append(difference.allocations.count)
    # With more work, some count would grow by more than 2 and by more than 1 %.
    are_equal = all(abs(count.extra) <= max(2.0, 0.01 * count.baseline) for count in counts)
    if not are_equal or processor_time is None:
        return False
    return function_time.extra >= _MIN_LARGE_SHARE * processor_time.extra


def wrong_blas_kernel(unclaimed: UnclaimedTime) -> Iterator[Cause]:
    """Find a BLAS library that uses different kernels in the two conditions.

    A kernel is the library's main function for one type of processor. A setting names the wrong
    type, or the library does not recognise the processor.
    """
    for module in dict.fromkeys(function.module for function in unclaimed.functions):
        if _BLAS_FILE.fullmatch(module):
            yield from _different_kernels(unclaimed, module)


def _different_kernels(unclaimed: UnclaimedTime, module: str) -> Iterator[Cause]:
    changes = {
        function: change
        for function, change in unclaimed.functions.items()
        if function.module == module
    }
    slow_main = _main_function({function: change.slower for function, change in changes.items()})
    fast_main = _main_function({function: change.faster for function, change in changes.items()})
    if slow_main is None or fast_main is None:
        return
    settings = {
        setting.name: {"baseline": setting.baseline, "candidate": setting.candidate}
        for setting in unclaimed.difference.settings
        if setting.name.removeprefix("server ") in _BLAS_SETTINGS
    }
    names: dict[str, str | None] = {"function": slow_main.name, "instead_of": fast_main.name}
    if slow_main == fast_main:
        # A library without symbols, such as Debian's BLIS: only settings distinguish its kernels.
        if not settings or is_named(slow_main.name) or not is_increase(changes[slow_main]):
            return
        names = dict.fromkeys(names)
        variables = " and ".join(name.removeprefix("environment ") for name in settings)
        summary = (
            f"{module}, whose functions have no names, takes longer with the setting of {variables}"
        )
    else:
        # In each condition, its own kernel takes at least twice as long as the other kernel.
        is_noticeable = is_increase(changes[slow_main]) or changes[fast_main].is_certain
        is_main_in_slower = 2 * changes[fast_main].slower <= changes[slow_main].slower
        is_main_in_faster = 2 * changes[slow_main].faster <= changes[fast_main].faster
        if not (is_noticeable and is_main_in_slower and is_main_in_faster):
            return
        summary = f"{module} computes with {slow_main.name}() instead of {fast_main.name}()"
    claim = unclaimed.claim(functions=changes)
    yield claim.cause("configuration", summary, **names, module=module, settings=settings)


def _main_function(seconds: Mapping[Function, float]) -> Function | None:
    """Return the function that takes more than half of its library's time in one condition."""
    longest = max(seconds, key=lambda function: seconds[function])
    return longest if seconds[longest] > _MIN_MAIN_SHARE * sum(seconds.values()) > 0 else None
