"""Pairs with one planted cause, through the real sources: the first cause named is that one."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from equipoise.why.causes.ranking import suggested_causes
from equipoise.why.differences.changes import Change, Difference
from packages.equipoise.tests.why.evidence.test_sampled import needs_kernel
from packages.equipoise.tests.why.planted.observing import observe
from packages.equipoise.tests.why.planted.pairs import (
    Planted,
    alike,
    built,
    pairs,
)

pytestmark = needs_kernel

MAX_ROUNDS = 4
"""Rounds of observed runs. Alone one does; beside other work it takes more until a cause is certain
to be the first, and no round is left out or made again for what it shows."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("planted")
    built(made)
    return made


@pytest.mark.parametrize("planted", pairs(), ids=lambda planted: planted.name)
def test_the_first_cause_is_the_planted_one(planted: Planted, folder: Path) -> None:
    if missing := planted.missing():
        pytest.skip(f"misses {', '.join(missing)}")
    has_gap = not planted.at_once or planted.has_gap(folder)
    difference = observe(planted, folder, max_rounds=MAX_ROUNDS)
    if not has_gap or planted.at_once and not planted.has_gap(folder):
        pytest.skip(f"the host's processors leave this pair no gap now: {difference.wall_time}")
    causes = suggested_causes(difference)
    assert causes, f"nothing was named of {difference.wall_time}"
    assert causes[0].cause == planted.cause, causes[0].summary
    assert causes[0].evidence[planted.key] in planted.expected(folder)


@pytest.mark.parametrize("planted", alike(), ids=lambda planted: planted.name)
def test_two_equal_conditions_differ_in_no_setting(planted: Planted, folder: Path) -> None:
    difference = observe(planted, folder, max_blocks=4)
    # Whether the gap is called is the campaign's to say. Even if it were, and as large as the run
    # itself, there is nothing that the sources see.
    assert suggested_causes(with_gap(difference)) == ()


def with_gap(difference: Difference) -> Difference:
    """The same with a certain gap as large as the run itself."""
    wall_s = difference.wall_time.baseline
    return replace(difference, wall_time=Change(wall_s, 2 * wall_s, wall_s, (wall_s, wall_s)))
