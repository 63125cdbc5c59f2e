"""Orders of small campaigns for this host, and the patience to see them end."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

import pytest
from msgspec.structs import replace

from equipoise.campaign.plans import compare_plan
from equipoise.cluster import tasks
from equipoise.cluster.files import portable_plan
from equipoise.cluster.folders import CampaignFolder
from equipoise.cluster.messages import (
    FollowReply,
    FollowRequest,
    HaltRequest,
    Order,
    Status,
    from_bytes,
    to_bytes,
)
from equipoise.design.commands import CompareOptions
from equipoise.design.limits import CampaignLimits
from equipoise.model.plan import Membership, Plan

T = TypeVar("T")
PATIENCE_S = 120.0
"""Seconds that anything may take on a busy machine."""


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A host with folders of its own: state, ledger and working folder, which is returned.

    Campaigns that still run at the end are halted and waited for.
    """
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("EQUIPOISE_LEDGER", str(tmp_path / "ledger.db"))
    monkeypatch.chdir(folder)
    yield folder
    for campaign in (tmp_path / "state" / "equipoise" / "fleets").glob("*"):
        CampaignFolder(campaign).halt()
        until(partial(_is_over, CampaignFolder(campaign)))


def _is_over(folder: CampaignFolder) -> bool | None:
    return None if folder.is_alive() else True


def plan_for(*commands: str, blocks: int = 3) -> Plan:
    """The plan of a campaign over commands, made in the current folder, that no verdict ends."""
    limits = CampaignLimits(
        blocks=blocks, min_blocks=blocks, min_seconds=0.0, budget=100.0, warmup=0, seed=5
    )
    plan, _ = compare_plan(CompareOptions(commands=commands or ("true", "true"), limits=limits))
    return plan


def order_for(plan: Plan, *, place: int = 0, builds: Sequence[str] = ()) -> Order:
    """An order of a new fleet, of a plan that this machine made with folders of its own builds."""
    fleet = secrets.token_hex(16)
    member = replace(plan, membership=Membership(fleet, place))
    return Order(
        fleet_identity=fleet,
        host_index=place,
        segment=1,
        plan=portable_plan(member, builds),
        run_identity=f"{int(fleet, 16) ^ (place + 1):032x}",
        allow_concurrent=True,
    )


def begun(order: Order) -> Status:
    """The status after a campaign was ordered."""
    return from_bytes(tasks.begin(to_bytes(order)), Status)


def halted(order: Order) -> Status:
    """The status after a campaign was halted."""
    return from_bytes(
        tasks.halt(to_bytes(HaltRequest(order.fleet_identity, order.host_index))), Status
    )


def followed(order: Order, after: bytes = b"") -> FollowReply:
    """How the campaign of an order goes, and what it recorded after a cursor."""
    question = FollowRequest(order.fleet_identity, order.host_index, order.run_identity, after)
    return from_bytes(tasks.follow(to_bytes(question)), FollowReply)


def status_at_end(order: Order) -> Status:
    """The status once nothing goes on any more."""

    def ended() -> Status | None:
        status = followed(order).status
        return None if status.state in ("waiting", "running") else status

    return until(ended)


def until(answer: Callable[[], T | None]) -> T:
    """The first answer; the test fails if there is none for long."""
    deadline = time.monotonic() + PATIENCE_S
    while (found := answer()) is None:
        assert time.monotonic() < deadline, "nothing came of it"
        time.sleep(0.02)
    return found
