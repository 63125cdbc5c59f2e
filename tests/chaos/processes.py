"""Starting a command under attack, and finding every process that comes from it.

The attacker is the subreaper (prctl(2)) of what it starts. A process whose parents were all killed
becomes its child, so none can hide: also not in a session of its own or with another environment.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

_PR_SET_CHILD_SUBREAPER = 36
_PROC = Path("/proc")
_CGROUP = re.compile(r"equipoise-(?:[0-9a-f]+-)?(\d+)-\d+")
_PAUSE_S = 0.005
OBSERVERS = frozenset(
    {"equipoise-evidence", "strace", "perf", "gdb", "ltrace", "valgrind", "bpftrace"}
)
COMPILERS = frozenset({"cc", "gcc", "clang", "cc1", "as", "ld", "collect2", "ld.lld", "lld"})


@dataclass(frozen=True, slots=True)
class Found:
    """One living process of a command."""

    pid: int
    parent: int
    words: tuple[str, ...]
    name: str
    """What the kernel calls it (``comm``)."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How one command ended."""

    status: int | None
    """Exit status, negative for a signal; None where it had to be killed after its limit."""
    out: str
    err: str


@contextmanager
def subreaper() -> Iterator[None]:
    """Adopt the orphans of all that is started inside of the block."""
    libc = ctypes.CDLL(None, use_errno=True)

    def switch(on: int) -> None:
        if libc.prctl(_PR_SET_CHILD_SUBREAPER, on, 0, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER)")

    switch(1)
    try:
        yield
    finally:
        switch(0)


@dataclass(slots=True)
class Family:
    """Every process that comes from the commands of one case."""

    strangers: frozenset[int]
    """Children that are not of the case: the canary, and what was there before."""
    started: set[int] = field(default_factory=set)
    """Children that are of the case, and whose status is taken by whoever started them."""
    launchers: set[int] = field(default_factory=set)
    """Every launcher that was seen; the folders of their cgroups hold these numbers."""

    def living(self) -> list[Found]:
        """Return all living processes of the case, parents before their children."""
        family: list[Found] = []
        waiting = [pid for pid in _children_of(os.getpid()) if pid not in self.strangers]
        while waiting:
            found = _process(waiting.pop(0))
            if found is not None:
                family.append(found)
                waiting += _children_of(found.pid)
        self.launchers |= {found.pid for found in family if is_launcher(found)}
        return family

    def cgroups(self) -> list[str]:
        """Return the cgroups of the case's launchers that are still there."""
        left = []
        for mounted in _mounted_cgroups():
            for folder, names, _ in os.walk(mounted):
                for name in names:
                    number = _CGROUP.fullmatch(name)
                    if number and int(number[1]) in self.launchers:
                        left.append(f"{folder}/{name}")
        return left

    def end(self) -> None:
        """Kill and reap all that is left."""
        while left := self.living():
            for found in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(found.pid, signal.SIGKILL)
            self.reap()
            time.sleep(_PAUSE_S)
        self.reap()
        for folder in self.cgroups():
            with contextlib.suppress(OSError):
                os.rmdir(folder)

    def reap(self) -> None:
        """Take the status of every orphan that has ended."""
        for pid in _children_of(os.getpid()):
            if pid not in self.strangers | self.started:
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(pid, os.WNOHANG)


def is_launcher(found: Found) -> bool:
    """Tell whether a process is a launcher of Equipoise."""
    return bool(found.words) and Path(found.words[0]).name == "equipoise-launcher"


def role_of(found: Found, command: int, family: Mapping[int, Found]) -> str:
    """Return what a process is to the command under attack."""
    if found.pid == command:
        return "command"
    words = " ".join(found.words)
    program = Path(found.words[0]).name if found.words else found.name
    if found.name == "equipoise-clean":
        return "cleaner"
    if is_launcher(found):
        serves = any(
            "chaos-server" in " ".join(other.words)
            for other in family.values()
            if other.parent == found.pid
        )
        return "launcher of a server" if serves else "launcher"
    for marker in ("server", "client", "build"):
        if f"chaos-{marker}" in words or f"{marker}.sh" in words:
            return marker
    if program in OBSERVERS or found.name in OBSERVERS:
        return "observer"
    if program in COMPILERS or found.name in COMPILERS:
        return "compiler"
    if program == "git" or found.name == "git":
        return "git"
    parent = family.get(found.parent)
    if parent is None:
        return "orphan"
    if is_launcher(parent):
        return "trial"
    if parent.pid == command:
        return "helper"
    above = role_of(parent, command, family)
    return above if above.startswith(("descendant", "helper")) else f"descendant of the {above}"


def by_role(family: Sequence[Found], command: int) -> dict[str, list[Found]]:
    """Return the living processes under their roles."""
    numbered = {found.pid: found for found in family}
    roles: dict[str, list[Found]] = {}
    for found in family:
        roles.setdefault(role_of(found, command, numbered), []).append(found)
    return roles


@dataclass(slots=True)
class Running:
    """One command that was started, with its outputs in files: no pipe can block it."""

    process: subprocess.Popen[bytes]
    out: Path
    err: Path
    started: float = field(default_factory=time.monotonic)

    def elapsed_s(self) -> float:
        """Return the seconds since its start."""
        return time.monotonic() - self.started

    def ended(self) -> bool:
        """Tell whether it has ended."""
        return self.process.poll() is not None

    def wait(self, family: Family, limit_s: float) -> Ended:
        """Wait for its end, at most so long, and reap orphans meanwhile."""
        status: int | None = None
        end = time.monotonic() + limit_s
        while (status := self.process.poll()) is None and time.monotonic() < end:
            family.living()
            family.reap()
            time.sleep(4 * _PAUSE_S)
        if status is None:
            self.process.kill()
            self.process.wait()
        return Ended(status, _text(self.out), _text(self.err))


def start(
    arguments: Sequence[str],
    folder: Path,
    environment: Mapping[str, str],
    family: Family,
    said: Path,
) -> Running:
    """Start a command whose standard output and error go to files of this name."""
    out, err = Path(f"{said}.out"), Path(f"{said}.err")
    with out.open("wb") as to_out, err.open("wb") as to_err:
        process = subprocess.Popen(
            arguments,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=to_out,
            stderr=to_err,
        )
    family.started.add(process.pid)
    return Running(process, out, err)


def children() -> frozenset[int]:
    """Return the children of this process."""
    return frozenset(_children_of(os.getpid()))


def _children_of(pid: int) -> list[int]:
    """Return the children of every thread of a process, zombies included."""
    found = []
    with contextlib.suppress(OSError):
        for thread in (_PROC / str(pid) / "task").iterdir():
            found += [int(child) for child in (thread / "children").read_text().split()]
    return found


def _process(pid: int) -> Found | None:
    """Read one process; None if it has ended."""
    entry = _PROC / str(pid)
    try:
        stat = (entry / "stat").read_text(errors="replace")
        name, _, rest = stat.partition("(")[2].rpartition(")")
        state, parent = rest.split()[:2]
        words = (entry / "cmdline").read_bytes().decode(errors="replace")
    except (OSError, ValueError):
        return None
    if state in ("Z", "X"):
        return None
    return Found(pid, int(parent), tuple(words.rstrip("\0").split("\0")), name)


def _mounted_cgroups() -> list[str]:
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    return [line.split()[4] for line in lines if line.partition(" - ")[2].startswith("cgroup2 ")]


def _text(file: Path) -> str:
    return file.read_bytes().decode(errors="replace")
