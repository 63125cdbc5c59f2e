"""Prints how much faster `equipoise_matching.matching.match` is than its peers, and what it costs.

    python -m benchmarks.matching

Ours is timed with everything: checks, search, estimate and Abadie-Imbens errors with one variance
of all units, as R has them (variance_neighbors=0). Exits with 1 if a figure misses its bound.
"""

from __future__ import annotations

import math
import os
import shutil
import statistics
import subprocess
import sys
from collections.abc import Iterator

import numpy as np

from benchmarks.matching.data import Sample, normal, stacked
from benchmarks.matching.timing import Timed, in_r, in_turn
from equipoise_matching.matching.match import match

CORES = len(os.sched_getaffinity(0))
SIZES = {5_000: 5, 20_000: 3, 40_000: 1}
"""Rows, and how often R repeats."""
LARGEST, BOUND_OF_R = 40_000, 100.0
STACKED = {1: (100, 20.0), 4: (20, 50.0), 12: (3, 100.0)}
"""Copies of 445 rows: how often R repeats, and the bound over R's Match."""
GROWTH = (62_500, 125_000, 250_000, 500_000, 1_000_000)
BOUND_SECONDS, BOUND_BYTES = 60.0, 2e9
BOUND_OF_PEAK = 0.5
AGREEMENT = 1e-8
"""Relative difference from R's effect that rounding may make."""


def matched(sample: Sample, estimand: str, threads: int) -> tuple[float, int]:
    """The effect, with its error, and the number of pairs."""
    found = match(
        sample.outcome,
        sample.treatment,
        sample.covariates,
        estimand=estimand,  # type: ignore[arg-type]
        variance_neighbors=0,
        threads=threads,
    )
    assert found.estimate is not None and found.se is not None, "there is an outcome"
    return found.estimate, len(found.weights)


def beside_neighbours(sample: Sample, rounds: int) -> dict[int, tuple[float, float]]:
    """Threads: median seconds of ours and of scikit-learn's neighbour search alone."""
    from sklearn.neighbors import NearestNeighbors

    scaled = sample.covariates / sample.covariates.std(axis=0)
    treated, controls = (scaled[sample.treatment == arm] for arm in (1, 0))
    answers = {}
    for threads in sorted({1, CORES}):

        def neighbours(threads: int = threads) -> None:
            tree = NearestNeighbors(n_neighbors=1, algorithm="kd_tree", n_jobs=threads)
            tree.fit(controls).kneighbors(treated)

        def ours(threads: int = threads) -> None:
            matched(sample, "ATT", threads)

        seconds = in_turn({"ours": ours, "theirs": neighbours}, rounds)
        answers[threads] = (
            statistics.median(seconds["ours"]),
            statistics.median(seconds["theirs"]),
        )
    return answers


def agrees(sample: Sample, estimand: str, peer: Timed) -> bool:
    """Whether ours finds what R's Match found."""
    effect, pairs = matched(sample, estimand, 1)
    return pairs == peer.pairs and math.isclose(effect, peer.effect, rel_tol=AGREEMENT)


def verdict(met: bool) -> str:
    """A word for a bound."""
    return "met" if met else "MISSED"


def continuous() -> Iterator[bool]:
    """Ten normal covariates: R's Match, MatchIt and scikit-learn."""
    print("ATT, 10 normal covariates, 25 % treated; median seconds")
    print(f"{'rows':>7} {'threads':>7} {'ours':>9} {'Match':>9} {'ratio':>7} "
          f"{'MatchIt':>9} {'ratio':>7} {'kd-tree':>9} {'ratio':>7}")  # fmt: skip
    for rows, repetitions in SIZES.items():
        sample = normal(rows)
        of_r = in_r(sample, ("Match", "matchit"), "ATT", repetitions)
        yield agrees(sample, "ATT", of_r["Match"])
        for threads, (ours, neighbours) in beside_neighbours(sample, 7).items():
            theirs = [of_r["Match"].median, of_r["matchit"].median, neighbours]
            shown = " ".join(f"{other:9.4f} {other / ours:7.1f}" for other in theirs)
            print(f"{rows:7,} {threads:7} {ours:9.4f} {shown}")
            yield neighbours / ours >= 1.0
            if rows == LARGEST:
                ratio = of_r["Match"].median / ours
                print(
                    f"  at least {BOUND_OF_R:.0f} times R's Match: {verdict(ratio >= BOUND_OF_R)}"
                )
                yield ratio >= BOUND_OF_R
    print("  R's packages and ours with 1 thread use one core\n")


def stacks() -> Iterator[bool]:
    """LaLonde's experiment stacked: R's Match."""
    print("The NSW experiment stacked, 10 covariates; median milliseconds, one core")
    print(f"{'rows':>7} {'':3} {'pairs':>7} {'ours':>9} {'Match':>9} {'ratio':>7} bound")
    for copies, (repetitions, bound) in STACKED.items():
        sample = stacked(copies)
        for estimand in ("ATT", "ATE"):
            theirs = in_r(sample, ("Match",), estimand, repetitions)["Match"]

            def once(estimand: str = estimand, sample: Sample = sample) -> None:
                matched(sample, estimand, 1)

            ours = statistics.median(in_turn({"ours": once}, 20 * repetitions)["ours"])
            ratio = theirs.median / ours
            print(f"{len(sample.outcome):7,} {estimand} {theirs.pairs:7,} {1e3 * ours:9.3f} "
                  f"{1e3 * theirs.median:9.2f} {ratio:7.1f} {bound:4.0f} "
                  f"{verdict(ratio >= bound)}")  # fmt: skip
            yield ratio >= bound
            yield agrees(sample, estimand, theirs)
    print()


def growth() -> Iterator[bool]:
    """Up to a million rows, each size in a process of its own."""
    print(f"ATT, 10 normal covariates, 25 % treated, {CORES} threads, a process each")
    measured = []
    for rows in GROWTH:
        seconds, memory = child("million", str(rows), str(CORES))
        measured.append(seconds)
        print(f"{rows:9,} rows {seconds:7.2f} s {memory / 1e9:6.2f} GB at the peak")
    exponent = np.polyfit(np.log(GROWTH), np.log(measured), 1)[0]
    print(f"  seconds grow as rows ** {exponent:.2f}")
    met = measured[-1] <= BOUND_SECONDS and memory <= BOUND_BYTES
    print(f"  within {BOUND_SECONDS:.0f} s and {BOUND_BYTES / 1e9:.0f} GB: {verdict(met)}\n")
    yield met


def peak() -> Iterator[bool]:
    """The brute-force search beside a dgemm, one core."""
    search, dgemm = child("kernel", OPENBLAS_NUM_THREADS="1")
    print("Brute force, 40,000 rows, 10 covariates, one core; 3 flop a pair and coordinate (a")
    print("subtraction, a multiplication, an addition), comparisons and pairs not counted")
    print(f"{search / 1e9:9.1f} Gflop/s, dgemm {dgemm / 1e9:.1f} Gflop/s: {search / dgemm:.0%}")
    met = search / dgemm >= BOUND_OF_PEAK
    print(f"  at least {BOUND_OF_PEAK:.0%}: {verdict(met)}")
    if not met:
        print("  of the three, only multiplication and addition are one instruction (FMA): where")
        print("  subtractions share its units, as on Intel, 75 % is the most there can be")
    yield met


def child(module: str, *arguments: str, **environment: str) -> tuple[float, float]:
    """The two numbers that a module of this folder prints, run as a process."""
    done = subprocess.run(
        [sys.executable, "-m", f"benchmarks.matching.{module}", *arguments],
        env=os.environ | environment, stdout=subprocess.PIPE, text=True, check=True,
    )  # fmt: skip
    first, second = done.stdout.split()
    return float(first), float(second)


def main() -> int:
    """0 if every bound is met and R's answers are ours, 2 without R, else 1."""
    if shutil.which("Rscript") is None:
        missing = "Rscript is not installed: apt-get install r-cran-matching r-cran-matchit"
        print(missing, file=sys.stderr)
        return 2
    met = [bound for part in (continuous, stacks, growth, peak) for bound in part()]
    if not all(met):
        print("a bound was missed, or an answer differs from R's")
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
