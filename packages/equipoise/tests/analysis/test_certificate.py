"""Campaigns with a known answer certify a host, on a scripted clock."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from equipoise.analysis import certificate
from equipoise.analysis.certificate import CertifyOptions, certify
from equipoise.campaign.segment import Runner
from equipoise.ledger import open_for_writing
from equipoise.model.host import CERTIFICATE_STUDY, Certificate
from equipoise.model.plan import Plan
from packages.equipoise.tests.scripted import ScriptedClock, ScriptedRunner

FEW = CertifyOptions(campaigns=12, blocks=30, injected_campaigns=6, injected_blocks=100)


@pytest.fixture(autouse=True)
def seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    """The seeds of the campaigns and of their times are the same in each run."""
    monkeypatch.setattr(certificate, "fresh_seed", itertools.count(1).__next__)


def certified(folder: Path, noise: float, injected: float) -> Certificate:
    clock = ScriptedClock()

    @contextmanager
    def runner_factory(plan: Plan, on_wait: Callable[[], None]) -> Iterator[Runner]:
        more = plan.conditions[1].name == "spin more"
        medians = (0.1, 0.1 * (1.0 + injected) if more else 0.1)
        runner = ScriptedRunner(clock, medians=medians, noise=noise)
        runner.random.seed(plan.seed)
        yield runner

    progress: list[tuple[int, int]] = []
    with open_for_writing(folder / "ledger.db", durable=False) as ledger:
        found = certify(
            FEW,
            ledger,
            lambda ended, total: progress.append((ended, total)),
            now=lambda: 1.7e9 + clock.seconds,
            runner_factory=runner_factory,
        )
        assert {run.study for run in ledger.runs()} == {CERTIFICATE_STUDY}
        assert tuple(run.id for run in ledger.runs()) == found.runs
    assert progress == [(number, 18) for number in range(18)]
    return found


def test_a_quiet_host_finds_the_injected_effects_and_few_others(tmp_path: Path) -> None:
    found = certified(tmp_path, noise=0.005, injected=0.03)
    assert (found.detected_campaigns, found.injected_campaigns) == (6, 6)
    # At a rate of 5 %, more than 5 of 12 are false alarms in one of 50,000 certificates.
    assert found.false_alarms <= 5
    assert found.campaigns == 12
    assert 0.4 < found.ratio_spread < 1.2
    assert found.smallest_effect_in_a_minute is not None
    assert found.smallest_effect_in_ten_minutes is not None
    assert found.smallest_effect_in_ten_minutes < found.smallest_effect_in_a_minute < 1.0


def test_effects_that_were_not_injected_are_not_found(tmp_path: Path) -> None:
    found = certified(tmp_path, noise=0.05, injected=0.0)
    assert found.detected_campaigns <= 2
    assert 4.0 < found.ratio_spread < 12.0
    assert "of 12 campaigns" in found.summary()
