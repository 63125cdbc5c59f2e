"""A result against a reference result: every row, the mean with its caveat, what differs.

Campaigns of the same commands are shown each alone, and all of them pooled.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from equipoise.model.pooled import PooledCampaigns, PooledComparison
from equipoise.model.quantities import listed
from equipoise.model.reference import (
    EnvironmentDifference,
    ReferenceComparison,
    ReferenceRow,
)
from equipoise.report.builders.shape import level_parts, levelled_ratio
from equipoise.report.document import (
    UNKNOWN,
    Cell,
    Column,
    Document,
    Paragraph,
    Section,
    Styled,
    Table,
    columns_and_rows,
)
from equipoise.report.units import (
    change_text,
    estimate_and_interval,
    metric_value,
    percent_change,
    percentage,
)
from equipoise.shared.safe_text import shortened
from equipoise.shared.spelling import option

_CHANGED_SHOWN = 6
"""Rows that the answer names, those that changed most."""
_DIFFERENCES_SHOWN = 20
_MAX_VALUE_LETTERS = 60


def reference_section(against: ReferenceComparison) -> Section:
    """Build the section with every row against the reference result."""
    title = reference_title(against)
    lines = (reference_answer(against), *_sentences(against), *_differences(against))
    return Section(
        title,
        (Table(*columns_and_rows(map(_row, against.rows)), label=title), *map(Paragraph, lines)),
    )


def reference_title(against: ReferenceComparison) -> str:
    """Name the reference result."""
    return f"Against run {against.run} of {against.started}"


def reference_answer(against: ReferenceComparison) -> str:
    """Return how many rows changed."""
    known = [row for row in against.rows if row.changed is not None]
    changed = [row for row in known if row.changed]
    more = sum(1 for row in changed if row.ratio is not None and row.ratio > 1.0)
    unknown = len(against.rows) - len(known)
    return (
        f"{len(changed)} of {len(known)} rows changed by more than {against.min_effect:g} %: "
        f"{more} cost more, {len(changed) - more} less"
        + (f"; for {unknown} rows this is unknown" if unknown else "")
        + "."
    )


def largest_changes(against: ReferenceComparison) -> Iterator[str]:
    """Yield the rows that cost more and those that cost less, the largest change first."""
    for verb, sign in (("Costs more", 1.0), ("Costs less", -1.0)):
        ratios = [
            (row.ratio, row.name)
            for row in against.rows
            if row.changed and row.ratio is not None and sign * math.log(row.ratio) > 0
        ]
        largest = sorted(ratios, key=lambda change: -abs(math.log(change[0])))
        if largest:
            named = [f"{name} {percent_change(ratio)}" for ratio, name in largest]
            yield f"{verb}: {listed(named, _CHANGED_SHOWN)}."


def _row(row: ReferenceRow) -> Mapping[str, Cell]:
    there, here = (
        UNKNOWN if value is None else metric_value(value, row.metric)
        for value in (row.there, row.here)
    )
    ratio, interval = estimate_and_interval(
        row.ratio, row.ratio_ci, unknown=UNKNOWN, unlimited=UNKNOWN
    )
    changed = Styled("", "strong")
    if row.changed is None:
        changed = Styled(row.unknown or "", "caution")
    elif row.changed and row.ratio is not None:
        changed = Styled("costs more" if row.ratio > 1.0 else "costs less", "strong")
    return {
        "row": row.name,
        "there:number": there,
        "here:number": here,
        "ratio:number": ratio,
        "interval": interval,
        "changed:words": changed,
    }


def _sentences(against: ReferenceComparison) -> Iterator[str]:
    if against.level is not None:
        yield (
            "Each ratio is the cost here over the cost there. Of the rows called changed, at most "
            f"{percentage(against.alpha)} are expected to be unchanged. The intervals hold at "
            f"{percentage(1.0 - against.alpha)} over the rows called changed."
        )
    if against.geometric_mean is not None:
        mean, interval = estimate_and_interval(against.geometric_mean, against.geometric_mean_ci)
        yield (
            f"Geometric mean over {against.geometric_mean_rows} rows: {mean} ({interval}). "
            "It weighs every row alike, as no program does: it ranks no machine."
        )
    yield f"Scope: {against.scope}."


def _differences(against: ReferenceComparison) -> Iterator[str]:
    if not against.differences:
        yield "Environments: nothing that is known of both differs."
        return
    count = len(against.differences)
    differ = "1 thing differs" if count == 1 else f"{count} things differ"
    yield f"Environments: {differ} (there → here):"
    for difference in against.differences[:_DIFFERENCES_SHOWN]:
        yield f"  {_difference(difference)}"
    more = len(against.differences) - _DIFFERENCES_SHOWN
    if more > 0:
        yield f"  and {more} more; {option('json')} has all"


def _difference(difference: EnvironmentDifference) -> str:
    name = difference.name.replace("_", " ")
    return f"{name}: {_value(difference.there)} → {_value(difference.here)}"


def _value(value: Any) -> str:
    if value is None:
        return "unknown"
    text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    return shortened(text, _MAX_VALUE_LETTERS)


_MAX_COLUMNS = 6
"""Number of campaigns that are shown side by side, the latest."""
_BOOT_LETTERS = 8


def pooled_document(pooled: PooledCampaigns) -> Document:
    """Build what each campaign found, and what holds over all of them."""
    levels = [
        levelled_ratio(comparison.candidate, comparison.by_level)
        for comparison in pooled.comparisons
        if comparison.by_level is not None
    ]
    boots = len({(campaign.boot, campaign.kernel) for campaign in pooled.campaigns})
    kernels = len({campaign.kernel for campaign in pooled.campaigns})
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
    unknown = dict.fromkeys(comparison.common.unknown_because for comparison in pooled.comparisons)
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
            "run": campaign.id,
            "started": campaign.started[:16].replace("T", " "),
            **({"host:name": campaign.host or UNKNOWN} if several else {}),
            "boot": campaign.boot[:_BOOT_LETTERS],
            "kernel": campaign.kernel,
            "blocks:number": str(campaign.blocks),
        }
        for number, campaign in enumerate(pooled.campaigns, 1)
    )
    return Table(*columns_and_rows(rows), label="Campaigns")


def _comparisons_table(pooled: PooledCampaigns) -> Table:
    numbers = range(1, len(pooled.campaigns) + 1)[-_MAX_COLUMNS:]
    columns = (
        Column("candidate", "name"),
        Column("one common ratio", "number"),
        Column("95 % interval"),
        Column("mean over campaigns", "number"),
        Column("95 % interval"),
        Column("between", "number"),
        *(Column(str(number), "number") for number in numbers),
    )
    rows = tuple(_pooled_row(comparison, numbers) for comparison in pooled.comparisons)
    return Table(columns, rows, label="Comparisons")


def _pooled_row(comparison: PooledComparison, numbers: Sequence[int]) -> tuple[Cell, ...]:
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
