"""The chart of a search: the pairs that ran, and the exclusions."""

from __future__ import annotations

from msgspec.structs import replace

from equipoise.figures.gallery import gallery
from equipoise.kinds.bisect.figures import bisection_chart
from equipoise.kinds.bisect.terms import BisectBlock
from packages.equipoise.tests.bisections import (
    COUNT,
    CULPRIT,
    PAIRS,
    bisect_document,
    bisect_result,
    merge_result,
    name_of,
)
from packages.equipoise.tests.figures.charts import notes, tables


def test_every_block_is_a_line_between_its_two_commits() -> None:
    (lines,) = tables(bisection_chart(bisect_result()), "rule")
    assert [(row["number"], row["later_number"]) for row in lines] == list(PAIRS)
    assert [row["trials"] for row in lines] == list(range(2, 2 * len(PAIRS) + 1, 2))
    kinds = [row["kind"] for row in lines]
    assert kinds[0] == "both ends of the search"
    assert kinds[3] == "a pair between"
    assert kinds[-1] == "a commit against its parent"


def test_neighbours_that_one_block_excluded_are_one_area_from_then_on() -> None:
    (areas,) = tables(bisection_chart(bisect_result()), "rect")
    assert [(row["trials"], row["number"], row["until_number"]) for row in areas] == [
        (10, 0.5, 5.5),
        (14, 5.5, 10.5),
        (14, 11.5, 12.5),
        (10, 12.5, COUNT + 0.5),
    ]
    assert {row["until"] for row in areas} == {2 * len(PAIRS)}


def test_the_culprit_is_marked_and_named() -> None:
    (marks,) = tables(bisection_chart(bisect_result()), "point")
    assert [row["number"] for row in marks] == [CULPRIT]
    assert (
        notes(bisection_chart(bisect_result())) == "15 of 16 commits are excluded after 14 trials."
    )


def test_blocks_without_a_remaining_gap_are_counted_and_not_drawn() -> None:
    result = bisect_result()
    rest = [BisectBlock(10 + place, 0, 10, 2) for place in range(150)]
    rest += [BisectBlock(160 + place, 11, 16, 3) for place in range(150)]
    chart = bisection_chart(replace(result, course=(*result.course, *rest)))
    assert len(tables(chart, "rule")[0]) == len(PAIRS)
    assert notes(chart) == (
        "15 of 16 commits are excluded after 14 trials. Then 600 trials searched the rest of the "
        "gap, without a certain result."
    )
    # A later search with a gap is drawn, with all searches before it.
    searched = (*result.course, *rest, BisectBlock(310, 11, 13, 3), BisectBlock(311, 12, 13, 3))
    lines = tables(bisection_chart(replace(result, course=searched)), "rule")[0]
    assert len(lines) == len(searched)
    assert [row["kind"] for row in lines[-3:]] == [
        "both ends of the search",
        "a pair between",
        "a commit against its parent",
    ]


def test_a_search_without_a_block_can_be_drawn() -> None:
    result = replace(bisect_result(), course=())
    assert tables(bisection_chart(result), "rule") == [[]]
    assert "over 0 trials" in bisection_chart(result).to_dict()["description"]


def test_the_search_is_the_only_figure_of_a_bisection() -> None:
    document = bisect_document()
    assert [figure.name for figure in gallery(document, {})] == ["bisection"]


def test_each_branch_that_was_searched_has_a_figure_of_its_own() -> None:
    result = merge_result()
    figures = list(gallery(bisect_document(result=result), {}))
    assert [figure.name for figure in figures] == ["bisection", "bisection_branch_1"]
    (blocks,) = tables(figures[1].chart, "rule")
    assert blocks[0]["earlier"] == name_of(9)[:10]
    assert [row["later"] for row in blocks] == [name_of(length)[:10] for length in (24, 23, 23)]
