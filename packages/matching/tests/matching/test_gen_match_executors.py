"""One seed gives one answer on every executor, even if a worker is lost."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from equipoise.cluster.connection import connect
from equipoise_matching.genetic.search import Generation
from equipoise_matching.matching.gen_match import GenMatchResult, gen_match
from packages.equipoise.tests.clusters import local_cluster
from packages.matching.tests.matching.judges import KillingLoss
from packages.matching.tests.matching.nsw import NAMES, lalonde


def searched(**options: Any) -> GenMatchResult:
    people = lalonde()
    x = np.column_stack([people[name] for name in NAMES])
    defaults: dict[str, Any] = {"population": 60, "generations": 6, "seed": 20110614, "m": 2}
    return gen_match(people["treat"], x, **{**defaults, **options})


def bits(result: GenMatchResult) -> tuple[bytes, ...]:
    """Return the whole result of a search, generation after generation, as bytes."""
    return (
        result.weights.tobytes(),
        result.fitness.tobytes(),
        result.matches.control_index.tobytes(),
        *(
            generation.parameters.tobytes() + generation.value.tobytes()
            for generation in result.history
        ),
    )


@pytest.fixture(scope="module")
def alone() -> tuple[bytes, ...]:
    """The answer of one thread."""
    return bits(searched(threads=1))


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with (
        local_cluster(2, tmp_path_factory.mktemp("dask")) as address,
        connect(address) as connected,
    ):
        yield connected


def test_two_threads_answer_as_one(alone: tuple[bytes, ...]) -> None:
    assert bits(searched(threads=2)) == alone
    with ThreadPoolExecutor(2) as executor:
        assert bits(searched(executor=executor)) == alone


def test_a_pool_of_processes_answers_as_one_thread(
    alone: tuple[bytes, ...], tmp_path: Path
) -> None:
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as executor:
        assert bits(searched(executor=executor)) == alone
        deadly = KillingLoss(tmp_path / "died", at=0.05)
        assert bits(searched(executor=executor, loss=deadly)) == alone
    assert (tmp_path / "died").exists()


def test_a_cluster_answers_as_one_thread(client: Any, alone: tuple[bytes, ...]) -> None:
    assert bits(searched(executor=client)) == alone


def test_a_worker_of_a_cluster_that_is_killed_between_generations_changes_no_bit(
    client: Any, alone: tuple[bytes, ...]
) -> None:
    killed: list[int] = []

    def kill_one(generation: Generation, limit: int) -> None:
        if generation.number == 2:
            victim = sorted(client.run(os.getpid).values())[0]
            os.kill(victim, signal.SIGKILL)
            killed.append(victim)

    assert bits(searched(executor=client, progress=kill_one)) == alone
    assert len(killed) == 1


def test_a_worker_of_a_cluster_that_is_killed_over_a_candidate_changes_no_bit(
    client: Any, alone: tuple[bytes, ...], tmp_path: Path
) -> None:
    deadly = KillingLoss(tmp_path / "died", at=0.05)
    assert bits(searched(executor=client, loss=deadly)) == alone
    assert (tmp_path / "died").exists()


def test_random_ties_are_the_same_everywhere(client: Any) -> None:
    random_ties: dict[str, Any] = {"ties": False, "boot": 20, "population": 12, "generations": 2}
    expected = searched(threads=1, **random_ties)
    assert bits(searched(threads=2, **random_ties)) == bits(expected)
    assert bits(searched(executor=client, **random_ties)) == bits(expected)
