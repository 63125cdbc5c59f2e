"""Exported trials hold every value of every trial, whatever the form."""

from __future__ import annotations

import csv
import importlib
import io
import json
import math
import sys
from typing import Any

import pytest
from msgspec.structs import replace

from equipoise.interop.trials import columns_of, to_csv, to_json, to_parquet
from equipoise.model.errors import UnusableInput
from equipoise.model.result import ResultDocument, TrialRow
from packages.equipoise.tests.documents import HOSTILE, document_of, sized_document

parquet: Any = importlib.import_module("pyarrow.parquet")


def rich_document() -> ResultDocument:
    """Levels, covariates, own metrics, iterations, timeouts and hostile names."""
    document = document_of(HOSTILE, 'b,"quoted"\nin two lines', blocks=4, timeouts=frozenset({2}))
    conditions = tuple(
        replace(condition, levels={"allocator": HOSTILE, "rows": "445"})
        for condition in document.conditions
    )
    trials = tuple(
        replace(
            row,
            covariates={"load_1_minute": 0.5, "temperature": None},
            metrics={"latency_s": 0.001} if row.block > 1 else {},
            iterations={"latency_s": [0.001, math.inf]} if row.block > 2 else {},
        )
        for row in document.trials
    )
    return replace(document, conditions=conditions, trials=trials)


def read_parquet(content: bytes) -> list[dict[str, Any]]:
    """The rows of a Parquet file."""
    rows: list[dict[str, Any]] = parquet.read_table(io.BytesIO(content)).to_pylist()
    return rows


def test_every_field_of_a_trial_has_a_column() -> None:
    names = {column.name for column in columns_of(document_of(blocks=2))}
    spread = {"covariates", "metrics", "iterations"}
    # The host has a column in a fleet only (tests/kinds/fleet/test_results.py).
    assert set(TrialRow.__struct_fields__) - spread - {"host"} <= names
    assert "covariate_load_1_minute" in names


def test_levels_covariates_and_own_metrics_are_columns() -> None:
    names = [column.name for column in columns_of(rich_document())]
    assert names[-6:] == [
        "level_allocator",
        "level_rows",
        "covariate_load_1_minute",
        "covariate_temperature",
        "metric_latency_s",
        "iterations_latency_s",
    ]


def test_json_has_one_object_for_each_trial_in_order() -> None:
    document = rich_document()
    rows = json.loads(to_json(document))
    assert len(rows) == len(document.trials)
    assert [row["wall_s"] for row in rows] == [row.wall_s for row in document.trials]
    assert rows[0]["level_allocator"] == HOSTILE
    assert rows[0]["metric_latency_s"] is None
    assert rows[-1]["iterations_latency_s"] == [0.001, None]


def test_csv_gives_every_number_back_bit_for_bit() -> None:
    document = rich_document()
    rows = list(csv.DictReader(io.StringIO(to_csv(document).decode())))
    assert len(rows) == len(document.trials)
    for row, trial in zip(rows, document.trials, strict=True):
        assert row["condition"] == trial.condition
        assert row["wall_s"] == ("" if trial.wall_s is None else repr(trial.wall_s))
        assert row["analysed"] == ("true" if trial.analysed else "false")
    assert rows[2]["covariate_temperature"] == ""
    timed_out = next(row for row in rows if row["failure"])
    assert json.loads(timed_out["unknown"]) == {"wall_s": "it timed out"}


def test_parquet_keeps_types_and_unknowns() -> None:
    document = rich_document()
    rows = read_parquet(to_parquet(document))
    assert [row["wall_s"] for row in rows] == [row.wall_s for row in document.trials]
    assert [row["condition"] for row in rows] == [row.condition for row in document.trials]
    assert rows[0]["covariate_temperature"] is None
    assert isinstance(rows[0]["max_rss_bytes"], int)
    assert rows[-1]["iterations_latency_s"] == [0.001, None]
    types = parquet.read_schema(io.BytesIO(to_parquet(document)))
    assert types.field("covariate_temperature").type == "double"
    assert types.field("analysed").type == "bool"


def test_the_three_forms_agree() -> None:
    document = sized_document()
    as_json = json.loads(to_json(document))
    as_csv = list(csv.DictReader(io.StringIO(to_csv(document).decode())))
    as_parquet = read_parquet(to_parquet(document))
    assert [row["level_rows"] for row in as_json] == [row["level_rows"] for row in as_csv]
    assert [row["level_rows"] for row in as_json] == [row["level_rows"] for row in as_parquet]
    assert list(as_json[0]) == list(as_csv[0]) == list(as_parquet[0])


def test_undecodable_bytes_do_not_stop_an_export() -> None:
    document = document_of("a\udcff", "b", blocks=2)
    assert b"a\\udcff" in to_csv(document)
    assert json.loads(to_json(document))[0]["condition"] in {"a\udcff", "b"}
    assert {row["condition"] for row in read_parquet(to_parquet(document))} == {"a\\udcff", "b"}


def test_a_campaign_without_trials_is_an_empty_table() -> None:
    document = replace(document_of(), trials=())
    assert json.loads(to_json(document)) == []
    assert to_csv(document).decode().startswith("block,position,condition,")
    assert read_parquet(to_parquet(document)) == []


def test_without_pyarrow_parquet_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(UnusableInput, match="Parquet needs pyarrow") as refusal:
        to_parquet(document_of(blocks=1))
    assert "pip install 'equipoise[matching]'" in str(refusal.value.hint)
