"""Compares a result with an earlier result, and pools several campaigns of the same commands.

The earlier result is the reference (`--against`); sentences call it *there*, and the new result
*here*. A row is one condition on one metric. A session is one of the two campaigns. Pooled
campaigns contribute only their first blocks, before which no campaign can stop at a verdict.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from equipoise.analysis.comparisons import costs_of_contrasts
from equipoise.analysis.kind import analysis_of
from equipoise.analysis.levels import pooled_by_level
from equipoise.campaign.interim import required_blocks
from equipoise.campaign.washouts import analysed_blocks
from equipoise.model.errors import UnusableInput
from equipoise.model.plan import Plan
from equipoise.model.pooled import (
    POOLED_SCHEMA,
    CommonRatio,
    PooledCampaign,
    PooledCampaigns,
    PooledComparison,
)
from equipoise.model.quantities import Interval, iso_time
from equipoise.model.record import RunRecord
from equipoise.model.reference import EnvironmentDifference, ReferenceComparison, ReferenceRow
from equipoise.model.result import ConditionResult, ResultDocument, TrialRow
from equipoise.shared.spelling import option
from equipoise.stats.arrays import NORMAL_MAD
from equipoise.stats.layouts import FIRST_ANALYSIS_BLOCKS
from equipoise.stats.sequence import PairedBlocks
from equipoise.stats.sessions import (
    MIN_PROCESSES,
    RowChange,
    SessionChanges,
    SessionRow,
    changes_between,
    estimate_sd_between_sessions,
)
from equipoise.stats.two_samples import common_ratio, pool
from equipoise.stats.verdict import earliest_block, typical_ratio


class _CostRow(Struct, frozen=True):
    """One condition of a result on one metric, with its costs."""

    metric: str
    session: SessionRow
    """Costs of the trials, with their blocks."""
    median: float
    """Median value of the metric."""


def compare_with_reference(
    reference: ResultDocument, result: ResultDocument, *, min_effect: float, alpha: float
) -> ReferenceComparison:
    """Compare the rows of both results.

    Conditions are matched by name, or else by command. A change of up to ``min_effect`` percent
    counts as no change. ``alpha`` is the false-discovery rate among the changed rows.

    Raise `UnusableInput` if no row has a number in both results, or a result is about a fleet.
    """
    for document in (reference, result):
        document.check_one_host("a comparison with another result")
    metrics = analysis_of(result).row_metrics(result)
    reference = _with_names_of(reference, result)
    increasing_metrics = {*reference.more_is_better, *result.more_is_better}
    reference_rows, result_rows = (
        dict(_cost_rows(document, metrics, increasing_metrics)) for document in (reference, result)
    )
    common_names = [
        name
        for name, row in result_rows.items()
        if name in reference_rows and reference_rows[name].metric == row.metric
    ]
    if not common_names:
        raise UnusableInput(
            f"this result and run {reference.run.id} have no condition with a number in both",
            hint="choose a reference result that has some of the same conditions and the metric "
            f"{' or '.join(metrics)}",
        )
    sessions = tuple(
        [rows[name].session for name in common_names] for rows in (reference_rows, result_rows)
    )
    differences = document_differences(reference, result)
    drift = 0.0 if differences else estimate_sd_between_sessions(*sessions)
    changes = changes_between(
        *sessions, min_effect=min_effect, alpha=alpha, sd_between_sessions=drift
    )
    row_changes = dict(zip(common_names, changes.rows, strict=True))
    sides = {"there": (reference, reference_rows), "here": (result, result_rows)}
    names = dict.fromkeys(
        condition.name for condition in (*result.conditions, *reference.conditions)
    )
    return ReferenceComparison(
        run=reference.run.id,
        started=reference.run.started,
        rows=tuple(_reference_row(name, sides, row_changes.get(name), metrics) for name in names),
        differences=differences,
        geometric_mean=math.exp(changes.mean),
        geometric_mean_ci=_ratio_interval(changes.mean_low, changes.mean_high),
        geometric_mean_rows=len(common_names),
        min_effect=min_effect,
        alpha=alpha,
        significance_level=changes.level,
        between_sessions=100.0 * math.expm1(drift),
        scope=_scope(changes, drift, same_environment=not differences),
    )


def _with_names_of(reference: ResultDocument, result: ResultDocument) -> ResultDocument:
    """Rename each condition of the reference whose command has another name in the result."""
    names = {condition.name for condition in result.conditions}
    reference_names = {condition.name for condition in reference.conditions}
    by_command = {
        condition.command: condition.name
        for condition in result.conditions
        if condition.name not in reference_names
    }
    new_names = {
        condition.name: by_command[condition.command]
        for condition in reference.conditions
        if condition.command and condition.name not in names and condition.command in by_command
    }
    if len(set(new_names.values())) < len(new_names):
        return reference
    return replace(
        reference,
        conditions=tuple(
            replace(condition, name=new_names.get(condition.name, condition.name))
            for condition in reference.conditions
        ),
        trials=tuple(
            replace(trial, condition=new_names.get(trial.condition, trial.condition))
            for trial in reference.trials
        ),
    )


def _cost_rows(
    result: ResultDocument, metrics: Sequence[str], increasing_metrics: Collection[str]
) -> Iterator[tuple[str, _CostRow]]:
    """Yield the name and the row of each condition whose trials all have a value.

    More is better for ``increasing_metrics``.
    """
    keeps_rows_with_failures = analysis_of(result).keeps_rows_with_failures
    for condition in result.conditions:
        trials = _analysed_trials(condition, result)
        metric = next(
            (metric for metric in metrics if any(_value(trial, metric) for trial in trials)), None
        )
        if metric is None:
            continue
        known = [(trial, value) for trial in trials if (value := _value(trial, metric)) is not None]
        if len(known) < len(trials) and not keeps_rows_with_failures:
            continue
        values = np.array([value for _, value in known], dtype=np.float64)
        blocks = np.array([trial.block for trial, _ in known], dtype=np.int64)
        if not result.has_blocks:
            # Imported files have no blocks, so each trial counts as a block.
            first_block = result.conditions.index(condition) * len(result.trials)
            blocks = np.arange(first_block, first_block + len(known))
        costs = 1.0 / values if metric in increasing_metrics else values
        yield condition.name, _CostRow(metric, SessionRow(costs, blocks), float(np.median(values)))


def _analysed_trials(condition: ConditionResult, result: ResultDocument) -> list[TrialRow]:
    return [
        trial for trial in result.trials if trial.analysed and trial.condition == condition.name
    ]


def _value(trial: TrialRow, metric: str) -> float | None:
    """Return a trial's value of a metric; ``None`` if it is not above 0 or not known."""
    if trial.failure_kind in ("timed out", "unavailable"):
        return None
    value = trial.value_of(metric)
    return value if value is not None and 0 < value < math.inf else None


def _reference_row(
    name: str,
    sides: Mapping[str, tuple[ResultDocument, Mapping[str, _CostRow]]],
    change: RowChange | None,
    metrics: Sequence[str],
) -> ReferenceRow:
    """Return the comparison of one condition; ``sides`` has each result and its rows, by side."""
    reference_row, result_row = (rows.get(name) for _, rows in sides.values())
    known_rows = [row for row in (result_row, reference_row) if row is not None]
    unknown_because = None
    if change is None:
        reasons = [
            f"{side}: {_why_missing(name, result, metrics)}"
            for side, (result, rows) in sides.items()
            if name not in rows
        ]
        unknown_because = "; ".join(reasons) or "the two results have different metrics"
    elif min(len(row.session.costs) for row in known_rows) < MIN_PROCESSES:
        unknown_because = "a side has only one process, so its spread is unknown"
    return ReferenceRow(
        name=name,
        metric=known_rows[0].metric if known_rows else metrics[0],
        reference_median=None if reference_row is None else reference_row.median,
        median=None if result_row is None else result_row.median,
        ratio=None if change is None else math.exp(change.log_ratio),
        ratio_ci=(None, None) if change is None else _ratio_interval(change.low, change.high),
        p_value=None if change is None or unknown_because else change.p_value,
        changed=None if change is None or unknown_because else change.changed,
        unknown=unknown_because,
    )


def _why_missing(name: str, result: ResultDocument, metrics: Sequence[str]) -> str:
    condition = next((condition for condition in result.conditions if condition.name == name), None)
    if condition is None:
        return "not measured"
    for reason in condition.unknown.values():
        return reason
    trials = _analysed_trials(condition, result)
    missing_count = sum(not any(_value(trial, metric) for metric in metrics) for trial in trials)
    if not missing_count:
        return "not measured"
    return f"{missing_count} of {len(trials)} trials have no {' or '.join(metrics)} above 0"


def _ratio_interval(log_low: float, log_high: float) -> Interval:
    if not (math.isfinite(log_low) and math.isfinite(log_high)):
        return (None, None)
    return (math.exp(log_low), math.exp(log_high))


def _scope(changes: SessionChanges, drift: float, *, same_environment: bool) -> str:
    """Return sentences on the scope of the ratios and on their intervals."""
    variance_factor = max(changes.later.variance_factor, changes.earlier.variance_factor)
    common_percent = 100.0 * math.expm1(
        math.hypot(changes.later.block_sd, changes.earlier.block_sd)
    )
    scope = (
        "across processes, for these two sessions, which were not interleaved: the ratio includes "
        "every difference between them. The intervals include the spread between processes"
    )
    if min(changes.later.blocks, changes.earlier.blocks) == 0:
        return f"{scope}; there are too few rows to estimate the drift of sessions"
    if variance_factor > 1.0:
        scope += f" (its variance ×{variance_factor:.2g}, because the halves of a session differ)"
    scope += f", and ±{common_percent:.2g} % for changes that all rows share"
    if same_environment:
        return (
            f"{scope}. The two environments have no known difference, so the typical difference "
            f"of the rows counts as drift: ±{100.0 * math.expm1(drift):.2g} % more"
        )
    return f"{scope}. The drift between sessions is not known: measure each side twice"


IGNORED_FACTS = frozenset(
    {
        "boot_id",
        "certificate",
        "mapped",
        "environment_bytes",
        "time_zone",
        "unknown",
        "variables_set_but_withheld",
    }
)
"""Facts that are not compared: they have no effect, or are also in other fields of a result."""
ENVIRONMENT = "environment"
"""Name of a difference that stands for all facts that an imported file lacks."""


def document_differences(
    reference: ResultDocument, result: ResultDocument
) -> tuple[EnvironmentDifference, ...]:
    """Return the differences between the environments of two results.

    An imported result has only the facts of its files. So the facts that one result lacks are not
    compared. Instead, the `environment` as a whole is an unknown difference.
    """
    is_recorded = result.has_random_order
    return differences_to_host(reference, result.environment, is_recorded=is_recorded)


def differences_to_host(
    reference: ResultDocument, host: Mapping[str, Any], *, is_recorded: bool = True
) -> tuple[EnvironmentDifference, ...]:
    """Return the differences between a result and an environment.

    ``is_recorded`` is False if the environment comes from the files of another tool.
    """
    differences = environment_differences(reference.environment, host)
    both_recorded = (reference.has_random_order, is_recorded)
    if all(both_recorded):
        return differences
    return (
        EnvironmentDifference(
            ENVIRONMENT, *("recorded" if recorded else None for recorded in both_recorded)
        ),
        *(
            difference
            for difference in differences
            if None not in (difference.reference_value, difference.value)
            and difference.name != "imported_from"
        ),
    )


def environment_differences(
    earlier: Mapping[str, Any], later: Mapping[str, Any]
) -> tuple[EnvironmentDifference, ...]:
    """Return the facts that differ between two environments, or that one environment lacks."""
    earlier_facts, later_facts = dict(flat_facts(earlier)), dict(flat_facts(later))
    return tuple(
        EnvironmentDifference(name, earlier_facts.get(name), later_facts.get(name))
        for name in {**later_facts, **earlier_facts}
        if earlier_facts.get(name) != later_facts.get(name)
    )


def flat_facts(environment: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the names and values of all facts; a nested fact has a name such as ``mapped.libc``."""
    for name, value in environment.items():
        if not prefix and name in IGNORED_FACTS:
            continue
        if isinstance(value, Mapping):
            yield from flat_facts(value, f"{prefix}{name}.")
        else:
            # JSON has lists in place of tuples.
            yield f"{prefix}{name}", list(value) if isinstance(value, tuple) else value


UNKNOWN_FACT = "unknown"
"""Value of a fact that a campaign did not record."""
_NO_COMMON_RATIO = "the campaigns are over layouts, whose ratios may differ"


def pooled_campaigns(records: Sequence[RunRecord]) -> PooledCampaigns:
    """Pool the primary comparisons of campaigns that ran the same commands, oldest first.

    Each contrast gets its ratio in each campaign, the pooled effect, the ratio that all campaigns
    have in common, and its variance by level.

    Raise `UnusableInput` if there are fewer than two campaigns, if their primary metrics differ, or
    if one is an imported run.
    """
    if len(records) < 2:
        raise UnusableInput(
            "there is only one campaign of these commands, so there is nothing to pool",
            hint="run the same comparison on another day, or after a reboot, with the same "
            f"{option('ledger')}",
        )
    if not all(record.plan.rules.has_random_order for record in records):
        raise UnusableInput(
            "imported runs cannot be pooled, because Equipoise did not order their trials",
            hint="import all their files in one command",
        )
    metrics = {record.plan.judgement.primary_metric: record.id for record in records}
    if len(metrics) > 1:
        examples = ", ".join(f"{metric} (run {run})" for metric, run in sorted(metrics.items()))
        raise UnusableInput(
            f"the campaigns have different primary metrics: {examples}",
            hint=f"record campaigns of each metric in a ledger of their own ({option('ledger')})",
        )
    campaigns, blocks_by_campaign = zip(*map(_read_campaign, records), strict=True)
    boots = [f"{campaign.boot} {campaign.kernel}" for campaign in campaigns]
    hosts = _indices(["" if record.host is None else record.host.identity for record in records])
    hosts_and_boots = list(zip(hosts, _indices(boots), strict=True))
    # All campaigns of a host have its effect. So with several hosts, each host counts once.
    replicates = [f"host {host}" for host in hosts] if len(set(hosts)) > 1 else boots
    comparisons: list[PooledComparison] = []
    plan, (metric,) = records[0].plan, metrics
    for contrast in plan.contrasts:
        names = plan.names_of(contrast)
        campaign_blocks = [blocks_by_names.get(names) for blocks_by_names in blocks_by_campaign]
        known_blocks = [blocks for blocks in campaign_blocks if blocks is not None]
        ratios = tuple(
            None if blocks is None else typical_ratio(blocks.all_blocks)
            for blocks in campaign_blocks
        )
        effects = [
            (*effect, replicate)
            for blocks, replicate in zip(campaign_blocks, replicates, strict=True)
            if blocks is not None and (effect := effect_of(blocks.first_blocks)) is not None
        ]
        if effects:
            log_ratios, standard_errors, replicate_names = zip(*effects, strict=True)
            pooled = pool(np.array(log_ratios), np.array(standard_errors), replicate_names)
            block_counts = tuple(
                0 if blocks is None else len(blocks.first_blocks) for blocks in campaign_blocks
            )
            levels = pooled_by_level(records, contrast, hosts_and_boots, block_counts)
            common = _common_ratio_of_blocks(known_blocks, records)
            comparisons.append(
                PooledComparison(*names, metric, ratios, pooled, common, block_counts, levels)
            )
    return PooledCampaigns(
        POOLED_SCHEMA, plan.study, campaigns, tuple(comparisons), hosts=len(set(hosts))
    )


class _CampaignBlocks(Struct, frozen=True):
    """The blocks of one comparison in one campaign."""

    all_blocks: PairedBlocks
    first_blocks: PairedBlocks
    """Blocks before which the campaign cannot stop at a verdict."""


def _common_ratio_of_blocks(
    campaigns: Sequence[_CampaignBlocks], records: Sequence[RunRecord]
) -> CommonRatio:
    if any(record.plan.layouts for record in records):
        block_count = sum(len(campaign.all_blocks) for campaign in campaigns)
        return CommonRatio(None, (None, None), block_count, _NO_COMMON_RATIO)
    return common_ratio([campaign.all_blocks for campaign in campaigns])


def _read_campaign(
    record: RunRecord,
) -> tuple[PooledCampaign, dict[tuple[str, str], _CampaignBlocks]]:
    """Return a campaign, and its blocks by the names of baseline and candidate."""
    plan = record.plan
    blocks = analysed_blocks(record)
    blocks_by_names: dict[tuple[str, str], _CampaignBlocks] = {}
    if blocks:
        metric, first_count = plan.judgement.primary_metric, _first_block_count(plan)
        contrast_costs = costs_of_contrasts(plan, blocks, metric)
        costs_in_first_blocks = costs_of_contrasts(
            plan, dict(itertools.islice(blocks.items(), first_count)), metric
        )
        for costs, first in zip(contrast_costs, costs_in_first_blocks, strict=True):
            campaign_blocks = _CampaignBlocks(costs.paired_blocks, first.paired_blocks)
            blocks_by_names.setdefault(plan.names_of(costs.contrast), campaign_blocks)
    campaign = PooledCampaign(
        record.id,
        iso_time(record.started_at),
        str(record.environment.get("boot_id") or UNKNOWN_FACT),
        str(record.environment.get("kernel") or UNKNOWN_FACT),
        len(blocks),
        None if record.host is None else record.host.name,
    )
    return campaign, blocks_by_names


def _first_block_count(plan: Plan) -> int:
    """Return the minimum number of blocks before a campaign can stop at a verdict."""
    alpha, count = plan.judgement.alpha, max(1, len(plan.contrasts))
    block_count = earliest_block(min(plan.rules.alpha_factor * alpha, 0.5 * (1.0 + alpha)), count)
    if plan.layouts:
        block_count = FIRST_ANALYSIS_BLOCKS * len(plan.layouts)
    return max(block_count, required_blocks(plan, plan.stopping))


def effect_of(blocks: PairedBlocks) -> tuple[float, float] | None:
    """Return a log ratio and its standard error; ``None`` with fewer than two finite ratios.

    The standard error is the scaled median absolute deviation, over the root of the block count.
    """
    ratio = typical_ratio(blocks)
    with np.errstate(divide="ignore", invalid="ignore"):
        differences = np.log(blocks.candidate) - np.log(blocks.baseline)
    finite = differences[np.isfinite(differences)]
    if not ratio or len(finite) < 2:
        return None
    scale = NORMAL_MAD * float(np.median(np.abs(finite - np.median(finite))))
    return math.log(ratio), scale / math.sqrt(len(finite))


def _indices(names: Sequence[str]) -> list[int]:
    """Return the index of each name among the distinct names."""
    indices = {name: index for index, name in enumerate(dict.fromkeys(names))}
    return [indices[name] for name in names]
