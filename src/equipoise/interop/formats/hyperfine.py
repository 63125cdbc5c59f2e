"""hyperfine's files: ``--export-json`` is read, its JSON, CSV and Markdown are written.

Reading: a run of a command is a process. Versions 1.x have the times in one list for each command,
with exit codes and, from 1.19 on, peak memory beside them; of user and system time they keep the
mean alone, so that no trial knows its own. Versions 2.x (``schema_version`` 2) have an object for
each run, and say which metric the user asked for first: that one is compared. A counter of the
processor has no unit there.

Writing: the layout is that of hyperfine 1.15 with ``memory_usage_byte`` of 1.19, which its readers
ignore where they do not know it. The figures are hyperfine's: means and standard deviations over
trials, and in Markdown a ratio to the fastest mean whose ± propagates the standard deviations. They
are description; the verdict is not in them. Only analysed trials of the phase ``measured`` with a
known wall time count. Of a run that was imported from hyperfine 1.x, the means of user and system
time are those of the file, since no trial has its own.
"""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, Any

import msgspec
from msgspec import Struct

from equipoise.interop.assembly import AS_THE_FILE_SAYS
from equipoise.interop.reading import (
    BENCHMARK,
    Format,
    Process,
    Reading,
    SourceFile,
    as_unicode,
    quoted,
    seconds_in,
)
from equipoise.model.result import ConditionResult, ResultDocument, TrialRow
from equipoise.model.safe_text import csv_text

_OWN_NAMES = {
    "time_wall_clock": "wall_s",
    "time_cpu": "cpu_s",
    "time_user": "user_s",
    "time_system": "sys_s",
    "memory_peak_resident": "max_rss_bytes",
    "peak_memory_usage": "max_rss_bytes",
}

_BYTES = {"byte": 1.0, "kibibyte": 2.0**10, "mebibyte": 2.0**20, "gibibyte": 2.0**30}
MEANS = "mean_cpu_seconds"
"""Key of the mean user and system time of each command, which 1.x has of no run."""
_Code = Annotated[int, msgspec.Meta(ge=-(2**31), lt=2**31)]
_Bytes = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]


class _Quantity(msgspec.Struct):
    value: float
    unit: str = ""


class _Parameter(msgspec.Struct):
    value: str


class _Result(msgspec.Struct):
    command: str
    name: str | None = None
    user: float | None = None
    system: float | None = None
    times: list[float] | None = None
    exit_codes: list[_Code | None] = []
    memory_usage_byte: list[_Bytes | None] = []
    parameters: dict[str, str | int | float | _Parameter] = {}
    environment: dict[str, str] = {}
    measurements: list[dict[str, _Quantity | _Code | None]] | None = None


class _Metadata(msgspec.Struct, frozen=True):
    hyperfine_version: str | None = None
    start_time: str | None = None
    platform: dict[str, Any] = {}


class _Export(msgspec.Struct):
    results: list[_Result]
    metadata: _Metadata = _Metadata()
    primary_metric: str = "time_wall_clock"


def _recognises(file: SourceFile) -> bool:
    return "results" in file.keys and "benchmarks" not in file.keys


def _read(file: SourceFile) -> Reading:
    export = file.decoded(_Export, "hyperfine")
    version = export.metadata.hyperfine_version
    processes = tuple(one for result in export.results for one in _processes(file, result))
    asked_for = _OWN_NAMES.get(export.primary_metric, export.primary_metric)
    # A machine may lack a counter for some commands; every run has its wall time.
    compared = asked_for if all(asked_for in one.values for one in processes) else "wall_s"
    return Reading(
        tool="hyperfine" if version is None else f"hyperfine {version}",
        metric=compared,
        processes=processes,
        environment=_environment(export),
        compared=BENCHMARK,
    )


def _environment(export: _Export) -> dict[str, Any]:
    """Return the facts that belong to no single run: the host, and each command."""
    environment: dict[str, Any] = dict(export.metadata.platform)
    if export.metadata.start_time is not None:
        environment["start_time"] = export.metadata.start_time
    of_each: dict[str, dict[str, Any]] = {
        MEANS: {
            _name(one): {"user": one.user, "system": one.system}
            for one in export.results
            if one.user is not None
        },
        "command_lines": {one.name: one.command for one in export.results if one.name},
        "variables": {_name(one): one.environment for one in export.results if one.environment},
    }
    return environment | {what: known for what, known in of_each.items() if known}


def _name(result: _Result) -> str:
    return result.name or result.command


def _processes(file: SourceFile, result: _Result) -> Iterator[Process]:
    name = _name(result)
    levels = {
        factor: level.value if isinstance(level, _Parameter) else str(level)
        for factor, level in result.parameters.items()
    }
    if result.measurements is not None:
        for place, run in enumerate(result.measurements, start=1):
            values = {
                _OWN_NAMES.get(metric, metric): _in_base_unit(one)
                for metric, one in run.items()
                if isinstance(one, _Quantity)
            }
            if "wall_s" not in values:
                raise file.unusable(f"run {place} of {quoted(name)} has no time_wall_clock")
            codes = [one for key, one in run.items() if key == "exit_code"]
            ended = tuple(one for one in codes if not isinstance(one, _Quantity))
            yield _process(name, values, levels, ended)
        return
    if result.times is None:
        raise file.unusable(
            f"{quoted(name)} has no times of its runs, only figures about them",
            "export JSON with hyperfine itself: its summaries cannot be taken apart",
        )
    _check_length(file, name, "exit_codes", result.exit_codes, result.times)
    _check_length(file, name, "memory_usage_byte", result.memory_usage_byte, result.times)
    for place, seconds in enumerate(result.times):
        values = {"wall_s": seconds}
        memory = result.memory_usage_byte[place] if result.memory_usage_byte else None
        if memory is not None:
            values["max_rss_bytes"] = float(memory)
        ended = tuple(result.exit_codes[place : place + 1])
        yield _process(name, values, levels, ended)


def _process(
    name: str, values: dict[str, float], levels: dict[str, str], ended: tuple[int | None, ...]
) -> Process:
    """Return one run; ``ended`` is empty if the file has no exit code of it."""
    if not ended:
        return Process(name, values, levels=levels)
    code = ended[0]
    if code is None:
        return Process(name, values, levels=levels, failure="it was ended by a signal")
    failure = f"exit status {code}" if code else None
    return Process(name, values, levels=levels, exit=code, failure=failure)


def _in_base_unit(quantity: _Quantity) -> float:
    factor = seconds_in(quantity.unit) or _BYTES.get(quantity.unit, 1.0)
    return quantity.value * factor


def _check_length(
    file: SourceFile, name: str, field: str, found: Sequence[int | None], times: list[float]
) -> None:
    if found and len(found) != len(times):
        raise file.unusable(f"{quoted(name)} has {len(times)} times but {len(found)} {field}")


FORMAT = Format("hyperfine", "hyperfine --export-json FILE", _recognises, _read)
CSV_COLUMNS = ("command", "mean", "stddev", "median", "user", "system", "min", "max")
_UNKNOWN = "n/a"


class _ExportedResult(msgspec.Struct, omit_defaults=True):
    """One entry of ``results``, in hyperfine's order; times in seconds."""

    command: str
    mean: float | None
    stddev: float | None
    median: float | None
    user: float | None
    system: float | None
    min: float | None
    max: float | None
    times: list[float]
    exit_codes: list[int | None]
    memory_usage_byte: list[int | None] | None = None
    parameters: dict[str, str] = {}


class _Unit(Struct, frozen=True):
    name: str
    per_second: float
    digits: int

    def show(self, seconds: float) -> str:
        return f"{seconds * self.per_second:.{self.digits}f}"


_MILLISECONDS = _Unit("ms", 1e3, 1)
_SECONDS = _Unit("s", 1.0, 3)


def to_json(document: ResultDocument) -> bytes:
    """Write what ``hyperfine --export-json`` would: indented, with a final newline.

    A figure that is not known is null; ``memory_usage_byte`` is left out if no trial has
    it, and ``parameters`` (the levels of the condition) if there are none.
    """
    encoded = msgspec.json.encode({"results": _results(document)})
    return msgspec.json.format(encoded, indent=2) + b"\n"


def to_csv(document: ResultDocument) -> str:
    """Write what ``hyperfine --export-csv`` would; a figure that is not known is empty."""
    results = _results(document)
    parameters = sorted({name for result in results for name in result.parameters})
    header = [*CSV_COLUMNS, *(f"parameter_{name}" for name in parameters)]
    rows = (
        [
            *(getattr(result, column) for column in CSV_COLUMNS),
            *(result.parameters.get(name) for name in parameters),
        ]
        for result in results
    )
    return csv_text([header, *rows])


def to_markdown(document: ResultDocument) -> str:
    """Write what ``hyperfine --export-markdown`` would.

    The unit is milliseconds if the first mean is under a second, else seconds. A name
    stays in its cell: bars are escaped, line ends and other control characters are spaces.
    """
    results = _results(document)
    first = next((result.mean for result in results if result.mean is not None), 1.0)
    unit = _MILLISECONDS if first < 1.0 else _SECONDS
    fastest = min(
        (result for result in results if result.mean is not None),
        key=lambda result: result.mean or 0.0,
        default=None,
    )
    lines = [
        f"| Command | Mean [{unit.name}] | Min [{unit.name}] | Max [{unit.name}] | Relative |",
        "|:---|---:|---:|---:|---:|",
    ]
    for result in results:
        cells = (
            _code(result.command),
            _with_spread(unit, result),
            _with_unit(unit, result.min),
            _with_unit(unit, result.max),
            _relative(result, fastest),
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _results(document: ResultDocument) -> list[_ExportedResult]:
    rows: dict[str, list[TrialRow]] = {condition.name: [] for condition in document.conditions}
    for row in document.trials:
        counts = row.analysed and row.phase == "measured" and row.wall_s is not None
        if counts and row.condition in rows:
            rows[row.condition].append(row)
    means = _imported_means(document)
    return [
        _result(condition, rows[condition.name], means.get(" ".join(condition.command), {}))
        for condition in document.conditions
    ]


def _imported_means(document: ResultDocument) -> dict[str, dict[str, float]]:
    """Of each command of an imported file, what only the file knows."""
    said = document.environment.get(AS_THE_FILE_SAYS)
    means: dict[str, dict[str, float]] = said.get(MEANS, {}) if isinstance(said, dict) else {}
    return means


def _result(
    condition: ConditionResult, rows: Sequence[TrialRow], means: dict[str, float]
) -> _ExportedResult:
    times = [row.wall_s for row in rows if row.wall_s is not None]
    memory = [row.max_rss_bytes for row in rows]
    return _ExportedResult(
        command=as_unicode(condition.name),
        mean=_mean(times),
        stddev=_standard_deviation(times),
        median=statistics.median(times) if times else None,
        user=_mean([row.user_s for row in rows if row.user_s is not None], means.get("user")),
        system=_mean([row.sys_s for row in rows if row.sys_s is not None], means.get("system")),
        min=min(times, default=None),
        max=max(times, default=None),
        times=times,
        exit_codes=[row.exit for row in rows],
        memory_usage_byte=memory if any(peak is not None for peak in memory) else None,
        parameters={
            as_unicode(factor): as_unicode(level) for factor, level in condition.levels.items()
        },
    )


def _mean(values: Sequence[float], of_none: float | None = None) -> float | None:
    return math.fsum(values) / len(values) if values else of_none


def _standard_deviation(values: Sequence[float]) -> float | None:
    mean = _mean(values)
    if mean is None or len(values) < 2:
        return None
    return math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1))


def _with_unit(unit: _Unit, seconds: float | None) -> str:
    return _UNKNOWN if seconds is None else unit.show(seconds)


def _with_spread(unit: _Unit, result: _ExportedResult) -> str:
    mean = _with_unit(unit, result.mean)
    return mean if result.stddev is None else f"{mean} ± {unit.show(result.stddev)}"


def _relative(result: _ExportedResult, fastest: _ExportedResult | None) -> str:
    if result is fastest:
        return "1.00"
    if fastest is None or not result.mean or not fastest.mean:
        return _UNKNOWN
    ratio = result.mean / fastest.mean
    if result.stddev is None or fastest.stddev is None:
        return f"{ratio:.2f}"
    spread = ratio * math.hypot(result.stddev / result.mean, fastest.stddev / fastest.mean)
    return f"{ratio:.2f} ± {spread:.2f}"


def _code(text: str) -> str:
    """Show text as code in a cell of a table, whatever it holds."""
    line = "".join(character if character.isprintable() else " " for character in text)
    ticks = "`" * (1 + max(_lengths(re.findall("`+", line)), default=0))
    edge = " " if line.startswith("`") or line.endswith("`") or not line.strip() else ""
    return f"{ticks}{edge}{line}{edge}{ticks}".replace("|", r"\|")


def _lengths(texts: Iterable[str]) -> list[int]:
    return [len(text) for text in texts]
