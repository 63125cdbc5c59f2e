"""Opening a ledger for reading or for writing, and the check of its owner.

`equipoise resume` runs the commands in a ledger. Therefore a ledger is refused if another user owns
it or could replace it.
"""

from __future__ import annotations

import contextlib
import grp
import os
import pwd
import sqlite3
import stat
import time
from collections.abc import Iterator
from pathlib import Path

from equipoise.ledger.file import (
    damaged_ledger,
    explain_sqlite_errors,
    ledger_hint,
    not_a_ledger,
    primary_code,
    query_step_limit,
)
from equipoise.ledger.run_reference import no_run_yet
from equipoise.ledger.schema import APPLICATION_ID, latest_version, migrate, version_of
from equipoise.ledger.store import Ledger
from equipoise.ledger.untrusted import check_small_tables, distrust_file, refuse_foreign_objects
from equipoise.model.errors import UnusableInput
from equipoise.shared.spelling import option

OWN_FOLDER = ".equipoise"
"""Name of the folder that Equipoise creates for a ledger."""
_PRIVATE_FOLDER_MODE = 0o700
_PRIVATE_FILE_MODE = 0o600
_LOCK_TIMEOUT_S = 10.0
_PAGES_BEFORE_CHECKPOINT = 4096
"""Number of pages of the write-ahead log (WAL) at which SQLite copies the log into the file."""

_WAL_CREATION_ERRORS = (
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_IOERR,
)
"""Errors of SQLite if it cannot create the files of its write-ahead log."""


def open_for_writing(
    path: str | os.PathLike[str], *, durable: bool, host: str | None = None
) -> Ledger:
    """Open the ledger at ``path`` to record a campaign; create it if it is missing.

    Raise `UnusableInput` if the file is not a ledger, was written by a newer Equipoise, or is
    damaged, locked or read-only. Raise it also if another user owns or could replace the file, or
    if the disk is full.

    Parameters
    ----------
    path
        Path of the file. A new file has mode 0600, because plans contain values of environment
        variables. A missing folder is created. A new folder ``.equipoise`` has mode 0700 and a
        ``.gitignore``.
    durable
        Whether every trial survives a loss of power. If so, each trial waits for the disk. Every
        trial survives a crash of Equipoise in any case.
    host
        Name of this host for new runs; by default ``EQUIPOISE_HOST``, or the machine's name.
    """
    file = Path(path).absolute()
    with explain_sqlite_errors(file):
        _refuse_other_file_types(file)
        refuse_dubious_ownership(file)
        _make_folder(file.parent)
        _make_private_file(file)
        connection = _connect(file, "mode=rwc")
        with _closed_on_error(connection):
            _refuse_other_databases(connection, file)
            _use_write_ahead_log(connection)
            connection.execute(f"PRAGMA wal_autocheckpoint = {_PAGES_BEFORE_CHECKPOINT}")
            connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
            if version_of(connection) < latest_version():
                _migrate(connection, file)
            else:
                # This detects a read-only or locked ledger now, not after the first trial.
                connection.execute("BEGIN IMMEDIATE")
                connection.execute("ROLLBACK")
            connection.execute("PRAGMA foreign_keys = ON")
            return _checked_ledger(connection, file, host)


def open_for_reading(path: str | os.PathLike[str]) -> Ledger:
    """Open the ledger at ``path`` to read it, even while another process writes to it.

    Nothing is created or changed. A file of an earlier version is migrated in memory.

    Raise `UnusableInput` if there is no file, or the file is not a ledger, is damaged, or was
    written by a newer Equipoise. Raise it also if another user owns or could replace the file.
    """
    file = Path(path).absolute()
    with explain_sqlite_errors(file):
        _refuse_other_file_types(file)
        if not file.exists():
            raise UnusableInput(
                f"no ledger at {file}",
                hint=f"run `equipoise compare` first, or give {option('ledger', 'FILE')}",
            )
        refuse_dubious_ownership(file)
        connection = _connect_to_read(file)
        with _closed_on_error(connection):
            _refuse_other_databases(connection, file)
            if version_of(connection) == 0:
                # A process that is killed while it creates a ledger leaves an empty file.
                raise no_run_yet(file)
            if version_of(connection) < latest_version():
                connection = _migrate_copy(connection, file)
            return _checked_ledger(connection, file)


def ledger_exists(path: str | os.PathLike[str]) -> bool:
    """Return whether there is a ledger; a file without tables does not count.

    Raise `UnusableInput` if the file is not a ledger.
    """
    file = Path(path).absolute()
    if not file.exists():
        return False
    with explain_sqlite_errors(file):
        _refuse_other_file_types(file)
        refuse_dubious_ownership(file)
        with contextlib.closing(_connect_to_read(file)) as connection:
            _refuse_other_databases(connection, file)
            return version_of(connection) > 0


def _checked_ledger(connection: sqlite3.Connection, file: Path, host: str | None = None) -> Ledger:
    """Return the ledger after a check of its small tables."""
    with _closed_on_error(connection):
        with query_step_limit(connection, file):
            check_small_tables(connection, file)
        return Ledger(connection, file, host)


def _connect(file: Path, query: str) -> sqlite3.Connection:
    """Open a file that SQLite must not trust; ``query`` has the parameters of the file's URI."""
    connection = sqlite3.connect(
        f"{file.as_uri()}?{query}", uri=True, isolation_level=None, timeout=_LOCK_TIMEOUT_S
    )
    with _closed_on_error(connection):
        distrust_file(connection)
        return connection


@contextlib.contextmanager
def _closed_on_error(connection: sqlite3.Connection) -> Iterator[None]:
    try:
        yield
    except BaseException:
        connection.close()
        raise


def _connect_to_read(file: Path) -> sqlite3.Connection:
    """Open a file for reading, even if SQLite cannot create its write-ahead log."""
    connection = _connect(file, "mode=ro")
    try:
        with _closed_on_error(connection):
            version_of(connection)
            return connection
    except sqlite3.OperationalError as error:
        if primary_code(error) not in _WAL_CREATION_ERRORS:
            raise
    return _connect_without_log(file)


def _connect_without_log(file: Path) -> sqlite3.Connection:
    """Open a file on a read-only disk, where SQLite cannot create a write-ahead log.

    Raise `UnusableInput` if there is a log: the log has trials that are not in the file yet.
    """
    log_file = file.with_name(f"{file.name}-wal")
    if log_file.exists() and log_file.stat().st_size > 0:
        raise UnusableInput(
            f"the ledger {file} cannot be read where it is: its last trials are in {log_file.name} "
            "and its folder is not writable",
            hint=f"copy {file.name} and {log_file.name} to a writable folder and use the copy "
            f"with {option('ledger', 'FILE')}",
        )
    return _connect(file, "mode=ro&immutable=1")


def _migrate(connection: sqlite3.Connection, file: Path) -> None:
    try:
        with query_step_limit(connection, file):
            migrate(connection)
    except sqlite3.IntegrityError as error:
        raise damaged_ledger(file, f"a row breaks a rule of the tables ({error})") from error


def _migrate_copy(connection: sqlite3.Connection, file: Path) -> sqlite3.Connection:
    memory_copy = sqlite3.connect(":memory:", isolation_level=None)
    with _closed_on_error(memory_copy):
        distrust_file(memory_copy)
        connection.backup(memory_copy)
        _migrate(memory_copy, file)
    connection.close()
    return memory_copy


def _refuse_other_file_types(file: Path) -> None:
    if file.is_dir():
        raise not_a_ledger(file, "it is a folder")
    if file.exists() and not file.is_file():
        raise not_a_ledger(file, "it is not a regular file")


def _refuse_other_databases(connection: sqlite3.Connection, file: Path) -> None:
    """Refuse a database of another program or of a later version, and a ledger without tables.

    A new file is accepted: it is empty, and has no mark of any program.
    """
    # The transaction hides tables that another process creates between two queries.
    connection.execute("BEGIN")
    application_id = connection.execute("PRAGMA application_id").fetchone()[0]
    version = version_of(connection)
    object_count = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]
    if application_id == APPLICATION_ID and 1 <= version <= latest_version() and object_count:
        refuse_foreign_objects(connection, file, version)
    connection.execute("COMMIT")
    if application_id != APPLICATION_ID:
        if application_id == version == object_count == 0:
            return
        raise not_a_ledger(file, "it is the SQLite database of another program")
    if version > latest_version():
        raise UnusableInput(
            f"the ledger {file} was written by a newer Equipoise: its tables have version "
            f"{version}, and this Equipoise reads versions up to {latest_version()}",
            hint=f"install the latest Equipoise, or {ledger_hint()}",
        )
    if version < 1 or object_count == 0:
        raise damaged_ledger(file, "its tables are missing")


def _use_write_ahead_log(connection: sqlite3.Connection) -> None:
    """Switch on the write-ahead log: one process can write while others read.

    SQLite does not wait for a lock here, so this function retries if the file is locked.
    """
    deadline = time.monotonic() + _LOCK_TIMEOUT_S
    while connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if primary_code(error) != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
        time.sleep(0.01)


def _make_folder(folder: Path) -> None:
    if folder.is_dir():
        return
    if folder.exists():
        raise UnusableInput(f"{folder} is a file, not a folder for a ledger", hint=ledger_hint())
    is_own_folder = folder.name == OWN_FOLDER
    folder.mkdir(mode=_PRIVATE_FOLDER_MODE if is_own_folder else 0o777, parents=True, exist_ok=True)
    if is_own_folder:
        (folder / ".gitignore").write_text("*\n")


def _make_private_file(file: Path) -> None:
    """Create an empty file that only its owner can read, unless the file exists."""
    # If the file cannot be created, SQLite raises an error later.
    with contextlib.suppress(OSError):
        flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC
        os.close(os.open(file, flags, _PRIVATE_FILE_MODE))


TRUSTED_OWNERS = "EQUIPOISE_TRUSTED_OWNERS"
"""Environment variable with ids of other trusted users, separated by commas."""
_ROOT_USER_ID = 0


def refuse_dubious_ownership(ledger: Path) -> None:
    """Refuse a ledger that an untrusted user owns or could replace.

    Trusted users are this user, root, and the users in ``EQUIPOISE_TRUSTED_OWNERS``. A group is
    trusted if all members are trusted. The rule applies to the file, the files of the log, and all
    parent folders, before and after links are resolved. A sticky folder, such as ``/tmp``, is
    trusted even if everybody may write to it.

    Raise `UnusableInput` if the ledger is refused; the error names the path that is not trusted.
    """
    trusted_users = {_ROOT_USER_ID, os.geteuid(), *_trusted_owners_of_environment()}
    for path in dict.fromkeys(_files_and_folders(ledger)):
        try:
            status = path.lstat()
        except OSError:
            # Opening a missing or unreachable file gives an error later.
            continue
        if status.st_uid not in trusted_users:
            raise UnusableInput(
                f"the ledger {ledger} is not trusted: {path} belongs to "
                f"{_user_description(status.st_uid)}",
                hint="copy the ledger to a folder of your own, or trust that user with "
                f"`export {TRUSTED_OWNERS}={status.st_uid}`",
            )
        if not stat.S_ISLNK(status.st_mode) and _others_may_write(status, trusted_users):
            raise UnusableInput(
                f"the ledger {ledger} is not trusted: other users may write to {path}",
                hint=f"run `chmod go-w {path}`, or move the ledger to a folder of your own",
            )


def _files_and_folders(ledger: Path) -> Iterator[Path]:
    """Yield the files and all parent folders of a ledger, before and after links are resolved."""
    for file in (ledger.absolute(), ledger.resolve()):
        yield file
        yield from (file.with_name(f"{file.name}{suffix}") for suffix in ("-wal", "-shm"))
        yield from file.parents


def _others_may_write(status: os.stat_result, trusted_users: set[int]) -> bool:
    mode = status.st_mode
    if stat.S_ISDIR(mode) and mode & stat.S_ISVTX:
        return False
    if mode & stat.S_IWOTH:
        return True
    return bool(mode & stat.S_IWGRP) and not _users_in_group(status.st_gid) <= trusted_users


def _users_in_group(group_id: int) -> set[int]:
    try:
        names = grp.getgrgid(group_id).gr_mem
    except KeyError:
        names = []
    users = pwd.getpwall()
    return {user.pw_uid for user in users if user.pw_gid == group_id or user.pw_name in names}


def _trusted_owners_of_environment() -> set[int]:
    user_ids = os.environ.get(TRUSTED_OWNERS, "").split(",")
    return {int(user_id) for user_id in user_ids if user_id.strip().isdecimal()}


def _user_description(user_id: int) -> str:
    try:
        return f"the user {pwd.getpwuid(user_id).pw_name}"
    except KeyError:
        return f"the user with the id {user_id}"
