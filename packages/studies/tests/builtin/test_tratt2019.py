"""The built-in study `tratt2019`: what it makes of its two programs."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace

from equipoise.model.result import ResultDocument
from equipoise.stats.arrays import FloatArray
from equipoise_studies.builtin.tratt2019.analysis import correlation, findings, shares_of_tenths
from equipoise_studies.builtin.tratt2019.charts import figures
from equipoise_studies.study_data import StudyData
from packages.equipoise.tests.documents import comparison_of, document_of

WALK, LINEAR, BINARY = "hashwalk linear", "wordsearch linear", "wordsearch binary"
RUNS = 300


def planted(linear: FloatArray, binary: FloatArray, *, misleads: bool = False) -> ResultDocument:
    """A result whose linear programs take 2 ns a step, for the given search times in seconds."""
    document = document_of(WALK, LINEAR, BINARY, blocks=len(linear))
    times = {WALK: linear, LINEAR: linear, BINARY: binary}

    def metrics(name: str, block: int) -> dict[str, float]:
        seconds = float(times[name][block - 1])
        return {"search_s": seconds, "steps": 17.0 if name == BINARY else round(seconds / 2e-9)}

    comparison = replace(
        comparison_of(LINEAR, BINARY, 0.1, len(linear), verdict="faster", metric="search_s"),
        minimum_misleads=misleads,
    )
    return replace(
        document,
        conditions=tuple(
            replace(
                condition,
                levels=dict(zip(("program", "algorithm"), condition.name.split(), strict=True)),
            )
            for condition in document.conditions
        ),
        comparisons=(comparison,),
        trials=tuple(
            replace(row, metrics=metrics(row.condition, row.block)) for row in document.trials
        ),
    )


@pytest.fixture
def generator() -> np.random.Generator:
    return np.random.default_rng(2019)


def paragraphs_of(document: ResultDocument) -> str:
    return "\n".join(findings(StudyData(document)).paragraphs)


def test_the_correlation_of_steps_and_times_is_shown(
    generator: np.random.Generator,
) -> None:
    result = findings(StudyData(planted(generator.uniform(1e-3, 1e-1, RUNS), np.full(RUNS, 1e-3))))
    table = next(table for table in result.tables if table.title.startswith("Correlation of steps"))
    walk = next(row for row in table.rows if row[0] == "hashwalk")
    assert float(walk[1]) > 0.99
    # A binary search has one number of steps, which goes with nothing.
    assert [row[0] for row in table.rows] == ["hashwalk", "wordsearch, linear"]


def test_the_minimum_and_the_median_name_different_winners(
    generator: np.random.Generator,
) -> None:
    linear = generator.uniform(1e-2, 1e-1, RUNS)
    linear[7] = 1e-5
    result = findings(StudyData(planted(linear, np.full(RUNS, 1e-3), misleads=True)))
    table = next(table for table in result.tables if table.title.startswith("Linear and binary"))
    named = {row[0]: row[3] for row in table.rows}
    assert named["minimum"] == "linear"
    assert {named[name] for name in named if name != "minimum"} == {"binary"}


def test_a_minimum_that_misled_is_reported(generator: np.random.Generator) -> None:
    linear, binary = generator.uniform(1e-2, 1e-1, RUNS), np.full(RUNS, 1e-3)
    assert "does not mislead" in paragraphs_of(planted(linear, binary))
    linear[7] = 1e-5
    paragraphs = paragraphs_of(planted(linear, binary, misleads=True))
    assert "would have misled" in paragraphs
    assert f"1 of {RUNS} linear runs" in paragraphs
    answer = findings(StudyData(planted(linear, binary, misleads=True))).answer
    assert answer.startswith("Binary search is faster: ")
    assert answer.endswith("The minimum would have misled.")


def test_a_flat_distribution_has_a_tenth_in_each_tenth(generator: np.random.Generator) -> None:
    flat = shares_of_tenths(generator.uniform(0.0, 1.0, 20_000))
    assert flat == pytest.approx(np.full(10, 0.1), abs=0.015)
    assert shares_of_tenths(generator.normal(0.0, 1.0, 20_000)).max() > 0.15


def test_constant_has_no_correlation() -> None:
    assert correlation(np.ones(50), np.arange(50.0)) is None


def test_a_study_that_was_just_begun_says_nothing_yet(generator: np.random.Generator) -> None:
    result = findings(StudyData(planted(generator.uniform(1e-3, 1e-1, 3), np.full(3, 1e-3))))
    assert not result.tables and not result.paragraphs and not result.answer


def test_each_program_has_its_histogram_and_those_with_steps_their_scatter(
    generator: np.random.Generator,
) -> None:
    document = planted(generator.uniform(1e-3, 1e-1, RUNS), generator.uniform(1e-3, 2e-3, RUNS))
    names = [figure.name for figure in figures(StudyData(document))]
    assert names == [
        "histogram_hashwalk_linear",
        "steps_hashwalk_linear",
        "histogram_wordsearch_linear",
        "steps_wordsearch_linear",
        "histogram_wordsearch_binary",
    ]
    bars = next(figures(StudyData(document))).chart.to_dict()
    bar_layer = bars["layer"][0]
    rows = bars["datasets"][bar_layer["data"]["name"]]
    assert {row[bar_layer["encoding"]["y"]["field"]] for row in rows} == {0}
    assert sum(row[bar_layer["encoding"]["y2"]["field"]] for row in rows) >= 0.99 * RUNS
