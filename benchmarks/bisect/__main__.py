"""``python -m benchmarks.bisect``: bisections by the shipped engine, beside what others do."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import TypeVar

from benchmarks.bisect.tables import TABLES, Table

CAMPAIGNS = 1000
Simulated = TypeVar("Simulated")


def main() -> int:
    """0 if every claim holds, 1 if one fails."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bisect", description=__doc__)
    parser.add_argument("--campaigns", type=int, default=CAMPAIGNS, help="for each cell")
    parser.add_argument("--workers", type=int, default=2, help="processes (default 2)")
    parser.add_argument("--quick", action="store_true", help="without cells of over 600 trials")
    parser.add_argument(
        "--table", action="append", choices=tuple(TABLES), help="only this; repeatable"
    )
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if options.campaigns < 1 or options.workers < 1:
        parser.error("campaigns and workers are numbers from 1 up")
    started = time.monotonic()
    first = options.seed * 1_000_003
    seeds = range(first, first + options.campaigns)
    with ProcessPoolExecutor(options.workers) as pool:

        def run_all(simulate: Callable[[int], Simulated]) -> list[Simulated]:
            chunk = max(1, options.campaigns // (8 * options.workers))
            outcomes = list(pool.map(simulate, seeds, chunksize=chunk))
            print(".", end="", file=sys.stderr, flush=True)
            return outcomes

        made = [TABLES[name](run_all, options.quick) for name in options.table or TABLES]
    print(file=sys.stderr)
    for table in made:
        show(table)
    print(f"{options.campaigns} campaigns a cell, seed {options.seed}, {_minutes(started)}")
    broken = [claim for table in made for claim in table.broken]
    for claim in broken:
        print(f"broken claim: {claim}", file=sys.stderr)
    return 1 if broken else 0


def show(table: Table) -> None:
    """Print a table as Markdown."""
    print(f"### {table.title}\n")
    print("| " + " | ".join(table.columns) + " |")
    print("|" + " --- |" * len(table.columns))
    for row in table.rows:
        print("| " + " | ".join(row) + " |")
    print()


def _minutes(started: float) -> str:
    return f"{(time.monotonic() - started) / 60:.1f} minutes"


if __name__ == "__main__":
    sys.exit(main())
