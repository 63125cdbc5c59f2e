"""Clearing away what campaigns left that were killed together with their launchers.

Only what is proven to be Equipoise's own, abandoned and this user's is removed or killed. The proof
is a record in the user's state folder (`equipoise.measure.scratch`) that nobody has locked, for a
folder of the same owner, device and inode, with a marker inside that holds the record's identity.
Whatever is in doubt is left and named.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from equipoise.files.reading import OPEN_FOLDER, OPEN_UNTRUSTED, opened
from equipoise.files.state import WRITABLE_BY_OTHERS, StateFolderUnusable, open_state
from equipoise.measure.abandoned import end_leaf, end_processes_of, leaves_of, processes_working_in
from equipoise.measure.scratch import (
    MARKER,
    PREFIX,
    RECORDS,
    Record,
    read_identity,
    read_record,
    remove_folder,
)

_SEE_RECORD = "look at it in the folder `equipoise/scratch` of your state folder"
_OTHER_IDENTITY = f"its marker {MARKER} does not hold the recorded identity"
_NAME_OF_PROBE = re.compile(r"equipoise-probe-[A-Za-z0-9]{6}")
"""Form of a probe's folder, which its cleaner removes (crates/probes/src/scratch.rs)."""


class Cleared(Struct, frozen=True):
    """Scratch folder of a killed campaign that was removed."""

    folder: str
    processes: int
    """Number of its processes that still ran and were killed."""

    def describe(self) -> str:
        """Return a sentence for the user."""
        ended = ""
        if self.processes:
            count = "one" if self.processes == 1 else self.processes
            ended = f" and ended {count} of its processes"
        return f"removed the folder of a killed campaign: {self.folder}{ended}"


class Leftover(Struct, frozen=True):
    """Folder or record that may be a leftover and was not touched."""

    path: str
    reason: str
    hint: str

    def describe(self) -> str:
        """Return a sentence for the user, without its hint."""
        return f"left alone: {self.path}: {self.reason}"


class Clearance(Struct, frozen=True):
    """Outcome of clearing away leftovers."""

    cleared: tuple[Cleared, ...] = ()
    leftovers: tuple[Leftover, ...] = ()


class _Doubt(Exception):
    """A record or its folder is not what Equipoise wrote, or is still in use."""

    def __init__(self, path: str, reason: str, hint: str) -> None:
        super().__init__(reason)
        self.leftover = Leftover(path, reason, hint)


def clear_leftovers() -> Clearance:
    """End and remove what killed campaigns of this user left, as far as it is proven."""
    cleared: list[Cleared] = []
    leftovers: list[Leftover] = []
    try:
        with open_state(RECORDS) as records:
            for name in sorted(os.listdir(records)):
                try:
                    cleared += _clear(records, name)
                except _Doubt as doubt:
                    leftovers.append(doubt.leftover)
                except OSError as error:
                    leftovers.append(Leftover(name, f"its record: {error.strerror}", _SEE_RECORD))
    except StateFolderUnusable as error:
        hint = "set XDG_STATE_HOME to a folder of your own; until then nothing left is removed"
        leftovers.append(Leftover(error.path, error.reason, hint))
    return Clearance(tuple(cleared), tuple(leftovers))


def unproven_folders(around: Path | None = None) -> tuple[Leftover, ...]:
    """Return the folders of this user that look like leftovers and have no record.

    They may come from a probe that was run by hand, or from a campaign whose state folder could
    not be used. They lie in ``around``, by default the folder for temporary files.
    """
    around = around or Path(tempfile.gettempdir())
    recorded = _recorded_paths()
    return tuple(
        Leftover(
            str(folder),
            "it looks like a leftover, but no record proves that it is Equipoise's own",
            "remove it yourself if nothing in it is yours",
        )
        for folder in sorted(around.glob(f"{PREFIX}*"))
        if str(folder) not in recorded and _looks_abandoned(folder)
    )


def _clear(records: int, name: str) -> list[Cleared]:
    with _locked_record(records, name) as record:
        if record is None:
            return []
        if record.device is None:
            existed, ended = _remove_unfinished(record), 0
        else:
            existed, ended = _clear_finished(record)
        os.unlink(name, dir_fd=records)
        return [Cleared(record.path, ended)] if existed or ended else []


def _clear_finished(record: Record) -> tuple[bool, int]:
    """Return whether the folder was still there, and how many processes were killed."""
    path = Path(record.path)
    # The identity in the name of a cgroup is proof enough, with or without the folder.
    leaves = leaves_of(record.identity, Path(record.cgroup)) if record.cgroup is not None else []
    ended = sum(map(end_leaf, leaves))
    with _proven_folder(record) as folder:
        ended += end_processes_of(path)
        if folder is not None:
            if working := processes_working_in(path):
                names = ", ".join(map(str, working[:3]))
                raise _Doubt(
                    record.path,
                    f"process {names} works in it and was not started by a campaign",
                    "leave the folder there, or end the process; then run `equipoise doctor` again",
                )
            if not remove_folder(folder, path):
                raise _Doubt(record.path, "not all of it can be removed", "remove it yourself")
    if any(leaf.exists() for leaf in leaves):
        raise _Doubt(record.path, f"a process in {leaves[0]} does not die", "restart the host")
    return folder is not None, ended


@contextmanager
def _locked_record(records: int, name: str) -> Iterator[Record | None]:
    """Yield the record of this name, locked; ``None`` if a campaign uses it or it is empty."""
    try:
        descriptor = os.open(name, OPEN_UNTRUSTED, dir_fd=records)
    except FileNotFoundError:
        yield None
        return
    except OSError as error:
        raise _Doubt(name, f"it cannot be a record: {error.strerror}", _SEE_RECORD) from None
    try:
        if not _locks(descriptor) or not os.fstat(descriptor).st_nlink:
            yield None
            return
        record = read_record(descriptor, name)
        if record is None and not os.fstat(descriptor).st_size:
            # Its campaign was killed before it had written a byte, and had made nothing yet.
            os.unlink(name, dir_fd=records)
        elif record is None:
            raise _Doubt(name, "it is no record of Equipoise", _SEE_RECORD)
        # Hosts may share a home folder; each clears away its own.
        yield record if record is None or record.host == os.uname().nodename else None
    finally:
        os.close(descriptor)


@contextmanager
def _proven_folder(record: Record) -> Iterator[int | None]:
    """Yield the opened folder of a record; ``None`` if it is gone."""
    with contextlib.ExitStack() as stack:
        try:
            folder = stack.enter_context(opened(record.path, OPEN_FOLDER))
        except FileNotFoundError:
            yield None
            return
        except OSError as error:
            raise _unproven(record, error.strerror) from None
        status = os.fstat(folder)
        if status.st_uid != os.geteuid() or status.st_mode & WRITABLE_BY_OTHERS:
            raise _unproven(record, "other users own it or may write to it")
        if (status.st_dev, status.st_ino) != (record.device, record.inode):
            raise _unproven(record, "it is not the folder that was made there")
        try:
            marker = stack.enter_context(opened(MARKER, OPEN_UNTRUSTED, folder))
        except OSError:
            # Where it is empty, the process that removed it was killed just before the end.
            if os.listdir(folder):
                raise _unproven(record, f"it has no marker {MARKER}") from None
        else:
            if read_identity(marker) != record.identity:
                raise _unproven(record, _OTHER_IDENTITY)
            if not _locks(marker):
                raise _unproven(record, "another process has its lock")
        yield folder


def _unproven(record: Record, reason: str | None) -> _Doubt:
    return _Doubt(
        record.path, reason or "it cannot be opened", "remove it yourself if nothing in it is yours"
    )


def _remove_unfinished(record: Record) -> bool:
    """Remove a folder that was recorded and not finished; return whether there was one."""
    try:
        with opened(record.path, OPEN_FOLDER) as folder:
            content = set(os.listdir(folder))
            if os.fstat(folder).st_uid != os.geteuid() or content - {MARKER}:
                raise _unproven(record, "it was recorded, but never finished")
            if content:
                with opened(MARKER, OPEN_UNTRUSTED, folder) as marker:
                    status = os.fstat(marker)
                    is_empty = stat.S_ISREG(status.st_mode) and not status.st_size
                    if not is_empty and read_identity(marker) != record.identity:
                        raise _unproven(record, _OTHER_IDENTITY)
            return remove_folder(folder, Path(record.path))
    except FileNotFoundError:
        return False
    except OSError as error:
        raise _unproven(record, error.strerror) from None


def _recorded_paths() -> set[str]:
    paths: set[str] = set()
    with contextlib.suppress(StateFolderUnusable), open_state(RECORDS) as records:
        for name in os.listdir(records):
            with contextlib.suppress(OSError), opened(name, OPEN_UNTRUSTED, records) as descriptor:
                record = read_record(descriptor, name)
                if record is not None:
                    paths.add(record.path)
    return paths


def _looks_abandoned(folder: Path) -> bool:
    """Return whether a folder of this user looks like a scratch folder that nobody has locked."""
    try:
        status = folder.lstat()
        if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
            return False
        if _NAME_OF_PROBE.fullmatch(folder.name):
            return _lockable(folder, stat.S_ISDIR)
        return _lockable(folder / MARKER, stat.S_ISREG)
    except OSError:
        # It has just been removed.
        return False


def _lockable(path: Path, is_right: Callable[[int], bool]) -> bool:
    try:
        with opened(path, OPEN_UNTRUSTED) as descriptor:
            return is_right(os.fstat(descriptor).st_mode) and _locks(descriptor)
    except FileNotFoundError:
        return False


def _locks(descriptor: int) -> bool:
    """Lock an open file; return whether nobody else has it locked."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
