"""Series of other tools as the command reads and shows them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from equipoise.cli.imported_series import read_imported, show_imported
from equipoise.cli.output_options import OutputOptions
from tests.analysis.test_series import STEP
from tests.interop.series.shared import table


def test_a_series_is_read_with_its_suspicions_and_the_line_that_reads_it_again(
    tmp_path: Path,
) -> None:
    path = str(table(tmp_path, STEP))
    result = read_imported(
        [path], "csv", min_effect=2.0, command=("./bench", "a b"), build="make -j2"
    )
    assert result.again == (
        f"equipoise history --import {path} --format csv --min-effect 2 --build 'make -j2' -- "
        "./bench 'a b'"
    )
    (one,) = result.series[0].suspicions
    assert one.confirm == (
        "equipoise bisect --good v12 --bad v13 --build 'make -j2' -- ./bench 'a b'"
    )


def test_it_is_shown_on_the_screen_and_written_as_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result = read_imported([str(table(tmp_path, STEP))], None, min_effect=1.0)
    file = tmp_path / "series.json"
    report = tmp_path / "series.md"
    output = OutputOptions(json_file=str(file), report_file=report, color=False)
    assert show_imported(result, output) == 0
    assert "1 suspicion in 1 imported benchmark (loop)" in capsys.readouterr().out
    assert json.loads(file.read_text())["schema"] == "equipoise.series/1"
    assert "To confirm loop: +4.0 % at about v13" in report.read_text()
