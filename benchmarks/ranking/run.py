"""How many trials a campaign saves that leaves out what is decided and cannot be the fastest.

Simulates campaigns of a baseline and four candidates with and without leaving, each to its stop::

    python -m benchmarks.ranking.run --campaigns 100
"""

from __future__ import annotations

import argparse
import sys

import numpy as np
from msgspec.structs import replace

from equipoise.model.plan import Stopping
from tests.campaign.test_ranking import plan_with, simulated

SCENARIOS = {
    "three 10 % slower, one equal": (1.0, 1.1, 1.1, 1.1, 1.0),
    "four 10 % slower": (1.0, 1.1, 1.1, 1.1, 1.1),
    "one 10 % faster, three equal": (1.0, 0.9, 1.0, 1.0, 1.0),
    "all equal": (1.0, 1.0, 1.0, 1.0, 1.0),
}
"""True times of the conditions; the baseline is the first."""
SD = 0.01
MOST_BLOCKS = 300


def main() -> int:
    """Print mean trials with and without leaving, and what share is saved."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--campaigns", type=int, default=100)
    campaigns = parser.parse_args().campaigns
    print(f"mean trials of {campaigns} campaigns; noise of {100 * SD:g} %, 1 % matters")
    for name, ratios in SCENARIOS.items():
        trials = np.array(
            [
                [
                    len(
                        simulated(
                            replace(plan_with(ratios, seed), stopping=stopping),
                            ratios,
                            SD,
                            MOST_BLOCKS,
                        ).trials
                    )
                    for stopping in (
                        Stopping(min_seconds=0.0),
                        Stopping(min_seconds=0.0, leave_out_decided=True),
                    )
                ]
                for seed in range(campaigns)
            ]
        )
        without, leaving = trials.mean(axis=0)
        saved = 100.0 * (1.0 - leaving / without)
        error = 100.0 * np.std(trials[:, 1] / trials[:, 0], ddof=1) / np.sqrt(campaigns)
        print(f"{name:32} {without:7.0f} {leaving:7.0f}  {saved:3.0f} % fewer (± {error:.1f})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
