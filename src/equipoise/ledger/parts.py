"""A part of a run as rows: what goes from one ledger to another.

A run is a head (plan, identity, host) and five lists that only grow: events of its segments, draws,
trials with their samples, notices and observations. One process at a time writes a run, so of two
copies each list of one is the beginning of that list of the other. A part holds a stretch of each
list. `add_part` compares what both have, appends the rest, and refuses a `Fork`: two copies that
were both written on.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import astuple, replace

from equipoise.ledger.rows import (
    DRAW_COLUMNS,
    INSERT_DRAW,
    INSERT_RUN,
    INSERT_SAMPLE,
    INSERT_SITTING,
    INSERT_SITTING_END,
    NOTICE_COLUMNS,
    OBSERVATION_COLUMNS,
    SAMPLE_COLUMNS,
    TRIAL_COLUMNS,
    digest_of_text,
)
from equipoise.ledger.run_reference import name_of
from equipoise.ledger.schema import digest_of_content
from equipoise.model.errors import UnusableInput
from equipoise.model.host import Certificate

Row = tuple[Any, ...]
"""Values of the kinds that SQLite knows."""
TrialRows = tuple[Row, tuple[Row, ...]]
"""A trial, and its samples in their order."""

MOST_TRIALS = 20_000
"""Trials that are copied in one transaction: a campaign that writes meanwhile waits for its end."""
_MOST_SAMPLES = 200_000
_MOST_OBSERVED_BYTES = 8 * 1024 * 1024


class RunRefused(UnusableInput):
    """One run cannot be copied; the others of its ledger can."""


class Fork(RunRefused):
    """Two copies of a run were both written on: neither is the beginning of the other."""


class Cursor(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Number of rows in each list of a run."""

    events: int = 0
    draws: int = 0
    trials: int = 0
    notices: int = 0
    observations: int = 0

    def reaches(self, other: Cursor) -> bool:
        """Return whether each list has at least as many rows as the other cursor counts."""
        return all(own >= its for own, its in zip(astuple(self), astuple(other), strict=True))


class Head(Struct, frozen=True, array_like=True):
    """Row of a run; the same in every ledger."""

    identity: bytes
    id: str
    host: tuple[bytes, str] | None
    """Identity and name."""
    fleet: bytes | None
    place: int | None
    study: str
    names: str
    commands_digest: bytes
    plan: str
    started_at: float


class RunPart(Struct, frozen=True, array_like=True):
    """Stretches of the lists of a run; each begins at the row that ``start`` counts."""

    head: Head
    start: Cursor
    events: tuple[Row, ...]
    """Number of the segment, its environment or null, the moment, and why it ended or null."""
    draws: tuple[Row, ...]
    trials: tuple[TrialRows, ...]
    notices: tuple[Row, ...]
    observations: tuple[Row, ...]

    @property
    def end(self) -> Cursor:
        """Place behind the last row of each list."""
        return Cursor(
            *(
                start + len(rows)
                for start, rows in zip(astuple(self.start), self.lists, strict=True)
            )
        )

    @property
    def lists(self) -> tuple[Sequence[Any], ...]:
        """The lists, in the order of a cursor."""
        return (self.events, self.draws, self.trials, self.notices, self.observations)


_SELECT_HEAD = """
    SELECT run.identity, id, host.identity, host.name, fleet, place, study, names, commands_digest,
        plan, started_at
    FROM run LEFT JOIN host ON host.number = run.host WHERE run.number = ?
"""
_SELECT_EVENTS = """
    SELECT number, document, moment, because FROM (
        SELECT number, 0 AS ends, document, started_at AS moment, NULL AS because
        FROM sitting JOIN environment ON environment.digest = sitting.environment WHERE run = ?1
        UNION ALL
        SELECT sitting, 1, NULL, ended_at, stopped_because FROM sitting_end WHERE run = ?1
    ) ORDER BY number, ends LIMIT ?2 OFFSET ?3
"""
_SELECT_DRAWS = f"SELECT {DRAW_COLUMNS} FROM draw WHERE run = ? ORDER BY number LIMIT ? OFFSET ?"
_SELECT_TRIALS = (
    f"SELECT number, {TRIAL_COLUMNS} FROM trial WHERE run = ? ORDER BY number LIMIT ? OFFSET ?"
)
_SELECT_SAMPLES = f"""
    SELECT sample.trial, {SAMPLE_COLUMNS}
    FROM sample JOIN trial ON trial.number = sample.trial
    WHERE sample.trial BETWEEN ?2 AND ?3 AND trial.run = ?1 ORDER BY sample.trial, sample.place
"""
_SELECT_NOTICES = (
    f"SELECT {NOTICE_COLUMNS} FROM notice WHERE run = ? ORDER BY place LIMIT ? OFFSET ?"
)
_SELECT_OBSERVATIONS = (
    f"SELECT {OBSERVATION_COLUMNS} FROM observation WHERE run = ? ORDER BY place LIMIT ? OFFSET ?"
)
_COUNT_ROWS = """
    SELECT (SELECT count(*) FROM sitting JOIN environment
            ON environment.digest = sitting.environment WHERE run = ?1)
            + (SELECT count(*) FROM sitting_end WHERE run = ?1),
        (SELECT count(*) FROM draw WHERE run = ?1),
        (SELECT count(*) FROM trial WHERE run = ?1),
        (SELECT count(*) FROM notice WHERE run = ?1),
        (SELECT count(*) FROM observation WHERE run = ?1)
"""
_EVERYTHING = -1


def cursor_of(connection: sqlite3.Connection, run: int) -> Cursor:
    """Return where the run of a number ends in this ledger."""
    return Cursor(*connection.execute(_COUNT_ROWS, (run,)).fetchone())


def run_of(connection: sqlite3.Connection, identity: bytes) -> int | None:
    """Return the number of the run of an identity; ``None`` if it is not here."""
    statement = "SELECT number FROM run WHERE identity = ?"
    row = connection.execute(statement, (identity,)).fetchone()
    return None if row is None else int(row[0])


def read_part(
    connection: sqlite3.Connection, run: int, after: Cursor, most_trials: int
) -> tuple[RunPart, bool]:
    """Return a part of a run that goes on from a cursor, and whether more is there.

    The part begins with the last row before the cursor, so that a fork is seen. Draws come before
    trials, and everything else behind the last trial: a copy that is behind has not ended yet.
    """
    have = cursor_of(connection, run)
    anchors = (max(0, min(pair) - 1) for pair in zip(astuple(after), astuple(have), strict=True))
    # An observation may be large, and is not sent twice.
    start = replace(Cursor(*anchors), observations=min(after.observations, have.observations))
    draws = _rows(connection, _SELECT_DRAWS, run, start.draws, most_trials + 1)
    drawn = start.draws + len(draws) == have.draws
    most = most_trials + 1 if drawn else after.trials - start.trials
    trials = _read_trials(connection, run, start.trials, most)
    whole = drawn and start.trials + len(trials) == have.trials

    def rest(statement: str, begin: int, known: int) -> tuple[Row, ...]:
        most = _EVERYTHING if whole else known - begin
        return _rows(connection, statement, run, begin, most)

    part = RunPart(
        _head(connection, run),
        start,
        rest(_SELECT_EVENTS, start.events, max(after.events, 1)),
        draws,
        trials,
        rest(_SELECT_NOTICES, start.notices, after.notices),
        _read_observations(connection, run, start.observations) if whole else (),
    )
    return part, part.end != have


def add_part(connection: sqlite3.Connection, path: Path, part: RunPart) -> int:
    """Append what a part has more than the ledger; return the number of new trials.

    The caller holds the transaction, and undoes it if this raises.

    Raises
    ------
    Fork
        The part contradicts the ledger's copy.
    RunRefused
        The part repeats a trial, or has none of the draws of one.
    UnusableInput
        The ledger's copy ends before the part begins.
    """
    run = run_of(connection, part.head.identity)
    try:
        if run is None:
            run = _insert_head(connection, part.head)
        else:
            check_part(connection, path, run, part)
        have = cursor_of(connection, run)
        if not have.reaches(part.start):
            raise UnusableInput(
                f"a slice of run {part.head.id} begins behind the end of the copy in {path}",
                hint="ask for it after the cursor of this copy",
            )
        new = [
            rows[end - start :]
            for rows, start, end in zip(part.lists, astuple(part.start), astuple(have), strict=True)
        ]
        for append, rows in zip(_APPENDING, new, strict=True):
            append(connection, run, rows)
    except (sqlite3.IntegrityError, sqlite3.ProgrammingError, OverflowError) as error:
        raise RunRefused(
            f"run {part.head.id} is not one that Equipoise records: {error}",
            hint="ask whoever sent it for a sound copy",
        ) from error
    return len(new[2])


def check_part(connection: sqlite3.Connection, path: Path, run: int, part: RunPart) -> None:
    """Compare the rows that a part and the ledger's copy of its run both have.

    Raises
    ------
    Fork
        They differ.
    """
    if _head(connection, run) != part.head:
        raise _fork(connection, path, run, "plan")
    for what, read, start, rows in (
        ("segment", _reader(_SELECT_EVENTS), part.start.events, part.events),
        ("draw", _reader(_SELECT_DRAWS), part.start.draws, part.draws),
        ("trial", _read_trials, part.start.trials, part.trials),
        ("warning", _reader(_SELECT_NOTICES), part.start.notices, part.notices),
        ("observation", _reader(_SELECT_OBSERVATIONS), part.start.observations, part.observations),
    ):
        place = 0
        while place < len(rows):
            own = read(connection, run, start + place, len(rows) - place)
            if own != rows[place : place + len(own)]:
                raise _fork(connection, path, run, what)
            if not own:
                break
            place += len(own)


def _fork(connection: sqlite3.Connection, path: Path, run: int, what: str) -> Fork:
    name = name_of(connection, run)
    return Fork(
        f"two copies of run {name} went on in different ways: the one in {path} has another {what}",
        hint="a run is resumed in one ledger only; both copies stay as they are",
    )


def _reader(
    statement: str,
) -> Callable[[sqlite3.Connection, int, int, int], tuple[Any, ...]]:
    return lambda connection, run, start, most: _rows(connection, statement, run, start, most)


def _rows(
    connection: sqlite3.Connection, statement: str, run: int, start: int, most: int
) -> tuple[Row, ...]:
    return tuple(connection.execute(statement, (run, most, start)))


def _read_trials(
    connection: sqlite3.Connection, run: int, start: int, most: int
) -> tuple[Any, ...]:
    """Read trials with their samples; fewer than asked for if these have very many samples."""
    trials = connection.execute(_SELECT_TRIALS, (run, most, start)).fetchall()
    if not trials:
        return ()
    samples: dict[int, list[Row]] = {}
    count = 0
    stretch = (run, trials[0][0], trials[-1][0])
    for trial, *sample in connection.execute(_SELECT_SAMPLES, stretch):
        if trial not in samples and count >= _MOST_SAMPLES:
            trials = [row for row in trials if row[0] < trial]
            break
        samples.setdefault(trial, []).append(tuple(sample))
        count += 1
    return tuple((row[1:], tuple(samples.get(row[0], ()))) for row in trials)


def _read_observations(connection: sqlite3.Connection, run: int, start: int) -> tuple[Row, ...]:
    observations: list[Row] = []
    size = 0
    for row in connection.execute(_SELECT_OBSERVATIONS, (run, _EVERYTHING, start)):
        observations.append(row)
        size += len(row[5] or b"")
        if size > _MOST_OBSERVED_BYTES:
            break
    return tuple(observations)


def _head(connection: sqlite3.Connection, run: int) -> Head:
    identity, identifier, host, name, *rest = connection.execute(_SELECT_HEAD, (run,)).fetchone()
    return Head(identity, identifier, None if host is None else (host, name), *rest)


def insert_host(connection: sqlite3.Connection, identity: bytes, name: str) -> int:
    """Return the number of a host under this name, which gets a row if it has none."""
    connection.execute(
        "INSERT INTO host (identity, name) VALUES (?, ?) ON CONFLICT DO NOTHING", (identity, name)
    )
    statement = "SELECT number FROM host WHERE identity = ? AND name = ?"
    return int(connection.execute(statement, (identity, name)).fetchone()[0])


def insert_environment(connection: sqlite3.Connection, document: str) -> bytes:
    """Return the digest of an environment, which gets a row if it has none."""
    digest = digest_of_text(document)
    connection.execute(
        "INSERT INTO environment (digest, document) VALUES (?, ?) ON CONFLICT DO NOTHING",
        (digest, document),
    )
    return digest


def insert_certificate(
    connection: sqlite3.Connection, certificate: Certificate, document: str
) -> None:
    """Insert a certificate, unless the same document is there."""
    connection.execute(
        "INSERT INTO certificate (digest, kernel, cpu_model, document) VALUES (?, ?, ?, ?) "
        "ON CONFLICT DO NOTHING",
        (digest_of_content(document), certificate.kernel, certificate.cpu_model, document),
    )


def _insert_head(connection: sqlite3.Connection, head: Head) -> int:
    identity, identifier, host, *rest = astuple(head)
    number = None if host is None else insert_host(connection, *host)
    run = connection.execute(INSERT_RUN, (identity, identifier, number, *rest)).lastrowid
    assert run is not None
    return run


def _append_events(connection: sqlite3.Connection, run: int, events: Sequence[Row]) -> None:
    for number, document, moment, because in events:
        if document is None:
            connection.execute(INSERT_SITTING_END, (run, number, moment, because))
        else:
            digest = insert_environment(connection, str(document))
            connection.execute(INSERT_SITTING, (run, number, digest, moment))


def _append_draws(connection: sqlite3.Connection, run: int, draws: Sequence[Row]) -> None:
    connection.executemany(INSERT_DRAW, ((run, *draw) for draw in draws))


_INSERT_NUMBERED_TRIAL = (
    f"INSERT INTO trial (number, run, {TRIAL_COLUMNS}) "
    f"VALUES (?, ?{', ?' * (TRIAL_COLUMNS.count(',') + 1)})"
)


def _append_trials(connection: sqlite3.Connection, run: int, trials: Sequence[TrialRows]) -> None:
    statement = "SELECT coalesce(max(number), 0) + 1 FROM trial"
    first: int = connection.execute(statement).fetchone()[0]
    connection.executemany(
        _INSERT_NUMBERED_TRIAL,
        ((number, run, *trial) for number, (trial, _) in enumerate(trials, first)),
    )
    connection.executemany(
        INSERT_SAMPLE,
        (
            (number, place, *sample)
            for number, (_, samples) in enumerate(trials, first)
            for place, sample in enumerate(samples)
        ),
    )


def _append_with_place(table: str, columns: str) -> Callable[..., None]:
    values = ", ?" * (columns.count(",") + 1)
    statement = f"INSERT INTO {table} (run, place, {columns}) VALUES (?, ?{values})"

    def append(connection: sqlite3.Connection, run: int, rows: Sequence[Row]) -> None:
        count = f"SELECT count(*) FROM {table} WHERE run = ?"
        (first,) = connection.execute(count, (run,)).fetchone()
        connection.executemany(
            statement, ((run, place, *row) for place, row in enumerate(rows, first))
        )

    return append


_APPENDING: tuple[Callable[..., None], ...] = (
    _append_events,
    _append_draws,
    _append_trials,
    _append_with_place("notice", NOTICE_COLUMNS),
    _append_with_place("observation", OBSERVATION_COLUMNS),
)
