"""Combine the campaigns of the hosts of a fleet into one result.

This module reads the records of the hosts, and warns of missing campaigns.
`equipoise.stats.hosts` makes the claims over hosts.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from equipoise.analysis.comparisons import (
    ESTIMAND,
    Blocks,
    ContrastCosts,
    control_comparison,
    costs_of_contrasts,
)
from equipoise.analysis.kind import AnalysisKind
from equipoise.analysis.redaction import hide_variables
from equipoise.analysis.result import increasing_metrics, run_info, trial_rows
from equipoise.analysis.warnings import warnings_of
from equipoise.analysis.wording import verdict_sentence
from equipoise.campaign.blocks import complete_blocks, values_by_metric
from equipoise.design.command_line import shell_line
from equipoise.kinds.fleet.answers import describe_answers
from equipoise.kinds.fleet.terms import (
    DeliveryState,
    FleetComparison,
    FleetDocument,
    FleetHost,
    FleetPlan,
    FleetResult,
    HostCondition,
    HostEffect,
)
from equipoise.model.errors import UnusableInput
from equipoise.model.host import HOST_FACTS, distinct_names, shared_facts
from equipoise.model.plan import Contrast, Plan
from equipoise.model.quantities import counted, excludes_one, names_of
from equipoise.model.record import (
    ENDED_BY_FAILURE,
    FAILURE_WARNING,
    INTERRUPTED,
    CampaignWarning,
    RunRecord,
)
from equipoise.model.result import SCHEMA, ConditionResult
from equipoise.stats.describe import median_interval
from equipoise.stats.hosts import CampaignState, HostBlocks, claims_of_fleet
from equipoise.stats.sequence import PairedBlocks
from equipoise.stats.verdict import finite_ratio

HOST_FAILED = "host_failed"
"""Code of the warning that a condition failed on a host."""


class FleetAnalysis(AnalysisKind):
    """The analysis of a fleet, from the campaigns of its hosts."""

    def document(self, record: RunRecord) -> FleetDocument:
        """Compute the result document of a coordinator's run."""
        plan, members = record.plan, members_of(record)
        comparisons, warnings = fleet_comparisons(record, members)
        rows = (
            replace(row, host=member.host.host)
            for member in members
            if member.record is not None
            for row in trial_rows(member.record, member.blocks, member.blocks)
        )
        trials = (member.record.trials for member in members if member.record is not None)
        return FleetDocument(
            schema=SCHEMA,
            run=run_info(record, sum(len(member.blocks) for member in members)),
            environment=shared_facts([member.host.environment for member in members]),
            conditions=tuple(
                _condition_over_hosts(plan, index, members) for index in plan.described
            ),
            comparisons=comparisons,
            control=None,
            why=(),
            warnings=(*fleet_warnings(record, members), *warnings),
            trials=tuple(rows),
            more_is_better=increasing_metrics(itertools.chain.from_iterable(trials)),
            fleet=fleet_result(record, members),
        )

    def hide_in_document(self, document: FleetDocument) -> FleetDocument:
        """Return the document without hidden environment variables of the hosts."""
        hosts = tuple(
            replace(host, environment=hide_variables(host.environment))
            for host in document.fleet.hosts
        )
        return replace(document, fleet=replace(document.fleet, hosts=hosts))


class Member(Struct, frozen=True):
    """One asked host, and the record of the host's campaign if it has arrived."""

    host: FleetHost
    record: RunRecord | None
    blocks: Blocks
    state: CampaignState


def members_of(record: RunRecord) -> tuple[Member, ...]:
    """Return the asked hosts of a coordinator's run, in the order of the plan."""
    fleet = _fleet_plan(record)
    run_at_position = {
        run.plan.membership.host_index: run
        for run in record.members
        if run.plan.membership is not None
    }
    names = distinct_names([host.name for host in fleet.hosts])
    # After the coordinator's last segment, a host without a block counts as lost.
    is_over = bool(record.segments) and record.segments[-1].ended_at is not None
    members: list[Member] = []
    for position, (reference, name) in enumerate(zip(fleet.hosts, names, strict=True)):
        run = run_at_position.get(position)
        blocks = {} if run is None else complete_blocks(run.draws, run.trials)
        host = FleetHost(
            host=name,
            identity=reference.identity,
            place=position,
            state=_host_state(run, blocks),
            run=None if run is None else run.id,
            blocks=len(blocks),
            trials=0 if run is None else len(run.trials),
            stopped_because=None if run is None else run.stopped_because,
            environment={} if run is None else run.environment,
            conditions=() if run is None else tuple(_host_conditions(run, blocks)),
            control_excludes_one=None if run is None else _control_excludes_one(run, blocks),
        )
        members.append(Member(host, run, blocks, _campaign_state(host.state, is_over=is_over)))
    return tuple(members)


def _condition_over_hosts(plan: Plan, index: int, members: Sequence[Member]) -> ConditionResult:
    """Count the trials of one condition over all hosts; costs are not pooled."""
    condition = plan.conditions[index]
    results = [result for member in members for result in member.host.conditions]
    results = [result for result in results if result.name == condition.name]
    return ConditionResult(
        name=condition.name,
        levels=condition.levels,
        command=condition.command,
        trials=sum(result.trials for result in results),
        failures=sum(result.failures for result in results),
        metrics={},
    )


def fleet_result(record: RunRecord, members: Sequence[Member]) -> FleetResult:
    """Return the hosts of a fleet, with the states of their campaigns."""
    fleet = _fleet_plan(record)
    blocks = sum(len(member.blocks) for member in members)
    delivered_count = sum(bool(member.blocks) for member in members)
    subject = f"{delivered_count} of {counted(len(members), 'asked host')} delivered"
    if fleet.is_one_host:
        subject = f"{counted(len(members), 'campaign')} on {fleet.hosts[0].name}"
    return FleetResult(
        cluster=fleet.cluster,
        is_one_host=fleet.is_one_host,
        hosts=tuple(member.host for member in members),
        metric=record.plan.judgement.primary_metric,
        summary=f"{subject}: {counted(blocks, 'block')}.",
    )


def fleet_comparisons(
    record: RunRecord, members: Sequence[Member]
) -> tuple[tuple[FleetComparison, ...], tuple[CampaignWarning, ...]]:
    """Return the comparison of every candidate over the hosts, the primary metric first.

    Comparisons on the primary metric share alpha evenly, and so do comparisons on other metrics. If
    a host has a trial without a value for a metric, no block of the host is used.
    """
    plan = record.plan
    comparisons: list[FleetComparison] = []
    warnings: list[CampaignWarning] = []
    for metrics in ((plan.judgement.primary_metric,), plan.judgement.other_metrics):
        level = plan.judgement.alpha / max(1, len(metrics) * len(plan.contrasts))
        for metric in metrics if plan.contrasts else ():
            host_contrast_costs, metric_warnings = _contrast_costs_by_host(members, metric)
            warnings += metric_warnings
            if any(host_contrast_costs):
                comparisons += (
                    _fleet_comparison(
                        plan, metric, contrast, members, host_contrast_costs, index, level
                    )
                    for index, contrast in enumerate(plan.contrasts)
                )
    return tuple(comparisons), tuple(warnings)


def _contrast_costs_by_host(
    members: Sequence[Member], metric: str
) -> tuple[list[list[ContrastCosts]], list[CampaignWarning]]:
    """Return each host's costs by contrast, and warnings about trials without the metric."""
    host_contrast_costs: list[list[ContrastCosts]] = []
    names_by_problem: dict[tuple[str, str], list[str]] = defaultdict(list)
    for member in members:
        contrast_costs: list[ContrastCosts] = []
        if member.record is not None and member.blocks:
            try:
                contrast_costs = costs_of_contrasts(member.record.plan, member.blocks, metric)
            except UnusableInput as error:
                names_by_problem[error.what, error.hint or ""].append(member.host.host)
        host_contrast_costs.append(contrast_costs)
    return host_contrast_costs, [
        CampaignWarning("metric_unknown", f"{names_of(names)}: {what}", hint)
        for (what, hint), names in names_by_problem.items()
    ]


def _fleet_comparison(
    plan: Plan,
    metric: str,
    contrast: Contrast,
    members: Sequence[Member],
    host_contrast_costs: Sequence[list[ContrastCosts]],
    contrast_index: int,
    level: float,
) -> FleetComparison:
    """Return one comparison over the hosts, with the effect on each host."""
    fleet, judgement = plan.terms, plan.judgement
    assert isinstance(fleet, FleetPlan), "only a fleet has comparisons over hosts"
    costs_by_host = [
        contrast_costs[contrast_index] if contrast_costs else None
        for contrast_costs in host_contrast_costs
    ]
    blocks_by_host = [
        PairedBlocks() if costs is None else costs.paired_blocks for costs in costs_by_host
    ]
    more_is_better = any(costs.more_is_better for costs in costs_by_host if costs)
    baseline, candidate = plan.conditions[contrast.baseline], plan.conditions[contrast.candidate]
    claims = claims_of_fleet(
        [
            HostBlocks(member.host.host, member.host.identity, blocks, weight, member.state)
            for member, blocks, weight in zip(members, blocks_by_host, fleet.weights, strict=True)
        ],
        min_effect=judgement.min_effect,
        alpha=level,
        planned_count=len(fleet.hosts),
        seed=plan.seed,
    )
    mean = claims.mean
    comparison = FleetComparison(
        baseline=baseline.name,
        candidate=candidate.name,
        metric=metric,
        estimand=f"mean over the asked hosts of the {ESTIMAND}",
        ratio=mean.ratio,
        ratio_ci=mean.bounds.ratio_ci,
        equivalence_ci=mean.equivalence.ratio_ci,
        equivalence_level=mean.equivalence.level,
        means_forbid_equivalence=mean.means_forbid_equivalence,
        e_value=claims.e_value,
        verdict=mean.verdict,
        min_effect=judgement.min_effect,
        alpha=judgement.alpha,
        blocks=sum(map(len, blocks_by_host)),
        mean_ratio=finite_ratio(mean.ln_mean_ratio),
        mean_ratio_ci=(None, None),
        probability_slower=None,
        probability_slower_ci=(None, None),
        minimum_misleads=False,
        scope=_scope_of_mean(plan, fleet),
        summary="",
        significance_level=level,
        ratio_is_constant=all(host.ratio_is_constant for host in claims.hosts),
        stratum=contrast.stratum,
        hosts=tuple(
            HostEffect(
                host=member.host.host,
                ratio=claim.ratio,
                ratio_ci=claim.bounds.ratio_ci,
                blocks=claim.blocks,
                environment={
                    name: member.host.environment[name]
                    for name in HOST_FACTS
                    if name in member.host.environment
                },
                significance_level=claim.bounds.level,
                weight=weight,
                place=member.host.place,
            )
            for member, claim, weight in zip(members, claims.hosts, fleet.weights, strict=True)
            if claim.blocks
        ),
        fleet=describe_answers(
            claims,
            [member.host for member in members],
            alpha=level,
            only_host=fleet.hosts[0].name if fleet.is_one_host else None,
            more_is_better=more_is_better,
        ),
    )
    names = (
        condition.levels.get(contrast.factor or "", condition.name)
        for condition in (baseline, candidate)
    )
    sentence = verdict_sentence(comparison, *names, more_is_better=more_is_better)
    host_count, name = len(fleet.hosts), fleet.hosts[0].name
    subject = f"campaigns on {name}" if fleet.is_one_host else "asked hosts"
    prefix = f"On {name}" if host_count == 1 else f"Over the {host_count} {subject}"
    return replace(comparison, summary=f"{prefix}: {sentence}")


def _scope_of_mean(plan: Plan, fleet: FleetPlan) -> str:
    scope = "processes"
    if plan.layouts:
        scope = f"processes, in these {len(plan.layouts)} layouts"
    if fleet.is_one_host:
        return f"across {scope}, over {counted(len(fleet.hosts), 'campaign')} on this one host"
    return f"across {scope}, over the {counted(len(fleet.hosts), 'asked host')} and no other"


def fleet_warnings(record: RunRecord, members: Sequence[Member]) -> tuple[CampaignWarning, ...]:
    """Return the warnings about missing campaigns, and the warnings that hosts recorded."""
    return (*_absence_warnings(record, members), *_host_warnings(record, members))


def _absence_warnings(record: RunRecord, members: Sequence[Member]) -> Iterator[CampaignWarning]:
    command = shell_line(["equipoise", "resume", record.id])
    fetch_hint = f"run `{command}` to fetch the missing blocks"
    resume_hint = f"run `{command}` to let the host continue"
    absence = "nothing of the campaign has arrived"
    consequence = "no result over the hosts contains a block from there"
    unfinished = (
        "the campaign has not ended: the host is still measuring, was killed, or some of its "
        "blocks have not arrived"
    )
    for state, code, problem, hint in (
        ("absent", "host_absent", f"{absence}; {consequence}", fetch_hint),
        ("no block", "host_without_block", f"no block is complete; {consequence}", resume_hint),
        ("not ended", "host_not_ended", unfinished, fetch_hint),
    ):
        names = [member.host.host for member in members if member.host.state == state]
        if names:
            yield CampaignWarning(code, f"{names_of(names)}: {problem}", hint)
    reasons = [
        f"{member.host.host} stopped early, after {counted(member.host.blocks, 'block')} "
        f"({member.host.stopped_because})"
        for member in members
        if member.host.state == "stopped early"
    ]
    if reasons:
        yield CampaignWarning(
            "host_stopped_early",
            f"{'; '.join(reasons)}; the mean over the hosts contains the blocks before the stop",
            resume_hint,
        )


def _host_warnings(record: RunRecord, members: Sequence[Member]) -> Iterator[CampaignWarning]:
    """Yield the coordinator's warnings, then each warning of hosts with the hosts' names."""
    yield from (warning.warning for warning in record.warnings)
    names_by_warning: dict[CampaignWarning, list[str]] = defaultdict(list)
    for member in members:
        if member.record is not None:
            for warning in warnings_of(member.record, (), None, member.blocks):
                names_by_warning[warning].append(member.host.host)
    for warning, names in names_by_warning.items():
        code = HOST_FAILED if warning.code == FAILURE_WARNING else warning.code
        summary = f"{names_of(names)}: {warning.summary}"
        yield CampaignWarning(code, summary, warning.hint)


def _host_state(run: RunRecord | None, blocks: Blocks) -> DeliveryState:
    if run is None:
        return "absent"
    if not blocks:
        return "no block"
    if run.stopped_because is None:
        return "not ended"
    return "stopped early" if run.stopped_because in (INTERRUPTED, ENDED_BY_FAILURE) else "ended"


def _campaign_state(state: DeliveryState, *, is_over: bool) -> CampaignState:
    """Return the state for the statistics.

    After the coordinator's last segment (``is_over``), a host without a block counts as lost.
    """
    if state == "ended":
        return "finished"
    is_lost = state == "stopped early" or (is_over and state != "not ended")
    return "lost" if is_lost else "measuring"


def _host_conditions(run: RunRecord, blocks: Blocks) -> Iterator[HostCondition]:
    """Yield the median of each condition on one host."""
    plan = run.plan
    for index in plan.described:
        metrics = () if plan.contrasts else plan.conditions[index].reports
        metric = next(iter(metrics), plan.judgement.primary_metric)
        trials = [trial for block in blocks.values() for trial in block if trial.condition == index]
        measured = [trial for trial in trials if not trial.timed_out and not trial.is_unavailable]
        values = values_by_metric(measured, [metric])[metric] if measured else np.empty(0)
        values = np.sort(values[np.isfinite(values)])
        failures = sum(
            trial.failure is not None and trial.condition == index for trial in run.trials
        )
        yield HostCondition(
            name=plan.conditions[index].name,
            metric=metric,
            trials=len(trials),
            failures=failures,
            median=float(np.median(values)) if len(values) else None,
            median_ci=median_interval(values, plan.judgement.alpha)
            if len(values)
            else (None, None),
        )


def _control_excludes_one(run: RunRecord, blocks: Blocks) -> bool | None:
    """Return whether the control differs from the baseline on a host; ``None`` if unknown."""
    try:
        comparison = control_comparison(run.plan, blocks)
    except UnusableInput:
        # A trial has no value for the metric; another function warns about this.
        return None
    return None if comparison is None else excludes_one(comparison.ratio_ci)


def _fleet_plan(record: RunRecord) -> FleetPlan:
    assert isinstance(record.plan.terms, FleetPlan), "only a coordinator's run has hosts"
    return record.plan.terms
