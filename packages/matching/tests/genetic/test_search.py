"""The search by the native engine."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from equipoise_matching.genetic.options import SearchOptions
from equipoise_matching.genetic.search import Generation, search
from equipoise_matching.shared.errors import UnusableInput

Floats = NDArray[np.float64]


def bowl(points: Floats) -> Floats:
    return np.asarray(((points - 1.0) ** 2).sum(axis=1))


@pytest.mark.parametrize("generator", ["philox", "tlp"])
def test_the_same_seed_gives_the_same_search(generator: str) -> None:
    options = SearchOptions(3, population=50, generations=8, generator=generator, seed=7)
    first, second = search(options, bowl), search(options, bowl)
    assert first.parameters.tobytes() == second.parameters.tobytes()
    other = SearchOptions(3, population=50, generations=8, generator=generator, seed=8)
    assert search(other, bowl).parameters.tobytes() != first.parameters.tobytes()


def test_no_point_is_evaluated_twice_with_a_memory() -> None:
    evaluated: list[bytes] = []

    def evaluate(points: Floats) -> Floats:
        evaluated.extend(point.tobytes() for point in points + 0.0)
        return bowl(points)

    options = SearchOptions(
        2, population=60, generations=30, wait_generations=30, integer=True, seed=1
    )
    search(options, evaluate)
    assert len(evaluated) == len(set(evaluated))


def test_without_a_memory_every_child_is_evaluated_in_every_generation() -> None:
    options = SearchOptions(2, population=60, generations=5, memory=False, integer=True, seed=1)
    result = search(options, bowl)
    children = sum(result.operators[1:])
    counts = [generation.evaluations for generation in result.history]
    assert list(np.diff(counts)) == [children] * result.generations


def test_the_best_never_gets_worse() -> None:
    options = SearchOptions(4, population=30, generations=20, wait_generations=20, seed=3)
    history = search(options, bowl).history
    values = [float(generation.value[0]) for generation in history]
    assert values == sorted(values, reverse=True)
    assert values[-1] < values[0]


def test_a_hard_limit_binds() -> None:
    options = SearchOptions(5, population=20, generations=3, solution_tolerance=0.0, seed=1)
    result = search(options, bowl)
    assert result.generations == 3
    assert result.stopped_because == "generation limit"


def test_waiting_ends_the_search_after_more_generations_than_it_waits() -> None:
    options = SearchOptions(1, population=10, generations=50, wait_generations=4, seed=1)
    result = search(options, lambda points: np.zeros(len(points)))
    assert result.generations == 5
    assert result.peak_generation == 0
    assert result.stopped_because == "no improvement"


def test_a_callback_sees_every_generation_and_may_end_the_search() -> None:
    numbers: list[int] = []

    def callback(generation: Generation) -> bool:
        numbers.append(generation.number)
        return generation.number == 3

    options = SearchOptions(2, population=20, generations=50, wait_generations=50, seed=1)
    result = search(options, bowl, callback=callback)
    assert numbers == [0, 1, 2, 3]
    assert result.stopped_because == "callback"


def test_lexical_values_are_compared_in_order() -> None:
    def both(points: Floats) -> Floats:
        return np.column_stack((np.round(np.abs(points[:, 0])), np.abs(points[:, 1] - 2.0)))

    options = SearchOptions(2, population=200, generations=40, wait_generations=40, seed=2)
    result = search(options, both)
    assert result.value[0] == 0.0
    assert result.value[1] < 0.05


def test_values_of_another_length_than_before_are_refused() -> None:
    calls = 0

    def evaluate(points: Floats) -> Floats:
        nonlocal calls
        calls += 1
        return np.zeros((len(points), calls))

    with pytest.raises(UnusableInput, match="values at par = .*, but . at earlier points"):
        search(SearchOptions(2, population=10, seed=1), evaluate)


def test_a_soft_limit_goes_on_while_the_search_improves() -> None:
    options = SearchOptions(
        5,
        population=20,
        generations=3,
        wait_generations=2,
        solution_tolerance=1e-6,
        hard_generation_limit=False,
        seed=1,
    )
    result = search(options, lambda points: np.abs(points).sum(axis=1))
    assert result.generations > 3
    assert result.generations - result.peak_generation == 3
