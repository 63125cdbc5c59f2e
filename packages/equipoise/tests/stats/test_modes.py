"""Several modes are found where there are several, and one where there is one.

Quick versions of benchmarks/shape/run.py; docs/evidence/simulations.md has its results.
"""

from __future__ import annotations

import numpy as np
import pytest

from equipoise.stats.modes import find_modes, fit_two_normals, least_bic_with_one_peak
from packages.equipoise.tests.stats.planted import SINGLE, SPIKES, Draw, two_peaks
from packages.equipoise.tests.stats.simulated import at_least

SIMULATIONS = 40


def samples_with_modes(draw: Draw, trials: int, modes: int, simulations: int = SIMULATIONS) -> int:
    """Number of samples with this number of trials in which this number of modes is found."""
    generator = np.random.default_rng(trials)
    samples = (100.0 + draw(generator, trials) for _ in range(simulations))
    return sum(len(find_modes(sample).locations) == modes for sample in samples)


@pytest.mark.parametrize("shape", SINGLE)
@pytest.mark.parametrize("trials", [50, 200])
def test_one_peak_is_one_mode(shape: str, trials: int) -> None:
    assert samples_with_modes(SINGLE[shape], trials, 1) >= at_least(SIMULATIONS, 0.95)


def test_rare_spikes_are_not_a_mode() -> None:
    assert samples_with_modes(SPIKES, 100, 1) >= at_least(SIMULATIONS, 0.90)


@pytest.mark.parametrize(
    ("apart", "upper", "trials"),
    [(5.0, 0.3, 50), (4.0, 0.5, 100), (3.0, 0.5, 200)],
)
def test_two_peaks_are_two_modes(apart: float, upper: float, trials: int) -> None:
    found = samples_with_modes(two_peaks(apart, upper), trials, 2, SIMULATIONS)
    assert found >= at_least(SIMULATIONS, 0.90)


def test_modes_have_their_places_and_shares() -> None:
    generator = np.random.default_rng(1)
    slow = generator.random(300) < 0.3
    values = np.where(slow, 9.6, 8.1) * np.exp(generator.normal(0.0, 0.01, 300))
    modes = find_modes(values)
    assert modes.locations == pytest.approx((8.1, 9.6), rel=0.01)
    assert modes.shares == pytest.approx((1 - slow.mean(), slow.mean()))
    assert (modes.indices_of(values) == slow).all()
    assert modes.log_evidence is not None
    assert modes.log_evidence > 10


def test_both_sides_of_a_valley_are_tested_again() -> None:
    generator = np.random.default_rng(2)
    values = generator.choice([10.0, 20.0, 30.0, 60.0], 400) + generator.normal(0.0, 1.0, 400)
    modes = find_modes(values)
    assert modes.locations == pytest.approx((10.0, 20.0, 30.0, 60.0), abs=1.0)
    assert sum(modes.shares) == pytest.approx(1.0)


@pytest.mark.parametrize("values", [[3.0], [1.0, 2.0], [5.0] * 100, [0.0] * 7])
def test_a_few_or_equal_values_are_one_mode(values: list[float]) -> None:
    modes = find_modes(np.array(values))
    assert modes.shares == (1.0,)
    assert modes.valleys == ()
    assert modes.log_evidence is None


def test_the_modes_do_not_depend_on_unit_or_order() -> None:
    generator = np.random.default_rng(3)
    values = 100.0 + two_peaks(5.0, 0.3)(generator, 120)
    modes = find_modes(values)
    tiny = find_modes(1e-6 * generator.permutation(values))
    assert len(modes.locations) == 2
    assert tiny.shares == modes.shares
    assert tiny.locations == pytest.approx(tuple(1e-6 * place for place in modes.locations))


def test_neighbouring_ticks_of_a_coarse_clock_are_one_mode() -> None:
    generator = np.random.default_rng(4)
    ticks = 0.004 * generator.choice([5, 6], 100)
    assert len(find_modes(ticks, resolution=0.004).locations) == 1
    # This fails if the resolution is unknown.
    assert len(find_modes(ticks).locations) == 2


def test_counts_far_apart_are_modes() -> None:
    generator = np.random.default_rng(5)
    faults = generator.choice([152.0, 160.0], 100, p=[0.7, 0.3])
    assert find_modes(faults, resolution=1.0).locations == (152.0, 160.0)
    assert find_modes(faults).locations == (152.0, 160.0)


def test_many_trials_are_reduced_to_their_quantiles() -> None:
    generator = np.random.default_rng(6)
    values = 100.0 + two_peaks(5.0, 0.3)(generator, 50_000)
    modes = find_modes(values)
    assert modes.shares == pytest.approx((0.7, 0.3), abs=0.01)


def test_two_normals_are_recovered() -> None:
    generator = np.random.default_rng(7)
    values = np.sort(
        np.concatenate([generator.normal(10.0, 1.0, 1400), generator.normal(20.0, 2.0, 600)])
    )
    fit = fit_two_normals(values)
    assert fit.means == pytest.approx([10.0, 20.0], abs=0.2)
    assert fit.sds == pytest.approx([1.0, 2.0], rel=0.1)
    assert fit.shares == pytest.approx([0.7, 0.3], abs=0.02)
    assert 12.0 < fit.valley < 16.0
    assert fit.valley_density < 0.1


@pytest.mark.parametrize("shape", SINGLE)
def test_a_single_shape_is_explained_about_as_well_as_its_own_law_explains_it(shape: str) -> None:
    # The entropy of each law in nats, for its parameters in planted.py; the fit may lose no more
    # against the true law than the parameters cost.
    from scipy import stats

    laws = {
        "normal": stats.norm(),
        "lognormal": stats.lognorm(0.5),
        "exponential": stats.expon(),
        "Gumbel of largest": stats.gumbel_r(),
        "Gumbel of smallest": stats.gumbel_l(),
        "t3": stats.t(3),
        "exponentially modified normal": stats.exponnorm(2.0),
        "uniform": stats.uniform(),
        "gamma": stats.gamma(2.0),
    }
    values = np.sort(SINGLE[shape](np.random.default_rng(8), 400))
    truth = -2.0 * float(np.sum(laws[shape].logpdf(values)))
    # The exponential is not among the fitted laws; the modified normal is close to it.
    assert least_bic_with_one_peak(values) < truth + 6.0 * np.log(400) + 25.0


def test_three_equal_modes_are_found_although_two_normals_explain_them_badly() -> None:
    generator = np.random.default_rng(9)
    found = 0
    for _ in range(SIMULATIONS):
        values = generator.choice([0.0, 6.0, 12.0], 150) + generator.normal(0.0, 1.0, 150)
        found += len(find_modes(100.0 + values).locations) == 3
    assert found >= at_least(SIMULATIONS, 0.95)


def test_a_cut_is_ignored_if_ties_leave_no_values_on_one_side() -> None:
    """An example is system time: most trials take less than a tick, which is read as 0."""
    generator = np.random.default_rng(20)
    values = np.concatenate((np.zeros(320), generator.uniform(0.0005, 0.003, 80)))
    found = find_modes(values, resolution=0.004)
    assert np.isfinite(found.locations).all()
    assert min(found.shares) > 0.0
    assert len(found.valleys) == len(found.locations) - 1
