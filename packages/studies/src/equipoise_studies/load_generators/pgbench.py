"""Run pgbench and report its results through ``EQUIPOISE_METRICS``.

::

    python -m equipoise_studies.load_generators.pgbench --client=4 --jobs=4 --time=10 …

Percentiles come from pgbench's log of all transactions, in a temporary folder. With
``--password-file=FILE`` pgbench gets a password through ``PGPASSFILE``.
"""

from __future__ import annotations

import os
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from equipoise_studies.load_generators.load_generator import (
    PERCENTILES,
    Load,
    LoadInterval,
    private_folder,
    run_and_report,
    split_password_file,
    write_private,
)

_US = 1e-6
_LATENCY, _SECOND = 2, 4
"""Columns of the log (PostgreSQL's manual, pgbench, Per-Transaction Logging)."""


def read(output: str, logs: Iterable[Path]) -> Load:
    """Read the output and the logs of pgbench 14 or later; raise `ValueError` if unreadable."""
    transactions = [transaction for log in logs for transaction in _transactions(log)]
    latencies = sorted(latency for latency, _ in transactions)
    if not latencies:
        raise ValueError("the log has no transaction")
    throughput = re.search(r"tps = ([\d.]+)", output)
    if throughput is None:
        raise ValueError("there is no line with tps = …")
    failed = re.search(r"number of failed transactions: (\d+)", output)
    return Load(
        throughput_per_s=float(throughput[1]),
        transactions=len(latencies),
        errors=0 if failed is None else int(failed[1]),
        latency_mean_s=sum(latencies) / len(latencies),
        latency_max_s=latencies[-1],
        percentiles={percent: _percentile(latencies, percent) for percent in PERCENTILES},
        intervals=tuple(_intervals_by_second(transactions)),
    )


def _transactions(log: Path) -> Iterator[tuple[float, int]]:
    """Yield each successful transaction's latency, and the second in which it ended."""
    for line in log.read_text().splitlines():
        columns = line.split()
        if columns[_LATENCY].isdigit():
            yield int(columns[_LATENCY]) * _US, int(columns[_SECOND])


def _intervals_by_second(transactions: list[tuple[float, int]]) -> Iterator[LoadInterval]:
    """Yield an interval for each second, without the incomplete first and last second."""
    by_second = defaultdict(list)
    for latency, second in transactions:
        by_second[second].append(latency)
    if len(by_second) < 3:
        return
    for second in range(min(by_second) + 1, max(by_second)):
        latencies = sorted(by_second[second])
        yield LoadInterval(len(latencies), _percentile(latencies, 99) if latencies else None)


def _percentile(latencies: list[float], percent: int) -> float:
    """Return the smallest latency that at least ``percent`` % of the latencies do not exceed."""
    return latencies[max(0, -(-percent * len(latencies) // 100) - 1)]


def run(arguments: Sequence[str], program: str = "pgbench") -> None:
    """Run pgbench, and report its results."""
    options, password = split_password_file(arguments)
    with private_folder() as folder:
        environment = dict(os.environ)
        if password is not None:
            line = f"*:*:*:*:{password}\n"
            environment["PGPASSFILE"] = str(write_private(folder / "pgpass", line))
        logs = folder / "logs"
        logs.mkdir()
        command = (program, "--log", f"--log-prefix={logs / 'log'}", *options)
        run_and_report(command, lambda output: read(output, logs.iterdir()), environment)


if __name__ == "__main__":
    run(sys.argv[1:])
