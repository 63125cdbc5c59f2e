"""Our exports are what hyperfine would have written of the same times."""

from __future__ import annotations

import csv
import io
import json
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from equipoise.interop.formats.hyperfine import (
    to_asciidoc,
    to_csv,
    to_json,
    to_markdown,
    to_orgmode,
)
from equipoise.model.result import SCHEMA, ConditionResult, ResultDocument, RunInfo, TrialRow
from packages.equipoise.tests.documents import row_of

HYPERFINE_KEYS = (
    "command mean stddev median user system min max times memory_usage_byte exit_codes parameters"
).split()


def _row(condition: str, wall_s: float | None, **changed: Any) -> TrialRow:
    known = {"user_s": 0.5, "sys_s": 0.25, "max_rss_bytes": 4096}
    return row_of(condition, wall_s, **(known | changed))


def _document(
    times: dict[str, Sequence[float]], levels: dict[str, dict[str, str]] | None = None
) -> ResultDocument:
    return ResultDocument(
        schema=SCHEMA,
        run=RunInfo("20261120-113005-4f2a", "compare", "", None, 7, 3, None),
        environment={},
        conditions=tuple(
            ConditionResult(name, (levels or {}).get(name, {}), (name,), len(walls), 0, {})
            for name, walls in times.items()
        ),
        comparisons=(),
        control=None,
        why=(),
        warnings=(),
        trials=tuple(_row(name, wall) for name, walls in times.items() for wall in walls),
    )


def _with_rows(document: ResultDocument, *rows: TrialRow) -> ResultDocument:
    return replace(document, trials=(*document.trials, *rows))


def _results(document: ResultDocument) -> list[dict[str, Any]]:
    results: list[dict[str, Any]] = json.loads(to_json(document))["results"]
    return results


def test_json_holds_the_figures_of_each_command_in_the_order_of_the_plan() -> None:
    first, second = _results(_document({"b": [3.0, 1.0, 2.0], "a": [4.0]}))
    assert first == {
        "command": "b",
        "mean": 2.0,
        "stddev": 1.0,
        "median": 2.0,
        "user": 0.5,
        "system": 0.25,
        "min": 1.0,
        "max": 3.0,
        "times": [3.0, 1.0, 2.0],
        "memory_usage_byte": [4096, 4096, 4096],
        "exit_codes": [0, 0, 0],
    }
    assert second["command"] == "a"
    assert second["stddev"] is None


def test_json_is_indented_like_hyperfines() -> None:
    text = to_json(_document({"a": [1.0]})).decode()
    assert text.startswith('{\n  "results": [\n    {\n      "command": "a",\n')
    assert text.endswith("}\n")


def test_keys_are_in_the_order_of_hyperfine() -> None:
    (result,) = _results(_document({"a": [1.0]}, {"a": {"threads": "2"}}))
    assert sorted(result) == sorted(HYPERFINE_KEYS)
    assert list(result)[:9] == HYPERFINE_KEYS[:9]
    assert result["parameters"] == {"threads": "2"}


def test_only_analysed_measured_trials_count() -> None:
    document = _with_rows(
        _document({"a": [1.0]}),
        _row("a", 50.0, phase="warmup", analysed=False, left_out_because="it warms up"),
        _row("a", 60.0, analysed=False, left_out_because="its block was cut"),
        _row("a", None),
        _row("control", 70.0),
        _row("a", 3.0, exit=None, failure="timed out", max_rss_bytes=None),
    )
    (result,) = _results(document)
    assert result["times"] == [1.0, 3.0]
    assert result["exit_codes"] == [0, None]
    assert result["memory_usage_byte"] == [4096, None]


def test_unknown_value_is_null_or_empty_and_never_zero() -> None:
    document = _with_rows(
        _document({"a": [], "b": []}),
        _row("b", 2.0, user_s=None, sys_s=None, max_rss_bytes=None),
    )
    nothing, something = _results(document)
    assert nothing["mean"] is None
    assert nothing["times"] == []
    assert something["user"] is None
    assert "memory_usage_byte" not in something
    assert to_csv(document).splitlines()[1:] == ["a,,,,,,,", "b,2.0,,2.0,,,2.0,2.0"]
    assert to_markdown(document).splitlines()[2:] == [
        "| `a` | n/a | n/a | n/a | n/a |",
        "| `b` | 2.000 | 2.000 | 2.000 | 1.00 |",
    ]


def test_csv_has_the_columns_of_hyperfine_and_one_for_each_parameter() -> None:
    document = _document(
        {"a": [1.0], "b": [2.0]}, {"a": {"x": "1", "size": "9"}, "b": {"size": "8"}}
    )
    rows = list(csv.reader(io.StringIO(to_csv(document))))
    assert ",".join(rows[0]) == (
        "command,mean,stddev,median,user,system,min,max,parameter_size,parameter_x"
    )
    assert rows[1] == ["a", "1.0", "", "1.0", "0.5", "0.25", "1.0", "1.0", "9", "1"]
    assert rows[2][-2:] == ["8", ""]


@pytest.mark.parametrize("name", ['say "hi", then go', "two\nlines", "a|b", "", " edge ", "é🙂"])
def test_csv_gives_any_name_back(name: str) -> None:
    rows = list(csv.reader(io.StringIO(to_csv(_document({name: [1.0]})), newline="")))
    assert len(rows) == 2
    assert rows[1][0] == name


@pytest.mark.parametrize(
    ("name", "cell"),
    [
        ("sort words", "`sort words`"),
        ("a | b", r"`a \| b`"),
        ("two\nlines\tand\x1b[31m", "`two lines and [31m`"),
        ("echo `date`", "`` echo `date` ``"),
        ("a``b", "```a``b```"),
        ("", "`  `"),
        ("<b>&amp;", "`<b>&amp;`"),
    ],
)
def test_markdown_keeps_any_name_in_its_cell(name: str, cell: str) -> None:
    lines = to_markdown(_document({name: [0.5]})).splitlines()
    assert lines[2:] == [f"| {cell} | 500.0 | 500.0 | 500.0 | 1.00 |"]


def test_markdown_shows_the_unit_of_the_first_command() -> None:
    assert to_markdown(_document({"a": [0.1057, 0.1057], "b": [2.005, 2.005]})) == (
        "| Command | Mean [ms] | Min [ms] | Max [ms] | Relative |\n"
        "|:---|---:|---:|---:|---:|\n"
        "| `a` | 105.7 ± 0.0 | 105.7 | 105.7 | 1.00 |\n"
        "| `b` | 2005.0 ± 0.0 | 2005.0 | 2005.0 | 18.97 ± 0.00 |\n"
    )
    assert "| Mean [s] |" in to_markdown(_document({"b": [2.0], "a": [0.1]}))


def test_markdown_compares_with_the_fastest_and_propagates_the_spread() -> None:
    lines = to_markdown(_document({"a": [2.0, 4.0], "b": [1.0, 2.0]})).splitlines()
    # 3 / 1.5 = 2; sqrt((1.4142/3)^2 + (0.7071/1.5)^2) * 2 = 1.3333
    assert lines[2].endswith("| 2.00 ± 1.33 |")
    assert lines[3].endswith("| 1.00 |")


def test_undecodable_bytes_are_escaped_in_every_format() -> None:
    document = _document({"ls \udcff": [1.0]})
    assert _results(document)[0]["command"] == r"ls \udcff"
    assert to_csv(document).encode().splitlines()[1].startswith(rb"ls \udcff,")
    assert rb"`ls \udcff`" in to_markdown(document).encode()


KINDS = ("json", "csv", "markdown", "asciidoc", "orgmode")


@pytest.mark.live
@pytest.mark.parametrize(
    "commands",
    [
        ["sleep 0.003", "sleep 0.006"],
        ["sleep 1.001", "sleep 0.002"],
        ["sh -c 'true | true'", 'sh -c "exit 0"', "true"],
    ],
)
def test_hyperfine_writes_the_same_for_the_same_times(tmp_path: Path, commands: list[str]) -> None:
    tool = shutil.which("hyperfine")
    if tool is None:
        pytest.skip("hyperfine is missing: apt-get install hyperfine")
    files = {kind: tmp_path / f"result.{kind}" for kind in KINDS}
    exports = [word for kind, file in files.items() for word in (f"--export-{kind}", str(file))]
    subprocess.run(
        [tool, "--shell=none", "--style=none", "--runs=3", *exports, *commands],
        check=True,
        capture_output=True,
        timeout=600,
    )
    theirs = json.loads(files["json"].read_text())["results"]
    document = _document({})
    for result in theirs:
        document = replace(
            document,
            conditions=(
                *document.conditions,
                ConditionResult(result["command"], {}, (result["command"],), 3, 0, {}),
            ),
        )
        # hyperfine keeps no user and system time of each run, only their means.
        document = _with_rows(
            document,
            *(
                _row(result["command"], time, user_s=result["user"], sys_s=result["system"])
                for time in result["times"]
            ),
        )
    ours = _results(document)
    assert len(ours) == len(commands)
    for our, their in zip(ours, theirs, strict=True):
        shared = [key for key in our if key in their]
        assert shared == [key for key in their if key != "memory_usage_byte"]
        for key in shared:
            expected = their[key]
            assert our[key] == (expected if key == "command" else pytest.approx(expected, rel=1e-9))
    our_rows = list(csv.reader(io.StringIO(to_csv(document))))
    their_rows = list(csv.reader(io.StringIO(files["csv"].read_text())))
    assert our_rows[0] == their_rows[0]
    for our_row, their_row in zip(our_rows[1:], their_rows[1:], strict=True):
        assert our_row[0] == their_row[0]
        assert [float(cell) for cell in our_row[1:]] == pytest.approx(
            [float(cell) for cell in their_row[1:]], rel=1e-9
        )
    assert to_markdown(document) == files["markdown"].read_text()
    assert to_asciidoc(document) == files["asciidoc"].read_text()
    assert to_orgmode(document) == files["orgmode"].read_text()
