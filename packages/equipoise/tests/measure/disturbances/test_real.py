"""Real disturbances on this host: a spinning process, a quota, a tiny file system."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec.structs
import pytest

from equipoise.measure.disturbances import examine, observe_host
from equipoise.measure.disturbances.contention import (
    busy_processes,
    cpu_quota,
    full_temporary_folder,
)
from equipoise.measure.disturbances.host_state import watch
from equipoise.measure.environment import Host, Unknown
from equipoise.measure.environment.cgroups import groups
from packages.equipoise.tests.measure.planted import quiet_state
from packages.equipoise.tests.programs import finished


@pytest.fixture
def spinning() -> Iterator[subprocess.Popen[bytes]]:
    child = subprocess.Popen(
        [sys.executable, "-c", "print(flush=True)\nwhile True: pass"], stdout=-1
    )
    assert child.stdout is not None
    child.stdout.readline()
    yield child
    child.kill()
    child.communicate()


def test_a_process_that_really_spins_is_named(
    spinning: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    activity = watch(Host())
    # Other busy processes may run meanwhile; only the planted one counts.
    last = {spinning.pid: activity.last.processes[spinning.pid]}
    activity = msgspec.structs.replace(
        activity, last=msgspec.structs.replace(activity.last, processes=last)
    )
    state = msgspec.structs.replace(quiet_state(tmp_path), activity=activity)
    (mine,) = [
        disturbance for disturbance in busy_processes(state) if disturbance.code == "busy_process"
    ]
    assert mine.severity == "disturbs"
    assert f"process {spinning.pid} (" in mine.summary
    assert f"kill -STOP {spinning.pid}" in mine.hint


def test_a_process_that_sleeps_is_not_named(tmp_path: Path) -> None:
    child = subprocess.Popen(["sleep", "1000"])
    try:
        state = msgspec.structs.replace(quiet_state(tmp_path), activity=watch(Host(), 0.1))
        assert not any(
            f"process {child.pid} " in disturbance.summary for disturbance in busy_processes(state)
        )
    finally:
        child.kill()
        child.wait()


@pytest.fixture
def group() -> Iterator[Path]:
    """A control group with a quota of half a CPU."""
    try:
        found = groups(Host(), "cpu")
    except Unknown as reason:
        pytest.skip(f"misses control groups: {reason}")
    folder = Path(found.folders[0]) / f"equipoise-test-{os.getpid()}"
    try:
        folder.mkdir()
    except OSError as error:
        pytest.skip(f"may not make a control group: {error}")
    try:
        if found.version == 1:
            (folder / "cpu.cfs_quota_us").write_text("50000")
        else:
            (folder / "cpu.max").write_text("50000 100000")
        yield folder
    except OSError as error:
        pytest.skip(f"may not set a quota: {error}")
    finally:
        _remove(folder)


def _remove(folder: Path) -> None:
    # A group remains busy for a moment after the end of its last process.
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError):
            folder.rmdir()
            return
        time.sleep(0.01)
    folder.rmdir()


PROGRAM_IN_A_GROUP = """
import sys
open(sys.argv[1] + "/cgroup.procs", "w").write("0")
from equipoise.measure.disturbances import observe_host
from equipoise.measure.disturbances.contention import cpu_quota
for item in cpu_quota(observe_host()):
    print(item.severity, item.summary, item.hint, sep="\\n")
"""


def test_a_real_quota_is_found_from_inside(group: Path) -> None:
    done = finished([sys.executable, "-c", PROGRAM_IN_A_GROUP, str(group)], check=True)
    severity, words, hint = done.stdout.splitlines()
    assert severity == "disturbs"
    assert "a CPU quota lets Equipoise use 0.5 CPUs" in words
    assert str(group) in hint


def test_outside_the_group_this_quota_is_not_found(group: Path) -> None:
    assert not any(str(group) in disturbance.hint for disturbance in cpu_quota(observe_host()))


def test_a_real_tiny_file_system_is_found(tmp_path: Path) -> None:
    mounted = finished(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(tmp_path)])
    if mounted.returncode != 0:
        pytest.skip(f"may not mount a file system: {mounted.stderr.strip()}")
    try:
        state = msgspec.structs.replace(observe_host(), scratch=tmp_path)
        (disturbance,) = full_temporary_folder(state)
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)
    assert disturbance.code == "small_temporary_folder"
    assert str(tmp_path) in disturbance.summary


def test_this_host_can_be_examined() -> None:
    examination = examine(observe_host())
    assert "busy_processes" in examination.checked
    assert all(disturbance.summary and disturbance.hint for disturbance in examination.disturbances)
