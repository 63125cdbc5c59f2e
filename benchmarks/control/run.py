"""What the control costs: blocks to tell an effect from none, with it and without it.

Simulated campaigns with independent normal log times; medians of 400. A block with the control
has three trials, one without has two.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from packages.equipoise.tests.stats.simulated import campaign, white
from packages.equipoise.tests.stats.test_sequence import controlled

CAMPAIGNS = 400
BLOCKS = 400
ALPHA = 0.05
SETTINGS = ((0.02, 0.015), (0.02, 0.03), (0.05, 0.03))


def main() -> int:
    """Print one line for each setting."""
    generator = np.random.default_rng(3)
    for spread, effect in SETTINGS:
        without, pooled = (
            np.median(
                [
                    make(white(spread), generator, BLOCKS, effect).engine.blocks_to_exclude(
                        0.0, ALPHA
                    )
                    or BLOCKS
                    for _ in range(CAMPAIGNS)
                ]
            )
            for make in (campaign, controlled)
        )
        print(
            f"trials spread by {spread:.0%}, effect {effect:.1%}: {without:g} blocks without the "
            f"control, {pooled:g} with it: {1.5 * pooled / without:.2f} times the trials"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
