"""Run a program as another user: ``python -m tests.chaos.another_user UID PROGRAM [ARGUMENT …]``.

Python itself may lie in a folder that only root can enter. The program then runs in a mount
namespace of its own, in which the way to Python is open to everybody.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import tempfile
from pathlib import Path

_CLONE_NEWNS = 0x00020000


def open_the_way(target: Path) -> None:
    """Make a folder reachable for everybody, in this mount namespace only."""
    closed = [folder for folder in reversed(target.parents) if not folder.stat().st_mode & 0o001]
    if not closed:
        return
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_CLONE_NEWNS) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    kept = Path(tempfile.mkdtemp(prefix="kept-", dir="/var/tmp"))
    try:
        _mount("--make-rprivate", "/")
        _mount("--bind", target, kept)
        _mount("-t", "tmpfs", "-o", "mode=755", "none", closed[0])
        target.mkdir(parents=True)
        _mount("--bind", kept, target)
        subprocess.run(["umount", "--lazy", kept], check=True)
    finally:
        kept.rmdir()


def _mount(*arguments: str | Path) -> None:
    subprocess.run(["mount", *arguments], check=True)


if __name__ == "__main__":
    user = int(sys.argv[1])
    open_the_way(Path(sys.base_prefix))
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)
    os.execvp(sys.argv[2], sys.argv[2:])
