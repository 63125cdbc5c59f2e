"""Counters with the real launcher: their values, and the reasons for missing ones."""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from equipoise.measure.launcher import (
    COUNTERS,
    HARDWARE_COUNTERS,
    SOFTWARE_COUNTERS,
    Containment,
    Launcher,
    Report,
    Request,
)
from equipoise.measure.trials import accounting_of
from equipoise.model.errors import UnusableInput
from packages.equipoise.tests.measure.conftest import Shell
from packages.equipoise.tests.programs import finished

PARANOID = Path("/proc/sys/kernel/perf_event_paranoid")
NOBODY = 65534
UNCOUNTED_S = 0.01
"""Beginnings and ends of processes: the kernel's work before the exec and after the exit."""
BUSY = "sum(range(3000000))"
"""Work of several times what is not counted of a start and an end on a busy machine."""

TOUCH_MEMORY = "import mmap; m = mmap.mmap(-1, 1 << 25); m.madvise(15); m[:] = b'x' * len(m)"
"""32 MB, by small pages (``MADV_NOHUGEPAGE``), so that there are many faults."""
SPIN = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done"


@pytest.fixture
def may_count_the_kernel() -> None:
    if not PARANOID.exists():
        pytest.skip("the kernel has no performance counters (CONFIG_PERF_EVENTS)")
    level = int(PARANOID.read_text())
    if level > 1 and os.geteuid() != 0:
        pytest.skip(f"perf_event_paranoid is {level}: sudo sysctl kernel.perf_event_paranoid=1")


@pytest.fixture
def counting(launcher_program: Path, containment: Containment) -> Iterator[Launcher]:
    with Launcher(launcher_program, containment=containment, counters=SOFTWARE_COUNTERS) as running:
        yield running


@pytest.fixture
def as_a_stranger(launcher_program: Path) -> Iterator[Callable[[tuple[str, ...]], Launcher]]:
    """Start a launcher without the rights of root."""
    if os.geteuid() != 0:
        yield lambda counters: Launcher(launcher_program, counters=counters)
        return
    folder = Path(tempfile.mkdtemp(prefix="equipoise-test-"))
    folder.chmod(0o755)
    program = shutil.copy(launcher_program, folder / "launcher")
    wrapper = folder / "wrapper"
    wrapper.write_text(
        f"#!{sys.executable}\nimport os, sys\n"
        f"os.setgroups([]); os.setgid({NOBODY}); os.setuid({NOBODY})\n"
        f"os.execv({str(program)!r}, [{str(program)!r}, *sys.argv[1:]])\n"
    )
    wrapper.chmod(0o755)
    yield lambda counters: Launcher(wrapper, counters=counters)
    shutil.rmtree(folder)


def known(report: Report, counter: str) -> float:
    value = report.counters[counter]
    assert value is not None, report.unknown[counter]
    return value


def faults(report: Report) -> int:
    assert report.minor_faults is not None
    assert report.major_faults is not None
    return report.minor_faults + report.major_faults


def switches(report: Report) -> int:
    assert report.voluntary_switches is not None
    assert report.involuntary_switches is not None
    return report.voluntary_switches + report.involuntary_switches


def stolen_s() -> float:
    """Return the seconds that the host took from all processors since the boot (proc(5))."""
    ticks = Path("/proc/stat").read_text().split("\n", 1)[0].split()[8]
    return int(ticks) / os.sysconf("SC_CLK_TCK")


def processor_s(report: Report) -> float:
    assert report.user_s is not None
    assert report.sys_s is not None
    return report.user_s + report.sys_s


def python(source: str) -> Request:
    return Request((sys.executable, "-S", "-c", source), {}, "/")


@pytest.mark.usefixtures("may_count_the_kernel")
def test_page_faults_are_those_that_the_kernel_accounts_for(counting: Launcher) -> None:
    report = counting.run(python(TOUCH_MEMORY))
    assert known(report, "page_faults") > 8000
    assert known(report, "page_faults") == pytest.approx(faults(report), rel=0.02)


@pytest.mark.usefixtures("may_count_the_kernel")
def test_the_task_clock_is_the_time_on_a_processor(counting: Launcher, shell: Shell) -> None:
    stolen_before = stolen_s()
    report = counting.run(shell(SPIN))
    stolen = stolen_s() - stolen_before
    took = processor_s(report)
    assert took > 2 * UNCOUNTED_S
    margin = max(0.05 * took, UNCOUNTED_S)
    # The clock of the task goes on while the host of a virtual machine uses its processor.
    assert took - margin <= known(report, "task_clock") <= took + stolen + margin


@pytest.mark.usefixtures("may_count_the_kernel")
def test_context_switches_are_those_that_the_kernel_accounts_for(counting: Launcher) -> None:
    # Not every sleep causes a switch: its timer may expire before the processor is released.
    report = counting.run(python(f"import time\n{BUSY}\nfor i in range(1000): time.sleep(0.0001)"))
    assert switches(report) > 900
    assert known(report, "context_switches") == pytest.approx(switches(report), abs=10)
    # A process that does not sleep has fewer switches, all caused by other processes.
    assert known(counting.run(python(BUSY)), "context_switches") < 900


@pytest.mark.usefixtures("may_count_the_kernel")
def test_every_move_to_another_processor_is_counted(counting: Launcher) -> None:
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2:
        pytest.skip("this machine has one processor: nothing can move")
    hop = f"import os\nfor i in range(40): os.sched_setaffinity(0, [{cpus[:2]}[i % 2]])"
    assert known(counting.run(python(hop)), "cpu_migrations") >= 39


@pytest.mark.usefixtures("may_count_the_kernel")
def test_consecutive_trials_are_counted_completely(counting: Launcher, shell: Shell) -> None:
    """A kernel once counted events of the launcher for one trial, and none for the next ones."""
    for _ in range(10):
        for request in (python(TOUCH_MEMORY), python("import time; time.sleep(0.01)")):
            report = counting.run(request)
            assert known(report, "page_faults") == pytest.approx(faults(report), rel=0.02)
            counting.run(shell(":"))


@pytest.mark.usefixtures("may_count_the_kernel")
def test_descendants_are_counted_wherever_they_are_and_the_launcher_never(
    counting: Launcher, shell: Shell
) -> None:
    touch = f'{sys.executable} -S -c "{TOUCH_MEMORY}"'
    single = known(counting.run(python(TOUCH_MEMORY)), "page_faults")
    for script in (
        f"{touch}; {touch}",
        f"{touch} & {touch} & wait",
        f"( ({touch}) ); {touch} | cat",
    ):
        report = counting.run(shell(script))
        assert known(report, "page_faults") == pytest.approx(2 * single, rel=0.1)
    little = counting.run(shell("exit 0"))
    assert known(little, "page_faults") <= faults(little)


@pytest.mark.usefixtures("may_count_the_kernel")
def test_a_descendant_that_nobody_waits_for_is_counted_until_the_end(
    counting: Launcher, shell: Shell
) -> None:
    daemon = f"import time; {TOUCH_MEMORY}; open('done', 'w').close(); time.sleep(99)"
    script = f'setsid {sys.executable} -S -c "{daemon}" & while [ ! -e done ]; do :; done'
    report = counting.run(shell(script))
    assert report.left_behind >= 1
    assert known(report, "page_faults") > 8000
    assert faults(report) < 8000


@pytest.mark.usefixtures("may_count_the_kernel")
def test_events_before_a_timeout_are_counted(counting: Launcher) -> None:
    request = Request(
        (sys.executable, "-S", "-c", f"{TOUCH_MEMORY}\nwhile True: pass"), {}, "/", timeout_s=2.0
    )
    report = counting.run(request)
    assert report.timed_out
    assert known(report, "page_faults") > 8000


def test_a_trial_that_could_not_start_counts_nothing_and_says_why(
    counting: Launcher, tmp_path: Path
) -> None:
    report = counting.run(Request((str(tmp_path / "absent"),), {}, "/"))
    assert report.counters == dict.fromkeys(SOFTWARE_COUNTERS)
    assert {report.unknown[name] for name in SOFTWARE_COUNTERS} == {"it could not be started"}


def test_hardware_counters_are_there_or_their_absence_has_its_reason(
    launcher_program: Path,
) -> None:
    with Launcher(launcher_program, counters=HARDWARE_COUNTERS) as launcher:
        report = launcher.run(python("for i in range(10**6): pass"))
    assert set(report.counters) == set(HARDWARE_COUNTERS)
    for name, value in report.counters.items():
        if value is None:
            assert re.search(
                "real hardware|forbidden|CONFIG_PERF_EVENTS|turn", report.unknown[name]
            )
        else:
            assert value > 0
    if (instructions := report.counters["instructions"]) is not None:
        assert instructions > 1e6


def test_a_forbidden_counter_is_unknown_with_a_hint(
    as_a_stranger: Callable[[tuple[str, ...]], Launcher],
) -> None:
    level = int(PARANOID.read_text()) if PARANOID.exists() else 0
    if level < 2:
        pytest.skip(f"perf_event_paranoid is {level} here: nothing is forbidden")
    with as_a_stranger(SOFTWARE_COUNTERS) as launcher:
        report = launcher.run(Request(("/bin/sh", "-c", SPIN), {}, "/"))
    hint = "`sudo sysctl kernel.perf_event_paranoid=1` permits it"
    for name in ("context_switches", "cpu_migrations"):
        assert report.counters[name] is None
        assert f"perf_event_paranoid is {level}" in report.unknown[name]
        assert hint in report.unknown[name]
    if level == 2:
        assert known(report, "page_faults") > 0
        assert "outside the kernel only" in report.unknown["page_faults"]
        assert known(report, "task_clock") == pytest.approx(
            processor_s(report), rel=0.05, abs=UNCOUNTED_S
        )
        assert "task_clock" not in report.unknown


@pytest.mark.usefixtures("may_count_the_kernel")
def test_a_program_that_the_kernel_stops_counting_is_unknown_and_not_nearly_zero(
    counting: Launcher,
) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can plant a program with another user's rights")
    folder = Path(tempfile.mkdtemp(prefix="equipoise-test-"))
    try:
        folder.chmod(0o755)
        program = folder / "sh"
        shutil.copy(Path("/bin/sh").resolve(), program)
        os.chown(program, NOBODY, NOBODY)
        program.chmod(0o4755)
        report = counting.run(Request((str(program), "-c", SPIN), {}, "/"))
    finally:
        shutil.rmtree(folder)
    assert report.exit == 0
    assert report.counters == dict.fromkeys(SOFTWARE_COUNTERS)
    assert "set-user-ID" in report.unknown["task_clock"]


def test_nothing_is_counted_unless_requested(launcher: Launcher, shell: Shell) -> None:
    report = launcher.run(shell("exit 0"))
    assert report.counters == {}
    links = [os.readlink(file) for file in Path(f"/proc/{launcher.pid}/fd").iterdir()]
    assert links
    assert "anon_inode:[perf_event]" not in links


def test_an_unknown_counter_is_refused_with_those_that_there_are(launcher_program: Path) -> None:
    with pytest.raises(UnusableInput, match="no counter is called 'luck'") as refusal:
        Launcher(launcher_program, counters=("task_clock", "luck"))
    assert "page_faults" in str(refusal.value.hint)


def test_the_launcher_knows_the_same_counters(launcher_program: Path) -> None:
    refused = finished([launcher_program, "--counters", "luck"])
    assert refused.returncode == 2
    there_are = refused.stderr.strip().partition("there are ")[2]
    assert sorted(there_are.split(", ")) == sorted(COUNTERS)


@pytest.mark.usefixtures("may_count_the_kernel")
def test_counters_and_their_reasons_become_accounting(launcher_program: Path) -> None:
    with Launcher(launcher_program, counters=COUNTERS) as launcher:
        report = launcher.run(python("pass"))
    accounting = accounting_of(report)
    assert accounting.counters == report.counters
    assert known(report, "task_clock") > 0
    for name, value in accounting.counters.items():
        assert value is not None or accounting.unknown[name]


def test_the_wait_for_a_processor_grows_with_a_neighbour_on_it(
    launcher: Launcher, shell: Shell
) -> None:
    """Two busy processes on one processor wait for each other."""
    cpu = min(os.sched_getaffinity(0))
    both = shell(f"taskset -c -p {cpu} $$ > /dev/null; ({SPIN}) & {SPIN}; wait")
    report = launcher.run(both)
    if report.run_delay_s is None:
        pytest.skip(f"no run delay here: {report.unknown['run_delay_s']}")
    assert report.exit == 0
    assert report.wall_ns is not None
    assert processor_s(report) / 8 < report.run_delay_s < report.wall_ns * 1e-9
