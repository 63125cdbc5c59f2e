"""``python -m benchmarks.history``: histories by the shipped engine, beside what others do."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import TypeVar

from benchmarks.bisect.__main__ import show
from benchmarks.history.tables import TABLES

Result = TypeVar("Result")


def main() -> int:
    """0 if every claim holds, 1 if one fails."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.history", description=__doc__)
    parser.add_argument("--histories", type=int, default=20, help="for each row (default 20)")
    parser.add_argument("--workers", type=int, default=2, help="processes (default 2)")
    parser.add_argument(
        "--table", action="append", choices=tuple(TABLES), help="only this; repeatable"
    )
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if options.histories < 1 or options.workers < 1:
        parser.error("histories and workers are numbers from 1 up")
    started = time.monotonic()
    first = options.seed * 1_000_003
    seeds = range(first, first + options.histories)
    broken: list[str] = []
    with ProcessPoolExecutor(options.workers) as pool:

        def run_all(simulate: Callable[[int], Result], /) -> list[Result]:
            results = list(pool.map(simulate, seeds))
            print(".", end="", file=sys.stderr, flush=True)
            return results

        for name in options.table or TABLES:
            table = TABLES[name](run_all, seeds)
            print(file=sys.stderr)
            show(table)
            broken += table.broken
    minutes = (time.monotonic() - started) / 60
    print(f"{options.histories} histories a row, seed {options.seed}, {minutes:.1f} minutes")
    for claim in broken:
        print(f"broken claim: {claim}", file=sys.stderr)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
