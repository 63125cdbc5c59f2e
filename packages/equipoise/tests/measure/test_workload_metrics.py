"""Metrics that a workload reports: which are read, and which are errors."""

from __future__ import annotations

import json
import os
import socket
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from equipoise.measure.workload_metrics import (
    MAX_LINE_BYTES,
    MAX_LINES,
    MetricsFile,
    UntimedRun,
    WorkloadMetrics,
    read_metrics,
    run_for_metrics,
)
from equipoise.model.plan import Condition, Process
from equipoise.model.record import Sample
from packages.equipoise.tests.payloads import LONG, PAYLOADS


def written(folder: Path, text: str) -> Path:
    file = folder / "metrics.jsonl"
    file.write_text(text, encoding="utf-8")
    return file


def test_a_workload_that_reports_nothing_has_no_samples(tmp_path: Path) -> None:
    assert read_metrics(tmp_path / "absent.jsonl").samples == ()
    assert read_metrics(tmp_path / "absent.jsonl").problem is None


def test_trial_and_iteration_values_are_read_with_their_units(tmp_path: Path) -> None:
    metrics = read_metrics(
        written(
            tmp_path,
            '{"metric": "latency_s", "value": 0.5}\n\n'
            '{"metric": "rate", "value": 3, "iteration": 7, "unit": "1/s", "better": "higher"}\n'
            '{"metric": "ticks", "value": 4, "resolution": 0.5}\n',
        )
    )
    assert metrics.problem is None
    assert metrics.samples == (
        Sample("latency_s", 0.5),
        Sample("rate", 3.0, 7, "1/s", "higher"),
        Sample("ticks", 4.0, resolution=0.5),
    )


def test_a_line_that_cannot_be_read_is_named_and_the_others_are_kept(tmp_path: Path) -> None:
    metrics = read_metrics(
        written(tmp_path, '{"metric": "a", "value": 1}\nnonsense\n{"metric": "b", "va')
    )
    assert metrics.samples == (Sample("a", 1.0),)
    assert metrics.problem is not None
    assert metrics.problem.startswith("line 2 of its metrics cannot be read")


def test_a_value_that_is_not_a_number_is_named(tmp_path: Path) -> None:
    metrics = read_metrics(written(tmp_path, '{"metric": "a", "value": "fast"}\n'))
    assert metrics.samples == ()
    assert metrics.problem is not None


def test_a_value_that_is_not_finite_is_named(tmp_path: Path) -> None:
    metrics = read_metrics(written(tmp_path, '{"metric": "a", "value": 1e999}\n'))
    assert metrics.samples == ()
    assert metrics.problem is not None


def test_a_value_beyond_every_measurement_is_named(tmp_path: Path) -> None:
    metrics = read_metrics(written(tmp_path, '{"metric": "a", "value": 1e101}\n'))
    assert metrics.samples == ()
    assert "has the value 1e+101, beyond 1e+100" in str(metrics.problem)


@pytest.mark.parametrize("resolution", ["0", "-0.001", "1e999"])
def test_a_resolution_that_is_not_a_finite_number_above_0_is_named(
    resolution: str, tmp_path: Path
) -> None:
    line = f'{{"metric": "a", "value": 1, "resolution": {resolution}}}'
    metrics = read_metrics(written(tmp_path, line))
    assert metrics.samples == ()
    assert metrics.problem is not None
    assert "resolution" in metrics.problem


@pytest.mark.parametrize("metric", ["wall_s", "max_rss_bytes"])
def test_a_measured_metric_cannot_be_reported(metric: str, tmp_path: Path) -> None:
    lines = f'{{"metric": "{metric}", "value": 9}}\n{{"metric": "b", "value": 1}}\n'
    metrics = read_metrics(written(tmp_path, lines))
    assert metrics.samples == (Sample("b", 1.0),)
    assert (
        metrics.problem
        == f"line 1 of its metrics is named {metric}, which Equipoise measures itself"
    )


def test_any_other_name_is_kept_as_it_is(tmp_path: Path) -> None:
    names = [*(name for name in PAYLOADS if "\udcff" not in name), LONG, "a\0b", ""]
    lines = "".join(json.dumps({"metric": name, "value": 1, "unit": name}) + "\n" for name in names)
    metrics = read_metrics(written(tmp_path, lines))
    assert metrics.problem is None
    assert [(sample.metric, sample.unit) for sample in metrics.samples] == [
        (name, name) for name in names
    ]


GOOD = '{"metric": "a", "value": 1}\n'


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ('{"metric": "b", "value": 1, "iteration": 9223372036854775808}', "Expected `int`"),
        ('{"metric": "b", "value": 1, "iteration": 9007199254740993}', "Expected `int`"),
        ('{"metric": "b", "value": 1, "iteration": -1}', "Expected `int`"),
        ('{"metric": "b", "value": ' + "9" * 5000 + "}", "cannot be read"),
        ('{"metric": "b", "value": 1, "x": ' + "[" * 200_000 + "]" * 200_000 + "}", "nested"),
        ('{"metric": "' + "b" * MAX_LINE_BYTES + '", "value": 1}', "is longer than 1048576 bytes"),
    ],
    ids=["too large an iteration", "over 2**53", "negative", "digits", "deep", "long"],
)
def test_a_line_that_no_ledger_could_keep_costs_that_line(
    line: str, why: str, tmp_path: Path
) -> None:
    metrics = read_metrics(written(tmp_path, GOOD + line + "\n" + GOOD))
    assert metrics.samples == (Sample("a", 1.0), Sample("a", 1.0))
    assert metrics.problem is not None
    assert metrics.problem.startswith("line 2 of its metrics ")
    assert why in metrics.problem


def test_the_number_of_lines_that_are_left_out_is_given(tmp_path: Path) -> None:
    metrics = read_metrics(written(tmp_path, GOOD + "x\n" * 3))
    assert metrics.samples == (Sample("a", 1.0),)
    assert metrics.problem is not None
    assert metrics.problem.endswith("; 3 lines are left out")


def link_to_endless_zeros(file: Path) -> None:
    file.symlink_to("/dev/zero")


def link_to_a_file_of_the_user(file: Path) -> None:
    (file.parent / "other").write_text(GOOD)
    file.symlink_to(file.parent / "other")


def listening_socket(file: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(file))


def gigabyte_of_nothing(file: Path) -> None:
    with file.open("wb") as opened:
        opened.truncate(2**30)


def very_many_empty_lines(file: Path) -> None:
    file.write_bytes(b"\n" * (MAX_LINES + 1))


REPLACED = [
    (link_to_endless_zeros, "is a symbolic link, not a regular file"),
    (link_to_a_file_of_the_user, "is a symbolic link, not a regular file"),
    (os.mkfifo, "is a FIFO, not a regular file"),
    (Path.mkdir, "is a folder, not a regular file"),
    (listening_socket, "is a socket, not a regular file"),
    (gigabyte_of_nothing, "has 1073741824 bytes or more; at most 67108864 are read"),
    (very_many_empty_lines, "has more than 2000000 lines"),
]


@pytest.mark.parametrize(
    ("replace", "why"), REPLACED, ids=[function.__name__ for function, _ in REPLACED]
)
def test_a_file_that_is_not_regular_or_too_large_is_named_and_not_read(
    replace: Callable[[Path], object], why: str, tmp_path: Path
) -> None:
    replace(tmp_path / "metrics.jsonl")
    metrics = MetricsFile(tmp_path).read()
    assert metrics.samples == ()
    assert metrics.problem is None
    assert metrics.unreadable_because == f"its metrics file {why}"


@pytest.mark.parametrize(
    ("replace", "why"), REPLACED, ids=[function.__name__ for function, _ in REPLACED]
)
def test_the_next_trial_has_its_own_file(
    replace: Callable[[Path], object], why: str, tmp_path: Path
) -> None:
    folder = tmp_path / "private"
    folder.mkdir()
    file = MetricsFile(folder)
    replace(file.path)
    file.clear()
    assert not os.path.lexists(file.path)
    file.path.write_text(GOOD)
    assert file.read() == WorkloadMetrics((Sample("a", 1.0),))


def test_a_folder_that_was_replaced_is_neither_read_nor_cleared(tmp_path: Path) -> None:
    other = tmp_path / "of the user"
    other.mkdir()
    (other / "metrics.jsonl").write_text(GOOD)
    (tmp_path / "private").symlink_to(other)
    file = MetricsFile(tmp_path / "private")
    file.clear()
    assert (other / "metrics.jsonl").read_text() == GOOD
    assert file.read().samples == ()
    assert file.read().unreadable_because is not None


def test_a_folder_that_was_removed_is_made_again_for_the_next_trial(tmp_path: Path) -> None:
    file = MetricsFile(tmp_path / "private")
    assert file.read().unreadable_because == "the folder of its metrics file was removed"
    file.clear()
    assert file.read() == WorkloadMetrics(())


def test_a_folder_that_a_trial_made_read_only_can_be_written_by_the_next(tmp_path: Path) -> None:
    folder = tmp_path / "private"
    folder.mkdir()
    file = MetricsFile(folder)
    file.path.write_text(GOOD)
    folder.chmod(0o500)
    file.clear()
    assert not file.path.exists()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


LINES = (
    'echo \'{"metric": "a", "value": 1, "unit": "s"}\' >> $EQUIPOISE_METRICS; '
    'echo \'{"metric": "a", "value": 2, "iteration": 1}\' >> $EQUIPOISE_METRICS'
)


def reported(line: str, scratch: Path, timeout_s: float = 60.0) -> UntimedRun:
    condition = Condition(
        "it",
        ("/bin/sh", "-c", line),
        environment={"OWN": "set"},
        process=Process(working_folder=str(scratch)),
    )
    return run_for_metrics(condition, os.environ, scratch, timeout_s)


def test_values_of_the_whole_process_are_returned(tmp_path: Path) -> None:
    run = reported(LINES, tmp_path)
    assert run == UntimedRun((Sample("a", 1.0, None, "s", "lower"),), exit=0)


def test_the_reason_why_a_metric_has_no_value_is_returned(tmp_path: Path) -> None:
    line = 'echo \'{"metric": "a", "value": null, "unknown_because": "no data"}\''
    run = reported(f"{line} >> $EQUIPOISE_METRICS", tmp_path)
    assert run == UntimedRun(unknown={"a": "no data"}, exit=0)
    nothing = 'echo \'{"metric": "a", "value": null}\' >> $EQUIPOISE_METRICS'
    assert "neither a value nor unknown_because" in str(reported(nothing, tmp_path).failure)


def test_values_of_an_earlier_run_are_not_returned_again(tmp_path: Path) -> None:
    reported(LINES, tmp_path)
    assert reported("true", tmp_path).samples == ()


def test_it_runs_in_its_own_folder_and_environment(tmp_path: Path) -> None:
    reported('test "$OWN" = set && touch here', tmp_path)
    assert (tmp_path / "here").exists()


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("echo why >&2; exit 3", "exit status 3; stderr: why"),
        ("kill -SEGV $$", "signal 11 (SIGSEGV)"),
        ("echo no >> $EQUIPOISE_METRICS", "line 1 of its metrics cannot be read"),
    ],
)
def test_a_failure_is_reported(line: str, message: str, tmp_path: Path) -> None:
    assert str(reported(line, tmp_path).failure).startswith(message)


def test_a_timeout_ends_the_program_and_all_its_processes(tmp_path: Path) -> None:
    run = reported("sleep 60 & sleep 60", tmp_path, 0.2)
    assert run == UntimedRun(failure="it did not end within 0.2 s")
