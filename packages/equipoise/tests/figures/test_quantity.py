"""Axes show a metric in a unit that reads well, over a range that holds what matters."""

from __future__ import annotations

import numpy as np
import pytest

from equipoise.figures.quantity import drawn_quantity, log_ticks
from equipoise.shared.density import density


@pytest.mark.parametrize(
    ("metric", "values", "title"),
    [
        ("wall_s", [1.2e-7] * 3, "time, in ns"),
        ("wall_s", [3.4e-5] * 3, "time, in µs"),
        ("wall_s", [0.05] * 3, "time, in ms"),
        ("user_s", [12.0] * 3, "user CPU time, in s"),
        ("max_rss_bytes", [2.1e6] * 3, "peak memory, in MB"),
        ("minor_faults", [120.0] * 3, "minor faults"),
        ("latency_s", [0.002] * 3, "latency, in ms"),
        ("wall_s", [], "time, in s"),
        ("wall_s", [0.0, 0.0], "time, in ns"),
    ],
)
def test_the_title_names_the_metric_and_its_unit(
    metric: str, values: list[float], title: str
) -> None:
    assert drawn_quantity(metric, [values]).title() == title


def test_the_range_holds_all_of_an_ordinary_sample() -> None:
    values = list(np.random.default_rng(1).normal(0.05, 0.001, 200))
    quantity = drawn_quantity("wall_s", [values])
    assert not any(quantity.is_beyond(value) for value in values)


def test_an_outlier_is_moved_to_the_edge_and_known_to_lie_beyond() -> None:
    values = [*np.random.default_rng(1).normal(0.05, 0.001, 200), 5.0]
    quantity = drawn_quantity("wall_s", [values])
    assert quantity.is_beyond(5.0)
    assert quantity.clipped(5.0) == quantity.high


def test_equal_values_still_span_an_axis() -> None:
    quantity = drawn_quantity("wall_s", [[0.05, 0.05], [0.05]])
    assert quantity.low < 50.0 < quantity.high


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (9.0, 450.0, [10, 20, 50, 100, 200]),
        (0.9, 1.6, [0.9, 1, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6]),
        (1.0, 1e12, [1, 1e2, 1e4, 1e6, 1e8, 1e10, 1e12]),
        (0.97, 1.02, [0.97, 0.98, 0.99, 1, 1.01, 1.02]),
    ],
)
def test_logarithmic_ticks_are_round_and_few(
    low: float, high: float, expected: list[float]
) -> None:
    assert log_ticks(low, high) == pytest.approx(expected)


def test_a_density_has_its_peak_where_the_values_crowd() -> None:
    values = np.random.default_rng(1).normal(10.0, 1.0, 2000)
    hill = density(values, 5.0, 15.0)
    assert hill is not None
    grid, heights = hill
    assert heights.max() == pytest.approx(1.0)
    assert grid[heights.argmax()] == pytest.approx(10.0, abs=0.3)


def test_two_modes_stay_two() -> None:
    generator = np.random.default_rng(1)
    values = np.concatenate([generator.normal(5, 0.2, 100), generator.normal(10, 0.2, 100)])
    hill = density(values, 4.0, 11.0)
    assert hill is not None
    grid, heights = hill
    assert heights[(grid > 7) & (grid < 8)].max() < 0.2


def test_a_few_values_or_none_have_no_density() -> None:
    assert density(np.array([1.0, 2.0, 3.0, 4.0]), 0.0, 5.0) is None
    assert density(np.array([]), 0.0, 5.0) is None


def test_a_weighted_density_is_that_of_rows_repeated() -> None:
    places = np.random.default_rng(2).normal(size=60)
    times = np.arange(60) % 3 + 1
    weighted = density(places, -4.0, 4.0, times.astype(float))
    repeated = density(np.repeat(places, times), -4.0, 4.0)
    assert weighted is not None
    assert repeated is not None
    # Fewer rows than repetitions say: a wider kernel, whose peak is lower and broader.
    assert weighted[0][0] < repeated[0][0]
    mean, other = (float(np.average(pair[0], weights=pair[1])) for pair in (weighted, repeated))
    assert mean == pytest.approx(other, abs=0.05)
