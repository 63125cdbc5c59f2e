"""A fleet: the hosts that one question is asked of, each with a campaign and a coin of its own.

The coordinator's run holds the terms (`FleetPlan`) and no trial. The run of each host says whose
member it is (`FleetMembership`); it is an ordinary campaign in the host's own ledger, and a copy
of it comes to the coordinator's.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct


class HostReference(Struct, frozen=True):
    """One host, as ledgers know it."""

    identity: str
    """32 hexadecimal digits that the host drew by chance when it was first used."""
    name: str
    """What its user calls it: ``--host``, else the name of the machine."""


class File(Struct, frozen=True):
    """A program or an input of a plan, by its content."""

    path: str
    """Relative to the working folder, absolute, or with a placeholder of
    `equipoise.cluster.places`."""
    digest: str | None
    """BLAKE2b of its bytes, 32 hexadecimal digits; ``None`` if the host has no such file."""
    mode: int = 0o644
    is_program: bool = False


class Build(Struct, frozen=True):
    """A level of a study that every host builds itself."""

    level: str
    line: str
    """Line for a shell, with placeholders of `equipoise.cluster.places`; ``{build}`` in it stands
    for the folder of the level."""


class FleetPlan(Struct, frozen=True):
    """Terms of a fleet, declared before the first trial of any host."""

    hosts: tuple[HostReference, ...]
    """The asked hosts, in order; campaigns side by side on one host repeat it."""
    weights: tuple[float, ...]
    """Weight of each in the mean over them; they add up to 1."""
    cluster: str
    """The cluster, as the user typed it."""
    again: str = ""
    """The shell line that runs it again."""
    shipped: tuple[File, ...] = ()
    """Programs and inputs that some hosts got by content."""
    shipped_to: tuple[int, ...] = ()
    """Places of the hosts that got them."""
    builds: tuple[Build, ...] = ()
    """Levels of a study that every host builds itself."""
    build_folders: tuple[str, ...] = ()
    """Folders in which the coordinator's machine built them, for the paths of its own plan."""

    @property
    def is_one_host(self) -> bool:
        """Whether all campaigns are of one host: nothing is then claimed between hosts."""
        return len({host.identity for host in self.hosts}) == 1


class FleetMembership(Struct, frozen=True):
    """Place of a host's campaign in its fleet."""

    fleet: str
    """Identity of the coordinator's run: 32 hexadecimal digits."""
    place: int
    """Place of the host among the asked ones, from 0."""


def names_apart(names: Sequence[str]) -> tuple[str, ...]:
    """Return the names of hosts; of equal ones, each with its number."""
    return tuple(
        f"{name} ({names[: place + 1].count(name)})" if names.count(name) > 1 else name
        for place, name in enumerate(names)
    )
