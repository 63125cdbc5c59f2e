"""Run sysbench and report what it did through ``EQUIPOISE_METRICS``.

::

    python -m equipoise.helpers.sysbench --threads=4 --time=10 … oltp_read_only run

Percentiles come from its histogram, whose steps are 1.8 % wide. ``--password-file=FILE`` hands
it a password through ``--config-file``.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence

from equipoise.helpers.load_generator import PERCENTILES, Interval, Load, reported
from equipoise.helpers.passwords import private_folder, split_password_file, write_private

OPTIONS = ("--histogram=on", "--report-interval=1", "--percentile=99")
_MS = 1e-3
_INTERVAL = re.compile(r"^\[ \d+s \] thds: \d+ tps: ([\d.]+) .* lat \(ms,99%\): ([\d.]+)", re.M)
_BUCKET = re.compile(r"^\s*([\d.]+) \|\**\s+(\d+)$", re.M)


def words_for(arguments: Sequence[str], program: str = "sysbench") -> tuple[str, ...]:
    """Return the command line whose report can be read."""
    return (program, *OPTIONS, *arguments)


def read(said: str) -> Load:
    """Read what sysbench 1.0 wrote.

    Raises
    ------
    ValueError
        It says nothing that is known.
    """
    buckets = [(float(at) * _MS, int(count)) for at, count in _BUCKET.findall(said)]
    if not buckets:
        raise ValueError("there is no histogram; did no transaction end?")
    intervals = tuple(
        Interval(float(rate), float(latency) * _MS if float(latency) > 0 else None)
        for rate, latency in _INTERVAL.findall(said)
    )
    return Load(
        throughput_per_s=_number(said, r"transactions:\s+\d+\s+\(([\d.]+) per sec"),
        transactions=int(_number(said, r"transactions:\s+(\d+)")),
        errors=int(_number(said, r"ignored errors:\s+(\d+)")),
        latency_mean_s=_number(said, r"avg:\s+([\d.]+)") * _MS,
        latency_max_s=_number(said, r"max:\s+([\d.]+)") * _MS,
        percentiles={percent: _percentile(buckets, percent) for percent in PERCENTILES},
        intervals=intervals,
    )


def _percentile(buckets: list[tuple[float, int]], percent: int) -> float:
    rank = percent / 100 * sum(count for _, count in buckets)
    seen = 0
    for seconds, count in buckets:
        seen += count
        if seen >= rank:
            return seconds
    return buckets[-1][0]


def _number(said: str, pattern: str) -> float:
    found = re.search(pattern, said)
    if found is None:
        raise ValueError(f"nothing in it is of the form {pattern}")
    return float(found[1])


def run(arguments: Sequence[str], program: str = "sysbench") -> None:
    """Run sysbench, and report what it did."""
    own, password = split_password_file(arguments)
    if password is None:
        reported(words_for(own, program), read)
        return
    with private_folder() as folder:
        text = f"mysql-password={password}\npgsql-password={password}\n"
        options = write_private(folder / "sysbench.conf", text)
        reported(words_for([f"--config-file={options}", *own], program), read)


if __name__ == "__main__":
    run(sys.argv[1:])
