"""Runs one design in a process of its own; prints its seconds, peak memory, pairs and distance.

python -m benchmarks.designs.once score ROWS ORDER
python -m benchmarks.designs.once quick ROWS COLUMNS
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from equipoise_matching.designs.nearest import nearest_match
from equipoise_matching.designs.quick import quick_match

Floats = NDArray[np.float64]


def score_data(rows: int) -> tuple[Floats, Floats]:
    """Return the treatment and the true propensity score of rows, of which a quarter is treated.

    The score is a whole number of billionths, because MatchIt 4.5.1 cuts the fractions of
    differences off.
    """
    generator = np.random.default_rng(rows)
    score = 1.0 / (1.0 + np.exp(1.6 - generator.normal(size=rows)))
    return (generator.random(rows) < score).astype(np.float64), np.floor(1e9 * score)


def covariate_data(rows: int, columns: int) -> tuple[Floats, Floats]:
    """Return the treatment and independent normal covariates, of which the first two confound."""
    generator = np.random.default_rng([rows, columns])
    covariates = generator.normal(size=(rows, columns))
    chance = 1.0 / (1.0 + np.exp(1.0 - 0.5 * covariates[:, 0] - 0.5 * covariates[:, 1]))
    return (generator.random(rows) < chance).astype(np.float64), covariates


def peak_memory() -> int:
    """Return the largest memory of this process so far, in bytes."""
    # Not ru_maxrss: that of a child starts with the memory of its parent.
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return 1024 * int(status["VmHWM"].split()[0])


def main() -> None:
    """Print seconds, bytes, number of pairs or strata, and a distance that tells answers apart."""
    kind, rows = sys.argv[1], int(sys.argv[2])
    if kind == "score":
        treat, score = score_data(rows)
        nearest_match([1.0, 0.0], [0.0, 1.0])  # imports what a first call imports
        started = time.perf_counter()
        design = nearest_match(treat, score, order=sys.argv[3])  # type: ignore[arg-type]
        seconds = time.perf_counter() - started
        count = design.details["Pairs"]
        distance = design.details["Mean difference of scores"]
    else:
        treat, covariates = covariate_data(rows, int(sys.argv[3]))
        quick_match([1.0, 0.0], [0.0, 1.0])  # imports what a first call imports
        started = time.perf_counter()
        design = quick_match(treat, covariates)
        seconds = time.perf_counter() - started
        assert design.strata is not None, "the design has strata"
        count = int(design.strata.max()) + 1
        distance = design.details["Largest distance from a seed"]
    print(seconds, peak_memory(), count, distance)


if __name__ == "__main__":
    main()
