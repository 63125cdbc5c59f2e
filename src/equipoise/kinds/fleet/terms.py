"""The terms of a fleet: the hosts that one question is asked of.

Each host has a campaign and a coin of its own. The coordinator's run holds these terms and no
trial. The run of each host says whose part it is (`equipoise.model.plan.Membership`); it is an
ordinary campaign in the host's own ledger, and a copy of it comes to the coordinator's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from msgspec import Struct

from equipoise.cluster.messages import Build, File
from equipoise.model.errors import UnusableInput
from equipoise.model.host import HostReference
from equipoise.model.kinds import TAG, Terms
from equipoise.model.quantities import listed

if TYPE_CHECKING:
    from equipoise.model.record import RunRecord


class FleetPlan(Struct, Terms, frozen=True, tag_field=TAG, tag="fleet"):
    """Terms of a fleet, declared before the first trial of any host."""

    noun: ClassVar[str] = "fleet"
    has_members: ClassVar[bool] = True
    hosts: tuple[HostReference, ...]
    """The asked hosts, in order; campaigns side by side on one host repeat it."""
    weights: tuple[float, ...]
    """Weight of each in the mean over them; they add up to 1."""
    cluster: str
    """The cluster, as the user typed it."""
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

    @property
    def member_hosts(self) -> tuple[HostReference, ...]:
        """The asked hosts."""
        return self.hosts

    @property
    def options(self) -> tuple[str, ...]:
        """The option that names the cluster."""
        return ("--cluster", self.cluster)

    def check_explainable(self, record: RunRecord) -> None:
        """Refuse to explain: the coordinator runs nothing."""
        members = listed([one.id for one in record.members]) or "none has come yet"
        raise UnusableInput(
            f"run {record.id} is a fleet's: none of its trials was run by the coordinator",
            hint=f"explain the campaign of one host, on that host: {members}",
        )


def names_apart(names: Sequence[str]) -> tuple[str, ...]:
    """Return the names of hosts; of equal ones, each with its number."""
    return tuple(
        f"{name} ({names[: place + 1].count(name)})" if names.count(name) > 1 else name
        for place, name in enumerate(names)
    )
