"""Terms of a fleet's campaign: the plan of each host, derived from that of the coordinator.

Every host has a coin of its own: its seed is a digest of the campaign's seed, the host and its
place. The identity of its run is a digest of the fleet's and its place, so that the same order
never begins a second run.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from hashlib import blake2b

from msgspec.structs import replace

from equipoise.design.coin import LARGEST_SEED
from equipoise.model.fleet import File, FleetMembership, FleetPlan, HostReference
from equipoise.model.plan import Plan

_IDENTITY_BYTES = 16
_SEED_BYTES = 8


def fleet_plan(
    hosts: Sequence[HostReference],
    cluster: str,
    shipped: tuple[File, ...] = (),
    shipped_to: Collection[str] = (),
) -> FleetPlan:
    """Return the terms of a fleet in which every host has the same weight.

    Parameters
    ----------
    cluster
        The cluster as the user typed it.
    shipped
        Files that some hosts got by content.
    shipped_to
        Identities of these hosts.
    """
    return FleetPlan(
        hosts=tuple(hosts),
        weights=(1.0 / len(hosts),) * len(hosts),
        cluster=cluster,
        shipped=shipped,
        shipped_to=tuple(place for place, host in enumerate(hosts) if host.identity in shipped_to),
    )


def member_plan(plan: Plan, fleet: str, place: int) -> Plan:
    """Return the plan of the host at a place of a fleet; commands run in the host's own folder.

    Parameters
    ----------
    plan
        The coordinator's plan, which holds the terms of the fleet.
    fleet
        Identity of the coordinator's run.
    """
    terms = plan.fleet
    assert terms is not None, "only a coordinator's plan has members"
    return replace(
        plan,
        seed=host_seed(plan.seed, terms.hosts[place], place),
        fleet=None,
        membership=FleetMembership(fleet, place),
        measure=replace(plan.measure, working_folder=""),
    )


def host_seed(seed: int, host: HostReference, place: int) -> int:
    """Return the seed of a host's coin."""
    text = f"equipoise seed of a host: {seed} {host.identity} {place}"
    digest = blake2b(text.encode("ascii"), digest_size=_SEED_BYTES).digest()
    return int.from_bytes(digest, "big") & LARGEST_SEED


def member_identity(fleet: str, place: int) -> str:
    """Return the identity of a host's run: 32 hexadecimal digits."""
    text = f"equipoise run of a host: {fleet} {place}"
    return blake2b(text.encode("ascii"), digest_size=_IDENTITY_BYTES).hexdigest()
