"""A condition is run once, untimed, to see what it reports."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from equipoise.measure.workload_metrics import metrics_reported
from equipoise.model.errors import ConditionFailed
from equipoise.model.plan import Condition, Process
from equipoise.model.record import Sample

LINES = (
    'echo \'{"metric": "a", "value": 1, "unit": "s"}\' >> $EQUIPOISE_METRICS; '
    'echo \'{"metric": "a", "value": 2, "iteration": 1}\' >> $EQUIPOISE_METRICS'
)


def reported(line: str, scratch: Path, timeout_s: float = 60.0) -> tuple[Sample, ...]:
    condition = Condition(
        "it",
        ("/bin/sh", "-c", line),
        environment={"OWN": "set"},
        process=Process(working_folder=str(scratch)),
    )
    return metrics_reported(condition, os.environ, scratch, timeout_s)


def test_what_is_of_the_whole_process_is_given(tmp_path: Path) -> None:
    assert reported(LINES, tmp_path) == (Sample("a", 1.0, None, "s", "lower"),)


def test_nothing_of_an_earlier_run_is_given_again(tmp_path: Path) -> None:
    reported(LINES, tmp_path)
    assert reported("true", tmp_path) == ()


def test_it_runs_in_its_own_folder_and_environment(tmp_path: Path) -> None:
    reported('test "$OWN" = set && touch here', tmp_path)
    assert (tmp_path / "here").exists()


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("echo why >&2; exit 3", "it failed: exit status 3; stderr: why"),
        ("kill -SEGV $$", r"it failed: signal 11 \(SIGSEGV\)"),
        ("echo no >> $EQUIPOISE_METRICS", "it: line 1 of its metrics cannot be read"),
    ],
)
def test_what_fails_is_told(line: str, told: str, tmp_path: Path) -> None:
    with pytest.raises(ConditionFailed, match=told):
        reported(line, tmp_path)


def test_what_takes_too_long_is_ended_with_all_that_it_started(tmp_path: Path) -> None:
    with pytest.raises(ConditionFailed, match=r"it takes longer than 0.2 s") as caught:
        reported("sleep 60 & sleep 60", tmp_path, 0.2)
    assert caught.value.hint == "raise --timeout"
