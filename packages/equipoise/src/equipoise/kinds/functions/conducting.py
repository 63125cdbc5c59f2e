"""Compare Python functions: trial runs, the plan, the campaign and its record.

A batch is a number of calls that are timed together; a round has a batch of each function.

A fresh process gets copies of the data that functions use. A copy may have a different memory
layout: for instance, a column of a wide array becomes contiguous. Then functions are faster or
slower with the copies. So Equipoise also times functions with data in the caller's process. It
refuses the comparison if the ratios differ.
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
from equipoise.kinds.functions.functions import Benchmark, code_benchmarks, function_benchmarks
from equipoise.kinds.functions.processes import MAX_WAITING_PROCESSES, process_pool
from equipoise.kinds.functions.runner import function_runner, steady_ns
from equipoise.kinds.functions.terms import STUDY, FunctionsPlan, functions_of
from equipoise.kinds.functions.trial_runs import (
    TrialRunResult,
    calls_and_rounds,
    trial_run_results,
    warnings_of,
)
from equipoise.ledger import open_for_writing
from equipoise.measure.trials import base_environment, own_environment
from equipoise.model.errors import UnusableInput
from equipoise.model.plan import CALL_METRIC, Condition, Judgement, Measure, Plan, Stopping
from equipoise.model.record import RunRecord

_DEFAULT_MEASURE = Measure(working_folder="")
_DEFAULT_LIMITS = {
    "alpha": Judgement().alpha,
    "min_effect": Judgement().min_effect,
    "timeout": _DEFAULT_MEASURE.timeout_s,
    "warmup": _DEFAULT_MEASURE.warmup,
    "patient": False,
}


def compare_functions(
    commands: Sequence[object],
    setup: Callable[[], object] | None,
    request: FunctionsRequest,
    command_options: Mapping[str, object],
) -> RunRecord:
    """Compare functions, or describe one, and return the record of the campaign.

    ``command_options`` are options that only commands have; a false value means that the option was
    not given. Raise `UnusableInput` if not all of ``commands`` are functions, a function cannot be
    compared, or an option does not fit. Raise `ConditionFailed` if a function failed. Raise
    `KeyboardInterrupt` if the user interrupted the campaign; its trials are in the ledger.
    """
    functions = [command for command in commands if callable(command)]
    if len(functions) < len(commands) or not functions:
        raise UnusableInput(
            "commands and functions are mixed" if functions else "setup= is only for functions",
            hint="give only functions; a function can run a command with subprocess.run",
        )
    given_options = [name for name, value in command_options.items() if value]
    if given_options:
        raise UnusableInput(
            f"{given_options[0]}= is for commands: functions that are compared share one process",
            hint=f"remove {given_options[0]}=, or compare programs",
        )
    benchmarks = function_benchmarks(functions, setup, request.names)
    setup_name = None if setup is None else getattr(setup, "__name__", type(setup).__name__)
    originals = [Original(function) for function in functions]
    return _compare(benchmarks, originals, setup_name, request)


def compare_pieces(
    codes: Sequence[str], setup: str, variables: Mapping[str, object], request: FunctionsRequest
) -> RunRecord:
    """Compare pieces of code, or describe one, and return the record of the campaign.

    ``variables`` has the values of names that the code may use. Raise `UnusableInput` if there is
    no piece of code, or a piece cannot be compared. Raise `ConditionFailed` if a piece failed.
    Raise `KeyboardInterrupt` if the user interrupted the campaign; its trials are in the ledger.
    """
    benchmarks = code_benchmarks(codes, setup, variables, request.names)
    originals = [Original(variables=variables)] * len(benchmarks)
    return _compare(benchmarks, originals, setup or None, request)


def _compare(
    benchmarks: Sequence[Benchmark],
    originals: Sequence[Original],
    setup: str | None,
    request: FunctionsRequest,
) -> RunRecord:
    """Run the campaign; ``setup`` is the code of the setup, or the name of its function."""
    if not benchmarks:
        raise UnusableInput(
            "there is no code to compare",
            hint='give pieces of code: equipoise.compare_code("sum([1, 2])", "1 + 2")',
        )
    warnings = ranking_warnings(len(benchmarks), request.ranking)
    with conduct.measurement_lock(conduct.warn_of_wait, allow_concurrent=request.allow_concurrent):
        results = trial_run_results(benchmarks, timeout_s=request.limits.timeout_s)
        if setup is None:
            refuse_copies_that_differ(benchmarks, originals, results, request.limits.timeout_s)
        plan = functions_plan(benchmarks, results, setup, request)
        with open_for_writing(Path(request.ledger or default_ledger()), durable=False) as ledger:
            try:
                run_id = conduct.start(
                    plan,
                    ledger,
                    request.progress or ProgressListener(),
                    warnings=(*warnings_of(benchmarks, results, functions_of(plan)), *warnings),
                    runner_factory=partial(function_runner, benchmarks),
                )
            except conduct.Interrupted as interruption:
                message = f"the finished trials are kept as run {interruption.run_id}"
                raise KeyboardInterrupt(message) from interruption
            return ledger.read_run(run_id)


def functions_plan(
    benchmarks: Sequence[Benchmark],
    results: Sequence[TrialRunResult],
    setup: str | None,
    request: FunctionsRequest,
) -> Plan:
    """Return the plan that compares functions or describes one; the first function is the baseline.

    ``setup`` is the code of the setup, or the name of its function. Raise `UnusableInput` if the
    limits contradict each other.
    """
    limits = request.limits
    # A function that changes its data gets fresh data before each call, if the data can be made.
    fresh_data = any(result.changes_data for result in results) and any(
        benchmark.can_make_fresh_data for benchmark in benchmarks
    )
    batch_calls, rounds = calls_and_rounds(results, fresh_data=fresh_data)
    seed = limits.seed_or_random()
    return Plan(
        study=STUDY,
        conditions=tuple(
            Condition(name=benchmark.name, command=(sys.executable, "-c", benchmark.source))
            for benchmark in benchmarks
        ),
        measure=limits.measure(Measure(working_folder=os.getcwd())),
        stopping=limits.stopping(
            ONE_COMMAND_LIMITS if len(benchmarks) == 1 else Stopping(leave_out_decided=True)
        ),
        judgement=limits.judgement((CALL_METRIC,)),
        seed=seed,
        ranking=request.ranking is not False,
        terms=FunctionsPlan(
            batch_calls=tuple(batch_calls),
            rounds=rounds,
            fresh_data=fresh_data,
            setup=setup,
            digests=tuple(benchmark.digest for benchmark in benchmarks),
            python_version=f"{platform.python_implementation()} {platform.python_version()}",
            python_line=_python_line(benchmarks, setup, request, seed),
        ),
    )


def _python_line(
    benchmarks: Sequence[Benchmark], setup: str | None, request: FunctionsRequest, seed: int
) -> str:
    """Return the line of Python that repeats the comparison; empty if a function has no name."""
    is_code, limits, names = benchmarks[0].function is None, request.limits, request.names
    expressions = [benchmark.name for benchmark in benchmarks]
    expressions += [] if setup is None else [setup]
    if not is_code and (names or not all(map(_is_name, expressions))):
        return ""
    arguments = [repr(benchmark.source) if is_code else benchmark.name for benchmark in benchmarks]
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


_COPIES_PHASE = "copies"
MIN_DATA_BYTES = 16_384
"""Minimum size of pickled functions that contain data; code alone is smaller."""
MAX_ROUND_S = 0.5
"""Largest seconds of a round (one call of each function) for which the copies are checked."""
_MAX_LOCAL_S = 0.5
"""Seconds after which the caller's process times no other round."""
_MIN_ROUNDS, _MAX_ROUNDS = 3, 15
"""Smallest and largest number of rounds that the caller's process times."""
COPY_PROCESSES = 5
MAX_RATIO_FACTOR = 1.1
"""Largest factor between two ratios that count as equal."""


class Original(Struct, frozen=True):
    """The function or the variables of one benchmark in the caller's process, not their copies."""

    function: Callable[..., object] | None = None
    variables: Mapping[str, object] = {}


def refuse_copies_that_differ(
    benchmarks: Sequence[Benchmark],
    originals: Sequence[Original],
    results: Sequence[TrialRunResult],
    timeout_s: float,
) -> None:
    """Raise `UnusableInput` if copies of the functions have other ratios than the originals.

    The functions must not have a setup, because a setup makes new data instead of copies. There is
    no check if a call in this process could change the caller's data, or takes long.
    """
    if not _can_check(benchmarks, results):
        return
    batch_calls, rounds = calls_and_rounds(results, fresh_data=False)
    ratios_before = _local_ratios(benchmarks, originals, batch_calls)
    ratios_of_copies = _ratios_of_copies(benchmarks, batch_calls, rounds, timeout_s)
    ratios_after = _local_ratios(benchmarks, originals, batch_calls)
    if ratios_before is None or ratios_after is None or ratios_of_copies is None:
        return
    for index in range(1, len(benchmarks)):
        copy_ratios = [process_ratios[index] for process_ratios in ratios_of_copies]
        local_ratios = (ratios_before[index], ratios_after[index])
        is_higher = min(copy_ratios) > MAX_RATIO_FACTOR * max(local_ratios)
        is_lower = MAX_RATIO_FACTOR * max(copy_ratios) < min(local_ratios)
        if is_higher or is_lower:
            local_ratio = statistics.median(local_ratios)
            copy_ratio = statistics.median(copy_ratios)
            raise UnusableInput(
                "fresh processes get copies of your data, and the copies change the result: "
                f"{benchmarks[index].name} takes {local_ratio:.2f} times the time of "
                f"{benchmarks[0].name} with your data, but {copy_ratio:.2f} times with the copies",
                hint=_setup_hint(benchmarks[0]),
            )


def _setup_hint(benchmark: Benchmark) -> str:
    if benchmark.function is None:
        return "make the data in each fresh process: setup='data = …', the code that makes it"
    return (
        "make the data in each fresh process: eq.compare(f, g, setup=make), where make() returns "
        "the data and f and g take it as their argument"
    )


def _can_check(benchmarks: Sequence[Benchmark], results: Sequence[TrialRunResult]) -> bool:
    """Return whether calls in this process are brief, change nothing, and use data."""
    may_change = any(result.changes_data or not result.sees_every_change for result in results)
    if len(benchmarks) < 2 or may_change or any(benchmark.is_async for benchmark in benchmarks):
        return False
    pickled_data = [benchmark.function or benchmark.variables or b"" for benchmark in benchmarks]
    has_data = sum(map(len, pickled_data)) >= MIN_DATA_BYTES
    return has_data and sum(result.call_s for result in results) <= MAX_ROUND_S


def _local_ratios(
    benchmarks: Sequence[Benchmark], originals: Sequence[Original], batch_calls: Sequence[int]
) -> list[float] | None:
    """Return the median ratio of each function to the first; ``None`` if a function fails."""
    try:
        with _frozen_heap_and_hidden_output():
            loops = [_started_loop(*pair) for pair in zip(benchmarks, originals, strict=True)]
            times_by_function: list[list[float]] = [[] for _ in benchmarks]
            started_s = time.perf_counter()
            for round_index in range(_MAX_ROUNDS + 1):
                order = range(len(benchmarks))
                for index in order if round_index % 2 else reversed(order):
                    batch_ns = loops[index].send(itertools.repeat(None, batch_calls[index]))
                    times_by_function[index].append(batch_ns / batch_calls[index])
                if round_index >= _MIN_ROUNDS and time.perf_counter() - started_s > _MAX_LOCAL_S:
                    break
    # A function that fails in this process may run in fresh processes.
    except (Exception, SystemExit):
        return None
    return _median_ratios([times[1:] for times in times_by_function])


def _ratios_of_copies(
    benchmarks: Sequence[Benchmark], batch_calls: Sequence[int], rounds: int, timeout_s: float
) -> list[list[float]] | None:
    """Return each process's ratios to the first function, or ``None`` if a function fails."""
    indexes = [*range(len(benchmarks))]
    environment = base_environment(own_environment())
    keys = [(_COPIES_PHASE, number) for number in range(min(COPY_PROCESSES, MAX_WAITING_PROCESSES))]
    ratios = []
    with process_pool(
        benchmarks, lambda _: environment, lambda key: keys[keys.index(key) :], timeout_s
    ) as pool:
        for number, key in enumerate(keys):
            order = indexes if number % 2 else indexes[::-1]
            instructions = {
                "definition_order": order,
                "round_orders": [
                    order if index % 2 else order[::-1] for index in range(rounds + 1)
                ],
                "calls": list(batch_calls),
                "fresh_data": False,
            }
            batches = (pool.run(key, instructions).content or {}).get("batches")
            # If a function fails now, it fails in the campaign too, and the campaign reports it.
            if batches is None:
                return None
            call_ns = [
                steady_ns(batch) / count for batch, count in zip(batches, batch_calls, strict=True)
            ]
            ratios.append([ns / max(call_ns[0], 1e-9) for ns in call_ns])
    return ratios


def _median_ratios(times_by_function: Sequence[Sequence[float]]) -> list[float]:
    baseline = times_by_function[0]
    return [
        statistics.median(ns / max(base, 1e-9) for ns, base in zip(times, baseline, strict=True))
        for times in times_by_function
    ]


def _started_loop(benchmark: Benchmark, original: Original) -> Any:
    """Return a benchmark's timing loop around the caller's own objects, ready to start."""
    variables = {**original.variables, "__builtins__": builtins, "__name__": "__main__"}
    make_loop = types.FunctionType(marshal.loads(benchmark.loop), variables)
    loop = make_loop(time.perf_counter_ns, original.function, None)
    next(loop)
    return loop


@contextlib.contextmanager
def _frozen_heap_and_hidden_output() -> Iterator[None]:
    """Hide existing objects from the garbage collector, and hide what functions print."""
    gc.collect()
    # Unfreezing affects all frozen objects, so do nothing if the caller has frozen some.
    may_freeze = gc.get_freeze_count() == 0
    if may_freeze:
        gc.freeze()
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            yield
    finally:
        if may_freeze:
            gc.unfreeze()
