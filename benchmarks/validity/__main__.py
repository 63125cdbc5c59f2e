"""``python -m benchmarks.validity``: run the simulations and print what came of them."""

from __future__ import annotations

import argparse
import datetime
import sys
import time
from pathlib import Path

from benchmarks.validity.scenarios import SCENARIOS
from benchmarks.validity.show import NoMarkers, into_document, on_screen
from benchmarks.validity.simulate import simulate
from benchmarks.validity.summary import broken_claims, summarise
from benchmarks.validity.tables import tables_of

FULL = 2000
QUICK = 200


def main() -> int:
    """0 if every claim holds, 1 if one is broken, 2 if it cannot be run like that."""
    names = [scenario.name for scenario in SCENARIOS]
    parser = argparse.ArgumentParser(prog="python -m benchmarks.validity", description=__doc__)
    parser.add_argument("--campaigns", type=_positive, default=FULL, help="for each scenario")
    parser.add_argument("--quick", action="store_true", help=f"{QUICK} campaigns")
    parser.add_argument("--scenario", action="append", choices=names, help="only this; repeatable")
    parser.add_argument("--workers", type=_positive, default=2, help="processes (default 2)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--markdown", type=Path, help="also write the tables between its markers")
    asked = parser.parse_args()
    campaigns = QUICK if asked.quick else asked.campaigns
    scenarios = [one for one in SCENARIOS if asked.scenario is None or one.name in asked.scenario]

    started = time.monotonic()
    outcomes = simulate(
        scenarios,
        campaigns,
        seed=asked.seed,
        workers=asked.workers,
        progress=lambda name: print(
            f"{time.monotonic() - started:6.0f} s  {name}", file=sys.stderr, flush=True
        ),
    )
    summaries = [summarise(scenario, outcomes[scenario.name]) for scenario in scenarios]
    tables = tables_of(summaries)
    on_screen(tables)
    print(f"{campaigns} campaigns for each scenario, seed {asked.seed}")
    if asked.markdown is not None:
        command = " ".join(["python -m benchmarks.validity", *sys.argv[1:]])
        today = datetime.datetime.now(datetime.UTC).date().isoformat()
        heading = (
            f"`{command}`, {today}: {campaigns} campaigns for each scenario, seed {asked.seed}."
        )
        try:
            into_document(asked.markdown, tables, heading)
        except (NoMarkers, OSError) as error:
            print(error, file=sys.stderr)
            return 2
    broken = [words for summary in summaries for words in broken_claims(summary)]
    for words in broken:
        print(f"broken claim: {words} (seed {asked.seed})", file=sys.stderr)
    return 1 if broken else 0


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a number from 1 up")
    return number


if __name__ == "__main__":
    sys.exit(main())
