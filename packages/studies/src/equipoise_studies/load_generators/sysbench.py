"""Run sysbench and report its results through ``EQUIPOISE_METRICS``.

::

    python -m equipoise_studies.load_generators.sysbench --threads=4 --time=10 … oltp_read_only run

Percentiles come from sysbench's histogram, so each is exact to 1.8 %, the width of a bucket. With
``--password-file=FILE`` sysbench gets a password through ``--config-file``.
"""

from __future__ import annotations

import re
import sys
from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate

from equipoise_studies.load_generators.load_generator import (
    PERCENTILES,
    Load,
    LoadInterval,
    private_folder,
    run_and_report,
    split_password_file,
    write_private,
)

OPTIONS = ("--histogram=on", "--report-interval=1", "--percentile=99")
"""Options of every run, so that the output has what `read` parses."""
_MS = 1e-3
_INTERVAL_LINE = re.compile(
    r"^\[ \d+s \] thds: \d+ tps: ([\d.]+) .* lat \(ms,99%\): ([\d.]+)", re.M
)
"""Line of a second: its transactions per second, and the 99th percentile in ms."""
_BUCKET_LINE = re.compile(r"^\s*([\d.]+) \|\**\s+(\d+)$", re.M)
"""Line of a bucket: its latency in ms, a bar of asterisks, and its number of transactions."""


def read(output: str) -> Load:
    """Read the output of sysbench 1.0; raise `ValueError` for another format."""
    buckets = [(float(ms) * _MS, int(count)) for ms, count in _BUCKET_LINE.findall(output)]
    if not buckets:
        raise ValueError("there is no histogram; did no transaction end?")
    intervals = tuple(
        LoadInterval(float(rate), float(latency) * _MS if float(latency) > 0 else None)
        for rate, latency in _INTERVAL_LINE.findall(output)
    )
    return Load(
        throughput_per_s=_number(output, r"transactions:\s+\d+\s+\(([\d.]+) per sec"),
        transactions=int(_number(output, r"transactions:\s+(\d+)")),
        errors=int(_number(output, r"ignored errors:\s+(\d+)")),
        latency_mean_s=_number(output, r"avg:\s+([\d.]+)") * _MS,
        latency_max_s=_number(output, r"max:\s+([\d.]+)") * _MS,
        percentiles={percent: _percentile(buckets, percent) for percent in PERCENTILES},
        intervals=intervals,
    )


def _percentile(buckets: list[tuple[float, int]], percent: int) -> float:
    cumulative_counts = list(accumulate(count for _, count in buckets))
    index = bisect_left(cumulative_counts, percent / 100 * cumulative_counts[-1])
    return buckets[index][0]


def _number(output: str, pattern: str) -> float:
    match = re.search(pattern, output)
    if match is None:
        raise ValueError(f"there is no line with {pattern}")
    return float(match[1])


def run(arguments: Sequence[str], program: str = "sysbench") -> None:
    """Run sysbench, and report its results."""
    options, password = split_password_file(arguments)
    with private_folder() as folder:
        if password is not None:
            text = f"mysql-password={password}\npgsql-password={password}\n"
            file = write_private(folder / "sysbench.conf", text)
            options = [f"--config-file={file}", *options]
        run_and_report((program, *OPTIONS, *options), read)


if __name__ == "__main__":
    run(sys.argv[1:])
