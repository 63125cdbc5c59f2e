"""``python -m benchmarks.scale``: how costs grow, with exponents from four sizes each."""

from __future__ import annotations

import argparse
import importlib
import sys
import time
from collections.abc import Callable

from benchmarks.scale.growth import Growth, show

PARTS: dict[str, tuple[str, str]] = {
    "statistics": ("analysis", "growths"),
    "width": ("analysis", "width_growths"),
    "ledger": ("ledgers", "size_growths"),
    "runs": ("ledgers", "run_growths"),
    "pulls": ("ledgers", "pull_growths"),
    "merge": ("merges", "growths"),
    "messages": ("messages", "growths"),
    "dask": ("messages", "dask_growths"),
    "pages": ("pages", "growths"),
}
"""Modules are loaded where they are used: a part measures no memory of another one."""


def main() -> int:
    """0, with one table for each part."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description=__doc__)
    parser.add_argument("--part", action="append", choices=tuple(PARTS), help="repeatable")
    options = parser.parse_args()
    started = time.process_time()
    for name in options.part or PARTS:
        module, function = PARTS[name]
        measure: Callable[[], list[Growth]] = getattr(
            importlib.import_module(f"benchmarks.scale.{module}"), function
        )
        print(f"### {name}\n")
        show(measure())
    print(f"{time.process_time() - started:.0f} s of CPU in this process")
    return 0


if __name__ == "__main__":
    sys.exit(main())
