"""Reads pyperf's JSON, with a suite for each commit.

The commit and its date are in the metadata ``commit_id`` and ``commit_date``, as pyperformance
writes them. Without these, the file name contains the revision: ``v1.2.json``. The value of a
commit is the mean of the means of its processes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from equipoise.interop.formats.pyperf import FORMAT as RESULT_FORMAT
from equipoise.interop.formats.pyperf import Suite
from equipoise.interop.reading import Format, Process, SourceFile, mean
from equipoise.interop.series.reading import SeriesReading, SeriesValue, revision_of_file, utc_time

_UNITS = {"time_s": "seconds", "memory_bytes": "bytes"}


def _read(file: SourceFile) -> SeriesReading:
    reading = RESULT_FORMAT.read(file)
    suite = file.decode(Suite, "pyperf")
    first_metadata = suite.benchmarks[0].metadata if suite.benchmarks else {}
    metadata: Mapping[str, Any] = {**first_metadata, **suite.metadata}
    by_series: dict[tuple[str, str], list[Process]] = {}
    for process in reading.processes:
        by_series.setdefault((process.benchmark, process.host or ""), []).append(process)
    values = [
        SeriesValue(
            benchmark=benchmark,
            metric=metric,
            unit=_UNITS.get(metric),
            setting=host,
            commit=str(metadata.get("commit_id") or revision_of_file(file.path)),
            date=utc_time(metadata.get("commit_date")),
            value=mean([process.values[metric] for process in processes]),
        )
        for (benchmark, host), processes in by_series.items()
        for metric in processes[0].values
    ]
    return SeriesReading(reading.tool or "pyperf", tuple(values))


FORMAT = Format(
    "pyperf", "a file of `pyperf … -o FILE` for each commit", RESULT_FORMAT.recognises, _read
)
