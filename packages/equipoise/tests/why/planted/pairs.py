"""Pairs of small programs with one known cause of their gap.

Each pair is two commands over the same program; the first is the baseline. All are short: about
0.1 s for the slower one, at least 1.5 times the faster one on a machine that does nothing else.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from equipoise.design.libraries import LIBRARY_FOLDERS
from equipoise.measure.installation import native_programs
from equipoise.model.packages import own_file
from equipoise.model.plan import Condition

SOURCES = Path(__file__).parent

MIB = 1 << 20

COLD_BYTES = 16 * MIB

FIFTEEN_KB = "glibc.malloc.mmap_threshold=15360:glibc.malloc.top_pad=0"
"""Tunables with which glibc gets blocks from 15 KB on from the kernel.

See docs/evidence/workloads.md#malloc-35-kb.
"""


@dataclass(frozen=True, slots=True)
class Planted:
    """Two commands, and what is known of them."""

    name: str
    baseline: tuple[str, ...]
    candidate: tuple[str, ...]
    """``{folder}`` in a word is the folder of :func:`built`."""
    cause: str
    """The first one that is to be named."""
    key: str
    """Of its evidence."""
    value: Any
    """Several if it depends on which symbols are there: each of them would do."""
    baseline_environment: Mapping[str, str] = field(default_factory=dict)
    candidate_environment: Mapping[str, str] = field(default_factory=dict)
    packages: tuple[tuple[str, str], ...] = ()
    """Files that must be there, each with the Debian package that has it."""
    at_once: bool = False
    """Whether there is a gap only where two threads run at once: both commands run before all
    others then, where that is allowed."""

    def conditions(self, folder: Path) -> tuple[Condition, Condition]:
        """Both as a campaign has them; what they run must have been built in that folder."""

        def condition(
            name: str, words: tuple[str, ...], environment: Mapping[str, str]
        ) -> Condition:
            first = before_others() if self.at_once else ()
            command = (*first, *(word.format(folder=folder) for word in words))
            return Condition(name=name, command=command, environment=dict(environment))

        return (
            condition("baseline", self.baseline, self.baseline_environment),
            condition("candidate", self.candidate, self.candidate_environment),
        )

    def has_gap(self, folder: Path) -> bool:
        """Whether the candidate takes a tenth longer than the baseline, now, without observers.

        Two threads may run in turns. The host of a virtual machine may have moved its processors
        to one core, whose threads share the innermost cache: a shared line costs nothing there.
        """

        def seconds(condition: Condition) -> float:
            began = time.monotonic()
            subprocess.run(condition.command, check=True)
            return time.monotonic() - began

        baseline, candidate = self.conditions(folder)
        runs = [(seconds(baseline), seconds(candidate)) for _ in range(5)]
        return min(slow for _, slow in runs) >= 1.1 * min(fast for fast, _ in runs)

    def expected(self, folder: Path) -> tuple[Any, ...]:
        """The values in its evidence that would do, of what was built in that folder."""
        values = self.value if isinstance(self.value, tuple) else (self.value,)
        return tuple(
            value.format(folder=folder) if isinstance(value, str) else value for value in values
        )

    def missing(self) -> tuple[str, ...]:
        """Debian packages that this machine lacks."""
        return tuple(package for file, package in self.packages if not Path(file).exists())


def built(folder: Path) -> None:
    """Compile every program of the pairs into the folder, and make the file that they read."""
    for source in sorted(SOURCES.glob("*.c")):
        program = folder / source.stem
        # Neither may malloc be optimised away nor the frames of what calls the C library.
        flags = ("-O1", "-g", "-fno-builtin", "-fno-omit-frame-pointer", "-pthread")
        subprocess.run(["cc", *flags, "-o", program, source], check=True)
    with (folder / "large").open("wb") as large:
        large.write(bytes(COLD_BYTES))
        large.flush()
        # Only what is on the disk can be put out of the page cache.
        os.fsync(large.fileno())


@cache
def before_others() -> tuple[str, ...]:
    """Return words that give a command the highest priority (sched(7)); empty if forbidden."""
    command = ("/usr/bin/chrt", "--fifo", "1")
    try:
        tried = subprocess.run([*command, "true"], capture_output=True, check=False)
    except OSError:
        return ()
    return command if tried.returncode == 0 else ()


def new_interpreter() -> str | None:
    """A CPython that tells where its functions lie: 3.12 or later, on the path or beside ours."""
    beside = Path(sys.base_prefix).parent.glob("3.*/bin")
    folders = os.pathsep.join((*map(str, beside), os.environ.get("PATH", os.defpath)))
    for minor in (14, 13, 12):
        program = shutil.which(f"python3.{minor}", path=folders)
        if program is None:
            continue
        # A shim on the path may be there without the interpreter behind it.
        if subprocess.run([program, "-c", ""], capture_output=True, check=False).returncode == 0:
            return program
    return None


def _of_program(program: str, cause: str, key: str, value: Any) -> Callable[..., Planted]:
    def planted(name: str, baseline: str, candidate: str, **more: Any) -> Planted:
        return Planted(
            name,
            (f"{{folder}}/{program}", *baseline.split()),
            (f"{{folder}}/{program}", *candidate.split()),
            cause,
            key,
            value,
            **more,
        )

    return planted


def _quadratic_text() -> Planted:
    """The function of the script where the interpreter tells it; else that of C which copies: it
    has its own name where there are symbols, else that of its caller."""
    interpreter = new_interpreter()
    script = SOURCES / "text.py"
    return Planted(
        "quadratic string building in Python",
        (interpreter or sys.executable, str(script), "joining", "60000"),
        (interpreter or sys.executable, str(script), "copying", "60000"),
        "more_time_in_python_function" if interpreter else "more_time_in_function",
        "function",
        "by_copying" if interpreter else ("_copy_characters", "PyUnicode_Append"),
    )


def _wrong_core_type() -> Planted:
    library = LIBRARY_FOLDERS / "openblas-pthread"
    command = (str(own_file("equipoise-workload", native_programs())), "dgemm")
    usual = {"LD_LIBRARY_PATH": str(library), "OPENBLAS_NUM_THREADS": "1"}
    words = (*command, "--size", "512", "--repeat", "7")
    return Planted(
        "OpenBLAS with a wrong core type",
        words,
        words,
        "wrong_blas_kernel",
        "function",
        "dgemm_kernel_PRESCOTT",
        baseline_environment=usual,
        candidate_environment={**usual, "OPENBLAS_CORETYPE": "Prescott"},
        packages=((str(library / "libopenblas.so.0"), "libopenblas0-pthread"),),
    )


def pairs() -> tuple[Planted, ...]:
    """The thirteen of the issue, and others."""
    shell = str(SOURCES / "commands.sh")
    return (
        _of_program("churn", "blocks_returned_at_free", "size_bytes", 35600)(
            "35 KB churn under the 15 KB policy",
            "5000",
            "5000",
            candidate_environment={"GLIBC_TUNABLES": FIFTEEN_KB},
        ),
        _of_program("lines", "tiny_writes", "syscall", "write")(
            "unbuffered writes",
            "{folder}/lines.txt 80000 buffered",
            "{folder}/lines.txt 80000 unbuffered",
        ),
        _of_program("records", "sync_per_record", "syscall", "fsync")(
            "an extra fsync",
            "{folder}/records.bin 300 once",
            "{folder}/records.bin 300 each",
        ),
        _of_program("fifty", "more_time_in_function", "function", "function_17")(
            "a slower function among fifty", "17 1", "17 130"
        ),
        _of_program("sleeper", "sleeping", "syscall", "clock_nanosleep")("sleeping", "0", "40"),
        _of_program("gate", "lock_waits", "lock", "gate")("a contended mutex", "own", "shared"),
        _of_program("counts", "lock_waits", "function", "count_at")(
            "one lock of all threads", "4000 own", "4000 shared"
        ),
        _of_program("counters", "memory_contention", "function", "count_up")(
            "false sharing", "4000000 apart", "4000000 together", at_once=True
        ),
        _of_program("reader", "cold_file", "file", "{folder}/large")(
            "cold file", "{folder}/large warm", "{folder}/large cold"
        ),
        _of_program("arena", "memory_given_back", "syscall", "madvise")(
            "page faults through MADV_DONTNEED", "800 keeping", "800 giving"
        ),
        Planted(
            "many tiny processes",
            ("/bin/sh", shell, ":", "100"),
            ("/bin/sh", shell, "/bin/true", "100"),
            "many_processes",
            "syscall",
            "execve",
        ),
        _quadratic_text(),
        _of_program("lookups", "path_look_ups", "syscall", "newfstatat")(
            "ten times the stat calls", "10000 {folder}/absent", "100000 {folder}/absent"
        ),
        _wrong_core_type(),
        _of_program("bytes", "tiny_reads", "syscall", "read")(
            "unbuffered reads",
            "{folder}/large 130000 buffered",
            "{folder}/large 130000 unbuffered",
        ),
        _of_program("pieces", "tiny_reads", "syscall", "read")(
            "reads without a buffer of stdio",
            "{folder}/large 400000 65536",
            "{folder}/large 400000 1",
        ),
        _of_program("halves", "one_thread", "threads", {"baseline": 2.0, "candidate": 1.0})(
            "one thread instead of two", "35000000 2", "35000000 1", at_once=True
        ),
        _of_program("forks", "fork_of_large_process", "syscall", "clone")(
            "forks of a large process", "80 little", "80 much"
        ),
        _of_program("pages", "huge_pages_off", "function", "fill")(
            "huge pages off", "12 huge", "12 small"
        ),
        _of_program("messages", "messages", "syscall", "write")(
            "many messages through a pipe", "16", "65536"
        ),
    )


def alike() -> tuple[Planted, ...]:
    """Pairs without a difference: one computes, one calls the kernel, one waits."""

    def twice(name: str, program: str, words: str) -> Planted:
        command = (f"{{folder}}/{program}", *words.split())
        return Planted(name, command, command, cause="", key="", value=None)

    return (
        twice("computing", "fifty", "17 50"),
        # Reads of what is in memory: other work on the disk does not reach them.
        twice("calling the kernel", "pieces", "{folder}/large 200000 1"),
        twice("waiting", "sleeper", "40"),
    )
