"""Files of other tools as a run of the ledger: its plan, its draws and its trials.

Nothing is made up: a draw of an imported run is the order in which its file has the trials, and
every field of a trial that the file does not have is unknown, for that reason.
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
from equipoise.model.plan import (
    Condition,
    Contrast,
    Judgement,
    Measure,
    Plan,
    Stopping,
)
from equipoise.model.quantities import MAX_MEASURED
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
FILE = "file"
"""The factor whose levels are the names that the user gave the files."""
HOST = "host"
MAX_TRIALS = 100_000
MAX_VALUES = 1_000_000
MAX_WORD_BYTES = 2**17
"""Bytes that one word of a command may have (execve(2), MAX_ARG_STRLEN)."""
_ACCOUNTED = ("wall_s", "user_s", "sys_s", "max_rss_bytes")
_WHOLE = frozenset({"max_rss_bytes"})
_MAX_WHOLE_NUMBER = 2.0**63
"""Bound that every whole number of the ledger stays below."""
_NEVER_IMPORTED = ("minor_faults", "major_faults", "voluntary_switches", "involuntary_switches")


class SourceReading(Struct, frozen=True):
    """One file that was read."""

    file: str
    """Name of the file, as the user typed it."""
    label: str | None
    """The name that the user gave what it measured."""
    format: str
    reading: Reading


class _Placed(Struct, frozen=True):
    """A process at its place: the number of its block and of its condition."""

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
    """Put files together into one run, whose id and end the ledger will give it.

    Files of which several have the same benchmark and no label give more trials of it; files with
    labels are levels of the factor ``file``.

    Raise `UnusableInput` if the files compare different metrics, hold too much, or a value is not
    finite.

    Parameters
    ----------
    folder
        The folder that the files are named in.
    now
        When it is imported, in seconds since the epoch: no file tells when each trial began.
    baseline
        The condition that every other one is compared with, by name.
    """
    metrics = list(dict.fromkeys(file.reading.metric for file in readings))
    if len(metrics) > 1:
        raise UnusableInput(
            f"the files measure different things: {', '.join(metrics)}",
            hint="import them one by one",
        )
    _check_size(readings)
    conditions, placed = _placed(readings)
    if baseline is not None:
        contrasts = with_baseline(conditions, baseline)
    elif len({file.label for file in readings}) > 1:
        contrasts = contrasts_of(conditions, FILE)
    else:
        contrasts = contrasts_of(conditions, readings[0].reading.compared_factor)
    hosts = tuple(dict.fromkeys(one.process.host for one in placed if one.process.host))
    plan = Plan(
        study=STUDY,
        conditions=conditions,
        measure=Measure(working_folder=folder, warmup=0, vary_environment_size=False),
        stopping=Stopping(),
        judgement=replace(judgement, primary_metric=metrics[0]),
        chosen_contrasts=contrasts,
        # A seed of resampling only: one and the same import gives the same document.
        seed=0,
        terms=ImportSource(
            format=" and ".join(dict.fromkeys(file.format for file in readings)),
            tool=" and ".join(dict.fromkeys(file.reading.tool or "" for file in readings)) or None,
            files=tuple(file.file for file in readings),
            order=_order(placed),
            no_series=tuple(
                dict.fromkeys(chain.from_iterable(f.reading.no_series for f in readings))
            ),
        ),
    )
    return RunRecord(
        id="",
        plan=plan,
        started_at=now,
        segments=(Segment(now, _environment(readings, hosts)),),
        draws=_draws(placed),
        trials=tuple(_trials(placed, hosts, now)),
        notices=_notices(readings, placed, conditions, hosts),
    )


def _placed(readings: Sequence[SourceReading]) -> tuple[tuple[Condition, ...], list[_Placed]]:
    """Return the conditions as the files name them, and every process in its block, in order.

    A file without blocks is one block.
    """
    labelled = any(file.label is not None for file in readings)
    # Where benchmarks themselves are compared, each is a condition and no level of a factor.
    benchmarks_are_levels = labelled or readings[0].reading.compared_factor != BENCHMARK
    numbers: dict[tuple[str, tuple[tuple[str, str], ...]], int] = {}
    placed: list[_Placed] = []
    for file in readings:
        in_file: list[tuple[Process, int]] = []
        for process in file.reading.processes:
            levels = {BENCHMARK: process.benchmark} if benchmarks_are_levels else {}
            levels |= process.levels
            if labelled:
                levels[FILE] = file.label or file.file
            key = (process.benchmark, tuple(levels.items()))
            in_file.append((process, numbers.setdefault(key, len(numbers))))
        if all(process.order is not None for process, _ in in_file):
            in_file.sort(key=lambda one: one[0].order or 0.0)
        first = 1 + max((one.block for one in placed), default=0)
        blocks: dict[int | None, int] = {}
        for process, condition in in_file:
            block = blocks.setdefault(process.block, first + len(blocks))
            placed.append(_Placed(process, block, condition))
    names = _names([(benchmark, dict(levels)) for benchmark, levels in numbers])
    conditions = tuple(
        Condition(name=name, command=(benchmark,), levels=dict(levels))
        for name, (benchmark, levels) in zip(names, numbers, strict=True)
    )
    # A block stands together in the ledger, as every campaign's does.
    return conditions, sorted(placed, key=lambda one: one.block)


def _names(conditions: Sequence[tuple[str, dict[str, str]]]) -> list[str]:
    """Return the levels of each condition, without a benchmark that is always the same."""
    every = [levels for _, levels in conditions]
    varying = [
        factor
        for factor in dict.fromkeys(name for levels in every for name in levels)
        if factor != BENCHMARK and len({levels.get(factor) for levels in every}) > 1
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


def _check_size(readings: Sequence[SourceReading]) -> None:
    processes = [(file.file, process) for file in readings for process in file.reading.processes]
    values = sum(len(one.values) + sum(map(len, one.iterations.values())) for _, one in processes)
    if len(processes) > MAX_TRIALS or values > MAX_VALUES:
        raise UnusableInput(
            f"there are {len(processes)} processes with {values} values; one import takes "
            f"{MAX_TRIALS} and {MAX_VALUES}",
            hint="import the files one by one, or export fewer values",
        )
    for file, process in processes:
        levels = (*process.levels, *process.levels.values())
        names = (process.benchmark, *process.iterations, *process.values, *levels)
        if any(len(name) > MAX_WORD_BYTES for name in names):
            raise UnusableInput(
                f"{file}: a name has more than {MAX_WORD_BYTES} characters",
                hint="name the benchmark shorter",
            )
        series = (process.values.values(), *process.iterations.values())
        # Written so that NaN fails, too.
        is_measured = all(
            abs(value) <= MAX_MEASURED for values in series for value in values
        ) and all(0.0 <= process.values.get(name, 0.0) < _MAX_WHOLE_NUMBER for name in _WHOLE)
        if not is_measured:
            raise UnusableInput(
                f"{file}: {quote(process.benchmark)} has a value that no measurement can have",
                hint="correct the file, or leave the benchmark out",
            )


def _order(placed: Sequence[_Placed]) -> Order:
    if all(one.process.block is not None for one in placed):
        return "in blocks"
    conditions = [one.condition for one in placed]
    changes = sum(before != after for before, after in pairwise(conditions))
    return "one after the other" if changes < len(set(conditions)) else "mixed"


def _draws(placed: Sequence[_Placed]) -> tuple[Draw, ...]:
    orders: dict[int, list[int]] = defaultdict(list)
    for one in placed:
        orders[one.block].append(one.condition)
    return tuple(
        Draw("measured", block, tuple(order), padding_bytes=0) for block, order in orders.items()
    )


def _trials(placed: Sequence[_Placed], hosts: Sequence[str], now: float) -> Iterator[Trial]:
    positions: defaultdict[int, Iterator[int]] = defaultdict(count)
    for one in placed:
        process = one.process
        yield Trial(
            phase="measured",
            block=one.block,
            position=next(positions[one.block]),
            condition=one.condition,
            started_at=now,
            accounting=_accounting(process),
            exit=process.exit,
            failure=process.failure,
            failure_kind=None if process.failure is None else "failed",
            covariates={HOST: float(hosts.index(process.host))} if process.host else {},
            samples=tuple(_samples(process)),
        )


def _accounting(process: Process) -> Accounting:
    known: dict[str, Any] = {
        name: int(process.values[name]) if name in _WHOLE else process.values[name]
        for name in _ACCOUNTED
        if name in process.values
    }
    absent = [name for name in (*_ACCOUNTED, *_NEVER_IMPORTED) if name not in known]
    return Accounting(**known, unknown=dict.fromkeys(absent, "the imported file does not have it"))


def _samples(process: Process) -> Iterator[Sample]:
    for metric, value in process.values.items():
        if metric not in _ACCOUNTED:
            yield Sample(metric, value)
    for metric, series in process.iterations.items():
        for number, value in enumerate(series):
            yield Sample(metric, value, iteration=number)


def _environment(readings: Sequence[SourceReading], hosts: Sequence[str]) -> dict[str, Any]:
    """Return the environments of the files; of several files, each by its name."""
    environment: dict[str, Any] = {"imported_from": [file.file for file in readings]}
    facts = {one.file: dict(one.reading.environment) for one in readings if one.reading.environment}
    if facts:
        environment[FILE_FACTS] = facts if len(readings) > 1 else facts[readings[0].file]
    if hosts:
        environment["hosts"] = list(hosts)
    return environment


def _notices(
    readings: Sequence[SourceReading],
    placed: Sequence[_Placed],
    conditions: Sequence[Condition],
    hosts: Sequence[str],
) -> tuple[RecordedWarning, ...]:
    notices = [
        RecordedWarning("import", f"{file.file}: {note}", "nothing to do if that is what you want")
        for file in readings
        for note in file.reading.notes
    ]
    counts = Counter(one.condition for one in placed)
    single = [condition for index, condition in enumerate(conditions) if counts[index] == 1]
    if single:
        some = single[0].name if len(single) == 1 else f"{len(single)} conditions"
        notices.append(
            RecordedWarning(
                "one_process",
                f"{some} ran in one process only: its iterations are no independent trials, so "
                "nothing tells what another process would do",
                "run the tool several times and import all its files at once",
            )
        )
    hosts_of: dict[int, set[str | None]] = defaultdict(set)
    for one in placed:
        hosts_of[one.condition].add(one.process.host)
    if len(hosts) > 1 and any(len(each) == 1 for each in hosts_of.values()):
        notices.append(
            RecordedWarning(
                "hosts",
                "some conditions ran on one host and others on another: the hosts are in the ratio",
                "measure every condition on every host",
            )
        )
    return tuple(notices)


NAMES_SHOWN = 5


def contrasts_of(conditions: Sequence[Condition], compared: str | None) -> tuple[Contrast, ...]:
    """Compare the levels of one factor where everything else is equal.

    The first of the conditions that share all other levels is the baseline of the rest. With
    `BENCHMARK` every condition is compared with the first one, with ``None`` nothing is: benchmarks
    of one file are different things.
    """
    if compared is None:
        return ()
    if compared == BENCHMARK:
        return tuple(Contrast(0, index) for index in range(1, len(conditions)))
    baselines: dict[frozenset[tuple[str, str]], int] = {}
    contrasts: list[Contrast] = []
    for index, condition in enumerate(conditions):
        shared = {name: level for name, level in condition.levels.items() if name != compared}
        baseline = baselines.setdefault(frozenset(shared.items()), index)
        if baseline != index:
            contrasts.append(Contrast(baseline, index, factor=compared, stratum=shared))
    return tuple(contrasts)


def with_baseline(conditions: Sequence[Condition], name: str) -> tuple[Contrast, ...]:
    """Compare every other condition with the one of this name.

    Raise `UnusableInput` if there is none.
    """
    names = [condition.name for condition in conditions]
    if name not in names:
        some = ", ".join(names[:NAMES_SHOWN]) + (", …" if len(names) > NAMES_SHOWN else "")
        raise UnusableInput(f"no condition is named {quote(name)}", hint=f"there are: {some}")
    baseline = names.index(name)
    return tuple(Contrast(baseline, index) for index in range(len(names)) if index != baseline)
