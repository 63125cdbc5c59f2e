"""What counting costs, inside and outside the timed region, in one interleaved, randomised run.

The same static ``int main(void) { return 0; }`` and a loop that faults on 2,000 pages are
started by launchers that count nothing, one counter, all that the kernel counts, and all.
Prints, beside the launcher that counts nothing, the median over rounds of the difference of
the timed region and of the time around it, with a bootstrap interval; exits with 1 if a trial
costs more than 1 ms more, or if the peak memory of the program passes its bound.

    python benchmarks/launcher/counters.py [--launcher PATH] [--before PATH] [--rounds N]

``--before`` names an older launcher of the same protocol: it is run beside the others, without
counters, so that what a launcher costs that counts nothing can be seen.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from run import BUILT, ENVIRONMENT, MEMORY_BOUND_BYTES, TRUE, compile_c

from equipoise.measure.launcher import COUNTERS, SOFTWARE_COUNTERS, Launcher, Request

FAULTS = """
#include <stdlib.h>
int main(void) {
  volatile char *room = malloc(2000 * 4096);
  for (int page = 0; page < 2000; page++) room[page * 4096] = 1;
  return 0;
}
"""
BOUND_US = 1000.0
RESAMPLES = 1000

CHOICES: dict[str, tuple[str, ...]] = {
    "nothing": (),
    "nothing, again": (),
    "task_clock": ("task_clock",),
    "4 of the kernel": SOFTWARE_COUNTERS,
    "all 10": COUNTERS,
}


@dataclass(frozen=True, slots=True)
class Cost:
    """One trial, in microseconds."""

    inside: float
    around: float
    peak_bytes: int


def start(launcher: Launcher, request: Request) -> Cost:
    """Run one trial."""
    before = time.perf_counter_ns()
    report = launcher.run(request)
    waited_ns = time.perf_counter_ns() - before
    assert report.wall_ns is not None, report.could_not_start
    assert report.max_rss_bytes is not None
    inside = report.wall_ns / 1e3
    return Cost(inside, waited_ns / 1e3 - inside, report.max_rss_bytes)


def interleave(
    launchers: dict[str, Launcher], request: Request, rounds: int, coin: random.Random
) -> dict[str, list[Cost]]:
    """Run each once a round, in shuffled order, after one run of its own that is not kept."""
    costs: dict[str, list[Cost]] = {name: [] for name in launchers}
    names = list(launchers)
    for _ in range(rounds):
        coin.shuffle(names)
        for name in names:
            start(launchers[name], request)
            costs[name].append(start(launchers[name], request))
    return costs


def words(differences: list[float], coin: random.Random) -> str:
    """The median with its 95 % bootstrap interval."""
    medians = sorted(
        statistics.median(coin.choices(differences, k=len(differences))) for _ in range(RESAMPLES)
    )
    low, high = medians[RESAMPLES // 40], medians[-RESAMPLES // 40]
    return f"{statistics.median(differences):+6.1f} us ({low:+.1f} to {high:+.1f})"


def measure(options: argparse.Namespace, folder: Path) -> bool:
    """Run, print, and say whether every bound is met."""
    coin = random.Random(options.seed)
    met = True
    with contextlib.ExitStack() as opened:

        def launcher(program: Path, counters: tuple[str, ...]) -> Launcher:
            return opened.enter_context(
                Launcher(program, containment=options.containment, counters=counters)
            )

        launchers = {
            name: launcher(options.launcher, counters) for name, counters in CHOICES.items()
        }
        if options.before is not None:
            launchers["the older one"] = launcher(options.before, ())
        for program, source in (("static true", TRUE), ("2,000 faults", FAULTS)):
            file = folder / "program.c"
            file.write_text(source)
            built = compile_c(file, folder / program.replace(" ", "-"), "-static")
            request = Request(argv=(str(built),), environment=ENVIRONMENT, working_folder="/")
            costs = interleave(launchers, request, options.rounds, coin)
            plain = costs.pop("nothing")
            inside = statistics.median(cost.inside for cost in plain)
            around = statistics.median(cost.around for cost in plain)
            print(f"{program}, nothing counted: {inside:.0f} us inside, {around:.0f} us around")
            for name, counted in costs.items():
                pairs = list(zip(counted, plain, strict=True))
                within = [one.inside - other.inside for one, other in pairs]
                without = [one.around - other.around for one, other in pairs]
                print(f"  {name:>15}: inside {words(within, coin)}, around {words(without, coin)}")
                met &= statistics.median(within) + statistics.median(without) < BOUND_US
            if source is TRUE:
                peak = max(cost.peak_bytes for counted in costs.values() for cost in counted)
                print(f"  peak memory: {peak:,} bytes (under {MEMORY_BOUND_BYTES:,})")
                met &= peak < MEMORY_BOUND_BYTES
    return met


def main() -> int:
    """Exit status 0 if every bound is met."""
    parser = argparse.ArgumentParser(description="What counting costs.")
    parser.add_argument("--launcher", type=Path, default=BUILT)
    parser.add_argument("--before", type=Path)
    parser.add_argument("--containment", default="process-group")
    parser.add_argument("--rounds", type=int, default=400)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        return 0 if measure(options, Path(folder)) else 1


if __name__ == "__main__":
    sys.exit(main())
