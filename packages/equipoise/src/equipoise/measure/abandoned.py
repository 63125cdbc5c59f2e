"""End the processes of a trial or a build if their launcher or builder was killed.

A process belongs to a campaign if its environment names a file in the campaign's scratch folder.
All its descendants belong to the campaign, too. Any other process that works in the scratch folder
may be a user's shell, so it is reported, but not killed.

A pidfd is a descriptor of a process. This module opens the pidfd before it reads the environment of
the process. So a new process with the same number is never killed by mistake.

A launcher runs each trial in a cgroup of its own, called a leaf (crates/launcher/src/cgroup.rs).
The name of a leaf is ``equipoise-IDENTITY-PID-NUMBER``: the identity of the campaign, the number of
the launcher's process (``launcher_pid``), and the number of the trial.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from equipoise.files.writing import OPEN_FOLDER, becomes_readable, opened
from equipoise.measure.environment.cgroups import own_folder
from equipoise.measure.environment.system import Host, Unknown
from equipoise.measure.workload_metrics import METRICS_VARIABLE
from equipoise.model.plan import PLAIN_PADDING_VARIABLE

BUILD_VARIABLE = "EQUIPOISE_BUILD"
"""Variable that names the folder of a build."""
CAMPAIGN_VARIABLE = "EQUIPOISE_CAMPAIGN"
"""Variable of a build outside the scratch folder: the path of the scratch folder and a slash."""
_CAMPAIGN_VARIABLES = (
    METRICS_VARIABLE,
    PLAIN_PADDING_VARIABLE,
    BUILD_VARIABLE,
    CAMPAIGN_VARIABLE,
)
_PROC = Path("/proc")
_CGROUP_PREFIX = "equipoise-"
_MAX_WAIT_S = 10.0
"""Maximum seconds to wait for the end of processes, or for the environment of a process."""
_PAUSE_S = 0.005
"""Seconds between two looks at a process or a leaf."""
_STATE_FIELD, _PARENT_FIELD = 0, 1
"""Indices of the fields after the name in ``/proc/PID/stat`` (proc_pid_stat(5))."""


def end_descendants(launcher_pid: int, identity: str, scratch: Path | None) -> None:
    """End the processes of a launcher's trials, after the launcher was killed.

    ``identity`` is the identity of the launcher's campaign. ``scratch`` is the scratch folder of
    the campaign; ``None`` if there is no such folder.
    """
    parent = own_cgroup()
    if parent is not None:
        for leaf in leaves_of(identity, parent, launcher_pid):
            end_leaf(leaf)
    if scratch is not None:
        end_processes_of(scratch)


def end_processes_of(folder: Path) -> int:
    """Kill the processes that belong to a scratch folder; return their number.

    Only processes of this user are killed; root also kills processes that it started as other
    users. After ten seconds the function gives up.
    """
    prefixes = tuple(os.fsencode(f"{name}={folder}/") for name in _CAMPAIGN_VARIABLES)
    return _end_processes(lambda variable: variable.startswith(prefixes))


def end_build(folder: str) -> int:
    """Kill the processes of the build in a folder; return their number."""
    build_variable = os.fsencode(f"{BUILD_VARIABLE}={folder}")
    return _end_processes(lambda variable: variable == build_variable)


VariableTest = Callable[[bytes], bool]
"""Function of a variable, ``NAME=value``: whether a process with this variable must end."""


def _end_processes(is_match: VariableTest) -> int:
    ended_pids: set[int] = set()
    deadline = time.monotonic() + _MAX_WAIT_S
    while time.monotonic() < deadline:
        with _opened_processes(is_match) as pidfds:
            if not pidfds:
                break
            for pidfd in pidfds.values():
                with contextlib.suppress(ProcessLookupError):
                    signal.pidfd_send_signal(pidfd, signal.SIGKILL)
            for pidfd in pidfds.values():
                becomes_readable(pidfd, max(0.0, deadline - time.monotonic()))
            ended_pids |= pidfds.keys()
    return len(ended_pids)


def processes_working_in(folder: Path) -> tuple[int, ...]:
    """Return the numbers of the processes whose working folder is ``folder`` or inside it."""
    prefix = f"{os.path.realpath(folder)}/"
    pids = []
    for pid in _pids():
        with contextlib.suppress(OSError):
            if f"{os.readlink(_PROC / str(pid) / 'cwd')}/".startswith(prefix):
                pids.append(pid)
    return tuple(pids)


@contextmanager
def _opened_processes(is_match: VariableTest) -> Iterator[Mapping[int, int]]:
    """Open the living processes that must end; yield their pidfds by process number."""
    with contextlib.ExitStack() as stack:
        pidfds: dict[int, int] = {}
        parents = {pid: parent for pid in _pids() if (parent := _parent_of(pid))}
        ancestors = _self_and_ancestors(parents)
        candidates = [pid for pid in parents if pid not in ancestors]
        for pid in candidates:
            if _has_variable(pid, is_match):
                _open_process(pid, is_match, pidfds, stack)
        # A parent may come after its child in the list: repeat until nothing is added.
        previous_count = -1
        while previous_count != len(pidfds):
            previous_count = len(pidfds)
            for pid in candidates:
                if pid not in pidfds and parents[pid] in pidfds:
                    _open_process(pid, is_match, pidfds, stack)
        yield pidfds


def _open_process(
    pid: int, is_match: VariableTest, pidfds: dict[int, int], stack: contextlib.ExitStack
) -> None:
    """Add the pidfd of a process to ``pidfds`` if the process lives and must end."""
    try:
        pidfd = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    stack.callback(os.close, pidfd)
    is_descendant = _parent_of(pid) in pidfds and _may_be_killed(pid)
    must_end = is_descendant or _has_variable(pid, is_match)
    if must_end and not becomes_readable(pidfd, 0.0):
        pidfds[pid] = pidfd


def _self_and_ancestors(parents: Mapping[int, int]) -> set[int]:
    ancestors = {os.getpid()}
    parent = os.getppid()
    while parent in parents and parent not in ancestors:
        ancestors.add(parent)
        parent = parents[parent]
    return ancestors


def environment_of(pid: int) -> bytes:
    """Return the environment of a process: ``NAME=value`` entries, each with a NUL at its end.

    While a process starts a new program, its environment is empty for a moment. This function waits
    until the moment is over, at most ten seconds. Raise `OSError` if the process has ended, or
    belongs to another user.
    """
    folder = _PROC / str(pid)
    deadline = time.monotonic() + _MAX_WAIT_S
    while not (environment := (folder / "environ").read_bytes()):
        if not _has_program(folder) or time.monotonic() > deadline:
            break
        argv_before, environment, argv_after = (
            (folder / name).read_bytes() for name in ("cmdline", "environ", "cmdline")
        )
        # The same program ran before and after this reading: its environment is empty.
        if environment or (argv_before and argv_before == argv_after):
            break
        time.sleep(_PAUSE_S)
    return environment


def _has_program(folder: Path) -> bool:
    """Return whether a process has a program; kernel threads and ended processes have none."""
    try:
        os.readlink(folder / "exe")
    except FileNotFoundError:
        return False
    return True


def _has_variable(pid: int, is_match: VariableTest) -> bool:
    if not _may_be_killed(pid):
        return False
    try:
        environment = environment_of(pid)
    except OSError:
        # The process has ended.
        return False
    return any(map(is_match, environment.split(b"\0")))


def _may_be_killed(pid: int) -> bool:
    user_id = os.geteuid()
    try:
        return user_id == 0 or (_PROC / str(pid)).stat().st_uid == user_id
    except OSError:
        return False


def _pids() -> list[int]:
    return [int(name) for name in os.listdir(_PROC) if name.isdecimal()]


def _parent_of(pid: int) -> int | None:
    """Return the parent of a living process, 0 if it has none, ``None`` if it has ended."""
    try:
        content = (_PROC / str(pid) / "stat").read_bytes()
    except OSError:
        return None
    # The name of the program is in parentheses and may contain any character.
    fields = content.rpartition(b")")[2].split()
    return None if fields[_STATE_FIELD] in (b"Z", b"X") else int(fields[_PARENT_FIELD])


def own_cgroup() -> Path | None:
    """Return the folder of this process's cgroup of version 2; ``None`` if there is none."""
    try:
        return own_folder(Host())
    except Unknown:
        return None


def leaves_of(identity: str, parent: Path, launcher_pid: int | None = None) -> list[Path]:
    """Return the leaves of a campaign, or only the leaves that one launcher created.

    ``parent`` is the folder of the cgroup in which launchers create their leaves.
    """
    launcher_part = "" if launcher_pid is None else f"{launcher_pid}-"
    prefix = f"{_CGROUP_PREFIX}{identity}-{launcher_part}"
    try:
        return sorted(parent / name for name in os.listdir(parent) if name.startswith(prefix))
    except OSError:
        return []


def end_leaf(leaf: Path) -> int:
    """Kill all processes in a leaf that belongs to this user; return their number.

    The leaf is removed, unless it still has processes after ten seconds.
    """
    try:
        with opened(leaf, OPEN_FOLDER) as folder:
            if os.fstat(folder).st_uid != os.geteuid():
                return 0
            process_count = len(_read(folder, "cgroup.procs").split())
            deadline = time.monotonic() + _MAX_WAIT_S
            while "populated 1" in _read(folder, "cgroup.events"):
                with opened("cgroup.kill", os.O_WRONLY | os.O_CLOEXEC, folder) as kill_file:
                    os.write(kill_file, b"1")
                if time.monotonic() > deadline:
                    return process_count
                time.sleep(_PAUSE_S)
    except OSError:
        # The launcher has just removed the leaf, or the folder is not a leaf.
        return 0
    with contextlib.suppress(OSError):
        os.rmdir(leaf)
    return process_count


def _read(folder: int, name: str) -> str:
    with open(name, encoding="ascii", opener=partial(os.open, dir_fd=folder)) as file:
        return file.read()
