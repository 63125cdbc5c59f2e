"""How the sides are timed: in turn, in an order drawn anew each round."""

from __future__ import annotations

import random
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.matching.data import Sample

HERE = Path(__file__).resolve().parent


@dataclass(frozen=True, slots=True)
class Timed:
    """Seconds of each repetition, and what came out: the effect and the number of pairs."""

    seconds: tuple[float, ...]
    effect: float
    pairs: int

    @property
    def median(self) -> float:
        """Seconds of the typical repetition."""
        return statistics.median(self.seconds)


def in_turn(calls: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, list[float]]:
    """Seconds of each call, once a round, after one round that is not counted."""
    coin = random.Random(1)
    names = list(calls)
    seconds: dict[str, list[float]] = {name: [] for name in names}
    for counted in range(rounds + 1):
        coin.shuffle(names)
        for name in names:
            started = time.perf_counter()
            calls[name]()
            if counted:
                seconds[name].append(time.perf_counter() - started)
    return seconds


def in_r(
    sample: Sample, peers: tuple[str, ...], estimand: str, repetitions: int
) -> dict[str, Timed]:
    """R's packages on the sample, timed inside R, the data read beforehand."""
    rows, columns = sample.covariates.shape
    with tempfile.NamedTemporaryFile() as file:
        np.concatenate(
            [sample.treatment, sample.outcome, sample.covariates.ravel(order="F")]
        ).tofile(file.name)
        done = subprocess.run(
            ["Rscript", HERE / "peers.R", file.name, str(rows), str(columns), estimand,
             str(repetitions), *peers],
            stdout=subprocess.PIPE, text=True, check=True,
        )  # fmt: skip
    lines = [line.split() for line in done.stdout.splitlines()]
    found = {}
    for peer in peers:
        mine = [line[1:] for line in lines if line[0] == peer]
        seconds = tuple(float(line[0]) for line in mine)
        found[peer] = Timed(seconds, float(mine[0][1]), int(mine[0][2]))
    return found
