"""The data classes of a fleet: the terms of its plan, and its result document.

Each host of a fleet has its own campaign and its own coin. The coordinator is the process that
starts and follows the hosts; its run has these terms and no trial. The run of each host is an
ordinary campaign in the host's own ledger, and the coordinator's ledger gets a copy.

The asked hosts are all hosts of the plan, even if a host delivered nothing. A ratio is the cost of
the candidate over the cost of the baseline.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from msgspec import Struct
from msgspec.structs import replace

from equipoise.cluster.messages import Build, File
from equipoise.model.errors import UnusableInput
from equipoise.model.host import HOST_FACTS, HostReference
from equipoise.model.inverse_ratios import inverse_ratio, with_inverse_ratio
from equipoise.model.kinds import TAG, Terms
from equipoise.model.quantities import Interval, listed
from equipoise.model.result import Comparison, ResultDocument, TrialColumn

if TYPE_CHECKING:
    from equipoise.model.record import RunRecord


class FleetPlan(Struct, Terms, frozen=True, tag_field=TAG, tag="fleet"):
    """Terms of a fleet, declared before the first trial of any host."""

    noun: ClassVar[str] = "fleet"
    has_members: ClassVar[bool] = True
    hosts: tuple[HostReference, ...]
    """The asked hosts. A host with several campaigns is repeated."""
    weights: tuple[float, ...]
    """Weight of each host in the mean over the hosts; the sum is 1."""
    cluster: str
    """The cluster, as the user typed it."""
    shipped: tuple[File, ...] = ()
    """Programs and inputs that were sent to some hosts."""
    shipped_to: tuple[int, ...] = ()
    """Positions in ``hosts``, from 0, of the hosts that got ``shipped``."""
    builds: tuple[Build, ...] = ()
    """Levels of a study that every host builds itself."""
    build_folders: tuple[str, ...] = ()
    """Folders in which the coordinator's machine built the levels of ``builds``."""

    @property
    def is_one_host(self) -> bool:
        """Whether all campaigns ran on one host, so that nothing is claimed between hosts."""
        return len({host.identity for host in self.hosts}) == 1

    @property
    def member_hosts(self) -> tuple[HostReference, ...]:
        """The asked hosts."""
        return self.hosts

    def check_explainable(self, record: RunRecord) -> None:
        """Raise `UnusableInput`, because only the runs of the hosts have trials."""
        member_ids = listed([member.id for member in record.members])
        raise UnusableInput(
            f"run {record.id} is a fleet, and only the runs of single hosts can be explained",
            hint=f"explain one of these runs, on its host: {member_ids}"
            if member_ids
            else f"fetch the runs of the hosts first: equipoise resume {record.id}",
        )


INTEGER_FACTS = frozenset({"cpus", "memory_bytes"})
DeliveryState = Literal["ended", "stopped early", "not ended", "no block", "absent"]
"""State of a host's campaign. ``ended``: by its own rules. ``stopped early``: by an interrupt or a
failed condition. ``not ended``: more blocks may arrive. ``no block``: no block is complete.
``absent``: nothing has arrived from the host."""


class HostEffect(Struct, frozen=True):
    """One comparison on one of the asked hosts."""

    host: str
    ratio: float | None
    ratio_ci: Interval
    """Confidence sequence; the sequences of all hosts hold together."""
    blocks: int
    environment: dict[str, Any]
    """Facts of the host that may explain why its result differs."""
    significance_level: float
    """1 minus the coverage of ``ratio_ci``."""
    weight: float
    place: int
    """Position among the asked hosts, from 0; two hosts may have the same name."""


class FleetAnswer(Struct, frozen=True, kw_only=True):
    """One question about a fleet, and its answer."""

    question: str
    answer: str
    """The answer, or the reason why nothing can be claimed."""
    unknown_because: str | None = None
    """Reason why nothing can be claimed; null if the answer is a claim."""


class FleetTest(FleetAnswer, frozen=True, kw_only=True):
    """The test of the hypothesis that no asked host shows a difference."""

    e_value: float | None
    """Evidence against "candidate and baseline cost the same on each asked host"."""
    rejected: bool
    """Whether the e-value is at least 1 over the alpha of the comparison."""


class FleetInterval(FleetAnswer, frozen=True, kw_only=True):
    """A question whose answer is a ratio with its interval."""

    ratio: float | None = None
    ratio_ci: Interval = (None, None)
    chance: float | None = None
    """Minimum chance that the interval contains the true value; null if nothing is claimed."""
    hosts: tuple[str, ...] = ()
    """Names of the hosts from which the interval is computed."""


class HostDifference(Struct, frozen=True):
    """One host compared with the mean of the other asked hosts."""

    host: str
    ratio: float | None
    """Ratio of the host over the mean ratio of the other hosts."""
    ratio_ci: Interval
    differs: bool
    """Whether the intervals of the host and of the mean of the other hosts do not overlap."""


class FleetDifferences(FleetAnswer, frozen=True, kw_only=True):
    """The hosts that differ from the others."""

    hosts: tuple[HostDifference, ...] = ()

    @property
    def differing(self) -> tuple[str, ...]:
        """Names of the hosts that differ from the mean of the others."""
        return tuple(host.host for host in self.hosts if host.differs)


class FleetVariances(FleetAnswer, frozen=True, kw_only=True):
    """The variance of the log ratio between hosts, and between the blocks of a host."""

    between_hosts: float | None = None
    """Variance between hosts; at least 0."""
    between_hosts_ci: Interval = (None, None)
    between_blocks: float | None = None
    """Variance between the blocks of one host."""


class PropertyValue(Struct, frozen=True):
    """The hosts that have one value of a property."""

    value: str
    hosts: tuple[str, ...]
    ratio: float | None
    """Geometric mean of the ratios of these hosts, with equal weights and without an interval."""


class PropertyEffect(Struct, frozen=True):
    """A property by which the hosts differ, with the ratio for each value; not a claim."""

    name: str
    """Key of the environment: ``kernel``, ``cpu_model``, ``hypervisor`` …"""
    values: tuple[PropertyValue, ...]
    spread: float | None
    """Largest of the ratios in ``values`` over the smallest; at least 1."""


class FleetAnswers(Struct, frozen=True):
    """The answers over the hosts of a fleet, for one comparison."""

    no_difference: FleetTest
    """Whether any asked host shows a difference."""
    mean: FleetInterval
    """Mean over all asked hosts, with their weights."""
    mean_of_remaining: FleetInterval | None
    """Mean over the hosts that were not lost; null if no host was lost."""
    new_host: FleetInterval
    """Prediction for a new host, if the asked hosts and the new host are exchangeable (alike)."""
    median_of_hosts: FleetInterval
    """Median of the population from which the asked hosts were drawn."""
    new_host_if_normal: FleetInterval
    """Prediction for a new host, if the ratios of hosts are log-normal."""
    differences: FleetDifferences
    """Answer to the question which hosts differ from the other hosts."""
    variances: FleetVariances
    by_property: tuple[PropertyEffect, ...] = ()
    by_property_note: str = ""
    """How strong the evidence of ``by_property`` is, as a sentence; empty without properties."""

    @property
    def all(self) -> tuple[FleetAnswer, ...]:
        """Answers in reading order."""
        return (
            self.mean,
            *(() if self.mean_of_remaining is None else (self.mean_of_remaining,)),
            self.no_difference,
            self.differences,
            self.new_host,
            self.median_of_hosts,
            self.new_host_if_normal,
            self.variances,
        )


class HostCondition(Struct, frozen=True):
    """One condition on one host."""

    name: str
    metric: str
    """Metric of the verdict; without a comparison, the first metric that the condition reports."""
    trials: int
    failures: int
    median: float | None
    median_ci: Interval


class FleetHost(Struct, frozen=True):
    """One asked host, and the state of its campaign."""

    host: str
    identity: str
    """Text that identifies the host."""
    place: int
    """Position among the asked hosts, from 0."""
    state: DeliveryState
    run: str | None
    """Run id of the host's campaign in this ledger; null if nothing has arrived from the host."""
    blocks: int
    trials: int
    stopped_because: str | None
    environment: dict[str, Any]
    """Environment of the campaign's first segment."""
    conditions: tuple[HostCondition, ...] = ()
    control_excludes_one: bool | None = None
    """Whether the control excludes "no difference"; null without a control."""


class FleetResult(Struct, frozen=True):
    """The hosts of a fleet, with their states."""

    cluster: str
    is_one_host: bool
    hosts: tuple[FleetHost, ...]
    metric: str
    summary: str


class FleetComparison(Comparison, frozen=True, kw_only=True):
    """One candidate against its baseline over the asked hosts."""

    hosts: tuple[HostEffect, ...] = ()
    """The asked hosts with a block, in the order of the plan."""
    fleet: FleetAnswers | None = None

    def additional_values(self) -> dict[str, Any]:
        """Return the hosts and the answers with ratios of values, not of costs."""
        return {
            "hosts": tuple(map(with_inverse_ratio, self.hosts)),
            "fleet": self.fleet and _answers_with_value_ratios(self.fleet),
        }


def _answers_with_value_ratios(answers: FleetAnswers) -> FleetAnswers:
    """Return the answers with ratios of values, which the sentences already have."""
    differences = answers.differences
    return replace(
        answers,
        mean=with_inverse_ratio(answers.mean),
        mean_of_remaining=answers.mean_of_remaining
        and with_inverse_ratio(answers.mean_of_remaining),
        new_host=with_inverse_ratio(answers.new_host),
        median_of_hosts=with_inverse_ratio(answers.median_of_hosts),
        new_host_if_normal=with_inverse_ratio(answers.new_host_if_normal),
        differences=replace(differences, hosts=tuple(map(with_inverse_ratio, differences.hosts))),
        by_property=tuple(map(_property_with_value_ratios, answers.by_property)),
    )


def _property_with_value_ratios(effect: PropertyEffect) -> PropertyEffect:
    values = (replace(value, ratio=inverse_ratio(value.ratio)) for value in effect.values)
    return replace(effect, values=tuple(values))


class FleetDocument(ResultDocument, frozen=True, kw_only=True, tag="fleet"):
    """The result document of a coordinator's run."""

    has_one_order: ClassVar[bool] = False
    measured_value_fields: ClassVar[Mapping[str, str]] = MappingProxyType(
        {"control": "condition", "fleet": "hosts"}
    )
    comparisons: tuple[FleetComparison, ...]
    fleet: FleetResult

    @property
    def kind_metric(self) -> str:
        """The metric of the verdict."""
        return self.fleet.metric

    def check_one_host(self, what: str) -> None:
        """Raise `UnusableInput`, because a fleet has the trials of several hosts."""
        runs = [f"{host.run} ({host.host})" for host in self.fleet.hosts if host.run is not None]
        raise UnusableInput(
            f"{what} is about the trials of one host, but this run is a fleet",
            hint=f"name the run of one host: {listed(runs)}"
            if runs
            else "wait until a host has delivered its trials",
        )

    def trial_columns(self) -> Iterator[TrialColumn]:
        """Yield each trial's host, facts of the host, and the cost over the baseline's cost."""
        rows, environments = self.trials, {host.host: host.environment for host in self.fleet.hosts}
        yield "host", "text", tuple(row.host for row in rows)
        for fact in HOST_FACTS:
            values = (environments.get(row.host or "", {}).get(fact) for row in rows)
            cells = [value if isinstance(value, str | int) else None for value in values]
            if any(cell is not None for cell in cells):
                yield f"host_{fact}", "integer" if fact in INTEGER_FACTS else "text", tuple(cells)
        yield "ratio_to_baseline", "number", tuple(_ratios_to_baseline(self))


def _ratios_to_baseline(document: FleetDocument) -> Iterator[float | None]:
    """Yield, for each trial, the cost over the cost of the block's baseline, or ``None``."""
    metric = document.primary_metric
    baselines = {
        comparison.candidate: comparison.baseline
        for comparison in document.comparisons
        if comparison.metric == metric
    }
    values = {
        (row.host, row.block, row.condition): row.value_of(metric)
        for row in document.trials
        if row.analysed
    }
    for row in document.trials:
        baseline_value = values.get((row.host, row.block, baselines.get(row.condition, "")))
        own_value = values.get((row.host, row.block, row.condition)) if row.analysed else None
        numerator, denominator = own_value, baseline_value
        if metric in document.more_is_better:
            # The cost is then the inverse of the value.
            numerator, denominator = baseline_value, own_value
        yield numerator / denominator if numerator is not None and denominator else None
