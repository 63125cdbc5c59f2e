"""The real launcher program."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec.structs
import pexpect
import pytest

from equipoise.measure.launcher import Containment, Launcher, Request
from equipoise.measure.trials import accounting_of, failure_of
from equipoise.model.errors import EquipoiseError
from equipoise.model.plan import Output, Process
from packages.equipoise.tests.measure.conftest import Run, Shell, program


def test_a_trial_that_succeeds_is_accounted_for(run: Run) -> None:
    report = run("exit 0")
    assert (report.exit, report.signal, report.timed_out) == (0, None, False)
    assert report.could_not_start is None
    for field in ("wall_ns", "user_s", "sys_s", "max_rss_bytes", "minor_faults", "cpu"):
        assert getattr(report, field) is not None or report.unknown[field]
    assert report.wall_ns is not None
    assert report.wall_ns > 0
    assert report.cpu is None or report.cpu in os.sched_getaffinity(0)


def test_every_value_that_is_missing_has_its_reason(run: Run) -> None:
    report = run("kill -9 $$")
    may_be_absent = {"exit", "signal", "stopped_by", "could_not_start", "start_errno"}
    for field in report.__struct_fields__:
        if getattr(report, field) is None and field not in may_be_absent:
            assert report.unknown[field]


def test_containment_is_as_requested_or_has_a_reason(
    launcher: Launcher, containment: Containment, shell: Shell
) -> None:
    report = launcher.run(shell("exit 0"))
    if containment == "cgroup" and "cgroup" not in report.unknown:
        assert report.containment == "cgroup"
    else:
        assert report.containment == "process_group"


def test_an_exit_status_is_reported_with_the_last_words(run: Run) -> None:
    report = run("echo first >&2; echo last >&2; exit 3")
    assert report.exit == 3
    assert report.error_tail == "first\nlast\n"
    assert report.error_bytes == len("first\nlast\n")


def test_death_by_a_signal_is_reported(run: Run) -> None:
    report = run("kill -SEGV $$")
    assert (report.exit, report.signal) == (None, signal.SIGSEGV)
    assert report.out_of_memory is False


def test_a_launcher_serves_one_trial_after_the_other(run: Run) -> None:
    run("echo noise >&2; sleep 300 & exit 1")
    quiet = run("exit 0")
    assert (quiet.exit, quiet.error_tail, quiet.left_behind) == (0, "", 0)


def test_a_program_that_does_not_exist_is_reported(launcher: Launcher, tmp_path: Path) -> None:
    missing = tmp_path / "no-such-program"
    report = launcher.run(Request((str(missing),), {}, str(tmp_path)))
    assert report.could_not_start == f"{missing}: No such file or directory"
    assert report.start_errno == errno.ENOENT
    assert report.exit is None
    assert report.wall_ns is None
    assert accounting_of(report).unknown["wall_s"] == "it could not be started"


def test_a_file_that_cannot_be_executed_is_reported(launcher: Launcher, tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("no program")
    report = launcher.run(Request((str(text),), {}, str(tmp_path)))
    assert report.could_not_start == f"{text}: Permission denied"
    text.chmod(0o755)
    report = launcher.run(Request((str(text),), {}, str(tmp_path)))
    assert report.start_errno == errno.ENOEXEC


def test_a_missing_folder_or_input_is_reported(launcher: Launcher, tmp_path: Path) -> None:
    true = (program("true"),)
    report = launcher.run(Request(true, {}, "/no/such/folder"))
    assert report.could_not_start == "working folder /no/such/folder: No such file or directory"
    report = launcher.run(Request(true, {}, str(tmp_path), input="absent"))
    assert report.could_not_start == f"input {tmp_path}/absent: No such file or directory"


def test_an_impossible_request_is_refused_and_the_next_one_served(
    launcher: Launcher, tmp_path: Path
) -> None:
    with pytest.raises(EquipoiseError, match="nothing to run"):
        launcher.run(Request((), {}, str(tmp_path)))
    with pytest.raises(EquipoiseError, match="NUL"):
        launcher.run(Request((program("true"), "a\0b"), {}, str(tmp_path)))
    assert launcher.run(Request((program("true"),), {}, str(tmp_path))).exit == 0


def test_a_flood_of_output_is_counted_to_the_byte_and_not_kept(
    launcher: Launcher, shell: Shell
) -> None:
    sizes: list[int] = []

    def observe() -> None:
        size = 0
        for file in Path(f"/proc/{launcher.pid}/fd").iterdir():
            with contextlib.suppress(FileNotFoundError):  # closed meanwhile
                if "(deleted)" in os.readlink(file):
                    size += file.stat().st_blocks * 512
        sizes.append(size)

    # The observer runs once per second.
    flood = shell("head -c 200000000 /dev/zero; head -c 100000000 /dev/zero >&2; sleep 1.2")
    report = launcher.run(msgspec.structs.replace(flood, output=Output("count")), observe)
    assert report.exit == 0
    assert report.output_bytes == 200_000_000
    assert report.error_bytes == 100_000_000
    assert len(report.error_tail) == flood.error_cap_bytes
    assert sizes
    assert sizes[-1] < 5_000_000


def test_output_that_never_ends_does_not_outlive_the_timeout(
    launcher: Launcher, shell: Shell
) -> None:
    flood = msgspec.structs.replace(shell("yes >&2 & yes"), output=Output("count"), timeout_s=1.5)
    report = launcher.run(flood)
    assert report.timed_out
    assert report.output_bytes is not None
    assert report.output_bytes > 0
    assert report.error_tail.endswith("y\n")


def test_output_goes_into_a_file_emptied_first(
    launcher: Launcher, tmp_path: Path, shell: Shell
) -> None:
    (tmp_path / "out").write_text("much longer than what comes")
    launcher.run(msgspec.structs.replace(shell("printf new"), output=Output("file", "out")))
    assert (tmp_path / "out").read_text() == "new"


def test_inherited_output_reaches_the_caller(
    containment: Containment, tmp_path: Path, shell: Shell, launcher_program: Path
) -> None:
    with (
        (tmp_path / "caller").open("wb") as caller,
        Launcher(
            launcher_program, containment=containment, inherit_stdout=caller.fileno()
        ) as launcher,
    ):
        launcher.run(msgspec.structs.replace(shell("echo to the caller"), output=Output("inherit")))
    assert (tmp_path / "caller").read_text() == "to the caller\n"


def test_input_comes_from_a_file_or_is_empty(launcher: Launcher, tmp_path: Path) -> None:
    (tmp_path / "in").write_text("given")
    copy = (program("cat"),)
    out = Output("file", "out")
    launcher.run(Request(copy, {}, str(tmp_path), input="in", output=out))
    assert (tmp_path / "out").read_text() == "given"
    launcher.run(Request(copy, {}, str(tmp_path), output=out))
    assert (tmp_path / "out").read_text() == ""


def test_arguments_environment_and_paths_may_hold_any_bytes(
    launcher: Launcher, tmp_path: Path
) -> None:
    folder = os.path.join(tmp_path, os.fsdecode(b"f\xff\xe9"))
    os.mkdir(folder)
    argv = (program("cat"), "/proc/self/cmdline", os.fsdecode(b"\xff\x01\xc3"), "\u00e9 \u20ac")
    environment = {os.fsdecode(b"K\xfe"): os.fsdecode(b"\x80 \xff\n"), "EMPTY": ""}
    out = Output("file", os.fsdecode(b"\xfdout"))
    launcher.run(Request(argv, environment, folder, output=out))
    written = Path(folder, os.fsdecode(b"\xfdout")).read_bytes()
    assert written == b"".join(os.fsencode(argument) + b"\0" for argument in argv)
    show = (program("cat"), "/proc/self/environ")
    launcher.run(Request(show, environment, folder, output=out))
    written = Path(folder, os.fsdecode(b"\xfdout")).read_bytes()
    assert written == b"K\xfe=\x80 \xff\n\0EMPTY=\0"


def test_an_error_output_that_is_not_text_stays_readable(run: Run) -> None:
    assert run(r"printf 'a\377\303\251' >&2").error_tail == "a\ufffd\u00e9"


def test_the_first_argument_need_not_be_the_program(launcher: Launcher, tmp_path: Path) -> None:
    out = Output("file", "out")
    request = Request(
        ("another-name", "/proc/self/cmdline"),
        {},
        str(tmp_path),
        program=program("cat"),
        output=out,
    )
    launcher.run(request)
    assert (tmp_path / "out").read_bytes() == b"another-name\0/proc/self/cmdline\0"


def test_a_trial_finds_itself_as_if_started_by_hand(launcher: Launcher, tmp_path: Path) -> None:
    out = Output("file", "out")
    launcher.run(Request((program("cat"), "/proc/self/status"), {}, str(tmp_path), output=out))
    status = dict(
        line.split(":\t", 1) for line in (tmp_path / "out").read_text().splitlines() if "\t" in line
    )
    own = Path("/proc/self/status").read_text()
    assert f"Cpus_allowed:\t{status['Cpus_allowed']}" in own
    # The C library reserves signals 32 and 33 and hides them, so their inherited state stays.
    assert int(status["SigIgn"], 16) & ~(0b11 << 31) == 0
    assert int(status["SigBlk"], 16) == 0
    launcher.run(Request((program("ls"), "/proc/self/fd"), {}, str(tmp_path), output=out))
    assert (tmp_path / "out").read_text().split() == ["0", "1", "2", "3"]
    launcher.run(Request((program("pwd"), "-P"), {}, str(tmp_path), output=out))
    assert (tmp_path / "out").read_text().strip() == str(tmp_path.resolve())


def test_peak_memory_is_the_trials_and_not_the_callers(launcher: Launcher, tmp_path: Path) -> None:
    ballast = b"x" * 100_000_000
    small = launcher.run(Request((program("true"),), {}, str(tmp_path)))
    assert small.max_rss_bytes is not None
    assert small.max_rss_bytes < 2_500_000
    large = launcher.run(
        Request((sys.executable, "-c", "x = b'x' * 64_000_000"), {}, str(tmp_path))
    )
    assert large.max_rss_bytes is not None
    assert 64_000_000 < large.max_rss_bytes < len(ballast)
    assert small.floor_rss_bytes is not None
    assert small.floor_rss_bytes < 2_500_000


def test_when_memory_runs_out_the_trial_is_killed_first(run: Run) -> None:
    assert run("[ $(cat /proc/self/oom_score_adj) = 1000 ]").exit == 0


def test_the_observer_is_called_about_once_a_second(launcher: Launcher, shell: Shell) -> None:
    calls: list[None] = []
    launcher.run(shell("sleep 1.5"), lambda: calls.append(None))
    assert calls


def test_a_launcher_that_cannot_be_started_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(EquipoiseError, match="cannot be started"):
        Launcher(tmp_path / "absent")


def test_measured_values_become_accounting(run: Run) -> None:
    report = run("exit 0")
    sizes = accounting_of(report)
    assert report.wall_ns is not None
    assert sizes.wall_s == report.wall_ns / 1e9
    assert sizes.max_rss_bytes == report.max_rss_bytes
    assert sizes.output_bytes is None
    assert "output_bytes" in sizes.unknown
    assert "cgroup" not in sizes.unknown


@pytest.fixture
def output_of(launcher: Launcher, shell: Shell, tmp_path: Path) -> Callable[[str, Process], str]:
    """Output of a shell script under the given settings."""

    def run(script: str, process: Process) -> str:
        output = Output("file", str(tmp_path / "said"))
        request = msgspec.structs.replace(shell(script), process=process, output=output)
        report = launcher.run(request)
        assert report.exit == 0, (report.could_not_start, report.error_tail)
        return (tmp_path / "said").read_text()

    return run


STACK = "grep -F '[stack]' /proc/self/maps"
FLAGS = "grep THP_enabled /proc/self/status"


def test_addresses_that_are_not_random_are_equal(output_of: Callable[..., str]) -> None:
    fixed = {output_of(STACK, Process(random_addresses=False)) for _ in range(3)}
    assert len(fixed) == 1
    assert len({output_of(STACK, Process(random_addresses=True)) for _ in range(5)}) > 1
    assert len({output_of(STACK, Process()) for _ in range(5)}) > 1


def test_it_runs_on_the_requested_cpus(output_of: Callable[..., str]) -> None:
    allowed = sorted(os.sched_getaffinity(0))
    last = allowed[-1]
    output = output_of("grep Cpus_allowed_list /proc/self/status", Process(cpus=(last,)))
    assert output.split() == ["Cpus_allowed_list:", str(last)]
    assert output_of("nproc", Process()).strip() == str(len(allowed))


def test_a_cpu_that_is_not_there_stops_the_trial(launcher: Launcher, shell: Shell) -> None:
    request = msgspec.structs.replace(shell("exit 0"), process=Process(cpus=(1000,)))
    report = launcher.run(request)
    assert report.could_not_start == "CPUs [1000]: Invalid argument"
    assert launcher.run(shell("exit 0")).exit == 0


def test_a_cpu_number_beyond_the_kernels_set_stops_the_trial_and_not_the_launcher(
    launcher: Launcher, shell: Shell
) -> None:
    request = msgspec.structs.replace(shell("exit 0"), process=Process(cpus=(0, 1024)))
    report = launcher.run(request)
    assert report.could_not_start == (
        "CPUs [0, 1024]: CPU 1024 is out of range: Equipoise supports CPUs 0 to 1023"
    )
    assert launcher.run(shell("exit 0")).exit == 0


def test_huge_pages_are_forbidden_to_one_trial_and_not_to_the_next(
    output_of: Callable[..., str],
) -> None:
    before = output_of(FLAGS, Process())
    assert output_of(FLAGS, Process(huge_pages=False)).split() == ["THP_enabled:", "0"]
    assert output_of(FLAGS, Process(huge_pages=True)).split() == ["THP_enabled:", "1"]
    assert output_of(FLAGS, Process()) == before


PATIENCE_S = 600
ASKS_THE_TERMINAL = """
import sys
from pathlib import Path
from equipoise.measure.launcher import Launcher, Request
with Launcher(Path(sys.argv[1])) as launcher:
    words = (sys.argv[2], "-c", "stty sane </dev/tty")
    report = launcher.run(Request(words, {"PATH": sys.argv[3]}, "/", timeout_s=300.0))
    print("said:", report.timed_out, report.exit, report.error_tail)
"""


def test_a_trial_has_no_terminal_and_fails_at_once_if_it_needs_one(launcher_program: Path) -> None:
    arguments = [str(launcher_program), program("sh"), os.environ["PATH"]]
    terminal = pexpect.spawn(
        sys.executable,
        ["-c", ASKS_THE_TERMINAL, *arguments],
        encoding="utf-8",
        timeout=PATIENCE_S,
    )
    terminal.expect(pexpect.EOF)
    terminal.close()
    screen = terminal.before
    assert screen is not None
    answers = screen.split("said: ")[1].split(maxsplit=2)
    assert (answers[0], answers[1] != "0") == ("False", True), screen
    assert "/dev/tty: No such device or address" in answers[2]


@pytest.mark.parametrize("name", ["TTOU", "TTIN", "TSTP"])
def test_a_trial_that_is_stopped_as_by_a_terminal_ends_and_says_so(run: Run, name: str) -> None:
    report = run(f"kill -{name} $$; exit 0")
    number = signal.Signals[f"SIG{name}"]
    assert (report.stopped_by, report.timed_out, report.signal) == (number, False, signal.SIGKILL)
    # It did not end by itself, so it has no time, even if failures are ignored.
    assert report.wall_ns is None
    assert "it was stopped" in report.unknown["wall_ns"]
    assert f"stopped by SIG{name}: it needs a terminal" in str(failure_of(report, 60.0)[1])


def test_a_trial_that_stops_itself_is_stopped_when_its_time_is_up_and_that_is_reported(
    launcher: Launcher, shell: Shell
) -> None:
    request = msgspec.structs.replace(shell("kill -STOP $$; exit 0"), timeout_s=2.0)
    report = launcher.run(request)
    assert (report.timed_out, report.stopped_by) == (True, signal.SIGSTOP)
    assert failure_of(report, 2.0) == ("timed out", "timed out after 2 s, stopped by SIGSTOP")


def test_a_trial_that_is_stopped_and_continued_runs_to_its_end(run: Run) -> None:
    is_stopped = "grep -q '^State:.T' /proc/$$/status"
    goes_on = f"until {is_stopped}; do sleep 0.02; done; kill -CONT $$"
    report = run(f"({goes_on}) & kill -STOP $$; wait; exit 5")
    assert (report.exit, report.stopped_by) == (5, None)
    assert report.wall_ns is not None
