"""The tables of the ledger, and the steps that bring an older file up to date.

A step is a tuple of SQL statements; step ``n`` (from 0) turns a file of version ``n`` into
one of version ``n + 1``. A published step is never edited: a change is a new step.
A step that must touch existing rows drops the append-only triggers and makes them again.

Floats stand in columns without a type: SQLite keeps whole numbers of a REAL column as
integers and so loses the sign of -0.0.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Sequence

APPLICATION_ID = 0x45515053
"""``EQPS``, in the header of the file."""
IDENTITY_BYTES = 16
"""Size of the identity of a run and of a host."""

Step = tuple[str, ...]

_TABLES = {
    "environment": """CREATE TABLE environment (
        digest BLOB PRIMARY KEY NOT NULL,
        document TEXT NOT NULL
    ) WITHOUT ROWID""",
    "run": """CREATE TABLE run (
        number INTEGER PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        study TEXT NOT NULL,
        names TEXT NOT NULL,
        commands_digest BLOB NOT NULL,
        plan TEXT NOT NULL,
        started_at NOT NULL CHECK (typeof(started_at) = 'real')
    )""",
    "sitting": """CREATE TABLE sitting (
        run INTEGER NOT NULL REFERENCES run (number),
        number INTEGER NOT NULL,
        environment BLOB NOT NULL REFERENCES environment (digest),
        started_at NOT NULL CHECK (typeof(started_at) = 'real'),
        PRIMARY KEY (run, number)
    ) WITHOUT ROWID""",
    "sitting_end": """CREATE TABLE sitting_end (
        run INTEGER NOT NULL,
        sitting INTEGER NOT NULL,
        ended_at NOT NULL CHECK (typeof(ended_at) = 'real'),
        stopped_because TEXT NOT NULL,
        PRIMARY KEY (run, sitting),
        FOREIGN KEY (run, sitting) REFERENCES sitting (run, number)
    ) WITHOUT ROWID""",
    "draw": """CREATE TABLE draw (
        number INTEGER PRIMARY KEY,
        run INTEGER NOT NULL REFERENCES run (number),
        phase TEXT NOT NULL CHECK (phase IN ('warmup', 'measured')),
        block INTEGER NOT NULL,
        conditions TEXT NOT NULL,
        padding_bytes INTEGER NOT NULL,
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
        unknown TEXT,
        exit INTEGER,
        failure TEXT,
        timed_out INTEGER NOT NULL,
        washout INTEGER NOT NULL,
        error_tail TEXT,
        covariates TEXT,
        FOREIGN KEY (run, phase, block) REFERENCES draw (run, phase, block)
    )""",
    "sample": """CREATE TABLE sample (
        trial INTEGER NOT NULL REFERENCES trial (number),
        place INTEGER NOT NULL,
        metric TEXT NOT NULL,
        value CHECK (typeof(value) IN ('real', 'null')),
        iteration INTEGER,
        unit TEXT,
        better TEXT NOT NULL CHECK (better IN ('lower', 'higher')),
        PRIMARY KEY (trial, place)
    ) WITHOUT ROWID""",
    "notice": """CREATE TABLE notice (
        number INTEGER PRIMARY KEY,
        run INTEGER NOT NULL REFERENCES run (number),
        code TEXT NOT NULL,
        words TEXT NOT NULL,
        mend TEXT NOT NULL
    )""",
}
"""Statements of the first version, by the name of their table."""

_CERTIFICATE = """CREATE TABLE certificate (
    number INTEGER PRIMARY KEY,
    kernel TEXT,
    cpu_model TEXT,
    document TEXT NOT NULL
)"""

_OBSERVATION = """CREATE TABLE observation (
    number INTEGER PRIMARY KEY,
    run INTEGER NOT NULL REFERENCES run (number),
    source TEXT NOT NULL,
    condition INTEGER NOT NULL,
    repetition INTEGER NOT NULL,
    position INTEGER NOT NULL,
    observed_at NOT NULL CHECK (typeof(observed_at) = 'real'),
    document BLOB,
    failure TEXT,
    CHECK ((document IS NULL) <> (failure IS NULL))
)"""


def _refusals(table: str) -> Step:
    return tuple(
        f"CREATE TRIGGER {table}_refuses_{action.lower()} BEFORE {action} ON {table} "
        f"BEGIN SELECT RAISE(ABORT, 'the ledger is append-only: no {action} on {table}'); END"
        for action in ("UPDATE", "DELETE")
    )


_HOST = """CREATE TABLE host (
    number INTEGER PRIMARY KEY,
    identity BLOB NOT NULL CHECK (typeof(identity) = 'blob' AND length(identity) = 16),
    name TEXT NOT NULL,
    UNIQUE (identity, name)
)"""

_RUN_WITH_IDENTITY = """CREATE TABLE run (
    number INTEGER PRIMARY KEY,
    identity BLOB NOT NULL UNIQUE CHECK (typeof(identity) = 'blob' AND length(identity) = 16),
    id TEXT NOT NULL,
    host INTEGER REFERENCES host (number),
    whole BLOB CHECK (whole IS NULL OR typeof(whole) = 'blob' AND length(whole) = 16),
    place INTEGER,
    study TEXT NOT NULL,
    names TEXT NOT NULL,
    commands_digest BLOB NOT NULL,
    plan TEXT NOT NULL,
    started_at NOT NULL CHECK (typeof(started_at) = 'real'),
    CHECK ((whole IS NULL) = (place IS NULL))
)"""

_NOTICE_WITH_PLACE = """CREATE TABLE notice (
    run INTEGER NOT NULL REFERENCES run (number),
    place INTEGER NOT NULL,
    code TEXT NOT NULL,
    words TEXT NOT NULL,
    mend TEXT NOT NULL,
    PRIMARY KEY (run, place)
) WITHOUT ROWID"""

_OBSERVATION_WITH_PLACE = """CREATE TABLE observation (
    number INTEGER PRIMARY KEY,
    run INTEGER NOT NULL REFERENCES run (number),
    place INTEGER NOT NULL,
    source TEXT NOT NULL,
    condition INTEGER NOT NULL,
    repetition INTEGER NOT NULL,
    position INTEGER NOT NULL,
    observed_at NOT NULL CHECK (typeof(observed_at) = 'real'),
    document BLOB,
    failure TEXT,
    CHECK ((document IS NULL) <> (failure IS NULL)),
    UNIQUE (run, place)
)"""

_CERTIFICATE_WITH_DIGEST = """CREATE TABLE certificate (
    number INTEGER PRIMARY KEY,
    digest BLOB NOT NULL UNIQUE CHECK (typeof(digest) = 'blob' AND length(digest) = 16),
    kernel TEXT,
    cpu_model TEXT,
    document TEXT NOT NULL
)"""


def _remade(table: str, statement: str, selected: str, rows: str = "ORDER BY number") -> Step:
    """Return the statements that make a table anew out of its old rows.

    No table is renamed: that would read every view of the file, also those of its user.
    """
    return (
        f"CREATE TEMPORARY TABLE old_{table} AS SELECT * FROM main.{table}",
        f"DROP TABLE main.{table}",
        statement,
        f"INSERT INTO main.{table} SELECT {selected} FROM temp.old_{table} {rows}",
        f"DROP TABLE temp.old_{table}",
        *_refusals(table),
    )


_PLACE = "row_number() OVER (PARTITION BY run ORDER BY number) - 1"
_MERGEABLE: Step = (
    _HOST,
    *_refusals("host"),
    *_remade(
        "run",
        _RUN_WITH_IDENTITY,
        "number, identity_of_old_run(id, study, plan, started_at, (SELECT environment FROM sitting "
        "WHERE sitting.run = old_run.number ORDER BY sitting.number LIMIT 1)), "
        "id, NULL, NULL, NULL, study, names, commands_digest, plan, started_at",
    ),
    "CREATE INDEX run_by_commands ON run (commands_digest)",
    "CREATE INDEX run_by_id ON run (id)",
    "CREATE INDEX run_by_whole ON run (whole)",
    *_remade("notice", _NOTICE_WITH_PLACE, f"run, {_PLACE}, code, words, mend"),
    *_remade(
        "observation",
        _OBSERVATION_WITH_PLACE,
        f"number, run, {_PLACE}, source, condition, repetition, position, observed_at, document, "
        "failure",
    ),
    # The same certificate twice is one certificate.
    *_remade(
        "certificate",
        _CERTIFICATE_WITH_DIGEST,
        "min(number), digest_of_content(document), kernel, cpu_model, document",
        "GROUP BY document ORDER BY 1",
    ),
    "CREATE UNIQUE INDEX trial_by_place ON trial (run, phase, block, position, washout)",
)
"""Gives every row of a run a key that holds on any host, so that ledgers can be merged."""


STEPS: tuple[Step, ...] = (
    (
        *_TABLES.values(),
        "CREATE INDEX run_by_commands ON run (commands_digest)",
        "CREATE INDEX trial_by_run ON trial (run)",
        "CREATE INDEX notice_by_run ON notice (run)",
        *(trigger for table in _TABLES for trigger in _refusals(table)),
    ),
    ("ALTER TABLE trial ADD COLUMN counters TEXT", _CERTIFICATE, *_refusals("certificate")),
    ("ALTER TABLE draw ADD COLUMN layout INTEGER",),
    (
        _OBSERVATION,
        "CREATE INDEX observation_by_run ON observation (run)",
        *_refusals("observation"),
    ),
    (
        "ALTER TABLE sample ADD COLUMN resolution "
        "CHECK (resolution IS NULL OR typeof(resolution) = 'real' AND resolution > 0)",
    ),
    _MERGEABLE,
)

VERSION = len(STEPS)
"""The version of the files that this Equipoise writes."""


def version_of(connection: sqlite3.Connection) -> int:
    """Return the version that the file says it is of; 0 for a new file."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def bring_up_to_date(connection: sqlite3.Connection, steps: Sequence[Step] = STEPS) -> None:
    """Apply the steps that the file lacks, all or none; safe if two processes do it at once.

    Raises
    ------
    sqlite3.Error
        If the file cannot be written.
    """
    # A table that others refer to cannot be made anew while references are checked.
    connection.execute("PRAGMA foreign_keys = OFF")
    connection.create_function("digest_of_content", -1, digest_of_content, deterministic=True)
    connection.create_function("identity_of_old_run", 5, digest_of_content, deterministic=True)
    connection.execute("BEGIN IMMEDIATE")
    try:
        for step in steps[version_of(connection) :]:
            for statement in step:
                connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {len(steps)}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def digest_of_content(*values: str | bytes | float | None) -> bytes:
    """Return 16 bytes that name values of any kinds that SQLite knows, in their order."""
    digest = hashlib.blake2b(digest_size=IDENTITY_BYTES)
    for value in values:
        content = value if isinstance(value, bytes) else repr(value).encode()
        digest.update(f"{type(value).__name__} {len(content)} ".encode() + content)
    return digest.digest()
