"""Reports of recorded output of sysbench and pgbench."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from equipoise_studies.load_generators import pgbench, sysbench
from equipoise_studies.load_generators.load_generator import LoadInterval, run_and_report

SYSBENCH = """\
Threads started!

[ 1s ] thds: 4 tps: 2802.00 qps: 44871.90 (r/w/o: 39263/0/5607) lat (ms,99%): 3.49 err/s: 0.00
[ 1s ] queue length: 0, concurrency: 0
[ 2s ] thds: 4 tps: 0.00 qps: 0.00 (r/w/o: 0/0/0) lat (ms,99%): 0.00 err/s: 0.00 reconn/s: 0.00
Latency histogram (values are in milliseconds)
       value  ------------- distribution ------------- count
       1.000 |**************************************** 50
       2.000 |***********************                  44
       4.000 |**                                       5
     612.211 |                                         1

SQL statistics:
    queries performed:
        total:                           117264
    transactions:                        100    (49.98 per sec.)
    ignored errors:                      3      (1.50 per sec.)

Latency (ms):
         min:                                    0.50
         avg:                                    1.64
         max:                                  607.87
         99th percentile:                        3.75
"""
PGBENCH = """\
pgbench (15.18 (Debian 15.18-0+deb12u1))
number of transactions actually processed: 6
number of failed transactions: 1 (0.143%)
tps = 2.998800 (without initial connection time)
"""
LOG = """\
0 1 1000 0 100 900000 87
1 1 2000 0 101 100000 602
0 2 3000 0 101 200000
1 2 4000 0 101 900000
0 3 failed 0 101 950000
0 4 500000 0 103 100000
1 3 6000 0 103 200000
"""
"""Client, number, microseconds, script, second, microsecond, lag; nothing ended in second 102."""


def test_sysbench_is_read() -> None:
    load = sysbench.read(SYSBENCH)
    assert (load.throughput_per_s, load.transactions, load.errors) == (49.98, 100, 3)
    assert load.percentiles == pytest.approx({50: 0.001, 95: 0.004, 99: 0.004})
    assert (load.latency_mean_s, load.latency_max_s) == pytest.approx((0.00164, 0.60787))
    first, second = load.intervals
    assert (first.throughput_per_s, first.latency_p99_s) == pytest.approx((2802.0, 0.00349))
    assert second == LoadInterval(0.0, None)


def test_pgbench_and_its_logs_are_read(tmp_path: Path) -> None:
    logs = [tmp_path / "log.1", tmp_path / "log.1.1"]
    for number, log in enumerate(logs):
        log.write_text("".join(f"{line}\n" for line in LOG.splitlines()[number::2]))
    load = pgbench.read(PGBENCH, logs)
    assert (load.throughput_per_s, load.transactions, load.errors) == (2.9988, 6, 1)
    assert load.percentiles == pytest.approx({50: 0.003, 95: 0.5, 99: 0.5})
    assert load.latency_max_s == pytest.approx(0.5)
    # The first and the last second are cut; in the second between nothing ended.
    first, second = load.intervals
    assert (first.throughput_per_s, first.latency_p99_s) == pytest.approx((3, 0.004))
    assert second == LoadInterval(0, None)


@pytest.mark.parametrize("output", ["", "Threads started!\n"])
def test_run_without_output_is_no_result(output: str) -> None:
    with pytest.raises(ValueError, match="no histogram"):
        sysbench.read(output)
    with pytest.raises(ValueError, match="no transaction"):
        pgbench.read(output, [])


def test_results_are_reported_with_the_cost_of_the_client(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    metrics_file = tmp_path / "metrics.jsonl"
    monkeypatch.setenv("EQUIPOISE_METRICS", str(metrics_file))
    run_and_report([sys.executable, "-c", f"print({SYSBENCH!r})"], sysbench.read)
    lines = [json.loads(line) for line in metrics_file.read_text().splitlines()]
    whole = {line["metric"]: line for line in lines if "iteration" not in line}
    assert whole["throughput_per_s"]["value"] == 49.98
    assert whole["throughput_per_s"]["better"] == "higher"
    assert whole["latency_p99_s"] == {
        "metric": "latency_p99_s",
        "value": pytest.approx(0.004),
        "unit": "s",
        "better": "lower",
    }
    assert whole["client_user_s"]["value"] > 0
    by_second = [line["value"] for line in lines if line.get("iteration")]
    assert by_second == pytest.approx([2802.0, 0.00349, 0.0])


def test_failed_generator_is_reported_with_its_last_lines() -> None:
    with pytest.raises(SystemExit, match="ended with status 7\nFATAL: lost connection"):
        run_and_report(
            [sys.executable, "-c", "print('FATAL: lost connection'); raise SystemExit(7)"],
            sysbench.read,
        )


def test_a_missing_generator_or_unknown_output_is_reported() -> None:
    with pytest.raises(SystemExit, match="cannot start /no/such"):
        run_and_report(["/no/such"], sysbench.read)
    with pytest.raises(SystemExit, match="cannot be read: there is no histogram"):
        run_and_report([sys.executable, "-c", "print('hello')"], sysbench.read)
