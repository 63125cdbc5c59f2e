"""The program of a fresh process that waits for its instructions, runs functions and ends.

The caller's Python runs this program by its path. The program does not import Equipoise, so the
functions run in a process like that of a script. ``equipoise.kinds.functions.processes`` sends
the instructions.

The functions are defined in an order that the caller drew. A batch is a number of calls that are
timed together. Before every batch the garbage is collected, untimed. Objects older than the first
batch are frozen: the garbage collector ignores them. So the times of a function contain the
collection of its own garbage only.

The file has few imports, because every process needs time for them.
"""

from __future__ import annotations

import _pickle
import builtins
import gc
import itertools
import marshal
import mmap
import os
import sys
import time
import types

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

CALIBRATION_BATCH_NS = 250_000
"""Nanoseconds of a batch that is long enough to time one call."""
CHECKED_BATCHES = 16
"""Number of batches in the check whether calls get slower and slower."""
MAX_CHECKED_BATCH_S = 0.02
"""Largest seconds of a batch for which this check is made."""
MIN_GROWTH_RATIO = 1.5
"""Minimum ratio of late to early batches, if calls get slower and slower."""
_QUARTER = CHECKED_BATCHES // 4
"""Number of the first batches, and of the last, that this check compares."""
_MIN_RISING_SHARE = 0.8
"""Minimum share of pairs in which the later batch takes longer, if calls get slower and slower."""
_MAX_DIGESTED_BYTES = 1 << 28
"""Largest pickle of a value, in bytes, for which a digest is computed."""


class FunctionFailed(Exception):
    """An exception of a function or its setup; ``stage`` is ``load``, ``setup`` or ``call``."""

    def __init__(self, function_index: int, stage: str, text: str) -> None:
        super().__init__(text)
        self.function_index = function_index
        self.stage = stage


class Timer:
    """One function with its timing loop.

    ``index`` is the index of the function. ``benchmark`` is the function's
    ``equipoise.kinds.functions.functions.Benchmark`` as a dictionary. With ``fresh_data`` the
    setup runs, and variables get new values, before each call. ``clock`` returns nanoseconds.
    """

    def __init__(
        self,
        index: int,
        benchmark: dict[str, Any],
        *,
        fresh_data: bool,
        clock: Callable[[], int] = time.perf_counter_ns,
    ) -> None:
        self.index = index
        self._clock = clock
        self._fresh_data = fresh_data
        self._pickled_variables: bytes | None = benchmark["variables"]
        self.await_result = _awaiter() if benchmark["is_async"] else None
        try:
            self.function = _with_own_code(_unpickle(benchmark["function"]))
            self.setup = _unpickle(benchmark["setup_function"])
            self.variables: dict[str, Any] = {
                "__builtins__": builtins,
                "__name__": "__main__",
                **(_unpickle(self._pickled_variables) or {}),
            }
        except BaseException as error:
            raise FunctionFailed(index, "load", _error_text(error)) from error
        self._make_loop = types.FunctionType(marshal.loads(benchmark["loop"]), self.variables)
        self._loop: Any = None

    def start(self) -> None:
        """Run the setup, and stop before the first call."""
        try:
            if self.await_result is not None and self._loop is not None:
                self.await_result(self._loop.aclose())
            if self._fresh_data and self._pickled_variables is not None:
                self._make_fresh_variables(self._pickled_variables)
            self._loop = self._make_loop(self._clock, self.function, self.setup)
            self._send(None)
        except BaseException as error:
            raise FunctionFailed(self.index, "setup", _error_text(error)) from error

    def _make_fresh_variables(self, pickled: bytes) -> None:
        """Replace the values that an earlier call may have changed, but no functions and types."""
        kept_types = (types.FunctionType, types.BuiltinFunctionType, type, types.ModuleType)
        for name, value in _unpickle(pickled).items():
            if not isinstance(value, kept_types):
                self.variables[name] = value

    def batch_ns(self, calls: int) -> int:
        """Return the nanoseconds of a batch of calls."""
        gc.collect()
        if not self._fresh_data:
            return self._timed_batch_ns(calls)
        batch_ns = 0
        for _ in range(calls):
            self.start()
            # The setup's garbage must not be collected during the call.
            gc.collect(0)
            batch_ns += self._timed_batch_ns(1)
        return batch_ns

    def _timed_batch_ns(self, calls: int) -> int:
        try:
            return int(self._send(itertools.repeat(None, calls)))
        except BaseException as error:
            raise FunctionFailed(self.index, "call", _error_text(error)) from error

    def _send(self, calls: Iterator[None] | None) -> Any:
        if self.await_result is None:
            return self._loop.send(calls)
        return self.await_result(self._loop.asend(calls))


def main(
    request_file: str, ready_fifo: str, instructions_file: str, answer_file: str, running_file: str
) -> None:
    """Import the modules, wait for the instructions, follow them and write the answer."""
    with open(request_file, "rb") as stream:
        request = marshal.load(stream)
    sys.path[:] = request["path"]
    sys.argv[:] = [""]
    _import_all(request["modules"])
    with open(ready_fifo, "wb", buffering=0) as stream:
        stream.write(b"r")
    with open(instructions_file, "rb") as stream:
        instructions = marshal.load(stream)
    try:
        if "trial_run" in instructions:
            answer = trial_run(request["benchmarks"], instructions["trial_run"])
        else:
            running_index = _shared_bytes(running_file)
            batches = batches_of_rounds(request["benchmarks"], running_index, **instructions)
            answer = {"batches": batches}
    except FunctionFailed as failure:
        answer = {"failed": failure.function_index, "stage": failure.stage, "text": str(failure)}
    with open(answer_file, "wb") as stream:
        marshal.dump(answer, stream)
    # A regular end of the interpreter would take longer than many batches.
    os._exit(0)


def _shared_bytes(file: str) -> mmap.mmap:
    """Return four bytes of a file as mapped memory, so that a write needs no system call."""
    with open(file, "w+b") as stream:
        stream.write(b"\xff" * 4)
        stream.flush()
        return mmap.mmap(stream.fileno(), 4)


def batches_of_rounds(
    benchmarks: list[dict[str, Any]],
    running_index: mmap.mmap,
    definition_order: list[int],
    round_orders: list[list[int]],
    calls: list[int],
    fresh_data: bool,
) -> list[list[int]]:
    """Return the nanoseconds of every batch of each function, in order.

    ``definition_order`` has the indexes of the functions in the order of their definitions.
    ``round_orders`` has for each round the indexes in the order of the batches. ``calls`` is the
    number of calls in a batch of each function. ``running_index`` gets the index of a function
    before the function runs. If the process dies, the caller reads the index.
    """
    timers = {}
    for index in definition_order:
        running_index[:] = index.to_bytes(4, "little", signed=True)
        timers[index] = Timer(index, benchmarks[index], fresh_data=fresh_data)
    for index, timer in timers.items():
        running_index[:] = index.to_bytes(4, "little", signed=True)
        timer.start()
    gc.collect()
    gc.freeze()
    batches: list[list[int]] = [[] for _ in benchmarks]
    for round_order in round_orders:
        for index in round_order:
            running_index[:] = index.to_bytes(4, "little", signed=True)
            batches[index].append(timers[index].batch_ns(calls[index]))
    return batches


def trial_run(benchmarks: list[dict[str, Any]], index: int) -> dict[str, Any]:
    """Return the duration of a call of one function, and whether a call changes its data."""
    benchmark = benchmarks[index]
    timer = Timer(index, benchmark, fresh_data=False)
    changes_data, sees_every_change, result_type = _check_one_call(timer, benchmark)
    fresh_data = changes_data and bool(benchmark["can_make_fresh_data"])
    timer = Timer(index, benchmark, fresh_data=fresh_data)
    timer.start()
    gc.collect()
    gc.freeze()
    # The first call also imports modules and fills caches, so its time is not used.
    calls, call_ns, batch_s = 1, timer.batch_ns(1), 0.0
    while True:
        began = time.perf_counter_ns()
        batch_ns = timer.batch_ns(calls)
        batch_s = (time.perf_counter_ns() - began) / 1e9
        call_ns = max(1, batch_ns // calls)
        if batch_ns >= CALIBRATION_BATCH_NS or batch_s >= MAX_CHECKED_BATCH_S:
            break
        calls *= 2
    is_short = batch_s < MAX_CHECKED_BATCH_S
    if is_short:
        batches = sorted(timer.batch_ns(calls) for _ in range(CHECKED_BATCHES))
        call_ns = max(1, batches[CHECKED_BATCHES // 2] // calls)
    return {
        "call_ns": call_ns,
        "call_and_setup_ns": max(call_ns, int(1e9 * batch_s / calls)),
        "changes_data": changes_data,
        "sees_every_change": sees_every_change,
        "result_type": result_type,
        "gets_slower": is_short and not fresh_data and calls_get_slower(index, benchmark, calls),
    }


def calls_get_slower(index: int, benchmark: dict[str, Any], calls: int) -> bool:
    """Return whether calls get slower and slower in two checks; one may be wrong by chance."""
    return all(_batches_get_slower(index, benchmark, factor * calls) for factor in (1, 2))


def _batches_get_slower(index: int, benchmark: dict[str, Any], calls: int) -> bool:
    """Return whether batches of calls take more and more CPU time."""
    timer = Timer(index, benchmark, fresh_data=False, clock=time.thread_time_ns)
    timer.start()
    timer.batch_ns(2 * calls)
    batches = [timer.batch_ns(calls) for _ in range(CHECKED_BATCHES)]
    early, late = sorted(batches[:_QUARTER]), sorted(batches[-_QUARTER:])
    pairs = [*itertools.combinations(batches, 2)]
    rising_pairs = sum(earlier < later for earlier, later in pairs)
    # Compare the second fastest late batch with the median early batch: one may be fast by chance.
    has_grown = late[1] > MIN_GROWTH_RATIO * early[_QUARTER // 2]
    return has_grown and rising_pairs > _MIN_RISING_SHARE * len(pairs)


def _check_one_call(timer: Timer, benchmark: dict[str, Any]) -> tuple[bool, bool, str]:
    """Call a function once, and compare its data before and after the call.

    Return whether the data changed, whether every change is noticed, and the type of the result.
    """
    variables = dict(timer.variables)
    stage = "setup"
    try:
        if benchmark["function"] is None:
            _run_code(benchmark["setup_code"], variables, timer)
            names = [*variables]
            digests = [_digest_of(variables[name]) for name in names]
            stage = "call"
            _run_code(benchmark["code"], variables, timer)
            values = [variables.get(name) for name in names]
            later_digests = [*map(_digest_of, values)]
            return _digests_differ(digests, later_digests), _all_have_digests(values, digests), ""
        argument = [] if timer.setup is None else [timer.setup()]
        data = argument or _reachable_values(timer.function)
        digests = [*map(_digest_of, data)]
        stage = "call"
        result = timer.function(*argument)
        if timer.await_result is not None:
            result = timer.await_result(result)
        data = argument or _reachable_values(timer.function)
        if isinstance(result, types.CoroutineType):
            result.close()
        changes_data = _digests_differ(digests, [*map(_digest_of, data)])
        return changes_data, _all_have_digests(data, digests), type(result).__name__
    except BaseException as error:
        raise FunctionFailed(timer.index, stage, _error_text(error)) from error


def _run_code(code: bytes, variables: dict[str, Any], timer: Timer) -> None:
    awaitable = eval(marshal.loads(code), variables)
    if awaitable is not None and timer.await_result is not None:
        timer.await_result(awaitable)


def _digests_differ(before: list[bytes | None], after: list[bytes | None]) -> bool:
    """Return whether a value has one digest before a call and another digest after the call."""
    known_digests = [pair for pair in zip(before, after, strict=False) if None not in pair]
    return any(digest != later_digest for digest, later_digest in known_digests)


def _all_have_digests(values: list[Any], digests: list[bytes | None]) -> bool:
    """Return whether all values that a call may change have a digest."""
    constant_types = (types.FunctionType, types.BuiltinFunctionType, types.ModuleType, type)
    return all(
        digest is not None or isinstance(value, constant_types)
        for value, digest in zip(values, digests, strict=True)
    )


def _reachable_values(function: Any) -> list[Any]:
    """Return the globals, closures and defaults of a function, and of the functions among them.

    The functions of a module are not searched.
    """
    import inspect

    reachable: list[Any] = []
    functions, visited = [function], set()
    while functions:
        inner = inspect.unwrap(functions.pop())
        if id(inner) in visited or not isinstance(inner, types.FunctionType):
            continue
        visited.add(id(inner))
        variables = inspect.getclosurevars(inner)
        defaults = [*(inner.__defaults__ or ()), *(inner.__kwdefaults__ or {}).values()]
        values = [*variables.nonlocals.values(), *variables.globals.values(), *defaults]
        reachable += values
        functions += [value for value in values if not _is_module_member(value)]
    return reachable


def _is_module_member(value: Any) -> bool:
    module = sys.modules.get(getattr(value, "__module__", None) or "")
    return getattr(module, getattr(value, "__name__", ""), None) is value


class _DigestWriter:
    """A file that computes a digest of the written bytes, and raises if there are too many."""

    def __init__(self) -> None:
        import hashlib

        self.hasher = hashlib.blake2b()
        self._size = 0

    def write(self, content: Any) -> int:
        size = memoryview(content).nbytes
        self._size += size
        if self._size > _MAX_DIGESTED_BYTES:
            raise OverflowError
        self.hasher.update(content)
        return size


def _digest_of(value: Any) -> bytes | None:
    """Return a digest of a value; ``None`` if it cannot be pickled or is very large."""
    import pickle

    writer = _DigestWriter()
    try:
        pickle.Pickler(writer, protocol=5).dump(value)
    except Exception:
        return None
    return writer.hasher.digest()


def _unpickle(pickled: bytes | None) -> Any:
    return None if pickled is None else _pickle.loads(pickled)


def _with_own_code(function: Any) -> Any:
    """Return a copy of a Python function with its own code object, or any other value unchanged."""
    if not isinstance(function, types.FunctionType):
        return function
    copy = types.FunctionType(
        function.__code__.replace(),
        function.__globals__,
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
    copy.__kwdefaults__ = function.__kwdefaults__
    copy.__dict__.update(function.__dict__)
    return copy


def _awaiter() -> Callable[[Any], Any]:
    """Return a function that runs an awaitable to its end, always on the same event loop."""
    import asyncio

    runner = asyncio.Runner()

    async def finish(awaitable: Any) -> Any:
        return await awaitable

    return lambda awaitable: runner.run(finish(awaitable))


def _import_all(modules: list[str]) -> None:
    """Import modules; ignore failures, because loading the functions reports them."""
    for module in modules:
        try:
            __import__(module)
        except Exception:
            continue


def _error_text(error: BaseException) -> str:
    """Return the text of an exception, with the line that raised it."""
    import traceback

    frames = traceback.extract_tb(error.__traceback__)[-1:]
    location = "".join(f" (line {frame.lineno} of {frame.filename})" for frame in frames)
    return f"{type(error).__name__}: {error}{location}"


if __name__ == "__main__":
    main(*sys.argv[1:])
