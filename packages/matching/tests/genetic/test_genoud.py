"""Calls of genoud: results, options and errors."""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import equipoise_matching
from benchmarks.genoud.functions import biclaw, claw
from equipoise_matching.genetic import GenoudResult, genoud
from equipoise_matching.shared.errors import EXIT_UNUSABLE_INPUT, EquipoiseError, UnusableInput
from packages.matching.tests.genetic.evaluators import bowl

Floats = NDArray[np.float64]


def raises(point: Floats) -> float:
    if point[0] > 0:
        raise ZeroDivisionError("no such day")
    return 0.0


def test_both_imports_give_the_same_function() -> None:
    assert equipoise_matching.genoud is genoud


@pytest.mark.parametrize("generator", ["philox", "tlp"])
def test_the_claw_has_its_published_maximum(generator: Any) -> None:
    result = genoud(
        claw, 1, maximize=True, population=3000, vectorized=True, generator=generator, seed=1
    )
    assert result.value == pytest.approx(0.4113123, abs=5e-8)
    assert result.par == pytest.approx([0.9995032], abs=1e-6)
    assert result.gradient == pytest.approx([0.0], abs=1e-4)


def test_the_biclaw_has_its_published_maximum() -> None:
    # One run in two ends on one of the other four peaks, in R's package one in four.
    results = [
        genoud(
            biclaw,
            2,
            maximize=True,
            bounds=[[-20, 20]] * 2,
            vectorized=True,
            population=3000,
            seed=seed,
        )
        for seed in range(12)
    ]
    best = max(results, key=lambda result: result.value)
    assert best.value == pytest.approx(1.671127, abs=5e-7)
    assert best.par == pytest.approx([-1.0, -1.0], abs=1e-4)


def test_the_sine_has_its_maximum() -> None:
    result = genoud(lambda x: math.sin(x[0]), 1, maximize=True, population=100, seed=1)
    assert result.value == pytest.approx(1.0, abs=1e-12)
    assert math.sin(float(result.par[0])) == result.value


def test_a_point_at_a_time_and_all_at_once_find_the_same() -> None:
    def bowls(points: Floats) -> Floats:
        return np.array([bowl(point) for point in points])

    single = genoud(bowl, 3, population=40, generations=5, seed=4)
    many = genoud(bowls, 3, population=40, generations=5, seed=4, vectorized=True)
    assert single.par.tobytes() == many.par.tobytes()
    assert single.evaluations == many.evaluations


def test_workers_give_the_same_answer() -> None:
    alone = genoud(bowl, 2, population=40, generations=5, seed=4)
    with ThreadPoolExecutor(2) as pool:
        helped = genoud(bowl, 2, population=40, generations=5, seed=4, executor=pool)
    assert alone.par.tobytes() == helped.par.tobytes()


def test_an_error_in_a_worker_names_the_parameters() -> None:
    with (
        ThreadPoolExecutor(1) as pool,
        pytest.raises(EquipoiseError, match=r"ZeroDivisionError: no such day at par = \["),
    ):
        genoud(raises, 2, population=10, generations=2, seed=1, executor=pool)


def test_the_seed_that_was_drawn_gives_the_same_answer_again() -> None:
    first = genoud(bowl, 2, population=20, generations=3)
    repeated = genoud(bowl, 2, population=20, generations=3, seed=first.seed)
    assert first.par.tobytes() == repeated.par.tobytes()


def test_whole_numbers_stay_whole() -> None:
    evaluated: list[Floats] = []

    def off_grid(point: Floats) -> float:
        evaluated.append(point)
        return float(((point - [3.4, -7.6]) ** 2).sum())

    result = genoud(off_grid, 2, integer=True, bounds=[[-20, 20]] * 2, population=100, seed=1)
    assert all(np.all(point == np.round(point)) for point in evaluated)
    assert list(result.par) == [3.0, -8.0]
    assert result.gradient is None


def test_lexical_values_come_back_as_a_vector() -> None:
    result = genoud(
        lambda x: [abs(round(x[0])), abs(x[1] - 2.0)], 2, lexical=True, population=200, seed=1
    )
    assert isinstance(result.value, np.ndarray)
    assert result.value[0] == 0.0
    assert result.gradient is None


def test_nothing_outside_is_evaluated_where_the_bounds_bind_wholly() -> None:
    evaluated: list[Floats] = []

    def falling(point: Floats) -> float:
        evaluated.append(point)
        return float(point.sum())

    bounds = np.array([[0.0, 1.0], [2.0, 5.0]])
    result = genoud(
        falling, 2, bounds=bounds, boundary_enforcement=2, population=50, generations=5, seed=1
    )
    points = np.array(evaluated)
    assert np.all((points >= bounds[:, 0]) & (points <= bounds[:, 1]))
    assert list(result.par) == [0.0, 2.0]


def test_looking_outside_is_allowed_but_not_staying_there() -> None:
    evaluated: list[Floats] = []

    def outside_is_better(point: Floats) -> float:
        evaluated.append(point)
        return float((point[0] - 2.0) ** 2)

    common: dict[str, Any] = {"bounds": [[0.0, 1.0]], "population": 30, "generations": 5, "seed": 1}
    inside = genoud(outside_is_better, 1, boundary_enforcement=1, **common)
    assert max(float(point[0]) for point in evaluated) > 1.0
    assert inside.par == pytest.approx([1.0])
    anywhere = genoud(outside_is_better, 1, boundary_enforcement=0, **common)
    assert anywhere.par == pytest.approx([2.0], abs=1e-6)


def test_a_starting_value_is_in_the_first_generation() -> None:
    result = genoud(
        bowl, 2, starting_values=[1.0, 1.0], population=10, generations=1, bfgs=False, seed=1
    )
    assert result.history[0].value[0] == 0.0
    assert list(result.par) == [1.0, 1.0]


def test_polishing_waits_for_the_burn_in() -> None:
    def narrow(point: Floats) -> float:
        return float(((point - math.pi) ** 2).sum())

    result = genoud(narrow, 5, population=20, generations=6, burn_in=4, seed=1)
    values = [float(generation.value[0]) for generation in result.history]
    assert min(values[:5]) > 1e-6
    assert values[5] < 1e-12


def test_the_gradient_of_the_caller_is_used() -> None:
    slopes_at: list[Floats] = []

    def slope(point: Floats) -> Floats:
        slopes_at.append(point)
        return np.asarray(2.0 * (point - 1.0))

    result = genoud(bowl, 3, gradient=slope, population=20, generations=3, seed=1)
    assert slopes_at
    assert result.par == pytest.approx([1.0] * 3, abs=1e-8)
    assert result.gradient == pytest.approx([0.0] * 3, abs=1e-7)


def test_the_local_minimum_crossover_moves_towards_the_minimum() -> None:
    weights = [0, 0, 0, 0, 0, 0, 0, 0, 1]
    result = genoud(
        bowl, 2, operators=weights, p9mix=1.0, bfgs=False, population=6, generations=1, seed=1
    )
    assert result.operators[8] == 4
    assert result.value == pytest.approx(0.0, abs=1e-12)


def test_maximizing_is_minimizing_the_negative() -> None:
    low = genoud(bowl, 2, population=30, generations=4, seed=9)
    high = genoud(lambda x: -bowl(x), 2, maximize=True, population=30, generations=4, seed=9)
    assert low.par.tobytes() == high.par.tobytes()


def test_infinity_is_worst_and_does_not_stop_the_search() -> None:
    def half(point: Floats) -> float:
        return math.inf if point[0] < 0.5 else float(point[0])

    result = genoud(half, 1, population=50, generations=10, seed=1)
    assert 0.5 <= float(result.par[0]) < 0.6


def test_the_summary_and_the_plot_show_the_course_of_the_search() -> None:
    result: GenoudResult = genoud(bowl, 2, population=20, generations=3, seed=1)
    assert f"{result.generations}, the peak at {result.peak_generation}" in result.summary()
    assert result.plot().to_dict()["title"]["text"] == "The search, generation by generation"


def changing() -> Callable[[Floats], list[float]]:
    lengths = iter([1, 1, 2])
    return lambda point: [0.0] * next(lengths)


@pytest.mark.parametrize(
    ("fn", "options", "message"),
    [
        (raises, {}, r"raised ZeroDivisionError: no such day at par = \["),
        (lambda x: math.nan, {}, r"returned NaN at par = \["),
        (changing(), {"lexical": True}, r"returned 2 values at par = .* instead of 1"),
        (lambda x: [1.0, 2.0], {}, "returned 2 values"),
        (lambda x: [1.0, 2.0], {"lexical": 3}, "instead of 3"),
        (lambda x: "worth", {}, "returned str, not a number"),
        (lambda x: [[1.0]], {}, r"returned shape \(1, 1\)"),
        (lambda x: x[:3, 0], {"vectorized": True}, r"returned shape \(3, 1\) for 10 points"),
        (lambda x: None, {}, r"returned None at par = \["),
        (bowl, {"gradient": lambda x: 1.0}, "the gradient has shape"),
        (bowl, {"gradient": lambda x: x * math.nan}, r"the gradient returned NaN at par = \["),
    ],
)
def test_an_error_of_the_function_names_the_parameters(
    fn: Any, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(EquipoiseError, match=message) as caught:
        genoud(fn, 2, population=10, generations=2, seed=1, **options)
    assert caught.value.exit_status == EXIT_UNUSABLE_INPUT


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bounds": [[0, 1], [2, 1]]}, "bounds of parameter 2 cross: 2 > 1"),
        ({"bounds": [[0, 1]]}, r"bounds have shape \(1, 2\)"),
        ({"bounds": [[0, 1], [0, math.inf]]}, "parameter 2: 0 and inf are not finite"),
        ({"bounds": [[0, 1.5], [0, 1]], "integer": True}, "not whole numbers"),
        ({"starting_values": [0, 11]}, "starting value 1: parameter 2 is 11, outside -10 to 10"),
        ({"starting_values": [0, 1, 2]}, r"starting_values have shape \(1, 3\)"),
        ({"starting_values": np.zeros((99, 2)), "population": 10}, "99 starting values"),
        ({"population": 1}, "population is 1\ngive a whole number from 2 to 1000000"),
        (
            {"population": 10**12},
            "population is 1000000000000\ngive a whole number from 2 to 1000000",
        ),
        ({"generations": 10**20}, "give a whole number from 1 to 1000000000"),
        ({"wait_generations": 10**20}, "give a whole number from 0 to 1000000000"),
        ({"burn_in": 10**20}, "give a whole number from 0 to 1000000000"),
        ({"generations": 0}, "generations is 0"),
        ({"generations": 2.5}, "generations is 2.5\ngive a whole number"),
        ({"boundary_enforcement": 3}, "boundary_enforcement is 3"),
        ({"operators": [1, 2]}, "nine weights are needed, .*, not 2"),
        ({"operators": 5}, "nine weights are needed, .*, not 1"),
        ({"operators": "many"}, "operators cannot be read as numbers"),
        ({"operators": [0] * 9}, "all nine weights are 0"),
        ({"operators": [1] * 9, "integer": True}, "operator 9"),
        ({"operators": [1] * 9, "lexical": True}, "operator 9"),
        ({"p9mix": 2.0}, "p9mix is 2"),
        ({"solution_tolerance": -1.0}, "solution_tolerance"),
        ({"generator": "mersenne"}, "generator is 'mersenne'"),
        ({"seed": -1}, "seed is -1"),
        ({"bounds": "wide"}, "bounds cannot be read as numbers"),
    ],
)
def test_arguments_that_cannot_be_used_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UnusableInput, match=message):
        genoud(bowl, 2, **options)


def test_a_population_whose_numbers_do_not_fit_in_memory_is_refused() -> None:
    with pytest.raises(UnusableInput, match="candidates with 1000 parameters") as refusal:
        genoud(bowl, 1000, population=1_000_000)
    assert refusal.value.hint == "give a population of at most 100000"
