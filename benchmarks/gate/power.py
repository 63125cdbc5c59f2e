"""After how many blocks a gate fails a slowdown, by how noisy one trial is.

Simulated campaigns of `equipoise gate` with its usual 2 % and alpha, asked after every block: the
machine that runs this is no matter. Prints the blocks within which half of the gates fail, and 19
of 20.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from equipoise.stats.sequence import PairedBlocks

ALPHA = 0.05
SPREADS = (0.02, 0.05, 0.10, 0.15, 0.20, 0.30)
FIRST_BLOCKS, MAX_BLOCKS = 250, 16_000

Floats = NDArray[np.float64]
Draw = Callable[[np.random.Generator, tuple[int, int]], Floats]


def normal(generator: np.random.Generator, shape: tuple[int, int]) -> Floats:
    """Normal log times."""
    return generator.standard_normal(shape)


def heavy(generator: np.random.Generator, shape: tuple[int, int]) -> Floats:
    """Log times with Student's three degrees of freedom."""
    return generator.standard_t(3, shape)


NOISES: dict[str, Draw] = {"normal": normal, "heavy tails (t3)": heavy}


def main(words: Sequence[str]) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gates", type=int, default=400, help="of each kind of noise")
    parser.add_argument("--slower", type=float, default=5.0, metavar="PERCENT")
    parser.add_argument("--min-effect", type=float, default=2.0, metavar="PERCENT")
    asked = parser.parse_args(words)
    margin, effect = (math.log1p(one / 100) for one in (asked.min_effect, asked.slower))
    print(f"{'noise of one trial':<20} {'spread':>7} {'half':>7} {'19 of 20':>9}")
    for name, draw in NOISES.items():
        for spread in SPREADS:
            ends = sorted(
                blocks_to_fail(draw, spread, effect, margin, seed) for seed in range(asked.gates)
            )
            half, most = (ends[math.ceil(share * len(ends)) - 1] for share in (0.5, 0.95))
            print(f"{name:<20} {100 * spread:>5.0f} % {half:>7.0f} {most:>9.0f}")
    return 0


def blocks_to_fail(draw: Draw, spread: float, effect: float, margin: float, seed: int) -> float:
    """After how many blocks one gate fails; infinite where it does not, or passes before."""
    generator = np.random.default_rng(seed)
    campaign = np.empty((3, 0))
    while campaign.shape[1] < MAX_BLOCKS:
        # As many again as there are: most gates need few.
        more = max(FIRST_BLOCKS, campaign.shape[1])
        times = np.exp(spread * draw(generator, (2, more)))
        times[1] *= math.exp(effect)
        orders = generator.choice([-1.0, 1.0], (1, more))
        campaign = np.hstack([campaign, np.vstack([times, orders])])
        end = paired(campaign).engine.blocks_to_exclude(margin, ALPHA)
        if end is not None:
            low, _ = paired(campaign[:, :end]).engine.running_interval(ALPHA)
            return end if low > margin else math.inf
    return math.inf


def paired(campaign: Floats) -> PairedBlocks:
    """Rows of times of the baseline, of the candidate, and of orders, as the engine takes them."""
    old, new, orders = campaign
    return PairedBlocks(old, new, orders.astype(np.int8))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
