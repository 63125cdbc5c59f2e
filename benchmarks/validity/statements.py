"""``python -m benchmarks.validity.statements``: figures of docs/evidence/simulations.md.

Three answers of one comparison, how much a first verdict overstates, and how much wider the
median's interval is that holds at every stop. Twenty seconds on one core.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Iterator

import numpy as np
from numpy.random import Generator, default_rng

from benchmarks.validity import campaign
from benchmarks.validity.machine import FloatArray
from equipoise.stats.describe import median_at_any_stop, median_interval
from equipoise.stats.sequence import PairedBlocks
from equipoise.stats.verdict import typical_ratio

BLOCKS = 20_000
"""Of one comparison: their chance is below a tenth of a percent."""
NOISE = 0.01
"""Standard deviation of the logarithm of every trial, in the table of three answers."""
TRUE_PERCENT = 1.0
SD = 0.02
RUNS = (20, 5000)


def _two_values(share: float, often: float, else_: float) -> Callable[[Generator], FloatArray]:
    """Return costs of one value in exactly this share of the blocks, and of another elsewhere."""
    values = np.where(np.arange(BLOCKS) < share * BLOCKS, often, else_)
    return lambda random: random.permutation(values)


def _wide(random: Generator) -> FloatArray:
    """Return lognormal costs with mean 1."""
    costs: FloatArray = np.exp(0.5 * random.standard_normal(BLOCKS))
    return costs / float(costs.mean())


_ONE = _two_values(1.0, 1.0, 1.0)
PROGRAMS = {
    "B takes 0.9 of A's time in 90 % of runs, 5 times in 10 %": (_ONE, _two_values(0.9, 0.9, 5.0)),
    "equal means, B spreads by 50 %": (_ONE, _wide),
    "A takes 1 in 51 % of runs and 2 in 49 %, B 1.4": (
        _two_values(0.51, 1.0, 2.0),
        _two_values(1.0, 1.4, 1.4),
    ),
    "A takes 2 instead of 1 in 45 % of runs, B in 55 %": (
        _two_values(0.45, 2.0, 1.0),
        _two_values(0.55, 2.0, 1.0),
    ),
}
"""Costs of A and of B in each block, without noise."""


def three_answers(name: str, random: Generator) -> tuple[float, ...]:
    """Return typical ratio, ratio of medians and ratio of means, in percent from 1."""
    first, second = (
        costs(random) * np.exp(NOISE * random.standard_normal(BLOCKS)) for costs in PROGRAMS[name]
    )
    typical = typical_ratio(PairedBlocks(first, second, random.choice([-1, 1], BLOCKS)))
    assert typical is not None
    ratios = (typical, np.median(second) / np.median(first), second.mean() / first.mean())
    return tuple(100.0 * (float(ratio) - 1.0) for ratio in ratios)


def overstated(campaigns: int, seed: int) -> FloatArray:
    """Return the estimate at the first verdict over the truth, of the campaigns called slower."""
    found = []
    for number in range(campaigns):
        random = default_rng([seed, number])
        orders = campaign.draw_orders(int(random.integers(2**62)))[campaign.WARMUP :]
        logs = SD * random.standard_normal(orders.shape) + math.log1p(TRUE_PERCENT / 100) * orders
        blocks = campaign.Blocks(orders, np.exp(logs), quantum=None)
        stop = campaign.first_verdict(blocks, blocks.paired(), min_effect=1.0)
        if stop.verdict == "slower":
            ratio = typical_ratio(blocks.paired(stop.blocks))
            assert ratio is not None
            found.append(100.0 * (ratio - 1.0) / TRUE_PERCENT)
    return np.array(found)


def wider(runs: int, random: Generator) -> float:
    """Return the width of the median's interval at any stop over that at one look, in the mean."""
    widths = []
    for _ in range(200):
        ordered = np.sort(random.standard_normal(runs))
        pairs = (
            median_at_any_stop(ordered, campaign.ALPHA),
            median_interval(ordered, campaign.ALPHA),
        )
        (low, high), (low_once, high_once) = pairs
        assert low is not None and high is not None
        assert low_once is not None and high_once is not None
        widths.append((high - low, high_once - low_once))
    at_any_stop, once = np.mean(widths, axis=0)
    return float(at_any_stop / once)


def lines(campaigns: int, seed: int) -> Iterator[str]:
    """Yield what is printed."""
    random = default_rng(seed)
    yield f"{'':<57}{'typical':>9}{'medians':>9}{'means':>9}"
    for name in PROGRAMS:
        yield f"{name:<57}" + "".join(f"{one:>+7.1f} %" for one in three_answers(name, random))
    found = overstated(campaigns, seed)
    yield (
        f"a true {TRUE_PERCENT:g} %, sd {100 * SD:g} %: {len(found)} of {campaigns} campaigns of "
        f"at most {campaign.BLOCKS} blocks called slower"
    )
    yield (
        f"estimate over truth: {found.mean():.2f} on average, {np.median(found):.2f} in the "
        f"median, {np.quantile(found, 0.9):.2f} at the 90th percentile"
    )
    for runs in RUNS:
        yield f"interval of the median of {runs} runs: {wider(runs, random):.2f} times as wide"


def main() -> int:
    """Print the figures."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.validity.statements")
    parser.add_argument("--campaigns", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    for line in lines(options.campaigns, options.seed):
        print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
