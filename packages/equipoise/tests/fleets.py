"""Records of fleets, by hand: a coordinator's run with the campaigns of its hosts, no cluster."""

from __future__ import annotations

import hashlib
import math
import random
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest import mock

from msgspec import Struct
from msgspec.structs import replace

from equipoise.kinds.fleet.terms import FleetPlan
from equipoise.ledger import open_for_reading, open_for_writing
from equipoise.ledger.store import FIRST_SEGMENT
from equipoise.model.host import HostReference
from equipoise.model.plan import Membership, Plan, member_identity
from equipoise.model.record import Draw, RunRecord, Segment, Trial
from packages.equipoise.tests.plans import plan_of, trial_of

STARTED = 1_772_359_200.0
COMMAND = ("equipoise", "compare", "--cluster", "tcp://10.0.0.1:8786", "a", "b")


class ScriptedHost(Struct, frozen=True):
    """One asked host, and what its campaign is to be."""

    name: str
    effect: float = 0.0
    """Log ratio of the last condition over the others."""
    blocks: int = 40
    stopped_because: str | None = "verdict"
    """``None``: the copy is behind, or the host measures still."""
    environment: dict[str, Any] = {}
    """Facts in addition to those that all hosts have."""
    is_absent: bool = False
    """Whether nothing of it has come."""
    identity: str = ""


THREE = (
    ScriptedHost("ada", 0.05, environment={"kernel": "6.1.0", "cpu_model": "Example CPU A"}),
    ScriptedHost("bea", 0.06, environment={"kernel": "6.1.0", "cpu_model": "Example CPU B"}),
    ScriptedHost("cleo", 0.04, environment={"kernel": "5.10.0", "cpu_model": "Example CPU A"}),
)
"""Hosts on which the candidate is about 5 % slower."""


def identity_of(text: str) -> str:
    """32 hexadecimal digits."""
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def fleet_record(
    hosts: Sequence[ScriptedHost] = THREE, *, plan: Plan | None = None, noise: float = 0.01
) -> RunRecord:
    """The coordinator's run with the campaigns of those hosts that delivered.

    Parameters
    ----------
    plan
        Of the coordinator, without a fleet; two conditions by default.
    noise
        Standard deviation of the logarithm of a trial's time.
    """
    plan = plan or plan_of()
    references = tuple(
        HostReference(host.identity or identity_of(host.name), host.name) for host in hosts
    )
    fleet = FleetPlan(
        hosts=references,
        weights=tuple(1.0 / len(hosts) for _ in hosts),
        cluster="tcp://10.0.0.1:8786",
    )
    identity = identity_of("fleet")
    members = tuple(
        replace(
            campaign_of(
                host,
                replace(
                    plan,
                    seed=plan.seed + 1000 + place,
                    membership=Membership(identity, place),
                ),
                noise=noise,
            ),
            id=f"20260301-1000{place:02d}-ab{place:02d}",
            started_at=STARTED + 1.0 + place,
            identity=member_identity(identity, place),
            host=reference,
        )
        for place, (host, reference) in enumerate(zip(hosts, references, strict=True))
        if not host.is_absent
    )
    ended = STARTED + 120.0
    return RunRecord(
        id="20260301-100000-f1ee",
        plan=replace(plan, terms=fleet, command_line=COMMAND),
        started_at=STARTED,
        segments=(Segment(STARTED, {"equipoise": "0.2.0"}, ended, "every host ended"),),
        draws=(),
        trials=(),
        warnings=(),
        identity=identity,
        members=members,
    )


def campaign_of(host: ScriptedHost, plan: Plan, *, noise: float = 0.01) -> RunRecord:
    """The campaign of one host."""
    generator = random.Random(plan.seed)
    count = len(plan.conditions)
    draws: list[Draw] = []
    trials: list[Trial] = []
    for block in range(1, host.blocks + 1):
        order = generator.sample(range(count), count)
        draw = Draw("measured", block, tuple(order), 0)
        draws.append(draw)
        for place, condition in enumerate(order):
            effect = host.effect if condition == count - 1 else 0.0
            wall_s = 0.02 * math.exp(effect + generator.gauss(0.0, noise))
            trial = trial_of(draw, place, wall_s)
            trials.append(replace(trial, started_at=STARTED + 0.05 * len(trials)))
    ended = None if host.stopped_because is None else STARTED + 60.0
    environment = {
        "equipoise": "0.2.0",
        "system": "Linux",
        "kernel": "6.1.0",
        "cpu_model": "Example CPU A",
        "cpus": 8,
        "memory_bytes": 16_000_000_000,
        "hypervisor": "none",
        "governor": "performance",
        "boot_id": identity_of(f"boot of {host.name}"),
        **host.environment,
    }
    return RunRecord(
        id="20260301-100000-ab12",
        plan=plan,
        started_at=STARTED,
        segments=(Segment(STARTED, environment, ended, host.stopped_because),),
        draws=tuple(draws),
        trials=tuple(trials),
        warnings=(),
    )


def record_fleet(path: Path, record: RunRecord) -> str:
    """Write a fleet into a ledger as its coordinator has it; return the id of its run."""
    _record(path, record, HostReference(identity_of("coordinator"), "coordinator"))
    for member in record.members:
        assert member.host is not None
        _record(path, member, member.host)
    with open_for_reading(path) as ledger:
        run = ledger.id_of(record.identity)
    assert run is not None
    return run


def _record(path: Path, record: RunRecord, host: HostReference) -> None:
    with (
        mock.patch("equipoise.ledger.store.this_host", lambda name: host),
        open_for_writing(path, durable=False) as ledger,
    ):
        first, *_ = record.segments
        run = ledger.begin_run(
            record.plan,
            first.environment,
            record.started_at,
            identity=bytes.fromhex(record.identity),
        )
        for draw in record.draws:
            ledger.record_draw(run, draw)
        for trial in record.trials:
            ledger.record_trial(run, trial)
        if first.ended_at is not None and first.stopped_because is not None:
            ledger.end_segment(run, FIRST_SEGMENT, first.ended_at, first.stopped_because)


if __name__ == "__main__":
    print(record_fleet(Path(sys.argv[1]).absolute(), fleet_record()))
