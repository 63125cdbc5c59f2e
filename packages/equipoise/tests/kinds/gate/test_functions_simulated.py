"""Equal functions whose links and places differ are rarely called slower, at every look."""

from __future__ import annotations

import math

import numpy as np
import pytest

from equipoise.kinds.gate.verdict import judge_gate
from equipoise.stats.sequence import BASELINE_FIRST, CANDIDATE_FIRST, PairedBlocks

CAMPAIGNS, BLOCKS, ALPHA = 200, 30, 0.05


def paired_blocks(generator: np.random.Generator, *, link_sd: float, change: float) -> PairedBlocks:
    """Blocks of a campaign: a link for each side, a faster first place, and noise with tails."""
    links = generator.choice([-1.0, 0.0, 2.0], size=(BLOCKS, 2)) * link_sd
    places = np.array([0.0, 0.01])
    order = generator.integers(0, 2, BLOCKS)
    noise = 0.003 * generator.standard_t(3, size=(BLOCKS, 2))
    baseline = np.exp(links[:, 0] + places[order] + noise[:, 0])
    candidate = np.exp(change + links[:, 1] + places[1 - order] + noise[:, 1])
    orders = np.where(order == 0, BASELINE_FIRST, CANDIDATE_FIRST).astype(np.int8)
    return PairedBlocks(baseline, candidate, orders)


def is_ever_slower(blocks: PairedBlocks) -> bool:
    """Whether a gate that looks after each block says slower at one of the looks."""
    for count in range(6, BLOCKS + 1):
        part = PairedBlocks(
            blocks.baseline[:count], blocks.candidate[:count], blocks.orders[:count]
        )
        (decision,) = judge_gate([part], min_effect=0.0, alpha=ALPHA)
        if decision.outcome == "slower":
            return True
    return False


@pytest.mark.parametrize("link_sd", [0.0, 0.02])
def test_equal_functions_are_slower_in_at_most_alpha_of_campaigns(link_sd: float) -> None:
    generator = np.random.default_rng(181)
    false = sum(
        is_ever_slower(paired_blocks(generator, link_sd=link_sd, change=0.0))
        for _ in range(CAMPAIGNS)
    )
    standard_error = math.sqrt(ALPHA * (1.0 - ALPHA) / CAMPAIGNS)
    assert false / CAMPAIGNS <= ALPHA + 3.0 * standard_error


def test_one_per_cent_is_found_if_links_make_no_difference() -> None:
    generator = np.random.default_rng(182)
    found = sum(
        is_ever_slower(paired_blocks(generator, link_sd=0.0, change=0.01)) for _ in range(40)
    )
    assert found >= 36
