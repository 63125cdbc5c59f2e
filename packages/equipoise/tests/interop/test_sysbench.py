"""Every figure in the output of the installed sysbench is read."""

from __future__ import annotations

from pathlib import Path

import pytest

from packages.equipoise.tests.imports import reading_of, written
from packages.equipoise.tests.tools import printed_by

OLTP = """sysbench 1.0.20 (using system LuaJIT 2.1.0-beta3)

[ 1s ] thds: 2 tps: 9.98 qps: 219.5 (r/w/o: 159.6/39.9/20.0) lat (ms,95%): 125.52 err/s: 0.50 reconn/s: 0.00
[ 2s ] thds: 2 tps: 10.00 qps: 200.0 (r/w/o: 140.0/40.0/20.0) lat (ms,95%): 130.13 err/s: 0.00 reconn/s: 1.00
SQL statistics:
    queries performed:
        read:                            2800
        write:                           800
        other:                           400
        total:                           4000
    transactions:                        200    (9.99 per sec.)
    queries:                             4000   (199.80 per sec.)
    ignored errors:                      1      (0.05 per sec.)
    reconnects:                          2      (0.10 per sec.)

General statistics:
    total time:                          20.0191s
    total number of events:              200
"""  # noqa: E501


@pytest.mark.live("sysbench")
def test_every_figure_that_sysbench_prints(tmp_path: Path) -> None:
    text = printed_by(
        *("sysbench", "cpu", "--time=2", "--threads=2", "--report-interval=1", "--percentile=99"),
        "run",
        folder=tmp_path,
    )
    form, reading = reading_of(written(tmp_path, "two threads.txt", text))
    assert form == "sysbench"
    assert reading.tool == text.split(" (", 1)[0]
    (process,) = reading.processes
    assert process.benchmark == "two threads"
    after = {
        name.strip(): [float(word.strip("s")) for word in figures.strip().split("/")]
        for name, colon, figures in (line.partition(":") for line in text.splitlines())
        if colon and figures.strip().strip("s").replace(".", "").replace("/", "").isdigit()
    }
    (total,), (events,) = after["total time"], after["total number of events"]
    assert process.values == pytest.approx(
        {
            "event_s": total / events,
            "wall_s": total,
            "events": events,
            "latency_least_s": after["min"][0] / 1000,
            "latency_mean_s": after["avg"][0] / 1000,
            "latency_greatest_s": after["max"][0] / 1000,
            "latency_p99_s": after["99th percentile"][0] / 1000,
            "latency_sum_s": after["sum"][0] / 1000,
            "thread_events_mean": after["events (avg/stddev)"][0],
            "thread_events_deviation": after["events (avg/stddev)"][1],
            "thread_time_mean_s": after["execution time (avg/stddev)"][0],
            "thread_time_deviation_s": after["execution time (avg/stddev)"][1],
        }
    )
    reports = [line.split() for line in text.splitlines() if line.startswith("[ ")]
    assert reports
    assert list(process.iterations["events_per_s"]) == [
        float(words[words.index("eps:") + 1]) for words in reports
    ]
    assert list(process.iterations["latency_p99_s"]) == pytest.approx(
        [float(words[-1]) / 1000 for words in reports]
    )


def test_queries_and_errors_of_a_database_are_kept(tmp_path: Path) -> None:
    _, reading = reading_of(written(tmp_path, "oltp.txt", OLTP))
    (process,) = reading.processes
    assert process.values == {
        "event_s": 20.0191 / 200,
        "wall_s": 20.0191,
        "events": 200,
        "queries_read": 2800,
        "queries_write": 800,
        "queries_other": 400,
        "queries": 4000,
        "transactions": 200,
        "ignored_errors": 1,
        "reconnects": 2,
    }
    assert process.iterations == {
        "events_per_s": [9.98, 10.0],
        "queries_per_s": [219.5, 200.0],
        "latency_p95_s": [pytest.approx(0.12552), pytest.approx(0.13013)],
        "errors_per_s": [0.5, 0.0],
        "reconnects_per_s": [0.0, 1.0],
    }
