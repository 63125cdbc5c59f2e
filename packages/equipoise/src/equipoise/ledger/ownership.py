"""Who could have written a ledger: `resume` runs the commands that it holds.

As with git's "dubious ownership", a file is refused that another user owns or could replace.
"""

from __future__ import annotations

import grp
import os
import pwd
import stat
from collections.abc import Iterator
from pathlib import Path

from equipoise.model.errors import UnusableInput

TRUSTED_OWNERS = "EQUIPOISE_TRUSTED_OWNERS"
"""Variable with the numbers of further users whose ledgers are trusted, separated by commas."""
_ROOT = 0


def refuse_dubious_ownership(ledger: Path) -> None:
    """Refuse a ledger that a user who is not trusted owns or could replace.

    Trusted are this user, root, and the users that ``EQUIPOISE_TRUSTED_OWNERS`` numbers. The rule
    holds for the file, the files of its log, its folder and every parent, along links too. A folder
    that everybody may write is trusted if it is sticky, as ``/tmp`` is; a group of one is nobody
    else.

    Raise `UnusableInput`; the error names the file or the folder and its owner.
    """
    trusted = {_ROOT, os.geteuid(), *_further_owners()}
    for path in dict.fromkeys(_places(ledger)):
        try:
            status = path.lstat()
        except OSError:
            # What is missing, or cannot be reached, is reported by whoever opens it.
            continue
        if status.st_uid not in trusted:
            raise UnusableInput(
                f"the ledger {ledger} is not trusted: {path} belongs to "
                f"{_user_name(status.st_uid)}",
                hint="copy the ledger to a folder of your own, or trust that user: "
                f"{TRUSTED_OWNERS}={status.st_uid}",
            )
        if not stat.S_ISLNK(status.st_mode) and _others_may_write(status, trusted):
            raise UnusableInput(
                f"the ledger {ledger} is not trusted: other users may write to {path}",
                hint=f"`chmod go-w {path}`, or move the ledger to a folder of your own",
            )


def _places(ledger: Path) -> Iterator[Path]:
    """Yield the files of a ledger and the folders above, as named and as links lead to them."""
    for file in (ledger.absolute(), ledger.resolve()):
        yield file
        yield from (file.with_name(f"{file.name}{suffix}") for suffix in ("-wal", "-shm"))
        yield from file.parents


def _others_may_write(status: os.stat_result, trusted: set[int]) -> bool:
    mode = status.st_mode
    if stat.S_ISDIR(mode) and mode & stat.S_ISVTX:
        return False
    if mode & stat.S_IWOTH:
        return True
    return bool(mode & stat.S_IWGRP) and not _members(status.st_gid) <= trusted


def _members(group: int) -> set[int]:
    """Return the users of a group, by their number."""
    try:
        names = grp.getgrgid(group).gr_mem
    except KeyError:
        names = []
    every = pwd.getpwall()
    return {one.pw_uid for one in every if one.pw_gid == group or one.pw_name in names}


def _further_owners() -> set[int]:
    words = os.environ.get(TRUSTED_OWNERS, "").split(",")
    return {int(word) for word in words if word.strip().isdecimal()}


def _user_name(user: int) -> str:
    try:
        return f"the user {pwd.getpwuid(user).pw_name}"
    except KeyError:
        return f"the user with the number {user}"
