"""Records of fleets, by hand: a coordinator's run with the campaigns of its hosts, no cluster."""

from __future__ import annotations

import hashlib
import math
import random
from collections.abc import Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from equipoise.model.fleet import FleetMembership, FleetPlan, HostReference
from equipoise.model.plan import Plan
from equipoise.model.record import Draw, RunRecord, Segment, Trial
from tests.plans import plan_of, trial_of

STARTED = 1_772_359_200.0
COMMAND = "equipoise compare --cluster tcp://10.0.0.1:8786 a b"


class ScriptedHost(Struct, frozen=True):
    """One asked host, and what its campaign is to be."""

    name: str
    effect: float = 0.0
    """Log ratio of the last condition over the others."""
    blocks: int = 40
    stopped_because: str | None = "verdict"
    """``None``: the copy is behind, or the host measures still."""
    environment: dict[str, Any] = {}
    """Facts beside those that all hosts have."""
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
        again=COMMAND,
    )
    identity = identity_of("fleet")
    members = tuple(
        replace(
            campaign_of(
                host,
                replace(
                    plan,
                    seed=plan.seed + 1000 + place,
                    membership=FleetMembership(identity, place),
                ),
                noise=noise,
            ),
            id=f"20260301-1000{place:02d}-ab{place:02d}",
            identity=identity_of(f"member {place}"),
            host=reference,
        )
        for place, (host, reference) in enumerate(zip(hosts, references, strict=True))
        if not host.is_absent
    )
    ended = STARTED + 120.0
    return RunRecord(
        id="20260301-100000-f1ee",
        plan=replace(plan, fleet=fleet),
        started_at=STARTED,
        segments=(Segment(STARTED, {"equipoise": "0.2.0"}, ended, "every host ended"),),
        draws=(),
        trials=(),
        notices=(),
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
        notices=(),
    )
