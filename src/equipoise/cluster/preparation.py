"""Preparing the hosts of a fleet: which may be compared, and what is shipped to them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from msgspec import Struct

from equipoise.cluster import tasks
from equipoise.cluster.equality import (
    ComparableHost,
    compare_hosts,
    shipment_of,
    version_refusal,
)
from equipoise.cluster.messages import (
    Examination,
    Examined,
    File,
    Introduction,
    Received,
    from_bytes,
    to_bytes,
)
from equipoise.cluster.roster import Roster
from equipoise.cluster.transport import NoAnswer, Transport
from equipoise.model.errors import UnusableInput
from equipoise.model.record import CampaignWarning

EXAMINE_S = 60.0
"""Seconds that a host has to say which files it has."""
SHIP_S = 300.0
"""Seconds that one file may take to a host."""
HOST_LEFT_OUT = "host_left_out"
"""Code of the warning that a host was not asked to measure."""


class PreparedHosts(Struct, frozen=True):
    """The hosts that are asked to measure, and why others are not."""

    hosts: tuple[Introduction, ...]
    shipped: tuple[File, ...]
    """Files that some of them got by content."""
    shipped_to: frozenset[str]
    """Identities of the hosts that got them."""
    warnings: tuple[CampaignWarning, ...]


async def prepared_hosts(
    files: tuple[File, ...],
    folder: str,
    introductions: Sequence[Introduction],
    transport: Transport,
    roster: Roster,
    *,
    ship: bool,
) -> PreparedHosts:
    """Compare the files of a plan on every host, ship what is to be shipped, leave out the rest.

    Parameters
    ----------
    files
        Files of the plan as this machine has them.
    folder
        Working folder of the plan on this machine.

    Raises
    ------
    UnusableInput
        No host may be compared, or a file cannot be shipped.
    """
    examined = await asyncio.gather(
        *(_examined(files, one, transport, roster) for one in introductions)
    )
    comparison = compare_hosts(files, introductions, examined, ship=ship)
    if not comparison.comparable:
        first = comparison.refused[0]
        raise UnusableInput(f"no host can be compared: {first.what}", hint=first.hint)
    receivers = [one for one in comparison.comparable if one.shipped]
    await asyncio.gather(*(_ship(folder, one, transport, roster) for one in receivers))
    return PreparedHosts(
        hosts=tuple(one.introduction for one in comparison.comparable),
        shipped=receivers[0].shipped if receivers else (),
        shipped_to=frozenset(one.introduction.host.identity for one in receivers),
        warnings=tuple(
            CampaignWarning(HOST_LEFT_OUT, f"a host was left out: {one.what}", one.hint)
            for one in comparison.refused
        ),
    )


async def _examined(
    files: tuple[File, ...], introduction: Introduction, transport: Transport, roster: Roster
) -> Examined | None:
    worker = roster.worker_of(introduction.host.identity)
    if worker is None or version_refusal(introduction) is not None:
        return None
    try:
        request = to_bytes(Examination(files))
        return from_bytes(await transport.call(worker, tasks.examine, request, EXAMINE_S), Examined)
    except NoAnswer:
        return None


async def _ship(
    folder: str, receiver: ComparableHost, transport: Transport, roster: Roster
) -> None:
    host = receiver.introduction.host
    for file in receiver.shipped:
        shipment = to_bytes(shipment_of(file, folder))
        worker = roster.worker_of(host.identity)
        try:
            if worker is None:
                raise NoAnswer("no worker of it is connected")
            # A host that cannot keep it says why.
            from_bytes(await transport.call(worker, tasks.receive, shipment, SHIP_S), Received)
        except NoAnswer as error:
            raise UnusableInput(
                f"{file.path} could not be shipped to {host.name}: {error}",
                hint=f"look into the log of its worker, or copy the file to {host.name} yourself",
            ) from error
