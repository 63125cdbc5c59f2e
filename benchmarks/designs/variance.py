"""Prints how much longer `match` takes with a variance for each unit than with one for all.

    python -m benchmarks.designs.variance [--million]

The default of `match` finds two neighbours of each unit (variance_neighbors=2). R's default, and
that of r_compatible=True, is one variance for all units. Both run in turn. Exits with 1 if a ratio
is above the bound.
"""

from __future__ import annotations

import statistics
import sys

import numpy as np

from benchmarks.matching.data import Sample, normal, stacked
from benchmarks.matching.timing import in_turn
from equipoise_matching.matching.match import match

MAX_RATIO = 1.5
MILLION = 1_000_000


def cases(has_million: bool) -> dict[str, tuple[Sample, str, int]]:
    """Return the data, the estimand and the number of rounds of each case, by name."""
    lalonde = {
        f"LaLonde, {445 * copies:,} rows, 10 covariates": (
            stacked(copies),
            "ATT",
            100 // copies + 5,
        )
        for copies in (1, 4, 12)
    }
    normals: dict[str, tuple[Sample, str, int]] = {
        f"normal, {rows:,} rows, {columns} covariates, {estimand}": (
            normal(rows, columns),
            estimand,
            rounds,
        )
        for rows, columns, estimand, rounds in (
            (1_000, 10, "ATT", 40),
            (20_000, 10, "ATT", 11),
            (20_000, 10, "ATE", 11),
            (100_000, 3, "ATT", 7),
            (100_000, 10, "ATT", 3),
        )
    }
    million = {f"normal, {MILLION:,} rows, 10 covariates": (normal(MILLION), "ATT", 1)}
    return lalonde | normals | (million if has_million else {})


def ratio(sample: Sample, estimand: str, rounds: int) -> tuple[float, float]:
    """Return the median seconds with one variance, and with a variance for each unit."""

    def run(r_compatible: bool) -> None:
        match(
            sample.outcome,
            sample.treatment,
            sample.covariates,
            estimand=estimand,  # type: ignore[arg-type]
            r_compatible=r_compatible,
        )

    seconds = in_turn({"one": lambda: run(True), "each": lambda: run(False)}, rounds)
    return statistics.median(seconds["one"]), statistics.median(seconds["each"])


def main() -> int:
    """Return 0 if every ratio is within the bound, else 1."""
    print(f"{'':44} {'one, ms':>10} {'each, ms':>10} {'ratio':>6}")
    ratios = []
    for name, (sample, estimand, rounds) in cases("--million" in sys.argv[1:]).items():
        one, each = ratio(sample, estimand, rounds)
        ratios.append(each / one)
        print(f"{name:44} {1e3 * one:10.3f} {1e3 * each:10.3f} {each / one:6.2f}", flush=True)
    is_met = bool(np.max(ratios) <= MAX_RATIO)
    print(f"at most {MAX_RATIO:g}: {'met' if is_met else 'MISSED'}")
    return 0 if is_met else 1


if __name__ == "__main__":
    sys.exit(main())
