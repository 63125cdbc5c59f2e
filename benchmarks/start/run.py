"""How long commands take to start, beside an interpreter that imports what every one needs.

    python benchmarks/start/run.py [ROUNDS]

All run in turns, in random order, so a busy machine slows down all of them alike. A ratio is of
two medians; its interval is a bootstrap over the rounds.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

ROUNDS = 40
SEED = 20260301
RESAMPLES = 2000
BASE = "python -c 'import click, msgspec, numpy'"
BARS = {
    "equipoise --version": 1.0,
    "equipoise compare --help": 1.5,
    "equipoise compare true true --blocks 8": 2.5,
}


def main() -> int:
    """Run the rounds, print a table, and return 1 if a bar is missed."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    times = measure(rounds)
    base = times[BASE]
    print(f"{BASE}: {1000 * np.median(base):.0f} ms, in {rounds} rounds")
    missed = False
    for command, bar in BARS.items():
        ratio = np.median(times[command]) / np.median(base)
        low, high = interval(times[command], base)
        missed |= bool(ratio > bar)
        outcome = "met" if ratio <= bar else "missed"
        print(f"{command}: {ratio:.2f} times ({low:.2f} to {high:.2f}), at most {bar}: {outcome}")
    return int(missed)


def measure(rounds: int) -> dict[str, np.ndarray]:
    """Return the seconds of each command in each round, after one that is not counted."""
    python = sys.executable
    program = shutil.which("equipoise", path=str(Path(python).parent)) or "equipoise"
    commands = {BASE: [python, "-c", "import click, msgspec, numpy"]}
    commands |= {name: [program, *name.split()[1:]] for name in BARS}
    seconds: dict[str, list[float]] = {name: [] for name in commands}
    order, coin = list(commands), random.Random(SEED)
    with tempfile.TemporaryDirectory(prefix="equipoise-start-") as folder:
        environment = with_bytecode(Path(folder, "bytecode"))
        for number in range(rounds + 1):
            coin.shuffle(order)
            for place, name in enumerate(order):
                # Each in a folder of its own: a new ledger, as on the first day.
                here = Path(folder, f"{number}-{place}")
                here.mkdir()
                start = time.perf_counter()
                subprocess.run(
                    commands[name], cwd=here, env=environment, capture_output=True, check=True
                )
                if number:
                    seconds[name].append(time.perf_counter() - start)
    return {name: np.array(values) for name, values in seconds.items()}


def with_bytecode(folder: Path) -> dict[str, str]:
    """Return the environment of a user who installed Equipoise: bytecode is kept and used."""
    environment = dict(os.environ) | {
        "PYTHONPYCACHEPREFIX": str(folder),
        # Whoever else measures on this host would be waited for.
        "EQUIPOISE_ALLOW_CONCURRENT": "1",
    }
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    return environment


def interval(times: np.ndarray, base: np.ndarray) -> tuple[float, float]:
    """Return the 95 % interval of the ratio of medians, by resampling rounds."""
    generator = np.random.default_rng(SEED)
    drawn = generator.integers(0, len(base), size=(RESAMPLES, len(base)))
    ratios = np.median(times[drawn], axis=1) / np.median(base[drawn], axis=1)
    low, high = np.quantile(ratios, [0.025, 0.975])
    return float(low), float(high)


if __name__ == "__main__":
    sys.exit(main())
