"""Probes in which processes talk: where each one runs, and that no number is one side's alone."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import time
from functools import partial
from pathlib import Path

import psutil
import pytest

from .conftest import Run, reason
from .running import running, until

TALKING = (
    "pipe", "fifo", "unix", "udp", "tcp",
    "pipe_bandwidth", "unix_bandwidth", "tcp_bandwidth",
)  # fmt: skip
RING = ("context_switch", "--count", "16", "--size", "16384")
SHORT = ("--batches", "2", "--batch-ms", "1")
ESTABLISHED = "01"
LOOPBACK = "0100007F"
"""127.0.0.1 as /proc/net/tcp writes it on little-endian machines."""


@pytest.fixture
def two_cpus() -> None:
    """Skips the test where this process may use one CPU only."""
    cpus = os.sched_getaffinity(0)
    if len(cpus) < 2:
        pytest.skip(f"this process may use CPU {min(cpus)} only, and two are needed")


def facts(done: subprocess.CompletedProcess[str]) -> dict[str, str]:
    """Return the values in the output of a run besides its metrics."""
    assert (done.returncode, done.stderr) == (0, "")
    found = [line for line in map(json.loads, done.stdout.splitlines()) if "metric" not in line]
    return dict(pair for line in found for pair in line.items())


@pytest.mark.parametrize("probe", TALKING)
def test_one_cpu_has_no_row_across_cpus(run: Run, probe: str) -> None:
    cpu = max(os.sched_getaffinity(0))
    only = partial(os.sched_setaffinity, 0, {cpu})
    same = run(probe, "--placement", "same_cpu", *SHORT, preexec_fn=only)
    assert facts(same) == {"cpu": str(cpu), "helper_cpu": str(cpu)}
    across = run(probe, "--placement", "across_cpus", *SHORT, preexec_fn=only)
    assert "two CPUs" in reason(across)


@pytest.mark.usefixtures("two_cpus")
@pytest.mark.parametrize("probe", TALKING)
def test_across_cpus_each_process_is_pinned_to_its_own_cpu(
    run: Run, program: Path, probe: str
) -> None:
    said = facts(run(probe, "--placement", "across_cpus", *SHORT))
    assert said["cpu"] != said["helper_cpu"]
    with running(program, probe, "--placement", "across_cpus") as talking:
        (helper,) = talking.children(1)
        # It begins on the CPU of the process that started it.
        assert until(lambda: helper.cpu_affinity() == [int(said["helper_cpu"])])
        assert psutil.Process(talking.process.pid).cpu_affinity() == [int(said["cpu"])]


def test_ring_has_the_requested_number_of_processes_on_one_cpu(run: Run, program: Path) -> None:
    cpu = max(os.sched_getaffinity(0))
    said = facts(run(*RING, *SHORT, preexec_fn=partial(os.sched_setaffinity, 0, {cpu})))
    assert (said["cpu"], said["helper_cpu"].split()) == (str(cpu), 15 * [str(cpu)])
    with running(program, *RING) as ring:
        held = {
            cpu
            for process in (*ring.children(15), psutil.Process(ring.process.pid))
            for cpu in process.cpu_affinity()
        }
    assert len(held) == 1


@pytest.mark.parametrize("probe", [(probe,) for probe in TALKING] + [RING])
def test_probe_whose_other_process_is_killed_fails_without_a_number(
    program: Path, probe: tuple[str, ...]
) -> None:
    with running(program, *probe) as broken:
        broken.children(15 if probe == RING else 1)[0].kill()
        out, err = broken.process.communicate(timeout=600)
        assert (broken.process.returncode, out) == (1, "")
        assert "equipoise-probe: " in err
        assert until(broken.has_ended)


@pytest.mark.parametrize("probe", ["tcp", "tcp_bandwidth"])
def test_killed_probe_was_connected_only_to_itself_and_leaves_no_connection(
    program: Path, probe: str
) -> None:
    with running(program, probe) as killed:
        killed.children(1)
        used = connections(psutil.Process(killed.process.pid))
        killed.process.kill()
        assert until(killed.has_ended)
    assert len(used) == 1
    assert all(local[:8] == remote[:8] == LOOPBACK for local, remote in used)
    ends = {end for pair in used for end in pair}
    assert until(lambda: not [row for row in tcp_rows() if ends & {row[1], row[2]}])


def test_many_connections_leave_no_socket(program: Path) -> None:
    with running(program, "tcp_connect") as connecting:
        (port,) = until(lambda: listening(psutil.Process(connecting.process.pid)))
        time.sleep(0.1)
        connecting.process.kill()
        connecting.process.wait(600)
    assert port.startswith(LOOPBACK)
    assert until(lambda: not [row for row in tcp_rows() if port in (row[1], row[2])])


def tcp_rows() -> list[list[str]]:
    """Return the kernel's table of TCP connections over IPv4, also closed ones in TIME_WAIT."""
    return [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]


def connections(process: psutil.Process) -> set[tuple[str, str]]:
    """Both ends of each connection that the process holds."""
    held = sockets(process)
    return {(row[1], row[2]) for row in tcp_rows() if row[3] == ESTABLISHED and row[9] in held}


def listening(process: psutil.Process) -> list[str]:
    """The addresses at which the process waits for connections."""
    held = sockets(process)
    return [row[1] for row in tcp_rows() if row[3] == "0A" and row[9] in held]


def sockets(process: psutil.Process) -> set[str]:
    """The numbers by which the kernel knows the process's sockets."""
    targets = []
    for file in Path(f"/proc/{process.pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # closed since
            targets.append(os.readlink(file))
    return {target[8:-1] for target in targets if target.startswith("socket:[")}
