"""A real cluster of two processes on this machine, one of which is killed."""

from __future__ import annotations

import pickle
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import equipoise_matching
from equipoise.cluster.connection import connect
from equipoise.model.errors import UnusableInput
from equipoise_matching.genetic.executors import BatchEvaluator
from equipoise_matching.genetic.worker import EvaluationFailed
from packages.equipoise.tests.clusters import litter_collected, local_cluster
from packages.matching.tests.genetic.evaluators import (
    DiesOnce,
    Engine,
    candidates,
    dies_always,
    refuses_negative,
)

COUNT = 41


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with (
        local_cluster(2, tmp_path_factory.mktemp("dask")) as address,
        connect(address) as connected,
    ):
        yield connected


@pytest.fixture
def engine() -> Engine:
    return Engine(np.random.default_rng(3).normal(size=(1000, 4)))


def test_a_cluster_gives_the_same_bits_as_this_process(client: Any, engine: Engine) -> None:
    points = candidates(COUNT)
    with BatchEvaluator(engine, client) as evaluator:
        assert evaluator(points).tobytes() == engine(points).tobytes()


def test_the_data_go_to_a_cluster_once(
    client: Any, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    scattered: list[int] = []
    submitted: list[int] = []

    def scatter(data: Any, **options: Any) -> Any:
        scattered.append(len(pickle.dumps(data)))
        return type(client).scatter(client, data, **options)

    def submit(function: Any, data: Any, batch: Any, **options: Any) -> Any:
        submitted.append(len(pickle.dumps(batch)))
        return type(client).submit(client, function, data, batch, **options)

    monkeypatch.setattr(client, "scatter", scatter)
    monkeypatch.setattr(client, "submit", submit)
    with BatchEvaluator(engine, client) as evaluator:
        for _ in range(5):
            evaluator(candidates(COUNT))
    assert len(scattered) == 1
    assert scattered[0] > engine.data.nbytes
    assert len(submitted) >= 5 * 2
    assert max(submitted) < 1000


def test_a_killed_worker_of_a_cluster_changes_no_bit(
    client: Any, engine: Engine, tmp_path: Path
) -> None:
    points = candidates(COUNT)
    deadly = DiesOnce(engine, tmp_path / "died", at=float(points[20, 0]))
    with BatchEvaluator(deadly, client) as evaluator:
        first = evaluator(points)
        second = evaluator(points)
    assert (tmp_path / "died").exists()
    assert first.tobytes() == engine(points).tobytes()
    assert second.tobytes() == engine(points).tobytes()


def test_an_error_on_a_worker_names_the_parameters(client: Any) -> None:
    points = candidates(COUNT)
    with (
        BatchEvaluator(refuses_negative, client) as evaluator,
        pytest.raises(EvaluationFailed, match="ArithmeticError") as caught,
    ):
        evaluator(points)
    assert f"[{float(points[points[:, 0] < -1][0, 0])}, " in str(caught.value)


def test_candidates_that_kill_every_worker_are_given_up(client: Any) -> None:
    with (
        BatchEvaluator(dies_always, client, batch_size=1) as evaluator,
        pytest.raises(equipoise_matching.UnusableInput, match="gave up the same candidates"),
    ):
        evaluator(candidates(1))


def test_absent_scheduler_is_named_with_a_hint() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{listener.getsockname()[1]}"
        with (
            litter_collected(),
            pytest.raises(UnusableInput, match="cannot be reached") as caught,
        ):
            connect(address, timeout_s=1)
    assert address in caught.value.what
    assert "dask scheduler" in (caught.value.hint or "")
