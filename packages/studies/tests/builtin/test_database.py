"""Curves, knees and mechanisms of the study database, from results with known answers."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import pytest

from equipoise.model.result import ResultDocument
from equipoise_studies.builtin.database.analysis import THROUGHPUT, curve_of, findings
from equipoise_studies.builtin.database.charts import figures
from equipoise_studies.builtin.database.client import (
    mariadb_command,
    parse_options,
    postgresql_command,
)
from equipoise_studies.study_data import StudyData
from packages.studies.tests.builtin.synthetic import study_document

THREADS = ("1", "2", "4", "8", "16")
FACTORS = {
    "server": ("mariadb",),
    "work": ("read_only",),
    "load": ("closed", "open"),
    "threads": THREADS,
    "setting": ("glibc", "glibc_15k"),
}
CommandOf = Callable[[argparse.Namespace], list[str]]
SERVED_AT_ONCE = 3.0
"""Clients whose work goes on at once, so that the knee lies there."""


def values(levels: dict[str, str]) -> dict[str, float]:
    """A server with three places; under the 15 KB policy it faults and is half as fast."""
    clients, is_open = int(levels["threads"]), levels["load"] == "open"
    if is_open and clients != 8:
        return {}
    slow = levels["setting"] == "glibc_15k"
    each = 50.0 if slow else 100.0
    throughput = 20.0 if is_open else each * min(float(clients), SERVED_AT_ONCE)
    return {
        "throughput_per_s": throughput,
        "transactions": 10 * throughput,
        "latency_p50_s": clients / throughput,
        "latency_p95_s": 2 * clients / throughput,
        "latency_p99_s": 3 * clients / throughput,
        "latency_max_s": 4 * clients / throughput,
        "server_user_s": 0.003 * 10 * throughput,
        "server_sys_s": 0.001 * 10 * throughput,
        "server_minor_faults": (7.0 if slow else 2.0) * 10 * throughput,
        "server_voluntary_switches": 4.0 * 10 * throughput,
        "server_involuntary_switches": 1.0 * 10 * throughput,
        "server_pss_bytes": 5e7,
        "client_user_s": 0.002 * 10 * throughput,
        "client_sys_s": 0.002 * 10 * throughput,
    }


@pytest.fixture(scope="module")
def document() -> ResultDocument:
    return study_document("database", FACTORS, values, blocks=20, noise=0.02)


def test_the_knee_is_where_the_two_bounds_cross(document: ResultDocument) -> None:
    levels = {"server": "mariadb", "work": "read_only", "load": "closed", "setting": "glibc"}
    curve = curve_of(StudyData(document), THROUGHPUT, levels)
    assert curve is not None
    assert [point.clients for point in curve.points] == [1, 2, 4, 8, 16]
    assert curve.knee is not None
    low, high = curve.knee.interval
    assert low is not None
    assert high is not None
    assert low < SERVED_AT_ONCE < high
    assert curve.knee.clients == pytest.approx(SERVED_AT_ONCE, rel=0.02)


def test_server_slowed_by_more_clients_has_its_knee_at_1() -> None:
    falling = study_document(
        "database",
        {**FACTORS, "load": ("closed",)},
        lambda levels: {"throughput_per_s": 100.0 / int(levels["threads"])},
    )
    table = findings(StudyData(falling)).tables[0]
    assert [row[-1] for row in table.rows] == ["1: more clients do not increase it"] * 2
    assert table.rows[0][-2] == "█▅▃▂▁"


def test_tables_show_curve_mechanism_and_open_loop(document: ResultDocument) -> None:
    curve, mechanism, at_a_rate = findings(StudyData(document)).tables
    assert curve.headings == ("setting", *THREADS, "curve", "knee")
    assert [row[0] for row in curve.rows] == ["glibc", "glibc_15k"]
    by_name = [dict(zip(mechanism.headings, row, strict=True)) for row in mechanism.rows]
    assert [row["server faults"] for row in by_name] == ["2", "7"]
    assert [row["server switches"] for row in by_name] == ["5", "5"]
    assert [row["server memory"] for row in by_name] == ["50 MB", "50 MB"]
    assert by_name[1]["throughput over glibc"].startswith("÷2.0")
    assert at_a_rate.headings[1:] == (
        "per s",
        "50 % within",
        "95 % within",
        "99 % within",
        "the longest",
    )
    numbers = [float(cell.split()[0]) for cell in at_a_rate.rows[0][1:]]
    assert numbers == pytest.approx([20, 400, 800, 1.2, 1.6], rel=0.02)


def test_paragraph_names_the_knees(document: ResultDocument) -> None:
    answer, (paragraph,) = (
        findings(StudyData(document)).answer,
        findings(StudyData(document)).paragraphs,
    )
    assert answer.startswith("mariadb, read_only: ")
    assert "transactions per s, with glibc at " in answer
    assert paragraph.startswith("mariadb, read_only: the knee of the curve is at glibc ")


def test_figures_are_curves_of_throughput_and_latency(document: ResultDocument) -> None:
    charts = {figure.name: figure.chart.to_dict() for figure in figures(StudyData(document))}
    assert list(charts) == ["throughput_mariadb_read_only", "latency_mariadb_read_only"]
    marks = {
        name: [layer["mark"]["type"] for layer in chart["layer"]] for name, chart in charts.items()
    }
    # Throughput has its knees beside lines, intervals and points.
    assert marks["latency_mariadb_read_only"] == ["line", "rule", "point"]
    assert marks["throughput_mariadb_read_only"] == ["line", "rule", "point", "rule"]


def options(*more: str) -> argparse.Namespace:
    usual = ["--work=read_write", "--threads=4", "--seconds=2", "--folder=/f", "--port=1"]
    return parse_options(["mariadb", "--load=closed", "--password-file=/secret", *usual, *more])


@pytest.mark.parametrize("command_of", [mariadb_command, postgresql_command])
def test_the_client_uses_the_address_and_the_rate_of_its_options(command_of: CommandOf) -> None:
    by_socket, by_tcp = command_of(options()), command_of(options("--transport=tcp"))
    assert any(Path(word.partition("=")[2]).is_relative_to("/f") for word in by_socket)
    assert not any("/f" in word for word in by_tcp)
    assert any(word.endswith("=127.0.0.1") for word in by_tcp)
    assert not any(word.startswith("--rate") for word in by_socket)
    assert any(word.startswith("--rate=") for word in command_of(options("--load=open")))


@pytest.mark.parametrize("command_of", [mariadb_command, postgresql_command])
def test_only_tcp_clients_have_a_password_and_none_is_a_superuser(
    command_of: CommandOf,
) -> None:
    by_socket, by_tcp = command_of(options()), command_of(options("--transport=tcp"))
    assert not any("password" in word for word in by_socket)
    assert "--password-file=/secret" in by_tcp
    (user,) = (word.partition("=")[2] for word in by_tcp if "user" in word)
    assert user in ("sysbench", "pgbench")
