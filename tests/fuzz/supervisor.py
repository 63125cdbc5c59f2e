"""Starts workers, kills those that hang or grow, and collects the outcomes."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from tests.fuzz.case import Case, Outcome

ROOT = Path(__file__).resolve().parents[2]
LOOK_S = 0.25
BLOCKED_S = 120.0
"""Wall-clock seconds after which a case that takes no processor time is blocked for good."""
CHUNK = 40
"""Cases of one request."""
_THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "RAYON_NUM_THREADS", "POLARS_MAX_THREADS")


@dataclass(frozen=True, slots=True)
class Find:
    """A case that showed a defect."""

    target: str
    outcome: Outcome
    case: Case | None
    """Unknown where the worker had to be killed: its number makes it again."""
    number: int
    file: str | None = None
    """Of the corpus, if the case is from there."""


@dataclass(slots=True)
class Tally:
    """What came of the cases of one target."""

    read: int = 0
    refused: int = 0
    finds: list[Find] = field(default_factory=list)

    @property
    def cases(self) -> int:
        """Cases that were run."""
        return self.read + self.refused + len(self.finds)

    def signatures(self) -> Counter[str]:
        """Count the finds by defect."""
        return Counter(one.outcome.signature for one in self.finds)


class Worker:
    """One process that runs cases, one request at a time."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self._warm: set[str] = set()
        self._buffer = b""
        self.request: dict[str, Any] | None = None
        self._number: int | None = None
        self._limit = 0.0
        self._begun_at = 0.0
        self._cpu_at_begin = 0.0

    def ask(self, request: dict[str, Any]) -> None:
        """Send a request; a fresh process is warmed up for its target first."""
        if self._process is None:
            self._start()
        if request["target"] not in self._warm:
            self._warm.add(request["target"])
            without = request.get("without", [])
            self._send({"target": request["target"], "warm_up": True, "without": without})
        self.request = request
        self._number = None
        self._send(request)

    @property
    def output(self) -> int:
        """Descriptor from which answers come."""
        assert self._process is not None and self._process.stdout is not None
        return self._process.stdout.fileno()

    def answers(self) -> list[dict[str, Any]] | None:
        """Read what has arrived; ``None`` if the process has ended."""
        part = os.read(self.output, 1 << 20)
        if not part:
            return None
        *lines, self._buffer = (self._buffer + part).split(b"\n")
        found = [json.loads(line) for line in lines]
        for one in found:
            if "begin" in one:
                self._number, self._limit = one["begin"], one["limit"]
                self._begun_at, self._cpu_at_begin = time.monotonic(), self._cpu_s()
            elif "end" in one:
                self._number = None
        return found

    def overdue(self) -> Outcome | None:
        """Say why the present case has to be killed, if it has to."""
        if self._number is None:
            return None
        used = self._cpu_s() - self._cpu_at_begin
        if used > 2.0 * self._limit + 1.0:
            return Outcome("find", f"more than {self._limit:g} s and not to be interrupted")
        if time.monotonic() - self._begun_at > BLOCKED_S and used < self._limit:
            return Outcome("find", "blocked")
        return None

    def end(self) -> tuple[int | None, int, str]:
        """Kill the process; return the case that it was at, its status, what it said."""
        process, number = self._process, self._number
        if process is None:
            return None, 0, ""
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                stream.close()
        if self.request is not None:
            process.kill()
        status = process.wait()
        said = self._errors.read_text(errors="replace")[-2000:]
        self._process, self._number, self._buffer = None, None, b""
        self._warm.clear()
        return number, status, said

    @property
    def _errors(self) -> Path:
        return self._folder / f"worker-{id(self)}.err"

    def _start(self) -> None:
        environment = os.environ | dict.fromkeys(_THREADS, "1") | {"PYTHONDONTWRITEBYTECODE": "1"}
        with self._errors.open("wb") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.fuzz.worker"],
                cwd=ROOT,
                env=environment | {"TMPDIR": str(self._folder)},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
            )

    def _send(self, request: dict[str, Any]) -> None:
        assert self._process is not None and self._process.stdin is not None
        self._process.stdin.write(json.dumps(request).encode() + b"\n")
        self._process.stdin.flush()

    def _cpu_s(self) -> float:
        assert self._process is not None
        try:
            times = psutil.Process(self._process.pid).cpu_times()
        except psutil.Error:
            return 0.0
        return float(times.user + times.system)


def run_requests(
    requests: Sequence[dict[str, Any]], folder: Path, *, workers: int, seconds: float
) -> dict[str, Tally]:
    """Spread requests over workers until all are answered or the time is over.

    Parameters
    ----------
    folder
        For the workers' scratch folders; it may hold anything else.

    Returns
    -------
    What came of the cases, by target.
    """
    waiting = list(reversed(requests))
    tallies: dict[str, Tally] = {}
    ends = time.monotonic() + seconds
    selector = selectors.DefaultSelector()
    idle = [Worker(folder) for _ in range(workers)]
    busy: list[Worker] = []
    try:
        # An interrupt ends it early: what was found until then counts.
        with suppress(KeyboardInterrupt):
            _attend(idle, busy, waiting, tallies, selector, ends)
        return tallies
    finally:
        selector.close()
        for worker in (*idle, *busy):
            worker.end()


def _attend(
    idle: list[Worker],
    busy: list[Worker],
    waiting: list[dict[str, Any]],
    tallies: dict[str, Tally],
    selector: selectors.BaseSelector,
    ends: float,
) -> None:
    """Hand out requests and take answers until nothing is left to do or the time is over."""
    while True:
        while idle and waiting and time.monotonic() < ends:
            worker = idle.pop()
            worker.ask(waiting.pop())
            selector.register(worker.output, selectors.EVENT_READ, worker)
            busy.append(worker)
        if not busy:
            return
        ready = {id(key.data) for key, _ in selector.select(LOOK_S)}
        for worker in list(busy):
            rest = _attended(worker, tallies, ready=id(worker) in ready)
            if rest is _WORKING:
                continue
            busy.remove(worker)
            selector.unregister(rest.descriptor)
            if rest.failed:
                worker.end()
            waiting += rest.requests
            worker.request = None
            idle.append(worker)


@dataclass(frozen=True, slots=True)
class _Rest:
    """What is left of a request whose worker is free again."""

    descriptor: int
    requests: tuple[dict[str, Any], ...] = ()
    failed: bool = False


_WORKING = _Rest(-1)


def _attended(worker: Worker, tallies: dict[str, Tally], *, ready: bool) -> _Rest:
    """Take what a worker says, or end it if its case is overdue."""
    request = worker.request
    assert request is not None
    tally = tallies.setdefault(request["target"], Tally())
    descriptor = worker.output
    answers = worker.answers() if ready else []
    for answer in answers or ():
        _count(tally, request, answer)
        if "done" in answer or ("end" in answer and "file" in request):
            return _Rest(descriptor)
    outcome = worker.overdue()
    if answers is not None and outcome is None:
        return _WORKING
    number, status, said = worker.end()
    if outcome is None:
        outcome = Outcome("find", f"the process ended with status {status}", said)
    if number is None:
        raise RuntimeError(f"a worker of {request['target']} ended between cases: {said}")
    tally.finds.append(Find(request["target"], outcome, None, number, request.get("file")))
    return _Rest(descriptor, _after(request, number), failed=True)


def _after(request: dict[str, Any], number: int) -> tuple[dict[str, Any], ...]:
    """Give the cases of a request behind the one that ended its worker."""
    if "file" in request:
        return ()
    left = request["first"] + request["count"] - number - 1
    return ({**request, "first": number + 1, "count": left},) if left else ()


def _count(tally: Tally, request: dict[str, Any], answer: dict[str, Any]) -> None:
    match answer.get("kind"):
        case "read":
            tally.read += 1
        case "refused":
            tally.refused += 1
        case "find":
            outcome = Outcome("find", answer["signature"], answer["detail"])
            case, file = None, request.get("file")
            if "content" in answer:
                case = Case(answer["variant"], bytes.fromhex(answer["content"]))
            tally.finds.append(Find(request["target"], outcome, case, answer["end"], file))
