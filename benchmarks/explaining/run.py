"""How well shares of a gap are covered, and how soon they are known, with the judge's own stopping.

Simulated campaigns of interventions whose share is known: normal noise of 3 % a trial, Student's
t with 3 degrees of freedom of 2 %, and a drift of half a percent a trial with 2 %. One
intervention at the whole of alpha.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from packages.equipoise.tests.kinds.explain.simulated import (
    NOISES,
    Truth,
    is_wrong,
    misses,
    simulated,
)

CAMPAIGNS = 100
BLOCKS = 80
GAPS = (1.1, 1.3, 2.0, 3.0)
SHARES = (0.0, 0.5, 0.8, 1.0)


def main() -> int:
    """Print one line for each noise, gap and share, and what they come to together."""
    generator = np.random.default_rng(30)
    given = missed = wrong = 0
    print("noise   gap  share  covered  confirmed  refuted  open  wrong  median blocks")
    for name, noise in NOISES.items():
        for gap in GAPS:
            for share in SHARES:
                found = [
                    simulated(gap, [Truth(share)], noise, generator, blocks=BLOCKS)[0]
                    for _ in range(CAMPAIGNS)
                ]
                known = [one for one in found if one.share is not None]
                left_out = sum(misses(one, share) for one in known)
                false = sum(is_wrong(one, share) for one in known)
                given, missed, wrong = given + len(known), missed + left_out, wrong + false
                outcomes = [one.outcome for one in found]
                print(
                    f"{name:6} {gap:4.1f} {share:6.1f} {1 - left_out / len(known):8.1%} "
                    f"{outcomes.count('confirmed'):10} {outcomes.count('refuted'):8} "
                    f"{outcomes.count('open'):5} {false:6} "
                    f"{np.median([one.blocks for one in found]):14g}",
                    flush=True,
                )
    print(
        f"of {given} campaigns that gave a share, {1 - missed / given:.2%} covered the true one; "
        f"{wrong} outcomes were wrong ({wrong / given:.2%})"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
