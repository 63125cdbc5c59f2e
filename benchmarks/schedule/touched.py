"""What a gate gains if it measures untouched benchmarks last, and what it then misses.

Simulated gates as in ``benchmarks.schedule.run``::

    python -m benchmarks.schedule.touched
    python -m benchmarks.schedule.touched --noises normal,drift --gates 20 --shares 0.02,0.1

80 of 100 benchmarks run no changed file. Nine of the other 20 are 5 % slower. So is one of the 80,
as if the evidence were wrong: it must be found if the budget suffices. The budget is a share of the
time of a full run. The exit status is 1 if the false-discovery rate is above 5 % by more than two
standard errors.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from benchmarks.schedule.run import (
    ALPHA,
    FULL_BLOCKS,
    NOISES,
    SimulatedSuite,
    mean_and_error,
    percent,
    scheduled_gate,
)


def untouched_of(suite: SimulatedSuite, count: int) -> tuple[int, frozenset[int]]:
    """Return the slower benchmark of the untouched ones, and the untouched benchmarks."""
    slower, *_ = sorted(suite.planted)
    others = [index for index in range(len(suite.spreads)) if index not in suite.planted]
    return slower, frozenset([slower, *others[: count - 1]])


def main(words: Sequence[str]) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gates", type=int, default=20, help="of each kind of noise")
    parser.add_argument("--benchmarks", type=int, default=100)
    parser.add_argument("--planted", type=int, default=10)
    parser.add_argument("--untouched", type=int, default=80)
    parser.add_argument("--shares", default="0.02,0.04,0.1", help="budgets over the full time")
    parser.add_argument("--noises", default=",".join(NOISES))
    options = parser.parse_args(words)
    print(
        f"{'noise':<15} {'budget %':>8} {'order':<14} {'touched found %':>16} "
        f"{'untouched found %':>18} {'FDR %':>10} {'passes':>6}"
    )
    is_good = True
    for noise in options.noises.split(","):
        for share in map(float, options.shares.split(",")):
            for order in ("usual", "untouched last"):
                touched_found, untouched_found, false, passes = [], [], [], []
                for seed in range(1, options.gates + 1):
                    suite = SimulatedSuite(noise, seed, options.benchmarks, options.planted)
                    slower, untouched = untouched_of(suite, options.untouched)
                    budget_s = share * 2.0 * FULL_BLOCKS * float(suite.seconds.sum())
                    last = untouched if order == "untouched last" else frozenset()
                    gate = scheduled_gate(suite, seed, budget_s, untouched=last)
                    found = gate.slower & suite.planted - {slower}
                    touched_found.append(len(found) / (options.planted - 1))
                    untouched_found.append(float(slower in gate.slower))
                    false.append(gate.false / max(1, gate.false + gate.found))
                    passes.append(gate.passes)
                print(
                    f"{noise:<15} {100 * share:>8g} {order:<14} {percent(touched_found):>16} "
                    f"{percent(untouched_found):>18} {percent(false):>10} "
                    f"{mean_and_error(passes)[0]:>6.0f}",
                    flush=True,
                )
                mean_false, false_error = mean_and_error(false)
                is_good &= not mean_false - 2 * false_error > ALPHA
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
