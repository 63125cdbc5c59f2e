"""A host that lies, stands still or sends garbage: its own line says so, and the fleet goes on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from equipoise.cluster import coordinator, equality, files
from equipoise.cluster.coordinator import FleetProgress, HostProgress
from equipoise.cluster.messages import (
    File,
    FileInventory,
    FollowReply,
    FollowRequest,
    Refusal,
    ShipmentReply,
    Status,
    to_bytes,
)
from equipoise.kinds.fleet.conducting import FleetOptions
from equipoise.ledger import Ledger, open_for_writing
from equipoise.model.errors import UnusableInput
from equipoise.model.host import HostReference
from packages.equipoise.tests.cluster.scripted_fleet import (
    PLAN,
    ScriptedCluster,
    ScriptedFleet,
    ScriptedHost,
    contents,
    fleet,
    fleet_of,
)

__all__ = ["fleet", "fleet_of"]


def others_are_whole(fleet: ScriptedFleet) -> bool:
    """Whether the coordinator has every trial of the hosts that do not lie."""
    members = fleet.members()
    ada, _, cyd = fleet.hosts
    return all(contents(members[host.name]) == contents(host.record()) for host in (ada, cyd))


def line_of_liar(outcome: FleetProgress) -> HostProgress:
    """The line of the host that lies; the others have ended."""
    ada, liar, cyd = outcome.hosts
    assert (ada.state, cyd.state) == ("ended", "ended")
    return liar


def lying(fleet: ScriptedFleet, **methods: Callable[..., object]) -> HostProgress:
    """The line of bob after a campaign in which these methods answered for him."""
    vars(fleet.hosts[1]).update(methods)
    return line_of_liar(fleet.start())


@pytest.mark.parametrize("state", ["waiting", "running"])
def test_host_without_progress_is_given_up_and_named(fleet: ScriptedFleet, state: Any) -> None:
    answer = Status(state, hint="another campaign runs on this host")
    line = lying(fleet, order=lambda *_: answer, follow=lambda *_: FollowReply(answer))
    assert line.state == "missing"
    assert "recorded nothing for 36" in str(line.problem)
    assert ("another campaign runs" in str(line.problem)) == (state == "waiting")
    assert others_are_whole(fleet)
    assert fleet.watcher.reached["cyd", "ended"] < 30


def test_a_host_that_waits_for_less_than_an_hour_is_waited_for(fleet: ScriptedFleet) -> None:
    bob = fleet.hosts[1]
    own = bob.follow

    def waits(question: FollowRequest, now: float) -> FollowReply:
        began = fleet.watcher.began
        return own(question, now) if now > began + 3000.0 else FollowReply(Status("waiting"))

    assert lying(fleet, follow=waits).state == "ended"
    assert contents(fleet.members()["bob"]) == contents(bob.record())


def test_host_that_never_accepts_its_order_is_given_up(fleet: ScriptedFleet) -> None:
    orders: list[object] = []

    def forgets(order: object, _: float) -> Status:
        orders.append(order)
        return Status("absent")

    line = lying(fleet, order=forgets)
    assert line.state == "failed"
    assert "did not begin the campaign" in str(line.problem)
    assert len(orders) == coordinator.MAX_ABSENCES + 1


def test_host_whose_process_dies_too_often_is_given_up(
    fleet: ScriptedFleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(coordinator, "MAX_RESTARTS", 9)
    claimed = iter(range(1, 10**6))
    line = lying(
        fleet,
        order=lambda *_: Status("running"),
        follow=lambda *_: FollowReply(Status("died", next(claimed))),
    )
    assert line.state == "failed"
    assert line.problem == "the process of the campaign died 10 times"


GARBAGE = {
    "nothing": b"",
    "another type": msgspec.msgpack.encode([1, 2, 3]),
    "a state that is none": msgspec.msgpack.encode({"status": {"state": "bored"}}),
    "blocks below zero": msgspec.msgpack.encode({"status": {"state": "running", "blocks": -1}}),
    "a text for a number": msgspec.msgpack.encode({"status": {"state": "ended", "blocks": "all"}}),
    "nested too deep": b"\x91" * 100_000 + b"\xc0",
    "a slice that is none": to_bytes(FollowReply(Status("running"), b"no slice")),
}


@pytest.mark.parametrize("garbage", GARBAGE.values(), ids=GARBAGE)
def test_garbage_in_the_place_of_an_answer_fails_its_host_alone(
    fleet: ScriptedFleet, garbage: bytes
) -> None:
    line = lying(fleet, follow=lambda *_: msgspec.Raw(garbage))
    assert line.state == "failed"
    reasons = ("cannot read a message of the cluster", "cannot be used")
    assert any(reason in str(line.problem) for reason in reasons)
    assert others_are_whole(fleet)


def test_description_of_a_host_is_cut_to_one_line(fleet: ScriptedFleet) -> None:
    hostile = "\x1b[2Jall is well\n\u202e" + 1_000_000 * "z"
    answer = Status("failed", running_s=1e308, failure=hostile, hint=hostile)
    line = lying(fleet, follow=lambda *_: FollowReply(answer))
    assert len(str(line.problem)) <= 400
    assert len(str(line.hint)) <= 400
    assert str(line.problem).startswith("\\x1b[2Jall is well \\u202ez")


def test_a_reason_of_a_host_is_recorded_as_one_short_line(fleet: ScriptedFleet) -> None:
    answer = Status("ended", stopped_because="\x1b]0;owned\x07" + 1_000_000 * "z")
    lying(fleet, follow=lambda *_: FollowReply(answer))
    reason = str(fleet.ledger.read_run().segments[-1].stopped_because)
    assert "\x1b" not in reason
    assert len(reason) < 500


def forged(folder: Path, fleet: ScriptedFleet, **changes: Any) -> bytes:
    """The campaign of bob as another ledger made it, with changes of its plan or its host."""
    bob = fleet.hosts[1]
    record = bob.record()
    host = changes.pop("host", bob.reference)
    member = replace(record.plan, **changes)
    with (
        pytest.MonkeyPatch.context() as patch,
        open_for_writing(folder / "forged.db", durable=False) as ledger,
    ):
        patch.setattr("equipoise.ledger.store.this_host", lambda *_: host)
        ledger.begin_run(member, {}, 1.0, identity=bytes.fromhex(record.identity))
        return _everything(ledger, record.identity)


def _everything(ledger: Ledger, identity: str) -> bytes:
    content, has_more = ledger.slice(identity, max_trials=10_000)
    assert not has_more
    return content


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"host": HostReference("9" * 32, "bob")}, "bob sent a run that another host measured"),
        ({"seed": 12345}, "bob measured another plan than the plan of this campaign"),
        ({"study": "another"}, "bob measured another plan than the plan of this campaign"),
    ],
)
def test_unrequested_run_is_refused_in_the_line_of_its_host(
    fleet: ScriptedFleet, tmp_path: Path, changes: dict[str, Any], problem: str
) -> None:
    bob = fleet.hosts[1]

    def lies(*_: object) -> FollowReply:
        return FollowReply(bob.status(), forged(tmp_path, fleet, **changes))

    line = lying(fleet, follow=lies)
    assert (line.state, line.problem) == ("failed", problem)
    assert sorted(fleet.members()) == ["ada", "cyd"]


def left_out(fleet: ScriptedFleet) -> list[str]:
    """Return the warnings about workers and hosts that do not measure."""
    return [warning.summary for warning in fleet.ledger.read_run().warnings]


@pytest.mark.parametrize("identity", ["", "ada", "é" * 32, "A" * 32, "0" * 31])
def test_a_host_without_an_identity_is_left_out_and_named(
    fleet: ScriptedFleet, identity: str
) -> None:
    fleet.hosts[1].reference = HostReference(identity, "bob")
    outcome = fleet.start()
    assert [line.host for line in outcome.hosts] == ["ada", "cyd"]
    (warning,) = left_out(fleet)
    assert "'bob' has no valid identity" in warning


def test_copied_identity_gives_no_access_to_a_run(fleet: ScriptedFleet) -> None:
    ada, bob, _ = fleet.hosts
    # It answers later than the host whose identity it copies.
    bob.reference, bob.answer_s = ada.reference, 0.5
    outcome = fleet.start()
    assert [line.host for line in outcome.hosts] == ["ada", "cyd"]
    (warning,) = left_out(fleet)
    assert "has the identity of ada, which answers at tcp://ada:1" in warning
    assert not bob.orders


def test_a_host_that_keeps_no_shipped_file_is_left_out(
    tmp_path: Path, fleet: ScriptedFleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "words").write_bytes(b"words")
    words = files.local_file(File("words", None), str(tmp_path))
    plan = replace(PLAN, measure=replace(PLAN.measure, working_folder=str(tmp_path)))
    monkeypatch.setattr("equipoise.kinds.fleet.conducting.files_of", lambda *_: (words,))
    fleet.options = FleetOptions("tcp://scheduler:8786", ship=True)
    lacks = replace(words, digest=None)
    answers: dict[str, Any] = {
        "ada": ShipmentReply(str(words.digest)),
        "bob": Refusal("no room", "make room"),
        "cyd": ShipmentReply("anything"),
    }

    def answer(self: ScriptedCluster, host: ScriptedHost, task: str, *rest: Any) -> Any:
        match task:
            case "examine":
                return FileInventory((lacks,))
            case "receive":
                return answers[host.name]
        return own(self, host, task, *rest)

    own = ScriptedCluster._answer
    monkeypatch.setattr(ScriptedCluster, "_answer", answer)
    outcome = fleet.start(plan)
    assert [line.host for line in outcome.hosts] == ["ada", "cyd"]
    assert "words could not be shipped to bob: no room" in left_out(fleet)[0]
    monkeypatch.setattr(equality, "MAX_KEPT_BYTES", 4)
    with pytest.raises(UnusableInput, match="shipping 1 file needs 0 MiB"):
        fleet.start(plan)
