"""The screen of primitives: a table for each class, and what every number needs beside it."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from equipoise.analysis.reference import compare_with_reference
from equipoise.analysis.result import analyse_campaign
from equipoise.kinds.imported.terms import ImportedDocument, ImportedResult, ImportSource
from equipoise.model.result import ResultDocument
from equipoise.report.builders.result import ReportInput
from equipoise.report.units import metric_formatter
from equipoise_studies.primitives.report import is_of_primitives
from packages.equipoise.tests.documents import document_as
from packages.equipoise.tests.documents import document_of as compared
from packages.equipoise.tests.report.forms import page, screen
from packages.studies.tests.primitives.campaigns import ProbeRunner, plan_of_rows, record_of

REASON = "it needs two CPUs, and this process may use [0] only"


def result(seed: int = 3) -> ResultDocument:
    runner = ProbeRunner(
        plan_of_rows(seed=seed),
        value=lambda name, block, usual: usual * (1.2**block if name == "fork" else 1.0),
        failures={"pipe_across_cpus": REASON},
    )
    return analyse_campaign(record_of(runner))


def line(text: str, name: str) -> str:
    return next(line for line in text.splitlines() if line.split()[:1] == [name])


def test_each_class_has_its_table_and_each_row_its_unit() -> None:
    text = screen(result())
    headings = [line for line in text.splitlines() if " 95 % interval " in line]
    assert [heading.split("  ")[0] for heading in headings] == [
        "system calls",
        "process",
        "ipc",
        "memory",
    ]
    assert " ns " in line(text, "null_call") and "±" in line(text, "null_call")
    assert " GB/s to " in line(text, "memory_read")
    assert line(text, "null_call").split()[-1] == "7"


def test_a_row_without_a_number_has_the_reason_in_its_place() -> None:
    text = screen(result())
    assert line(text, "pipe_across_cpus").endswith(REASON)
    assert "1 of 5 rows has no number here" in text


def test_a_wide_row_says_why() -> None:
    assert "it drifts" in line(screen(result()), "fork")


def test_how_long_the_processes_took_is_not_on_the_screen() -> None:
    text = screen(result())
    assert "50.0 ms" not in text and "drift: " not in text


def test_a_reference_result_is_shown_with_its_caveats() -> None:
    result_here, result_there = result(), result(seed=4)
    changed = replace(result_there, environment={**result_there.environment, "kernel": "6.2.0"})
    comparison = compare_with_reference(changed, result_here, min_effect=5.0, alpha=0.05)
    text = screen(replace(result_here, against=comparison))
    assert "Against run run-4" in text
    assert "0 of 4 rows changed by more than 5 %" in text
    assert "do not rank machines by it" in text
    assert "not interleaved" in text
    assert "kernel: 6.2.0 → 6.1.0" in text


def test_a_comparison_is_not_taken_for_primitives() -> None:
    assert is_of_primitives(result())
    assert not is_of_primitives(compared(blocks=8))


def test_imported_trials_with_a_metric_of_primitives_are_not_primitives() -> None:
    source = ImportSource("csv", "wrk", ("wrk.csv",), "one after the other")
    trials = ImportedResult(source, "latency_s", comparisons=(), summary="Nothing was compared.")
    assert not is_of_primitives(document_as(ImportedDocument, result(), imported=trials))


def test_page_groups_rows_by_metric() -> None:
    result_here = result()
    comparison = compare_with_reference(result(seed=4), result_here, min_effect=5.0, alpha=0.05)
    text = page([ReportInput(replace(result_here, against=comparison))])
    assert "Against run run-4" in text and "do not rank machines by it" in text
    assert "0 of 4 rows changed by more than 5 %" in text
    assert REASON in text
    assert "GB/s" in text
    assert "equipoise os --quick --seed 3" in text


def test_the_page_begins_with_a_number_of_each_class() -> None:
    text = page([ReportInput(result())])
    assert "Operating system primitives: " in text
    assert "1 of 5 rows has no number here" in text
    tiles = text[text.index('<dl class="tiles">') : text.index("At a glance")]
    assert [part.partition("<")[0] for part in tiles.split("<dt>")[1:]] == [
        "system calls: null_call",
        "process: fork",
        "ipc: pipe_same_cpu",
        "memory: memory_read",
    ]


@pytest.mark.parametrize(
    ("metric", "value", "words"),
    [
        ("bandwidth_bytes_per_s", 1.23e10, "12.3 GB/s"),
        ("latency_s", 1.2e-7, "120 ns"),
        ("max_rss_bytes", 2.1e6, "2.10 MB"),
        ("requests_per_s", 1234.0, "1234/s"),
    ],
)
def test_a_metric_is_written_in_the_unit_that_its_name_ends_in(
    metric: str, value: float, words: str
) -> None:
    assert metric_formatter(metric)(value) == words
