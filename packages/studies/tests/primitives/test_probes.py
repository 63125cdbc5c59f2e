"""The probes are listed, and which of them work here is told with the reason."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from equipoise.measure.untimed import unavailable_reason
from equipoise.model.errors import UnusableInput
from equipoise_studies.primitives.probes import probe_program, probe_rows, why_unavailable
from equipoise_studies.primitives.rows import PRIMITIVE_METRICS, ProbeRow

OF_THE_ISSUE = (
    "null_call read_byte write_byte stat open_close select_tcp signal_install signal_handle fork "
    "exec sh thread pipe_same_cpu pipe_across_cpus tcp_connect page_fault"
).split()
ROW = ProbeRow("fork", "fork", "process", "a fork", "latency_s")


@pytest.fixture
def program(tmp_path: Path) -> Callable[..., Path]:
    """Write a program that stands for the probes."""

    def write(*lines: str) -> Path:
        path = tmp_path / "equipoise-probe"
        path.write_text("\n".join(["#!/bin/sh", *lines, ""]), encoding="utf-8")
        path.chmod(0o755)
        return path

    return write


def test_rows_of_the_studies_exist_once() -> None:
    rows = probe_rows(probe_program())
    names = [row.name for row in rows]
    assert set(OF_THE_ISSUE) <= set(names)
    assert len(names) == len(set(names)) > 55
    assert {row.metric for row in rows} == set(PRIMITIVE_METRICS)
    assert all(row.summary and row.group for row in rows)


def test_row_with_two_sides_reports_their_placement() -> None:
    rows = {row.name: row for row in probe_rows(probe_program())}
    assert rows["pipe_same_cpu"].placement == "same_cpu"
    assert rows["pipe_across_cpus"].placement == "across_cpus"
    assert rows["null_call"].placement == "none"


def test_a_probe_that_works_here_has_no_reason_not_to() -> None:
    rows = {row.name: row for row in probe_rows(probe_program())}
    assert why_unavailable(probe_program(), rows["null_call"]) is None


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        (
            ['echo \'{"unavailable": "seccomp forbids fork"}\' >&2', "exit 69"],
            "seccomp forbids fork",
        ),
        (["echo 'a byte was not zero' >&2", "exit 1"], "exit status 1: a byte was not zero"),
        (["kill -SYS $$"], "the system ended equipoise-probe: signal 31 (SIGSYS)"),
    ],
)
def test_a_probe_that_does_not_work_here_says_why(
    lines: list[str], reason: str, program: Callable[..., Path]
) -> None:
    assert why_unavailable(program(*lines), ROW) == reason


def test_a_program_that_lists_nothing_usable_is_named(program: Callable[..., Path]) -> None:
    for lines in (["echo nonsense"], ["exit 3"]):
        with pytest.raises(UnusableInput, match="does not list its probes"):
            probe_rows(program(*lines))


def test_only_the_exit_status_and_the_line_together_say_unavailable() -> None:
    stderr = 'warming up\n{"unavailable": "no second CPU"}\n'
    assert unavailable_reason(69, stderr) == "no second CPU"
    assert unavailable_reason(1, stderr) is None
    assert unavailable_reason(69, "no second CPU\n") is None
    assert unavailable_reason(69, "") is None
    assert unavailable_reason(None, stderr) is None
