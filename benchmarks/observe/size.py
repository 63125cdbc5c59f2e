"""How long ``observe`` takes for a million rows with eight covariates, and how much memory.

``python -m benchmarks.observe.size``: the command in a process of its own with two threads. Wanted:
within two minutes and 3 GB. ``--rows 10000000 --strata 100``: ten million, of
which one stratum is in memory at a time; within ten times as long and the same memory.
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
import pyarrow as arrow
from pyarrow import parquet

COVARIATES = 8
MOST_S, MOST_BYTES = 120.0, 3e9


def write(path: Path, rows: int, strata: int, seed: int) -> None:
    """A log of so many rows in so many strata, a row group for each."""
    with parquet.ParquetWriter(path, arrow.Table.from_pandas(stratum(1, 0, seed)).schema) as file:
        for number in range(strata):
            some = rows // strata + (number < rows % strata)
            file.write_table(arrow.Table.from_pandas(stratum(some, number, seed)))


def stratum(rows: int, number: int, seed: int) -> pandas.DataFrame:
    """Rows over 500 days; the new version mostly under load."""
    draw = np.random.default_rng((seed, number))
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
    frame["stratum"] = f"s{number:04d}"
    return frame


def main() -> int:
    """0 if it was within both limits."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.observe.size", description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--strata", type=int, default=1)
    parser.add_argument("--method", default="genetic")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="equipoise-observe-") as folder:
        path = Path(folder) / "log.parquet"
        write(path, asked.rows, asked.strata, asked.seed)
        names = ",".join(f"c{place}" for place in range(COVARIATES))
        by_strata = ["--strata", "stratum", "--cluster", "day"] if asked.strata > 1 else []
        started = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-m", "equipoise.cli", "observe", str(path)]
            + ["--treatment", "version=2.0:1.0", "--outcome", "wall_s", "--covariates", names]
            + ["--method", asked.method, "--threads", "2", *by_strata],
            env={**os.environ, "OPENBLAS_NUM_THREADS": "2"},
            check=False,
        )
        seconds = time.monotonic() - started
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    most_s = MOST_S * max(1.0, asked.rows / 1e6)
    met = done.returncode == 0 and seconds <= most_s and peak <= MOST_BYTES
    print(
        f"{asked.rows:,} rows, {COVARIATES} covariates, {asked.method}, {asked.strata} strata: "
        f"{seconds:.0f} s, {peak / 1e9:.2f} GB at the peak; within {most_s:.0f} s and 3 GB: "
        f"{'met' if met else 'NOT met'}"
    )
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
