"""A probe that is running: its processes, and what they leave behind."""

from __future__ import annotations

import os
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import psutil

from equipoise.measure.abandoned import environment_of

FOR_EVER = ("--batches", "1000000")
MARK = "EQUIPOISE_TEST_PROBE"
GRACE_S = 300.0
"""Far longer than anything that is waited for takes."""

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Running:
    """A probe that goes on until it is ended."""

    process: subprocess.Popen[str]
    mark: str

    def children(self, count: int) -> list[psutil.Process]:
        """Its other sides, once there are so many and each is held on one CPU.

        The cleaner of its files is none of them: it takes a session of its own before it first
        sleeps, so a child that was not seen asleep may still be the cleaner.
        """
        parent = psutil.Process(self.process.pid)
        session = os.getsid(self.process.pid)
        seen_asleep: set[psutil.Process] = set()

        def held() -> list[psutil.Process]:
            seen_asleep.update(child for child in parent.children() if is_asleep(child))
            found = [child for child in seen_asleep if session_of(child) == session]
            alone = all(len(child.cpu_affinity()) == 1 for child in found)
            return found if len(found) == count and alone else []

        found = until(held)
        assert len(found) == count
        return found

    def alive(self) -> list[int]:
        """All its processes that have not ended, orphans too: they carry its mark."""
        found = []
        mark = f"{MARK}={self.mark}".encode()
        for process in psutil.process_iter():
            try:
                ours = mark in environment_of(process.pid).split(b"\0")
                if ours and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process.pid)
            except (psutil.Error, OSError):
                continue  # it ended while we looked, or it is another user's
        return found

    def has_ended(self) -> bool:
        """Whether it and all that it started are gone."""
        return not self.alive()


def is_asleep(process: psutil.Process) -> bool:
    """Whether it waits for something; not if it has ended."""
    try:
        return bool(process.status() == psutil.STATUS_SLEEPING)
    except psutil.NoSuchProcess:
        return False


def session_of(process: psutil.Process) -> int | None:
    """Its session; none if it has ended."""
    try:
        return os.getsid(process.pid)
    except ProcessLookupError:
        return None


@contextmanager
def running(program: Path, *arguments: str, process_group: int | None = None) -> Iterator[Running]:
    """Starts it; ends it with the block, if it has not ended."""
    mark = uuid.uuid4().hex
    with subprocess.Popen(
        [program, *arguments, *FOR_EVER],
        env=os.environ | {MARK: mark},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        process_group=process_group,
    ) as process:
        try:
            yield Running(process, mark)
        finally:
            process.kill()


def until(ask: Callable[[], Answer]) -> Answer:
    """The first answer that is true; the last one if none comes."""
    deadline = time.monotonic() + GRACE_S
    while not (answer := ask()) and time.monotonic() < deadline:
        time.sleep(0.002)
    return answer
