"""Costs that follow the law are level, and others rise or falls."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from equipoise.figures.scaling import size_normalised
from packages.equipoise.tests.documents import document_of, sized_document
from packages.equipoise.tests.figures.charts import tables


def test_the_first_line_is_level_and_the_steeper_one_rises() -> None:
    chart = size_normalised(sized_document(), "rows")
    assert chart is not None
    rows = tables(chart, "point")[0]
    fast = [row["value"] for row in rows if row["condition"] == "algorithm fast"]
    slow = [row["value"] for row in rows if row["condition"] == "algorithm slow"]
    assert fast == pytest.approx([1.0] * 4, rel=0.05)
    # Planted: 1.2 times as much at 445 rows, and N^1.5.
    assert slow == pytest.approx(
        [1.2 * (rows / 445) ** 0.5 for rows in (445, 890, 1780, 5340)], rel=0.05
    )
    assert "time over rows" in chart.to_dict()["description"]


def test_the_interval_is_divided_as_the_median_is() -> None:
    document = sized_document()
    chart = size_normalised(document, "rows")
    assert chart is not None
    summary = document.conditions[0].metrics["wall_s"]
    low, high = summary.median_ci
    assert low is not None
    assert high is not None
    first = tables(chart, "point")[0][0]
    assert first["value"] == 1.0
    assert first["low"] == pytest.approx(low / summary.median, rel=1e-5)
    assert first["high"] == pytest.approx(high / summary.median, rel=1e-5)


def test_without_a_law_there_is_nothing_to_divide_by() -> None:
    document = document_of("a", "b", blocks=2)
    below = tuple(
        replace(one, levels={"size": size})
        for one, size in zip(document.conditions, ("0.25", "0.5"), strict=True)
    )
    assert size_normalised(replace(document, conditions=below), "size") is None
