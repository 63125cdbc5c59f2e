"""Run pgbench and report what it did through ``EQUIPOISE_METRICS``.

::

    python -m equipoise_studies.load_generators.pgbench --client=4 --jobs=4 --time=10 …

Percentiles come from its log of every transaction, which lies in a folder of its own meanwhile.
``--password-file=FILE`` hands it a password through ``PGPASSFILE``.
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
    Interval,
    Load,
    private_folder,
    reported,
    split_password_file,
    write_private,
)

_US = 1e-6
_LATENCY, _SECOND = 2, 4
"""The columns of the log (PostgreSQL's manual, pgbench, Per-Transaction Logging)."""


def read(output: str, logs: Iterable[Path]) -> Load:
    """Read what pgbench 14 or later wrote, and its logs.

    Raise `ValueError` if it says nothing that is known, or no transaction ended.
    """
    ended = [transaction for log in logs for transaction in _transactions(log)]
    latencies = sorted(latency for latency, _ in ended)
    if not latencies:
        raise ValueError("its log holds no transaction")
    throughput = re.search(r"tps = ([\d.]+)", output)
    if throughput is None:
        raise ValueError("nothing in it is of the form tps = …")
    failed = re.search(r"number of failed transactions: (\d+)", output)
    return Load(
        throughput_per_s=float(throughput[1]),
        transactions=len(latencies),
        errors=0 if failed is None else int(failed[1]),
        latency_mean_s=sum(latencies) / len(latencies),
        latency_max_s=latencies[-1],
        percentiles={percent: _percentile(latencies, percent) for percent in PERCENTILES},
        intervals=tuple(_by_second(ended)),
    )


def _transactions(log: Path) -> Iterator[tuple[float, int]]:
    """Yield latency in seconds and the second of the end; failed transactions have no latency."""
    for line in log.read_text().splitlines():
        columns = line.split()
        if columns[_LATENCY].isdigit():
            yield int(columns[_LATENCY]) * _US, int(columns[_SECOND])


def _by_second(ended: list[tuple[float, int]]) -> Iterator[Interval]:
    """Return the whole seconds of the clock, without the first and the last, which are cut."""
    by_second = defaultdict(list)
    for latency, second in ended:
        by_second[second].append(latency)
    if len(by_second) < 3:
        return
    for second in range(min(by_second) + 1, max(by_second)):
        latencies = sorted(by_second[second])
        yield Interval(len(latencies), _percentile(latencies, 99) if latencies else None)


def _percentile(latencies: list[float], percent: int) -> float:
    """Return the smallest latency that a percentage of the latencies does not exceed."""
    return latencies[max(0, -(-percent * len(latencies) // 100) - 1)]


def run(arguments: Sequence[str], program: str = "pgbench") -> None:
    """Run it, and report."""
    options, password = split_password_file(arguments)
    with private_folder() as folder:
        environment = dict(os.environ)
        if password is not None:
            line = f"*:*:*:*:{password}\n"
            environment["PGPASSFILE"] = str(write_private(folder / "pgpass", line))
        logs = folder / "logs"
        logs.mkdir()
        command = (program, "--log", f"--log-prefix={logs / 'log'}", *options)
        reported(command, lambda output: read(output, logs.iterdir()), environment)


if __name__ == "__main__":
    run(sys.argv[1:])
