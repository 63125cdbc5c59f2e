"""The coin is fair and seeded, and the same draw always has the same result."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import msgspec.structs
import pytest

from equipoise.design.coin import (
    MAX_ARGUMENT_BYTES,
    MAX_PADDING_BYTES,
    MAX_SEED,
    draw_block,
    draw_intervention,
    draw_layouts,
    fresh_seed,
)
from equipoise.model.plan import Plan
from packages.equipoise.tests.plans import plan_of
from packages.equipoise.tests.searched_suites import plan_of_suite


def test_a_draw_depends_on_seed_phase_and_block_alone() -> None:
    plan = plan_of("a", "b", "c", seed=5)
    assert draw_block(plan, "measured", 9) == draw_block(plan, "measured", 9)
    changed = msgspec.structs.replace(plan, seed=6)
    draws = {draw_block(p, "measured", b) for p in (plan, changed) for b in range(1, 9)}
    assert len(draws) == 16


def test_the_stream_is_the_same_on_every_machine() -> None:
    plan = plan_of("a", "b", "c", "d", seed=20261120)
    draws = [draw_block(plan, "measured", block) for block in (1, 2, 3)]
    assert [(draw.order, draw.padding_bytes) for draw in draws] == GOLDEN


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
    assert max(sizes) <= MAX_PADDING_BYTES
    assert len(set(sizes)) > 200


def test_the_environment_size_can_be_held() -> None:
    plan = plan_of(seed=8)
    fixed = msgspec.structs.replace(
        plan, measure=msgspec.structs.replace(plan.measure, vary_environment_size=False)
    )
    assert {draw_block(fixed, "measured", block).padding_bytes for block in range(20)} == {0}
    assert draw_block(fixed, "measured", 1).order == draw_block(plan, "measured", 1).order


def with_layouts_of(plan: Plan, count: int) -> Plan:
    return msgspec.structs.replace(plan, layouts=draw_layouts(plan.seed, count, "drawn"))


def test_each_round_of_blocks_has_every_layout_once_in_its_own_order() -> None:
    plan = with_layouts_of(plan_of(seed=11), 5)
    draws = [draw_block(plan, "measured", block) for block in range(1, 201)]
    layouts = [draw.layout or 0 for draw in draws]
    rounds = [tuple(layouts[first : first + 5]) for first in range(0, 200, 5)]
    assert all(sorted(places) == [1, 2, 3, 4, 5] for places in rounds)
    assert len(set(rounds)) > 30
    assert all(
        draw.layout and draw.padding_bytes == plan.layouts[draw.layout - 1].environment_bytes
        for draw in draws
    )


def test_the_order_of_a_block_is_the_same_with_layouts_and_without() -> None:
    plan = plan_of("a", "b", "c", seed=12)
    for block in range(1, 40):
        order = draw_block(plan, "measured", block).order
        assert draw_block(with_layouts_of(plan, 7), "measured", block).order == order


def test_layouts_are_drawn_from_the_seed_alone_and_within_their_bounds() -> None:
    draws = draw_layouts(7, 400, "drawn")
    assert draws == draw_layouts(7, 400, "drawn")
    assert draws[:9] == draw_layouts(7, 9, "drawn")
    assert draws != draw_layouts(8, 400, "drawn")
    assert max(draw.environment_bytes for draw in draws) <= MAX_PADDING_BYTES
    assert max(draw.argument_bytes for draw in draws) <= MAX_ARGUMENT_BYTES
    assert len({draw.argument_bytes for draw in draws}) > 150
    # Four standard errors of a fair coin.
    assert abs(sum(draw.random_addresses for draw in draws) - 200) < 40


def test_all_layouts_have_the_chosen_addresses() -> None:
    assert {layout.random_addresses for layout in draw_layouts(7, 20, "on")} == {True}
    fixed = draw_layouts(7, 20, "off")
    assert {layout.random_addresses for layout in fixed} == {False}
    draws = draw_layouts(7, 20, "drawn")
    assert [layout.environment_bytes for layout in fixed] == [
        layout.environment_bytes for layout in draws
    ]


def test_interventions_are_drawn_as_often_as_their_weights_say() -> None:
    draws = [draw_intervention(7, block, [0.5, 1.5, 2.0]) for block in range(1, 2001)]
    assert draws == [draw_intervention(7, block, [0.5, 1.5, 2.0]) for block in range(1, 2001)]
    assert draws != [draw_intervention(8, block, [0.5, 1.5, 2.0]) for block in range(1, 2001)]
    shares = [draws.count(place) / 2000 for place in range(3)]
    # Four standard errors.
    assert shares == pytest.approx([0.125, 0.375, 0.5], abs=0.045)


def test_the_intervention_of_a_block_is_independent_of_its_order() -> None:
    plan = plan_of("a", "b", "c", seed=9)
    both = [
        (
            draw_intervention(plan.seed, block, [1.0, 1.0]),
            draw_block(plan, "measured", block).order.index(0)
            < draw_block(plan, "measured", block).order.index(1),
        )
        for block in range(1, 2001)
    ]
    for intervention in (0, 1):
        first = [before for draws, before in both if draws == intervention]
        assert sum(first) / len(first) == pytest.approx(0.5, abs=0.065)


def test_a_fresh_seed_fits_the_option_that_takes_it() -> None:
    seeds = {fresh_seed() for _ in range(50)}
    assert len(seeds) == 50
    assert all(0 <= seed <= MAX_SEED for seed in seeds)


GOLDEN = [((0, 1, 2, 3), 2732), ((0, 1, 2, 3), 1394), ((3, 1, 2, 0), 999)]


def test_trials_of_a_command_over_commits_are_adjacent_and_each_command_has_its_own_coin() -> None:
    plan = plan_of_suite(4, "a", "b", "c")
    blocks = 4000
    counts = Counter(
        draw_block(plan, "measured", block, (0, 3, 6, 8, 10, 14)).order for block in range(blocks)
    )
    # 3! orders of the commands and a coin for each command: 48 equally likely orders.
    assert len(counts) == 48
    pairs = [{0, 3}, {6, 8}, {10, 14}]
    assert all({*order[at : at + 2]} in pairs for order in counts for at in (0, 2, 4))
    # Five standard errors.
    expected = blocks / 48
    assert max(abs(count - expected) for count in counts.values()) < 5 * expected**0.5
