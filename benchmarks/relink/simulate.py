"""How often a gate is red because of links alone, with one link of each revision and with many.

``python -m benchmarks.relink.simulate``. Nothing is slower: the time of a trial is that of its link
times noise. Links of both revisions come from one distribution. With ``--relink``, each block has
its own links; without, each revision has one. A gate is red if it fails at any look, from the first
possible block on. The machine that runs this is no matter.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence

import numpy as np

from equipoise.kinds.gate.verdict import judge_gate
from equipoise.stats.sequence import PairedBlocks

ALPHA, MIN_EFFECT, PLANTED = 0.05, 2.0, 5.0
LINKS = (2, 4, 8, 16, 64)
"""Links of each revision at the end, which is as many blocks."""
LINK_SPREADS = (0.0, 0.01, 0.03, 0.1)
NOISES = (0.005, 0.03, 0.1)
"""Log standard deviations, over links and over the trials of one link."""
SHAPES = ("normal", "two places")
"""Effects of links: normal, or one of two (a hot loop that does or does not cross a line)."""


def effects(
    generator: np.random.Generator, shape: str, spread: float, count: int
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return the log effects of links, shape (count,)."""
    if shape == "normal":
        return generator.normal(0.0, spread, count)
    # One link in five is slow; the standard deviation is the same.
    return np.where(generator.random(count) < 0.2, 2.5 * spread, 0.0)


def is_red(
    generator: np.random.Generator,
    shape: str,
    link_spread: float,
    noise: float,
    *,
    blocks: int,
    effect: float,
    has_links_of_blocks: bool,
) -> bool:
    """Return whether a gate fails at any look."""
    count = blocks if has_links_of_blocks else 1
    links = [
        np.broadcast_to(effects(generator, shape, link_spread, count), blocks) for _ in range(2)
    ]
    times = [np.exp(link + generator.normal(0.0, noise, blocks)) for link in links]
    times[1] *= math.exp(effect)
    orders = np.where(generator.random(blocks) < 0.5, 1, -1)
    growing = PairedBlocks()
    for row in zip(*times, orders, strict=True):
        growing.append(*row)
        decision = judge_gate([growing], min_effect=MIN_EFFECT, alpha=ALPHA)[0]
        if decision.outcome != "undecided":
            return decision.outcome == "slower"
    return False


def main(words: Sequence[str]) -> int:
    """Print the shares; end with 1 if a share with links of blocks is above alpha beyond chance."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gates", type=int, default=400, help="of each cell")
    asked = parser.parse_args(words)
    limit = ALPHA + 3.0 * math.sqrt(ALPHA * (1.0 - ALPHA) / asked.gates)
    print(f"share of {asked.gates} gates that are red at any look, %")
    heads = [f"{links} links" for links in LINKS]
    print(
        f"{'effect of links':<22}{'noise':>8}"
        + "".join(f"{head:>10}" for head in heads)
        + f"{'one link':>10}{'5 % found':>11}{'one link':>10}"
    )
    failures = 0
    for shape in SHAPES:
        for link_spread in LINK_SPREADS:
            for noise in NOISES:
                generator = np.random.default_rng(
                    [SHAPES.index(shape), int(1e4 * link_spread), int(1e4 * noise)]
                )

                def share(blocks: int, effect: float, *, has_links_of_blocks: bool) -> float:
                    return (
                        sum(
                            is_red(
                                generator,  # noqa: B023
                                shape,  # noqa: B023
                                link_spread,  # noqa: B023
                                noise,  # noqa: B023
                                blocks=blocks,
                                effect=effect,
                                has_links_of_blocks=has_links_of_blocks,
                            )
                            for _ in range(asked.gates)
                        )
                        / asked.gates
                    )

                false = [share(links, 0.0, has_links_of_blocks=True) for links in LINKS]
                planted = math.log1p(PLANTED / 100)
                cells = [
                    *false,
                    share(LINKS[-1], 0.0, has_links_of_blocks=False),
                    share(LINKS[-1], planted, has_links_of_blocks=True),
                    share(LINKS[-1], planted, has_links_of_blocks=False),
                ]
                failures += sum(one > limit for one in false)
                widths = (*(10 for _ in LINKS), 10, 11, 10)
                print(
                    f"{f'{100 * link_spread:g} %, {shape}':<22}{100 * noise:>7g}%"
                    + "".join(
                        f"{100 * cell:>{width}.1f}" for cell, width in zip(cells, widths, strict=True)
                    ),
                    flush=True,
                )
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
