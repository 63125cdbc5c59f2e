"""The article's tables with this host beside its four machines, and what differs."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator

from msgspec import Struct

from equipoise.model.findings import Findings, FindingTable
from equipoise.model.primitives import LATENCY
from equipoise.model.result import ResultDocument
from equipoise.studies.study_data import UNKNOWN, StudyData, findings_of, joined, short

MACHINES = (
    ("G5 2.7 GHz", "Darwin", "2700"),
    ("G5 2.5 GHz", "Linux", "2500"),
    ("Xeon 3.6 GHz", "Linux", "3585"),
    ("Opteron 850", "Linux", "2404"),
)
"""Host, operating system and MHz, as printed."""
DARWIN, LINUX_ON_G5 = 0, 1
"""Indices of the two machines that share a processor but for 8 % of its clock."""


class Column(Struct, frozen=True):
    """One column of a table."""

    heading: str
    rows: tuple[str, ...]
    """Rows of `equipoise os` whose mean is compared; ``{placement}`` in those of two processes."""
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
HERE = "this host"
PLACEMENTS = {"same_cpu": "same CPU", "across_cpus": "across CPUs"}
PLACED = "{placement}"


def findings(document: ResultDocument) -> Findings:
    """Return the three tables in the article's layout, and what differs here."""
    measured = StudyData(document)
    if not any(_known(measured, column, one) for column in _columns() for one in PLACEMENTS):
        return Findings()
    tables = [_as_published(measured, table) for table in TABLES]

    return findings_of((*tables, _thread_table(measured)), _paragraphs(measured), _answer(measured))


def on_this_host(measured: StudyData, column: Column, placement: str) -> float | None:
    """Return a column's value on this host in microseconds; ``None`` where a row has no number."""
    medians = [measured.median(LATENCY, row=row.format(placement=placement)) for row in column.rows]
    known = [one for one in medians if one is not None]
    return 1e6 * statistics.fmean(known) if len(known) == len(medians) else None


def _known(measured: StudyData, column: Column, placement: str) -> bool:
    return on_this_host(measured, column, placement) is not None


def _columns() -> Iterator[Column]:
    for table in TABLES:
        yield from table.columns


def _is_placed(column: Column) -> bool:
    return any(PLACED in row for row in column.rows)


def _as_published(measured: StudyData, table: Table) -> FindingTable:
    headings = ("host", "OS", "MHz", *(column.heading for column in table.columns))
    published = tuple(
        (*machine, *(f"{column.microseconds[place]:g}" for column in table.columns))
        for place, machine in enumerate(MACHINES)
    )
    placements = PLACEMENTS if any(map(_is_placed, table.columns)) else {"": ""}
    own = tuple(
        (
            f"{HERE}, {words}" if words else HERE,
            str(measured.document.environment.get("system") or UNKNOWN),
            _megahertz(measured),
            *(
                _cell(measured, column, placement)
                # What has one row here stands beside the first placement only.
                if place == 0 or _is_placed(column)
                else ""
                for column in table.columns
            ),
        )
        for place, (placement, words) in enumerate(placements.items())
    )
    return FindingTable(table.title, headings, (*published, *own), tuple(_reasons(measured, table)))


def _cell(measured: StudyData, column: Column, placement: str) -> str:
    value = on_this_host(measured, column, placement)
    return UNKNOWN if value is None else short(value)


def _megahertz(measured: StudyData) -> str:
    """Return what was observed beside the trials; many virtual machines report nothing."""
    seen = [
        value
        for row in measured.document.trials
        if (value := row.covariates.get("frequency_hz")) is not None
    ]
    return f"{statistics.median(seen) / 1e6:.0f}" if seen else UNKNOWN


def _reasons(measured: StudyData, table: Table) -> Iterator[str]:
    """Yield why a row has no number, a line for each reason."""
    lacking: dict[str, list[str]] = {}
    rows = (row for column in table.columns for row in column.rows)
    for name in dict.fromkeys(row.format(placement=one) for row in rows for one in PLACEMENTS):
        condition = measured.condition(row=name)
        if condition is None:
            lacking.setdefault("not run", []).append(name)
        elif LATENCY in condition.unknown:
            lacking.setdefault(condition.unknown[LATENCY], []).append(name)
    for reason, names in lacking.items():
        yield f"{joined(names)}: {reason}"


def _thread_table(measured: StudyData) -> FindingTable:
    """Return the times of a thread, which the article's readers asked for."""
    rows = tuple(
        (name, short(1e6 * median))
        for name in ("thread", "fork", "exec")
        if (median := measured.median(LATENCY, row=name)) is not None
    )
    return FindingTable(
        "Threads, which the article's readers asked for, µs",
        ("", HERE),
        rows if measured.median(LATENCY, row="thread") is not None else (),
        ("thread: one is created and joined; the article's four machines have no such figure",),
    )


def _paragraphs(measured: StudyData) -> Iterator[str]:
    for table in TABLES:
        yield _beside(measured, table)
    yield _systems()
    yield _placement(measured)
    yield _thread(measured)
    yield (
        "What differs: the published figures are lmbench's of 2005, one number each without a "
        "spread and without a word on the CPUs that the two sides ran on; those of this host are "
        "the medians of several processes of Equipoise's own probes, on its own hardware and "
        "kernel. A ratio of the two is of machine, kernel and probe together."
    )


def _answer(measured: StudyData) -> str:
    ratios = [ratio for table in TABLES for ratio in _over_quickest(measured, table).values()]
    if not ratios:
        return ""
    return (
        f"This host is below the least of the article's four machines in "
        f"{sum(ratio < 1.0 for ratio in ratios)} of {len(ratios)} columns."
    )


def _over_quickest(measured: StudyData, table: Table) -> dict[str, float]:
    return {
        column.heading: value / min(column.microseconds)
        for column in table.columns
        if (value := on_this_host(measured, column, "same_cpu")) is not None
    }


def _beside(measured: StudyData, table: Table) -> str:
    """Return how this host compares with the quickest of the four, column by column."""
    ratios = _over_quickest(measured, table)
    if not ratios:
        return ""
    quicker = [heading for heading, ratio in ratios.items() if ratio < 1.0]
    least, most = min(ratios, key=ratios.__getitem__), max(ratios, key=ratios.__getitem__)
    where = ", on the same CPU" if any(map(_is_placed, table.columns)) else ""
    words = (
        f"{table.title.removesuffix(', µs')}{where}: in {len(quicker)} of {len(ratios)} columns "
        f"this host is below the least of the four; {least} takes ×{short(ratios[least])} of it"
    )
    return f"{words}, {most} ×{short(ratios[most])}." if most != least else f"{words}."


def _systems() -> str:
    """Return the article's conclusion from the two machines with one processor."""
    ratios = {
        column.heading: column.microseconds[DARWIN] / column.microseconds[LINUX_ON_G5]
        for column in _columns()
    }
    slower = [heading for heading, ratio in ratios.items() if ratio > 1.0]
    mean = math.exp(statistics.fmean(map(math.log, ratios.values())))
    most = max(ratios, key=ratios.__getitem__)
    return (
        f"Of the two G5s Darwin took more than Linux in {len(slower)} of {len(ratios)} columns, "
        f"×{short(mean)} in the geometric mean and ×{short(ratios[most])} for {most}: that is what "
        "the article blames on the operating system. No system but this one was measured here."
    )


def _placement(measured: StudyData) -> str:
    """Return whether where the two sides run matters more than which machine it is."""
    told: list[str] = []
    for column in filter(_is_placed, IPC.columns):
        ratio = measured.ratio(
            LATENCY,
            {"row": column.rows[0].format(placement="across_cpus")},
            {"row": column.rows[0].format(placement="same_cpu")},
        )
        if ratio is not None:
            among = max(column.microseconds) / min(column.microseconds)
            told.append(f"{column.heading} {ratio.text()} (the four machines: ×{short(among)})")
    if not told:
        return ""
    return (
        "Across CPUs over the same CPU, on this host, beside the largest over the least of the "
        f"four machines: {joined(told)}."
    )


def _thread(measured: StudyData) -> str:
    ratio = measured.ratio(LATENCY, {"row": "fork"}, {"row": "thread"})
    if ratio is None:
        return ""
    if ratio.surely_above:
        verdict = "fork is no stand-in for a thread here"
    elif ratio.surely_below:
        verdict = "a thread costs more than a fork here"
    elif None in ratio.ratio_ci:
        verdict = "too few blocks to say whether that is chance"
    else:
        verdict = "the two cannot be told apart here"
    return f"A fork takes {ratio.text()} of a thread's creation and join: {verdict}."
