"""The launcher, through the real program: a trial that is stopped does not hold a campaign up."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec.structs
import pexpect
import pytest

from equipoise.measure.launcher import Launcher, Report, Request
from equipoise.measure.trials import failure_of

PATIENCE_S = 60
ASKS_THE_TERMINAL = """
import sys
from pathlib import Path
from equipoise.measure.launcher import Launcher, Request
with Launcher(Path(sys.argv[1])) as launcher:
    words = (sys.argv[2], "-c", "stty sane </dev/tty")
    report = launcher.run(Request(words, {"PATH": sys.argv[3]}, "/", timeout_s=20.0))
    print("said:", report.timed_out, report.exit, report.error_tail)
"""


def test_a_trial_has_no_terminal_and_fails_at_once_where_it_wants_one(
    launcher_program: Path, program: Callable[[str], str]
) -> None:
    arguments = [str(launcher_program), program("sh"), os.environ["PATH"]]
    terminal = pexpect.spawn(
        sys.executable,
        ["-c", ASKS_THE_TERMINAL, *arguments],
        encoding="utf-8",
        timeout=PATIENCE_S,
    )
    terminal.expect(pexpect.EOF)
    terminal.close()
    said = terminal.before
    assert said is not None
    words = said.split("said: ")[1].split(maxsplit=2)
    assert (words[0], words[1] != "0") == ("False", True), said
    assert "/dev/tty: No such device or address" in words[2]


@pytest.mark.parametrize("name", ["TTOU", "TTIN", "TSTP"])
def test_a_trial_that_is_stopped_as_by_a_terminal_ends_and_says_so(
    run: Callable[[str], Report], name: str
) -> None:
    report = run(f"kill -{name} $$; exit 0")
    number = signal.Signals[f"SIG{name}"]
    assert (report.stopped_by, report.timed_out, report.signal) == (number, False, signal.SIGKILL)
    # It did not run to its end: it has no time, also where failures are ignored.
    assert report.wall_ns is None
    assert "it was stopped" in report.unknown["wall_ns"]
    assert f"stopped by SIG{name}: it wants a terminal" in str(failure_of(report, 60.0))


def test_a_trial_that_stops_itself_is_stopped_when_its_time_is_up_and_that_is_said(
    launcher: Launcher, shell: Callable[[str], Request]
) -> None:
    request = msgspec.structs.replace(shell("kill -STOP $$; exit 0"), timeout_s=0.3)
    report = launcher.run(request)
    assert (report.timed_out, report.stopped_by) == (True, signal.SIGSTOP)
    assert failure_of(report, 0.3) == "timed out after 0.3 s, stopped by SIGSTOP"


def test_a_trial_that_is_stopped_and_continued_runs_to_its_end(
    run: Callable[[str], Report],
) -> None:
    report = run("(sleep 0.3; kill -CONT $$) & kill -STOP $$; wait; exit 5")
    assert (report.exit, report.stopped_by) == (5, None)
    assert report.wall_ns is not None
