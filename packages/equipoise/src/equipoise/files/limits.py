"""Errors of the system that mean one of its limits, and what the user can do about each."""

from __future__ import annotations

import errno
import os
import resource
from collections.abc import Iterator

from equipoise.model.errors import EquipoiseError, UnusableInput

MIN_OPEN_FILES = 24
"""Open files below which commands fail; a campaign needs 20."""
_SQLITE_CANTOPEN = 14
MAX_LETTERS = 40
"""Number of letters that a message shows of an overlong name."""


def limit_reached(error: BaseException) -> EquipoiseError | None:
    """Return the limit that an error, or an error behind it, means; ``None`` if it means none."""
    if any(map(_means_open_files, _causes(error))):
        limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        return UnusableInput(
            "too many open files", hint=f"raise `ulimit -n`, which is {limit} here: 256 is enough"
        )
    return None


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Return an error and the errors that it was raised from, each once."""
    visited: set[int] = set()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in visited:
        visited.add(id(cause))
        yield cause
        cause = cause.__cause__ or cause.__context__


def _means_open_files(error: BaseException) -> bool:
    if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
        return True
    if isinstance(error, EquipoiseError) and f"(os error {errno.EMFILE})" in error.what:
        # A native program of ours said so.
        return True
    # SQLite and tempfile name the file, not the reason.
    is_vague = getattr(error, "sqlite_errorcode", None) == _SQLITE_CANTOPEN or (
        isinstance(error, OSError) and _is_without_temporary_folder(error)
    )
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return is_vague and limit < MIN_OPEN_FILES


def _is_without_temporary_folder(error: OSError) -> bool:
    return error.errno == errno.ENOENT and str(error.strerror).startswith(
        "No usable temporary directory"
    )


def environment_fault(error: OSError) -> UnusableInput | None:
    """Return what an error says that any access to a file may meet; ``None`` for any other."""
    name = "" if error.filename is None else str(error.filename)
    if error.errno == errno.ENAMETOOLONG:
        return UnusableInput(
            f"the name {name[:MAX_LETTERS]}… of {len(name)} letters is too long", hint="shorten it"
        )
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return UnusableInput(
            f"no space is left on the disk{' of ' + name if name else ''}",
            # Asking for the usual folder would try to write to it.
            hint=f"make room there; temporary files lie in {os.environ.get('TMPDIR') or '/tmp'} "
            "(TMPDIR)",
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
