"""`equipoise-probe` on its command line: the list, the metrics, and every wrong word."""

from __future__ import annotations

import json
import statistics
from pathlib import Path
from typing import Any

import pytest

from .conftest import UNAVAILABLE, Row, Run, reason

CLASSES = {
    "process", "thread", "system_calls", "signals", "ipc", "context_switch", "memory", "files",
    "time",
}  # fmt: skip
UNITS = {"latency_s": ("s", "lower"), "bandwidth_bytes_per_s": ("B/s", "higher")}
OF_THE_DESIGN = {
    "null_call", "null_call_int80", "read_byte", "write_byte", "stat", "open_close", "select_tcp",
    "poll_tcp", "epoll_tcp", "signal_install", "signal_handle", "fork", "fork_100mb", "exec", "sh",
    "thread", "threads_many", "page_fault", "mmap_4k", "mmap_64k", "mmap_1m", "mmap_16m",
    "protection_fault", "file_create_0k", "file_create_10k", "file_delete_0k", "file_delete_10k",
    "fcntl_lock", "futex_same_cpu", "futex_across_cpus", "sleep_50us",
    "io_uring_nop", "io_uring_read_byte", "pipe_same_cpu", "pipe_across_cpus", "fifo_same_cpu",
    "fifo_across_cpus", "unix_same_cpu", "unix_across_cpus", "udp_same_cpu", "udp_across_cpus",
    "tcp_same_cpu", "tcp_across_cpus", "unix_connect", "tcp_connect", "pipe_bandwidth_same_cpu",
    "pipe_bandwidth_across_cpus", "unix_bandwidth_same_cpu", "unix_bandwidth_across_cpus",
    "tcp_bandwidth_same_cpu", "tcp_bandwidth_across_cpus", "memory_latency_4k",
    "memory_latency_16k", "memory_latency_64k", "memory_latency_256k", "memory_latency_1m",
    "memory_latency_4m", "memory_latency_16m", "memory_latency_64m", "memory_read",
    "memory_write", "memory_copy", "file_reread", "mmap_reread", "context_switch_2_processes_0k",
    "context_switch_2_processes_16k", "context_switch_2_processes_64k",
    "context_switch_8_processes_0k", "context_switch_8_processes_16k",
    "context_switch_8_processes_64k", "context_switch_16_processes_0k",
    "context_switch_16_processes_16k", "context_switch_16_processes_64k",
}  # fmt: skip
BATCHES = 3
SHORT = ("--batches", str(BATCHES), "--batch-ms", "1")


def test_list_has_all_data_that_a_program_needs(
    listed: list[dict[str, Any]], rows: list[Row]
) -> None:
    for probe in listed:
        assert probe["class"] in CLASSES
        assert probe["metric"] in UNITS
        assert probe["summary"]
        assert set(probe["placements"]) <= {"none", "same_cpu", "across_cpus"}
    names = [row.name for row in rows]
    assert len(names) == len(set(names))
    assert set(names) >= OF_THE_DESIGN


def test_each_row_reports_its_batches_and_median_or_a_reason(
    run: Run, rows: list[Row], tmp_path: Path
) -> None:
    for row in rows:
        metrics_file = tmp_path / row.name
        done = run(*row.words, *SHORT, env={"EQUIPOISE_METRICS": str(metrics_file)})
        if done.returncode == UNAVAILABLE:
            assert reason(done)
            assert not metrics_file.exists()
            continue
        assert (done.returncode, done.stderr) == (0, ""), row.name
        unit, better = UNITS[row.metric]
        lines = [json.loads(line) for line in metrics_file.read_text().splitlines()]
        own = [line for line in lines if line["metric"] == row.metric]
        assert {(line["unit"], line["better"]) for line in own} == {(unit, better)}
        whole, *batches = own
        assert "iteration" not in whole
        assert [line["iteration"] for line in batches] == [1, 2, 3]
        assert whole["value"] == statistics.median(line["value"] for line in batches)
        assert all(line["value"] > 0 for line in batches), row.name
        # A batch lasts many ticks of the clock.
        assert all(0 < line["resolution"] < 0.01 * line["value"] for line in own), row.name


def test_without_a_metrics_path_metrics_go_to_standard_output(run: Run) -> None:
    lines = [json.loads(line) for line in run("null_call", *SHORT).stdout.splitlines()]
    assert [line["metric"] for line in lines] == ["latency_s"] * (1 + BATCHES)


def test_a_check_does_the_work_and_reports_nothing(run: Run) -> None:
    done = run("null_call", "--check")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("words", [("--help",), ("mmap", "--help"), ("futex", "-h")])
def test_help_shows_the_usage(run: Run, words: tuple[str, ...]) -> None:
    done = run(*words)
    assert done.returncode == 0
    assert done.stdout.startswith("usage: equipoise-probe")


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ((), "null_call"),
        (("no_call",), "no_call"),
        (("--nonsense",), "--nonsense"),
        (("null_call", "--batches", "0"), "--batches"),
        (("null_call", "--batch-ms", "1.5"), "1.5"),
        (("null_call", "--size", "4096"), "it takes no --size"),
        (("null_call", "--count", "2"), "it takes no --count"),
        (("null_call", "--placement", "same_cpu"), "one of none"),
        (("futex", "--placement", "none"), "same_cpu, across_cpus"),
        (("mmap", "--size", "0"), "--size"),
        (("select_tcp", "--count", "100000"), "--count"),
        (("null_call", "extra"), "extra"),
    ],
)
def test_wrong_argument_gives_one_line_and_status_2(
    run: Run, words: tuple[str, ...], named: str
) -> None:
    done = run(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert named in done.stderr


def test_unusable_metrics_path_exits_with_status_1(run: Run, tmp_path: Path) -> None:
    metrics_file = str(tmp_path / "nowhere" / "metrics")
    done = run("null_call", *SHORT, env={"EQUIPOISE_METRICS": metrics_file})
    assert done.returncode == 1
    assert metrics_file in done.stderr
