"""Several campaigns of the same commands, side by side and pooled."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from equipoise.analysis.comparisons import pairings_of
from equipoise.analysis.levels import pooled_by_level
from equipoise.campaign.interim import least_blocks
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
from equipoise.model.quantities import iso_time
from equipoise.model.record import RunRecord
from equipoise.shared.spelling import option
from equipoise.stats.layouts import FIRST_ANALYSIS
from equipoise.stats.sequence import PairedBlocks
from equipoise.stats.two_samples import common_ratio, pool
from equipoise.stats.verdict import earliest_block, typical_ratio

_NORMAL_MAD = 1.4826
UNKNOWN_BOOT = "unknown"
_BY_LAYOUT = "the campaigns are over layouts, whose ratios may differ"


def pooled_campaigns(records: Sequence[RunRecord]) -> PooledCampaigns:
    """Pool the primary comparisons of campaigns that ran the same commands, oldest first.

    Raise `UnusableInput` if there are fewer than two campaigns, or they decided by different
    metrics.
    """
    if len(records) < 2:
        raise UnusableInput(
            "there is one campaign of these commands only: nothing to pool",
            hint="run it again on another day, or after a reboot, with the same "
            f"{option('ledger')}",
        )
    if not all(record.plan.rules.has_random_order for record in records):
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
    campaigns, of_campaigns = zip(*map(_read, records), strict=True)
    boots = [f"{one.boot} {one.kernel}" for one in campaigns]
    hosts = _numbered(["" if one.host is None else one.host.identity for one in records])
    places = list(zip(hosts, _numbered(boots), strict=True))
    # Campaigns of one host share what the host does to the ratio: a host counts once.
    replicates = [f"host {host}" for host in hosts] if len(set(hosts)) > 1 else boots
    comparisons: list[PooledComparison] = []
    plan, metric = records[0].plan, metrics.pop()
    for contrast in plan.contrasts:
        names = plan.names_of(contrast)
        paired = [one.get(names) for one in of_campaigns]
        ratios = tuple(None if pair is None else typical_ratio(pair.blocks) for pair in paired)
        known = [
            (*effect, replicate)
            for pair, replicate in zip(paired, replicates, strict=True)
            if pair is not None and (effect := effect_of(pair.first)) is not None
        ]
        if known:
            logs, known_errors, known_replicates = zip(*known, strict=True)
            pooled = pool(np.array(logs), np.array(known_errors), known_replicates)
            first = tuple(0 if pair is None else len(pair.first) for pair in paired)
            levels = pooled_by_level(records, contrast, places, first)
            common = _common([pair for pair in paired if pair is not None], records)
            comparisons.append(
                PooledComparison(*names, metric, ratios, pooled, common, first, levels)
            )
    return PooledCampaigns(
        POOLED_SCHEMA, plan.study, campaigns, tuple(comparisons), hosts=len(set(hosts))
    )


class _Paired(Struct, frozen=True):
    """One comparison in one campaign."""

    blocks: PairedBlocks
    first: PairedBlocks
    """Blocks that it would have run whatever they showed, as far as it has them."""


def _common(paired: Sequence[_Paired], records: Sequence[RunRecord]) -> CommonRatio:
    """Return the ratio that campaigns have in common; none is asked for where layouts differ."""
    if any(record.plan.layouts for record in records):
        blocks = sum(len(pair.blocks) for pair in paired)
        return CommonRatio(None, (None, None), blocks, _BY_LAYOUT)
    return common_ratio([pair.blocks for pair in paired])


def _read(record: RunRecord) -> tuple[PooledCampaign, dict[tuple[str, str], _Paired]]:
    """Return a campaign and its comparisons by baseline and candidate: no whole result document."""
    plan = record.plan
    blocks = analysed_blocks(record)
    paired: dict[tuple[str, str], _Paired] = {}
    if blocks:
        metric, certain = plan.judgement.primary_metric, _certain_blocks(plan)
        whole = pairings_of(plan, blocks, metric)
        first = pairings_of(plan, dict(itertools.islice(blocks.items(), certain)), metric)
        for one, beginning in zip(whole, first, strict=True):
            pair = _Paired(one.pairs, beginning.pairs)
            paired.setdefault(plan.names_of(one.contrast), pair)
    campaign = PooledCampaign(
        record.id,
        iso_time(record.started_at),
        str(record.environment.get("boot_id") or UNKNOWN_BOOT),
        str(record.environment.get("kernel") or UNKNOWN_BOOT),
        len(blocks),
        None if record.host is None else record.host.name,
    )
    return campaign, paired


def _certain_blocks(plan: Plan) -> int:
    """Return how many blocks a campaign runs whatever they show: it cannot stop earlier."""
    alpha, count = plan.judgement.alpha, max(1, len(plan.contrasts))
    first = earliest_block(min(plan.rules.decisive_sides * alpha, 0.5 * (1.0 + alpha)), count)
    if plan.layouts:
        first = FIRST_ANALYSIS * len(plan.layouts)
    return max(first, least_blocks(plan, plan.stopping))


def effect_of(pairs: PairedBlocks) -> tuple[float, float] | None:
    """Return a log ratio and its standard error: robust scale over root n."""
    ratio = typical_ratio(pairs)
    with np.errstate(divide="ignore", invalid="ignore"):
        differences = np.log(pairs.candidate) - np.log(pairs.baseline)
    finite = differences[np.isfinite(differences)]
    if not ratio or len(finite) < 2:
        return None
    scale = _NORMAL_MAD * float(np.median(np.abs(finite - np.median(finite))))
    return math.log(ratio), scale / math.sqrt(len(finite))


def _numbered(names: Sequence[str]) -> list[int]:
    """Return the place of each name among the different ones, in the order of their first use."""
    places = {name: place for place, name in enumerate(dict.fromkeys(names))}
    return [places[name] for name in names]
