"""The program of a fresh process that runs functions: it waits for its order, measures and ends.

It runs by its path in the Python of the caller and imports nothing of Equipoise, so that the
functions meet a process like that of a script. ``equipoise.kinds.functions.processes`` writes what
it reads.

The functions are defined in the order that the caller drew, each anew: code objects are loaded
or copied, so that their places in memory follow that order. Each has its own timing loop. Before
every batch the garbage is collected, untimed, and what existed before the first batch is frozen:
a function pays for its own garbage and for nothing else's.

Every process pays for what this file imports.
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

HELD_NS = 250_000
"""Length of a batch that calibration reaches."""
CHECKED_BATCHES = 16
CHECKED_S = 0.02
"""Longest batch of which so many are run to see whether calls get slower and slower."""
GROWTH = 1.5
"""Ratio of late to early batches above which calls get slower and slower."""
_QUARTER = 4
_RISING = 0.8
"""Share of the pairs of batches whose later one takes longer, where calls get slower."""
_MAX_STATE_BYTES = 1 << 28


class Failed(Exception):
    """A function, or what prepares it, raised; the text says what."""

    def __init__(self, function: int, during: str, text: str) -> None:
        super().__init__(text)
        self.function = function
        self.during = during


class Timer:
    """One function with its timing loop.

    ``number`` is its place among all, ``side`` what the caller sent of it
    (``equipoise.kinds.functions.functions.Side``). With ``fresh_calls`` the setup runs, and the
    names have their first values, before each call. ``clock`` returns nanoseconds, for the batches.
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
            self.function = _defined_anew(_unpickled(side["function"]))
            self.setup = _unpickled(side["setup_function"])
            self.names: dict[str, Any] = {
                "__builtins__": builtins,
                "__name__": "__main__",
                **(_unpickled(self._pickled_names) or {}),
            }
        except BaseException as error:
            raise Failed(number, "load", _text(error)) from error
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
            raise Failed(self.number, "setup", _text(error)) from error

    def _renew_names(self, pickled: bytes) -> None:
        """Replace what an earlier call may have changed; functions keep what they have learnt."""
        kept = (types.FunctionType, types.BuiltinFunctionType, type, types.ModuleType)
        for name, value in _unpickled(pickled).items():
            if not isinstance(value, kept):
                self.names[name] = value

    def batch_ns(self, calls: int) -> int:
        """Return the nanoseconds of so many calls."""
        gc.collect()
        if not self._fresh_calls:
            return self._timed(calls)
        total = 0
        for _ in range(calls):
            self.start()
            # The setup's own garbage must not come due within the call.
            gc.collect(0)
            total += self._timed(1)
        return total

    def _timed(self, calls: int) -> int:
        try:
            return int(self._send(itertools.repeat(None, calls)))
        except BaseException as error:
            raise Failed(self.number, "call", _text(error)) from error

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
            answer = examined(request["sides"], order["examine"])
        else:
            running = _shared(running_file)
            answer = {"batches": measured(request["sides"], running, **order)}
    except Failed as failure:
        answer = {
            "failed": failure.function,
            "during": failure.during,
            "text": str(failure),
        }
    with open(answer_file, "wb") as stream:
        marshal.dump(answer, stream)
    # Taking the interpreter down takes longer than many a batch, and shows nobody anything.
    os._exit(0)


def _shared(file: str) -> mmap.mmap:
    """Return four bytes whose value the caller can read from a file when this process is dead.

    Memory, since writing to it costs no system call beside the batches.
    """
    with open(file, "w+b") as stream:
        stream.write(b"\xff" * 4)
        stream.flush()
        return mmap.mmap(stream.fileno(), 4)


def measured(
    sides: list[dict[str, Any]],
    running: mmap.mmap,
    definitions: list[int],
    rounds: list[list[int]],
    calls: list[int],
    fresh_calls: bool,
) -> list[list[int]]:
    """Return the nanoseconds of every batch of each function, in order.

    ``definitions`` are the functions in the order in which they are defined, ``rounds`` those of
    each round in the order of their batches, ``calls`` the number of calls in a batch of each.
    ``running`` gets the number of each function before it runs: who reads it knows which one ended
    the process.
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


def examined(sides: list[dict[str, Any]], number: int) -> dict[str, Any]:
    """Return what a call of one function takes, and what it does to what it works on."""
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
        taken = timer.batch_ns(calls)
        batch_s = (time.perf_counter_ns() - began) / 1e9
        call_ns = max(1, taken // calls)
        if taken >= HELD_NS or batch_s >= CHECKED_S:
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
    """Return whether calls get slower and slower, in two looks.

    The second look has longer batches: a machine that slows down passes the first one by chance.
    """
    return all(_rises(number, side, factor * calls) for factor in (1, 2))


def _rises(number: int, side: dict[str, Any], calls: int) -> bool:
    """Return whether each batch of calls takes more CPU time than the one before.

    CPU time, since a busy machine makes wall times grow as well.
    """
    timer = Timer(number, side, fresh_calls=False, clock=time.thread_time_ns)
    timer.start()
    timer.batch_ns(2 * calls)
    batches = [timer.batch_ns(calls) for _ in range(CHECKED_BATCHES)]
    first, last = sorted(batches[:_QUARTER]), sorted(batches[-_QUARTER:])
    pairs = [*itertools.combinations(batches, 2)]
    rising = sum(before < after for before, after in pairs)
    return last[1] > GROWTH * first[_QUARTER // 2] and rising > _RISING * len(pairs)


def _one_call(timer: Timer, side: dict[str, Any]) -> tuple[bool, bool, str]:
    """Call a function once; return whether it changed what it works on, and what it returned.

    The second value is whether every change would have been seen.
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
        works_on = argument or _surroundings(timer.function)
        digests = [*map(_digest, works_on)]
        during = "call"
        returned = timer.function(*argument)
        if timer._await is not None:
            returned = timer._await(returned)
        works_on = argument or _surroundings(timer.function)
        if isinstance(returned, types.CoroutineType):
            returned.close()
        changes = _differ(digests, [*map(_digest, works_on)])
        return changes, _are_watched(works_on, digests), type(returned).__name__
    except BaseException as error:
        raise Failed(timer.number, during, _text(error)) from error


def _run(code: bytes, names: dict[str, Any], timer: Timer) -> None:
    awaitable = eval(marshal.loads(code), names)
    if awaitable is not None and timer._await is not None:
        timer._await(awaitable)


def _differ(before: list[bytes | None], after: list[bytes | None]) -> bool:
    """Return whether a digest that is known before and after a call is another."""
    known = [pair for pair in zip(before, after, strict=False) if None not in pair]
    return any(old != new for old, new in known)


def _are_watched(values: list[Any], digests: list[bytes | None]) -> bool:
    """Return whether all values have a digest, but for those that no call of a function changes."""
    fixed = (types.FunctionType, types.BuiltinFunctionType, types.ModuleType, type)
    return all(
        digest is not None or isinstance(value, fixed)
        for value, digest in zip(values, digests, strict=True)
    )


def _surroundings(function: Any) -> list[Any]:
    """Return what a function reaches beside its arguments, and its helpers with it.

    That is globals, closures and defaults. Functions that a module has are not followed.
    """
    import inspect

    found: list[Any] = []
    functions, seen = [function], set()
    while functions:
        inner = inspect.unwrap(functions.pop())
        if id(inner) in seen or not isinstance(inner, types.FunctionType):
            continue
        seen.add(id(inner))
        reached = inspect.getclosurevars(inner)
        defaults = [*(inner.__defaults__ or ()), *(inner.__kwdefaults__ or {}).values()]
        values = [*reached.nonlocals.values(), *reached.globals.values(), *defaults]
        found += values
        functions += [value for value in values if not _is_of_a_module(value)]
    return found


def _is_of_a_module(value: Any) -> bool:
    module = sys.modules.get(getattr(value, "__module__", None) or "")
    return getattr(module, getattr(value, "__name__", ""), None) is value


class _Digest:
    """A file that keeps a digest of what is written, and refuses too much of it."""

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
    """Return a digest of a value; ``None`` of what cannot be pickled, or is very large."""
    import pickle

    sink = _Digest()
    try:
        pickle.Pickler(sink, protocol=5).dump(value)
    except Exception:
        return None
    return sink.digest.digest()


def _unpickled(pickled: bytes | None) -> Any:
    return None if pickled is None else _pickle.loads(pickled)


def _defined_anew(function: Any) -> Any:
    """Return a copy of a Python function with a code object of its own; anything else as it is."""
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
    """Return what runs an awaitable to its end, all on one event loop."""
    import asyncio

    runner = asyncio.Runner()

    async def finish(awaitable: Any) -> Any:
        return await awaitable

    return lambda awaitable: runner.run(finish(awaitable))


def _import_all(modules: list[str]) -> None:
    """Import what the functions need; what fails here fails again when they are loaded."""
    for module in modules:
        try:
            __import__(module)
        except Exception:
            continue


def _text(error: BaseException) -> str:
    """Return an exception with the line that raised it."""
    import traceback

    place = traceback.extract_tb(error.__traceback__)[-1:]
    where = "".join(f" (line {frame.lineno} of {frame.filename})" for frame in place)
    return f"{type(error).__name__}: {error}{where}"


if __name__ == "__main__":
    main(*sys.argv[1:])
