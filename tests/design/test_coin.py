"""The coin is fair, seeded, and the same whenever it is asked again."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections import Counter

from equipoise.design.coin import LARGEST_PADDING_BYTES, LARGEST_SEED, draw_block, fresh_seed
from tests.plans import plan_of


def test_a_draw_depends_on_seed_phase_and_block_alone() -> None:
    plan = plan_of("a", "b", "c", seed=5)
    assert draw_block(plan, "measured", 9) == draw_block(plan, "measured", 9)
    changed = dataclasses.replace(plan, seed=6)
    draws = {draw_block(p, "measured", b) for p in (plan, changed) for b in range(1, 9)}
    assert len(draws) == 16


def test_the_stream_is_the_same_on_every_machine() -> None:
    plan = plan_of("a", "b", "c", "d", seed=20261120)
    drawn = [draw_block(plan, "measured", block) for block in (1, 2, 3)]
    assert [(draw.order, draw.padding_bytes) for draw in drawn] == GOLDEN


def test_every_order_is_equally_likely() -> None:
    plan = plan_of("a", "b", "c", seed=3)
    blocks = 6000
    counts = Counter(draw_block(plan, "measured", block).order for block in range(blocks))
    assert set(counts) == set(itertools.permutations(range(3)))
    # Four standard errors of a share of 1/6.
    margin = 4 * math.sqrt(blocks * (1 / 6) * (5 / 6))
    assert all(abs(count - blocks / 6) < margin for count in counts.values())


def test_successive_orders_are_independent() -> None:
    plan = plan_of("a", "b", seed=4)
    firsts = [draw_block(plan, "measured", block).order[0] for block in range(4001)]
    agreements = sum(now == then for now, then in itertools.pairwise(firsts))
    assert abs(agreements - 2000) < 4 * math.sqrt(1000)


def test_the_environment_size_is_drawn_per_block_within_one_page() -> None:
    plan = plan_of(seed=8)
    sizes = [draw_block(plan, "measured", block).padding_bytes for block in range(300)]
    assert min(sizes) >= 0
    assert max(sizes) <= LARGEST_PADDING_BYTES
    assert len(set(sizes)) > 200


def test_the_environment_size_can_be_held() -> None:
    plan = plan_of(seed=8)
    held = dataclasses.replace(
        plan, measure=dataclasses.replace(plan.measure, vary_environment_size=False)
    )
    assert {draw_block(held, "measured", block).padding_bytes for block in range(20)} == {0}
    assert draw_block(held, "measured", 1).order == draw_block(plan, "measured", 1).order


def test_a_fresh_seed_fits_the_option_that_takes_it() -> None:
    seeds = {fresh_seed() for _ in range(50)}
    assert len(seeds) == 50
    assert all(0 <= seed <= LARGEST_SEED for seed in seeds)


GOLDEN = [((0, 1, 2, 3), 2732), ((0, 1, 2, 3), 1394), ((3, 1, 2, 0), 999)]
