"""The cgroups in which launchers hold trials, seen from outside (crates/launcher/src/cgroup.rs).

A leaf is called ``equipoise-IDENTITY-PID-NUMBER``: by the identity of the campaign it is found when
its launcher was killed, and by nothing else.
"""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

_PREFIX = "equipoise-"
_PATIENCE_S = 10.0
_PAUSE_S = 0.005
_OPEN_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_CGROUPS = Path("/proc/self/cgroup")
_MOUNTS = Path("/proc/self/mountinfo")


def own_cgroup() -> Path | None:
    """Return the folder of this process's cgroup of version 2; ``None`` if there is none."""
    try:
        membership = _CGROUPS.read_text("utf-8", "surrogateescape").splitlines()
        mounts = _MOUNTS.read_text("utf-8", "surrogateescape").splitlines()
    except OSError:
        return None
    own = next((line.removeprefix("0::") for line in membership if line.startswith("0::")), None)
    if own is None:
        return None
    for line in mounts:
        place, _, kind = line.partition(" - ")
        if kind.split(" ")[0] != "cgroup2":
            continue
        root, point = place.split(" ")[3:5]
        if own == root or own.startswith(root.rstrip("/") + "/"):
            return Path(point, own.removeprefix(root).strip("/"))
    return None


def leaves_of(identity: str, parent: Path, launcher: int | None = None) -> list[Path]:
    """Return the leaves of a campaign's launchers, or of one launcher, below a cgroup.

    Parameters
    ----------
    launcher
        Process number of the launcher.
    """
    owner = f"{_PREFIX}{identity}-" + ("" if launcher is None else f"{launcher}-")
    try:
        return sorted(parent / name for name in os.listdir(parent) if name.startswith(owner))
    except OSError:
        return []


def end_leaf(leaf: Path) -> int:
    """Kill all that is in a leaf of this user and remove it; return how many processes it had.

    A leaf that does not empty within ten seconds stays.
    """
    try:
        folder = os.open(leaf, _OPEN_FOLDER)
    except OSError:
        return 0
    try:
        if os.fstat(folder).st_uid != os.geteuid():
            return 0
        processes = len(_read(folder, "cgroup.procs").split())
        deadline = time.monotonic() + _PATIENCE_S
        while "populated 1" in _read(folder, "cgroup.events"):
            _write(folder, "cgroup.kill", "1")
            if time.monotonic() > deadline:
                return processes
            time.sleep(_PAUSE_S)
    except OSError:
        # Its launcher has just removed it.
        return 0
    finally:
        os.close(folder)
    with contextlib.suppress(OSError):
        os.rmdir(leaf)
    return processes


def _read(folder: int, name: str) -> str:
    with open(os.open(name, os.O_RDONLY | os.O_CLOEXEC, dir_fd=folder), encoding="ascii") as file:
        return file.read()


def _write(folder: int, name: str, text: str) -> None:
    with open(
        os.open(name, os.O_WRONLY | os.O_CLOEXEC, dir_fd=folder), "w", encoding="ascii"
    ) as file:
        file.write(text)
