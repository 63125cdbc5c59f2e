"""One core: the rate of the brute-force search beside that of a dgemm.

Run as a process of its own with OPENBLAS_NUM_THREADS=1; prints both rates, in flop a second.
"""

from __future__ import annotations

import os
import statistics
import sys

import numpy as np

from benchmarks.matching.data import normal
from benchmarks.matching.timing import in_turn
from equipoise_matching import _native
from equipoise_matching.matching.options import MatchOptions
from equipoise_matching.matching.units import units_of

FLOP = 3
"""Of each pair and coordinate: a subtraction, a multiplication and an addition."""
SIZE = 1500
"""Rows and columns of the dgemm, which does 2 * SIZE**3 flop."""


def main() -> None:
    """Measure both in turn: the median of the search, the best of the dgemm."""
    if os.environ.get("OPENBLAS_NUM_THREADS") != "1":
        sys.exit("set OPENBLAS_NUM_THREADS=1: the dgemm must have one core, as the search has")
    sample = normal(40_000)
    columns = sample.covariates.shape[1]
    units = units_of(None, sample.treatment, sample.covariates, None)
    options = MatchOptions(
        estimand="ATT",
        matches=1,
        metric="inverse_variance",
        caliper=None,
        restrictions=[],
        replace=True,
        ties=True,
        tolerance=1e-5,
        r_compatible=False,
        threads=1,
        seed=0,
        search="brute_force",
    )
    matcher = _native.Matcher(units, options)
    left, right = np.random.default_rng(1).random((2, SIZE, SIZE))
    seconds = in_turn(
        {"search": lambda: matcher.pairs(None), "dgemm": lambda: left @ right}, rounds=15
    )
    distances = int(units.treated.sum()) * int((~units.treated).sum())
    search = FLOP * distances * columns / statistics.median(seconds["search"])
    print(search, 2 * SIZE**3 / min(seconds["dgemm"]))


if __name__ == "__main__":
    main()
