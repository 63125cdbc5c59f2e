"""Findings of the other studies on results with known answers."""

from __future__ import annotations

import pytest

from equipoise.model.result import ResultDocument
from equipoise_studies.builtin.blas.analysis import findings as blas_findings
from equipoise_studies.builtin.ridiculousfish2006.analysis import findings as fish_findings
from equipoise_studies.builtin.ridiculousfish2006.analysis import kernel_sizes
from equipoise_studies.builtin.ridiculousfish2006.charts import figures as fish_figures
from equipoise_studies.builtin.tasks.analysis import figures as tasks_figures
from equipoise_studies.builtin.tasks.analysis import findings as tasks_findings
from equipoise_studies.builtin.threshold.analysis import findings as threshold_findings
from equipoise_studies.builtin.threshold.analysis import points_of
from equipoise_studies.builtin.threshold.charts import figures as threshold_figures
from equipoise_studies.ranking import Ranking
from equipoise_studies.study_data import UNKNOWN, StudyData
from packages.studies.tests.builtin.synthetic import study_document


def fish(blocks: int = 20) -> ResultDocument:
    """Blocks that cost 20 ns, and 20 µs from each allocator's step on."""
    step = {"glibc": 131_049.0, "glibc_15k": 15_337.0, "tcmalloc": None, "dlmalloc": 262_144.0}

    def values(levels: dict[str, str]) -> dict[str, float]:
        if levels["block"] == "genmatch2006":
            return {"work_s": 2.4 if levels["allocator"] == "glibc_15k" else 1.0}
        size, own = float(levels["block"]), step[levels["allocator"]]
        kernel = own is not None and size >= own
        costs = {
            "work_s": 20e-6 if kernel else 20e-9,
            "faults_per_pair": 9.0 if kernel else 0.001,
            "calls_per_pair": 2.0 if kernel else 0.0,
            "searched_to_bytes": 67_108_864.0,
        }
        return costs if own is None else {**costs, "kernel_from_bytes": own}

    factors = {
        "allocator": tuple(step),
        "block": ("1024", "35840", "1048576", "genmatch2006"),
    }
    return study_document("ridiculousfish2006", factors, values, blocks=blocks)


def test_smallest_block_that_goes_back_to_the_kernel_per_allocator() -> None:
    by_allocator = kernel_sizes(StudyData(fish()))
    assert by_allocator == {
        "glibc": 131_049,
        "glibc_15k": 15_337,
        "tcmalloc": None,
        "dlmalloc": 262_144,
    }
    table = next(
        table
        for table in fish_findings(StudyData(fish())).tables
        if table.headings[:2] == ("allocator", "size")
    )
    texts = {row[0]: " ".join(row[1:]) for row in table.rows}
    assert texts["glibc_15k"] == "15,337 bytes 15 KB"
    assert texts["tcmalloc"].startswith("none up to")


def test_at_35_kb_the_ratio_the_faults_and_the_calls_are_reported() -> None:
    paragraph = next(
        paragraph
        for paragraph in fish_findings(StudyData(fish())).paragraphs
        if paragraph.startswith("At 35 KB,")
    )
    ratio = StudyData(fish()).ratio("work_s", "allocator", "glibc_15k", "glibc", block="35840")
    assert ratio is not None and ratio.ratio == pytest.approx(1000, rel=0.02)
    assert ratio.is_certainly_above
    assert ratio.text() in paragraph
    assert "9 faults (9 pages) and 2 system calls" in paragraph


def test_the_three_ways_have_the_published_values_next_to_them() -> None:
    table = fish_findings(StudyData(fish())).tables[0]
    assert [(row[0], row[-1]) for row in table.rows] == [
        ("glibc_15k", "24 s"),
        ("dlmalloc", "10 s"),
        ("glibc", "10 s"),
    ]
    ratio = StudyData(fish()).ratio(
        "work_s", "allocator", "glibc_15k", "dlmalloc", block="genmatch2006"
    )
    assert ratio is not None and ratio.ratio == pytest.approx(2.4, rel=0.02)
    assert table.rows[0][2] == ratio.text()
    assert fish_findings(StudyData(fish())).answer == (
        f"The article's program takes {ratio.text()} with the 15 KB policy over "
        "Doug Lea's malloc (the reply: ×2.4)."
    )


def test_each_cost_by_block_that_was_measured_is_drawn() -> None:
    names = [figure.name for figure in fish_figures(StudyData(fish(blocks=2)))]
    assert names == ["by_block_work_s", "by_block_faults_per_pair", "by_block_calls_per_pair"]


THRESHOLDS = {
    # Time, peak.
    "default": (1.0, 100.0),
    "4096": (4.0, 50.0),
    "65536": (2.0, 60.0),
    "131072": (2.5, 70.0),
    "4194304": (0.9, 200.0),
}


def swept() -> ResultDocument:
    def values(levels: dict[str, str]) -> dict[str, float]:
        time_s, peak = THRESHOLDS[levels["threshold"]]
        if levels["work"] == "malloc" and levels["threshold"] == "65536":
            time_s = 9.0
        return {"work_s": time_s, "peak_bytes": peak * 1e6, "retained_bytes": 1e6}

    factors = {"threshold": tuple(THRESHOLDS), "work": ("fragment", "malloc")}
    return study_document("threshold", factors, values)


def test_front_has_thresholds_that_no_other_beats_in_both_costs() -> None:
    on_front = {
        point.threshold: point.on_front for point in points_of(StudyData(swept()), "fragment")
    }
    assert on_front == {
        "default": True,
        "4096": True,
        "65536": True,
        "131072": False,
        "4194304": True,
    }


def test_threshold_good_for_only_one_workload_is_not_the_optimum() -> None:
    result = threshold_findings(StudyData(swept()))
    last = result.paragraphs[-1]
    assert last.startswith("Is there an optimal threshold?")
    assert "64 KB" not in last and "default" in last
    assert result.answer.startswith("On the front of time and memory of every workload: ")
    assert "64 KB" not in result.answer and "of 5 thresholds" in result.answer
    assert [len(table.rows) for table in result.tables] == [5, 5]
    assert [figure.name for figure in threshold_figures(StudyData(swept()))] == [
        "front_fragment",
        "front_malloc",
    ]


def ranked(sort_of_jemalloc: float, blocks: int = 20) -> ResultDocument:
    times = {
        ("dgemm", "glibc"): 1.0,
        ("dgemm", "jemalloc"): 1.2,
        ("sort", "glibc"): 1.0,
        ("sort", "jemalloc"): sort_of_jemalloc,
        ("dgemm", "atlas"): 2.0,
        ("dgemm", "openblas"): 1.0,
    }

    def values(levels: dict[str, str]) -> dict[str, float]:
        seconds = times.get((levels["task"], levels["exchanged"]))
        return {} if seconds is None else {"work_s": seconds}

    factors = {
        "task": ("dgemm", "sort"),
        "exchanged": ("glibc", "jemalloc", "atlas", "openblas"),
    }
    return study_document("tasks", factors, values, blocks=blocks)


def test_an_order_that_reverses_is_found_for_certain() -> None:
    result = ranked(0.8)
    reversals = Ranking(
        StudyData(result), "work_s", "task", "exchanged", ["glibc", "jemalloc"], "allocators"
    ).reversals()
    assert [
        (reversal.first, reversal.second, reversal.faster_on, reversal.slower_on)
        for reversal in reversals
    ] == [("glibc", "jemalloc", "dgemm", "sort")]
    assert reversals[0].is_certain
    paragraphs = " ".join(tasks_findings(StudyData(result)).paragraphs)
    assert "The order of the allocators certainly reverses in one pair" in paragraphs
    assert "The order of the BLAS libraries is the same on every task." in paragraphs
    assert tasks_findings(StudyData(result)).answer == (
        "The order of the BLAS libraries is the same on every task. The order of the allocators "
        "depends on the task: one pair certainly reverses."
    )
    assert [figure.name for figure in tasks_figures(StudyData(result))] == [
        "BLAS_libraries",
        "allocators",
    ]


def test_certain_and_uncertain_orders_are_distinguished() -> None:
    assert "The order of the allocators is the same on every task." in (
        tasks_findings(StudyData(ranked(1.3))).paragraphs
    )
    uncertain = " ".join(tasks_findings(StudyData(ranked(0.8, blocks=3))).paragraphs)
    assert "No pair of allocators certainly reverses its order" in uncertain


def test_unused_primitive_has_no_rank_in_a_task() -> None:
    libraries, allocators = tasks_findings(StudyData(ranked(0.8))).tables
    assert libraries.headings == ("exchanged", "dgemm")
    assert allocators.headings == ("exchanged", "dgemm", "sort")
    assert [row[0] for row in libraries.rows] == ["atlas", "openblas"]


def test_speeds_are_operations_over_the_median_and_huge_pages_are_judged() -> None:
    def values(levels: dict[str, str]) -> dict[str, float]:
        size = float(levels["size"])
        faster = 0.8 if levels["huge_pages"] == "on" and levels["size"] == "512" else 1.0
        return {"work_s": faster * 2.0 * size**3 / 10e9}

    factors = {
        "task": ("dgemm",),
        "library": ("reference",),
        "size": ("128", "512"),
        "huge_pages": ("off", "on"),
    }
    result = blas_findings(StudyData(study_document("blas", factors, values)))
    speeds = {row[:2]: float(row[2]) for row in result.tables[0].rows}
    assert speeds[("128", "off")] == pytest.approx(10.0, rel=0.02)
    assert speeds[("512", "on")] == pytest.approx(12.5, rel=0.02)
    assert result.answer.startswith("dgemm of 512 rows: reference is the fastest by the median")
    assert "in 1 of 2 pairs" in result.paragraphs[0]
    assert "-20 %" in result.paragraphs[0] and "512 rows" in result.paragraphs[0]


def test_a_set_core_type_is_compared_with_the_one_that_the_library_detects() -> None:
    factors = {
        "library": ("reference", "openblas", "openblas_skylakex"),
        "threads": ("one",),
        "task": ("dgemm",),
        "size": ("256",),
    }
    seconds = {"reference": 4e-3, "openblas": 1e-3, "openblas_skylakex": 0.5e-3}
    result = blas_findings(
        StudyData(
            study_document("blas", factors, lambda levels: {"work_s": seconds[levels["library"]]})
        )
    )
    speeds, core_types = result.tables
    assert speeds.headings[-2:] == ("reference", "openblas")
    (row,) = core_types.rows
    assert row[:4] == ("openblas", "skylakex", "dgemm", "256")
    assert float(row[4]) == pytest.approx(67.1, rel=0.02)
    assert 1.9 < float(row[5].removeprefix("÷")) < 2.1
    assert row[6] not in ("", UNKNOWN)
