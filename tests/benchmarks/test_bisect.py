"""The benchmark of bisection: its noise, the rules beside the engine, and its claims."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from benchmarks.bisect.cells import (
    DRIFTS,
    LAYOUTS,
    MAIN,
    NOISES,
    PROFILES,
    Cell,
    DriftCell,
    LayoutCell,
)
from benchmarks.bisect.engine import (
    DriftOutcome,
    LayoutOutcome,
    Outcome,
    drifting,
    layouts,
    merge,
    single,
    suite,
    suite_of_one_command,
    with_broken,
    with_prior,
)
from benchmarks.bisect.noise import KINDS, Machine, series
from benchmarks.bisect.rules import git_bayesect, rules
from benchmarks.bisect.tables import drift_table, layout_table, main_table, profile_table

CERTAIN = Cell(10, 0.1, 16, trials=40)
OUTCOME = Outcome(right=True, wrong=False, excluded=False, several=False, trials=40, builds=6)


@pytest.mark.parametrize("kind", KINDS)
def test_each_noise_has_the_spread_and_the_memory_that_it_names(kind: str) -> None:
    drawn = series(kind, 0.02, 400, 120, np.random.default_rng(1))
    assert drawn.shape == (400, 120)
    steps = np.diff(drawn, axis=1)
    expected = {"gauss": 0.02 * math.sqrt(2), "ar": 0.02 * math.sqrt(0.2)}
    if kind in expected:
        assert float(np.std(steps)) == pytest.approx(expected[kind], rel=0.02)
    if kind == "drift":
        assert float(np.mean(steps)) == pytest.approx(0.0005, rel=0.1)
    if kind == "throttle":
        assert float(np.mean(drawn[:, 70:] - drawn[:, :50])) == pytest.approx(0.08, rel=0.05)
    if kind == "walk":
        assert float(np.std(drawn[:, -1])) > 2 * float(np.std(drawn[:, 0]))
    if kind == "modes":
        assert float(np.mean(drawn > 0.05)) == pytest.approx(0.3 * 0.933, abs=0.02)
    if kind == "t2":
        assert float(np.mean(np.abs(drawn) > 0.02 * 4.303)) == pytest.approx(0.05, abs=0.005)


def test_a_machine_gives_each_campaign_its_own_trials_in_their_order() -> None:
    machine = Machine(np.array([[0.0, 1.0], [0.0, 2.0]]), np.array([[0.1, 0.2], [0.3, 0.4]]))
    both, second = np.array([0, 1]), np.array([1])
    assert machine.run(second, np.array([1])).tolist() == [2.3]
    assert machine.run(both, np.array([1, 0])).tolist() == [1.1, 0.4]


def test_without_noise_every_rule_finds_the_commit() -> None:
    truth = np.arange(1, 17)
    levels = 0.1 * (np.arange(17) >= truth[:, None]).astype(np.float64)
    for name, (named, trials) in rules(
        levels, "gauss", 1e-4, 100, np.random.default_rng(1)
    ).items():
        if name != "Welch 10":  # Its level is 5 % at each step, noise or no noise.
            assert named.tolist() == truth.tolist(), name
        assert (trials > 0).all()


HALVING = """
import numpy as np

class Bisector:
    def __init__(self, weights):
        self.distribution = weights / weights.sum()

    def select(self):
        left = np.flatnonzero(self.distribution)
        return int(left[len(left) // 2])

    def record(self, index, observation):
        if observation:
            self.distribution[:index] = 0.0
        else:
            self.distribution[index:] = 0.0
        self.distribution /= self.distribution.sum()
"""
"""Halves what is left: the newest commit has index 0, and the culprit is the last one seen."""


def test_the_package_is_told_the_commits_from_the_newest_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "git_bayesect.py").write_text(HALVING)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    truth = np.arange(1, 17)
    levels = 0.1 * (np.arange(17) >= truth[:, None]).astype(np.float64)
    named, trials = git_bayesect(levels, np.zeros((16, 40)), Path(sys.executable))
    assert named.tolist() == truth.tolist()
    assert (trials <= 20 + 5).all()
    # Noise leaves nothing certain in so few trials.
    named, trials = git_bayesect(levels, np.zeros((16, 20)), Path(sys.executable))
    assert named.tolist() == [-1] * 16
    assert trials.tolist() == [20.0] * 16


def test_a_certain_step_is_found_in_every_scenario() -> None:
    for seed in range(3):
        outcomes = [
            single(CERTAIN, seed),
            with_prior(CERTAIN, seed, holds=True),
            with_prior(CERTAIN, seed, holds=False),
            with_broken(CERTAIN, seed),
            merge(CERTAIN, seed, inside=True),
            merge(CERTAIN, seed, inside=False),
            suite(CERTAIN, seed),
            suite_of_one_command(CERTAIN, seed),
        ]
        assert all(one.right and not one.wrong for one in outcomes)


def test_claims_fail_that_are_not_borne_out() -> None:
    def broken(outcome: Outcome) -> Sequence[str]:
        return main_table([CERTAIN], lambda _: [outcome] * 200, "").broken

    assert broken(OUTCOME) == []
    assert broken(replace(OUTCOME, trials=30)) == []
    (claim,) = broken(replace(OUTCOME, wrong=True))
    assert "200 of 200 campaigns named a wrong commit" in claim
    (claim,) = broken(replace(OUTCOME, excluded=True))
    assert "excluded the culprit" in claim
    (claim,) = broken(replace(OUTCOME, trials=47))
    assert "47 trials, not 40" in claim


def test_wrong_names_by_layouts_break_a_claim_and_missing_ones_do_too() -> None:
    good = LayoutOutcome(
        wrong=False, first_wrong=False, right=True, unconfirmed=0, trials=40, builds=6
    )

    def broken(outcome: LayoutOutcome) -> int:
        return len(layout_table(lambda _: [outcome] * 200).broken)

    bounded = sum(cell.is_bounded for cell in LAYOUTS)
    assert bounded < len(LAYOUTS)
    assert broken(good) == 0
    assert broken(replace(good, wrong=True)) == bounded
    assert broken(replace(good, right=False)) == bounded
    assert layouts(LayoutCell(0.0, step=10.0), 1).right


def test_missed_means_without_a_warning_and_false_warnings_break_a_claim() -> None:
    def broken(outcome: DriftOutcome) -> int:
        return len(drift_table(lambda _: [outcome] * 200).broken)

    constant = sum(cell.is_constant for cell in DRIFTS)
    silent = DriftOutcome(named=True, misses=False, misses_search=True, warned=False)
    assert 0 < constant < len(DRIFTS)
    assert broken(silent) == 0
    assert broken(replace(silent, named=False)) == 0
    assert broken(replace(silent, misses=True)) == 1
    assert broken(replace(silent, warned=True)) == constant
    assert drifting(DriftCell(2, 12, 50, 1), 1).warned


def test_the_tables_have_the_cells_of_the_reference() -> None:
    assert len(MAIN) == 24 and len(NOISES) == 6 and len(PROFILES) == 7
    assert all(cell.trials > 0 for cell in (*MAIN, *NOISES))
    table = profile_table(lambda _: [OUTCOME] * 10)
    assert [row[0] for row in table.rows] == [one.name for one in PROFILES]
    assert all(len(row) == len(table.columns) for row in table.rows)
