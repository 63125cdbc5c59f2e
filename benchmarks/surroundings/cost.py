"""What the covariates of one trial cost: ``before`` and ``after`` together, on this host.

    python benchmarks/surroundings/cost.py [--trials N]

Both calls lie outside the timed region; the limit is 1 ms a trial.
"""

from __future__ import annotations

import argparse
import statistics
import time

from equipoise.measure.environment import CovariateReader, Host, Unknown, snapshot
from equipoise.measure.environment.covariates import SOURCES

LIMIT_S = 1e-3


def main() -> None:
    """Measure and print one line for each source, and one for all of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=2000)
    trials = parser.parse_args().trials
    print(f"{trials} trials; microseconds a trial, median and 99th percentile")
    for names, open_source in SOURCES:
        try:
            source = open_source(Host())
        except Unknown as reason:
            print(f"  {', '.join(names):42} not here: {reason}")
            continue
        costs = []
        for _ in range(trials):
            started = time.perf_counter()
            source.read_before(started)
            source.read_after(0)
            costs.append(time.perf_counter() - started)
        source.close()
        print(f"  {', '.join(names):42} {_line(costs)}")
    with CovariateReader() as reader:
        costs = []
        for _ in range(trials):
            started = time.perf_counter()
            reader.read_before()
            reader.read_after(cpu=0, run_delay_s=0.0)
            costs.append(time.perf_counter() - started)
    print(f"  {'all, as a trial reads them':42} {_line(costs)}")
    verdict = "under" if statistics.median(costs) < LIMIT_S else "OVER"
    print(f"{verdict} the limit of {1e3 * LIMIT_S:g} ms a trial")
    started = time.perf_counter()
    snapshot()
    print(f"a snapshot, once a segment: {1e3 * (time.perf_counter() - started):.1f} ms")


def _line(costs: list[float]) -> str:
    high = statistics.quantiles(costs, n=100)[98]
    return f"{1e6 * statistics.median(costs):8.1f} {1e6 * high:8.1f}"


if __name__ == "__main__":
    main()
