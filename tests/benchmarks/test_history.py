"""The simulated histories have two changes and a machine that drifts, and say what is missing."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeVar

import numpy as np
import pytest

from benchmarks.environments import NoEnvironment
from benchmarks.history import engine, tables
from benchmarks.history.engine import truth_of
from benchmarks.history.machines import COMMITS, DRIFT, MACHINES, machine, nightly_series
from benchmarks.peers import Peer

Result = TypeVar("Result")


class Unavailable(Peer):
    """A tool that cannot be installed."""

    def changes(self, series: object) -> list[list[int]]:
        raise NoEnvironment("a-tool: no network")


@pytest.mark.parametrize("kind", [one for one in MACHINES if one != "still"])
def test_a_machine_drifts_by_a_fifth(kind: str) -> None:
    drift = machine(kind, 500, np.random.default_rng(1))
    assert math.exp(np.ptp(drift)) == pytest.approx(math.exp(DRIFT)) == pytest.approx(1.2)


def test_a_series_has_each_commit_once_with_two_steps_in_it() -> None:
    rng, truth = truth_of("still", 5)
    series = nightly_series(truth, "still", 4000, rng)
    assert len(series) == COMMITS + 1
    jumps = np.diff(np.log(series))
    assert set(np.flatnonzero(np.abs(jumps) > 0.02) + 1) == set(truth.changed)


def test_both_changes_are_named_early_while_the_machine_drifts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(engine, "MAX_BLOCKS", 60)
    outcome = engine.at_once("line", 2)
    assert outcome.right and outcome.others == 0 and not outcome.is_over
    assert outcome.named_after is not None and outcome.named_after < outcome.trials


def test_a_tool_that_cannot_be_installed_is_named_with_its_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def run_all(simulate: Callable[[int], Result], /) -> list[Result]:
        return [simulate(1)]

    monkeypatch.setattr(tables, "PEERS", (Unavailable("a tool", ("a-tool",), ""),))
    table = tables.peers_table(run_all, [1])
    assert table.rows[0][2] == "a tool"
    assert table.rows[0][3] == "not installed: a-tool: no network"
