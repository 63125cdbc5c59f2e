"""How cost grows with a size, on the screen: a row for each line over the sizes."""

from __future__ import annotations

from collections.abc import Iterator

from rich.table import Table
from rich.text import Text

from equipoise.figures.size_values import (
    MIN_SIZES,
    exponent_text,
    numeric_factors,
    scaling_laws,
)
from equipoise.model.result import ResultDocument
from equipoise.report.safe_text import visible
from equipoise.stats.scaling import ScalingLaw, law_words


def scaling_tables(document: ResultDocument, metric: str, compared: str | None) -> Iterator[Table]:
    """A table for each factor that is a size and not what is compared."""
    for factor in numeric_factors(document, metric):
        laws = scaling_laws(document, factor, metric)
        if factor != compared and laws:
            yield _table(factor, metric, laws)


def _table(factor: str, metric: str, laws: dict[str, ScalingLaw]) -> Table:
    several = any(len(law.sizes) > MIN_SIZES for law in laws.values())
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(visible(f"{metric} by {factor} (N)"), no_wrap=True, overflow="ellipsis")
    table.add_column("N^", no_wrap=True)
    if several:
        table.add_column("N^ beside log N", no_wrap=True)
        table.add_column("misses by", justify="right", no_wrap=True)
        table.add_column("simple laws that fit every size", no_wrap=True, overflow="ellipsis")
    for name, law in laws.items():
        row = [Text(visible(name)), Text(exponent_text(law.power_law))]
        if several:
            row += [
                Text(exponent_text(law.exponents[1])),
                Text(f"{100 * law.power_law.largest_miss:.1f} %"),
                Text(_simple(law)),
            ]
        table.add_row(*row)
    return table


def _simple(law: ScalingLaw) -> str:
    if not law.can_tell:
        return "too few blocks to exclude one"
    return ", ".join(law_words(*one) for one in law.simple) or "none"
