"""Prepare fresh processes together, and measure them one by one.

Starting Python and importing modules takes longer than measuring small functions. So several
processes start and import at once, on all processors, and then wait for their instructions. They
measure one after the other while nothing else runs. Each process is executed, because forked
processes would share their addresses and their hash seed (docs/decisions/measuring.md).
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
from equipoise.kinds.functions.functions import Benchmark
from equipoise.measure.installation import launcher_program
from equipoise.measure.launcher import Launcher, OnWait, Report, Request
from equipoise.measure.leftovers import clear_leftovers
from equipoise.measure.scratch import scratch_folder

WORKER = Path(__file__).with_name("worker.py")
"""Program that each fresh process runs."""
MAX_WAITING_PROCESSES = 8
"""Largest number of processes that wait at the same time; each has a copy of the data."""
_POLL_S = 0.05
"""Seconds after which an ended process is noticed while it should become ready."""
_INSTRUCTIONS, _ANSWER, _RUNNING = ".instructions", ".answer", ".running"
"""Suffixes of a process's files: instructions, answer, and index of the running function."""

ProcessKey = tuple[str, int]
"""Key of a process: the phase and the number of its block."""


class Answer(Struct, frozen=True):
    """The answer of a worker, and the end of its process."""

    report: Report
    content: dict[str, Any] | None
    """Content of the answer; ``None`` if the process ended without an answer."""
    running_index: int | None = None
    """Index of the function that ran when the process ended without an answer, if known."""


class ProcessProvider(Protocol):
    """Interface that gives a fresh process for each block; tests give scripted answers."""

    def run(
        self, key: ProcessKey, instructions: dict[str, Any], on_wait: OnWait | None = None
    ) -> Answer:
        """Send instructions to the process of a block, and return its answer."""
        ...


class _WaitingProcess(Struct):
    """A process that waits for its instructions."""

    launcher: Launcher
    descriptor: int
    """File descriptor of the FIFO through which the process gets its instructions."""
    base_path: Path
    """Path of the process's files, without their suffixes."""

    def running_function(self) -> int | None:
        """Return the index of the function that ran last; ``None`` if none began."""
        try:
            content = self.base_path.with_suffix(_RUNNING).read_bytes()
        except OSError:
            return None
        index = int.from_bytes(content, "little", signed=True)
        return None if index < 0 else index


@contextmanager
def process_pool(
    benchmarks: Sequence[Benchmark],
    environment_of: Callable[[ProcessKey], dict[str, str]],
    keys_from: Callable[[ProcessKey], Sequence[ProcessKey]],
    timeout_s: float,
) -> Iterator[ProcessPool]:
    """Provide fresh processes that run functions, with a private folder for all of them.

    ``environment_of`` returns the environment of the process of a block. ``keys_from`` returns the
    key of a block and the keys of the next blocks to prepare.
    """
    clear_leftovers()
    with scratch_folder() as scratch:
        modules = sorted({module for benchmark in benchmarks for module in benchmark.modules})
        fields = [asdict(benchmark) for benchmark in benchmarks]
        request = {"path": sys.path, "modules": modules, "benchmarks": fields}
        request_file, program = scratch / "functions", scratch / "worker.pyc"
        request_file.write_bytes(marshal.dumps(request))
        # Python does not cache the bytecode of a program that it runs by its path.
        py_compile.compile(str(WORKER), str(program), doraise=True)
        pool = ProcessPool(
            scratch, request_file, program, os.getcwd(), environment_of, keys_from, timeout_s
        )
        with closing(pool):
            yield pool


class ProcessPool(Struct):
    """Fresh processes with the functions of one campaign (`process_pool`)."""

    scratch: Path
    request_file: Path
    """File with the functions, which each process reads first."""
    program: Path
    working_folder: str
    environment_of: Callable[[ProcessKey], dict[str, str]]
    keys_from: Callable[[ProcessKey], Sequence[ProcessKey]]
    timeout_s: float
    _launchers: list[Launcher] = []
    _idle_launchers: list[Launcher] = []
    _processes: dict[ProcessKey, _WaitingProcess] = {}
    _start_count: int = 0

    def close(self) -> None:
        """End every process."""
        for process in self._processes.values():
            os.close(process.descriptor)
        for launcher in self._launchers:
            launcher.close()

    def run(
        self, key: ProcessKey, instructions: dict[str, Any], on_wait: OnWait | None = None
    ) -> Answer:
        """Send instructions to the process of a block, and return its answer."""
        if key not in self._processes:
            keys = [other for other in self.keys_from(key) if other not in self._processes]
            self._start(keys)
        process = self._processes.pop(key)
        try:
            os.write(process.descriptor, marshal.dumps(instructions))
            report = process.launcher.finish(on_wait)
        finally:
            # Close after the end: the content of a FIFO is lost if no process has it open.
            os.close(process.descriptor)
        self._idle_launchers.append(process.launcher)
        try:
            content = marshal.loads(process.base_path.with_suffix(_ANSWER).read_bytes())
        except (OSError, ValueError, EOFError, TypeError):
            content = None
        running_index = None if content is not None else process.running_function()
        for suffix in (_INSTRUCTIONS, _ANSWER, _RUNNING):
            process.base_path.with_suffix(suffix).unlink(missing_ok=True)
        return Answer(report, content, running_index)

    def _start(self, keys: Sequence[ProcessKey]) -> None:
        """Start a process for each block, and return when all of them are ready."""
        with ExitStack() as stack:
            launchers: list[tuple[int, Launcher]] = []
            for process_count, key in enumerate(keys, start=1):
                self._start_count += 1
                base_path = self.scratch / f"function-{self._start_count}"
                instructions_file = base_path.with_suffix(_INSTRUCTIONS)
                ready_fifo = base_path.with_suffix(".ready")
                os.mkfifo(instructions_file, 0o600)
                os.mkfifo(ready_fifo, 0o600)
                stack.callback(ready_fifo.unlink)
                ready_descriptor = os.open(ready_fifo, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
                stack.callback(os.close, ready_descriptor)
                launcher = self._idle_or_new_launcher()
                output_files = (base_path.with_suffix(suffix) for suffix in (_ANSWER, _RUNNING))
                files = (self.request_file, ready_fifo, instructions_file, *output_files)
                # The timeout includes the time in which the processes before this one are measured.
                launcher.begin(self._launch_request(key, files, process_count * self.timeout_s))
                # Open for reading and writing, so that opening does not wait for a reader.
                descriptor = os.open(instructions_file, os.O_RDWR | os.O_CLOEXEC)
                self._processes[key] = _WaitingProcess(launcher, descriptor, base_path)
                launchers.append((ready_descriptor, launcher))
            for ready_descriptor, launcher in launchers:
                while not becomes_readable(ready_descriptor, _POLL_S) and not launcher.has_ended():
                    pass

    def _idle_or_new_launcher(self) -> Launcher:
        if self._idle_launchers:
            return self._idle_launchers.pop()
        launcher = Launcher(launcher_program(), shared_scratch=self.scratch)
        self._launchers.append(launcher)
        return launcher

    def _launch_request(self, key: ProcessKey, files: Sequence[Path], timeout_s: float) -> Request:
        # The caller's own flags. -P keeps the worker's folder out of the module search path.
        flags: list[str] = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
        return Request(
            argv=(sys.executable, *flags, "-P", str(self.program), *map(str, files)),
            environment=self.environment_of(key),
            working_folder=self.working_folder,
            timeout_s=timeout_s,
        )
