"""The figures of docs/evidence/simulations.md come from programs with known medians and means."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.validity.statements import PROGRAMS, overstated, three_answers, wider

MEANS = (31.0, 0.0, 100 * (1.4 / 1.49 - 1), 100 * (1.55 / 1.45 - 1))


@pytest.mark.parametrize(("name", "means"), list(zip(PROGRAMS, MEANS, strict=True)))
def test_the_ratio_of_means_is_that_of_the_programs(name: str, means: float) -> None:
    assert three_answers(name, np.random.default_rng(1))[2] == pytest.approx(means, abs=0.2)


def test_typical_ratio_and_medians_name_the_usual_run_and_means_the_rare_one() -> None:
    typical, medians, means = three_answers(next(iter(PROGRAMS)), np.random.default_rng(1))
    assert [typical, medians] == pytest.approx([-10.0, -10.0], abs=0.5)
    assert means > 30.0


def test_a_first_verdict_overstates() -> None:
    assert 1.2 < overstated(60, seed=2).mean() < 1.7


def test_an_interval_for_every_stop_is_wider_than_one_for_a_single_look() -> None:
    assert wider(100, np.random.default_rng(3)) > 1.3
