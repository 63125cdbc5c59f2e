"""Several campaigns of the same commands, side by side and pooled."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from equipoise.campaign.blocks import QUANTA, block_costs, complete_blocks
from equipoise.campaign.levels import pooled_by_level
from equipoise.campaign.result import document_of
from equipoise.model.errors import UnusableInput
from equipoise.model.pooled import (
    POOLED_SCHEMA,
    PooledCampaign,
    PooledCampaigns,
    PooledComparison,
)
from equipoise.model.record import RunRecord
from equipoise.model.result import ResultDocument
from equipoise.stats.pooling import pool

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
            mend="run it again on another day, or after a reboot, with the same --ledger",
        )
    metrics = {record.plan.judgement.primary_metric for record in records}
    if len(metrics) > 1:
        raise UnusableInput(
            f"the campaigns decided by different metrics: {', '.join(sorted(metrics))}",
            mend="pool campaigns of the same study",
        )
    documents = [document_of(record) for record in records]
    campaigns = tuple(
        PooledCampaign(
            document.run.id,
            document.run.started,
            str(document.environment.get("boot_id") or UNKNOWN_BOOT),
            str(document.environment.get("kernel") or UNKNOWN_BOOT),
            document.run.blocks,
        )
        for document in documents
    )
    boots = [f"{one.boot} {one.kernel}" for one in campaigns]
    hosts = [_host(document) for document in documents]
    places = [
        (hosts.index(host), boots.index(boot)) for host, boot in zip(hosts, boots, strict=True)
    ]
    metric = next(iter(metrics))
    comparisons: list[PooledComparison] = []
    for contrast in records[0].plan.contrasts:
        names = records[0].plan.conditions
        baseline, candidate = names[contrast.baseline].name, names[contrast.candidate].name
        ratios = [
            next(
                (
                    one.ratio
                    for one in document.comparisons
                    if (one.candidate, one.metric) == (candidate, metric)
                ),
                None,
            )
            for document in documents
        ]
        errors = [_error(record, baseline, candidate) for record in records]
        known = [
            place
            for place, (ratio, error) in enumerate(zip(ratios, errors, strict=True))
            if ratio is not None and error is not None
        ]
        if known:
            found = pool(
                np.array([math.log(ratios[place] or math.nan) for place in known]),
                np.array([errors[place] or 0.0 for place in known]),
                [boots[place] for place in known],
            )
            levels = pooled_by_level(records, contrast, places)
            comparisons.append(
                PooledComparison(baseline, candidate, metric, tuple(ratios), found, levels)
            )
    return PooledCampaigns(POOLED_SCHEMA, records[0].plan.study, campaigns, tuple(comparisons))


def _host(document: ResultDocument) -> str:
    """What tells hosts apart: nothing names one."""
    return " ".join(str(document.environment.get(fact)) for fact in _OF_A_HOST)


def _error(record: RunRecord, baseline: str, candidate: str) -> float | None:
    """The standard error of the typical log ratio within a campaign: robust scale over root n."""
    plan = record.plan
    contrast = next(
        (
            one
            for one in plan.contrasts
            if (plan.conditions[one.baseline].name, plan.conditions[one.candidate].name)
            == (baseline, candidate)
        ),
        None,
    )
    blocks = complete_blocks(record.draws, record.trials)
    if contrast is None or not blocks:
        return None
    metric = plan.judgement.primary_metric
    pairs = block_costs(plan, blocks, metric).paired(contrast, QUANTA.get(metric, 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        differences = np.log(pairs.candidate) - np.log(pairs.baseline)
    finite = differences[np.isfinite(differences)]
    if len(finite) < 2:
        return None
    scale = _NORMAL_MAD * float(np.median(np.abs(finite - np.median(finite))))
    return scale / math.sqrt(len(finite))
