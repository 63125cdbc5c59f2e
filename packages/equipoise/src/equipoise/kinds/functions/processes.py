"""Fresh processes that wait for their order: prepared together, measured one by one.

Starting Python and importing modules takes longer than measuring small functions. So several
processes start and import at once, on all processors. When all of them wait, they are measured one
after the other while nothing else runs. Each process is executed, not forked: forked processes
share their addresses and their hash seed, which make equal functions differ
(docs/decisions/measuring.md).
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
"""Largest number of processes that wait at a time; each has a copy of the data."""
_POLL_S = 0.05
_ORDER, _ANSWER, _RUNNING = ".order", ".answer", ".running"

Key = tuple[str, int]
"""Phase and number of the block of a process."""


class Answer(Struct, frozen=True):
    """The answer of a worker, and the end of its process."""

    report: Report
    content: dict[str, Any] | None
    """Content of the answer; ``None`` if there is none."""
    running: int | None = None
    """Function that ran when the process ended without an answer, if known."""


class Processes(Protocol):
    """Provides a fresh process for each block, or in tests a scripted answer."""

    def run(self, key: Key, order: dict[str, Any], on_wait: OnWait | None = None) -> Answer:
        """Send an order to the process of a block, and return its answer."""
        ...


class _Prepared(Struct):
    """One process that waits for its order."""

    launcher: Launcher
    order: int
    """File descriptor of the FIFO to the process."""
    place: Path
    """Path of its files, without their suffixes."""

    def running(self) -> int | None:
        """Return the function that ran last; ``None`` if none began."""
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
    keys_from: Callable[[Key], Sequence[Key]],
    timeout_s: float,
) -> Iterator[PreparedProcesses]:
    """Provide fresh processes that run functions, with a private folder for all of them.

    ``environment_of`` returns the environment of the process of a block. ``keys_from`` returns a
    key and the keys of the blocks that probably follow.
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
            scratch, request_file, program, os.getcwd(), environment_of, keys_from, timeout_s
        )
        with closing(processes):
            yield processes


class PreparedProcesses(Struct):
    """Fresh processes with the functions of one campaign (`prepared_processes`)."""

    scratch: Path
    request_file: Path
    """File with the functions, which each process reads first."""
    program: Path
    working_folder: str
    environment_of: Callable[[Key], dict[str, str]]
    keys_from: Callable[[Key], Sequence[Key]]
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
        """Send an order to the process of a block, and return its answer."""
        if key not in self._prepared:
            self._prepare([other for other in self.keys_from(key) if other not in self._prepared])
        prepared = self._prepared.pop(key)
        try:
            os.write(prepared.order, marshal.dumps(order))
            report = prepared.launcher.finish(on_wait)
        finally:
            # Not earlier: the content of a FIFO is lost if no process has it open.
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
        """Start a process for each block, and return when all of them are ready."""
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
                # The process also waits while the earlier ones are measured.
                launcher.begin(self._start_of(key, files, ahead * self.timeout_s))
                # Open for reading and writing, so that opening does not wait for the other end.
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
        # The caller's flags; without -P the path of modules would begin with this folder.
        flags: list[str] = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
        return Request(
            argv=(sys.executable, *flags, "-P", str(self.program), *map(str, files)),
            environment=self.environment_of(key),
            working_folder=self.working_folder,
            timeout_s=timeout_s,
        )
