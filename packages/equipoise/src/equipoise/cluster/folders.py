"""The folder of a host's campaign, with its order, its progress and the lock of its process.

``STATE/fleets/FLEET-INDEX/`` contains:

order   the order, with the host's ledger and working folder
state   the progress, in a file of fixed size, so that a full disk cannot prevent the last report
life    a file that is locked (flock(2)) while the process is alive
halt    the number of the segment in which the campaign was halted
work    the working folder, if files were shipped
builds  the builds of the levels of a study
log     the output of the process
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
import shutil
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from equipoise.cluster.messages import Order, State, Status, from_bytes, version_mismatch
from equipoise.files.state import is_identity, private_folder
from equipoise.files.writing import opened, write_whole
from equipoise.model.errors import UnusableInput
from equipoise.model.record import INTERRUPTED
from equipoise.shared.safe_text import short_line

FLEETS_FOLDER = "fleets"
"""Folder of all campaign folders, in the state folder."""
MAX_ENDED_CAMPAIGNS = 100
"""Number of ended campaigns whose folders are kept; more than `MAX_LOCAL_WORKERS`."""
_STATE_BYTES = 4096
"""Size of the state file: one page of memory, so that a write replaces the whole file."""
_END_STATES: frozenset[State] = frozenset({"ended", "failed"})
"""States of a campaign whose process has reported its end."""
_DIGEST_BYTES = 8
_DIGEST_PREFIX_BYTES = 2 * _DIGEST_BYTES + 1
"""Bytes of the digest's hexadecimal digits, and of the space after them."""
_MAX_READS = 5
"""Maximum number of attempts to read the state file while the process writes it."""
_MAX_LOCK_ATTEMPTS = 40
"""Maximum number of attempts to lock the file ``life`` of a process that does not end soon."""
_PAUSE_S = 0.01
"""Seconds between two attempts to read the state file or to lock the file ``life``."""
_LOCK_TIMEOUT_S = 20.0
"""Maximum seconds of all attempts to lock the file ``life``."""


class StoredOrder(Struct, frozen=True):
    """An order, and where its campaign runs."""

    order: Order
    ledger: str
    """Absolute path of the host's ledger."""
    folder: str
    """Absolute path of the worker's working folder."""


class StoredProgress(Status, frozen=True, kw_only=True):
    """Progress of a campaign, as the campaign process writes it."""

    segment: int
    """Number of the segment (`Order.segment`)."""
    process_id: int | None = None
    """Id of the process that runs the campaign."""
    started_at_s: float | None = None
    """Time of the start, by the host's monotonic clock."""
    run_id: str | None = None
    """Run id in the host's ledger; ``None`` until the run exists."""


class CampaignFolder:
    """The folder of one host's campaign. The folder may be missing."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.working_folder = path / "work"
        """Working folder of a campaign with shipped files."""
        self.builds = path / "builds"
        """Folder of the levels that the host built."""
        self.log = path / "log"

    @classmethod
    def of(cls, fleet: str, host_index: int) -> CampaignFolder:
        """Return the folder of a host in a fleet (see `Order.fleet`, `Order.host_index`).

        Raise `UnusableInput` if the identity or the index is not valid.
        """
        require_run_identity(fleet)
        if host_index < 0:
            raise UnusableInput(f"{host_index} is not the index of a host", hint="give 0 or more")
        return cls(private_folder(FLEETS_FOLDER) / f"{fleet}-{host_index}")

    def read_order(self) -> StoredOrder | None:
        """Return the latest order; ``None`` if there is none.

        Raise `UnusableInput` if another version of Equipoise wrote the order.
        """
        try:
            content = (self.path / "order").read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None
        try:
            return from_bytes(content, StoredOrder)
        except UnusableInput as error:
            raise UnusableInput(
                f"another version of Equipoise began the campaign in {self.path}",
                hint=f"install that version again, or remove the folder; the trials stay in the "
                f"ledger of {os.uname().nodename}",
            ) from error

    def write_order(self, order: StoredOrder) -> None:
        """Write the order."""
        write_whole(self.path / "order", msgspec.msgpack.encode(order))

    def read_progress(self) -> StoredProgress | None:
        """Return the progress; ``None`` if no progress can be read."""
        for _ in range(_MAX_READS):
            try:
                with opened(self.path / "state", os.O_RDONLY | os.O_CLOEXEC) as file:
                    digest, _, content = os.pread(file, _STATE_BYTES, 0).partition(b" ")
            except (FileNotFoundError, NotADirectoryError):
                return None
            if digest == _digest(content):
                # Another version may have written other fields.
                with contextlib.suppress(msgspec.ValidationError):
                    return msgspec.json.decode(content.rstrip(), type=StoredProgress)
                return None
            # The process is writing the page. There is no lock, as the campaign must not wait.
            time.sleep(_PAUSE_S)
        # The host lost power before the page was written.
        return None

    def write_progress(self, progress: StoredProgress) -> None:
        """Overwrite the progress in place, which needs no free space on the disk."""
        texts = {"failure": progress.failure, "hint": progress.hint}
        short_texts = {name: text and short_line(text) for name, text in texts.items()}
        content = msgspec.json.encode(replace(progress, **short_texts))
        content = content.ljust(_STATE_BYTES - _DIGEST_PREFIX_BYTES)
        with opened(self.path / "state", os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC) as file:
            if os.pwrite(file, _digest(content) + b" " + content, 0) < _STATE_BYTES:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.path))

    @contextmanager
    def lock_life(self) -> Iterator[int | None]:
        """Lock the file ``life``; yield its descriptor, or ``None`` if a process has the lock.

        A process that inherits this descriptor has the lock until it ends.
        """
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
        with opened(self.path / "life", flags) as life_descriptor:
            yield life_descriptor if self._try_to_lock(life_descriptor) else None

    def _try_to_lock(self, life_descriptor: int) -> bool:
        deadline = time.monotonic() + _LOCK_TIMEOUT_S
        attempts = 0
        while True:
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(life_descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return True
            attempts += 1
            progress = self.read_progress()
            # `is_alive` holds the lock for a moment, so try several times. If the process has
            # reported its end, or was halted, wait longer: the process ends soon.
            ends_soon = progress is not None and (
                progress.state in _END_STATES or self.is_halted(progress.segment)
            )
            if time.monotonic() > deadline or (attempts > _MAX_LOCK_ATTEMPTS and not ends_soon):
                return False
            time.sleep(_PAUSE_S)

    def is_alive(self) -> bool:
        """Return whether the process of the campaign is alive, or is being started."""
        try:
            with opened(self.path / "life", os.O_RDONLY | os.O_CLOEXEC) as life_descriptor:
                fcntl.flock(life_descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except (FileNotFoundError, NotADirectoryError):
            return False
        return False

    def status(self) -> Status:
        """Return the status of the campaign."""
        # The progress is read after `is_alive`: if the process is dead, this is its last report.
        is_alive = self.is_alive()
        progress = self.read_progress()
        if progress is None:
            return Status("waiting" if is_alive else "absent")
        if not is_alive:
            progress = self.progress_of_dead_process(progress)
        elif progress.started_at_s is not None and progress.state == "running":
            progress = replace(progress, running_s=time.monotonic() - progress.started_at_s)
        return progress

    def progress_of_dead_process(self, progress: StoredProgress) -> StoredProgress:
        """Return the progress of a campaign whose process is dead, with the final state."""
        if progress.state in _END_STATES:
            return progress
        if self.is_halted(progress.segment):
            return replace(progress, state="ended", stopped_because=INTERRUPTED, hint=None)
        return replace(progress, state="died", hint=None)

    def is_halted(self, segment: int) -> bool:
        """Return whether this segment was halted."""
        try:
            return int((self.path / "halt").read_text() or 0) >= segment
        except (FileNotFoundError, NotADirectoryError):
            return False

    def halt(self) -> None:
        """Interrupt the campaign, and prevent a new start in the same segment."""
        progress = self.read_progress()
        if progress is None or progress.state in _END_STATES:
            return
        write_whole(self.path / "halt", str(progress.segment).encode())
        # The process writes its id before it reads ``halt``, so it sees the file or the signal.
        progress = self.read_progress()
        if progress is not None and progress.process_id is not None:
            self._interrupt(progress.process_id)

    def _interrupt(self, process_id: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            process_handle = os.pidfd_open(process_id)
            try:
                progress = self.read_progress()
                # If the file ``life`` is locked, the process is alive, so its id is not reused.
                if progress is not None and progress.process_id == process_id and self.is_alive():
                    signal.pidfd_send_signal(process_handle, signal.SIGINT)
            finally:
                os.close(process_handle)


def remove_old_campaigns(fleets: Path) -> None:
    """Remove the folders of ended campaigns, except the `MAX_ENDED_CAMPAIGNS` latest.

    The trials stay in the ledger. Folders of failed, died and running campaigns are kept.
    """
    ended_campaigns = []
    for state in fleets.glob("*/state"):
        progress = CampaignFolder(state.parent).read_progress()
        if progress is not None and progress.state == "ended":
            # Another worker of this host may remove the same folders at the same time.
            with contextlib.suppress(FileNotFoundError):
                ended_campaigns.append((state.stat().st_mtime_ns, state.parent))
    for _, path in sorted(ended_campaigns)[:-MAX_ENDED_CAMPAIGNS]:
        with (
            contextlib.suppress(FileNotFoundError),
            CampaignFolder(path).lock_life() as life_descriptor,
        ):
            if life_descriptor is not None:
                shutil.rmtree(path, ignore_errors=True)


def require_run_identity(identity: str) -> None:
    """Raise `UnusableInput` if a text is not the identity of a run."""
    if not is_identity(identity):
        raise version_mismatch(f"{identity!r} is not the identity of a run")


def _digest(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=_DIGEST_BYTES).hexdigest().encode("ascii")
