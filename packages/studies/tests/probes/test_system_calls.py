"""One operation of a probe is the system calls that its words promise, as strace sees them.

`--check` does exactly one operation, so nothing here depends on a clock.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

PASSWORDS = r"AT_FDCWD, \"/etc/passwd\""
ONE_BYTE = r"^write\(\d+, \".*\", 1\) += 1"
A_CHUNK = r"^write\(\d+, .*, 65536\) += 65536"
ONE_SUBMISSION = r"^io_uring_enter\(\d+, 1, 1, "
CREATE = r"openat\(\d+, \"0\", O_WRONLY\|O_CREAT\|O_EXCL, 0600\) = \d"
CALLS = [
    # One to know the answer, one that is measured.
    ("null_call", r"^getppid\(\)", 2),
    ("read_byte", r"^read\(\d+, \"\\0\", 1\) += 1", 1),
    ("write_byte", r"^write\(\d+, \"\\0\", 1\) += 1", 1),
    ("stat", rf"^(new)?fstatat\w*\({PASSWORDS}", 2),
    # The other one sees that the file is there, and is closed when the process executes.
    ("open_close", rf"^openat\({PASSWORDS}, O_RDONLY\) = \d", 1),
    ("select_tcp", r"^p?select\w*\(\d+, \[", 1),
    ("poll_tcp", r"^p?poll\(.*, 100, (0|\{.*\}.*)\) += 0", 1),
    ("epoll_tcp", r"^epoll_p?wait\(.*, 16, 0.*\) += 0", 1),
    ("epoll_tcp", r"^epoll_ctl\(\d+, EPOLL_CTL_ADD, .*\) = 0", 100),
    ("signal_install", r"^rt_sigaction\(SIGUSR1, \{", 1),
    # The signals of which the cost is kept out are ignored.
    ("signal_handle", r"^rt_sigreturn\(", 1),
    ("protection_fault", r"^--- SIGSEGV .*SEGV_ACCERR", 1),
    ("fcntl_lock", r"^fcntl\(\d+, F_SETLK, .*\) += 0", 2),
    ("sleep_50us", r"^clock_nanosleep\(CLOCK_MONOTONIC, 0, \{tv_sec=0, tv_nsec=50000\}", 1),
    ("mmap", r"^mmap\(NULL, 65536, PROT_READ\|PROT_WRITE, MAP_PRIVATE\|MAP_ANONYMOUS, ", 1),
    ("mmap", r"^munmap\(0x\w+, 65536\) += 0", 1),
    ("thread", r"^clone3?\(.*CLONE_THREAD", 1),
    ("threads_many", r"^clone3?\(.*CLONE_THREAD", 64),
    # What is executed is seen to work once before it is measured.
    ("fork", r"^\+\+\+ exited with 242", 2),
    ("exec", r"^execve\(\"/proc/self/fd/\d+\", .*\) += 0", 3),
    ("exec", r"^\+\+\+ exited with 242", 2),
    ("sh", r"^execve\(\"/bin/sh\", \[\"(/bin/)?sh\", \"-c\", .*\) += 0", 2),
    ("file_create", CREATE, 1),
    ("file_delete", r"^unlinkat\(\d+, \"0\", 0\) += 0", 1),
    # The question and the answer.
    ("pipe", ONE_BYTE, 2),
    ("fifo", r"^mknod(at)?\(.*S_IFIFO\|0600", 2),
    ("fifo", ONE_BYTE, 2),
    ("unix", ONE_BYTE, 2),
    ("udp", ONE_BYTE, 2),
    ("tcp", ONE_BYTE, 2),
    ("tcp", r"^setsockopt\(\d+, SOL_TCP, TCP_NODELAY, \[1\]", 2),
    ("tcp_connect", r"^connect\(\d+, .*AF_INET, .*127\.0\.0\.1.*\) += 0", 1),
    ("unix_connect", r"^connect\(\d+, .*AF_UNIX, sun_path=@\"equipoise-probe-\d+\".*\) += 0", 1),
    ("pipe_bandwidth", A_CHUNK, 1),
    ("unix_bandwidth", A_CHUNK, 1),
    ("tcp_bandwidth", A_CHUNK, 1),
    ("file_reread", r"^pread64\(\d+, .*, 65536, \d+\) += 65536", 128),
    ("mmap_reread", r"^mmap\(NULL, 8388608, PROT_READ, MAP_SHARED, \d+, 0\)", 1),
    ("io_uring_nop", ONE_SUBMISSION, 1),
    ("io_uring_read_byte", ONE_SUBMISSION, 1),
]


@pytest.mark.live("strace")
@pytest.mark.parametrize(("probe", "call", "times"), CALLS)
def test_one_operation_makes_the_described_system_calls(
    program: Path, tmp_path: Path, probe: str, call: str, times: int
) -> None:
    log = tmp_path / "calls"
    # One file for each process: no line is torn by another.
    command = ["strace", "-ff", "-q", "-o", str(log), str(program), probe, "--check"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    lines = [
        line
        for file in tmp_path.iterdir()
        for line in file.read_text("utf-8", "replace").splitlines()
    ]
    assert len([line for line in lines if re.search(call, line)]) == times
