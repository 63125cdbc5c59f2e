"""Strata on workers: scripted ones that are lost or answer badly, and two real processes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pandas
import pytest

import equipoise_matching
from equipoise.cluster.connection import connect
from equipoise.cluster.messages import from_bytes, to_bytes
from equipoise.cluster.strata import (
    DaskWorkers,
    LostWorker,
    StratumRequest,
    analyse_stratum,
    read_reply,
    strata_on_workers,
)
from equipoise.model.errors import UnusableInput
from equipoise_matching.observation.result import ObservationResult
from equipoise_matching.observation.strata import StratifiedLog, observe_strata
from equipoise_matching.tables.strata import StratumRows, find_strata
from packages.equipoise.tests.cluster.strata_tasks import dies_once
from packages.equipoise.tests.clusters import local_cluster
from packages.matching.tests.observation.logs import loaded_log, question

RACKS = ("a", "b", "c", "d")
QUESTION = question(cluster=("day",), covariates=("load", "unmoved"))


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log of four racks; rack ``d`` never ran the candidate."""
    log = loaded_log(400)
    log["rack"] = np.array(RACKS, dtype=object)[np.arange(400) % 4]
    log["version"][log["rack"] == "d"] = "1.0"
    path = tmp_path_factory.mktemp("log") / "log.parquet"
    pandas.DataFrame(log).to_parquet(path, row_group_size=100)
    return path


@pytest.fixture(scope="module")
def strata(file: Path) -> StratifiedLog[StratumRows]:
    return find_strata(str(file), "rack", QUESTION)


@pytest.fixture(scope="module")
def alone(strata: StratifiedLog[StratumRows]) -> ObservationResult:
    return observe_strata(strata, QUESTION, source="log")


class Scripted:
    """Workers that judge at once; ``instead`` may give another answer, or raise `LostWorker`.

    The last started task ends first, or all at a time end ``together``. A worker that ``vanishes``
    names is gone with its first task.
    """

    def __init__(
        self,
        names: Sequence[str] = ("w1", "w2"),
        *,
        instead: Callable[[StratumRequest], bytes | None] = lambda _: None,
        vanishes: Sequence[str] = (),
        together: bool = False,
    ) -> None:
        self.there = dict.fromkeys(names, 1)
        self.started: list[tuple[str, str]] = []
        self.forgotten: list[str] = []
        self._instead = instead
        self._vanishing = list(vanishes)
        self._together = together
        self._open: list[tuple[str, bytes]] = []
        self._ended: list[tuple[str, bytes]] = []

    def threads_by_worker(self) -> Mapping[str, int]:
        return dict(self.there)

    def start(self, worker: str, request: bytes) -> Any:
        name = from_bytes(request, StratumRequest).name
        assert worker not in {busy for busy, _ in self._open}, "one stratum at a time"
        self.started.append((worker, name))
        self._open.append((worker, request))
        return self._open[-1]

    def wait(self, tasks: Sequence[Any]) -> None:
        assert list(tasks) == self._open
        for _ in self._open[:] if self._together else self._open[:1]:
            worker, request = self._open.pop()
            if worker in self._vanishing:
                self._vanishing.remove(worker)
                del self.there[worker]
            else:
                self._ended.append((worker, request))

    def has_ended(self, task: Any) -> bool:
        return task in self._ended

    def answer(self, task: Any) -> bytes:
        request = task[1]
        scripted = self._instead(from_bytes(request, StratumRequest))
        return analyse_stratum(request) if scripted is None else scripted

    def forget(self, tasks: Iterable[Any]) -> None:
        for task in tasks:
            self.forgotten.append(from_bytes(task[1], StratumRequest).name)
            if task in self._open:
                self._open.remove(task)


def judge_on(workers: Any, strata: StratifiedLog[StratumRows], **changed: Any) -> ObservationResult:
    return observe_strata(
        strata,
        msgspec.structs.replace(QUESTION, **changed),
        source="log",
        match_strata=strata_on_workers(workers),
    )


def test_workers_give_the_document_of_one_machine_to_the_last_bit(
    strata: StratifiedLog[StratumRows], alone: ObservationResult
) -> None:
    assert alone.matched is not None
    assert alone.strata is not None
    assert alone.strata.results[3].reason == "no row of 2.0"
    workers = Scripted(("w1", "w2", "w3"))
    answer = judge_on(workers, strata)
    assert msgspec.json.encode(answer) == msgspec.json.encode(alone)
    assert [name for _, name in workers.started] == [*RACKS]
    searched = msgspec.structs.replace(QUESTION, method="genetic")
    here = observe_strata(strata, searched, source="log")
    assert judge_on(Scripted(), strata, method="genetic") == here


def test_a_stratum_of_a_lost_worker_is_judged_by_another(
    strata: StratifiedLog[StratumRows], alone: ObservationResult
) -> None:
    workers = Scripted(("w1", "w2"), vanishes=("w2",))
    assert judge_on(workers, strata) == alone
    assert workers.started[:3] == [("w1", "a"), ("w2", "b"), ("w1", "b")]
    assert workers.forgotten == ["b"]


def test_a_stratum_that_costs_three_workers_is_given_up(strata: StratifiedLog[StratumRows]) -> None:
    def lost_over_b(request: StratumRequest) -> bytes | None:
        if request.name == "b":
            raise LostWorker("killed")
        return None

    workers = Scripted(instead=lost_over_b)
    with pytest.raises(UnusableInput, match="stratum b made 3 workers fail") as caught:
        judge_on(workers, strata)
    assert "smaller groups" in (caught.value.hint or "")
    assert [name for _, name in workers.started].count("b") == 3


@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize("count", [1, 2, 4])
def test_error_of_the_first_failed_stratum_is_reported(
    file: Path, tmp_path: Path, count: int, together: bool
) -> None:
    log = pandas.read_parquet(file)
    for rack in ("b", "c"):
        log.loc[log["rack"] == rack, "wall_s"] = 0.0
    log.to_parquet(tmp_path / "log.parquet")
    strata = find_strata(str(tmp_path / "log.parquet"), "rack", QUESTION)
    with pytest.raises(
        equipoise_matching.UnusableInput, match="stratum b: wall_s is 0 or less"
    ) as here:
        observe_strata(strata, QUESTION, source="log")
    workers = Scripted([f"w{number}" for number in range(count)], together=together)
    with pytest.raises(UnusableInput) as there:
        judge_on(workers, strata)
    assert (there.value.what, there.value.hint) == (here.value.what, here.value.hint)
    assert ("d" in {name for _, name in workers.started}) is (count == 4)


def test_a_worker_that_does_not_see_the_file_is_named(file: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "log.parquet"
    elsewhere.write_bytes(file.read_bytes())
    strata = find_strata(str(elsewhere), "rack", QUESTION)
    elsewhere.unlink()
    with pytest.raises(UnusableInput, match=f"the worker w. does not see {elsewhere}") as caught:
        judge_on(Scripted(), strata)
    assert "same files at the same path" in (caught.value.hint or "")
    pandas.read_parquet(file).iloc[::-1].to_parquet(elsewhere)
    with pytest.raises(UnusableInput, match="sees another file as"):
        judge_on(Scripted(), strata)


def test_a_worker_with_another_version_is_named(strata: StratifiedLog[StratumRows]) -> None:
    def older(request: StratumRequest) -> bytes:
        return analyse_stratum(
            to_bytes(msgspec.structs.replace(request, equipoise_version="0.0.1"))
        )

    with pytest.raises(UnusableInput, match=r"the worker w. has Equipoise .*0\.0\.1") as caught:
        judge_on(Scripted(instead=older), strata)
    assert "same version" in (caught.value.hint or "")


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"\xc1",
        msgspec.msgpack.encode({}),
        msgspec.msgpack.encode({"outcome": None, "worker_problem": None}),
        msgspec.msgpack.encode({"outcome": {"name": "a"}}),
    ],
)
def test_malformed_answer_is_refused(strata: StratifiedLog[StratumRows], answer: bytes) -> None:
    with pytest.raises(UnusableInput) as caught:
        judge_on(Scripted(instead=lambda _: answer), strata)
    assert "same version of Equipoise" in (caught.value.hint or "")


def test_an_answer_that_does_not_fit_together_is_refused(
    strata: StratifiedLog[StratumRows],
) -> None:
    requests: dict[str, StratumRequest] = {}

    def note(request: StratumRequest) -> None:
        requests[request.name] = request

    judge_on(Scripted(instead=note), strata)
    answer = analyse_stratum(to_bytes(requests["a"]))
    assert read_reply(answer, "a").outcome is not None
    document = msgspec.msgpack.decode(answer)
    for changes in (
        {"name": "b"},
        {"rows": 1},
        {"candidate_rows": -1},
        {"candidate_moments": None},
        {"reason": "both an answer and a reason"},
    ):
        changed = {**document, "outcome": {**document["outcome"], **changes}}
        with pytest.raises(UnusableInput, match="stratum a is inconsistent"):
            read_reply(msgspec.msgpack.encode(changed), "a")


def test_clusters_of_any_kind_are_the_same_in_every_stratum(file: Path, tmp_path: Path) -> None:
    log = pandas.read_parquet(file)
    days = pandas.to_datetime("2026-01-01") + pandas.to_timedelta(log["day"], unit="D")
    for column in (days.dt.date, days.dt.tz_localize("UTC")):
        log["day"] = column
        log.to_parquet(tmp_path / "log.parquet")
        strata = find_strata(str(tmp_path / "log.parquet"), "rack", QUESTION)
        here = observe_strata(strata, QUESTION, source="log")
        assert here.strata is not None
        assert here.strata.shared_clusters is not None
        assert here.strata.shared_clusters > 30
        assert judge_on(Scripted(), strata) == here


def test_an_answer_is_bounded(
    strata: StratifiedLog[StratumRows], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("equipoise.cluster.strata.MAX_ANSWER_BYTES", 1000)
    with pytest.raises(UnusableInput, match="the answer of a stratum has") as caught:
        judge_on(Scripted(), strata)
    assert "remove --cluster ADDRESS" in (caught.value.hint or "")


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with (
        local_cluster(2, tmp_path_factory.mktemp("dask")) as address,
        connect(address) as connected,
    ):
        yield connected


def test_killed_process_does_not_change_the_result(
    client: Any, strata: StratifiedLog[StratumRows], alone: ObservationResult, tmp_path: Path
) -> None:
    class Deadly(DaskWorkers):
        def start(self, worker: str, request: bytes) -> Any:
            return client.submit(
                dies_once, str(tmp_path / "died"), request, workers=[worker], pure=False
            )

    answer = judge_on(Deadly(client), strata)
    assert (tmp_path / "died").exists()
    assert msgspec.json.encode(answer) == msgspec.json.encode(alone)


def test_two_processes_report_the_error_of_the_first_stratum(client: Any, tmp_path: Path) -> None:
    log = loaded_log(200)
    log["wall_s"] = log["wall_s"] * 0.0
    pandas.DataFrame(log).to_parquet(tmp_path / "log.parquet")
    strata = find_strata(str(tmp_path / "log.parquet"), "host_type", QUESTION)
    with pytest.raises(UnusableInput, match="stratum amd: wall_s is 0 or less"):
        judge_on(DaskWorkers(client), strata)
