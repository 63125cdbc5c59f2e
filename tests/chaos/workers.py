"""Processes that run cases side by side, each in a workplace of its own."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path

from tests.chaos import disks, environments, kills, template
from tests.chaos.kills import Kill, Outcome
from tests.chaos.workplace import Workplace


@dataclass(frozen=True, slots=True)
class Work:
    """One case for a worker."""

    part: str
    kill: Kill | None = None
    name: str = ""


class Workers:
    """Processes that run cases, each in a workplace of its own."""

    def __init__(self, jobs: int, base: Path) -> None:
        context = multiprocessing.get_context("spawn")
        self._pool = ProcessPoolExecutor(
            jobs,
            mp_context=context,
            initializer=_begin,
            initargs=(base, context.Value("i", 0)),
        )

    def close(self) -> None:
        """End the workers."""
        self._pool.shutdown(cancel_futures=True)

    def submit(self, work: Work) -> Future[Outcome]:
        """Hand one case to a worker."""
        return self._pool.submit(_run, work)

    def each(self, all_work: Sequence[Work]) -> Iterator[Outcome]:
        """Run cases side by side."""
        open_ones = {self.submit(work) for work in all_work}
        while open_ones:
            done, open_ones = wait(open_ones, return_when=FIRST_COMPLETED)
            for one in done:
                yield one.result()


_PLACES: list[Workplace] = []


def _begin(base: Path, numbers: Synchronized[int]) -> None:
    with numbers.get_lock():
        numbers.value += 1
        number = numbers.value
    place = Workplace(base / f"worker-{number}")
    template.make(place)
    _PLACES.append(place)


def _run(work: Work) -> Outcome:
    (place,) = _PLACES
    if work.kill is not None:
        return kills.attack(place, work.kill)
    if work.part == "disks":
        return disks.attack(place, work.name)
    return environments.attack(place, work.name)
