"""``python -m benchmarks.fleet``: fleets with known truth, judged by the shipped statistics."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import TypeVar

from benchmarks.bisect.__main__ import show
from benchmarks.fleet.tables import TABLES

Result = TypeVar("Result")
SEEDS = 4
"""Seeds that the fleets of a cell come from, in equal parts."""


def main() -> int:
    """0 if every claim holds, 1 if one fails."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fleet", description=__doc__)
    parser.add_argument("--fleets", type=int, default=1000, help="for each cell (default 1000)")
    parser.add_argument("--workers", type=int, default=2, help="processes (default 2)")
    parser.add_argument(
        "--table", action="append", choices=tuple(TABLES), help="only this; repeatable"
    )
    parser.add_argument("--seed", type=int, default=1, help=f"the first of {SEEDS}")
    options = parser.parse_args()
    if options.fleets < SEEDS or options.workers < 1:
        parser.error(f"give at least {SEEDS} fleets and 1 worker")
    started = time.monotonic()
    broken: list[str] = []
    with ProcessPoolExecutor(options.workers) as pool:

        def run_all(simulate: Callable[[int], Result], /, part: float = 1.0) -> list[Result]:
            of_seed = max(1, round(part * options.fleets / SEEDS))
            seeds = [
                seed * 1_000_003 + fleet
                for seed in range(options.seed, options.seed + SEEDS)
                for fleet in range(of_seed)
            ]
            results = list(pool.map(simulate, seeds, chunksize=max(1, len(seeds) // 20)))
            print(".", end="", file=sys.stderr, flush=True)
            return results

        for name in options.table or TABLES:
            table = TABLES[name](run_all)
            print(file=sys.stderr)
            show(table)
            broken += table.broken
    last = options.seed + SEEDS - 1
    minutes = (time.monotonic() - started) / 60
    print(f"{options.fleets} fleets a cell, seeds {options.seed} to {last}, {minutes:.1f} minutes")
    for claim in broken:
        print(f"broken claim: {claim}", file=sys.stderr)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
