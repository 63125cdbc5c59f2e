"""System calls of real programs with known counts, by both methods."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from equipoise.why.evidence.observer import (
    Method,
    Process,
    SystemCalls,
    read_calls,
    wrap_calls,
)
from packages.equipoise.tests.why.evidence.programs import (
    ENVIRONMENT,
    NOBODY,
    by_name,
    compiled,
    opened_to_all,
    run,
    run_as_nobody,
)

HEAD = """
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
"""


def tracepoints_work() -> bool:
    """Whether this host lets us have them."""
    return os.geteuid() == 0 and Path("/sys/kernel/tracing").is_dir()


METHODS: tuple[object, ...] = (
    pytest.param(
        "tracepoints",
        marks=pytest.mark.skipif(
            not tracepoints_work(), reason="tracepoints are for root, on a kernel with tracefs"
        ),
    ),
    "ptrace",
)
by_either_method = pytest.mark.parametrize("method", METHODS)


def observe(folder: Path, method: Method, *command: str) -> SystemCalls:
    """Return the system calls of a command."""
    process = Process(command, ENVIRONMENT)
    done = run(wrap_calls(process, folder, method))
    assert (done.returncode, done.stderr) == (0, "")
    return read_calls(folder)


@by_either_method
def test_calls_are_counted_with_their_sizes_and_their_errors(
    tmp_path: Path, method: Method
) -> None:
    source = f"""{HEAD}
    int main(void) {{
        for (int at = 0; at < 400; at++) {{
            char *block = mmap(0, 40960, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            madvise(block, 40960, MADV_DONTNEED);
            munmap(block, 40960);
        }}
        for (int at = 0; at < 30; at++) access("/no/such/file", F_OK);
        return 5;
    }}"""
    evidence = observe(tmp_path, method, str(compiled(tmp_path, source)))
    calls = by_name(evidence)
    assert evidence.end.exit == 5
    assert (calls["mmap"].sizes[0].value, calls["mmap"].sizes[0].count) == (40960, 400)
    assert (calls["munmap"].sizes[0].value, calls["munmap"].sizes[0].count) == (40960, 400)
    assert calls["madvise"].count == 400
    assert calls["madvise"].modes[0].value == 4  # MADV_DONTNEED
    access = calls["access"] if "access" in calls else calls["faccessat"]
    assert access.errors["ENOENT"] >= 30
    assert calls["munmap"].seconds > 0
    assert (evidence.processes, evidence.programs) == (1, 1)


@by_either_method
def test_files_have_their_reads_writes_and_syncs(tmp_path: Path, method: Method) -> None:
    written = tmp_path / "written"
    source = f"""{HEAD}
    int main(void) {{
        int file = open("{written}", O_CREAT | O_RDWR, 0600), ends[2];
        for (int at = 0; at < 1000; at++) if (write(file, "0123456789", 10) != 10) return 1;
        for (int at = 0; at < 3; at++) fsync(file);
        char bytes[100];
        if (pread(file, bytes, 100, 0) != 100 || pipe(ends)) return 2;
        if (write(ends[1], "x", 1) != 1) return 3;
        usleep(300000);
        return 0;
    }}"""
    evidence = observe(tmp_path, method, str(compiled(tmp_path, source)))
    files = {file.name: file for file in evidence.files}
    own = files[str(written)]
    assert (own.writes, own.bytes_written, own.syncs) == (1000, 10_000, 3)
    assert (own.reads, own.bytes_read) == (1, 100)
    assert files["pipe"].bytes_written == 1
    assert by_name(evidence)["fsync"].count == 3


@by_either_method
def test_threads_forks_and_execs_are_followed(tmp_path: Path, method: Method) -> None:
    source = f"""{HEAD}
    static void *work(void *unused) {{
        for (int at = 0; at < 50; at++) mkdir("/proc/no", 0700);
        return unused;
    }}
    int main(int count, char **words) {{
        if (count > 1) {{ work(0); return 0; }}
        pthread_t thread;
        pthread_create(&thread, 0, work, 0);
        pthread_join(thread, 0);
        for (int child = 0; child < 3; child++)
            if (fork() == 0) {{ execl(words[0], words[0], "again", (char *)0); _exit(9); }}
        while (wait(0) > 0);
        return 0;
    }}"""
    evidence = observe(tmp_path, method, str(compiled(tmp_path, source, "-pthread")))
    calls = by_name(evidence)
    made = calls["mkdir"] if "mkdir" in calls else calls["mkdirat"]
    assert made.count == 4 * 50
    assert (evidence.processes, evidence.threads, evidence.programs) == (4, 5, 4)


@by_either_method
def test_waits_on_a_lock_name_the_lock(tmp_path: Path, method: Method) -> None:
    source = f"""{HEAD}
    pthread_mutex_t contended_gate = PTHREAD_MUTEX_INITIALIZER;
    static void *work(void *unused) {{
        for (int at = 0; at < 20; at++) {{
            pthread_mutex_lock(&contended_gate);
            usleep(2000);
            pthread_mutex_unlock(&contended_gate);
            usleep(10);
        }}
        return unused;
    }}
    int main(void) {{
        pthread_t threads[2];
        for (int at = 0; at < 2; at++) pthread_create(threads + at, 0, work, 0);
        for (int at = 0; at < 2; at++) pthread_join(threads[at], 0);
        usleep(300000);
        return 0;
    }}"""
    program = compiled(tmp_path, source, "-pthread")
    evidence = observe(tmp_path, method, str(program))
    locks = {lock.place: lock for lock in evidence.locks}
    assert locks[f"contended_gate in {program}"].waits > 0
    assert by_name(evidence)["futex"].waits
    assert evidence.waiting_s > 0.04


@by_either_method
def test_a_command_that_dies_is_observed_until_then(tmp_path: Path, method: Method) -> None:
    source = f"""{HEAD}
    #include <signal.h>
    int main(void) {{ for (int at = 0; at < 70; at++) getppid(); kill(getpid(), SIGKILL); }}"""
    evidence = observe(tmp_path, method, str(compiled(tmp_path, source)))
    assert (evidence.end.exit, evidence.end.signal) == (None, signal.SIGKILL)
    assert by_name(evidence)["getppid"].count == 70


@by_either_method
def test_process_that_outlives_the_command_continues_unobserved(
    tmp_path: Path, method: Method
) -> None:
    go, done = tmp_path / "go", tmp_path / "done"
    shell = f"(until [ -e {go} ]; do sleep 0.02; done; echo > {done}) > /dev/null 2>&1 &"
    assert observe(tmp_path, method, "sh", "-c", shell).end.exit == 0
    assert not done.exists()
    go.touch()
    deadline = time.monotonic() + 300
    while not done.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert done.exists()


FIRST_THREAD_ENDS = f"""{HEAD}
static void *work(void *words) {{
    const char *go = ((char **)words)[1], *done = ((char **)words)[2];
    usleep(50000);
    while (access(go, F_OK)) usleep(10000);
    int file = open(done, O_CREAT | O_WRONLY, 0600);
    if (write(file, "done", 4) != 4) return 0;
    usleep(300000);
    return 0;
}}
int main(int count, char **words) {{
    if (count > 3 && fork()) {{ usleep(100000); return 7; }}
    pthread_t thread;
    pthread_create(&thread, 0, work, words);
    pthread_exit(0);
}}"""
"""The first thread ends while another one waits for a file; of a child, with a third argument."""


@by_either_method
def test_child_that_outlives_the_command_and_its_first_thread_is_not_awaited(
    tmp_path: Path, method: Method
) -> None:
    program = compiled(tmp_path, FIRST_THREAD_ENDS, "-pthread")
    go, done = tmp_path / "go", tmp_path / "done"
    # The child has streams of its own, or whoever reads them would wait for it.
    line = f"exec {program} {go} {done} child > /dev/null 2>&1"
    try:
        assert observe(tmp_path, method, "sh", "-c", line).end.exit == 7
        assert not done.exists()
    finally:
        go.touch()
    deadline = time.monotonic() + 300
    while not done.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert done.exists(), "it went on unobserved"


@by_either_method
def test_files_have_names_after_the_first_thread_ended(tmp_path: Path, method: Method) -> None:
    program = compiled(tmp_path, FIRST_THREAD_ENDS, "-pthread")
    done = tmp_path / "done"
    evidence = observe(tmp_path, method, str(program), str(program), str(done))
    assert evidence.end.exit == 0
    assert {file.name: file.bytes_written for file in evidence.files}[str(done)] == 4


def test_process_that_waits_for_a_vforked_child_is_released(tmp_path: Path) -> None:
    go = tmp_path / "go"
    shell = f"(until [ -e {go} ]; do /bin/true; done) > /dev/null 2>&1 & sleep 0.05; exit 7"
    try:
        # It is one moment in three at which it waits so.
        for _ in range(8):
            assert observe(tmp_path, "ptrace", "sh", "-c", shell).end.exit == 7
    finally:
        go.touch()


@by_either_method
def test_stops_and_signals_of_the_command_work_as_without(tmp_path: Path, method: Method) -> None:
    # Again and again: it may be told to go on before it has stopped.
    wake = "(sleep 0.2; while kill -CONT $$ && kill -USR1 $$; do sleep 0.1; done) 2> /dev/null &"
    shell = f'trap "exit 7" USR1; {wake} kill -STOP $$; wait'
    assert observe(tmp_path, method, "sh", "-c", shell).end.exit == 7


@by_either_method
def test_killed_observer_kills_the_command(tmp_path: Path, method: Method) -> None:
    process = wrap_calls(Process(("sleep", "60"), ENVIRONMENT), tmp_path, method)
    with subprocess.Popen(process.command, env=dict(process.environment)) as observer:
        deadline = time.monotonic() + 300
        asleep: list[psutil.Process] = []
        while not asleep and time.monotonic() < deadline:
            with contextlib.suppress(psutil.NoSuchProcess):
                children = psutil.Process(observer.pid).children()
                asleep = [child for child in children if child.name() == "sleep"]
            time.sleep(0.02)
        observer.kill()
    gone, alive = psutil.wait_procs(asleep, timeout=600)
    assert (len(gone), alive) == (1, [])


@by_either_method
def test_a_signal_that_the_observer_is_sent_is_for_the_command(
    tmp_path: Path, method: Method
) -> None:
    ready = tmp_path / "ready"
    line = f"trap 'exit 7' TERM; touch {ready}; while true; do sleep 0.01; done"
    process = wrap_calls(Process(("sh", "-c", line), ENVIRONMENT), tmp_path, method)
    with subprocess.Popen(process.command, env=dict(process.environment)) as observer:
        deadline = time.monotonic() + 300
        while not ready.exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        observer.terminate()
    assert observer.returncode == 0
    evidence = read_calls(tmp_path)
    assert (evidence.end.exit, evidence.end.signal) == (7, None)


@by_either_method
def test_a_command_that_cannot_be_executed_is_named(tmp_path: Path, method: Method) -> None:
    done = run(wrap_calls(Process(("/no/such",), ENVIRONMENT), tmp_path, method))
    assert done.returncode == 1
    assert "the command cannot be executed: No such file or directory" in done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_without_root_the_reduced_method_is_reported(tmp_path: Path) -> None:
    wrapped = wrap_calls(Process(("getent", "hosts", "localhost"), ENVIRONMENT), tmp_path)
    done = run_as_nobody(wrapped, tmp_path)
    assert done.returncode == 0, done.stderr
    evidence = read_calls(tmp_path)
    assert evidence.method == "ptrace"
    assert any("every call was stopped twice by ptrace" in words for words in evidence.unseen)
    assert any("set-user-ID" in words for words in evidence.unseen)
    assert by_name(evidence)["openat"].count > 0


FORBIDS = """
import ctypes, os, struct, sys
PTRACE, DENY, ALLOW = int(sys.argv[1]), 0x50000 | 1, 0x7FFF0000
rules = [(0x20, 0, 0, 0), (0x15, 0, 1, PTRACE), (0x06, 0, 0, DENY), (0x06, 0, 0, ALLOW)]
rules = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *rule) for rule in rules))
filter = struct.pack("HxxxxxxQ", 4, ctypes.addressof(rules))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, filter, 0, 0) == 0
os.execv(sys.argv[2], sys.argv[2:])
"""
"""Executes its arguments with ptrace forbidden by a seccomp filter, as containers do."""


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the number of ptrace is x86-64's")
def test_forbidden_ptrace_has_a_hint(tmp_path: Path) -> None:
    wrapped = wrap_calls(Process(("true",), ENVIRONMENT), tmp_path, "ptrace")
    ptrace = "101"
    done = run(Process((sys.executable, "-c", FORBIDS, ptrace, *wrapped.command), ENVIRONMENT))
    assert done.returncode == 1
    assert "Operation not permitted" in done.stderr
    assert "allow it in the container" in done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes programs of another user")
@by_either_method
def test_set_user_id_program_runs_with_a_remark(tmp_path: Path, method: Method) -> None:
    source = f"{HEAD}\nint main(void) {{ return geteuid() == {NOBODY} ? 0 : 1; }}"
    program = compiled(tmp_path, source, name="changes")
    os.chown(program, NOBODY, NOBODY)
    program.chmod(0o6755)
    opened_to_all(tmp_path)
    evidence = observe(tmp_path, method, "sh", "-c", f"{program}; exit $?")
    assert evidence.end.exit == 0
    seen = method == "ptrace"
    assert any("gains rights (set-user-ID)" in words for words in evidence.unseen) is not seen
