"""The article's three tables: lmbench 3.0 in September 2005, microseconds."""

from __future__ import annotations

from dataclasses import dataclass

MACHINES = (
    ("G5 2.7 GHz", "Darwin", "2700"),
    ("G5 2.5 GHz", "Linux", "2500"),
    ("Xeon 3.6 GHz", "Linux", "3585"),
    ("Opteron 850", "Linux", "2404"),
)
"""Host, operating system and MHz, as printed."""
DARWIN, LINUX_ON_G5 = 0, 1
"""The two that share a processor but for 8 % of its clock."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table."""

    heading: str
    rows: tuple[str, ...]
    """The rows here whose mean stands for it; ``{placement}`` in one between processes."""
    microseconds: tuple[float, float, float, float]
    """Of the four machines, in their order."""


@dataclass(frozen=True, slots=True)
class Table:
    """One of the three."""

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
