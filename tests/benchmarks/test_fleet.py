"""Simulated fleets leave, join and are withdrawn as their tables say, and claims are checked."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np
from msgspec.structs import replace

from benchmarks.fleet import leaving, tables
from benchmarks.fleet.alarms import evidence
from benchmarks.fleet.coverage import covered
from benchmarks.fleet.fleets import Scenario, effects_of
from benchmarks.scale.growth import Growth

Result = TypeVar("Result")


def test_both_laws_of_hosts_have_the_same_spread() -> None:
    rng = np.random.default_rng(1)
    for law in ("normal", "t3"):
        drawn = effects_of(Scenario(1, 0.02, law), rng, 100_000)
        assert abs(float(np.std(drawn)) - 0.02) < 0.002


def test_slow_hosts_that_leave_shift_the_mean_of_those_that_stay() -> None:
    fleets = [leaving.slow_ones(5, seed) for seed in range(6)]
    assert any(one.left for one in fleets)
    assert all(one.shift < 0.0 for one in fleets if one.left)
    assert not any(one.asked_is_bounded for one in fleets if one.left)


def test_a_straggler_is_withdrawn_where_it_suits() -> None:
    assert not leaving.withdrawn(1).after_known


def test_evidence_finds_the_one_host_that_differs() -> None:
    result = evidence(4, (0.05,), "normal", 3)
    assert result.differs and result.rightly_otherwise == 1 and not result.wrongly_otherwise


def test_a_table_prints_shares_with_their_error_and_names_a_broken_claim() -> None:
    def run_all(simulate: Callable[[int], Result], /, part: float = 1.0) -> list[Result]:
        return [simulate(1)] * 4

    table = tables.forms_table(run_all)
    assert table.rows[1] == ("4 hosts, +3, −3, +3, −3 %", "100.0 ± 12.5", "100.0 ± 12.5")


def test_a_claim_that_fails_too_often_is_named() -> None:
    fleet = covered(Scenario(3, 0.02), 1)
    assert tables.broken_claims("three hosts", 3, [fleet] * 40) == []
    missed = replace(fleet, misses=True)
    broken = tables.broken_claims("three hosts", 3, [missed] * 40)
    assert broken == ["three hosts: the mean misses too often"]


def test_a_growth_has_the_exponent_of_its_costs() -> None:
    growth = Growth("seconds", "hosts", (1, 2, 4, 8), (3.0, 12.0, 48.0, 192.0))
    assert round(growth.exponent, 9) == round(growth.last_exponent, 9) == 2.0
    assert round(growth.at(16)) == 768
