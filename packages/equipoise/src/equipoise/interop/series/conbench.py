"""Reads Conbench's responses to ``/api/history/…`` and ``/api/benchmark-results/``.

Both responses are lists; in later versions, the list is in the key ``data``. Conbench's API
documentation describes them as ``HistoryList`` and ``BenchmarkResultList``. A value is Conbench's
``single_value_summary``, or else the mean.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from equipoise.interop.reading import DECODE_ERRORS, Format, SourceFile
from equipoise.interop.series.reading import SeriesReading, SeriesValue, convert, utc_time
from equipoise.model.quantities import counted

_UNKNOWN_COMMITS = (None, "", "unknown commit")


class _Commit(Struct):
    sha: str | None = None
    hash: str | None = None
    timestamp: str | None = None
    branch: str | None = None


class _Hardware(Struct):
    name: str | None = None


class _Stats(Struct):
    unit: str | None = None
    mean: float | str | None = None


class _Result(Struct):
    commit: _Commit | None = None
    commit_hash: str | None = None
    commit_timestamp: str | None = None
    single_value_summary: float | None = None
    mean: float | str | None = None
    unit: str | None = None
    stats: _Stats | None = None
    tags: dict[str, Any] | None = None
    case_id: str | None = None
    hardware: _Hardware | None = None
    hardware_hash: str | None = None


def _recognises(file: SourceFile) -> bool:
    if file.is_folder:
        return False
    text = file.beginning(65536)
    return (
        text.lstrip()[:1] in ("[", "{")
        and ('"commit_hash"' in text or '"commit"' in text)
        and any(name in text for name in ('"single_value_summary"', '"zscorestats"', '"stats"'))
        and '"machine_info"' not in text
    )


def _read(file: SourceFile) -> SeriesReading:
    try:
        response = msgspec.json.decode(file.content)
    except DECODE_ERRORS as error:
        raise file.error(f"this is not a response of Conbench: {error}") from error
    rows = response.get("data") if isinstance(response, dict) else response
    if not isinstance(rows, list):
        raise file.error(
            "this is not a response of Conbench, which has a list",
            "save the response to /api/history/",
        )
    results = [convert(file, row, _Result, "Conbench") for row in rows]
    values = tuple(_series_values(file, results))
    unnamed_count = len(results) - len(values)
    note = f"Left out: {counted(unnamed_count, 'value')} of unknown commits."
    return SeriesReading("Conbench", values, (note,) if unnamed_count else ())


def _series_values(file: SourceFile, results: list[_Result]) -> Iterator[SeriesValue]:
    for result in results:
        commit, stats = result.commit or _Commit(), result.stats or _Stats()
        commit_id = result.commit_hash or commit.sha or commit.hash
        if commit_id is None or commit_id in _UNKNOWN_COMMITS:
            continue
        hardware = None if result.hardware is None else result.hardware.name
        machine = result.hardware_hash or hardware
        unit = result.unit or stats.unit
        yield SeriesValue(
            benchmark=_benchmark(result.tags, result.case_id),
            metric="value",
            unit=unit,
            setting=", ".join(filter(None, (machine, commit.branch))),
            commit=commit_id,
            date=utc_time(result.commit_timestamp or commit.timestamp),
            value=_value(file, result, stats),
        )


def _benchmark(tags: Mapping[str, Any] | None, case: str | None) -> str:
    """Return the name of a benchmark with parameters, or with their id in a history."""
    if not tags:
        return f"case {case}" if case else "benchmark"
    parameters = ", ".join(f"{key}={value}" for key, value in sorted(tags.items()) if key != "name")
    name = str(tags.get("name", "benchmark"))
    return f"{name}({parameters})" if parameters else name


def _value(file: SourceFile, result: _Result, stats: _Stats) -> float:
    """Return the value, which may be a number or a text; NaN if the benchmark failed."""
    values = (result.single_value_summary, result.mean, stats.mean)
    value = next((value for value in values if value is not None), None)
    try:
        return float("nan") if value is None else float(value)
    except ValueError as error:
        raise file.error("this is not a response of Conbench: a mean is not a number") from error


FORMAT = Format(
    "conbench",
    "the response of Conbench to /api/history/ or /api/benchmark-results/",
    _recognises,
    _read,
)
