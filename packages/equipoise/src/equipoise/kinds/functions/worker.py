"""The program of a fresh process that runs functions: it waits for its order, measures and ends.

It runs by its path in the caller's Python and does not import Equipoise, so the functions run in a
process like that of a script. ``equipoise.kinds.functions.processes`` writes its input.

The functions are defined in the order that the caller drew. Code objects are loaded or copied, so
their places in memory follow this order. Each function has its own timing loop. Before every batch
the garbage is collected, untimed, and objects older than the first batch are frozen. So the times
of a function contain the collection of its own garbage only.

Every process needs time for the imports of this file.
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
"""Length of a batch at which the calibration ends."""
CHECKED_BATCHES = 16
"""Number of batches that check whether calls get slower and slower."""
CHECKED_S = 0.02
"""Longest batch for which this check runs."""
GROWTH = 1.5
"""Ratio of late to early batches from which on calls count as slower and slower."""
_QUARTER = 4
_MIN_RISING_SHARE = 0.8
"""Least share of pairs of batches whose later one takes longer, if calls get slower."""
_MAX_STATE_BYTES = 1 << 28


class FunctionFailed(Exception):
    """An exception of a function or of its preparation; the text describes it."""

    def __init__(self, function: int, during: str, text: str) -> None:
        super().__init__(text)
        self.function = function
        self.during = during


class Timer:
    """One function with its timing loop.

    ``number`` is its place among all functions, and ``side`` its
    ``equipoise.kinds.functions.functions.Side`` as a dictionary. With ``fresh_calls`` the setup
    runs, and names get their first values, before each call. ``clock`` returns nanoseconds.
    """

    def __init__(
        self,
        number: int,
        side: dict[str, Any],
        *,
        fresh_calls: bool,
        clock: Callable[[], int] = time.perf_counter_ns,
    ) -> None:
        self.number = number
        self._clock = clock
        self._fresh_calls = fresh_calls
        self._pickled_names: bytes | None = side["names"]
        self._await = _awaiter() if side["awaits"] else None
        try:
            self.function = _redefined(_unpickled(side["function"]))
            self.setup = _unpickled(side["setup_function"])
            self.names: dict[str, Any] = {
                "__builtins__": builtins,
                "__name__": "__main__",
                **(_unpickled(self._pickled_names) or {}),
            }
        except BaseException as error:
            raise FunctionFailed(number, "load", _text(error)) from error
        self._make = types.FunctionType(marshal.loads(side["loop"]), self.names)
        self._loop: Any = None

    def start(self) -> None:
        """Run the setup, and stop before the first call."""
        try:
            if self._await is not None and self._loop is not None:
                self._await(self._loop.aclose())
            if self._fresh_calls and self._pickled_names is not None:
                self._renew_names(self._pickled_names)
            self._loop = self._make(self._clock, self.function, self.setup)
            self._send(None)
        except BaseException as error:
            raise FunctionFailed(self.number, "setup", _text(error)) from error

    def _renew_names(self, pickled: bytes) -> None:
        """Replace values that an earlier call may have changed; functions keep their caches."""
        kept_types = (types.FunctionType, types.BuiltinFunctionType, type, types.ModuleType)
        for name, value in _unpickled(pickled).items():
            if not isinstance(value, kept_types):
                self.names[name] = value

    def batch_ns(self, calls: int) -> int:
        """Return the nanoseconds of a batch of calls."""
        gc.collect()
        if not self._fresh_calls:
            return self._timed(calls)
        total = 0
        for _ in range(calls):
            self.start()
            # The setup's garbage must not be collected during the call.
            gc.collect(0)
            total += self._timed(1)
        return total

    def _timed(self, calls: int) -> int:
        try:
            return int(self._send(itertools.repeat(None, calls)))
        except BaseException as error:
            raise FunctionFailed(self.number, "call", _text(error)) from error

    def _send(self, calls: Iterator[None] | None) -> Any:
        if self._await is None:
            return self._loop.send(calls)
        return self._await(self._loop.asend(calls))


def main(
    request_file: str, ready: str, order_file: str, answer_file: str, running_file: str
) -> None:
    """Prepare, wait for the order, follow it and write the answer."""
    with open(request_file, "rb") as stream:
        request = marshal.load(stream)
    sys.path[:] = request["path"]
    sys.argv[:] = [""]
    _import_all(request["modules"])
    with open(ready, "wb", buffering=0) as stream:
        stream.write(b"r")
    with open(order_file, "rb") as stream:
        order = marshal.load(stream)
    try:
        if "examine" in order:
            answer = examination(request["sides"], order["examine"])
        else:
            running = _shared(running_file)
            answer = {"batches": batches_of_rounds(request["sides"], running, **order)}
    except FunctionFailed as failure:
        answer = {
            "failed": failure.function,
            "during": failure.during,
            "text": str(failure),
        }
    with open(answer_file, "wb") as stream:
        marshal.dump(answer, stream)
    # Ending the interpreter regularly would take longer than many batches.
    os._exit(0)


def _shared(file: str) -> mmap.mmap:
    """Return four bytes that the caller can read from a file when this process is dead.

    They are in memory, so that writing to them needs no system call between the batches.
    """
    with open(file, "w+b") as stream:
        stream.write(b"\xff" * 4)
        stream.flush()
        return mmap.mmap(stream.fileno(), 4)


def batches_of_rounds(
    sides: list[dict[str, Any]],
    running: mmap.mmap,
    definitions: list[int],
    rounds: list[list[int]],
    calls: list[int],
    fresh_calls: bool,
) -> list[list[int]]:
    """Return the nanoseconds of every batch of each function, in order.

    ``definitions`` has the functions in the order of their definitions, and ``rounds`` has those of
    each round in the order of their batches. ``calls`` is the number of calls in a batch of each.
    ``running`` gets the number of each function before it runs, so that the caller can find the one
    that ended the process.
    """
    timers = {}
    for number in definitions:
        running[:] = number.to_bytes(4, "little", signed=True)
        timers[number] = Timer(number, sides[number], fresh_calls=fresh_calls)
    for number, timer in timers.items():
        running[:] = number.to_bytes(4, "little", signed=True)
        timer.start()
    gc.collect()
    gc.freeze()
    batches: list[list[int]] = [[] for _ in sides]
    for order in rounds:
        for number in order:
            running[:] = number.to_bytes(4, "little", signed=True)
            batches[number].append(timers[number].batch_ns(calls[number]))
    return batches


def examination(sides: list[dict[str, Any]], number: int) -> dict[str, Any]:
    """Return the duration of a call of one function, and whether it changes its data."""
    side = sides[number]
    timer = Timer(number, side, fresh_calls=False)
    changes, is_watched, returns = _one_call(timer, side)
    fresh_calls = changes and bool(side["can_renew"])
    timer = Timer(number, side, fresh_calls=fresh_calls)
    timer.start()
    gc.collect()
    gc.freeze()
    # The first call also imports, and fills caches.
    calls, call_ns, batch_s = 1, timer.batch_ns(1), 0.0
    while True:
        began = time.perf_counter_ns()
        batch_ns = timer.batch_ns(calls)
        batch_s = (time.perf_counter_ns() - began) / 1e9
        call_ns = max(1, batch_ns // calls)
        if batch_ns >= CALIBRATION_BATCH_NS or batch_s >= CHECKED_S:
            break
        calls *= 2
    is_short = batch_s < CHECKED_S
    if is_short:
        batches = sorted(timer.batch_ns(calls) for _ in range(CHECKED_BATCHES))
        call_ns = max(1, batches[CHECKED_BATCHES // 2] // calls)
    return {
        "call_ns": call_ns,
        "whole_ns": max(call_ns, int(1e9 * batch_s / calls)),
        "changes": changes,
        "is_watched": is_watched,
        "returns": returns,
        "grows": is_short and not fresh_calls and grows(number, side, calls),
    }


def grows(number: int, side: dict[str, Any], calls: int) -> bool:
    """Return whether calls get slower and slower, by two checks.

    The second check has longer batches; in the first a slower machine may look the same by chance.
    """
    return all(_rises(number, side, factor * calls) for factor in (1, 2))


def _rises(number: int, side: dict[str, Any], calls: int) -> bool:
    """Return whether each batch of calls takes more CPU time than the one before.

    It uses CPU time, because on a busy machine wall times grow as well.
    """
    timer = Timer(number, side, fresh_calls=False, clock=time.thread_time_ns)
    timer.start()
    timer.batch_ns(2 * calls)
    batches = [timer.batch_ns(calls) for _ in range(CHECKED_BATCHES)]
    first, last = sorted(batches[:_QUARTER]), sorted(batches[-_QUARTER:])
    pairs = [*itertools.combinations(batches, 2)]
    rising = sum(before < after for before, after in pairs)
    return last[1] > GROWTH * first[_QUARTER // 2] and rising > _MIN_RISING_SHARE * len(pairs)


def _one_call(timer: Timer, side: dict[str, Any]) -> tuple[bool, bool, str]:
    """Call a function once; return whether it changed its data, and the type of its result.

    The second value is whether every change would have been noticed.
    """
    names = dict(timer.names)
    during = "setup"
    try:
        if side["function"] is None:
            _run(side["setup_code"], names, timer)
            before = [*names]
            digests = [_digest(names[name]) for name in before]
            during = "call"
            _run(side["code"], names, timer)
            after = [_digest(names.get(name)) for name in before]
            values = [names.get(name) for name in before]
            return _differ(digests, after), _are_watched(values, digests), ""
        argument = [] if timer.setup is None else [timer.setup()]
        data = argument or _surroundings(timer.function)
        digests = [*map(_digest, data)]
        during = "call"
        returned = timer.function(*argument)
        if timer._await is not None:
            returned = timer._await(returned)
        data = argument or _surroundings(timer.function)
        if isinstance(returned, types.CoroutineType):
            returned.close()
        changes = _differ(digests, [*map(_digest, data)])
        return changes, _are_watched(data, digests), type(returned).__name__
    except BaseException as error:
        raise FunctionFailed(timer.number, during, _text(error)) from error


def _run(code: bytes, names: dict[str, Any], timer: Timer) -> None:
    awaitable = eval(marshal.loads(code), names)
    if awaitable is not None and timer._await is not None:
        timer._await(awaitable)


def _differ(before: list[bytes | None], after: list[bytes | None]) -> bool:
    """Return whether a digest that is known before and after a call has changed."""
    known_pairs = [pair for pair in zip(before, after, strict=False) if None not in pair]
    return any(old != new for old, new in known_pairs)


def _are_watched(values: list[Any], digests: list[bytes | None]) -> bool:
    """Return whether all values have a digest, except those that no call changes."""
    fixed = (types.FunctionType, types.BuiltinFunctionType, types.ModuleType, type)
    return all(
        digest is not None or isinstance(value, fixed)
        for value, digest in zip(values, digests, strict=True)
    )


def _surroundings(function: Any) -> list[Any]:
    """Return the values that a function and its helpers can reach besides their arguments.

    They are globals, closures and defaults. Functions of a module are not followed.
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
        functions += [value for value in values if not _is_of_a_module(value)]
    return reachable


def _is_of_a_module(value: Any) -> bool:
    module = sys.modules.get(getattr(value, "__module__", None) or "")
    return getattr(module, getattr(value, "__name__", ""), None) is value


class _Digest:
    """A file that digests the bytes written to it, and raises if there are too many."""

    def __init__(self) -> None:
        import hashlib

        self.digest = hashlib.blake2b()
        self._size = 0

    def write(self, part: Any) -> int:
        size = memoryview(part).nbytes
        self._size += size
        if self._size > _MAX_STATE_BYTES:
            raise OverflowError
        self.digest.update(part)
        return size


def _digest(value: Any) -> bytes | None:
    """Return a digest of a value; ``None`` if it cannot be pickled or is very large."""
    import pickle

    sink = _Digest()
    try:
        pickle.Pickler(sink, protocol=5).dump(value)
    except Exception:
        return None
    return sink.digest.digest()


def _unpickled(pickled: bytes | None) -> Any:
    return None if pickled is None else _pickle.loads(pickled)


def _redefined(function: Any) -> Any:
    """Return a copy of a Python function with its own code object; other values unchanged."""
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
    """Return a function that runs awaitables to their ends on one event loop."""
    import asyncio

    runner = asyncio.Runner()

    async def finish(awaitable: Any) -> Any:
        return await awaitable

    return lambda awaitable: runner.run(finish(awaitable))


def _import_all(modules: list[str]) -> None:
    """Import the modules of the functions; a failure is reported when the functions are loaded."""
    for module in modules:
        try:
            __import__(module)
        except Exception:
            continue


def _text(error: BaseException) -> str:
    """Return the text of an exception, with the line that raised it."""
    import traceback

    place = traceback.extract_tb(error.__traceback__)[-1:]
    where = "".join(f" (line {frame.lineno} of {frame.filename})" for frame in place)
    return f"{type(error).__name__}: {error}{where}"


if __name__ == "__main__":
    main(*sys.argv[1:])
