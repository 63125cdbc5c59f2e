"""Turns errors of the system, such as a full disk, into messages with a hint."""

from __future__ import annotations

import errno
import os
import resource
from collections.abc import Iterator

from equipoise.model.errors import EquipoiseError, UnusableInput

MIN_OPEN_FILES = 24
"""Limit of open files below which commands fail; a campaign needs 20."""
_SQLITE_CANTOPEN = 14
"""Result code of SQLite for a file that cannot be opened (sqlite.org/rescode.html)."""
MAX_NAME_LETTERS = 40
"""Maximum length of a file name in a message."""


def limit_reached(error: BaseException) -> EquipoiseError | None:
    """Return an error with a hint if a limit of the system caused ``error``; else ``None``."""
    if any(map(_is_about_open_files, _causes(error))):
        limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        return UnusableInput(
            "too many open files", hint=f"raise `ulimit -n`, which is {limit} here: 256 is enough"
        )
    return None


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and the errors that caused it, each once."""
    visited: set[int] = set()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in visited:
        visited.add(id(cause))
        yield cause
        cause = cause.__cause__ or cause.__context__


def _is_about_open_files(error: BaseException) -> bool:
    if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
        return True
    if isinstance(error, EquipoiseError) and f"(os error {errno.EMFILE})" in error.what:
        # One of Equipoise's native programs reported it.
        return True
    # SQLite and tempfile report which file failed, but no reason.
    lacks_reason = getattr(error, "sqlite_errorcode", None) == _SQLITE_CANTOPEN or (
        isinstance(error, OSError) and _is_without_temporary_folder(error)
    )
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return lacks_reason and limit < MIN_OPEN_FILES


def _is_without_temporary_folder(error: OSError) -> bool:
    return error.errno == errno.ENOENT and str(error.strerror).startswith(
        "No usable temporary directory"
    )


def environment_fault(error: OSError) -> UnusableInput | None:
    """Return an error with a hint for a fault that any file may have; else ``None``."""
    name = "" if error.filename is None else str(error.filename)
    if error.errno == errno.ENAMETOOLONG:
        return UnusableInput(
            f"the file name {name[:MAX_NAME_LETTERS]}… is too long: {len(name)} letters",
            hint="use a shorter name",
        )
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return UnusableInput(
            f"no space is left on the disk{' of ' + name if name else ''}",
            # tempfile.gettempdir would try to write to the folder.
            hint="delete files on this disk, or set TMPDIR to a folder on another disk; it is "
            f"{os.environ.get('TMPDIR') or '/tmp'} now",
        )
    if _is_without_temporary_folder(error):
        return UnusableInput(
            "there is no temporary folder that can be written to",
            hint="set TMPDIR to a folder that you may write to",
        )
    if error.errno == errno.EAGAIN:
        return UnusableInput(
            "the system starts no further process or thread for this user",
            hint="raise `ulimit -u`, or end some processes",
        )
    return None
