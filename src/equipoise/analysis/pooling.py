"""Several campaigns of the same commands, side by side and pooled."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from equipoise.analysis.comparisons import primary_ratios
from equipoise.analysis.levels import pooled_by_level
from equipoise.analysis.result import iso_time
from equipoise.campaign.blocks import block_costs, complete_blocks, resolution_of
from equipoise.model.errors import UnusableInput
from equipoise.model.plan import Contrast, Plan
from equipoise.model.record import RunRecord
from equipoise.model.result import POOLED_SCHEMA, PooledCampaign, PooledCampaigns, PooledComparison
from equipoise.stats.sequence import PairedBlocks
from equipoise.stats.two_samples import pool

_NORMAL_MAD = 1.4826
UNKNOWN_BOOT = "unknown"
_OF_A_HOST = ("machine", "cpu_model", "cpus", "memory_bytes")


def pooled_campaigns(records: Sequence[RunRecord]) -> PooledCampaigns:
    """Pool the primary comparisons of campaigns that ran the same commands, oldest first.

    Raises
    ------
    UnusableInput
        There are fewer than two campaigns, or they decided by different metrics.
    """
    if len(records) < 2:
        raise UnusableInput(
            "there is one campaign of these commands only: nothing to pool",
            hint="run it again on another day, or after a reboot, with the same --ledger",
        )
    if any(record.plan.imported is not None for record in records):
        raise UnusableInput(
            "imported runs cannot be pooled: no campaign of ours measured them",
            hint="import their files at once: each then gives more trials",
        )
    metrics = {record.plan.judgement.primary_metric for record in records}
    if len(metrics) > 1:
        raise UnusableInput(
            f"the campaigns decided by different metrics: {', '.join(sorted(metrics))}",
            hint="pool campaigns of the same study",
        )
    read = [_read(record) for record in records]
    boots = [f"{one.campaign.boot} {one.campaign.kernel}" for one in read]
    hosts = _numbered([one.host for one in read])
    places = list(zip(hosts, _numbered(boots), strict=True))
    comparisons: list[PooledComparison] = []
    plan, metric = records[0].plan, metrics.pop()
    for contrast in plan.contrasts:
        names = _names(plan, contrast)
        ratios = tuple(one.ratios.get(names[1]) for one in read)
        errors = [one.errors.get(names) for one in read]
        known = [
            (math.log(ratio or math.nan), error, boot)
            for ratio, error, boot in zip(ratios, errors, boots, strict=True)
            if ratio is not None and error is not None
        ]
        if known:
            logs, known_errors, known_boots = zip(*known, strict=True)
            effect = pool(np.array(logs), np.array(known_errors), known_boots)
            levels = pooled_by_level(records, contrast, places)
            comparisons.append(PooledComparison(*names, metric, ratios, effect, levels))
    campaigns = tuple(one.campaign for one in read)
    return PooledCampaigns(POOLED_SCHEMA, plan.study, campaigns, tuple(comparisons))


class _Campaign(Struct, frozen=True):
    """Facts that pooling needs of one campaign: much less than its result document."""

    campaign: PooledCampaign
    host: str
    """Text that tells hosts apart; nothing names a host."""
    ratios: dict[str, float | None]
    """Ratio of each candidate."""
    errors: dict[tuple[str, str], float]
    """Standard error of each typical log ratio, by baseline and candidate."""


def _read(record: RunRecord) -> _Campaign:
    plan = record.plan
    blocks = complete_blocks(record.draws, record.trials)
    environment = record.segments[0].environment if record.segments else {}
    ratios: dict[str, float | None] = {}
    errors: dict[tuple[str, str], float] = {}
    if blocks:
        metric = plan.judgement.primary_metric
        costs = block_costs(plan, blocks, metric)
        resolution, engine = resolution_of(blocks, metric), plan.judgement.engine
        ratios = primary_ratios(plan, costs, resolution)
        for contrast in plan.contrasts:
            error = _error(costs.paired(contrast, resolution=resolution, engine=engine))
            if error is not None:
                errors.setdefault(_names(plan, contrast), error)
    return _Campaign(
        PooledCampaign(
            record.id,
            iso_time(record.started_at),
            str(environment.get("boot_id") or UNKNOWN_BOOT),
            str(environment.get("kernel") or UNKNOWN_BOOT),
            len(blocks),
        ),
        " ".join(str(environment.get(fact)) for fact in _OF_A_HOST),
        ratios,
        errors,
    )


def _names(plan: Plan, contrast: Contrast) -> tuple[str, str]:
    return plan.conditions[contrast.baseline].name, plan.conditions[contrast.candidate].name


def _numbered(names: Sequence[str]) -> list[int]:
    """Return the place of each name among the different ones, in the order of their first use."""
    places = {name: place for place, name in enumerate(dict.fromkeys(names))}
    return [places[name] for name in names]


def _error(pairs: PairedBlocks) -> float | None:
    """Return the standard error of a campaign's typical log ratio: robust scale over root n."""
    with np.errstate(divide="ignore", invalid="ignore"):
        differences = np.log(pairs.candidate) - np.log(pairs.baseline)
    finite = differences[np.isfinite(differences)]
    if len(finite) < 2:
        return None
    scale = _NORMAL_MAD * float(np.median(np.abs(finite - np.median(finite))))
    return scale / math.sqrt(len(finite))
