"""The article's tables with its four machines and this host, and the differences.

A column is an operation, such as a fork. The placement of an operation says whether its two
processes run on the same CPU.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator

from msgspec import Struct

from equipoise.figures.values import LATENCY_METRIC
from equipoise.model.quantities import joined
from equipoise.model.result import Findings, FindingTable
from equipoise_studies.study_data import UNKNOWN, StudyData, findings_of, number_text

MACHINES = (
    ("G5 2.7 GHz", "Darwin", "2700"),
    ("G5 2.5 GHz", "Linux", "2500"),
    ("Xeon 3.6 GHz", "Linux", "3585"),
    ("Opteron 850", "Linux", "2404"),
)
"""Name, operating system and MHz of each machine, as printed."""
DARWIN, LINUX_ON_G5 = 0, 1
"""Indices of the two machines with the same processor, whose clocks differ by 8 %."""


class Column(Struct, frozen=True):
    """A column of a table."""

    heading: str
    rows: tuple[str, ...]
    """Rows of `equipoise os`; their mean is compared. A placement replaces ``{placement}``."""
    microseconds: tuple[float, float, float, float]
    """Published times of the four machines, in their order."""


class Table(Struct, frozen=True):
    """One of the article's three tables."""

    title: str
    columns: tuple[Column, ...]


PROCESSES = Table(
    "Processes, µs",
    (
        Column("fork", ("fork",), (659.0, 182.0, 158.0, 125.0)),
        Column("exec", ("exec",), (2308.0, 748.0, 467.0, 471.0)),
        Column("sh", ("sh",), (4960.0, 2259.0, 2688.0, 2393.0)),
    ),
)

CALLS = Table(
    "System calls and signals, µs",
    (
        Column("null call", ("null_call",), (1.13, 0.14, 0.19, 0.08)),
        Column("null I/O", ("read_byte", "write_byte"), (1.91, 0.26, 0.25, 0.17)),
        Column("stat", ("stat",), (4.64, 3.41, 2.3, 2.11)),
        Column("open/close", ("open_close",), (8.6, 4.16, 2.88, 2.69)),
        Column("select TCP", ("select_tcp",), (21.9, 18.9, 9.0, 12.4)),
        Column("sig inst", ("signal_install",), (1.67, 0.38, 0.28, 0.17)),
        Column("sig hndl", ("signal_handle",), (6.2, 1.9, 2.7, 1.14)),
    ),
)

IPC = Table(
    "Interprocess communication, µs",
    (
        Column("pipe", ("pipe_{placement}",), (9.496, 11.6, 9.909, 7.645)),
        Column("AF UNIX", ("unix_{placement}",), (13.1, 16.4, 19.0, 11.2)),
        Column("UDP", ("udp_{placement}",), (34.8, 19.1, 16.0, 14.2)),
        Column("TCP", ("tcp_{placement}",), (44.5, 19.6, 19.3, 15.9)),
        Column("TCP conn", ("tcp_connect",), (61.0, 34.0, 40.0, 24.0)),
    ),
)

TABLES = (PROCESSES, CALLS, IPC)
COLUMNS = tuple(column for table in TABLES for column in table.columns)
THIS_HOST = "this host"
PLACEMENTS = {"same_cpu": "same CPU", "across_cpus": "across CPUs"}
PLACEMENT_FIELD = "{placement}"
"""Part of a row's name that is replaced by a placement."""


def findings(data: StudyData) -> Findings:
    """Return the three tables in the article's layout, and the differences on this host."""
    cells = (
        microseconds_here(data, column, placement) for column in COLUMNS for placement in PLACEMENTS
    )
    if all(cell is None for cell in cells):
        return Findings()
    tables = (_published_table(data, table) for table in TABLES)
    paragraphs = (
        *(_fastest_sentence(data, table) for table in TABLES),
        _systems_sentence(),
        _placement_sentence(data),
        _thread_sentence(data),
        "The published figures are lmbench's of 2005: single numbers, without a spread and without "
        "the CPUs of the two processes. The figures of this host are medians over several "
        "processes of Equipoise's own probes. A ratio combines machine, kernel and probe.",
    )
    return findings_of((*tables, _thread_table(data)), paragraphs, _answer(data))


def microseconds_here(data: StudyData, column: Column, placement: str) -> float | None:
    """Return the microseconds of a column on this host; ``None`` if a row has no number."""
    medians = [
        data.median(LATENCY_METRIC, row=row.format(placement=placement)) for row in column.rows
    ]
    known = [median for median in medians if median is not None]
    return 1e6 * statistics.fmean(known) if len(known) == len(medians) else None


def _has_placements(column: Column) -> bool:
    return any(PLACEMENT_FIELD in row for row in column.rows)


def _published_table(data: StudyData, table: Table) -> FindingTable:
    published = tuple(
        (*machine, *(f"{column.microseconds[index]:g}" for column in table.columns))
        for index, machine in enumerate(MACHINES)
    )
    system = str(data.document.environment.get("system") or UNKNOWN)

    has_placements = any(map(_has_placements, table.columns))
    placements = PLACEMENTS if has_placements else {"same_cpu": ""}
    own_rows = tuple(
        (
            f"{THIS_HOST}, {name}" if name else THIS_HOST,
            system,
            _megahertz(data),
            *(
                # A column without placements has only one value, shown in the first row.
                _cell(data, column, placement) if index == 0 or _has_placements(column) else ""
                for column in table.columns
            ),
        )
        for index, (placement, name) in enumerate(placements.items())
    )
    return FindingTable(
        table.title,
        ("host", "OS", "MHz", *(column.heading for column in table.columns)),
        (*published, *own_rows),
        tuple(_reasons(data, table)),
    )


def _cell(data: StudyData, column: Column, placement: str) -> str:
    value = microseconds_here(data, column, placement)
    return UNKNOWN if value is None else number_text(value)


def _megahertz(data: StudyData) -> str:
    """Return the clock rate during the trials, which many virtual machines do not report."""
    frequencies = (row.covariates.get("frequency_hz") for row in data.document.trials)
    known = [value for value in frequencies if value is not None]
    return f"{statistics.median(known) / 1e6:.0f}" if known else UNKNOWN


def _reasons(data: StudyData, table: Table) -> Iterator[str]:
    """Yield each reason why rows have no number, with the names of the rows."""
    by_reason: dict[str, list[str]] = {}
    rows = (row for column in table.columns for row in column.rows)
    row_names = (row.format(placement=placement) for row in rows for placement in PLACEMENTS)
    for name in dict.fromkeys(row_names):
        condition = data.condition(row=name)
        reason = "not run" if condition is None else condition.unknown.get(LATENCY_METRIC)
        if reason is not None:
            by_reason.setdefault(reason, []).append(name)
    for reason, names in by_reason.items():
        yield f"{joined(names)}: {reason}"


def _thread_table(data: StudyData) -> FindingTable:
    medians = data.medians(LATENCY_METRIC, "row")
    return FindingTable(
        "Threads, which readers of the article missed, µs",
        ("", THIS_HOST),
        tuple(
            (name, number_text(1e6 * medians[name]))
            for name in ("thread", "fork", "exec")
            if "thread" in medians and name in medians
        ),
        ("thread: one is created and joined; the article's four machines have no such figure",),
    )


def _answer(data: StudyData) -> str:
    ratios = [ratio for table in TABLES for ratio in _over_fastest(data, table).values()]
    if not ratios:
        return ""
    return (
        f"This host is faster than all four machines of the article in "
        f"{sum(ratio < 1.0 for ratio in ratios)} of {len(ratios)} columns."
    )


def _over_fastest(data: StudyData, table: Table) -> dict[str, float]:
    """Return the ratio of this host's time to the shortest time of the four machines, by column."""
    return {
        column.heading: value / min(column.microseconds)
        for column in table.columns
        if (value := microseconds_here(data, column, "same_cpu")) is not None
    }


def _fastest_sentence(data: StudyData, table: Table) -> str:
    ratios = _over_fastest(data, table)
    if not ratios:
        return ""
    faster_count = sum(ratio < 1.0 for ratio in ratios.values())
    lowest, highest = min(ratios, key=ratios.__getitem__), max(ratios, key=ratios.__getitem__)
    where = ", on the same CPU" if any(map(_has_placements, table.columns)) else ""
    largest = f", {highest} ×{number_text(ratios[highest])}" if highest != lowest else ""
    return (
        f"{table.title.removesuffix(', µs')}{where}: in {faster_count} of {len(ratios)} columns "
        f"this host is faster than the fastest of the four; relative to it, {lowest} takes "
        f"×{number_text(ratios[lowest])}{largest}."
    )


def _systems_sentence() -> str:
    ratios = {
        column.heading: column.microseconds[DARWIN] / column.microseconds[LINUX_ON_G5]
        for column in COLUMNS
    }
    slower_count = sum(ratio > 1.0 for ratio in ratios.values())
    mean = statistics.geometric_mean(ratios.values())
    highest = max(ratios, key=ratios.__getitem__)
    return (
        f"On the two G5s, Darwin took longer than Linux in {slower_count} of {len(ratios)} "
        f"columns, ×{number_text(mean)} in the geometric mean and ×{number_text(ratios[highest])} "
        f"for {highest}. The article blames the operating system for this. Only this system was "
        "measured here."
    )


def _placement_sentence(data: StudyData) -> str:
    ratios: list[str] = []
    for column in filter(_has_placements, IPC.columns):
        across, same = (
            column.rows[0].format(placement=placement) for placement in ("across_cpus", "same_cpu")
        )
        ratio = data.ratio(LATENCY_METRIC, "row", across, same)
        if ratio is not None:
            machine_ratio = number_text(max(column.microseconds) / min(column.microseconds))
            ratios.append(f"{column.heading} {ratio.text()} (machines: ×{machine_ratio})")
    if not ratios:
        return ""
    return (
        "Time across CPUs over time on the same CPU, on this host (in brackets: the slowest over "
        f"the fastest of the article's machines): {joined(ratios)}."
    )


def _thread_sentence(data: StudyData) -> str:
    ratio = data.ratio(LATENCY_METRIC, "row", "fork", "thread")
    if ratio is None:
        return ""
    if ratio.is_certainly_above:
        verdict = "a fork costs more than a thread here"
    elif ratio.is_certainly_below:
        verdict = "a thread costs more than a fork here"
    elif None in ratio.ratio_ci:
        verdict = "too few blocks for a verdict"
    else:
        verdict = "no difference can be shown here"
    return f"A fork takes {ratio.text()} of a thread's creation and join: {verdict}."
