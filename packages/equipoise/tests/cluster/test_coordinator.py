"""A coordinator and its hosts: what a user notices when hosts are slow, hang, vanish or die."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from equipoise.campaign.conduct import Interrupted
from equipoise.cluster.messages import FollowReply, FollowRequest
from equipoise.cluster.roster import DaskTransport, NoAnswer, Unreachable
from equipoise.design.limits import CampaignLimits
from equipoise.kinds.fleet.conducting import FleetOptions, host_seed
from equipoise.kinds.fleet.terms import FleetPlan
from equipoise.model.errors import UnusableInput
from equipoise.model.host import HostReference
from equipoise.model.plan import Plan, Stopping, member_identity
from packages.equipoise.tests.cluster.scripted_fleet import (
    BLOCKS,
    NAMES,
    PLAN,
    MakeFleet,
    ScriptedCluster,
    ScriptedFleet,
    ScriptedHost,
    conducted,
    contents,
    fleet,
    fleet_of,
    whole,
)

__all__ = ["fleet", "fleet_of"]


def test_every_host_measures_with_its_own_coin_and_the_coordinator_gets_every_trial(
    fleet: ScriptedFleet,
) -> None:
    outcome = fleet.start()
    assert whole(fleet)
    assert [(line.host, line.state, line.status.blocks) for line in outcome.hosts] == [
        (name, "ended", BLOCKS) for name in NAMES
    ]
    record = fleet.ledger.read_run("last")
    assert record.id == outcome.run_id
    assert record.segments[-1].stopped_because == "block limit"
    assert isinstance(record.plan.terms, FleetPlan)
    assert record.plan.terms.weights == (1 / 3, 1 / 3, 1 / 3)
    assert not record.trials
    orders = {tuple(draw.order for draw in member.draws) for member in fleet.members().values()}
    assert len(orders) == 3


def test_seeds_and_identities_follow_from_the_campaign() -> None:
    host, other = HostReference("a" * 32, "a"), HostReference("b" * 32, "a")
    seeds = {host_seed(1, host, 0), host_seed(1, host, 1), host_seed(1, other, 0)}
    assert len(seeds | {host_seed(2, host, 0)}) == 4
    assert host_seed(1, host, 0) == host_seed(1, host, 0)
    identities = {member_identity("a" * 32, 0), member_identity("a" * 32, 1)}
    assert len(identities | {member_identity("b" * 32, 0)}) == 3


@pytest.mark.parametrize("slow", [{"block_s": 30.0}, {"answer_s": 15.0}])
def test_a_straggler_delays_only_its_own_line(fleet: ScriptedFleet, slow: dict[str, float]) -> None:
    for name, value in slow.items():
        fleet.cluster.at(1.5, partial(setattr, fleet.hosts[1], name, value))
    fleet.start()
    assert whole(fleet)
    reached = {name: fleet.watcher.reached[name, "ended"] for name in NAMES}
    assert reached["bob"] > BLOCKS + 5
    for name in ("ada", "cyd"):
        assert reached[name] < BLOCKS + 2


def test_a_host_that_is_cut_off_for_a_minute_measures_on_and_loses_nothing(
    fleet: ScriptedFleet,
) -> None:
    fleet.cluster.at(5, lambda: fleet.cluster.away.add("bob"))
    fleet.cluster.at(65, fleet.cluster.away.clear)
    outcome = fleet.start()
    assert {line.state for line in outcome.hosts} == {"ended"}
    assert whole(fleet)
    assert ("bob", "no answer") in fleet.watcher.reached
    assert fleet.watcher.reached["ada", "ended"] < 25
    assert len(fleet.hosts[1].orders) == 1


def test_a_host_that_vanished_is_named_and_fetched_by_resume(fleet: ScriptedFleet) -> None:
    fleet.cluster.at(5, lambda: fleet.cluster.gone.add("bob"))
    outcome = fleet.start()
    assert [line.host for line in outcome.missing] == ["bob"]
    assert "none of its workers is connected" in str(outcome.missing[0].problem)
    assert fleet.ledger.read_run().segments[-1].stopped_because == "a host is missing"
    assert len(fleet.members()["bob"].trials) < 2 * BLOCKS
    fleet.cluster.gone.clear()
    outcome = fleet.resume()
    assert outcome.missing == ()
    assert whole(fleet)
    # It has measured to its end by itself: nobody ordered it again.
    assert [len(host.orders) for host in fleet.hosts] == [1, 1, 1]


def test_a_restarted_scheduler_is_found_again(fleet: ScriptedFleet) -> None:
    def restart() -> None:
        fleet.cluster.scheduler_is_down = False
        # Workers that lost their scheduler are new processes.
        hosts = list(fleet.cluster.hosts.values())
        fleet.cluster.hosts = {f"tcp://{host.name}:2": host for host in hosts}

    fleet.cluster.at(4, lambda: setattr(fleet.cluster, "scheduler_is_down", True))
    fleet.cluster.at(64, restart)
    fleet.start()
    assert fleet.watcher.troubles == ["connection refused"]
    assert whole(fleet)


def test_a_process_that_died_is_started_again_and_goes_on(fleet_of: MakeFleet) -> None:
    fleet = fleet_of(bob={"dies_at": (3, 4, 7, 10, 11)})
    fleet.start()
    assert whole(fleet)
    assert len(fleet.hosts[1].orders) == 6
    assert "bob: the process of the campaign died and starts again" in fleet.watcher.problems


def test_a_process_that_dies_at_once_is_given_up_and_named(fleet_of: MakeFleet) -> None:
    fleet = fleet_of(bob={"dies_at": (3,) * 9})
    outcome = fleet.start()
    assert [line.state for line in outcome.hosts] == ["ended", "failed", "ended"]
    assert "died 4 times without a new block" in str(outcome.hosts[1].problem)
    assert len(fleet.hosts[1].orders) == 4
    assert whole(fleet)


def test_slices_that_come_twice_add_nothing(fleet_of: MakeFleet) -> None:
    fleet = fleet_of(ada={"repeats": True})
    fleet.start()
    assert whole(fleet)


def test_a_copy_that_contradicts_its_host_fails_alone(fleet: ScriptedFleet) -> None:
    def fork() -> None:
        # A snapshot of the host was put back: its run begins again, with other trials.
        host = fleet.hosts[1]
        host.ledger.close()
        for file in host.folder.glob("bob.db*"):
            file.unlink()
        order = host.orders[0]
        fleet.cluster.hosts["tcp://bob:1"] = ScriptedHost("bob", host.folder, block_s=0.7)
        fleet.hosts[1].blocks = 0
        fleet.hosts[1].order(order, asyncio.get_running_loop().time())

    fleet.cluster.at(8, fork)
    outcome = fleet.start()
    assert [line.state for line in outcome.hosts] == ["ended", "failed", "ended"]


def test_a_condition_that_fails_on_one_host_ends_it_alone(fleet_of: MakeFleet) -> None:
    fleet = fleet_of(cyd={"fails_at": 3})
    outcome = fleet.start()
    assert [line.host for line in outcome.failed] == ["cyd"]
    assert "b failed: exit status 1" in str(outcome.failed[0].problem)
    assert whole(fleet)


def test_an_interruption_halts_the_hosts_and_resume_goes_on_with_those(fleet_of: MakeFleet) -> None:
    fleet = fleet_of(ada={"block_s": 0.1}, cyd={"block_s": 2.0})

    async def interrupted() -> None:
        following = asyncio.create_task(fleet.starting())
        await asyncio.sleep(10)
        following.cancel()
        began = asyncio.get_running_loop().time()
        try:
            await following
        finally:
            assert asyncio.get_running_loop().time() - began < 10

    # One that does not answer keeps nobody from leaving.
    fleet.cluster.at(9, lambda: fleet.cluster.away.add("cyd"))
    with pytest.raises(Interrupted):
        conducted(interrupted())
    assert [host.reason for host in fleet.hosts] == ["block limit", "interrupted", None]
    assert fleet.ledger.read_run().segments[-1].stopped_because == "interrupted"
    fleet.cluster.away.clear()
    fleet.resume()
    assert [len(host.orders) for host in fleet.hosts] == [1, 2, 1]
    assert [host.blocks for host in fleet.hosts] == [BLOCKS] * 3
    assert whole(fleet)


def test_new_limits_have_every_host_go_on(fleet: ScriptedFleet) -> None:
    fleet.start()
    fleet.resume(CampaignLimits(blocks=2 * BLOCKS))
    for host in fleet.hosts:
        assert [order.segment for order in host.orders] == [1, 2]
        assert host.orders[1].limits == CampaignLimits(blocks=2 * BLOCKS)
    assert whole(fleet)


def test_a_host_of_another_version_is_left_out_and_named(fleet_of: MakeFleet) -> None:
    fleet = fleet_of(bob={"version": "0.0.1"})
    outcome = fleet.start()
    assert [line.host for line in outcome.hosts] == ["ada", "cyd"]
    (warning,) = fleet.ledger.read_run().warnings
    assert warning.code == "host_left_out"
    assert "bob has Equipoise 0.0.1" in warning.summary
    strangers = fleet_of(**{name: {"version": "0.0.1"} for name in NAMES})
    with pytest.raises(UnusableInput, match="no host can take part"):
        strangers.start()
    assert strangers.ledger.runs() == []


def test_a_cluster_without_workers_is_named(fleet: ScriptedFleet) -> None:
    fleet.cluster.gone.update(NAMES)
    with pytest.raises(UnusableInput, match="has no worker") as caught:
        fleet.start()
    assert "equipoise.cluster.worker" in str(caught.value.hint)
    fleet.cluster.scheduler_is_down = True
    with pytest.raises(UnusableInput, match="cannot be reached: connection refused"):
        fleet.start()


def test_workers_of_one_host_run_one_campaign_or_one_each(tmp_path: Path) -> None:
    for for_each_worker, campaigns in ((False, 1), (True, 2)):
        folder = tmp_path / str(campaigns)
        folder.mkdir()
        host = ScriptedHost("ada", folder)
        cluster = ScriptedCluster(host)
        twin = ScriptedHost("twin", folder)
        twin.reference = host.reference
        cluster.hosts["tcp://ada:2"] = twin if for_each_worker else host
        options = FleetOptions("local:2", campaign_for_each_worker=for_each_worker)
        fleet = ScriptedFleet(folder, cluster, options=options)
        terms = fleet.ledger.read_run(
            conducted(_started_alone(fleet, replace(PLAN, stopping=Stopping(blocks=1))))
        ).plan.terms
        assert isinstance(terms, FleetPlan)
        assert terms.is_one_host
        assert len(terms.hosts) == campaigns
        fleet.close()


async def _started_alone(fleet: ScriptedFleet, plan: Plan) -> str:
    """Begin a campaign of a fleet and leave it to itself."""
    following = asyncio.create_task(fleet.starting())
    await asyncio.sleep(5)
    following.cancel()
    await asyncio.gather(following, return_exceptions=True)
    return "last"


def test_a_host_adds_nothing_to_the_run_of_another_one(
    fleet: ScriptedFleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    ada, bob, cyd = fleet.hosts
    own = bob.follow

    def of_cyd(question: FollowRequest, now: float) -> FollowReply:
        if not cyd.blocks:
            return own(question, now)
        other = replace(question, run_identity=cyd.orders[0].run_identity, cursor=b"")
        return replace(cyd.follow(other, now), status=bob.status())

    monkeypatch.setattr(bob, "follow", of_cyd)
    outcome = fleet.start()
    assert [line.state for line in outcome.hosts] == ["ended", "failed", "ended"]
    assert "which was not requested" in str(outcome.hosts[1].problem)
    members = fleet.members()
    assert contents(members["cyd"]) == contents(cyd.record())


def test_host_without_a_time_is_asked_at_the_usual_interval(fleet: ScriptedFleet) -> None:
    bob = fleet.hosts[1]
    status = bob.status
    bob.status = lambda: replace(status(), running_s=float("nan"))  # type: ignore[method-assign]
    outcome = fleet.start()
    assert {line.state for line in outcome.hosts} == {"ended"}
    assert whole(fleet)


def test_host_that_sends_only_empty_slices_is_given_up(
    fleet: ScriptedFleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    bob = fleet.hosts[1]
    monkeypatch.setattr(bob, "follow", lambda *_: FollowReply(bob.status(), b"", has_more=True))
    outcome = fleet.start()
    assert [line.state for line in outcome.hosts] == ["ended", "missing", "ended"]
    assert "but sends none" in str(outcome.missing[0].problem)


ADDRESS = "tcp://127.0.0.1:1"


class ClosingClient:
    """A client that has given its scheduler up while somebody waits: it cancels what waits."""

    status = "running"

    async def nthreads(self) -> None:
        raise asyncio.CancelledError

    def submit(self, *_: object, **__: object) -> ClosingClient:
        return self

    async def result(self) -> None:
        raise asyncio.CancelledError

    def release(self) -> None:
        """Nothing is kept."""

    async def close(self) -> None:
        """Nothing is open."""


@pytest.fixture
def transport() -> DaskTransport:
    opened: Any = DaskTransport(ADDRESS)
    opened._client = ClosingClient()
    return opened  # type: ignore[no-any-return]


def test_closed_client_means_an_unreachable_scheduler(transport: DaskTransport) -> None:
    with pytest.raises(Unreachable, match="Dask closed the connection"):
        asyncio.run(transport.workers())


def test_closed_client_gives_a_follower_no_answer(transport: DaskTransport) -> None:
    with pytest.raises(NoAnswer, match="Dask closed the connection"):
        asyncio.run(transport.call("tcp://ada:1", bytes, b"", 1.0))


def test_an_answer_that_is_not_bytes_is_no_answer(transport: DaskTransport) -> None:
    class Talkative(ClosingClient):
        async def result(self) -> Any:
            return {"state": "ended"}

    vars(transport)["_client"] = Talkative()
    with pytest.raises(NoAnswer, match="of the type dict, not bytes"):
        asyncio.run(transport.call("tcp://ada:1", bytes, b"", 1.0))


def test_cancelled_request_ends(transport: DaskTransport) -> None:
    waits = asyncio.Event()

    class Waiting(ClosingClient):
        async def nthreads(self) -> None:
            waits.set()
            await asyncio.Event().wait()

    async def interrupted() -> None:
        vars(transport)["_client"] = Waiting()
        asking = asyncio.create_task(transport.workers())
        await waits.wait()
        asking.cancel()
        await asking

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(interrupted())
