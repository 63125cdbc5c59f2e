"""Every comparison is next to the others with its interval, and the control among them."""

from __future__ import annotations

from typing import Any

import altair as alt
import pytest
from msgspec.structs import replace

from equipoise.figures.gallery import gallery
from equipoise.figures.ratios import CONTROL_KIND, MAX_ROWS, other_ratios, ratios
from equipoise.kinds.imported.terms import ImportedDocument, ImportedResult, ImportSource
from equipoise.model.result import ControlResult, ResultDocument, SampleComparison
from packages.equipoise.tests.documents import comparison_of, document_as, document_of
from packages.equipoise.tests.figures.charts import notes, tables


def bars(chart: alt.LayerChart | None) -> list[dict[str, Any]]:
    """The rows of the bars: those of the line of no difference have no name."""
    assert chart is not None
    return [row for table in tables(chart, "rule") for row in table if "label" in row]


def controlled(document: ResultDocument, low: float | None = 0.99) -> ResultDocument:
    """The document with a control whose interval reaches from ``low`` to 1.004."""
    baseline = document.conditions[0]
    repeated = replace(baseline, name="again")
    comparison = comparison_of(baseline.name, repeated.name, 1.001, ratio_ci=(low, 1.004))
    control = ControlResult(repeated, comparison, excludes_one=False, summary="It agrees.")
    return replace(document, control=control)


def compared(*ratio: float | None, **changed: Any) -> ResultDocument:
    """A document with a comparison for each ratio."""
    document = document_of("a", "b", blocks=2)
    comparisons = tuple(
        comparison_of("a", f"b{place}", one, **changed) for place, one in enumerate(ratio)
    )
    return replace(document, comparisons=comparisons)


def test_one_comparison_by_itself_needs_no_such_figure() -> None:
    assert ratios(compared(1.05)) is None
    assert other_ratios(compared(1.05)) is None


def test_each_comparison_is_a_bar_from_end_to_end_of_its_interval() -> None:
    rows = bars(ratios(compared(1.05, 0.97)))
    assert [row["label"] for row in rows] == ["b0", "b1"]
    assert [row["ratio"] for row in rows] == pytest.approx([5.0, -3.0])
    assert [row["low"] for row in rows] == pytest.approx([2.9, -4.94])
    assert [row["high"] for row in rows] == pytest.approx([7.1, -1.06])


def test_the_control_stands_last_with_the_noise_floor() -> None:
    chart = ratios(controlled(compared(1.05)))
    rows = bars(chart)
    assert [row["kind"] for row in rows] == ["compared", CONTROL_KIND]
    assert rows[1]["label"] == "control: a against itself"
    assert chart is not None
    # 1 / 0.99 is further from no difference than 1.004.
    assert "reaches 1.01 % from no difference" in notes(chart)


def test_there_is_no_noise_floor_while_the_control_is_open() -> None:
    document = controlled(compared(1.05), low=None)
    assert document.control is not None
    assert document.control.noise_floor is None
    chart = ratios(document)
    assert chart is not None
    assert "noise floor" not in notes(chart)
    assert "goes on beyond" in notes(chart)


def test_an_unknown_ratio_has_a_bar_from_edge_to_edge_and_no_mark() -> None:
    chart = ratios(compared(1.05, None))
    known, unknown = bars(chart)
    assert unknown["ratio"] is None
    assert unknown["low"] < known["low"] < known["high"] < unknown["high"]
    assert chart is not None
    assert [len(table) for table in tables(chart, "point")] == [1]


def test_a_far_end_does_not_squeeze_the_others() -> None:
    document = compared(1.05, 0.97, 1.02)
    wide = replace(document.comparisons[0], ratio_ci=(0.001, 1000.0))
    rows = bars(ratios(replace(document, comparisons=(wide, *document.comparisons[1:]))))
    assert rows[0]["high"] - rows[0]["low"] < 40
    assert rows[1]["high"] - rows[1]["low"] > 3


def test_more_than_fit_are_counted_and_the_control_stays() -> None:
    chart = ratios(controlled(compared(*[1.05] * 60)))
    rows = bars(chart)
    assert len(rows) == MAX_ROWS
    assert rows[-1]["kind"] == CONTROL_KIND
    assert chart is not None
    assert "40 of 61" in notes(chart)


def test_other_metrics_have_a_figure_of_their_own() -> None:
    document = compared(1.05)
    other = comparison_of("a", "b0", 1.2, metric="minor_faults")
    both = replace(document, comparisons=(*document.comparisons, other))
    assert ratios(both) is None
    assert [row["label"] for row in bars(other_ratios(both))] == ["minor faults"]
    assert [figure.name for figure in gallery(both, {})] == [
        "distributions",
        "other_ratios",
        "time_course",
    ]


def test_a_screen_reader_hears_every_number() -> None:
    chart = ratios(compared(1.05, None))
    assert chart is not None
    assert "b0: ratio 1.05, 1.029 to 1.071; b1: ratio unknown" in chart.to_dict()["description"]


def test_imported_comparisons_stand_there_too_without_a_verdict() -> None:
    def foreign(candidate: str, ratio: float) -> SampleComparison:
        interval = (ratio * 0.98, ratio * 1.02)
        return SampleComparison(
            *("a", candidate, "wall_s", "Welch", "ratio of means", ratio, interval, None),
            *(0.05, 8, 8, "these files", "words"),
        )

    source = ImportSource("csv", None, ("trials.csv",), "mixed")
    two = ImportedResult(source, "wall_s", (foreign("b", 1.2), foreign("c", 0.8)), "words")
    rows = bars(ratios(document_as(ImportedDocument, compared(), imported=two)))
    assert [row["label"] for row in rows] == ["b", "c"]
    assert [row["ratio"] for row in rows] == pytest.approx([20.0, -20.0])
    assert {row["says"] for row in rows} == {"imported"}
