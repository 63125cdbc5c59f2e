"""Time entropy balancing beside raking in R and beside packages of PyPI.

    python -m benchmarks.designs.weights [ROWS ...]

All sides weight the same controls to the means of the treated. Each peer runs in a process of its
own and gets the data from a file; only the call is timed. A peer that takes longer than the limit
is not run at larger sizes. Exits with 1 if a peer is less than ten times slower than ours, or if
its weights differ from ours by more than its tolerance.
"""

from __future__ import annotations

import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.environments import NoEnvironment, python_with
from equipoise_matching.weights.entropy_balance import entropy_balance

Floats = NDArray[np.float64]

HERE = Path(__file__).resolve().parent
SIZES = (10_000, 100_000, 1_000_000)
COLUMNS = 10
TIME_LIMIT_S = 120.0
"""Seconds that a peer may take, with its start."""
MIN_RATIO = 10.0
AGREEMENT = 1e-4
"""Largest difference from our weights, relative to the largest weight: the peers stop earlier."""


@dataclass(frozen=True, slots=True)
class Peer:
    """A package with the same weights: its name, its packages of PyPI, and its program.

    The program reads ``folder/treat.npy`` and ``folder/matrix.npy``, writes the weights of the
    controls to ``folder/weights.npy``, and prints the seconds of the call.
    """

    name: str
    packages: tuple[str, ...]
    program: str


_FRAME = """
import sys, time, warnings
import numpy as np
warnings.simplefilter("ignore")
folder = sys.argv[1]
treat, matrix = np.load(folder + "/treat.npy"), np.load(folder + "/matrix.npy")
controls, treated = matrix[treat == 0], matrix[treat == 1]
{imports}
started = time.perf_counter()
{call}
seconds = time.perf_counter() - started
np.save(folder + "/weights.npy", np.asarray(weights, dtype=float).ravel())
print(seconds)
"""
PEERS = (
    Peer(
        "empirical-calibration",
        ("empirical-calibration==0.12",),
        _FRAME.format(
            imports="import empirical_calibration as ec",
            call="weights, _ = ec.calibrate(covariates=controls, target_covariates=treated, "
            "objective=ec.Objective.ENTROPY)",
        ),
    ),
)


def confounded(rows: int) -> tuple[NDArray[np.int64], Floats]:
    """Ten normal covariates, of which three change the chance of treatment; 30 % are treated."""
    random = np.random.default_rng(rows)
    matrix = random.normal(size=(rows, COLUMNS))
    linear = 0.5 * matrix[:, 0] - 0.4 * matrix[:, 1] + 0.3 * matrix[:, 2] - 0.95
    treat = (random.random(rows) < 1 / (1 + np.exp(-linear))).astype(np.int64)
    return treat, matrix


def seconds_of_ours(treat: NDArray[np.int64], matrix: Floats, rounds: int) -> tuple[float, Floats]:
    """Return the median seconds of a call, and the weights of the controls."""
    seconds = []
    for _ in range(rounds):
        started = time.perf_counter()
        design = entropy_balance(treat, matrix)
        seconds.append(time.perf_counter() - started)
    return statistics.median(seconds), design.weights[treat == 0]


def seconds_of(command: list[str], folder: Path) -> tuple[float, Floats] | str:
    """Return the seconds and the weights of a peer, or the reason why there are none."""
    (folder / "weights.npy").unlink(missing_ok=True)
    try:
        process = subprocess.run(
            command, capture_output=True, text=True, timeout=TIME_LIMIT_S, check=False
        )
    except subprocess.TimeoutExpired:
        return f"longer than {TIME_LIMIT_S:.0f} s"
    if process.returncode != 0:
        return process.stderr.strip().splitlines()[-1][:80] if process.stderr.strip() else "failed"
    if (folder / "weights.npy").exists():
        weights = np.load(folder / "weights.npy")
    else:
        weights = np.fromfile(folder / "weights.bin")
    return float(process.stdout.split()[-1]), weights


def commands(folder: Path) -> dict[str, list[str] | str]:
    """Return the command of each peer, or the reason why it cannot run."""
    found: dict[str, list[str] | str] = {}
    if shutil.which("Rscript") is None:
        found["survey::calibrate (R)"] = "Rscript is missing: apt-get install r-cran-survey"
    else:
        found["survey::calibrate (R)"] = ["Rscript", str(HERE / "raking.R"), str(folder)]
    for peer in PEERS:
        try:
            python = python_with(*peer.packages)
        except NoEnvironment as error:
            found[peer.name] = f"not installed: {str(error)[:60]}"
        else:
            found[peer.name] = [str(python), "-c", peer.program, str(folder)]
    return found


def main() -> int:
    """Print a table; return 1 if a peer is too near, or its weights differ."""
    sizes = [int(word) for word in sys.argv[1:]] or list(SIZES)
    met = True
    print(f"Entropy balancing for the ATT, {COLUMNS} normal covariates, 30 % treated; seconds")
    print(f"{'rows':>9} {'method':24} {'seconds':>9} {'ratio':>7}  largest difference of weights")
    too_slow: set[str] = set()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        peers = commands(folder)
        for rows in sizes:
            treat, matrix = confounded(rows)
            np.save(folder / "treat.npy", treat)
            np.save(folder / "matrix.npy", matrix)
            np.concatenate([treat, matrix.ravel(order="F")]).tofile(folder / "data.bin")
            ours, weights = seconds_of_ours(treat, matrix, 5 if rows <= 100_000 else 3)
            print(f"{rows:9,} {'entropy_balance':24} {ours:9.3f}")
            for peer, command in peers.items():
                if isinstance(command, str) or peer in too_slow:
                    reason = command if isinstance(command, str) else "not run: too slow before"
                    print(f"{rows:9,} {peer:24} {reason}")
                    continue
                result = seconds_of([*command, str(rows), str(COLUMNS)], folder)
                if isinstance(result, str):
                    too_slow.add(peer)
                    print(f"{rows:9,} {peer:24} {result}")
                    continue
                seconds, theirs = result
                shares = weights / weights.sum()
                difference = float(np.abs(theirs / theirs.sum() - shares).max() / shares.max())
                print(f"{rows:9,} {peer:24} {seconds:9.3f} {seconds / ours:7.1f}  {difference:.1g}")
                met &= difference <= AGREEMENT and seconds / ours >= MIN_RATIO
    if not met:
        print(f"a peer is less than {MIN_RATIO:.0f} times slower, or its weights differ")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
