"""Prints the speed and the memory of matching on a score and of generalised full matching.

    python -m benchmarks.designs.quick [--limit SECONDS]

Ours is timed with its checks. Peers: R's MatchIt (nearest) and pymatchit-causal 0.6.1 (nearest), at
growing sizes until one call takes more than the limit. Exits with 1 if a bound is missed or an
answer differs from MatchIt's.
"""

from __future__ import annotations

import argparse
import math
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.designs.once import score_data
from benchmarks.designs.timing import PYMATCHIT
from benchmarks.environments import NoEnvironment, python_with

HERE = Path(__file__).resolve().parent
CORES = len(os.sched_getaffinity(0))
PEER_SIZES = (1_000, 5_000, 20_000, 50_000, 200_000)
LARGEST = 10_000_000
MAX_SECONDS = 60.0
QUICK_ROWS = 1_000_000
QUICK_COLUMNS = (3, 5, 10)
MIN_RATIO = 10.0
AGREEMENT = 1e-4
"""Relative difference of the mean distances that equal distances may make."""
START_SECONDS = 60.0
"""Time for a peer to start; pymatchit imports its charts, which takes many seconds."""
PYMATCHIT_PROGRAM = """
import sys, time, warnings
import numpy as np, pandas as pd
from pymatchit import MatchIt
warnings.simplefilter("ignore")
rows = int(sys.argv[2])
values = np.fromfile(sys.argv[1], count=2 * rows)
frame = pd.DataFrame({"treat": values[:rows].astype(int), "score": values[rows:]})
started = time.perf_counter()
found = MatchIt(frame, method="nearest", distance=values[rows:], m_order=sys.argv[3])
pairs = found.fit("treat ~ score").matches(format="long")
seconds = time.perf_counter() - started
score = frame["score"].to_numpy()
treated, control = (pairs[f"{arm}_index"].to_numpy(int) for arm in ("treated", "control"))
differences = score[treated] - score[control]
print(seconds, len(pairs), abs(differences).mean())
"""


def peer_commands() -> dict[str, list[str]]:
    """Return the commands of the peers that are installed; print the reason for the others."""
    commands = {}
    if shutil.which("Rscript"):
        commands["MatchIt"] = ["Rscript", "--vanilla", str(HERE / "nearest.R")]
    else:
        print("MatchIt is not timed: Rscript is not installed (apt-get install r-cran-matchit)")
    try:
        commands["pymatchit"] = [str(python_with(PYMATCHIT)), "-c", PYMATCHIT_PROGRAM]
    except NoEnvironment as error:
        print(f"pymatchit is not timed: {error}")
    return commands


def ours(*arguments: str) -> tuple[float, float, int, float]:
    """Return seconds, bytes at the peak, number of pairs or strata, and the distance."""
    command = [sys.executable, "-m", "benchmarks.designs.once", *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    seconds, memory, count, distance = done.stdout.split()
    return float(seconds), float(memory), int(count), float(distance)


def score_beside_peers(limit: float) -> Iterator[bool]:
    """Match on a score at growing sizes, with the peers that stay within the limit."""
    commands = peer_commands()
    last_ratios: dict[str, float] = {}
    print(f"Nearest matching on a score, a quarter treated, largest score first; a process each;\n"
          f"a peer stops at its first size above {limit:.0f} s")  # fmt: skip
    print(
        f"{'rows':>10} {'pairs':>10} {'ours, s':>9}",
        *(f"{name:>11} {'ratio':>8}" for name in commands),
    )
    for rows in PEER_SIZES:
        seconds, _, pairs, distance = ours("score", str(rows), "largest")
        line = f"{rows:10,} {pairs:10,} {seconds:9.4f}"
        with tempfile.NamedTemporaryFile() as file:
            np.concatenate(score_data(rows)).tofile(file.name)
            for name in list(commands):
                command = [*commands[name], file.name, str(rows), "largest"]
                try:
                    done = subprocess.run(
                        command,
                        stdout=subprocess.PIPE,
                        text=True,
                        check=True,
                        timeout=limit + START_SECONDS,
                    )
                except subprocess.TimeoutExpired:
                    line += f" {'> limit':>11} {'':8}"
                    del commands[name]
                    continue
                peer_seconds, peer_pairs, peer_distance = done.stdout.splitlines()[-1].split()
                ratio = float(peer_seconds) / seconds
                line += f" {float(peer_seconds):11.3f} {ratio:8.0f}"
                last_ratios[name] = ratio
                if name == "MatchIt":
                    yield int(peer_pairs) == pairs
                    yield math.isclose(float(peer_distance), distance, rel_tol=AGREEMENT)
                if float(peer_seconds) > limit:
                    del commands[name]
        print(line, flush=True)
    for name, ratio in last_ratios.items():
        met = ratio >= MIN_RATIO
        print(f"  at least {MIN_RATIO:.0f} times {name} at its largest size: "
              f"{'met' if met else 'MISSED'}")  # fmt: skip
        yield met


def score_of_ten_million() -> Iterator[bool]:
    """Match ten million rows on a score, in each order."""
    print(f"\n{LARGEST:,} rows, {CORES} cores; peak memory of the process with its data")
    for order in ("largest", "smallest", "data", "random", "closest"):
        seconds, memory, pairs, distance = ours("score", str(LARGEST), order)
        met = seconds <= MAX_SECONDS
        print(f"{order:>10} {pairs:10,} pairs {seconds:7.2f} s {memory / 1e9:6.2f} GB, "
              f"mean difference {distance / 1e9:.3g}; "
              f"within {MAX_SECONDS:.0f} s: {'met' if met else 'MISSED'}", flush=True)  # fmt: skip
        yield met


def quick_of_a_million() -> Iterator[bool]:
    """Divide a million rows into strata."""
    print(f"\nGeneralised full matching, {QUICK_ROWS:,} rows, 30 % treated, {CORES} cores")
    for columns in QUICK_COLUMNS:
        seconds, memory, strata, _ = ours("quick", str(QUICK_ROWS), str(columns))
        met = seconds <= MAX_SECONDS
        print(f"{columns:4} covariates {strata:9,} strata {seconds:7.2f} s {memory / 1e9:6.2f} GB; "
              f"within {MAX_SECONDS:.0f} s: {'met' if met else 'MISSED'}", flush=True)  # fmt: skip
        yield met
    print("  no peer: MatchIt's method='quick' needs quickmatch, which Debian lacks, and pymatchit")
    print("  has no generalised full matching")


def main() -> int:
    """Return 0 if every bound is met, else 1."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--limit", type=float, default=60.0, help="seconds of a peer's call")
    limit = parser.parse_args().limit
    parts = (score_beside_peers(limit), score_of_ten_million(), quick_of_a_million())
    met = [bound for part in parts for bound in part]
    if not all(met):
        print("a bound was missed, or an answer differs from MatchIt's")
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
