"""The same values from every executor, bit for bit, even if a worker is lost."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from equipoise_matching.genetic.executors import BatchEvaluator
from equipoise_matching.genetic.genoud import genoud
from equipoise_matching.genetic.worker import EvaluationFailed
from equipoise_matching.shared.errors import UnusableInput
from packages.matching.tests.genetic.evaluators import (
    DiesOnce,
    Engine,
    Floats,
    as_many_as_positive,
    bowl,
    candidates,
    dies_always,
    refuses_negative,
)

COUNT = 41
BALLAST = 200_000
"""Approximate bytes of the evaluator's data."""


@pytest.fixture
def engine() -> Engine:
    return Engine(np.random.default_rng(3).normal(size=(BALLAST // 32, 4)))


@pytest.fixture
def pool() -> Iterator[ProcessPoolExecutor]:
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as executor:
        yield executor


class WeighingExecutor:
    """An executor that records the pickled size of each task."""

    def __init__(self, executor: ProcessPoolExecutor) -> None:
        self.executor = executor
        self.weights: list[int] = []

    def submit(self, function: Any, *arguments: Any) -> Future[Any]:
        self.weights.append(len(pickle.dumps((function, arguments))))
        return self.executor.submit(function, *arguments)


def values(evaluate: Any, executor: Any, points: Floats, **options: Any) -> Floats:
    with BatchEvaluator(evaluate, executor, **options) as evaluator:
        return evaluator(points)


def test_threads_and_processes_give_the_same_bits_as_this_process(
    engine: Engine, pool: ProcessPoolExecutor
) -> None:
    points = candidates(COUNT)
    expected = values(engine, None, points)
    with ThreadPoolExecutor(2) as threads:
        assert values(engine, threads, points).tobytes() == expected.tobytes()
    assert values(engine, pool, points).tobytes() == expected.tobytes()


@pytest.mark.parametrize("size", [1, 7, COUNT, 10 * COUNT])
def test_the_size_of_a_batch_changes_no_bit(engine: Engine, size: int) -> None:
    points = candidates(COUNT)
    expected = values(engine, None, points)
    with ThreadPoolExecutor(2) as threads:
        assert values(engine, threads, points, batch_size=size).tobytes() == expected.tobytes()


def test_an_empty_population_has_no_values(engine: Engine) -> None:
    assert values(engine, None, candidates(0)).shape[0] == 0


def test_one_value_each_is_one_criterion() -> None:
    assert values(lambda points: points[:, 0], None, candidates(3)).shape == (3, 1)


def test_the_data_go_to_a_pool_once(engine: Engine, pool: ProcessPoolExecutor) -> None:
    scales = WeighingExecutor(pool)
    with BatchEvaluator(engine, scales, batch_size=4) as evaluator:
        for _ in range(20):
            evaluator(candidates(COUNT))
    heavy = [weight for weight in scales.weights if weight > BALLAST // 2]
    batches_of_one_population = -(-COUNT // 4)
    assert len(scales.weights) >= 20 * batches_of_one_population
    # Which worker takes which batch is chance: at worst one that started late was passed over
    # in the whole first population.
    assert 1 <= len(heavy) <= 2 * batches_of_one_population
    light = [weight for weight in scales.weights if weight <= BALLAST // 2]
    assert max(light) < 2_000


def test_a_worker_without_the_data_gets_them_later(engine: Engine) -> None:
    points = candidates(COUNT)
    expected = values(engine, None, points)
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as other:
        exchanged = WeighingExecutor(other)
        with BatchEvaluator(engine, exchanged) as evaluator:
            evaluator(points)
            sent = len(exchanged.weights)
            with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as new:
                exchanged.executor = new
                assert evaluator(points).tobytes() == expected.tobytes()
    assert max(exchanged.weights[sent:]) > BALLAST // 2


def test_a_killed_process_of_a_pool_changes_no_bit(
    engine: Engine, pool: ProcessPoolExecutor, tmp_path: Path
) -> None:
    points = candidates(COUNT)
    deadly = DiesOnce(engine, tmp_path / "died", at=float(points[20, 0]))
    with BatchEvaluator(deadly, pool) as evaluator:
        first = evaluator(points)
        second = evaluator(points)
    assert (tmp_path / "died").exists()
    expected = values(engine, None, points)
    assert first.tobytes() == expected.tobytes()
    assert second.tobytes() == expected.tobytes()


def test_candidates_that_kill_every_process_are_given_up(pool: ProcessPoolExecutor) -> None:
    with pytest.raises(UnusableInput, match="lost a worker 3 times"):
        values(dies_always, pool, candidates(3))


def test_a_foreign_executor_that_broke_is_an_error_with_a_hint(pool: ProcessPoolExecutor) -> None:
    with pytest.raises(UnusableInput, match="the executor broke down") as caught:
        values(dies_always, WeighingExecutor(pool), candidates(3))
    assert caught.value.hint is not None


def test_an_error_of_the_evaluator_names_the_parameters_wherever_it_ran(
    pool: ProcessPoolExecutor,
) -> None:
    points = candidates(COUNT)
    wrong = points[points[:, 0] < -1][0]
    complaints = set()
    with ThreadPoolExecutor(2) as threads:
        for executor in (None, threads, pool):
            with pytest.raises(EvaluationFailed, match="ArithmeticError") as caught:
                values(refuses_negative, executor, points)
            complaints.add(str(caught.value))
    assert len(complaints) == 1
    assert f"[{float(wrong[0])}, " in complaints.pop()


def test_a_function_that_cannot_be_sent_is_refused(
    pool: ProcessPoolExecutor, tmp_path: Path
) -> None:
    with (tmp_path / "open").open("w") as file:

        def holds_a_file(points: Floats) -> Floats:
            file.write("evaluated\n")
            return points

        with pytest.raises(UnusableInput, match="cannot be sent to other processes"):
            values(holds_a_file, pool, candidates(3))


def test_an_inner_function_can_be_sent_with_cloudpickle(pool: ProcessPoolExecutor) -> None:
    factor = 3.0
    tripled = values(lambda points: points * factor, pool, candidates(5))
    assert tripled.tobytes() == (candidates(5) * factor).tobytes()


def test_fewer_rows_of_values_than_candidates_are_refused() -> None:
    with pytest.raises(EvaluationFailed, match=r"shape \(1, 4\) for 3 points"):
        values(lambda points: points[:1], None, candidates(3))


def test_a_changing_number_of_criteria_is_refused_with_the_parameters() -> None:
    points = np.array([[1.0, 1.0, -1.0, -1.0], [1.0, 1.0, 1.0, -1.0]])
    with ThreadPoolExecutor(2) as threads:
        message = r"4 values at par = \[1.0, 1.0, 1.0, -1.0\] but 3 at"
        with pytest.raises(EvaluationFailed, match=message):
            values(as_many_as_positive, threads, points)


@pytest.mark.parametrize("executor", [3, "tcp://127.0.0.1:8786", object()])
def test_an_object_that_is_not_an_executor_is_refused(executor: Any) -> None:
    with pytest.raises(UnusableInput, match="which has no submit"):
        BatchEvaluator(refuses_negative, executor)


def test_a_batch_size_of_zero_is_refused() -> None:
    with pytest.raises(UnusableInput, match="batch_size is 0"):
        BatchEvaluator(refuses_negative, None, batch_size=0)


def test_genoud_finds_the_same_by_processes(pool: ProcessPoolExecutor) -> None:
    alone = genoud(bowl, 2, population=40, generations=5, seed=4)
    helped = genoud(bowl, 2, population=40, generations=5, seed=4, executor=pool)
    assert helped.par.tobytes() == alone.par.tobytes()
    assert helped.evaluations == alone.evaluations
