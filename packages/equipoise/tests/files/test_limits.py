"""An error caused by a system limit names the limit, even if another error contains it."""

from __future__ import annotations

import errno
import os
import resource
import sqlite3
from collections.abc import Iterator

import pytest

from equipoise.files.limits import environment_fault, limit_reached
from equipoise.model.errors import EquipoiseError, UnusableInput

OPEN_FILES = OSError(errno.EMFILE, os.strerror(errno.EMFILE))


def raised(error: Exception, behind: BaseException, *, shown: bool) -> Exception:
    """The error, after it was raised while another one was handled."""
    try:
        try:
            raise behind
        except BaseException:
            raise error from (behind if shown else None)
    except Exception as caught:
        return caught


@pytest.mark.parametrize(
    "error",
    [
        OPEN_FILES,
        OSError(errno.ENFILE, os.strerror(errno.ENFILE)),
        raised(EquipoiseError("the launcher cannot be started"), OPEN_FILES, shown=False),
        raised(ValueError("no program"), OPEN_FILES, shown=True),
        EquipoiseError("the launcher died: Too many open files (os error 24)"),
    ],
)
def test_too_many_open_files_are_found_behind_other_errors(error: Exception) -> None:
    explained = limit_reached(error)
    assert explained is not None
    assert explained.what == "too many open files"
    assert "ulimit -n" in str(explained.hint)


def test_other_errors_do_not_mean_a_limit() -> None:
    assert limit_reached(raised(ValueError("a"), KeyError("b"), shown=True)) is None
    assert limit_reached(UnusableInput("no such file")) is None


@pytest.fixture
def few_files() -> Iterator[None]:
    """Lower the limit of open files until no file can be opened."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, limits[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def test_vague_errors_of_sqlite_and_tempfile_are_the_limit_if_it_is_low(few_files: None) -> None:
    with pytest.raises(sqlite3.OperationalError) as caught:
        sqlite3.connect("/tmp/never-made.db")
    vague = FileNotFoundError(errno.ENOENT, "No usable temporary directory found in ['/tmp']")
    for error in (caught.value, vague):
        explained = limit_reached(error)
        assert explained is not None
        assert explained.what == "too many open files"


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.ENOSPC, "no space is left on the disk of /there/file"),
        (errno.ENAMETOOLONG, "is too long: 11 letters"),
        (errno.EAGAIN, "no further process"),
    ],
)
def test_errors_of_any_file_access_are_environment_errors(number: int, words: str) -> None:
    explained = environment_fault(OSError(number, os.strerror(number), "/there/file"))
    assert explained is not None
    assert words in explained.what
    assert explained.hint


def test_vague_errors_without_a_low_limit_are_unchanged() -> None:
    vague = FileNotFoundError(errno.ENOENT, "No usable temporary directory found in ['/tmp']")
    assert limit_reached(vague) is None
    explained = environment_fault(vague)
    assert explained is not None
    assert "TMPDIR" in str(explained.hint)
    assert environment_fault(OSError(errno.EIO, "i/o error", "/there")) is None
