"""Campaigns are pooled, whatever the block at which each stopped."""

from __future__ import annotations

import math

import msgspec.structs
import numpy as np

from equipoise.analysis.reference import pooled_campaigns
from equipoise.model.host import HostReference
from equipoise.model.plan import Stopping
from equipoise.model.record import RunRecord
from equipoise.stats.verdict import earliest_block
from packages.equipoise.tests.analysis.test_levels import (
    EFFECTS,
    LAYOUTS,
    cost_by_layout,
    planned,
    record_of,
)
from packages.equipoise.tests.fleets import identity_of

FIRST = earliest_block(0.05)


def campaign(seed: int, blocks: int, effect: float = 0.02) -> RunRecord:
    """A campaign without layouts that ended after this number of blocks."""
    plan = msgspec.structs.replace(planned(200, layouts=0), seed=seed)
    return record_of(plan, cost_by_layout(np.array([effect]), 0.01), seed=seed, blocks=blocks)


def test_the_mean_over_campaigns_is_from_blocks_that_each_would_have_run_anyway() -> None:
    ended = [campaign(1, 8), campaign(2, 60), campaign(3, 3)]
    (comparison,) = pooled_campaigns(ended).comparisons
    assert comparison.first_blocks == (FIRST, FIRST, 3)
    assert comparison.common.blocks == 71
    # Later blocks could not change it.
    cut = [campaign(1, FIRST), campaign(2, FIRST), campaign(3, 3)]
    (earlier,) = pooled_campaigns(cut).comparisons
    assert earlier.pooled == comparison.pooled


def test_a_planned_minimum_of_blocks_counts_completely() -> None:
    def with_minimum(record: RunRecord) -> RunRecord:
        stopping = Stopping(blocks=200, min_blocks=40, min_blocks_explicit=True)
        return msgspec.structs.replace(
            record, plan=msgspec.structs.replace(record.plan, stopping=stopping)
        )

    ended = [with_minimum(campaign(seed, 50)) for seed in (1, 2)]
    (comparison,) = pooled_campaigns(ended).comparisons
    assert comparison.first_blocks == (40, 40)


def test_campaigns_have_one_common_ratio_or_none() -> None:
    (alike,) = pooled_campaigns([campaign(seed, 40) for seed in range(1, 5)]).comparisons
    low, high = alike.common.ratio_ci
    assert low is not None and high is not None and low < math.exp(0.02) < high
    different = [campaign(1, 60, 0.0), campaign(2, 60, 0.2)]
    (comparison,) = pooled_campaigns(different).comparisons
    assert comparison.common.ratio is None
    assert comparison.common.unknown_because == "no common ratio fits all campaigns: they differ"
    assert comparison.pooled.ratio_ci[0] is not None


def test_campaigns_over_layouts_have_no_common_ratio() -> None:
    ended = [record_of(planned(96), cost_by_layout(EFFECTS, 0.003), seed=seed) for seed in (1, 2)]
    (comparison,) = pooled_campaigns(ended).comparisons
    assert comparison.first_blocks == (2 * LAYOUTS,) * 2
    assert comparison.common.unknown_because is not None


def test_hosts_are_distinguished_by_their_stored_identity() -> None:
    ada, bea = (HostReference(identity_of(name), name) for name in ("ada", "bea"))

    def campaign_on(host: HostReference, seed: int) -> RunRecord:
        return msgspec.structs.replace(campaign(seed, FIRST), host=host)

    # Their hardware is equal; by their facts alone they would be the same host.
    pooled = pooled_campaigns([campaign_on(ada, 1), campaign_on(bea, 2), campaign_on(ada, 3)])
    assert pooled.hosts == 2
    assert [campaign.host for campaign in pooled.campaigns] == ["ada", "bea", "ada"]
    assert pooled.comparisons[0].pooled.replicates == 2
