"""Findings on primitives and a server's throughput, with a known correlation."""

from __future__ import annotations

import pytest

from equipoise.model.result import ResultDocument
from equipoise_studies.builtin.predicts.analysis import findings, primitives
from equipoise_studies.builtin.predicts.charts import figures
from equipoise_studies.study_data import StudyData
from packages.studies.tests.builtin.synthetic import study_document

FACTORS = {
    "measured": ("throughput", "round_trip", "null_call", "futex"),
    "transport": ("unix", "tcp"),
    "placement": ("same_cpu", "across_cpus"),
    "memory": ("glibc", "glibc_15k", "jemalloc"),
}
DEAR = {"unix": 5.0, "tcp": 9.0, "same_cpu": 1.0, "across_cpus": 6.0}
SLOW = {"glibc": 1.0, "glibc_15k": 1.08, "jemalloc": 0.97}


def values(levels: dict[str, str]) -> dict[str, float]:
    """The round trip costs what the throughput lacks; the futex was never measured."""
    trip = DEAR[levels["transport"]] * DEAR[levels["placement"]] * SLOW[levels["memory"]]
    return {
        "throughput": {"throughput_per_s": 10_000.0 / trip},
        "round_trip": {"latency_s": 1e-6 * trip},
        "null_call": {"latency_s": 1e-7},
        "futex": {"wall_s": 1.0},
    }[levels["measured"]]


@pytest.fixture(scope="module")
def document() -> ResultDocument:
    return study_document("predicts", FACTORS, values, blocks=9, noise=0.01)


def test_the_primitive_that_moves_with_the_throughput_comes_first(document: ResultDocument) -> None:
    first, *others = primitives(StudyData(document))
    assert first.name == "round_trip"
    assert first.correlation is not None
    assert first.correlation.points == 12
    assert first.correlation.value < -0.95
    assert [other.name for other in others] == ["null_call"]


def test_findings_state_the_limits_of_the_evidence(document: ResultDocument) -> None:
    result = findings(StudyData(document))
    (table,) = result.tables
    assert table.headings[1:4] == ("rank correlation", "95 % interval", "conditions")
    assert [row[0] for row in table.rows] == ["round_trip", "null_call"]
    most, little = result.paragraphs[:2]
    assert most.startswith("round_trip correlates most with the throughput: -")
    assert "beyond the range of chance" in most
    assert result.answer.startswith(
        "round_trip correlates most with the throughput (rank correlation -"
    )
    assert result.answer.endswith("over 12 conditions), beyond the range of chance.")
    assert little.startswith("12 conditions prove little: by chance alone")


def test_too_few_conditions_are_not_ranked() -> None:
    small = study_document("predicts", {**FACTORS, "memory": ("glibc",)}, values, blocks=3)
    (table,) = findings(StudyData(small)).tables
    assert {row[2] for row in table.rows} == {"under 5 conditions, or no change"}
    assert findings(StudyData(small)).paragraphs == (
        "No primitive changed over enough conditions to be ranked.",
    )
    assert list(figures(StudyData(small))) == []


def test_a_point_is_drawn_for_each_condition(document: ResultDocument) -> None:
    figure = next(iter(figures(StudyData(document))))
    assert figure.name == "beside_round_trip"
    marks = [layer["mark"]["type"] for layer in figure.chart.to_dict()["layer"]]
    # The text twice: as letters, and as the ground that keeps lines from them.
    assert marks == ["point", "text", "text"]
