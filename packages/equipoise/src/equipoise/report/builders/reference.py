"""Builds comparisons with other results: with a reference result, and with earlier campaigns.

A reference result is from another host or another time; the user names it with ``--against``. In
the texts, "there" is the reference result, and "here" the new result. Pooled campaigns are
campaigns of the same commands whose ratios become one ratio.
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
    StyledText,
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
"""Maximum number of rows that the answer names: the rows with the largest changes."""
_MAX_LISTED_DIFFERENCES = 20
_MAX_VALUE_LETTERS = 60
"""Maximum length of a value in a difference between the environments."""


def reference_section(reference: ReferenceComparison) -> Section:
    """Build the section that compares every row with the reference result."""
    title = reference_title(reference)
    lines = (reference_answer(reference), *_explanations(reference), *_difference_lines(reference))
    table = Table(*columns_and_rows(map(_reference_cells, reference.rows)), label=title)
    return Section(title, (table, *map(Paragraph, lines)))


def reference_title(reference: ReferenceComparison) -> str:
    """Return a heading that names the reference result."""
    return f"Against run {reference.run} of {reference.started}"


def reference_answer(reference: ReferenceComparison) -> str:
    """Return a sentence with the number of rows that changed."""
    judged_rows = [row for row in reference.rows if row.changed is not None]
    changed_rows = [row for row in judged_rows if row.changed]
    changed_count = len(changed_rows)
    more_count = sum(1 for row in changed_rows if row.ratio is not None and row.ratio > 1.0)
    unknown_count = len(reference.rows) - len(judged_rows)
    unknown = f"; for {unknown_count} rows this is unknown" if unknown_count else ""
    return (
        f"{changed_count} of {len(judged_rows)} rows changed by more than "
        f"{reference.min_effect:g} %: {more_count} cost more, {changed_count - more_count} "
        f"less{unknown}."
    )


def largest_changes(reference: ReferenceComparison) -> Iterator[str]:
    """Yield a line with rows that cost more and a line with rows that cost less, largest first."""
    for verb, sign in (("Costs more", 1.0), ("Costs less", -1.0)):
        changes = [
            (row.ratio, row.name)
            for row in reference.rows
            if row.changed and row.ratio is not None and sign * math.log(row.ratio) > 0
        ]
        descending_changes = sorted(changes, key=lambda change: -abs(math.log(change[0])))
        if descending_changes:
            change_texts = [f"{name} {percent_change(ratio)}" for ratio, name in descending_changes]
            yield f"{verb}: {listed(change_texts, _MAX_LISTED_CHANGES)}."


def _reference_cells(row: ReferenceRow) -> Mapping[str, Cell]:
    there, here = (
        UNKNOWN if value is None else metric_value(value, row.metric)
        for value in (row.reference_median, row.median)
    )
    ratio, interval = estimate_and_interval(
        row.ratio, row.ratio_ci, unknown=UNKNOWN, unlimited=UNKNOWN
    )
    change_cell = StyledText("", "strong")
    if row.changed is None:
        change_cell = StyledText(row.unknown or "", "caution")
    elif row.changed and row.ratio is not None:
        change_cell = StyledText("costs more" if row.ratio > 1.0 else "costs less", "strong")
    return {
        "row": row.name,
        "there:number": there,
        "here:number": here,
        "ratio:number": ratio,
        "interval": interval,
        "changed:text": change_cell,
    }


def _explanations(reference: ReferenceComparison) -> Iterator[str]:
    if reference.significance_level is not None:
        yield (
            "Each ratio is the cost here over the cost there. Of the rows called changed, at most "
            f"{percentage(reference.alpha)} are expected to be unchanged. The intervals hold at "
            f"{percentage(1.0 - reference.alpha)} over the rows called changed."
        )
    if reference.geometric_mean is not None:
        geometric_mean, ends = reference.geometric_mean, reference.geometric_mean_ci
        mean, interval = estimate_and_interval(geometric_mean, ends)
        yield (
            f"Geometric mean over {reference.geometric_mean_rows} rows: {mean} ({interval}). "
            "It gives every row the same weight, as no real program does, so do not rank machines "
            "by it."
        )
    yield f"Scope: {reference.scope}."


def _difference_lines(reference: ReferenceComparison) -> Iterator[str]:
    if not reference.differences:
        yield "Environments: no difference is known."
        return
    count = len(reference.differences)
    phrase = "1 thing differs" if count == 1 else f"{count} things differ"
    yield f"Environments: {phrase} (there → here):"
    for difference in reference.differences[:_MAX_LISTED_DIFFERENCES]:
        yield f"  {_difference_text(difference)}"
    hidden_count = len(reference.differences) - _MAX_LISTED_DIFFERENCES
    if hidden_count > 0:
        yield f"  and {hidden_count} more; {option('json')} has all"


def _difference_text(difference: EnvironmentDifference) -> str:
    name = difference.name.replace("_", " ")
    return f"{name}: {_value_text(difference.reference_value)} → {_value_text(difference.value)}"


def _value_text(value: Any) -> str:
    if value is None:
        return "unknown"
    text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    return shortened(text, _MAX_VALUE_LETTERS)


_MAX_CAMPAIGN_COLUMNS = 6
"""Maximum number of campaigns with a column; the latest campaigns have columns."""
_SHOWN_LETTERS_OF_BOOT_ID = 8


def pooled_document(pooled: PooledCampaigns) -> Document:
    """Build the document on several campaigns: the ratio of each, and the pooled ratio."""
    variance_rows = [
        ratio_variance_row(comparison.candidate, comparison.by_level)
        for comparison in pooled.comparisons
        if comparison.by_level is not None
    ]
    boots = len({(campaign.boot, campaign.kernel) for campaign in pooled.campaigns})
    kernels = len({campaign.kernel for campaign in pooled.campaigns})
    replicate_noun = "hosts" if pooled.hosts > 1 else "boots" if boots > 1 else "campaigns"
    on_hosts = f" and {_counted(pooled.hosts, 'host')}" if pooled.hosts > 1 else ""
    scope = (
        f"scope: across {len(pooled.campaigns)} campaigns on {_counted(boots, 'boot')} of "
        f"{_counted(kernels, 'kernel')}{on_hosts}. One common ratio: if all campaigns have the "
        "same ratio, this interval contains it in at least 95 of 100 pools, whenever each "
        "campaign stopped. Mean over campaigns: for campaigns whose ratios may differ. Its "
        f"replicates are {replicate_noun} of equal weight (Student's t). It uses only the first "
        "blocks of each campaign, which ran whatever they showed, because a campaign that stops "
        "at its verdict overstates the effect. Both results are valid only if the campaigns were "
        "not chosen by their results."
    )
    reasons = dict.fromkeys(comparison.common.unknown_because for comparison in pooled.comparisons)
    return Document(
        name=pooled.study,
        title=f"{len(pooled.campaigns)} campaigns of the same commands",
        parts=(
            _campaigns_table(pooled),
            _comparisons_table(pooled),
            *(Paragraph(f"One common ratio: {reason}.") for reason in reasons if reason),
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
            "boot": campaign.boot[:_SHOWN_LETTERS_OF_BOOT_ID],
            "kernel": campaign.kernel,
            "blocks:number": str(campaign.blocks),
        }
        for number, campaign in enumerate(pooled.campaigns, 1)
    )
    return Table(*columns_and_rows(rows), label="Campaigns")


def _comparisons_table(pooled: PooledCampaigns) -> Table:
    campaign_numbers = range(1, len(pooled.campaigns) + 1)[-_MAX_CAMPAIGN_COLUMNS:]
    columns = (
        Column("candidate", "name"),
        Column("one common ratio", "number"),
        Column("95 % interval"),
        Column("mean over campaigns", "number"),
        Column("95 % interval"),
        Column("between", "number"),
        *(Column(str(number), "number") for number in campaign_numbers),
    )
    rows = tuple(_pooled_cells(comparison, campaign_numbers) for comparison in pooled.comparisons)
    return Table(columns, rows, label="Comparisons")


def _pooled_cells(comparison: PooledComparison, numbers: Sequence[int]) -> tuple[Cell, ...]:
    """Return the row of a comparison; ``numbers`` are the campaigns with a column."""
    between_percent = 100.0 * math.expm1(comparison.pooled.between_sd)
    ratios = (comparison.ratios[number - 1] for number in numbers)
    common_ratio, common_interval = estimate_and_interval(
        comparison.common.ratio, comparison.common.ratio_ci, unknown="none"
    )
    mean_ratio, mean_interval = estimate_and_interval(
        comparison.pooled.ratio, comparison.pooled.ratio_ci, unlimited="unlimited to unlimited"
    )
    return (
        comparison.candidate,
        StyledText(common_ratio, "strong"),
        "" if comparison.common.unknown_because else common_interval,
        StyledText(mean_ratio, "strong"),
        mean_interval,
        f"±{between_percent:.1f} %",
        *(change_text(ratio, UNKNOWN) for ratio in ratios),
    )


def _counted(number: int, noun: str) -> str:
    return f"one {noun}" if number == 1 else f"{number} {noun}s"
