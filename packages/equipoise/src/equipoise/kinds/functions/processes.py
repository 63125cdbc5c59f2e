"""Fresh processes that wait for their order: prepared together, measured one by one.

To start Python and to import what the functions need takes longer than to measure small
functions. So several processes are started at once and do both, on all processors; once every one
of them waits, they are measured one after the other while nothing else runs. Each was executed
anew, and none forked from another: forked processes share their addresses and their hash seed,
which is what makes equal functions differ (docs/decisions/decisions.md).
"""

from __future__ import annotations

import marshal
import os
import py_compile
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any, Protocol

from msgspec import Struct
from msgspec.structs import asdict

from equipoise.files.writing import becomes_readable
from equipoise.kinds.functions.functions import Side
from equipoise.measure.installation import launcher_program
from equipoise.measure.launcher import Launcher, OnWait, Report, Request
from equipoise.measure.leftovers import clear_leftovers
from equipoise.measure.scratch import scratch_folder

WORKER = Path(__file__).with_name("worker.py")
MAX_WAITING_PROCESSES = 8
"""Largest number of processes that wait at a time: each holds what the functions hold."""
_POLL_S = 0.05
_ORDER, _ANSWER, _RUNNING = ".order", ".answer", ".running"

Key = tuple[str, int]
"""Phase and number of the block that a process is for."""


class Answer(Struct, frozen=True):
    """What a worker wrote, and how its process ended."""

    report: Report
    content: dict[str, Any] | None
    """``None`` if it wrote nothing."""
    running: int | None = None
    """Function that ran when the process ended without an answer, where that is known."""


class Processes(Protocol):
    """Provides a fresh process for each block, or in tests a scripted answer."""

    def run(self, key: Key, order: dict[str, Any], on_wait: OnWait | None = None) -> Answer:
        """Let the process of a block follow an order to its end."""
        ...


class _Prepared(Struct):
    """One process that waits for its order."""

    launcher: Launcher
    order: int
    """Open FIFO to it."""
    place: Path
    """Its files, each with another suffix."""

    def running(self) -> int | None:
        """Return the function that ran last; ``None`` where none was begun."""
        try:
            running = self.place.with_suffix(_RUNNING).read_bytes()
        except OSError:
            return None
        number = int.from_bytes(running, "little", signed=True)
        return None if number < 0 else number


@contextmanager
def prepared_processes(
    sides: Sequence[Side],
    environment_of: Callable[[Key], dict[str, str]],
    following: Callable[[Key], Sequence[Key]],
    timeout_s: float,
) -> Iterator[PreparedProcesses]:
    """Make what runs functions in fresh processes, with a private folder for all of them.

    ``environment_of`` returns the environment of the process of a block, ``following`` the keys of
    the blocks that will probably come next, beginning with one.
    """
    clear_leftovers()
    with scratch_folder() as scratch:
        modules = sorted({module for side in sides for module in side.modules})
        request = {"path": sys.path, "modules": modules, "sides": [asdict(side) for side in sides]}
        request_file, program = scratch / "functions", scratch / "worker.pyc"
        request_file.write_bytes(marshal.dumps(request))
        # Python keeps no compiled form of a program that it runs by its path.
        py_compile.compile(str(WORKER), str(program), doraise=True)
        processes = PreparedProcesses(
            scratch, request_file, program, os.getcwd(), environment_of, following, timeout_s
        )
        with closing(processes):
            yield processes


class PreparedProcesses(Struct):
    """Fresh processes with the functions of one campaign (`prepared_processes`)."""

    scratch: Path
    request_file: Path
    """What each process reads first: the functions."""
    program: Path
    working_folder: str
    environment_of: Callable[[Key], dict[str, str]]
    following: Callable[[Key], Sequence[Key]]
    timeout_s: float
    _launchers: list[Launcher] = []
    _idle: list[Launcher] = []
    _prepared: dict[Key, _Prepared] = {}
    _started: int = 0

    def close(self) -> None:
        """End every process."""
        for prepared in self._prepared.values():
            os.close(prepared.order)
        for launcher in self._launchers:
            launcher.close()

    def run(self, key: Key, order: dict[str, Any], on_wait: OnWait | None = None) -> Answer:
        """Let the process of a block follow an order to its end."""
        if key not in self._prepared:
            self._prepare([key_ for key_ in self.following(key) if key_ not in self._prepared])
        prepared = self._prepared.pop(key)
        try:
            os.write(prepared.order, marshal.dumps(order))
            report = prepared.launcher.finish(on_wait)
        finally:
            # Not earlier: what is in a FIFO that nobody has open is lost.
            os.close(prepared.order)
        self._idle.append(prepared.launcher)
        try:
            content = marshal.loads(prepared.place.with_suffix(_ANSWER).read_bytes())
        except (OSError, ValueError, EOFError, TypeError):
            content = None
        running = None if content is not None else prepared.running()
        for suffix in (_ORDER, _ANSWER, _RUNNING):
            prepared.place.with_suffix(suffix).unlink(missing_ok=True)
        return Answer(report, content, running)

    def _prepare(self, keys: Sequence[Key]) -> None:
        """Start a process for each block, and wait until all of them wait."""
        with ExitStack() as stack:
            waiting: list[tuple[int, Launcher]] = []
            for ahead, key in enumerate(keys, start=1):
                self._started += 1
                place = self.scratch / f"function-{self._started}"
                order_file, ready = place.with_suffix(_ORDER), place.with_suffix(".ready")
                os.mkfifo(order_file, 0o600)
                os.mkfifo(ready, 0o600)
                stack.callback(ready.unlink)
                signals = os.open(ready, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
                stack.callback(os.close, signals)
                launcher = self._launcher()
                written = (place.with_suffix(suffix) for suffix in (_ANSWER, _RUNNING))
                files = (self.request_file, ready, order_file, *written)
                # Those ahead of it are measured while it waits.
                launcher.begin(self._start_of(key, files, ahead * self.timeout_s))
                # Open for both, so that nobody waits for the other end to be opened.
                order = os.open(order_file, os.O_RDWR | os.O_CLOEXEC)
                self._prepared[key] = _Prepared(launcher, order, place)
                waiting.append((signals, launcher))
            for signals, launcher in waiting:
                while not becomes_readable(signals, _POLL_S) and not launcher.has_ended():
                    pass

    def _launcher(self) -> Launcher:
        if self._idle:
            return self._idle.pop()
        launcher = Launcher(launcher_program(), campaign=self.scratch)
        self._launchers.append(launcher)
        return launcher

    def _start_of(self, key: Key, files: Sequence[Path], timeout_s: float) -> Request:
        # The caller's own flags of the interpreter; without -P its path would begin with ours.
        flags: list[str] = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
        return Request(
            argv=(sys.executable, *flags, "-P", str(self.program), *map(str, files)),
            environment=self.environment_of(key),
            working_folder=self.working_folder,
            timeout_s=timeout_s,
        )
