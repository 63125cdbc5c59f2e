"""The limits of a case: processor time, memory, files, processes.

An audit hook sees what Python opens, makes, removes, starts and connects to. Whatever leaves the
case's folder is prevented, also because a mutated study may name any command.
"""

from __future__ import annotations

import os
import re
import resource
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

MORE_BYTES = 1 << 30
"""Memory that a case may take beyond that of its worker."""
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_PATHS = {
    **dict.fromkeys(("os.mkdir", "os.remove", "os.rmdir", "os.truncate"), 1),
    **dict.fromkeys(("os.chmod", "os.chown", "os.utime", "os.setxattr", "shutil.rmtree"), 1),
    **dict.fromkeys(("os.rename", "os.link", "os.symlink"), 2),
}
"""Arguments that are paths, by event."""
_NEVER = frozenset(
    {"subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork"}
    | {"os.forkpty", "pty.spawn", "os.kill", "os.killpg", "socket.connect", "socket.bind"}
)


class Forbidden(BaseException):
    """A case did what no reader of a file needs; nothing between it and the judge catches it."""


class OutOfTime(BaseException):
    """A case took more processor time than it may."""


class Guard:
    """Forbids what leaves a folder, while a case is running."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._folder = os.path.realpath(folder)
        self._watching = False
        sys.addaudithook(self._audit)

    @contextmanager
    def watching(self, cpu_seconds: float) -> Iterator[None]:
        """Watch what happens inside the block."""
        signal.signal(signal.SIGPROF, _out_of_time)
        # Again and again: a handler that raises inside of a callback of C is not heard.
        signal.setitimer(signal.ITIMER_PROF, cpu_seconds, 0.5)
        self._watching = True
        try:
            yield
        finally:
            self._watching = False
            signal.setitimer(signal.ITIMER_PROF, 0.0)

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self._watching:
            return
        if event in _NEVER:
            raise Forbidden(f"{event} {arguments[:2]!r:.200}")
        if event == "open":
            path, _, flags = arguments
            if isinstance(flags, int) and flags & _WRITING:
                self._check(event, path)
        elif event == "sqlite3.connect":
            name = os.fsdecode(arguments[0])
            found = re.fullmatch(r"file://(?P<path>[^?]*)\?mode=(?P<mode>\w+).*", name)
            if found is None or found["mode"] != "ro":
                self._check(event, name if found is None else found["path"])
        elif event in _PATHS:
            for path in arguments[: _PATHS[event]]:
                self._check(event, path)

    def _check(self, event: str, path: Any) -> None:
        if isinstance(path, int) or path in (":memory:", os.devnull):
            return
        # Checked without watching, or the check would watch itself.
        self._watching = False
        try:
            real = os.path.realpath(path)
        finally:
            self._watching = True
        if real != self._folder and not real.startswith(self._folder + os.sep):
            raise Forbidden(f"{event} outside of its folder: {path!r:.200}")


def limit_memory() -> None:
    """Let this process have `MORE_BYTES` beyond what it has; addresses alone are free."""
    status = Path("/proc/self/status").read_text()
    found = re.search(r"VmData:\s*(\d+) kB", status)
    now = 1024 * int(found[1]) if found else 0
    _, most = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (now + MORE_BYTES, most))


def _out_of_time(number: int, frame: FrameType | None) -> NoReturn:
    raise OutOfTime
