"""``python -m benchmarks.validity``: run the simulations and print what came of them."""

from __future__ import annotations

import argparse
import datetime
import sys
import time
from collections.abc import Collection
from pathlib import Path

from benchmarks.validity.findings import findings
from benchmarks.validity.results import NAMES, Results, simulate_all
from benchmarks.validity.show import NoMarkers, findings_into_document, into_document, on_screen

FULL = 2000
QUICK = 200


def main() -> int:
    """0 if every claim holds, 1 if one is broken, 2 if it cannot be run like that."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.validity", description=__doc__)
    parser.add_argument("--campaigns", type=_positive, default=FULL, help="for each scenario")
    parser.add_argument("--quick", action="store_true", help=f"{QUICK} campaigns")
    parser.add_argument("--scenario", action="append", choices=NAMES, help="only this; repeatable")
    parser.add_argument("--workers", type=_positive, default=2, help="processes (default 2)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--markdown", type=Path, help="also write tables and findings between its markers"
    )
    options = parser.parse_args()
    if options.markdown is not None and options.scenario is not None:
        parser.error("a document is written from all scenarios: leave --scenario out")
    campaigns = QUICK if options.quick else options.campaigns
    results = _simulated(options.scenario or NAMES, campaigns, options.seed, options.workers)
    tables = results.tables()
    on_screen(tables)
    print(f"{campaigns} campaigns for each scenario, seed {options.seed}")
    if options.markdown is not None:
        command = " ".join(["python -m benchmarks.validity", *sys.argv[1:]])
        today = datetime.datetime.now(datetime.UTC).date().isoformat()
        heading = (
            f"`{command}`, {today}: {campaigns} campaigns for each scenario, seed {options.seed}."
        )
        try:
            into_document(options.markdown, tables, heading)
            findings_into_document(options.markdown, findings(results))
        except (NoMarkers, OSError) as error:
            print(error, file=sys.stderr)
            return 2
    broken = results.broken_claims()
    for words in broken:
        print(f"broken claim: {words} (seed {options.seed})", file=sys.stderr)
    return 1 if broken else 0


def _simulated(names: Collection[str], campaigns: int, seed: int, workers: int) -> Results:
    started = time.monotonic()

    def progress(name: str) -> None:
        print(f"{time.monotonic() - started:6.0f} s  {name}", file=sys.stderr, flush=True)

    return simulate_all(names, campaigns, seed=seed, workers=workers, progress=progress)


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a number from 1 up")
    return number


if __name__ == "__main__":
    sys.exit(main())
