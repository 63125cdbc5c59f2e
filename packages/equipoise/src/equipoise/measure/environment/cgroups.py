"""Read the limits of our own control groups (cgroup v1 and v2), which also hold for trials.

Each limit is read in our own group and in all groups above it, and the smallest limit counts. A
container hides the groups above its own group.

A function raises `Unknown` if there is no group, or if the expected line is missing.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from msgspec import Struct

from equipoise.measure.environment.system import UNLIMITED, Facts, Host, Unknown

_V1_UNLIMITED = 1 << 60
"""Smallest value that means no limit; v1 writes the largest multiple of the page size."""
_ESCAPED_CHARACTER = re.compile(r"\\([0-7]{3})")
"""Octal escape of a character in a path of /proc/self/mountinfo."""


class Groups(Struct, frozen=True):
    """Folders of our groups of one controller, the innermost first."""

    version: int
    """Version of cgroups, 1 or 2."""
    folders: tuple[str, ...]


class Limit(Struct, frozen=True):
    """A limit and the file that sets it."""

    value: float
    file: str


def groups(host: Host, controller: str) -> Groups:
    """Return our groups of a controller (``cpu``, ``memory``, ``cpuset``)."""
    paths = dict(_own_paths(host))
    version = 1 if controller in paths else 2
    path = paths.get(controller, paths.get(""))
    if path is None:
        raise Unknown("/proc/self/cgroup does not name our group")
    for root, mount_point in _mounts(host, None if version == 2 else controller):
        folders = tuple(filter(host.has, _folders_up_to_root(root, mount_point, path)))
        if folders:
            return Groups(version, folders)
    raise Unknown(f"no control group file system with '{controller}' is mounted")


def own_folder(host: Host) -> Path | None:
    """Return the folder of our own group of version 2; ``None`` if it is invisible."""
    path = dict(_own_paths(host)).get("")
    if path is None:
        return None
    for root, mount_point in _mounts(host, None):
        if path == root or path.startswith(root.rstrip("/") + "/"):
            return Path(mount_point, path.removeprefix(root).strip("/"))
    return None


def cpu_quota(host: Host) -> Limit | None:
    """Return our quota of CPU time, in CPUs; ``None`` without a quota."""
    own_groups = groups(host, "cpu")
    if own_groups.version == 2:
        return _smallest_limit(host, own_groups, "cpu.max", _v2_quota)
    return _smallest_limit(host, own_groups, "cpu.cfs_quota_us", _v1_quota)


def memory_limit(host: Host) -> Limit | None:
    """Return the bytes of memory that we may use; ``None`` without a limit."""
    own_groups = groups(host, "memory")
    name = "memory.max" if own_groups.version == 2 else "memory.limit_in_bytes"
    return _smallest_limit(host, own_groups, name, _byte_limit)


def memory_in_use(host: Host, limit: Limit) -> int:
    """Return the bytes in use under a memory limit, without file pages that can be dropped."""
    folder = os.path.dirname(limit.file)
    is_v2 = limit.file.endswith("memory.max")
    used_bytes = host.number(f"{folder}/{'memory.current' if is_v2 else 'memory.usage_in_bytes'}")
    key = "inactive_file" if is_v2 else "total_inactive_file"
    return used_bytes - statistic(host, f"{folder}/memory.stat", key)


def times_throttled(host: Host) -> int:
    """Return the number of times that we were stopped because the CPU quota was used up."""
    own_groups = groups(host, "cpu")
    quota = "cpu.max" if own_groups.version == 2 else "cpu.cfs_quota_us"
    # The root group has no quota. In v2 it has no line "nr_throttled".
    return sum(
        statistic(host, f"{folder}/cpu.stat", "nr_throttled")
        for folder in own_groups.folders
        if host.has(f"{folder}/{quota}")
    )


def statistic(host: Host, name: str, key: str) -> int:
    """Return the number after ``key`` in a file whose lines have a key and a number."""
    for line in host.text(name).splitlines():
        line_key, _, value = line.partition(" ")
        if line_key == key and value.strip().isdigit():
            return int(value)
    raise Unknown(f"{name} has no line '{key}'")


def _own_paths(host: Host) -> Iterator[tuple[str, str]]:
    """Yield the controller and the path of each of our groups; in v2 the controller is empty."""
    for line in host.text("/proc/self/cgroup").splitlines():
        fields = line.split(":", 2)
        if len(fields) == 3:
            _, controllers, path = fields
            for controller in controllers.split(","):
                yield controller, path


def _mounts(host: Host, controller: str | None) -> Iterator[tuple[str, str]]:
    """Yield the root and the mount point of each mount of v2, or of a controller of v1.

    See proc_pid_mountinfo(5).
    """
    for line in host.text("/proc/self/mountinfo").splitlines():
        mount_part, dash, system_part = line.partition(" - ")
        mount, system = mount_part.split(), system_part.split()
        if not dash or len(mount) < 5 or len(system) < 3:
            continue
        root, mount_point = mount[3:5]
        file_system, _, controllers = system[:3]
        has_controller = file_system == "cgroup" and controller in controllers.split(",")
        if file_system == "cgroup2" if controller is None else has_controller:
            yield _unescape(root), _unescape(mount_point)


def _folders_up_to_root(root: str, mount_point: str, path: str) -> Iterator[str]:
    relative_path = os.path.relpath(path, root)
    if relative_path.startswith("..") or relative_path == ".":
        # Our group is outside the mounted part: only the top group is visible.
        relative_path = ""
    while relative_path:
        yield f"{mount_point.rstrip('/')}/{relative_path}"
        relative_path = os.path.dirname(relative_path)
    yield mount_point


def _unescape(text: str) -> str:
    return _ESCAPED_CHARACTER.sub(lambda escape: chr(int(escape[1], 8)), text)


def _smallest_limit(
    host: Host, own_groups: Groups, name: str, read: Callable[[Host, str], float | None]
) -> Limit | None:
    files = (file for folder in own_groups.folders if host.has(file := f"{folder}/{name}"))
    limits = ((read(host, file), file) for file in files)
    known_limits = [Limit(value, file) for value, file in limits if value is not None]
    return min(known_limits, key=lambda limit: limit.value, default=None)


def _v2_quota(host: Host, file: str) -> float | None:
    text = host.text(file)
    quota, _, period = text.partition(" ")
    if quota == "max":
        return None
    if not (quota.isdigit() and period.isdigit() and int(period) > 0):
        raise Unknown(f"{file}: {text[:40]!r} is not a quota")
    return int(quota) / int(period)


def _v1_quota(host: Host, file: str) -> float | None:
    quota = host.number(file)
    if quota <= 0:
        return None
    period = host.number(f"{os.path.dirname(file)}/cpu.cfs_period_us")
    if period <= 0:
        raise Unknown(f"{file}: its period is {period}")
    return quota / period


def _byte_limit(host: Host, file: str) -> float | None:
    if host.text(file) == "max":
        return None
    limit = host.number(file)
    return None if limit >= _V1_UNLIMITED else limit


def _or_unlimited(limit: Limit | None) -> float | str:
    return UNLIMITED if limit is None else limit.value


def _cpuset(host: Host) -> str:
    for folder in groups(host, "cpuset").folders:
        for name in ("cpuset.cpus.effective", "cpuset.effective_cpus"):
            if host.has(f"{folder}/{name}"):
                return host.text(f"{folder}/{name}")
    return UNLIMITED


FACTS: Facts = {
    "cpu_quota": lambda host: _or_unlimited(cpu_quota(host)),
    "memory_limit_bytes": lambda host: _or_unlimited(memory_limit(host)),
    "cpuset": _cpuset,
}
