"""hyperfine's ``--export-json``: a run of a command is a process.

Versions 1.x have the times in one list for each command, with exit codes and, from 1.19 on, peak
memory beside them; of user and system time they keep the mean alone, so that no trial knows its
own. Versions 2.x (``schema_version`` 2) have an object for each run, and say which metric the user
asked for first: that is compared. A counter of the processor has no unit there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import msgspec

from equipoise.interop.reading import (
    BENCHMARK,
    Format,
    Process,
    Reading,
    SourceFile,
    quoted,
    seconds_in,
)

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
"""Of each command the mean of its user and system time, which version 1.x knows of no run."""
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
