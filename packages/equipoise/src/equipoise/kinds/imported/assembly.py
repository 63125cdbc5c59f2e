"""Make a run of the ledger from files of other tools, with a plan, draws and trials.

A benchmark and its parameters become a condition and its levels. Each process in a file becomes a
trial, and the order of the processes becomes the draws of the run. If a file lacks a value of a
trial, the value is unknown.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import chain, count, pairwise
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from equipoise.interop.reading import BENCHMARK, FILE_FACTS, Process, Reading, quote
from equipoise.kinds.imported.terms import ImportSource, Order
from equipoise.model.errors import UnusableInput
from equipoise.model.plan import Condition, Contrast, Judgement, Measure, Plan, Stopping
from equipoise.model.quantities import MAX_MEASURED_VALUE, listed
from equipoise.model.record import (
    Accounting,
    Draw,
    RecordedWarning,
    RunRecord,
    Sample,
    Segment,
    Trial,
)

STUDY = "import"
FILE_FACTOR = "file"
"""Factor whose levels are the names that the user gave the files."""
HOST_COVARIATE = "host"
"""Covariate with the index of a trial's host."""
MAX_TRIALS = 100_000
"""Largest number of trials of an import."""
MAX_VALUES = 1_000_000
"""Largest number of values of all trials of an import."""
MAX_ARGUMENT_BYTES = 2**17
"""Largest length of one argument of a command, in bytes (execve(2), MAX_ARG_STRLEN)."""
_IMPORTED_COSTS = ("wall_s", "user_s", "sys_s", "max_rss_bytes")
"""Fields of `Accounting` that a file may have."""
_INTEGER_COSTS = frozenset({"max_rss_bytes"})
"""Costs that the ledger stores as integers."""
_MAX_INTEGER = 2.0**63
"""Upper bound of the integers in the ledger."""
_UNAVAILABLE_COUNTS = tuple(
    "minor_faults major_faults voluntary_switches involuntary_switches".split()
)
"""Fields of `Accounting` that no file has."""


class SourceReading(Struct, frozen=True):
    """One file of another tool, and the content that `equipoise.interop` has read."""

    file: str
    """Name of the file, as the user typed it."""
    given_name: str | None
    """Name that the user gave to the condition in the file; ``None`` without a name."""
    format: str
    reading: Reading


class _ProcessInBlock(Struct, frozen=True):
    """A process of a file, with the number of its block and the index of its condition."""

    process: Process
    block: int
    condition: int


def assemble(
    readings: Sequence[SourceReading],
    *,
    judgement: Judgement,
    folder: str,
    now: float,
    baseline: str | None = None,
) -> RunRecord:
    """Return one run with the trials of all files; the ledger adds its id and its end.

    If the user gave names, each file is a level of the factor ``file``. Else each benchmark gets
    its trials from all files. The names of the files are relative to ``folder``. ``now``, in
    seconds since the epoch, becomes the start of each trial. If ``baseline`` names a condition, all
    other conditions are compared with this condition.

    Raise `UnusableInput` if the files compare different metrics or have too many values, or a value
    is not finite.
    """
    files = {source.reading.metric: source.file for source in reversed(readings)}
    if len(files) > 1:
        examples = [f"{metric} in {file}" for metric, file in reversed(files.items())]
        raise UnusableInput(
            f"the files have different metrics: {listed(examples)}",
            hint="import the files of each metric with a separate command",
        )
    _check_limits(readings)
    conditions, entries = _conditions_and_blocks(readings)
    if baseline is not None:
        contrasts = contrasts_with_baseline(conditions, baseline)
    elif len({source.given_name for source in readings}) > 1:
        contrasts = contrasts_between_levels(conditions, FILE_FACTOR)
    else:
        contrasts = contrasts_between_levels(conditions, readings[0].reading.compared_factor)
    hosts = tuple(dict.fromkeys(entry.process.host for entry in entries if entry.process.host))
    plan = Plan(
        study=STUDY,
        conditions=conditions,
        measure=Measure(working_folder=folder, warmup=0, vary_environment_size=False),
        stopping=Stopping(),
        judgement=replace(judgement, primary_metric=readings[0].reading.metric),
        chosen_contrasts=contrasts,
        # This seed is only for resampling, so that the same import gives the same document.
        seed=0,
        terms=ImportSource(
            format=" and ".join(dict.fromkeys(source.format for source in readings)),
            tool=" and ".join(dict.fromkeys(source.reading.tool or "" for source in readings))
            or None,
            files=tuple(source.file for source in readings),
            order=_order_in_time(entries),
            # Iterations in an unknown order are not a series in time.
            metrics_without_time_order=tuple(
                dict.fromkeys(
                    chain.from_iterable(
                        source.reading.metrics_without_time_order for source in readings
                    )
                )
            ),
        ),
    )
    return RunRecord(
        id="",
        plan=plan,
        started_at=now,
        segments=(Segment(now, _environment(readings, hosts)),),
        draws=_draws(entries),
        trials=tuple(_trials(entries, hosts, now)),
        warnings=_import_warnings(readings, entries, conditions, hosts),
    )


def _conditions_and_blocks(
    readings: Sequence[SourceReading],
) -> tuple[tuple[Condition, ...], list[_ProcessInBlock]]:
    """Return the conditions, and all processes in the order of their blocks.

    A file without blocks is one block.
    """
    has_given_names = any(source.given_name is not None for source in readings)
    # Either the benchmark is a level of each condition, or the benchmarks are compared.
    benchmarks_are_levels = has_given_names or readings[0].reading.compared_factor != BENCHMARK
    index_by_key: dict[tuple[str, tuple[tuple[str, str], ...]], int] = {}
    entries: list[_ProcessInBlock] = []
    for source in readings:
        file_processes: list[tuple[Process, int]] = []
        for process in source.reading.processes:
            levels = {BENCHMARK: process.benchmark} if benchmarks_are_levels else {}
            levels |= process.levels
            if has_given_names:
                levels[FILE_FACTOR] = source.given_name or source.file
            key = (process.benchmark, tuple(levels.items()))
            file_processes.append((process, index_by_key.setdefault(key, len(index_by_key))))
        if all(process.order is not None for process, _ in file_processes):
            file_processes.sort(key=lambda item: item[0].order or 0.0)
        first_block = 1 + max((entry.block for entry in entries), default=0)
        blocks: dict[int | None, int] = {}
        for process, condition in file_processes:
            block = blocks.setdefault(process.block, first_block + len(blocks))
            entries.append(_ProcessInBlock(process, block, condition))
    names = _condition_names([(benchmark, dict(levels)) for benchmark, levels in index_by_key])
    conditions = tuple(
        Condition(name=name, command=(benchmark,), levels=dict(levels))
        for name, (benchmark, levels) in zip(names, index_by_key, strict=True)
    )
    # As in every campaign, the trials of a block are next to each other in the ledger.
    return conditions, sorted(entries, key=lambda entry: entry.block)


def _condition_names(conditions: Sequence[tuple[str, dict[str, str]]]) -> list[str]:
    """Return the names of conditions: the levels that vary, and the benchmark if there are several.

    ``conditions`` are pairs of a benchmark and its levels by factor.
    """
    all_levels = [levels for _, levels in conditions]
    varying = [
        factor
        for factor in dict.fromkeys(name for levels in all_levels for name in levels)
        if factor != BENCHMARK and len({levels.get(factor) for levels in all_levels}) > 1
    ]
    is_one_benchmark = len({benchmark for benchmark, _ in conditions}) == 1
    names: list[str] = []
    counts: Counter[str] = Counter()
    for benchmark, levels in conditions:
        parts = [levels[factor] for factor in varying if factor in levels and BENCHMARK in levels]
        name = ", ".join(parts if parts and is_one_benchmark else [benchmark, *parts])
        counts[name] += 1
        names.append(name if counts[name] == 1 else f"{name} ({counts[name]})")
    return names


def _check_limits(readings: Sequence[SourceReading]) -> None:
    processes = [
        (source.file, process) for source in readings for process in source.reading.processes
    ]
    value_count = sum(
        len(process.values) + sum(map(len, process.iterations.values())) for _, process in processes
    )
    if len(processes) > MAX_TRIALS or value_count > MAX_VALUES:
        raise UnusableInput(
            f"there are {len(processes)} processes with {value_count} values, but an import has at "
            f"most {MAX_TRIALS} processes and {MAX_VALUES} values",
            hint="import the files one by one, or export fewer values",
        )
    for file, process in processes:
        levels = (*process.levels, *process.levels.values())
        names = (process.benchmark, *process.iterations, *process.values, *levels)
        if any(len(name) > MAX_ARGUMENT_BYTES for name in names):
            raise UnusableInput(
                f"{file}: a name has more than {MAX_ARGUMENT_BYTES} characters",
                hint="shorten the names of this benchmark in the file",
            )
        series = (process.values.values(), *process.iterations.values())
        # NaN fails these comparisons, too.
        is_measured = all(
            abs(value) <= MAX_MEASURED_VALUE for values in series for value in values
        ) and all(0.0 <= process.values.get(name, 0.0) < _MAX_INTEGER for name in _INTEGER_COSTS)
        if not is_measured:
            raise UnusableInput(
                f"{file}: {quote(process.benchmark)} has an impossible value: it is not finite, "
                "too large, or a negative size",
                hint="correct the value in the file, or remove the benchmark from the file",
            )


def _order_in_time(entries: Sequence[_ProcessInBlock]) -> Order:
    if all(entry.process.block is not None for entry in entries):
        return "in blocks"
    conditions = [entry.condition for entry in entries]
    change_count = sum(earlier != later for earlier, later in pairwise(conditions))
    return "one after the other" if change_count < len(set(conditions)) else "mixed"


def _draws(entries: Sequence[_ProcessInBlock]) -> tuple[Draw, ...]:
    orders: dict[int, list[int]] = defaultdict(list)
    for entry in entries:
        orders[entry.block].append(entry.condition)
    return tuple(
        Draw("measured", block, tuple(order), padding_bytes=0) for block, order in orders.items()
    )


def _trials(
    entries: Sequence[_ProcessInBlock], hosts: Sequence[str], now: float
) -> Iterator[Trial]:
    positions: defaultdict[int, Iterator[int]] = defaultdict(count)
    for entry in entries:
        process = entry.process
        yield Trial(
            phase="measured",
            block=entry.block,
            position=next(positions[entry.block]),
            condition=entry.condition,
            started_at=now,
            accounting=_accounting(process),
            exit=process.exit,
            failure=process.failure,
            failure_kind=None if process.failure is None else "failed",
            covariates={HOST_COVARIATE: float(hosts.index(process.host))} if process.host else {},
            samples=tuple(_samples(process)),
        )


def _accounting(process: Process) -> Accounting:
    costs: dict[str, Any] = {
        name: int(process.values[name]) if name in _INTEGER_COSTS else process.values[name]
        for name in _IMPORTED_COSTS
        if name in process.values
    }
    unknown = [name for name in (*_IMPORTED_COSTS, *_UNAVAILABLE_COUNTS) if name not in costs]
    return Accounting(**costs, unknown=dict.fromkeys(unknown, "the imported file does not have it"))


def _samples(process: Process) -> Iterator[Sample]:
    for metric, value in process.values.items():
        if metric not in _IMPORTED_COSTS:
            yield Sample(metric, value)
    for metric, series in process.iterations.items():
        for iteration, value in enumerate(series):
            yield Sample(metric, value, iteration=iteration)


def _environment(readings: Sequence[SourceReading], hosts: Sequence[str]) -> dict[str, Any]:
    """Return the environment of the run. Facts of several files are grouped by file."""
    environment: dict[str, Any] = {"imported_from": [source.file for source in readings]}
    facts = {
        source.file: dict(source.reading.environment)
        for source in readings
        if source.reading.environment
    }
    if facts:
        environment[FILE_FACTS] = facts if len(readings) > 1 else facts[readings[0].file]
    if hosts:
        environment["hosts"] = list(hosts)
    return environment


def _import_warnings(
    readings: Sequence[SourceReading],
    entries: Sequence[_ProcessInBlock],
    conditions: Sequence[Condition],
    hosts: Sequence[str],
) -> tuple[RecordedWarning, ...]:
    warnings = [
        RecordedWarning("import", f"{source.file}: {note}", "ignore this if you expect it")
        for source in readings
        for note in source.reading.notes
    ]
    counts = Counter(entry.condition for entry in entries)
    lone_names = [
        condition.name for index, condition in enumerate(conditions) if counts[index] == 1
    ]
    if lone_names:
        subject = lone_names[0] if len(lone_names) == 1 else f"{len(lone_names)} conditions"
        warnings.append(
            RecordedWarning(
                "one_process",
                f"{subject} ran in only one process: iterations are not independent trials, so "
                "the result of another process is unknown",
                "run the tool several times, and import all of its files with one command",
            )
        )
    hosts_by_condition: dict[int, set[str | None]] = defaultdict(set)
    for entry in entries:
        hosts_by_condition[entry.condition].add(entry.process.host)
    if len(hosts) > 1 and any(len(host_names) == 1 for host_names in hosts_by_condition.values()):
        warnings.append(
            RecordedWarning(
                "hosts",
                "the conditions ran on different hosts, whose difference is in the ratio",
                "measure every condition on every host",
            )
        )
    return tuple(warnings)


MAX_LISTED_NAMES = 5
"""Largest number of conditions that a hint names."""


def contrasts_between_levels(
    conditions: Sequence[Condition], factor: str | None
) -> tuple[Contrast, ...]:
    """Return the contrasts between the levels of one factor, with all other levels equal.

    Among conditions that differ only in this factor, the first is the baseline. If the factor is
    `BENCHMARK`, every condition is compared with the first. If it is ``None``, there is no
    contrast, because the benchmarks measure different things.
    """
    if factor is None:
        return ()
    if factor == BENCHMARK:
        return tuple(Contrast(0, index) for index in range(1, len(conditions)))
    baselines: dict[frozenset[tuple[str, str]], int] = {}
    contrasts: list[Contrast] = []
    for index, condition in enumerate(conditions):
        other_levels = {name: level for name, level in condition.levels.items() if name != factor}
        baseline = baselines.setdefault(frozenset(other_levels.items()), index)
        if baseline != index:
            contrasts.append(Contrast(baseline, index, factor=factor, stratum=other_levels))
    return tuple(contrasts)


def contrasts_with_baseline(conditions: Sequence[Condition], name: str) -> tuple[Contrast, ...]:
    """Return the contrasts with the named condition; raise `UnusableInput` for an unknown name."""
    names = [condition.name for condition in conditions]
    if name not in names:
        examples = ", ".join(names[:MAX_LISTED_NAMES]) + (
            ", …" if len(names) > MAX_LISTED_NAMES else ""
        )
        raise UnusableInput(
            f"no condition is named {quote(name)}", hint=f"give --baseline one of: {examples}"
        )
    baseline = names.index(name)
    return tuple(Contrast(baseline, index) for index in range(len(names)) if index != baseline)
