"""The table of Mebane & Sekhon (2011), section 4.2, beside our own means of as many runs.

``python -m benchmarks.genoud.run`` runs all of it (hours); ``--functions f1,f9``, ``--settings
5000x30`` and ``--runs 10`` take a part. A published mean is met where ours is not worse by more
than three of its Monte Carlo errors.
"""

from __future__ import annotations

import argparse
import math
import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.genoud.functions import Function, functions
from equipoise_matching.genetic import GenoudResult, genoud

Floats = NDArray[np.float64]

SETTINGS = ("5000x30", "5000x100", "10000x30", "10000x100")
RUNS = 50
TOLERATED = 3.0
"""Monte Carlo errors."""

PUBLISHED: dict[str, tuple[float, ...]] = {
    "f1": (1.453e-32, 1.658e-32, 2.416e-32, 6.134e-32),
    "f2": (6.55e-16, 7.212e-16, 9.652e-16, 1.043e-15),
    "f3": (4.633e-18, 3.918e-18, 3.787e-18, 4.032e-18),
    "f4": (6.203e-17, 6.542e-17, 9.453e-17, 7.85e-17),
    "f5": (0.07973, 5.887e-8, 8.133e-8, 8.917e-8),
    "f6": (18.58, 0.08, 9.38, 0.0),
    "f8": (-12569.49,) * 4,
    "f9": (2.786, 0.0, 0.9353, 0.0),
    "f10": (2.849, 3.997e-15, 2.199, 3.997e-15),
    "f11": (7.994e-17, 7.105e-17, 9.548e-17, 6.439e-17),
    "f12": (5.371e-19, 0.004147, 0.002073, 1.178e-19),
    "f13": (0.02095, 0.006543, 0.006629, 0.003011),
    "f14": (0.998,) * 4,
    "f15": (3.441e-4, 4.746e-4, 3.807e-4, 3.807e-4),
    "f16": (-1.0316285,) * 4,
    "f17": (0.3979,) * 4,
    "f18": (3.0,) * 4,
    "f19": (-3.863,) * 4,
    "f20": (-3.274, -3.277, -3.279, -3.286),
    "f21": (-9.85, -9.444, -9.95, -10.05),
    "f22": (-9.771, -10.09, -10.19, -10.3),
    "f23": (-10.1, -9.997, -10.32, -10.21),
}
"""Means of 50 runs, in the order of ``SETTINGS``; f7 is drawn with noise and not compared."""


@dataclass(frozen=True, slots=True)
class Row:
    """One function at one setting."""

    name: str
    setting: str
    published: float | None
    values: Floats
    seconds: float
    evaluations: float

    @property
    def mean(self) -> float:
        """Of our runs."""
        return float(self.values.mean())

    @property
    def error(self) -> float:
        """The Monte Carlo error of our mean."""
        return float(self.values.std(ddof=1) / math.sqrt(len(self.values)))

    @property
    def words(self) -> str:
        """Whether the published mean is met."""
        if self.published is None:
            return "no published mean"
        slack = TOLERATED * self.error + DIGITS * abs(self.published)
        return "met" if self.mean <= self.published + slack else "NOT MET"


DIGITS = 5e-4
"""The published means have four digits."""


def one_run(function: Function, population: int, generations: int, seed: int) -> GenoudResult:
    """A run with the settings of the paper."""
    return genoud(
        function.of,
        function.nvars,
        population=population,
        generations=generations,
        hard_generation_limit=True,
        solution_tolerance=1e-6,
        boundary_enforcement=1,
        gradient_check=function.smooth,
        bounds=function.bounds,
        vectorized=True,
        seed=seed,
    )


def row(name: str, setting: str, runs: int) -> Row:
    """As many runs, the seeds 1 to ``runs``."""
    population, generations = (int(part) for part in setting.split("x"))
    began = time.perf_counter()
    results = [
        one_run(functions(seed)[name], population, generations, seed) for seed in range(1, runs + 1)
    ]
    published = PUBLISHED.get(name)
    return Row(
        name,
        setting,
        None if published is None else published[SETTINGS.index(setting)],
        np.array([float(one.value) for one in results]),
        (time.perf_counter() - began) / runs,
        float(np.mean([one.evaluations for one in results])),
    )


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--functions", default=",".join(functions(0)))
    parser.add_argument("--settings", default=",".join(SETTINGS))
    parser.add_argument("--runs", type=int, default=RUNS)
    chosen = parser.parse_args()
    print(f"{chosen.runs} runs each; seconds and evaluations are those of one run")
    print(
        f"{'':4} {'setting':>10} {'published':>12} {'ours':>12} {'its error':>10} "
        f"{'seconds':>8} {'evaluations':>12}"
    )
    for setting in chosen.settings.split(","):
        for name in chosen.functions.split(","):
            one = row(name, setting, chosen.runs)
            published = "" if one.published is None else f"{one.published:.7g}"
            print(
                f"{name:4} {setting:>10} {published:>12} {one.mean:>12.7g} {one.error:>10.2g} "
                f"{one.seconds:>8.2f} {one.evaluations:>12,.0f}  {one.words}",
                flush=True,
            )


if __name__ == "__main__":
    main()
