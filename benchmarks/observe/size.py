"""How long ``observe`` takes for a million rows with eight covariates, and how much memory.

``python -m benchmarks.observe.size``: the command in a process of its own with two threads. Wanted:
within two minutes and 3 GB.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas

COVARIATES = 8
MOST_S, MOST_BYTES = 120.0, 3e9


def write(path: Path, rows: int, seed: int) -> None:
    """A log of so many rows over 500 days; the new version mostly under load."""
    draw = np.random.default_rng(seed)
    matrix = draw.normal(size=(rows, COVARIATES))
    day = np.repeat(np.arange(500), -(-rows // 500))[:rows]
    # A quarter runs the new version.
    chance = 1.0 / (1.0 + np.exp(1.25 - 0.5 * matrix[:, 0] - 0.25 * matrix[:, 1]))
    candidate = draw.random(rows) < chance
    logs = matrix @ np.linspace(0.10, 0.01, COVARIATES) - 0.03 * candidate
    logs += draw.normal(0.0, 0.05, rows) + draw.normal(0.0, 0.02, 500)[day]
    names = [f"c{place}" for place in range(COVARIATES)]
    frame = pandas.DataFrame(matrix, columns=names)
    frame["version"] = np.where(candidate, "2.0", "1.0")
    frame["wall_s"] = np.exp(logs)
    frame["day"] = day
    frame.to_parquet(path)


def main() -> int:
    """0 if it was within both limits."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.observe.size", description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--method", default="genetic")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="equipoise-observe-") as folder:
        path = Path(folder) / "log.parquet"
        write(path, asked.rows, asked.seed)
        names = ",".join(f"c{place}" for place in range(COVARIATES))
        started = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-m", "equipoise.cli", "observe", str(path)]
            + ["--treatment", "version=2.0:1.0", "--outcome", "wall_s", "--covariates", names]
            + ["--method", asked.method, "--threads", "2"],
            env={**os.environ, "OPENBLAS_NUM_THREADS": "2"},
            check=False,
        )
        seconds = time.monotonic() - started
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    met = done.returncode == 0 and seconds <= MOST_S and peak <= MOST_BYTES
    print(
        f"{asked.rows:,} rows, {COVARIATES} covariates, {asked.method}: {seconds:.0f} s, "
        f"{peak / 1e9:.2f} GB at the peak; within {MOST_S:.0f} s and 3 GB: "
        f"{'met' if met else 'NOT met'}"
    )
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
