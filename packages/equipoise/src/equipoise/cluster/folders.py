"""The folder of a host's campaign: what was ordered, how it goes, and whether its process lives.

``STATE/fleets/FLEET-PLACE/`` holds:

order   the order, with the host's ledger and working folder
state   how it goes, in a file that never grows: a full disk cannot stop its last word
life    locked (flock(2)) as long as the process lives, from before its start
halt    the session in which the campaign was halted
work    its working folder, if files were shipped
builds  what it built, if levels of a study are built
log     what the process printed
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

from equipoise.cluster.messages import Order, State, Status, from_bytes, other_version
from equipoise.files.state import is_identity, private_folder
from equipoise.files.writing import opened, write_whole
from equipoise.model.errors import UnusableInput
from equipoise.model.record import INTERRUPTED
from equipoise.shared.safe_text import short_line

FLEETS = "fleets"
"""Folder of the campaigns, in the state folder."""
MAX_ENDED_CAMPAIGNS = 100
"""Number of ended campaigns whose folders are kept: more than ``local:N`` has at most."""
_STATE_BYTES = 4096
"""Size of the file: one page, which is written whole."""
_ENDED: frozenset[State] = frozenset({"ended", "failed"})
_DIGEST_BYTES = 8
_DIGEST_ROOM = 2 * _DIGEST_BYTES + 1
_READS = 5
_RETRIES = 40
_PAUSE_S = 0.01
_PATIENCE_S = 20.0


class StoredOrder(Struct, frozen=True):
    """An order, and where it is carried out."""

    order: Order
    ledger: str
    """Absolute path."""
    folder: str
    """Absolute path of the worker's working folder."""


class Progress(Status, frozen=True, kw_only=True):
    """How a campaign goes, as its process writes it."""

    session: int
    process: int | None = None
    began: float | None = None
    """Monotonic seconds of this host."""
    run: str | None = None
    """Run id in the host's ledger, once it is there."""


class CampaignFolder:
    """The folder of one host's campaign; it need not be there."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.working_folder = path / "work"
        """Working folder of a campaign with shipped files."""
        self.builds = path / "builds"
        """Folder of the levels that the host built."""
        self.log = path / "log"
        """What the process printed."""

    @classmethod
    def of(cls, fleet: str, place: int) -> CampaignFolder:
        """Return the folder of a place in a fleet.

        Raise `UnusableInput` if no fleet has such an identity.
        """
        check_identity(fleet)
        if place < 0:
            raise UnusableInput(f"{place} is no place of a fleet", hint="places begin at 0")
        return cls(private_folder(FLEETS) / f"{fleet}-{place}")

    def stored(self) -> StoredOrder | None:
        """Return the latest order; ``None`` if there is none.

        Raise `UnusableInput` if another version of Equipoise wrote it.
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
                hint=f"install that version again, or remove the folder; the trials are in the "
                f"ledger of {os.uname().nodename}",
            ) from error

    def store(self, order: StoredOrder) -> None:
        """Write the order."""
        write_whole(self.path / "order", msgspec.msgpack.encode(order))

    def progress(self) -> Progress | None:
        """Return how it goes; ``None`` if nothing was written yet."""
        for _ in range(_READS):
            try:
                with opened(self.path / "state", os.O_RDONLY | os.O_CLOEXEC) as file:
                    digest, _, content = os.pread(file, _STATE_BYTES, 0).partition(b" ")
            except (FileNotFoundError, NotADirectoryError):
                return None
            if digest == _digest(content):
                # What another version wrote tells this one nothing.
                with contextlib.suppress(msgspec.ValidationError):
                    return msgspec.json.decode(content.rstrip(), type=Progress)
                return None
            # It is being written just now. Nobody locks it: the campaign waits for no reader.
            time.sleep(_PAUSE_S)
        # The host lost power before the page was written.
        return None

    def write_progress(self, progress: Progress) -> None:
        """Write how it goes, over what was written before: this needs no further room."""
        texts = {"failure": progress.failure, "hint": progress.hint}
        lines = {name: text and short_line(text) for name, text in texts.items()}
        content = msgspec.json.encode(replace(progress, **lines))
        content = content.ljust(_STATE_BYTES - _DIGEST_ROOM)
        with opened(self.path / "state", os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC) as file:
            if os.pwrite(file, _digest(content) + b" " + content, 0) < _STATE_BYTES:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.path))

    @contextmanager
    def starting(self) -> Iterator[int | None]:
        """Lock the life of the campaign; yield the descriptor, ``None`` while a process lives.

        A process that is started with this descriptor has the lock until it ends.
        """
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
        with opened(self.path / "life", flags) as life:
            yield life if self._locked(life) else None

    def _locked(self, life: int) -> bool:
        deadline = time.monotonic() + _PATIENCE_S
        attempts = 0
        while True:
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(life, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return True
            attempts += 1
            progress = self.progress()
            # Whoever asks whether it lives has the lock for a moment; a process that has said its
            # last word, or was halted, ends soon.
            ends = progress is not None and (
                progress.state in _ENDED or self.is_halted(progress.session)
            )
            if time.monotonic() > deadline or (attempts > _RETRIES and not ends):
                return False
            time.sleep(_PAUSE_S)

    def lives(self) -> bool:
        """Return whether the process of the campaign lives, or is being started."""
        try:
            with opened(self.path / "life", os.O_RDONLY | os.O_CLOEXEC) as life:
                fcntl.flock(life, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except (FileNotFoundError, NotADirectoryError):
            return False
        return False

    def status(self) -> Status:
        """Return how the campaign goes."""
        # First whether it lives: what it wrote last is then there.
        lives = self.lives()
        progress = self.progress()
        if progress is None:
            return Status("waiting" if lives else "absent")
        if not lives:
            progress = self.after_death(progress)
        elif progress.began is not None and progress.state == "running":
            progress = replace(progress, running_s=time.monotonic() - progress.began)
        return progress

    def after_death(self, progress: Progress) -> Progress:
        """Return how a campaign goes whose process does not live."""
        if progress.state in _ENDED:
            return progress
        if self.is_halted(progress.session):
            return replace(progress, state="ended", stopped_because=INTERRUPTED, hint=None)
        return replace(progress, state="died", hint=None)

    def is_halted(self, session: int) -> bool:
        """Return whether this session was halted."""
        try:
            return int((self.path / "halt").read_text() or 0) >= session
        except (FileNotFoundError, NotADirectoryError):
            return False

    def halt(self) -> None:
        """Interrupt the campaign, if it goes on; its session starts nothing any more."""
        progress = self.progress()
        if progress is None or progress.state in _ENDED:
            return
        write_whole(self.path / "halt", str(progress.session).encode())
        # The process writes its number first and looks for the file then: one of the two is seen.
        progress = self.progress()
        if progress is not None and progress.process is not None:
            self._interrupt(progress.process)

    def _interrupt(self, process: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            handle = os.pidfd_open(process)
            try:
                progress = self.progress()
                # The lock is that process's: the number was not given to another one.
                if progress is not None and progress.process == process and self.lives():
                    signal.pidfd_send_signal(handle, signal.SIGINT)
            finally:
                os.close(handle)


def remove_old_campaigns(fleets: Path) -> None:
    """Remove the folders of all ended campaigns but the `MAX_ENDED_CAMPAIGNS` latest.

    Their trials stay in the ledger. A campaign that failed, died or goes on keeps its folder.
    """
    ended = []
    for state in fleets.glob("*/state"):
        progress = CampaignFolder(state.parent).progress()
        if progress is not None and progress.state == "ended":
            # Another worker of this host may remove the same folders just now.
            with contextlib.suppress(FileNotFoundError):
                ended.append((state.stat().st_mtime_ns, state.parent))
    for _, path in sorted(ended)[:-MAX_ENDED_CAMPAIGNS]:
        with (
            contextlib.suppress(FileNotFoundError),
            CampaignFolder(path).starting() as life,
        ):
            if life is not None:
                shutil.rmtree(path, ignore_errors=True)


def check_identity(identity: str) -> None:
    """Raise `UnusableInput` if a text is no identity of a run."""
    if not is_identity(identity):
        raise other_version(f"{identity!r} is no identity of a run")


def _digest(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=_DIGEST_BYTES).hexdigest().encode("ascii")
