"""Sessions without a change stay unchanged, changes are found, and drift widens intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest

from equipoise.stats.arrays import FloatArray
from equipoise.stats.sessions import (
    SessionRow,
    changes_between,
    estimate_sd_between_sessions,
    session_drift,
)
from packages.equipoise.tests.stats.simulated import at_least, at_most

ROWS = 40
PROCESSES = 7
SIMULATIONS = 60


@dataclass(frozen=True, slots=True)
class Host:
    """Variation between the sessions of a host, in log units."""

    drift: float = 0.0
    """Of each row over a session."""
    together: float = 0.0
    """Of all rows from block to block."""
    between: float = 0.0
    """Of each row from session to session."""

    def session(self, generator: np.random.Generator, levels: FloatArray) -> list[SessionRow]:
        """A session whose rows have an sd of 0.5 to 4 % and tails heavier than normal."""
        blocks = np.arange(1, PROCESSES + 1)
        common = self.together * generator.normal(size=PROCESSES)
        spreads = np.resize([0.005, 0.01, 0.02, 0.04], ROWS)
        rows: list[SessionRow] = []
        for level, spread in zip(levels, spreads, strict=True):
            drifted = self.drift * generator.normal() * np.linspace(-0.5, 0.5, PROCESSES)
            own = spread * generator.standard_t(4, PROCESSES) / math.sqrt(2.0)
            moved = level + self.between * generator.normal() + common + drifted + own
            rows.append(SessionRow(np.exp(moved), blocks))
        return rows


@pytest.mark.parametrize(
    "host", [Host(), Host(drift=0.03), Host(together=0.05), Host(drift=0.03, together=0.03)]
)
def test_on_an_unchanged_host_hardly_any_session_has_a_row_called_changed(host: Host) -> None:
    generator = np.random.default_rng(1)
    levels = np.linspace(-16.0, -5.0, ROWS)
    wrong = 0
    for _ in range(SIMULATIONS):
        earlier, later = host.session(generator, levels), host.session(generator, levels)
        changes = changes_between(earlier, later, min_effect=5.0)
        wrong += any(row.changed for row in changes.rows)
    assert wrong <= at_most(SIMULATIONS, 0.05)


def test_the_difference_between_sessions_is_learned_where_nothing_else_differs() -> None:
    generator = np.random.default_rng(2)
    levels = np.linspace(-16.0, -5.0, ROWS)
    host = Host(between=0.03)
    wrong, learned = 0, []
    for _ in range(SIMULATIONS):
        earlier, later = host.session(generator, levels), host.session(generator, levels)
        learned.append(estimate_sd_between_sessions(earlier, later))
        changes = changes_between(earlier, later, min_effect=5.0, sd_between_sessions=learned[-1])
        wrong += any(row.changed for row in changes.rows)
    assert wrong <= at_most(SIMULATIONS, 0.05)
    assert float(np.median(learned)) == pytest.approx(0.03 * math.sqrt(2.0), rel=0.15)


def test_a_fifth_more_in_a_tenth_of_the_rows_is_found_and_covered() -> None:
    generator = np.random.default_rng(3)
    levels = np.linspace(-16.0, -5.0, ROWS)
    planted = np.arange(ROWS) % 10 == 0
    truth = np.where(planted, math.log(1.2), 0.0)
    changes = covered = false = 0
    for _ in range(SIMULATIONS):
        earlier = Host().session(generator, levels)
        later = Host().session(generator, levels + truth)
        rows = changes_between(earlier, later, min_effect=5.0).rows
        changes += sum(
            row.changed for row, is_planted in zip(rows, planted, strict=True) if is_planted
        )
        false += sum(
            row.changed for row, is_planted in zip(rows, planted, strict=True) if not is_planted
        )
        covered += sum(row.low <= true <= row.high for row, true in zip(rows, truth, strict=True))
    # Every fourth row has an sd of 4 %; its change is not always found.
    assert changes >= at_least(SIMULATIONS * int(planted.sum()), 0.85)
    assert false <= at_most(SIMULATIONS * ROWS, 0.005)
    assert covered >= at_least(SIMULATIONS * ROWS, 0.99)


def test_a_change_of_at_most_the_smallest_relevant_effect_is_no_change() -> None:
    blocks = np.arange(1, PROCESSES + 1)
    earlier = [SessionRow(np.full(PROCESSES, 1.0), blocks)]
    for ratio, changed in ((1.04, False), (1.06, True), (0.93, True)):
        later = [SessionRow(np.full(PROCESSES, ratio), blocks)]
        (change,) = changes_between(earlier, later, min_effect=5.0).rows
        assert change.changed is changed
        assert change.log_ratio == pytest.approx(math.log(ratio))


def test_the_mean_of_rows_that_moved_together_is_no_more_precise() -> None:
    generator = np.random.default_rng(4)
    levels = np.linspace(-16.0, -5.0, ROWS)
    covered = 0
    for _ in range(SIMULATIONS):
        earlier = Host(together=0.05).session(generator, levels)
        later = Host(together=0.05).session(generator, levels)
        changes = changes_between(earlier, later, min_effect=5.0)
        covered += changes.mean_low <= 0.0 <= changes.mean_high
    assert covered >= at_least(SIMULATIONS, 0.95)


def test_one_process_gives_no_interval() -> None:
    earlier = [SessionRow(np.array([1.0]), np.array([1]))]
    later = [SessionRow(np.array([2.0, 2.1, 2.0]), np.array([1, 2, 3]))]
    (change,) = changes_between(earlier, later, min_effect=5.0).rows
    assert (change.low, change.high) == (-math.inf, math.inf)
    assert not change.changed


def test_a_session_that_drifts_is_more_restless_than_one_that_does_not() -> None:
    generator = np.random.default_rng(5)
    levels = np.linspace(-16.0, -5.0, ROWS)

    def typical(host: Host) -> tuple[float, float]:
        seen = [session_drift(host.session(generator, levels)) for _ in range(15)]
        return (
            float(np.median([drift.variance_factor for drift in seen])),
            float(np.median([drift.block_sd for drift in seen])),
        )

    quiet, drifting, together = (
        typical(Host()),
        typical(Host(drift=0.1)),
        typical(Host(together=0.05)),
    )
    assert quiet[0] < 2.0 < drifting[0]
    assert quiet[1] < 0.01
    assert together[1] == pytest.approx(0.05, rel=0.3)
