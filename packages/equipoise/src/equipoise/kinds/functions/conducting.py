"""A campaign of functions: trial runs, the plan, the campaign, its record.

A fresh process gets copies of the data that functions use. A copy may have a different memory
layout: a column of a wide array is packed, the parts of a frame are joined. Then the comparison of
copies answers a different question. Equipoise therefore times functions with data a few times in
this process and in fresh ones, and refuses to compare them if the ratios differ.
"""

from __future__ import annotations

import builtins
import contextlib
import gc
import io
import itertools
import marshal
import os
import platform
import statistics
import sys
import time
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from keyword import iskeyword
from pathlib import Path
from typing import Any

from msgspec import Struct

from equipoise.campaign import conduct
from equipoise.campaign.plans import FunctionsRequest, ranking_warnings
from equipoise.campaign.progress import ProgressListener
from equipoise.design.limits import ONE_COMMAND_LIMITS
from equipoise.files.state import default_ledger
from equipoise.kinds.functions.functions import Side, code_sides, function_sides
from equipoise.kinds.functions.processes import MAX_WAITING_PROCESSES, prepared_processes
from equipoise.kinds.functions.runner import function_runner, steady_ns
from equipoise.kinds.functions.terms import STUDY, FunctionsPlan, functions_of
from equipoise.kinds.functions.trial_runs import (
    ExaminedFunction,
    calls_and_rounds,
    examine,
    warnings_of,
)
from equipoise.ledger import open_for_writing
from equipoise.measure.trials import base_environment, own_environment
from equipoise.model.errors import UnusableInput
from equipoise.model.plan import CALL_METRIC, Condition, Judgement, Measure, Plan, Stopping
from equipoise.model.record import RunRecord

_MEASURE = Measure(working_folder="")
_DEFAULT_LIMITS = {
    "alpha": Judgement().alpha,
    "min_effect": Judgement().min_effect,
    "timeout": _MEASURE.timeout_s,
    "warmup": _MEASURE.warmup,
    "patient": False,
}
"""Default limits of `equipoise.compare`."""


def compare_functions(
    commands: Sequence[object],
    setup: Callable[[], object] | None,
    request: FunctionsRequest,
    options_of_commands: Mapping[str, object],
) -> RunRecord:
    """Compare functions, or describe one, and return the record of the campaign.

    ``options_of_commands`` are options that only commands have; false values were not given. Raise
    `UnusableInput` if not all of ``commands`` are functions, one of them cannot be compared, or an
    option does not fit. Raise `ConditionFailed` if a function failed. Raise `KeyboardInterrupt` if
    the user interrupted it; the finished trials are in the ledger.
    """
    functions = [command for command in commands if callable(command)]
    if len(functions) < len(commands) or not functions:
        raise UnusableInput(
            "setup= is for functions" if not functions else "commands and functions are mixed",
            hint="give only functions; a function can run a command with subprocess.run",
        )
    given_options = [name for name, value in options_of_commands.items() if value]
    if given_options:
        raise UnusableInput(
            f"{given_options[0]}= is for commands: functions that are compared share one process",
            hint="leave it out, or compare programs",
        )
    sides = function_sides(functions, setup, request.names)
    setup_name = None if setup is None else getattr(setup, "__name__", type(setup).__name__)
    originals = [Original(function) for function in functions]
    return _compare(sides, originals, setup_name, request)


def compare_pieces(
    codes: Sequence[str], setup: str, available: Mapping[str, object], request: FunctionsRequest
) -> RunRecord:
    """Compare pieces of code, or describe one, and return the record of the campaign.

    ``available`` are values of names that the code may use. Raise `UnusableInput` if there is no
    piece, or one of them cannot be compared. Raise `ConditionFailed` if a piece of code failed.
    Raise `KeyboardInterrupt` if the user interrupted it; the finished trials are in the ledger.
    """
    sides = code_sides(codes, setup, available, request.names)
    originals = [Original(names=available)] * len(sides)
    return _compare(sides, originals, setup or None, request)


def _compare(
    sides: Sequence[Side],
    originals: Sequence[Original],
    setup: str | None,
    request: FunctionsRequest,
) -> RunRecord:
    if not sides:
        raise UnusableInput(
            "there is no code to compare", hint='as in eq.compare_code("sorted(x)", "x.sort()")'
        )
    no_ranking = ranking_warnings(len(sides), request.ranking)
    with conduct.measurement_lock(conduct.warn_of_wait, allow_concurrent=request.allow_concurrent):
        examined = examine(sides, timeout_s=request.limits.timeout_s)
        if setup is None:
            refuse_copies_that_differ(sides, originals, examined, request.limits.timeout_s)
        plan = functions_plan(sides, examined, setup, request)
        with open_for_writing(Path(request.ledger or default_ledger()), durable=False) as store:
            try:
                run_id = conduct.start(
                    plan,
                    store,
                    request.progress or ProgressListener(),
                    warnings=(*warnings_of(sides, examined, functions_of(plan)), *no_ranking),
                    runner_factory=partial(function_runner, sides),
                )
            except conduct.Interrupted as interruption:
                run = interruption.run_id
                raise KeyboardInterrupt(
                    f"the finished trials are kept as run {run}"
                ) from interruption
            return store.read_run(run_id)


def functions_plan(
    sides: Sequence[Side],
    examined: Sequence[ExaminedFunction],
    setup: str | None,
    request: FunctionsRequest,
) -> Plan:
    """Return the plan that compares functions, or describes one; the first is the baseline.

    ``setup`` is the code of the setup, or the name of its function. Raise `UnusableInput` if the
    limits contradict each other.
    """
    limits = request.limits
    fresh_calls = any(function.changes for function in examined) and any(
        side.can_renew for side in sides
    )
    calls, rounds = calls_and_rounds(examined, fresh_calls=fresh_calls)
    seed = limits.seed_or_random()
    return Plan(
        study=STUDY,
        conditions=tuple(
            Condition(name=side.name, command=(sys.executable, "-c", side.source)) for side in sides
        ),
        measure=limits.measure(Measure(working_folder=os.getcwd())),
        stopping=limits.stopping(
            ONE_COMMAND_LIMITS if len(sides) == 1 else Stopping(leave_out_decided=True)
        ),
        judgement=limits.judgement((CALL_METRIC,)),
        seed=seed,
        ranking=request.ranking is not False,
        terms=FunctionsPlan(
            calls=tuple(calls),
            rounds=rounds,
            fresh_calls=fresh_calls,
            setup=setup,
            digests=tuple(side.digest for side in sides),
            python=f"{platform.python_implementation()} {platform.python_version()}",
            again=_python_line(sides, setup, request, seed),
        ),
    )


def _python_line(
    sides: Sequence[Side], setup: str | None, request: FunctionsRequest, seed: int
) -> str:
    """Return the Python line that repeats the comparison; empty if a function has no name."""
    is_code, limits, names = sides[0].function is None, request.limits, request.names
    expressions = [*(side.name for side in sides), *([] if setup is None else [setup])]
    if not is_code and (names or not all(map(_is_name, expressions))):
        return ""
    arguments = [repr(side.source) if is_code else side.name for side in sides]
    if setup is not None:
        arguments.append(f"setup={setup!r}" if is_code else f"setup={setup}")
    for name in limits.__struct_fields__:
        value = getattr(limits, name)
        if name != "seed" and value is not None and value != _DEFAULT_LIMITS.get(name):
            arguments.append(f"{name}={value!r}")
    arguments += [f"names={[*names]!r}"] if names else []
    arguments += ["ranking=False"] if request.ranking is False else []
    return f"eq.compare{'_code' if is_code else ''}({', '.join(arguments)}, seed={seed})"


def _is_name(text: str) -> bool:
    return all(part.isidentifier() and not iskeyword(part) for part in text.split("."))


_COPIES = "copies"
"""Phase of the processes that time the copies."""
MIN_DATA_BYTES = 16_384
"""Size of pickled functions from which on they contain data; code alone is smaller."""
MAX_ROUND_S = 0.5
"""Seconds of one call of each function, above which the originals are not timed."""
_MAX_LOCAL_S = 0.5
_MIN_ROUNDS, _MAX_ROUNDS = 3, 15
COPY_PROCESSES = 5
"""Number of fresh processes that time the copies."""
MAX_RATIO_FACTOR = 1.1
"""Factor between two ratios that differences between processes may explain."""


class Original(Struct, frozen=True):
    """The caller's own objects of one side, which this process can call."""

    function: Callable[..., object] | None = None
    names: Mapping[str, object] = {}
    """Values that code may use."""


def refuse_copies_that_differ(
    sides: Sequence[Side],
    originals: Sequence[Original],
    examined: Sequence[ExaminedFunction],
    timeout_s: float,
) -> None:
    """Raise `UnusableInput` if the copies of functions have a different ratio than the originals.

    The functions have no setup. They are not checked if a call in this process could change the
    caller's data, or takes long.
    """
    if not _can_be_called_locally(sides, examined):
        return
    calls, rounds = calls_and_rounds(examined, fresh_calls=False)
    before = _local_ratios(sides, originals, calls)
    copies = _ratios_of_copies(sides, calls, rounds, timeout_s)
    after = _local_ratios(sides, originals, calls)
    if before is None or after is None or copies is None:
        return
    for place in range(1, len(sides)):
        ratios = [process_ratios[place] for process_ratios in copies]
        local_ratios = (before[place], after[place])
        is_higher = min(ratios) > MAX_RATIO_FACTOR * max(local_ratios)
        is_lower = MAX_RATIO_FACTOR * max(ratios) < min(local_ratios)
        if is_higher or is_lower:
            local_ratio, copy_ratio = statistics.median(local_ratios), statistics.median(ratios)
            raise UnusableInput(
                "fresh processes get copies of your data, and the copies change the result: "
                f"{sides[place].name} takes {local_ratio:.2f} times the time of {sides[0].name} "
                f"with your data, but {copy_ratio:.2f} times with the copies",
                hint=_hint(sides[0]),
            )


def _hint(side: Side) -> str:
    if side.function is None:
        return "make the data in each fresh process: setup='data = …', the code that makes it"
    return (
        "make the data in each fresh process: eq.compare(f, g, setup=make), where make() returns "
        "the data and f and g take it as their argument"
    )


def _can_be_called_locally(sides: Sequence[Side], examined: Sequence[ExaminedFunction]) -> bool:
    """Return whether calls in this process are brief, change nothing and are worth a check."""
    changes = any(side.changes or not side.is_watched for side in examined)
    if len(sides) < 2 or changes or any(side.awaits for side in sides):
        return False
    data_bytes = sum(len(side.function or b"") + len(side.names or b"") for side in sides)
    return data_bytes >= MIN_DATA_BYTES and sum(side.call_s for side in examined) <= MAX_ROUND_S


def _local_ratios(
    sides: Sequence[Side], originals: Sequence[Original], calls: Sequence[int]
) -> list[float] | None:
    """Return the ratio of each function to the first one in this process: a median of rounds.

    ``None`` if a function fails here.
    """
    try:
        with _like_a_fresh_process():
            loops = [_loop(*both) for both in zip(sides, originals, strict=True)]
            series: list[list[float]] = [[] for _ in sides]
            began = time.perf_counter()
            for number in range(_MAX_ROUNDS + 1):
                order = range(len(sides))
                for place in order if number % 2 else reversed(order):
                    batch_ns = loops[place].send(itertools.repeat(None, calls[place]))
                    series[place].append(batch_ns / calls[place])
                if number >= _MIN_ROUNDS and time.perf_counter() - began > _MAX_LOCAL_S:
                    break
    # A function may fail in this process and still be comparable in fresh ones.
    except (Exception, SystemExit):
        return None
    return _median_ratios([times[1:] for times in series])


def _ratios_of_copies(
    sides: Sequence[Side], calls: Sequence[int], rounds: int, timeout_s: float
) -> list[list[float]] | None:
    """Return the ratios of the functions to the first one, in each of some fresh processes."""
    places = [*range(len(sides))]
    environment = base_environment(own_environment())
    keys = [(_COPIES, number) for number in range(min(COPY_PROCESSES, MAX_WAITING_PROCESSES))]
    ratios = []
    with prepared_processes(
        sides, lambda _: environment, lambda key: keys[key[1] :], timeout_s
    ) as processes:
        for key in keys:
            order_of_places = places if key[1] % 2 else places[::-1]
            order = {
                "definitions": order_of_places,
                "rounds": [
                    order_of_places if turn % 2 else order_of_places[::-1]
                    for turn in range(rounds + 1)
                ],
                "calls": list(calls),
                "fresh_calls": False,
            }
            batches = (processes.run(key, order).content or {}).get("batches")
            # A function that fails now also fails in the campaign, which reports it.
            if batches is None:
                return None
            call_ns = [
                steady_ns(batch) / count for batch, count in zip(batches, calls, strict=True)
            ]
            ratios.append([each / max(call_ns[0], 1e-9) for each in call_ns])
    return ratios


def _median_ratios(series: Sequence[Sequence[float]]) -> list[float]:
    first = series[0]
    return [
        statistics.median(ns / max(base, 1e-9) for ns, base in zip(times, first, strict=True))
        for times in series
    ]


def _loop(side: Side, original: Original) -> Any:
    """Return the timing loop of a side around the caller's own objects, before its first batch."""
    names = {**original.names, "__builtins__": builtins, "__name__": "__main__"}
    make = types.FunctionType(marshal.loads(side.loop), names)
    loop = make(time.perf_counter_ns, original.function, None)
    next(loop)
    return loop


@contextlib.contextmanager
def _like_a_fresh_process() -> Iterator[None]:
    """Freeze existing objects for the garbage collector, and hide what functions print."""
    gc.collect()
    # Unfreezing also unfreezes the objects that others froze, so do nothing if there are any.
    freezes = gc.get_freeze_count() == 0
    if freezes:
        gc.freeze()
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            yield
    finally:
        if freezes:
            gc.unfreeze()
