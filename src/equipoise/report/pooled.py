"""Campaigns of the same commands on the screen: each by itself, and all of them pooled."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from equipoise.model.result import PooledCampaigns, PooledComparison
from equipoise.report.levels import levelled_ratio, print_levels
from equipoise.report.safe_text import visible
from equipoise.report.terminal import console_for
from equipoise.report.units import interval_words, percent_change

MOST_COLUMNS = 6
"""So many campaigns stand beside one another, the newest."""
BOOT_LETTERS = 8


def print_pooled(found: PooledCampaigns, *, color: bool) -> None:
    """Print what each campaign found, and what holds over all of them."""
    console = console_for(color)
    console.print(_campaigns(found))
    console.print()
    console.print(_comparisons(found))
    print_levels(
        console,
        [
            levelled_ratio(one.candidate, one.by_level)
            for one in found.comparisons
            if one.by_level is not None
        ],
    )
    boots = len({(one.boot, one.kernel) for one in found.campaigns})
    kernels = len({one.kernel for one in found.campaigns})
    replicates = "boots" if boots > 1 else "campaigns"
    console.print()
    console.print(
        Text(
            f"scope: across {len(found.campaigns)} campaigns on {_count(boots, 'boot')} of "
            f"{_count(kernels, 'kernel')}; the intervals take {replicates} for replicates, each "
            "alike (Student's t). They hold for campaigns that were not chosen by their results.",
            style="dim",
        )
    )


def _campaigns(found: PooledCampaigns) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for heading in ("", "run", "started", "boot", "kernel", "blocks"):
        table.add_column(heading, justify="right" if heading == "blocks" else "left")
    for number, one in enumerate(found.campaigns, 1):
        table.add_row(
            Text(str(number)),
            Text(one.id),
            Text(one.started[:16].replace("T", " ")),
            Text(visible(one.boot[:BOOT_LETTERS])),
            Text(visible(one.kernel)),
            Text(str(one.blocks)),
        )
    return table


def _comparisons(found: PooledCampaigns) -> Table:
    numbers = range(1, len(found.campaigns) + 1)[-MOST_COLUMNS:]
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("candidate", no_wrap=True, overflow="ellipsis", max_width=48)
    table.add_column("pooled", justify="right", no_wrap=True)
    table.add_column("95 % interval", no_wrap=True)
    table.add_column("between", justify="right", no_wrap=True)
    for number in numbers:
        table.add_column(str(number), justify="right", no_wrap=True)
    for one in found.comparisons:
        table.add_row(*_row(one, numbers))
    return table


def _row(one: PooledComparison, numbers: Sequence[int]) -> list[Text]:
    between = 100.0 * math.expm1(one.pooled.between_sd)
    ratios = (one.ratios[number - 1] for number in numbers)
    return [
        Text(visible(one.candidate)),
        Text(percent_change(one.pooled.ratio), style="bold"),
        Text(interval_words(*one.pooled.ratio_ci)),
        Text(f"±{between:.1f} %"),
        *(Text("–" if ratio is None else percent_change(ratio)) for ratio in ratios),
    ]


def _count(number: int, what: str) -> str:
    return f"one {what}" if number == 1 else f"{number} {what}s"
