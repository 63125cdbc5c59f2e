"""The article's tables of 2005 with a host beside them, on results whose answers are known."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from equipoise.model.result import ResultDocument
from equipoise.studies.catalogue import find_study
from equipoise.studies.reader.study import read_study
from equipoise_studies.builtin.anandtech2005.analysis import TABLES, findings
from equipoise_studies.primitives.probes import probe_program, probe_rows
from equipoise_studies.primitives.rows import LATENCY_METRIC
from equipoise_studies.study_data import StudyData
from packages.studies.tests.builtin.synthetic import study_document

REASON = "it needs two CPUs, and this process may use [0] only"
MICROSECONDS = {
    "fork": 90.0,
    "exec": 450.0,
    "sh": 1100.0,
    "null_call": 0.1,
    "read_byte": 0.2,
    "write_byte": 0.1,
    "stat": 1.0,
    "open_close": 2.0,
    "select_tcp": 6.0,
    "signal_install": 0.2,
    "signal_handle": 1.5,
    "tcp_connect": 30.0,
    "thread": 18.0,
    **{f"{name}_same_cpu": 5.0 for name in ("pipe", "unix", "udp", "tcp")},
    **{f"{name}_across_cpus": 50.0 for name in ("pipe", "unix", "udp", "tcp")},
}


def document_with(microseconds: dict[str, float] | None = None, blocks: int = 20) -> ResultDocument:
    known = MICROSECONDS if microseconds is None else microseconds
    return study_document(
        "anandtech2005",
        {"row": tuple(known)},
        lambda levels: {LATENCY_METRIC: 1e-6 * known[levels["row"]]},
        blocks=blocks,
    )


def paragraph(document: ResultDocument, part: str) -> str:
    return next(
        paragraph for paragraph in findings(StudyData(document)).paragraphs if part in paragraph
    )


def test_the_four_machines_are_above_this_host_in_the_articles_layout() -> None:
    processes, calls, ipc, threads = findings(StudyData(document_with())).tables
    assert findings(StudyData(document_with())).answer.startswith(
        "This host is faster than all four machines of the article"
    )
    assert processes.headings == ("host", "OS", "MHz", "fork", "exec", "sh")
    assert processes.rows[0] == ("G5 2.7 GHz", "Darwin", "2700", "659", "2308", "4960")
    assert [row[0] for row in processes.rows[1:]] == [
        "G5 2.5 GHz",
        "Xeon 3.6 GHz",
        "Opteron 850",
        "this host",
    ]
    assert [float(cell.replace(",", "")) for cell in processes.rows[-1][3:]] == pytest.approx(
        [90, 450, 1100], rel=0.02
    )
    assert [row[0] for row in ipc.rows[-2:]] == ["this host, same CPU", "this host, across CPUs"]
    for table in (processes, calls, ipc, threads):
        assert all(len(row) == len(table.headings) for row in table.rows)


def test_null_io_is_the_mean_of_a_read_and_a_write() -> None:
    calls = findings(StudyData(document_with())).tables[1]
    own = dict(zip(calls.headings, calls.rows[-1], strict=True))
    assert float(own["null I/O"]) == pytest.approx(0.15, rel=0.02)


def test_the_ratios_to_the_four_machines_are_computed_from_this_host() -> None:
    text = paragraph(document_with(), "Processes: in ")
    assert "in 3 of 3 columns this host is faster" in text
    slow = document_with({**MICROSECONDS, "fork": 500.0})
    assert "in 2 of 3 columns" in paragraph(slow, "Processes: in ")
    assert "fork ×4" in paragraph(slow, "Processes: in ")


def test_the_two_systems_on_one_processor_differ_as_published() -> None:
    text = paragraph(document_with(), "On the two G5s")
    assert "13 of 15 columns" in text
    assert "×8.07 for null call" in text


def test_placement_and_threads_are_reported_with_their_ratios() -> None:
    assert paragraph(document_with(), "Time across CPUs").count("×10") >= 2
    thread = paragraph(document_with(), "A fork takes")
    assert "×5" in thread and "a fork costs more than a thread here" in thread
    equal = paragraph(document_with({**MICROSECONDS, "thread": 90.0}), "A fork takes")
    assert "no difference can be shown" in equal
    early = paragraph(document_with(blocks=5), "A fork takes")
    assert "too few blocks for a verdict" in early


def test_forbidden_measurement_has_its_reason_below_the_table() -> None:
    document = document_with()
    forbidden = [name for name in MICROSECONDS if name.endswith("across_cpus")]
    document = replace(
        document,
        conditions=tuple(
            replace(condition, metrics={}, unknown={LATENCY_METRIC: REASON})
            if condition.name in forbidden
            else condition
            for condition in document.conditions
        ),
    )
    ipc = findings(StudyData(document)).tables[2]
    assert ipc.rows[-1][3:7] == ("–",) * 4
    assert any(REASON in note and "pipe_across_cpus" in note for note in ipc.notes)


def test_every_row_of_the_study_is_a_row_of_the_probes_with_the_same_words() -> None:
    rows = {row.name: row for row in probe_rows(probe_program())}
    path, _ = find_study("anandtech2005")
    factor = read_study(path).factor("row")
    assert factor is not None
    for level in factor.levels:
        row = rows[level.name]
        assert level.arguments == (row.probe, *row.options)
    expected = {
        row.format(placement=placement)
        for table in TABLES
        for column in table.columns
        for row in column.rows
        for placement in ("same_cpu", "across_cpus")
    }
    assert expected | {"thread"} == {level.name for level in factor.levels}
