"""Every process of every primitive is drawn, in the unit in which it reads well."""

from __future__ import annotations

from equipoise.analysis.result import analyse_campaign as result_of
from equipoise.figures.gallery import gallery
from equipoise.model.result import ResultDocument
from equipoise_studies.primitives.charts import primitives
from equipoise_studies.primitives.report import is_of_primitives
from packages.equipoise.tests.documents import document_of
from packages.studies.tests.primitives.campaigns import ProbeRunner, plan_of_rows, record_of


def result() -> ResultDocument:
    failures = {"pipe_across_cpus": "it needs two CPUs"}
    return result_of(record_of(ProbeRunner(plan_of_rows(), failures=failures)))


def test_primitives_have_one_figure_per_metric() -> None:
    assert is_of_primitives(result())
    assert not is_of_primitives(document_of())
    assert [figure.name for figure in gallery(result(), {})] == [
        "primitives_latency_s",
        "primitives_bandwidth_bytes_per_s",
    ]


def test_chart_has_a_dot_for_each_process_and_a_line_for_each_median() -> None:
    chart = primitives(result(), "latency_s")
    assert chart is not None
    specification = chart.to_dict()
    dots, medians = (
        specification["datasets"][layer["data"]["name"]] for layer in specification["layer"]
    )
    assert {row["row"] for row in dots} == {"null_call", "fork", "pipe_same_cpu"}
    assert len(dots) == 3 * 7
    assert len(medians) == 3
    low, high = specification["layer"][0]["encoding"]["x"]["scale"]["domain"]
    assert all(low <= row["value"] <= high for row in dots)


def test_metric_without_rows_has_no_figure() -> None:
    assert primitives(document_of(), "latency_s") is None
