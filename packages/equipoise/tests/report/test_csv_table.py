"""The table of numbers: a row for each condition and metric, with its comparison."""

from __future__ import annotations

import csv
import io

import pytest
from msgspec.structs import replace

from equipoise.model.result import ResultDocument
from packages.equipoise.tests.documents import document_of, sized_document
from packages.equipoise.tests.payloads import PAYLOADS
from packages.equipoise.tests.report.forms import to_csv


def rows_of(*documents: ResultDocument) -> list[dict[str, str]]:
    """The rows, as another reader has them."""
    return list(csv.DictReader(io.StringIO(to_csv(documents), newline="")))


def test_every_condition_has_a_row_for_each_metric() -> None:
    rows = rows_of(document_of())
    assert [(row["condition"], row["metric"]) for row in rows] == [
        (name, metric)
        for name in ("sort words", "sort --parallel=2 words")
        for metric in ("wall_s", "max_rss_bytes")
    ]


def test_numbers_are_those_of_the_document_to_the_last_digit() -> None:
    document = document_of()
    row = rows_of(document)[2]
    summary = document.conditions[1].metrics["wall_s"]
    comparison = document.comparisons[0]
    assert (float(row["median"]), float(row["p95"])) == (summary.median, summary.p95)
    assert (float(row["median_low"]), float(row["median_high"])) == summary.median_ci
    assert (float(row["ratio_low"]), float(row["ratio_high"])) == comparison.ratio_ci
    assert (row["baseline"], row["verdict"]) == ("sort words", "slower")


def test_the_interval_that_decides_on_equivalent_has_columns_of_its_own() -> None:
    document = document_of()
    (comparison,) = document.comparisons
    comparison = replace(comparison, equivalence_ci=(0.99, 1.01), equivalence_level=0.1)
    row = rows_of(replace(document, comparisons=(comparison,)))[2]
    names = ("equivalence_low", "equivalence_high", "equivalence_level")
    assert [float(row[name]) for name in names] == [0.99, 1.01, 0.1]


def test_cells_without_a_comparison_or_a_value_are_empty() -> None:
    baseline, *_ = rows_of(document_of(blocks=1))
    assert (baseline["ratio"], baseline["verdict"], baseline["sd"]) == ("", "", "")


def test_levels_are_columns_and_several_runs_share_the_table() -> None:
    one = sized_document()
    other = replace(one, run=replace(one.run, id="another"))
    rows = rows_of(document_of(), one, other)
    assert {row["run"] for row in rows} == {one.run.id, "another"}
    assert rows[0]["level_rows"] == ""
    assert {row["level_rows"] for row in rows[4:]} == {"445", "890", "1780", "5340"}


@pytest.mark.parametrize("payload", PAYLOADS)
def test_a_name_is_read_back_as_it_stands(payload: str) -> None:
    assert rows_of(document_of(payload, "other"))[0]["condition"] == payload
