"""How often a gate is red because of links alone, with one link of each revision and with many.

``python -m benchmarks.relink.simulate``. Nothing is slower: the time of a trial is that of its link
times noise. Links of both revisions come from one distribution. With ``--relink``, each block has
its own links; without, each revision has one. A gate is red if it fails at any look, from the first
possible block on. The machine that runs this is no matter.
"""

from __future__ import annotations

import argparse
import itertools
import math
import sys
from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from equipoise.kinds.gate.verdict import judge_gate
from equipoise.stats.sequence import PairedBlocks

ALPHA, MIN_EFFECT, PLANTED = 0.05, 2.0, 5.0
LINKS = (2, 4, 8, 16, 64)
"""Links of each revision at the end, which is as many blocks."""
LINK_SPREADS = (0.0, 0.01, 0.03, 0.1)
NOISES = (0.005, 0.03, 0.1)
"""Log standard deviations, over links and over the trials of one link."""
SHAPES = ("normal", "one in five slow")
"""Effects of links: normal, or of a hot loop that only some links put across a line."""
_SLOW_SHARE = 0.2


class Cell(Struct, frozen=True):
    """Gates of one kind: what links and noise do, and how many blocks there are."""

    shape: str
    link_spread: float
    noise: float
    blocks: int
    links: int
    """Links of each revision: as many as blocks, or one."""
    effect: float = 0.0
    """Log of the true ratio."""

    def share_of_red(self, gates: int) -> float:
        """Return the share of gates that fail at any look."""
        seed = [int(1e4 * self.link_spread), int(1e4 * self.noise), self.blocks, self.links]
        generator = np.random.default_rng([*seed, SHAPES.index(self.shape), self.effect > 0.0])
        return sum(self.is_red(generator) for _ in range(gates)) / gates

    def is_red(self, generator: np.random.Generator) -> bool:
        """Return whether one gate fails at any look."""
        growing = PairedBlocks()
        orders = generator.choice((1, -1), self.blocks)
        costs = (self._costs(generator), self._costs(generator) * math.exp(self.effect))
        for baseline, candidate, order in zip(*costs, orders, strict=True):
            growing.append(baseline, candidate, order)
            (decision,) = judge_gate([growing], min_effect=MIN_EFFECT, alpha=ALPHA)
            if decision.outcome != "undecided":
                return decision.outcome == "slower"
        return False

    def _costs(self, generator: np.random.Generator) -> np.ndarray:
        """Return the times of one revision, shape (blocks,)."""
        if self.shape == "normal":
            links = generator.normal(0.0, self.link_spread, self.links)
        else:
            spread = math.sqrt(_SLOW_SHARE * (1.0 - _SLOW_SHARE))
            slow = generator.random(self.links) < _SLOW_SHARE
            links = np.where(slow, self.link_spread / spread, 0.0)
        return np.exp(links + generator.normal(0.0, self.noise, self.blocks))


def main(words: Sequence[str]) -> int:
    """Print the shares; end with 1 if one of many links is above alpha beyond chance."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gates", type=int, default=400, help="of each cell")
    gates: int = parser.parse_args(words).gates
    limit = ALPHA + 3.0 * math.sqrt(ALPHA * (1.0 - ALPHA) / gates)
    most = LINKS[-1]
    heads = (*(f"{links} links" for links in LINKS), "one link", "5 %", "5 %, one")
    print(f"share of {gates} gates that are red at any look, in percent")
    print(f"{'effect of links':<26}{'noise':>6}" + "".join(f"{head:>10}" for head in heads))
    failures = 0
    for shape, spread, noise in itertools.product(SHAPES, LINK_SPREADS, NOISES):
        planted = math.log1p(PLANTED / 100)
        cells = [
            *(Cell(shape, spread, noise, links, links) for links in LINKS),
            Cell(shape, spread, noise, most, 1),
            Cell(shape, spread, noise, most, most, planted),
            Cell(shape, spread, noise, most, 1, planted),
        ]
        shares = [cell.share_of_red(gates) for cell in cells]
        failures += sum(share > limit for share in shares[: len(LINKS)])
        row = "".join(f"{100 * share:>10.1f}" for share in shares)
        print(f"{f'{100 * spread:g} %, {shape}':<26}{100 * noise:>5g}%{row}", flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
