"""Where a permission or a program is missing, a probe says so and gives no number."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from packages.equipoise.tests.measure.forbidding import IO_URING_SETUP, forbid

from .conftest import UNAVAILABLE, Row, Run, reason

SHORT = ("--batches", "2", "--batch-ms", "1")
NOBODY = 65534

NUMBERS = {
    "x86_64": {"getppid": 110, "memfd_create": 319, "kill": 62, "socket": 41},
    "aarch64": {"getppid": 173, "memfd_create": 279, "kill": 624, "socket": 198},
}


@pytest.mark.parametrize(
    ("probe", "call", "said"),
    [
        ("null_call", "getppid", "getppid: Operation not permitted"),
        ("fcntl_lock", "memfd_create", "memfd_create: Operation not permitted"),
        ("fork", "memfd_create", "memfd_create: Operation not permitted"),
        ("exec", "memfd_create", "memfd_create: Operation not permitted"),
        ("sh", "memfd_create", "memfd_create: Operation not permitted"),
        ("signal_handle", "kill", "kill: Operation not permitted"),
        ("select_tcp", "socket", "Operation not permitted"),
        ("epoll_tcp", "socket", "Operation not permitted"),
        ("tcp", "socket", "Operation not permitted"),
        ("udp", "socket", "Operation not permitted"),
        ("unix_connect", "socket", "Operation not permitted"),
    ],
)
def test_call_forbidden_by_seccomp_is_the_reason(
    run: Run, probe: str, call: str, said: str
) -> None:
    numbers = NUMBERS.get(platform.machine())
    if numbers is None:
        pytest.skip(f"the numbers of the calls of {platform.machine()} are not written down here")
    assert said in reason(run(probe, *SHORT, preexec_fn=partial(forbid, numbers[call])))


@pytest.mark.parametrize("probe", ["io_uring_nop", "io_uring_read_byte"])
def test_forbidden_io_uring_is_the_reason(run: Run, probe: str) -> None:
    forbidden = run(probe, *SHORT, preexec_fn=partial(forbid, IO_URING_SETUP))
    assert "io_uring_setup: Operation not permitted" in reason(forbidden)


def test_across_cpus_needs_two_cpus(run: Run) -> None:
    cpu = min(os.sched_getaffinity(0))
    done = run(
        "futex",
        *("--placement", "across_cpus", *SHORT),
        preexec_fn=partial(os.sched_setaffinity, 0, {cpu}),
    )
    assert "it needs two CPUs" in reason(done)


def test_folder_without_write_access_is_named(run: Run) -> None:
    for probe in ("file_create", "file_delete", "fifo", "file_reread", "mmap_reread"):
        assert "/proc" in reason(run(probe, "--folder", "/proc", *SHORT))


HIDE_THE_SHELL = 'mount --bind /dev/null "$(readlink -f /bin/sh)" && exec "$0" sh --check'


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can hide /bin/sh from a process")
def test_probe_of_the_shell_needs_a_shell(program: Path, run: Run) -> None:
    alone = shutil.which("unshare")
    assert alone is not None, "unshare is on every Linux"
    words = ("--mount", "sh", "-c", HIDE_THE_SHELL, str(program))
    if subprocess.run([alone, "--mount", "true"], check=False).returncode != 0:
        pytest.skip("this container may not make a mount name space")
    assert "/bin/sh cannot be executed" in reason(run(*words, program=alone))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can take the network from a process")
def test_missing_loopback_interface_affects_only_network_rows(program: Path, run: Run) -> None:
    alone = shutil.which("unshare")
    assert alone is not None, "unshare is on every Linux"
    if subprocess.run([alone, "--net", "true"], check=False).returncode != 0:
        pytest.skip("this container may not make a network name space")
    for probe in ("udp", "tcp", "tcp_connect", "tcp_bandwidth", "select_tcp"):
        missing = run("--net", str(program), probe, "--check", program=alone)
        assert "Network is unreachable" in reason(missing), probe
    for probe in ("unix", "unix_connect", "pipe"):
        there = run("--net", str(program), probe, "--check", program=alone)
        assert (there.returncode, there.stderr) == (0, ""), probe


@pytest.fixture
def for_everybody(program: Path) -> Iterator[Path]:
    """The program where every user can execute it."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        yield Path(shutil.copy(program, folder))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else, and is not needed")
def test_each_row_is_measured_without_root_or_says_why_not(
    run: Run, rows: list[Row], for_everybody: Path
) -> None:
    for row in rows:
        done = run(
            *(*row.words, "--check"),
            program=for_everybody,
            user=NOBODY,
            group=NOBODY,
            extra_groups=[],
            cwd="/",
        )
        if done.returncode == UNAVAILABLE:
            assert reason(done)
        else:
            assert (done.returncode, done.stderr) == (0, ""), row.name
