"""The effects of a log as a picture."""

from __future__ import annotations

import numpy as np
import pytest

from equipoise_matching.charts.estimates import Mark, estimates
from equipoise_matching.observation.analysis import observe
from equipoise_matching.observation.drawing import balance_chart, effects_chart
from equipoise_matching.observation.result import ObservationResult
from packages.equipoise.tests.figures.charts import tables
from packages.matching.tests.observation.logs import loaded_log, question


@pytest.fixture(scope="module")
def document() -> ObservationResult:
    request = question(placebo_outcomes=("unmoved",))
    return observe(loaded_log(800), request, source="log")


def test_each_estimate_is_a_row_with_its_interval_in_percent(document: ObservationResult) -> None:
    rows = tables(effects_chart(document), "point")[0]
    assert [row["kind"] for row in rows] == ["naive", "comparable", *["by time"] * 4, "placebo"]
    assert document.matched is not None
    assert document.matched.effect.ratio is not None
    assert rows[1]["at"] == pytest.approx(100.0 * (document.matched.effect.ratio - 1.0))
    assert all(row["low"] <= row["at"] <= row["high"] for row in rows)


def test_the_description_is_the_summary(document: ObservationResult) -> None:
    assert effects_chart(document).to_dict()["description"] == document.summary


def test_a_refused_answer_still_has_the_naive_effect_and_the_balance() -> None:
    refused = observe(loaded_log(days=6), question(), source="log")
    rows = tables(effects_chart(refused), "point")[0]
    assert [row["kind"] for row in rows] == ["naive"]
    sides = {row["side"] for row in tables(balance_chart(refused), "point")[0]}
    assert sides == {"before matching", "after matching"}


def test_an_infinite_estimate_is_not_drawn_and_rows_that_name_themselves_need_no_legend() -> None:
    rows = [Mark("all", "all", 2.0, (1.0, 3.0)), Mark("some", "some", 1.0, (-np.inf, 3.0))]
    chart = estimates(
        rows, ("some", "all"), unit="kg", title="Effect", notes=[], description="words"
    )
    assert [row["label"] for row in tables(chart, "point")[0]] == ["all"]
    assert chart.to_dict()["layer"][2]["encoding"]["color"]["legend"] is None
