"""Campaigns of the same commands: each by itself, and all of them pooled."""

from __future__ import annotations

import math
from collections.abc import Sequence

from equipoise.model.pooled import PooledCampaigns, PooledComparison
from equipoise.report.builders.shape import level_parts, levelled_ratio
from equipoise.report.document import (
    UNKNOWN,
    Cell,
    Column,
    Document,
    Paragraph,
    Styled,
    Table,
    headed,
)
from equipoise.report.units import change_text, estimate_and_interval

_MOST_COLUMNS = 6
"""Number of campaigns that stand beside one another, the latest."""
_BOOT_LETTERS = 8


def pooled_document(pooled: PooledCampaigns) -> Document:
    """Build what each campaign found, and what holds over all of them."""
    levels = [
        levelled_ratio(one.candidate, one.by_level)
        for one in pooled.comparisons
        if one.by_level is not None
    ]
    boots = len({(one.boot, one.kernel) for one in pooled.campaigns})
    kernels = len({one.kernel for one in pooled.campaigns})
    replicates = "hosts" if pooled.hosts > 1 else "boots" if boots > 1 else "campaigns"
    on_hosts = f" and {_count(pooled.hosts, 'host')}" if pooled.hosts > 1 else ""
    scope = (
        f"scope: across {len(pooled.campaigns)} campaigns on {_count(boots, 'boot')} of "
        f"{_count(kernels, 'kernel')}{on_hosts}. One common ratio: if all campaigns have the "
        "same ratio, this interval holds it in at least 95 of 100 pools, whenever each of them "
        "stopped. Mean over "
        "campaigns: for campaigns that may differ. "
        f"It takes {replicates} for replicates, each of equal weight (Student's "
        "t), and of each campaign only the first blocks, which it would have run whatever they "
        "showed: a campaign that stops at its verdict overstates the effect. Both hold for "
        "campaigns that were not chosen by their results."
    )
    unknown = dict.fromkeys(one.common.unknown_because for one in pooled.comparisons)
    return Document(
        name=pooled.study,
        title=f"{len(pooled.campaigns)} campaigns of the same commands",
        parts=(
            _campaigns_table(pooled),
            _comparisons_table(pooled),
            *(Paragraph(f"One common ratio: {why}.") for why in unknown if why is not None),
            *level_parts(levels),
            Paragraph(scope, "dim"),
        ),
    )


def _campaigns_table(pooled: PooledCampaigns) -> Table:
    several = pooled.hosts > 1
    rows = (
        {
            "": str(number),
            "run": one.id,
            "started": one.started[:16].replace("T", " "),
            **({"host:name": one.host or UNKNOWN} if several else {}),
            "boot": one.boot[:_BOOT_LETTERS],
            "kernel": one.kernel,
            "blocks:number": str(one.blocks),
        }
        for number, one in enumerate(pooled.campaigns, 1)
    )
    return Table(*headed(rows), label="Campaigns")


def _comparisons_table(pooled: PooledCampaigns) -> Table:
    numbers = range(1, len(pooled.campaigns) + 1)[-_MOST_COLUMNS:]
    columns = (
        Column("candidate", "name"),
        Column("one common ratio", "number"),
        Column("95 % interval"),
        Column("mean over campaigns", "number"),
        Column("95 % interval"),
        Column("between", "number"),
        *(Column(str(number), "number") for number in numbers),
    )
    rows = tuple(_row(one, numbers) for one in pooled.comparisons)
    return Table(columns, rows, label="Comparisons")


def _row(comparison: PooledComparison, numbers: Sequence[int]) -> tuple[Cell, ...]:
    between = 100.0 * math.expm1(comparison.pooled.between_sd)
    ratios = (comparison.ratios[number - 1] for number in numbers)
    common, common_interval = estimate_and_interval(
        comparison.common.ratio, comparison.common.ratio_ci, unknown="none"
    )
    pooled, pooled_interval = estimate_and_interval(
        comparison.pooled.ratio, comparison.pooled.ratio_ci, unlimited="unlimited to unlimited"
    )
    return (
        comparison.candidate,
        Styled(common, "strong"),
        "" if comparison.common.unknown_because else common_interval,
        Styled(pooled, "strong"),
        pooled_interval,
        f"±{between:.1f} %",
        *(change_text(ratio, UNKNOWN) for ratio in ratios),
    )


def _count(number: int, noun: str) -> str:
    return f"one {noun}" if number == 1 else f"{number} {noun}s"
