"""How long ``observe`` takes for a million rows with eight covariates, and how much memory.

``python -m benchmarks.observe.size``: the command in a process of its own with two threads. Wanted:
within two minutes and 3 GB. ``--rows 10000000 --strata 100``: ten million, of
which one stratum is in memory at a time; within ten times as long and the same memory.

``--cluster local:2`` judges the strata on workers after that, from the same files. Wanted: no
number of the answer is off by more than 1e-12 of itself, and no worker here exceeds 1.5 GB.
``--files 10`` writes a folder of so many files instead of one.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas
import psutil
import pyarrow as arrow
from pyarrow import parquet

COVARIATES = 8
MAX_S, MAX_BYTES = 120.0, 3e9
MAX_WORKER_BYTES, MAX_DIFFERENCE = 1.5e9, 1e-12
LOOK_S = 0.2
"""Seconds between two looks at the memory: the kernel keeps the peak of a living process."""


def write(folder: Path, rows: int, strata: int, files: int, seed: int) -> Path:
    """A log of so many rows in so many strata, a row group for each; return its file or folder."""
    schema = arrow.Table.from_pandas(stratum(1, 0, seed)).schema
    numbers = range(strata)
    if files == 1:
        parts = {folder / "log.parquet": numbers}
    else:
        (folder / "log").mkdir()
        each = -(-strata // files)
        shares = (numbers[first : first + each] for first in range(0, strata, each))
        parts = {folder / "log" / f"{n:05d}.parquet": share for n, share in enumerate(shares)}
    for path, some in parts.items():
        with parquet.ParquetWriter(path, schema) as file:
            for number in some:
                count = rows // strata + (number < rows % strata)
                file.write_table(arrow.Table.from_pandas(stratum(count, number, seed)))
    return folder / ("log.parquet" if files == 1 else "log")


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


class Run(NamedTuple):
    """One run of the command."""

    answer: dict[str, Any] | None
    """``None`` if it failed."""
    seconds: float
    peak: int
    """Largest memory of the command itself, bytes."""
    peak_of_workers: int
    """Largest memory of a process that it started, bytes."""


def observe(path: Path, options: list[str]) -> Run:
    """Run the command, and look at the memory of its processes."""
    names = ",".join(f"c{place}" for place in range(COVARIATES))
    started = time.monotonic()
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "equipoise.cli", "observe", str(path), "--json", "-"]
            + ["--treatment", "version=2.0:1.0", "--outcome", "wall_s", "--covariates", names]
            + options,
            env={**os.environ, "OPENBLAS_NUM_THREADS": "2"},
            stdout=output,
        )
        peaks: dict[int, int] = {}
        while process.poll() is None:
            for pid in (process.pid, *descendants(process.pid)):
                peaks[pid] = max(peaks.get(pid, 0), peak_memory(pid))
            time.sleep(LOOK_S)
        seconds = time.monotonic() - started
        output.seek(0)
        answer = json.load(output) if process.returncode == 0 else None
    own = peaks.pop(process.pid, 0)
    return Run(answer, seconds, own, max(peaks.values(), default=0))


def descendants(pid: int) -> list[int]:
    """The processes that a process has started, and theirs."""
    try:
        return [child.pid for child in psutil.Process(pid).children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def peak_memory(pid: int) -> int:
    """The largest resident memory that a process has had so far, in bytes; 0 if it is gone."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in status.splitlines() if "VmHWM" in line), 0)


def largest_difference(first: object, second: object) -> float:
    """The largest relative difference of two numbers at one place; infinite if texts differ."""
    pairs = itertools.zip_longest(leaves(first), leaves(second))
    return max((apart(one, other) for one, other in pairs), default=0.0)


def leaves(value: object, place: str = "") -> Iterator[tuple[str, object]]:
    """Every value of a document with its place."""
    if isinstance(value, dict | list):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for name, below in items:
            yield from leaves(below, f"{place}/{name}")
    else:
        yield place, value


def apart(first: object, second: object) -> float:
    """The relative difference of two leaves; infinite if they are not numbers at one place."""
    if first == second:
        return 0.0
    match first, second:
        case (str(place), int() | float() as one), (str(same), int() | float() as other):
            if place == same:
                return abs(one - other) / max(abs(one), abs(other))
    return math.inf


def main() -> int:
    """0 if it was within all limits."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.observe.size", description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--strata", type=int, default=1)
    parser.add_argument("--files", type=int, default=1)
    parser.add_argument("--method", default="genetic")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cluster", metavar="ADDRESS")
    asked = parser.parse_args()
    if asked.cluster and asked.strata == 1:
        parser.error("--cluster needs --strata")
    with tempfile.TemporaryDirectory(prefix="equipoise-observe-") as folder:
        path = write(Path(folder), asked.rows, asked.strata, asked.files, asked.seed)
        by_strata = ["--strata", "stratum", "--cluster", "day"] if asked.strata > 1 else []
        options = ["--method", asked.method, *by_strata]
        alone = observe(path, [*options, "--threads", "2"])
        met = report_alone(asked, alone)
        if asked.cluster:
            there = observe(path, [*options, "--cluster", asked.cluster])
            met = report_cluster(asked.cluster, alone, there) and met
    return 0 if met else 1


def report_alone(asked: argparse.Namespace, alone: Run) -> bool:
    """Print the figures of one process; return whether they are within the limits."""
    max_s = MAX_S * max(1.0, asked.rows / 1e6)
    met = alone.answer is not None and alone.seconds <= max_s and alone.peak <= MAX_BYTES
    print(
        f"{asked.rows:,} rows, {COVARIATES} covariates, {asked.method}, {asked.strata} strata: "
        f"{alone.seconds:.0f} s, {alone.peak / 1e9:.2f} GB at the peak; within {max_s:.0f} s and "
        f"3 GB: {'met' if met else 'NOT met'}",
        flush=True,
    )
    return met


def report_cluster(address: str, alone: Run, there: Run) -> bool:
    """Print the figures of a cluster; return whether they are within the limits."""
    difference = largest_difference(alone.answer, there.answer)
    met = there.answer is not None and difference <= MAX_DIFFERENCE
    met = met and there.peak_of_workers <= MAX_WORKER_BYTES
    print(
        f"--cluster {address}: {there.seconds:.0f} s, {there.peak_of_workers / 1e9:.2f} GB at the "
        f"peak of a worker here, {there.peak / 1e9:.2f} GB of the command; largest difference of "
        f"a number {difference:.1g}; within 1e-12 and 1.5 GB: {'met' if met else 'NOT met'}"
    )
    return met


if __name__ == "__main__":
    sys.exit(main())
