"""A fleet: the hosts that one question is asked of, what they found, and what holds over them.

Each host has a campaign and a coin of its own. The coordinator's run holds the terms (`FleetPlan`)
and no trial. The run of each host says whose member it is (`FleetMembership`); it is an ordinary
campaign in the host's own ledger, and a copy of it comes to the coordinator's.

Each answer stands with the question that it answers, in plain words, because the questions are
different ones: a mean near 1 does not say that no host differs. Ratios are of a cost, candidate
over baseline.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import Any, Literal

from msgspec import Struct

from equipoise.model.errors import UnusableInput
from equipoise.model.quantities import Interval, listed

_IDENTITY_BYTES = 16


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


def member_identity(fleet: str, place: int) -> str:
    """Return the identity of the run of the host at a place of a fleet: 32 hexadecimal digits."""
    text = f"equipoise run of a host: {fleet} {place}"
    return blake2b(text.encode("ascii"), digest_size=_IDENTITY_BYTES).hexdigest()


def names_apart(names: Sequence[str]) -> tuple[str, ...]:
    """Return the names of hosts; of equal ones, each with its number."""
    return tuple(
        f"{name} ({names[: place + 1].count(name)})" if names.count(name) > 1 else name
        for place, name in enumerate(names)
    )


HOST_FACTS = (
    "kernel",
    "cpu_model",
    "hypervisor",
    "memory_bytes",
    "governor",
    "cpus",
    "machine",
    "boot_id",
    "equipoise",
)
"""Facts of a host's environment that stand beside its effect and its trials."""
HostState = Literal["ended", "left", "behind", "no block", "absent"]
"""``ended``: by its own rules. ``left``: it was interrupted, or a condition failed. ``behind``: it
measures still, or the connection broke; more may come. ``no block``: no block of it is complete.
``absent``: nothing of it has come."""


class HostEffect(Struct, frozen=True):
    """One comparison on one of the asked hosts."""

    host: str
    """Name of the host."""
    ratio: float | None
    ratio_ci: Interval
    """Confidence sequence at ``level``: those of all hosts hold together."""
    blocks: int
    environment: dict[str, Any]
    """Facts of the host that results may differ by."""
    level: float
    """1 minus the coverage of ``ratio_ci``; all hosts share the alpha of the comparison."""
    weight: float
    """Weight in the mean over the asked hosts."""
    place: int
    """Place among the asked hosts, from 0: two hosts may have one name."""


class FleetAnswer(Struct, frozen=True, kw_only=True):
    """One question about a fleet, and its answer."""

    question: str
    """The question in plain words; for a test, its null hypothesis."""
    answer: str
    """One sentence; where nothing can be claimed, the reason."""
    unknown_because: str | None = None
    """Why nothing can be claimed; null where something is."""


class FleetTest(FleetAnswer, frozen=True, kw_only=True):
    """Whether no asked host differs."""

    e_value: float | None
    """Evidence against "the two take the same on each asked host"."""
    rejected: bool
    """Whether the e-value is at least 1 over the alpha of the comparison."""


class FleetInterval(FleetAnswer, frozen=True, kw_only=True):
    """An interval of a ratio, and what lies in it."""

    ratio: float | None = None
    ratio_ci: Interval = (None, None)
    chance: float | None = None
    """Least chance that the interval holds what it is about; null where nothing is claimed."""
    hosts: tuple[str, ...] = ()
    """Names of the hosts that it rests on."""


class HostDifference(Struct, frozen=True):
    """One host against the mean of the other asked hosts."""

    host: str
    ratio: float | None
    """Ratio of the host over that of the others' mean."""
    ratio_ci: Interval
    differs: bool
    """Whether the two sequences lie apart."""


class FleetDifferences(FleetAnswer, frozen=True, kw_only=True):
    """Which hosts are otherwise than the others."""

    hosts: tuple[HostDifference, ...] = ()

    @property
    def differing(self) -> tuple[str, ...]:
        """Names of the hosts that differ from the mean of the others."""
        return tuple(one.host for one in self.hosts if one.differs)


class FleetVariances(FleetAnswer, frozen=True, kw_only=True):
    """How far hosts differ, beside what blocks of one host differ by: logarithms of the ratio."""

    between: float | None = None
    """Variance between hosts: what blocks vary by is taken out; 0 at the least."""
    between_ci: Interval = (None, None)
    within: float | None = None
    """Variance of a block of one host."""


class PropertyValue(Struct, frozen=True):
    """The hosts that have one value of a property."""

    value: str
    hosts: tuple[str, ...]
    ratio: float | None
    """e to the mean of the log ratios of these hosts, each alike; it has no interval."""


class PropertyEffect(Struct, frozen=True):
    """One property that the hosts differ by, and the ratio at each of its values: description."""

    name: str
    """Key of the environment: ``kernel``, ``cpu_model``, ``virtualization`` …"""
    values: tuple[PropertyValue, ...]
    spread: float | None
    """Largest ratio of two values over each other; at least 1."""


class FleetAnswers(Struct, frozen=True):
    """What holds over the hosts of a fleet, for one comparison."""

    no_difference: FleetTest
    mean: FleetInterval
    """Over all asked hosts, by their weights."""
    stayed: FleetInterval | None
    """Mean over the hosts that stayed, which is another question; null where no host left."""
    new_host: FleetInterval
    median: FleetInterval
    """Median of the population that the asked hosts were drawn from."""
    normal: FleetInterval
    """Prediction for a new host if the hosts' ratios are log-normal, which nothing here shows."""
    otherwise: FleetDifferences
    variances: FleetVariances
    by_property: tuple[PropertyEffect, ...] = ()
    """Properties that the hosts differ by; empty where they differ by none, or on one host."""
    by_property_note: str = ""
    """What these ratios are worth, in a sentence; empty where there are none."""

    @property
    def all(self) -> tuple[FleetAnswer, ...]:
        """Answers in the order in which they are read."""
        return (
            self.mean,
            *(() if self.stayed is None else (self.stayed,)),
            self.no_difference,
            self.otherwise,
            self.new_host,
            self.median,
            self.normal,
            self.variances,
        )


class HostCondition(Struct, frozen=True):
    """One condition on one host."""

    name: str
    metric: str
    """Metric that decides; where nothing is compared, the first that the condition reports."""
    trials: int
    failures: int
    median: float | None
    median_ci: Interval


class FleetHost(Struct, frozen=True):
    """One asked host, and how far its campaign came."""

    host: str
    """Name of the host."""
    identity: str
    place: int
    """Place among the asked hosts, from 0."""
    state: HostState
    run: str | None
    """Run id of its campaign in this ledger; null if nothing of it has come."""
    blocks: int
    trials: int
    stopped_because: str | None
    environment: dict[str, Any]
    """Environment of its first segment."""
    conditions: tuple[HostCondition, ...] = ()
    control_excludes_one: bool | None = None
    """Whether the interval of the control leaves out "no difference"; null without a control."""


class FleetResult(Struct, frozen=True):
    """A fleet: its hosts, and by what they differ."""

    cluster: str
    """The cluster, as the user typed it."""
    one_host: bool
    """Whether all campaigns are of one host: nothing is then claimed between hosts."""
    hosts: tuple[FleetHost, ...]
    """Asked hosts, in the order of the plan."""
    metric: str
    summary: str
    again: str
    """The shell line that runs it again."""


def check_one_host(fleet: FleetResult | None, what: str) -> None:
    """Raise `UnusableInput` for the result of a fleet where one of a single host is needed.

    ``what`` needs it, at the begin of a sentence: ``hyperfine's form``.
    """
    if fleet is None:
        return
    runs = [f"{host.run} ({host.host})" for host in fleet.hosts if host.run is not None]
    raise UnusableInput(
        f"{what} is about the trials of one host, and this run is a fleet's",
        hint=f"name the run of one host: {listed(runs)}" if runs else "no host has delivered yet",
    )
