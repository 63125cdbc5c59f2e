"""The private folder of a sitting, and clearing away those of sittings that were killed.

The launchers end what runs and remove the folder when Equipoise is killed. Where they were killed
too, the folder is found by its lock, which nobody holds any more (flock(2)). The folder of a probe
that somebody ran by itself is locked by its keeper, and found in the same way.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from equipoise.measure import builds, own_metrics

PREFIX = "equipoise-"
OF_PROBES = f"{PREFIX}probe-"
"""How the folders begin that are locked themselves (crates/probes/src/scratch.rs)."""
LOCK = "owner"
_LOCKED_LATER = "owner.new"
_ENDING_S = 10.0
_VARIABLES = (own_metrics.VARIABLE, builds.VARIABLE)
"""They name a file or a folder in the scratch folder of whom a process was started for."""


@dataclass(frozen=True, slots=True)
class Leftover:
    """What was cleared away of one sitting, or one probe, that was killed."""

    folder: str
    processes: int
    """So many of its processes still ran, and were killed."""

    def words(self) -> str:
        """For the user."""
        ended = {0: "", 1: " and a process of it"}.get(
            self.processes, f" and {self.processes} processes of it"
        )
        who = "probe" if OF_PROBES in self.folder else "campaign"
        return f"cleared away what a killed {who} had left: {self.folder}{ended}"


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """A new folder that is ours while the block runs, and is removed then."""
    folder = Path(tempfile.mkdtemp(prefix=PREFIX))
    # Its lock is there only while it is locked: nobody may take it for one without an owner.
    with open(folder / _LOCKED_LATER, "w", encoding="ascii") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            os.rename(folder / _LOCKED_LATER, folder / LOCK)
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def clear_leftovers(home: Path | None = None) -> tuple[Leftover, ...]:
    """End and remove what sittings that were killed left, of this user only.

    Parameters
    ----------
    home
        Where scratch folders are; by default where they are made.
    """
    cleared: list[Leftover] = []
    home = home or Path(tempfile.gettempdir())
    locks = [(lock.parent, lock) for lock in sorted(home.glob(f"{PREFIX}*/{LOCK}"))]
    locks += [(folder, folder) for folder in sorted(home.glob(f"{OF_PROBES}*"))]
    for folder, lock in locks:
        with contextlib.suppress(FileNotFoundError, PermissionError):
            found = _cleared(folder, lock)
            if found is not None:
                cleared.append(found)
    return tuple(cleared)


def _cleared(folder: Path, lock: Path) -> Leftover | None:
    if folder.is_symlink() or folder.stat().st_uid != os.geteuid():
        return None
    held = os.open(lock, os.O_RDONLY | os.O_CLOEXEC)
    try:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return None
        processes = [one for one in psutil.process_iter() if _lives_in(one, folder)]
        for process in processes:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(processes, timeout=_ENDING_S)
        shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(held)
    return Leftover(str(folder), len(processes))


def _lives_in(process: psutil.Process, folder: Path) -> bool:
    """Whether a process was started for a trial or a build with this folder, or works in it."""
    inside = f"{folder}/"
    try:
        environment = process.environ()
        started_for = (environment.get(name, "") for name in _VARIABLES)
        return any(one.startswith(inside) for one in started_for) or (
            f"{process.cwd()}/".startswith(inside)
        )
    except (psutil.NoSuchProcess, psutil.AccessDenied, OSError):
        # It has ended, or is another user's.
        return False
