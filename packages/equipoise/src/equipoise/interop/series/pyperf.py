"""pyperf: a suite for each commit, which the metadata name (``commit_id``, ``commit_date``).

pyperformance writes both. A file without them is named after its revision: ``v1.2.json``. The value
of a commit is the mean over its processes, of the mean within each.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from equipoise.interop.formats.pyperf import FORMAT as ONE_FILE
from equipoise.interop.formats.pyperf import Suite
from equipoise.interop.reading import Format, Process, SourceFile, mean
from equipoise.interop.series.reading import SeriesReading, SeriesValue, moment, revision_of_file

_UNITS = {"time_s": "seconds", "memory_bytes": "bytes"}


def _read(file: SourceFile) -> SeriesReading:
    reading = ONE_FILE.read(file)
    suite = file.decoded(Suite, "pyperf")
    one = suite.benchmarks[0].metadata if suite.benchmarks else {}
    known: Mapping[str, Any] = {**one, **suite.metadata}
    by_benchmark: dict[tuple[str, str], list[Process]] = {}
    for process in reading.processes:
        by_benchmark.setdefault((process.benchmark, process.host or ""), []).append(process)
    values = [
        SeriesValue(
            benchmark=benchmark,
            metric=metric,
            unit=_UNITS.get(metric),
            setting=host,
            commit=str(known.get("commit_id") or revision_of_file(file.path)),
            date=moment(known.get("commit_date")),
            value=mean([process.values[metric] for process in processes]),
        )
        for (benchmark, host), processes in by_benchmark.items()
        for metric in processes[0].values
    ]
    return SeriesReading(reading.tool or "pyperf", tuple(values))


FORMAT = Format(
    "pyperf", "a file of `pyperf … -o FILE` for each commit", ONE_FILE.recognises, _read
)
