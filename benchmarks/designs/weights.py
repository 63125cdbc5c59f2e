"""Time entropy balancing beside raking in R and beside packages of PyPI.

    python -m benchmarks.designs.weights [ROWS ...]

All sides weight the same controls to the means of the treated. Each peer runs in a process of its
own and gets the data from a file; only the call is timed. The ratio is that of processor seconds,
which other programs on the machine change less than the seconds on the clock. A peer that takes
longer than the limit is not run at larger sizes. Exits with 1 if R takes less than ten times as
long as ours, or if weights differ by more than the tolerance of the peer.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.designs.timing import timed_design
from benchmarks.environments import NoEnvironment, python_with
from equipoise_matching.weights.entropy_balance import entropy_balance

Floats = NDArray[np.float64]

HERE = Path(__file__).resolve().parent
SIZES = (10_000, 100_000, 1_000_000)
COLUMNS = 10
ROUNDS = 5
TIME_LIMIT_S = 300.0
"""Seconds that a peer may take, with its start."""
R_PEER = "survey::calibrate (R)"
MIN_RATIO = 10.0
"""Least ratio to R. The packages of PyPI run the same vectorised steps as ours."""
AGREEMENT = 1e-4
"""Largest difference from our weights, relative to the largest weight: the peers stop earlier."""


@dataclass(frozen=True, slots=True)
class Peer:
    """A package with the same weights: its name, its packages of PyPI, and its program.

    The program reads ``folder/treat.npy`` and ``folder/matrix.npy``, writes the weights of the
    controls to ``folder/weights.npy``, and prints the seconds of the call on the clock and of the
    processor.
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
started, processor = time.perf_counter(), time.process_time()
{call}
seconds = (time.perf_counter() - started, time.process_time() - processor)
np.save(folder + "/weights.npy", np.asarray(weights, dtype=float).ravel())
print(*seconds)
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
    Peer(
        "ebal (PyPI)",
        ("ebal==1.0.0",),
        _FRAME.format(
            imports="from ebal import ebal_bin",
            call="weights = ebal_bin(PCA=False, print_level=-1).ebalance("
            "Treatment=treat, X=matrix, Y=matrix[:, 0])['w'][treat == 0]",
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


@dataclass(frozen=True, slots=True)
class PeerAnswer:
    """Seconds of a peer on the clock and of the processor, and its weights of the controls."""

    seconds: float
    processor: float
    weights: Floats


def timed_peer(command: list[str], folder: Path) -> PeerAnswer | str:
    """Return the time and the weights of a peer, or the reason why there are none."""
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
    clock, processor = (float(word) for word in process.stdout.split()[-2:])
    return PeerAnswer(clock, processor, weights)


def commands(folder: Path) -> dict[str, list[str] | str]:
    """Return the command of each peer, or the reason why it cannot run."""
    found: dict[str, list[str] | str] = {}
    if shutil.which("Rscript") is None:
        found[R_PEER] = "Rscript is missing: apt-get install r-cran-survey"
    else:
        found[R_PEER] = ["Rscript", str(HERE / "raking.R"), str(folder)]
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
    print(f"{'rows':>9} {'method':24} {'seconds':>9} {'processor':>9} {'ratio':>7}  difference")
    too_slow: set[str] = set()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        peers = commands(folder)
        for rows in sizes:
            treat, matrix = confounded(rows)
            np.save(folder / "treat.npy", treat)
            np.save(folder / "matrix.npy", matrix)
            np.concatenate([treat, matrix.ravel(order="F")]).tofile(folder / "data.bin")
            ours = timed_design(partial(entropy_balance, treat, matrix), ROUNDS)
            shares = ours.design.weights[treat == 0] / ours.design.weights[treat == 0].sum()
            print(f"{rows:9,} {'entropy_balance':24} {ours.seconds:9.3f} {ours.cpu_seconds:9.3f}")
            for peer, command in peers.items():
                if isinstance(command, str) or peer in too_slow:
                    reason = command if isinstance(command, str) else "not run: too slow before"
                    print(f"{rows:9,} {peer:24} {reason}")
                    continue
                theirs = timed_peer([*command, str(rows), str(COLUMNS)], folder)
                if isinstance(theirs, str):
                    too_slow.add(peer)
                    print(f"{rows:9,} {peer:24} {theirs}")
                    continue
                gaps = np.abs(theirs.weights / theirs.weights.sum() - shares)
                difference = float(gaps.max() / shares.max())
                ratio = theirs.processor / ours.cpu_seconds
                print(
                    f"{rows:9,} {peer:24} {theirs.seconds:9.3f} {theirs.processor:9.3f} "
                    f"{ratio:7.1f}  {difference:.1g}"
                )
                met &= difference <= AGREEMENT and (peer != R_PEER or ratio >= MIN_RATIO)
    if not met:
        print(f"R takes less than {MIN_RATIO:.0f} times as long, or weights differ")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
