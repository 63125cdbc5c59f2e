"""Conbench: what its API answers to ``/api/history/…`` and ``/api/benchmark-results/``.

Both are lists, in later versions inside ``data``. A history has the hash of its commit beside each
value, a list of results a commit with its own fields (Conbench's API documentation,
``HistoryList`` and ``BenchmarkResultList``). A value is Conbench's ``single_value_summary``, else
the mean.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from equipoise.interop.reading import NOT_DECODED, Format, SourceFile
from equipoise.interop.series.reading import SeriesReading, SeriesValue, converted, moment
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
    """One value, of either answer."""

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
    begin = file.begins(65536)
    return (
        begin.lstrip()[:1] in ("[", "{")
        and ('"commit_hash"' in begin or '"commit"' in begin)
        and any(name in begin for name in ('"single_value_summary"', '"zscorestats"', '"stats"'))
        and '"machine_info"' not in begin
    )


def _read(file: SourceFile) -> SeriesReading:
    try:
        whole = msgspec.json.decode(file.content)
    except NOT_DECODED as error:
        raise file.unusable(f"no answer of Conbench: {error}") from error
    rows = whole.get("data") if isinstance(whole, dict) else whole
    if not isinstance(rows, list):
        raise file.unusable(
            "no answer of Conbench: it holds no list", "save what /api/history/ answers"
        )
    results = [converted(file, row, _Result, "Conbench") for row in rows]
    values = tuple(_values(file, results))
    unnamed = len(results) - len(values)
    note = f"{counted(unnamed, 'value')} of unknown commits left out."
    return SeriesReading("Conbench", values, (note,) if unnamed else ())


def _values(file: SourceFile, results: list[_Result]) -> Iterator[SeriesValue]:
    """Yield the value of each result that has a commit."""
    for one in results:
        commit, stats = one.commit or _Commit(), one.stats or _Stats()
        name = one.commit_hash or commit.sha or commit.hash
        if name is None or name in _UNKNOWN_COMMITS:
            continue
        machine = one.hardware_hash or (one.hardware.name if one.hardware is not None else None)
        unit = one.unit or stats.unit
        yield SeriesValue(
            benchmark=_benchmark(one.tags, one.case_id),
            metric="value",
            unit=unit,
            setting=", ".join(filter(None, (machine, commit.branch))),
            commit=name,
            date=moment(one.commit_timestamp or commit.timestamp),
            value=_value(file, one, stats),
        )


def _benchmark(tags: Mapping[str, Any] | None, case: str | None) -> str:
    """Return the name of a benchmark with its parameters; a history only has the id of its case."""
    if not tags:
        return f"case {case}" if case else "benchmark"
    rest = ", ".join(f"{key}={value}" for key, value in sorted(tags.items()) if key != "name")
    name = str(tags.get("name", "benchmark"))
    return f"{name}({rest})" if rest else name


def _value(file: SourceFile, one: _Result, stats: _Stats) -> float:
    """Return the value; older versions write numbers as text. What failed is no number."""
    values = (one.single_value_summary, one.mean, stats.mean)
    value = next((value for value in values if value is not None), None)
    try:
        return float("nan") if value is None else float(value)
    except ValueError as error:
        raise file.unusable("no answer of Conbench: a mean is no number") from error


FORMAT = Format(
    "conbench",
    "what Conbench's /api/history/ or /api/benchmark-results/ answers",
    _recognises,
    _read,
)
