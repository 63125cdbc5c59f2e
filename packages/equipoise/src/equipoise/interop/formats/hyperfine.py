"""Reads hyperfine's JSON; writes hyperfine's JSON, CSV, Markdown, AsciiDoc and Org-mode.

Reading: each run of a command is a process. Versions 1.x have lists of times, exit codes and peak
memory for each command, but only means of user and system time. Versions 2.x
(``schema_version`` 2) have an object for each run, and name the metric that is compared.

Writing: the files are like those of hyperfine 1.15, with ``memory_usage_byte`` of 1.19. As in
hyperfine, values are means and standard deviations over trials. Markdown also has the ratio to the
fastest mean, with a ± from both standard deviations. Only analysed trials with a wall time count.
"""

from __future__ import annotations

import math
import re
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, Any

import msgspec
from msgspec import Struct

from equipoise.interop.reading import (
    BENCHMARK,
    FILE_FACTS,
    Format,
    Process,
    Reading,
    SourceFile,
    quote,
    seconds_per,
    with_version,
)
from equipoise.model.plan import COMMAND
from equipoise.model.result import ConditionResult, ResultDocument, TrialRow
from equipoise.shared.safe_text import as_unicode, csv_text

_METRIC_NAMES = {
    "time_wall_clock": "wall_s",
    "time_cpu": "cpu_s",
    "time_user": "user_s",
    "time_system": "sys_s",
    "memory_peak_resident": "max_rss_bytes",
    "peak_memory_usage": "max_rss_bytes",
}

_BYTES_PER_UNIT = {"byte": 1.0, "kibibyte": 2.0**10, "mebibyte": 2.0**20, "gibibyte": 2.0**30}
MEAN_CPU_TIMES = "mean_cpu_seconds"
"""Key of the mean user and system times of each command, among the facts of the file."""
_ExitCode = Annotated[int, msgspec.Meta(ge=-(2**31), lt=2**31)]
_ByteCount = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]


class _Quantity(msgspec.Struct):
    value: float
    unit: str = ""


class _Parameter(msgspec.Struct):
    value: str


class _CommandResult(msgspec.Struct):
    command: str
    name: str | None = None
    user: float | None = None
    system: float | None = None
    times: list[float] | None = None
    exit_codes: list[_ExitCode | None] = []
    memory_usage_byte: list[_ByteCount | None] = []
    parameters: dict[str, str | int | float | _Parameter] = {}
    environment: dict[str, str] = {}
    measurements: list[dict[str, _Quantity | _ExitCode | None]] | None = None


class _Metadata(msgspec.Struct, frozen=True):
    hyperfine_version: str | None = None
    start_time: str | None = None
    platform: dict[str, Any] = {}


class _HyperfineFile(msgspec.Struct):
    results: list[_CommandResult]
    metadata: _Metadata = _Metadata()
    primary_metric: str = "time_wall_clock"


def _recognises(file: SourceFile) -> bool:
    return "results" in file.keys and "benchmarks" not in file.keys


def _read(file: SourceFile) -> Reading:
    export = file.decode(_HyperfineFile, "hyperfine")
    processes = tuple(process for result in export.results for process in _processes(file, result))
    metric = _METRIC_NAMES.get(export.primary_metric, export.primary_metric)
    return Reading(
        tool=with_version("hyperfine", export.metadata.hyperfine_version),
        # A counter may be missing for some commands, but every run has a wall time.
        metric=metric if all(metric in process.values for process in processes) else "wall_s",
        processes=processes,
        environment=_environment(export),
        compared_factor=BENCHMARK,
    )


def _environment(export: _HyperfineFile) -> dict[str, Any]:
    environment: dict[str, Any] = dict(export.metadata.platform)
    if export.metadata.start_time is not None:
        environment["start_time"] = export.metadata.start_time
    facts_by_command: dict[str, dict[str, Any]] = {
        MEAN_CPU_TIMES: {
            _name(result): {"user": result.user, "system": result.system}
            for result in export.results
            if result.user is not None
        },
        "command_lines": {result.name: result.command for result in export.results if result.name},
        "variables": {
            _name(result): result.environment for result in export.results if result.environment
        },
    }
    return environment | {key: facts for key, facts in facts_by_command.items() if facts}


def _name(result: _CommandResult) -> str:
    return result.name or result.command


def _processes(file: SourceFile, result: _CommandResult) -> Iterator[Process]:
    name = _name(result)
    levels = {
        factor: level.value if isinstance(level, _Parameter) else str(level)
        for factor, level in result.parameters.items()
    }
    for run_number, (values, codes) in enumerate(_values_of_runs(file, result), start=1):
        if "wall_s" not in values:
            raise file.error(f"run {run_number} of {quote(name)} has no time_wall_clock")
        code = next(iter(codes), None)
        failure = f"exit status {code}" if code else None
        if codes and code is None:
            failure = "a signal ended the process"
        yield Process(name, values, levels=levels, exit=code, failure=failure)


def _values_of_runs(
    file: SourceFile, result: _CommandResult
) -> Iterator[tuple[dict[str, float], Sequence[int | None]]]:
    """Yield the values of each run, and a list: its exit code, or nothing if it is unknown."""
    if result.measurements is not None:
        for run in result.measurements:
            values = {
                _METRIC_NAMES.get(metric, metric): _in_base_unit(quantity)
                for metric, quantity in run.items()
                if isinstance(quantity, _Quantity)
            }
            codes = [run["exit_code"]] if "exit_code" in run else []
            yield values, [code for code in codes if not isinstance(code, _Quantity)]
        return
    name, times = quote(_name(result)), result.times
    if times is None:
        raise file.error(
            f"{name} has no times of its runs, only summaries",
            "export JSON with `hyperfine --export-json FILE`",
        )
    for field in ("exit_codes", "memory_usage_byte"):
        count = len(getattr(result, field))
        if count not in (0, len(times)):
            raise file.error(f"{name} has {len(times)} times but {count} {field}")
    for index, seconds in enumerate(times):
        values = {"wall_s": seconds}
        for peak in result.memory_usage_byte[index : index + 1]:
            if peak is not None:
                values["max_rss_bytes"] = float(peak)
        yield values, result.exit_codes[index : index + 1]


def _in_base_unit(quantity: _Quantity) -> float:
    factor = seconds_per(quantity.unit) or _BYTES_PER_UNIT.get(quantity.unit, 1.0)
    return quantity.value * factor


FORMAT = Format("hyperfine", "hyperfine --export-json FILE", _recognises, _read)
CSV_COLUMNS = ("command", "mean", "stddev", "median", "user", "system", "min", "max")
_NOT_AVAILABLE = "n/a"


class _WrittenResult(msgspec.Struct, omit_defaults=True):
    """An entry of ``results``, with keys in hyperfine's order and times in seconds."""

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
    """Number of these units in a second."""
    digits: int

    def format(self, seconds: float | None) -> str:
        return _NOT_AVAILABLE if seconds is None else f"{seconds * self.per_second:.{self.digits}f}"


_UNITS = {
    unit.name: unit
    for unit in (
        _Unit("ns", 1e9, 0),
        _Unit("µs", 1e6, 1),
        _Unit("ms", 1e3, 1),
        _Unit("s", 1.0, 3),
        _Unit("min", 1 / 60, 4),
        _Unit("h", 1 / 3600, 6),
    )
}


def to_json(document: ResultDocument) -> bytes:
    """Return JSON like that of ``hyperfine --export-json``. Unknown numbers are null.

    ``memory_usage_byte`` is left out if no trial has a value, and ``parameters`` (the levels of the
    condition) if the condition has no levels.
    """
    encoded = msgspec.json.encode({"results": _results_of_conditions(document)})
    return msgspec.json.format(encoded, indent=2) + b"\n"


def to_csv(document: ResultDocument) -> str:
    """Return CSV like that of ``hyperfine --export-csv``; unknown numbers are empty."""
    results = _results_of_conditions(document)
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


def to_markdown(document: ResultDocument, unit: str | None = None) -> str:
    """Return Markdown like that of ``hyperfine --export-markdown``.

    ``unit`` is ns, µs, ms, s, min or h; by default ms if the first mean is under a second, else s.
    In names, bars are escaped, and control characters become spaces.
    """
    table = _table_rows(document, unit, _code_in_markdown_cell)
    heading, *lines = (f"| {' | '.join(row)} |" for row in table)
    return "\n".join([heading, "|:---|---:|---:|---:|---:|", *lines]) + "\n"


def to_asciidoc(document: ResultDocument, unit: str | None = None) -> str:
    """Return AsciiDoc like that of ``hyperfine --export-asciidoc``, see `to_markdown`."""
    table = _table_rows(document, unit, lambda name: _marked_code(name, "`"))
    lines = ["".join(f"| {cell} \n" for cell in row) for row in table]
    return '[cols="<,>,>,>,>"]\n|===\n' + "\n".join(lines) + "|===\n"


def to_orgmode(document: ResultDocument, unit: str | None = None) -> str:
    """Return Org-mode like that of ``hyperfine --export-orgmode``, see `to_markdown`."""
    table = _table_rows(document, unit, lambda name: _marked_code(name, "="))
    heading_line, *row_lines = (f"| {name}  |  {' |  '.join(cells)} |" for name, *cells in table)
    return "\n".join([heading_line, "|--+--+--+--+--|", *row_lines]) + "\n"


def _table_rows(
    document: ResultDocument, unit: str | None, format_name: Callable[[str], str]
) -> list[list[str]]:
    results = _results_of_conditions(document)
    means = [result.mean for result in results if result.mean is not None]
    default_unit = "s" if not means or means[0] >= 1.0 else "ms"
    table_unit = _UNITS[unit or default_unit]
    fastest = next((result for result in results if means and result.mean == min(means)), None)
    columns = (f"{column} [{table_unit.name}]" for column in ("Mean", "Min", "Max"))
    rows = [["Command", *columns, "Relative"]]
    for result in results:
        spread = "" if result.stddev is None else f" ± {table_unit.format(result.stddev)}"
        mean = f"{table_unit.format(result.mean)}{spread}"
        low, high = table_unit.format(result.min), table_unit.format(result.max)
        name = format_name(result.command)
        rows.append([name, mean, low, high, _ratio_to_fastest(result, fastest)])
    return rows


def _results_of_conditions(document: ResultDocument) -> list[_WrittenResult]:
    document.check_one_host("hyperfine's format")
    rows: dict[str, list[TrialRow]] = defaultdict(list)
    for row in document.trials:
        if row.analysed and row.phase == "measured" and row.wall_s is not None:
            rows[row.condition].append(row)
    # A file of hyperfine 1.x has these means for each command, but not for each run.
    facts = document.environment.get(FILE_FACTS)
    cpu_means = facts.get(MEAN_CPU_TIMES, {}) if isinstance(facts, dict) else {}
    return [
        _summary_of(condition, rows[condition.name], cpu_means.get(" ".join(condition.command), {}))
        for condition in document.conditions
    ]


def _summary_of(
    condition: ConditionResult, rows: Sequence[TrialRow], cpu_means: dict[str, float]
) -> _WrittenResult:
    times = [row.wall_s for row in rows if row.wall_s is not None]
    memory = [row.max_rss_bytes for row in rows]
    return _WrittenResult(
        command=as_unicode(condition.name),
        mean=_mean(times),
        stddev=_standard_deviation(times),
        median=statistics.median(times) if times else None,
        user=_mean([row.user_s for row in rows if row.user_s is not None], cpu_means.get("user")),
        system=_mean([row.sys_s for row in rows if row.sys_s is not None], cpu_means.get("system")),
        min=min(times, default=None),
        max=max(times, default=None),
        times=times,
        exit_codes=[row.exit for row in rows],
        memory_usage_byte=memory if any(peak is not None for peak in memory) else None,
        parameters={
            as_unicode(factor): as_unicode(level)
            for factor, level in condition.levels.items()
            if factor != COMMAND
        },
    )


def _mean(values: Sequence[float], default: float | None = None) -> float | None:
    return math.fsum(values) / len(values) if values else default


def _standard_deviation(values: Sequence[float]) -> float | None:
    mean = _mean(values)
    if mean is None or len(values) < 2:
        return None
    return math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1))


def _ratio_to_fastest(result: _WrittenResult, fastest: _WrittenResult | None) -> str:
    if result is fastest:
        return "1.00"
    if fastest is None or not result.mean or not fastest.mean:
        return _NOT_AVAILABLE
    ratio = result.mean / fastest.mean
    if result.stddev is None or fastest.stddev is None:
        return f"{ratio:.2f}"
    spread = ratio * math.hypot(result.stddev / result.mean, fastest.stddev / fastest.mean)
    return f"{ratio:.2f} ± {spread:.2f}"


def _marked_code(text: str, mark: str) -> str:
    return f"{mark}{_in_one_line(text)}{mark}".replace("|", r"\|")


def _in_one_line(text: str) -> str:
    return "".join(character if character.isprintable() else " " for character in text)


def _code_in_markdown_cell(text: str) -> str:
    line = _in_one_line(text)
    ticks = "`" * (1 + max(map(len, re.findall("`+", line)), default=0))
    padding = " " if line.startswith("`") or line.endswith("`") or not line.strip() else ""
    return f"{ticks}{padding}{line}{padding}{ticks}".replace("|", r"\|")
