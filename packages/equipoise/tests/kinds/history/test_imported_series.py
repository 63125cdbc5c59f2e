"""Series of other tools as the command reads and shows them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from equipoise.cli.options import OutputOptions
from equipoise.kinds.history.command import read_imported, show_imported
from packages.equipoise.tests.cli.conftest import Equipoise
from packages.equipoise.tests.imports import written
from packages.equipoise.tests.interop.series.shared import table
from packages.equipoise.tests.kinds.history.test_suspicions import STEP
from packages.equipoise.tests.report.forms import breakable


def test_a_series_is_read_with_its_suspicions_and_the_line_that_reads_it_again(
    tmp_path: Path,
) -> None:
    path = str(table(tmp_path, STEP))
    result = read_imported(
        [path],
        "csv",
        min_effect=2.0,
        command_line="again",
        command=("./bench", "a b"),
        build="make -j2",
    )
    assert result.command_line == "again"
    (suspicion,) = result.series[0].suspicions
    assert suspicion.confirm_command == (
        "equipoise bisect --good v12 --bad v13 --build 'make -j2' -- ./bench 'a b'"
    )


def test_it_is_shown_on_the_screen_and_written_as_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result = read_imported([str(table(tmp_path, STEP))], None, min_effect=1.0, command_line="")
    file = tmp_path / "series.json"
    report = tmp_path / "series.md"
    output = OutputOptions(json_file=str(file), report_file=report, color=False)
    assert show_imported(result, output) == 0
    assert "1 suspicion in 1 imported benchmark (loop)" in capsys.readouterr().out
    assert json.loads(file.read_text())["schema"] == "equipoise.series/1"
    assert "To confirm loop: +4.0 % at about v13" in breakable(report.read_text())


def test_a_history_without_a_command_shows_the_imported_series(equipoise: Equipoise) -> None:
    answer = equipoise("history", "--import", str(table(equipoise.folder, STEP)))
    assert answer.status == 0
    assert "1 suspicion in 1 imported benchmark (loop)" in answer.out
    assert "-- COMMAND" in answer.out


def test_several_files_follow_one_option_or_are_named_by_a_pattern(
    tmp_path: Path, equipoise: Equipoise, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in (9, 10, 11):
        measures = {"latency": {"value": float(number)}}
        (tmp_path / f"v{number}.json").write_text(json.dumps({"parse": measures}))
    monkeypatch.chdir(tmp_path)
    files = ("v9.json", "v10.json", "v11.json")
    expanded = equipoise("history", "--import", *files, "--json", "-")
    quoted = equipoise("history", "--import", "v*.json", "--json", "-")
    (series,) = json.loads(expanded.out)["series"]
    assert [point["value"] for point in series["points"]] == [9.0, 10.0, 11.0]
    assert json.loads(quoted.out)["series"] == [series]
    assert json.loads(expanded.out)["command_line"] == (
        "equipoise history --import v9.json --import v10.json --import v11.json"
    )


def test_without_a_command_nothing_can_be_measured(tmp_path: Path, equipoise: Equipoise) -> None:
    answer = equipoise("history", "--from", "v1", "--import", str(table(tmp_path, STEP)))
    assert answer.status == 2
    assert "a history needs exactly one of --bench" in answer.err


def test_a_file_without_a_series_is_refused(tmp_path: Path, equipoise: Equipoise) -> None:
    path = written(tmp_path, "log.txt", "nothing")
    answer = equipoise("history", "--import", str(path))
    assert answer.status == 2
    assert "no values of commits" in answer.err
    assert "--format: asv, pyperf, conbench, bencher, csv" in answer.err
