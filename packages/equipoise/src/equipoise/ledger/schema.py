"""The tables of the ledger, and the migration of files of earlier versions.

`CREATION` creates a ledger of version 1. ``MIGRATIONS[n]`` has the SQL statements that convert a
file of version ``n + 1`` to version ``n + 2``. A published script is never edited: a change of the
tables is a new migration. A migration that changes rows drops the append-only triggers, and creates
them again.

Columns of floats have no type, because a REAL column would lose the sign of -0.0.
"""

from __future__ import annotations

import hashlib
import sqlite3

APPLICATION_ID = 0x45515053
"""Number in the header of the file that marks a ledger: the letters ``EQPS``."""
IDENTITY_BYTES = 16
"""Size of the identity of a run and of a host."""

Statements = tuple[str, ...]
"""SQL statements of one script, in order."""

_TABLES = {
    "environment": """CREATE TABLE environment (
        digest BLOB PRIMARY KEY NOT NULL,
        document TEXT NOT NULL
    ) WITHOUT ROWID""",
    "host": """CREATE TABLE host (
        number INTEGER PRIMARY KEY,
        identity BLOB NOT NULL CHECK (typeof(identity) = 'blob' AND length(identity) = 16),
        name TEXT NOT NULL,
        UNIQUE (identity, name)
    )""",
    "run": """CREATE TABLE run (
        number INTEGER PRIMARY KEY,
        identity BLOB NOT NULL UNIQUE CHECK (typeof(identity) = 'blob' AND length(identity) = 16),
        id TEXT NOT NULL,
        host INTEGER REFERENCES host (number),
        part_of BLOB
            CHECK (part_of IS NULL OR typeof(part_of) = 'blob' AND length(part_of) = 16),
        host_index INTEGER,
        study TEXT NOT NULL,
        names TEXT NOT NULL,
        commands_digest BLOB NOT NULL,
        plan TEXT NOT NULL,
        started_at NOT NULL CHECK (typeof(started_at) = 'real'),
        CHECK ((part_of IS NULL) = (host_index IS NULL))
    )""",
    "segment": """CREATE TABLE segment (
        run INTEGER NOT NULL REFERENCES run (number),
        number INTEGER NOT NULL,
        environment BLOB NOT NULL REFERENCES environment (digest),
        started_at NOT NULL CHECK (typeof(started_at) = 'real'),
        PRIMARY KEY (run, number)
    ) WITHOUT ROWID""",
    "segment_end": """CREATE TABLE segment_end (
        run INTEGER NOT NULL,
        segment INTEGER NOT NULL,
        ended_at NOT NULL CHECK (typeof(ended_at) = 'real'),
        stopped_because TEXT NOT NULL,
        PRIMARY KEY (run, segment),
        FOREIGN KEY (run, segment) REFERENCES segment (run, number)
    ) WITHOUT ROWID""",
    "draw": """CREATE TABLE draw (
        number INTEGER PRIMARY KEY,
        run INTEGER NOT NULL REFERENCES run (number),
        phase TEXT NOT NULL CHECK (phase IN ('warmup', 'measured')),
        block INTEGER NOT NULL,
        conditions TEXT NOT NULL,
        padding_bytes INTEGER NOT NULL,
        layout INTEGER,
        UNIQUE (run, phase, block)
    )""",
    "trial": """CREATE TABLE trial (
        number INTEGER PRIMARY KEY,
        run INTEGER NOT NULL,
        phase TEXT NOT NULL,
        block INTEGER NOT NULL,
        position INTEGER NOT NULL,
        condition INTEGER NOT NULL,
        started_at NOT NULL CHECK (typeof(started_at) = 'real'),
        wall_s CHECK (typeof(wall_s) IN ('real', 'null')),
        user_s CHECK (typeof(user_s) IN ('real', 'null')),
        sys_s CHECK (typeof(sys_s) IN ('real', 'null')),
        max_rss_bytes INTEGER,
        minor_faults INTEGER,
        major_faults INTEGER,
        voluntary_switches INTEGER,
        involuntary_switches INTEGER,
        block_reads INTEGER,
        block_writes INTEGER,
        output_bytes INTEGER,
        counters TEXT,
        unknown TEXT,
        exit INTEGER,
        failure TEXT,
        failure_kind TEXT,
        washout INTEGER NOT NULL,
        error_tail TEXT,
        covariates TEXT,
        FOREIGN KEY (run, phase, block) REFERENCES draw (run, phase, block)
    )""",
    "sample": """CREATE TABLE sample (
        trial INTEGER NOT NULL REFERENCES trial (number),
        ordinal INTEGER NOT NULL,
        metric TEXT NOT NULL,
        value CHECK (typeof(value) IN ('real', 'null')),
        iteration INTEGER,
        unit TEXT,
        better TEXT NOT NULL CHECK (better IN ('lower', 'higher')),
        resolution CHECK (resolution IS NULL OR typeof(resolution) = 'real' AND resolution > 0),
        PRIMARY KEY (trial, ordinal)
    ) WITHOUT ROWID""",
    "warning": """CREATE TABLE warning (
        run INTEGER NOT NULL REFERENCES run (number),
        ordinal INTEGER NOT NULL,
        code TEXT NOT NULL,
        summary TEXT NOT NULL,
        hint TEXT NOT NULL,
        condition INTEGER,
        absent_from INTEGER,
        PRIMARY KEY (run, ordinal)
    ) WITHOUT ROWID""",
    "observation": """CREATE TABLE observation (
        number INTEGER PRIMARY KEY,
        run INTEGER NOT NULL REFERENCES run (number),
        ordinal INTEGER NOT NULL,
        source TEXT NOT NULL,
        condition INTEGER NOT NULL,
        repetition INTEGER NOT NULL,
        position INTEGER NOT NULL,
        observed_at NOT NULL CHECK (typeof(observed_at) = 'real'),
        document BLOB,
        failure TEXT,
        CHECK ((document IS NULL) <> (failure IS NULL)),
        UNIQUE (run, ordinal)
    )""",
    "certificate": """CREATE TABLE certificate (
        number INTEGER PRIMARY KEY,
        digest BLOB NOT NULL UNIQUE CHECK (typeof(digest) = 'blob' AND length(digest) = 16),
        kernel TEXT,
        cpu_model TEXT,
        document TEXT NOT NULL
    )""",
}
"""Statements that create the tables, by name."""


def _append_only_triggers(table: str) -> Statements:
    return tuple(
        f"CREATE TRIGGER {table}_refuses_{action.lower()} BEFORE {action} ON {table} "
        f"BEGIN SELECT RAISE(ABORT, 'the ledger is append-only: no {action} on {table}'); END"
        for action in ("UPDATE", "DELETE")
    )


CREATION: Statements = (
    *_TABLES.values(),
    "CREATE INDEX run_by_commands ON run (commands_digest)",
    "CREATE INDEX run_by_id ON run (id)",
    "CREATE INDEX run_by_part_of ON run (part_of)",
    "CREATE INDEX trial_by_run ON trial (run)",
    "CREATE UNIQUE INDEX trial_by_position ON trial (run, phase, block, position, washout)",
    *(trigger for table in _TABLES for trigger in _append_only_triggers(table)),
)
"""Script that creates a ledger of version 1."""
MIGRATIONS: tuple[Statements, ...] = ()
"""Migrations from version 1 to version 2, from version 2 to version 3, and so on."""


def latest_version() -> int:
    """Return the version of the files that this Equipoise writes."""
    return 1 + len(MIGRATIONS)


def version_of(connection: sqlite3.Connection) -> int:
    """Return the version in the file; 0 for a new file."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def scripts_up_to(version: int) -> tuple[Statements, ...]:
    """Return the scripts that turn an empty file into a file of ``version``."""
    return (CREATION, *MIGRATIONS)[:version]


def migrate(connection: sqlite3.Connection) -> None:
    """Create the tables of an empty file, or migrate a file of an earlier version.

    All scripts are applied, or none. Two processes may call this function at once.

    Raise `sqlite3.Error` if the file cannot be written.
    """
    # With checks of foreign keys, a migration could not recreate a referenced table.
    connection.execute("PRAGMA foreign_keys = OFF")
    connection.execute("BEGIN IMMEDIATE")
    try:
        for script in scripts_up_to(latest_version())[version_of(connection) :]:
            for statement in script:
                connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {latest_version()}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def digest_of_content(*values: str | bytes | float | None) -> bytes:
    """Return a digest, 16 bytes, of values in a given order."""
    digest = hashlib.blake2b(digest_size=IDENTITY_BYTES)
    for value in values:
        content = value if isinstance(value, bytes) else repr(value).encode()
        digest.update(f"{type(value).__name__} {len(content)} ".encode() + content)
    return digest.digest()
