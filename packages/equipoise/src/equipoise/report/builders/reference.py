"""Builds comparisons with other results: with a reference result, and with earlier campaigns.

A reference result is from another host or another time; the user names it with ``--against``. The
report compares every row and lists the differences between the environments. Campaigns of the same
commands are shown one by one and pooled.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from equipoise.model.pooled import PooledCampaigns, PooledComparison
from equipoise.model.quantities import listed
from equipoise.model.reference import EnvironmentDifference, ReferenceComparison, ReferenceRow
from equipoise.report.builders.shape import ratio_variance_row, variance_parts
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

_MAX_LISTED_CHANGES = 6
"""Number of rows with the largest changes that the answer names."""
_MAX_LISTED_DIFFERENCES = 20
_MAX_VALUE_LETTERS = 60


def reference_section(against: ReferenceComparison) -> Section:
    """Build the section that compares every row with the reference result."""
    title = reference_title(against)
    lines = (reference_answer(against), *_explanations(against), *_difference_lines(against))
    return Section(
        title,
        (Table(*columns_and_rows(map(_cells, against.rows)), label=title), *map(Paragraph, lines)),
    )


def reference_title(against: ReferenceComparison) -> str:
    """Return a heading that names the reference result."""
    return f"Against run {against.run} of {against.started}"


def reference_answer(against: ReferenceComparison) -> str:
    """Return the sentence on how many rows changed."""
    known = [row for row in against.rows if row.changed is not None]
    changed = [row for row in known if row.changed]
    more_count = sum(1 for row in changed if row.ratio is not None and row.ratio > 1.0)
    unknown_count = len(against.rows) - len(known)
    unknown = f"; for {unknown_count} rows this is unknown" if unknown_count else ""
    return (
        f"{len(changed)} of {len(known)} rows changed by more than {against.min_effect:g} %: "
        f"{more_count} cost more, {len(changed) - more_count} less{unknown}."
    )


def largest_changes(against: ReferenceComparison) -> Iterator[str]:
    """Yield a line with the rows that cost more, then one with the rows that cost less.

    The largest change is first in each line.
    """
    for verb, sign in (("Costs more", 1.0), ("Costs less", -1.0)):
        ratios = [
            (row.ratio, row.name)
            for row in against.rows
            if row.changed and row.ratio is not None and sign * math.log(row.ratio) > 0
        ]
        largest = sorted(ratios, key=lambda change: -abs(math.log(change[0])))
        if largest:
            changes = [f"{name} {percent_change(ratio)}" for ratio, name in largest]
            yield f"{verb}: {listed(changes, _MAX_LISTED_CHANGES)}."


def _cells(row: ReferenceRow) -> Mapping[str, Cell]:
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


def _explanations(against: ReferenceComparison) -> Iterator[str]:
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
            "It gives every row the same weight, as no real program does, so do not rank machines "
            "by it."
        )
    yield f"Scope: {against.scope}."


def _difference_lines(against: ReferenceComparison) -> Iterator[str]:
    if not against.differences:
        yield "Environments: no difference is known."
        return
    count = len(against.differences)
    differ = "1 thing differs" if count == 1 else f"{count} things differ"
    yield f"Environments: {differ} (there → here):"
    for difference in against.differences[:_MAX_LISTED_DIFFERENCES]:
        yield f"  {_difference_text(difference)}"
    hidden_count = len(against.differences) - _MAX_LISTED_DIFFERENCES
    if hidden_count > 0:
        yield f"  and {hidden_count} more; {option('json')} has all"


def _difference_text(difference: EnvironmentDifference) -> str:
    name = difference.name.replace("_", " ")
    return f"{name}: {_value_text(difference.there)} → {_value_text(difference.here)}"


def _value_text(value: Any) -> str:
    if value is None:
        return "unknown"
    text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    return shortened(text, _MAX_VALUE_LETTERS)


_MAX_CAMPAIGN_COLUMNS = 6
"""Number of the latest campaigns whose ratios have a column each."""
_BOOT_ID_LETTERS = 8
"""Number of letters of a boot's id that the table shows."""


def pooled_document(pooled: PooledCampaigns) -> Document:
    """Build the document on several campaigns: their ratios, and the result over all of them."""
    variance_rows = [
        ratio_variance_row(comparison.candidate, comparison.by_level)
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
        "same ratio, this interval contains it in at least 95 of 100 pools, whenever each "
        "campaign stopped. Mean over campaigns: for campaigns whose ratios may differ. Its "
        f"replicates are {replicates} of equal weight (Student's t). It uses only the first "
        "blocks of each campaign, which ran whatever they showed, because a campaign that stops "
        "at its verdict overstates the effect. Both results are valid only if the campaigns were "
        "not chosen by their results."
    )
    unknown = dict.fromkeys(comparison.common.unknown_because for comparison in pooled.comparisons)
    return Document(
        name=pooled.study,
        title=f"{len(pooled.campaigns)} campaigns of the same commands",
        parts=(
            _campaigns_table(pooled),
            _comparisons_table(pooled),
            *(Paragraph(f"One common ratio: {why}.") for why in unknown if why is not None),
            *variance_parts(variance_rows),
            Paragraph(scope, "dim"),
        ),
    )


def _campaigns_table(pooled: PooledCampaigns) -> Table:
    has_hosts = pooled.hosts > 1
    rows = (
        {
            "": str(number),
            "run": campaign.id,
            "started": campaign.started[:16].replace("T", " "),
            **({"host:name": campaign.host or UNKNOWN} if has_hosts else {}),
            "boot": campaign.boot[:_BOOT_ID_LETTERS],
            "kernel": campaign.kernel,
            "blocks:number": str(campaign.blocks),
        }
        for number, campaign in enumerate(pooled.campaigns, 1)
    )
    return Table(*columns_and_rows(rows), label="Campaigns")


def _comparisons_table(pooled: PooledCampaigns) -> Table:
    numbers = range(1, len(pooled.campaigns) + 1)[-_MAX_CAMPAIGN_COLUMNS:]
    columns = (
        Column("candidate", "name"),
        Column("one common ratio", "number"),
        Column("95 % interval"),
        Column("mean over campaigns", "number"),
        Column("95 % interval"),
        Column("between", "number"),
        *(Column(str(number), "number") for number in numbers),
    )
    rows = tuple(_pooled_cells(comparison, numbers) for comparison in pooled.comparisons)
    return Table(columns, rows, label="Comparisons")


def _pooled_cells(comparison: PooledComparison, numbers: Sequence[int]) -> tuple[Cell, ...]:
    """Return the row of a comparison; ``numbers`` are those of the campaigns with a column."""
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
