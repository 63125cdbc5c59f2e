"""Exported files are read back with every value, by Equipoise and by the tools themselves."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pandas as pd
import pytest

from equipoise.analysis.result import analyse_campaign
from equipoise.interop.formats.hyperfine import to_json
from equipoise.interop.series.bencher import to_metric_format
from equipoise.interop.trials import to_csv, to_parquet
from equipoise.interop.trials import to_json as to_rows
from equipoise.ledger import open_for_writing
from equipoise.model.record import RunRecord
from equipoise.model.result import ResultDocument
from packages.equipoise.tests.imports import SAMPLES, imported
from packages.equipoise.tests.tools import decoded, printed_by

Recorded = Callable[[RunRecord], ResultDocument]


@pytest.fixture
def recorded(tmp_path: Path) -> Recorded:
    """The document of a run that went through a ledger."""

    def through(run: RunRecord) -> ResultDocument:
        with open_for_writing(tmp_path / "ledger.db", durable=False) as ledger:
            return analyse_campaign(ledger.read_run(ledger.record_import(run)))

    return through


@pytest.mark.live("hyperfine")
def test_a_file_that_hyperfine_writes_now_comes_back_with_every_value(
    tmp_path: Path, recorded: Recorded
) -> None:
    theirs = tmp_path / "theirs.json"
    printed_by(
        *("hyperfine", "--shell=none", "--style=none", "--runs=3", "--ignore-failure"),
        *("--export-json", theirs, "-L", "name", "true,false", "{name}"),
        folder=tmp_path,
    )
    comes_back(theirs, tmp_path / "ours.json", recorded)


def test_a_file_of_hyperfine_with_peak_memory_comes_back_with_every_value(
    tmp_path: Path, recorded: Recorded
) -> None:
    comes_back(SAMPLES / "hyperfine_1.20.0.json", tmp_path / "ours.json", recorded)


def comes_back(theirs: Path, ours: Path, recorded: Recorded) -> None:
    """Import a file of version 1.x, export it and import that: nothing has changed."""
    ours.write_bytes(to_json(recorded(imported(theirs))))
    for their, our in zip(*(decoded(path)["results"] for path in (theirs, ours)), strict=True):
        assert our.keys() == their.keys()
        for name, value in our.items():
            # hyperfine adds up in another order.
            close = name in ("mean", "stddev", "median")
            assert value == (pytest.approx(their[name], rel=1e-12) if close else their[name])
    first, second = imported(theirs), imported(ours)
    assert [trial.samples for trial in first.trials] == [trial.samples for trial in second.trials]
    assert [trial.accounting for trial in first.trials] == [
        trial.accounting for trial in second.trials
    ]
    assert [trial.exit for trial in first.trials] == [trial.exit for trial in second.trials]


def test_a_file_of_hyperfine_2_comes_back_in_the_layout_of_1(recorded: Recorded) -> None:
    theirs = decoded(SAMPLES / "hyperfine_2.0.0.json")["results"]
    ours = json.loads(to_json(recorded(imported(SAMPLES / "hyperfine_2.0.0.json"))))["results"]
    for their, our in zip(theirs, ours, strict=True):
        runs = their["measurements"]
        assert our["command"] == their["name"]
        assert our["times"] == [run["time_wall_clock"]["value"] for run in runs]
        assert our["memory_usage_byte"] == [run["memory_peak_resident"]["value"] for run in runs]
        assert our["exit_codes"] == [run["exit_code"] for run in runs]
        assert our["parameters"] == {
            name: one["value"] for name, one in their["parameters"].items()
        }
        summary = their["summary"]
        assert [our["mean"], our["user"], our["system"]] == pytest.approx(
            [summary[name]["mean"] for name in ("time_wall_clock", "time_user", "time_system")]
        )


@pytest.mark.parametrize(
    "sample",
    [
        "hyperfine_2.0.0.json",
        "jmh_1.37.json",
        "go.txt",
        "rebench.data",
        "sysbench.txt",
        "vitest_4.1.12.json",
    ],
)
def test_pandas_reads_every_value_of_an_import(
    sample: str, tmp_path: Path, recorded: Recorded
) -> None:
    document = recorded(imported(SAMPLES / sample))
    (tmp_path / "run.csv").write_bytes(to_csv(document))
    (tmp_path / "run.parquet").write_bytes(to_parquet(document))
    (tmp_path / "run.json").write_bytes(to_rows(document))
    frames: list[Any] = [
        pd.read_csv(tmp_path / "run.csv"),
        pd.read_parquet(tmp_path / "run.parquet"),
        pd.read_json(tmp_path / "run.json"),
    ]
    for frame in frames:
        assert list(frame["condition"]) == [row.condition for row in document.trials]
        for place, row in enumerate(document.trials):
            for metric, value in row.metrics.items():
                assert frame[f"metric_{metric}"][place] == pytest.approx(value, rel=1e-14)
            for metric, values in row.iterations.items():
                cell = frame[f"iterations_{metric}"][place]
                # A list is JSON in a cell of a CSV.
                numbers = json.loads(cell) if isinstance(cell, str) else list(cell)
                assert numbers == pytest.approx(list(values), rel=1e-14)
            assert frame["wall_s"].isna()[place] == (row.wall_s is None)


def test_trials_exported_as_csv_are_a_csv_to_import(tmp_path: Path, recorded: Recorded) -> None:
    document = recorded(imported(SAMPLES / "hyperfine_2.0.0.json"))
    (tmp_path / "trials.csv").write_bytes(to_csv(document))
    with (tmp_path / "trials.csv").open(newline="") as file:
        rows = [
            {name: row[name] for name in ("condition", "block", "wall_s")}
            for row in csv.DictReader(file)
        ]
    with (tmp_path / "again.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, ["condition", "block", "wall_s"])
        writer.writeheader()
        writer.writerows(rows)
    again = imported(tmp_path / "again.csv")
    assert [trial.accounting.wall_s for trial in again.trials] == [
        row.wall_s for row in document.trials
    ]


@pytest.mark.parametrize("sample", ["hyperfine_2.0.0.json", "jmh_1.37.json", "go.txt"])
def test_bmf_has_the_median_of_each_imported_metric(sample: str, recorded: Recorded) -> None:
    document = recorded(imported(SAMPLES / sample))
    written = msgspec.json.decode(to_metric_format(document))
    assert list(written) == [condition.name for condition in document.conditions]
    for condition in document.conditions:
        measures = written[condition.name]
        assert measures.keys() - {"latency"} == condition.metrics.keys()
        for metric, summary in condition.metrics.items():
            assert measures[metric]["value"] == summary.median
        primary = condition.metrics[document.primary_metric]
        assert measures["latency"]["value"] == pytest.approx(primary.median * 1e9)
