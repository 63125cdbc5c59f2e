"""Parts of runs, which are copied from one ledger to another as rows or as bytes.

A run is a head (plan, identity, host) and five lists that only grow: events (starts and ends of
segments), draws, trials with their samples, warnings (warnings) and observations. A part contains
consecutive rows of each list. `add_part` compares the rows that both ledgers have, and appends the
rest. It refuses a `Fork`: two copies of a run that were both continued.

A slice is a part as compressed MessagePack. The sender of a slice may be hostile. So the size of a
slice is bounded, and the rows are first checked in a ledger in memory.
"""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct
from msgspec.structs import astuple, replace

from equipoise.ledger.rows import (
    DRAW_COLUMNS,
    OBSERVATION_COLUMNS,
    SAMPLE_COLUMNS,
    SELECT_DRAWS,
    SELECT_OBSERVATIONS,
    SELECT_TRIALS,
    SELECT_WARNINGS,
    TRIAL_COLUMNS,
    WARNING_COLUMNS,
    Row,
    TrialRows,
    check_run,
    digest_of_text,
)
from equipoise.ledger.run_reference import name_of
from equipoise.ledger.schema import digest_of_content, migrate
from equipoise.ledger.untrusted import MAX_ROW_BYTES, check_small_tables
from equipoise.model.errors import UnusableInput
from equipoise.model.host import Certificate
from equipoise.shared.safe_text import shortened

MAX_TRIALS = 20_000
"""Maximum number of trials in one transaction. A running campaign waits for the transaction."""
_MAX_SAMPLES, _MAX_OBSERVATION_BYTES = 200_000, 8 * 1024 * 1024
"""Numbers of samples, and of bytes of observations, after which a part ends."""
MAX_SLICE_BYTES = MAX_ROW_BYTES + 64 * 1024 * 1024
"""Maximum size of a slice before compression."""
_SLICE_FORMAT = 1
"""Version of the format of slices."""
_FAST_COMPRESSION = 1
"""Compression level of zlib."""
_SQLITE_TYPES = (str, bytes, int, float, type(None))
_SLICE_NAME = Path("slice")
"""Stands for the file in messages about a slice."""


class RunRefused(UnusableInput):
    """Error about one run that cannot be copied. Other runs of the ledger can be copied."""


class Fork(RunRefused):
    """Error about two copies of a run that were continued differently."""


class Cursor(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Number of rows in each list of a run."""

    events: int = 0
    draws: int = 0
    trials: int = 0
    warnings: int = 0
    observations: int = 0

    def includes(self, other: Cursor) -> bool:
        """Return whether each list has at least as many rows as in the other cursor."""
        pairs = zip(astuple(self), astuple(other), strict=True)
        return all(count >= other_count for count, other_count in pairs)


class Head(Struct, frozen=True, array_like=True):
    """The row of a run, equal in all ledgers."""

    identity: bytes
    id: str
    """Name of the run, from its start: ``20261120-113005-4f2a``."""
    host: tuple[bytes, str] | None
    """Identity and name of the host."""
    part_of: bytes | None
    """Identity of the fleet's run if a host of the fleet recorded this run."""
    host_index: int | None
    """Index of the host in the fleet, from 0."""
    study: str
    names: str
    """Names of the conditions, as JSON."""
    commands_digest: bytes
    plan: str
    """The plan, as JSON."""
    started_at: float


class RunPart(Struct, frozen=True, array_like=True):
    """Consecutive rows of each list of a run."""

    head: Head
    start: Cursor
    """Number of rows in each list before this part."""
    events: tuple[Row, ...]
    """Starts and ends of segments: number, environment or null, time, reason of the end or null."""
    draws: tuple[Row, ...]
    trials: tuple[TrialRows, ...]
    warnings: tuple[Row, ...]
    observations: tuple[Row, ...]

    @property
    def end(self) -> Cursor:
        """Number of rows in each list up to the end of this part."""
        return Cursor(
            *(
                start + len(rows)
                for start, rows in zip(astuple(self.start), self.lists, strict=True)
            )
        )

    @property
    def lists(self) -> tuple[Sequence[Any], ...]:
        """The lists, in the order of the fields of `Cursor`."""
        return (self.events, self.draws, self.trials, self.warnings, self.observations)


_SELECT_HEAD = """
    SELECT run.identity, id, host.identity, host.name, part_of, host_index, study, names,
        commands_digest, plan, started_at
    FROM run LEFT JOIN host ON host.number = run.host WHERE run.number = ?
"""
_SELECT_EVENTS = """
    SELECT number, document, moment, because FROM (
        SELECT number, 0 AS ends, document, started_at AS moment, NULL AS because
        FROM segment JOIN environment ON environment.digest = segment.environment WHERE run = ?1
        UNION ALL
        SELECT segment, 1, NULL, ended_at, stopped_because FROM segment_end WHERE run = ?1
    ) ORDER BY number, ends
"""
_SELECT_SAMPLES = f"""
    SELECT sample.trial, {SAMPLE_COLUMNS}
    FROM sample JOIN trial ON trial.number = sample.trial
    WHERE sample.trial BETWEEN ?2 AND ?3 AND trial.run = ?1 ORDER BY sample.trial, sample.ordinal
"""
_COUNT_ROWS = """
    SELECT (SELECT count(*) FROM segment JOIN environment
            ON environment.digest = segment.environment WHERE run = ?1)
            + (SELECT count(*) FROM segment_end WHERE run = ?1),
        (SELECT count(*) FROM draw WHERE run = ?1),
        (SELECT count(*) FROM trial WHERE run = ?1),
        (SELECT count(*) FROM warning WHERE run = ?1),
        (SELECT count(*) FROM observation WHERE run = ?1)
"""
_NO_LIMIT = -1
"""Number of rows that means all rows in SQLite's LIMIT."""


def _insert_statement(table: str, columns: str) -> str:
    return f"INSERT INTO {table} ({columns}) VALUES (?{', ?' * columns.count(',')})"


_INSERT_RUN = _insert_statement(
    "run",
    "identity, id, host, part_of, host_index, study, names, commands_digest, plan, started_at",
)
_INSERT_SEGMENT = _insert_statement("segment", "run, number, environment, started_at")
_INSERT_SEGMENT_END = _insert_statement("segment_end", "run, segment, ended_at, stopped_because")
_INSERT_DRAW = _insert_statement("draw", f"run, {DRAW_COLUMNS}")
_INSERT_TRIAL = _insert_statement("trial", f"number, run, {TRIAL_COLUMNS}")
_INSERT_SAMPLE = _insert_statement("sample", f"trial, ordinal, {SAMPLE_COLUMNS}")


def cursor_of(connection: sqlite3.Connection, run: int) -> Cursor:
    """Return the number of rows that this ledger has in each list of a run."""
    return Cursor(*connection.execute(_COUNT_ROWS, (run,)).fetchone())


def run_of(connection: sqlite3.Connection, identity: bytes) -> int | None:
    """Return the number of the run with an identity; ``None`` if the ledger lacks the run."""
    statement = "SELECT number FROM run WHERE identity = ?"
    row = connection.execute(statement, (identity,)).fetchone()
    return None if row is None else int(row[0])


def read_part(
    connection: sqlite3.Connection, run: int, after: Cursor, max_trials: int
) -> tuple[RunPart, bool]:
    """Return the part of a run after a cursor, and whether there is more.

    The part repeats the last row before the cursor, so that `add_part` detects a fork. The parts of
    a run have first all draws, then all trials, then the other rows. So an incomplete copy lacks
    the end of the last segment.
    """
    end = cursor_of(connection, run)
    counts = (
        max(0, min(after_count, end_count) - 1)
        for after_count, end_count in zip(astuple(after), astuple(end), strict=True)
    )
    # Observations may be large, so the last observation is not repeated.
    start = replace(Cursor(*counts), observations=min(after.observations, end.observations))
    draws = _query(connection, SELECT_DRAWS, run, start.draws, max_trials + 1)
    has_all_draws = start.draws + len(draws) == end.draws
    max_rows = max_trials + 1 if has_all_draws else after.trials - start.trials
    trials = _read_trials(connection, run, start.trials, max_rows)
    is_complete = has_all_draws and start.trials + len(trials) == end.trials

    def read_list(statement: str, begin: int, copied_end: int) -> tuple[Row, ...]:
        """Read a list from ``begin``; before the last part, only up to ``copied_end``."""
        max_rows = _NO_LIMIT if is_complete else copied_end - begin
        return _query(connection, statement, run, begin, max_rows)

    part = RunPart(
        _read_head(connection, run),
        start,
        read_list(_SELECT_EVENTS, start.events, max(after.events, 1)),
        draws,
        trials,
        read_list(SELECT_WARNINGS, start.warnings, after.warnings),
        _read_observations(connection, run, start.observations) if is_complete else (),
    )
    return part, part.end != end


def add_part(connection: sqlite3.Connection, path: Path, part: RunPart) -> int:
    """Append the rows of a part that the ledger lacks; return the number of new trials.

    The caller opens the transaction, and undoes it on an exception.

    Raise `Fork` if the part contradicts the ledger's copy. Raise `RunRefused` if the part repeats a
    trial or lacks a draw. Raise `UnusableInput` if the ledger's copy ends before the part begins.
    """
    run = run_of(connection, part.head.identity)
    try:
        if run is None:
            run = insert_head(connection, part.head)
        else:
            check_part(connection, path, run, part)
        copy_end = cursor_of(connection, run)
        if not copy_end.includes(part.start):
            raise UnusableInput(
                f"a slice of run {part.head.id} begins after the end of the copy in {path}",
                hint="request a slice from the end of this copy, which `Ledger.cursor` returns",
            )
        ends = astuple(copy_end)
        lists = zip(_LISTS, part.lists, astuple(part.start), ends, strict=True)
        for run_list, rows, start, end in lists:
            run_list.append(connection, run, rows[end - start :])
    except (sqlite3.IntegrityError, sqlite3.ProgrammingError, OverflowError) as error:
        raise RunRefused(
            f"run {part.head.id} has rows that Equipoise never records: {error}",
            hint="ask the sender for an undamaged copy",
        ) from error
    return max(0, part.end.trials - copy_end.trials)


def check_part(connection: sqlite3.Connection, path: Path, run: int, part: RunPart) -> None:
    """Raise `Fork` if a row of the part differs from the ledger's copy of the run."""
    if _read_head(connection, run) != part.head:
        raise _fork_error(connection, path, run, "plan")
    for run_list, start, rows in zip(_LISTS, astuple(part.start), part.lists, strict=True):
        index = 0
        while index < len(rows):
            recorded_rows = run_list.read(connection, run, start + index, len(rows) - index)
            if recorded_rows != rows[index : index + len(recorded_rows)]:
                raise _fork_error(connection, path, run, run_list.row_name)
            if not recorded_rows:
                break
            index += len(recorded_rows)


def _fork_error(connection: sqlite3.Connection, path: Path, run: int, row_name: str) -> Fork:
    name = name_of(connection, run)
    return Fork(
        f"two copies of run {name} were continued differently: {path} has a different {row_name}",
        hint="resume a run in only one ledger; both copies stay unchanged",
    )


def _list_reader(statement: str) -> Callable[[sqlite3.Connection, int, int, int], tuple[Any, ...]]:
    return lambda connection, run, start, limit: _query(connection, statement, run, start, limit)


def _query(
    connection: sqlite3.Connection, statement: str, run: int, start: int, max_rows: int
) -> tuple[Row, ...]:
    return tuple(connection.execute(f"{statement} LIMIT ? OFFSET ?", (run, max_rows, start)))


def _read_trials(
    connection: sqlite3.Connection, run: int, start: int, max_rows: int
) -> tuple[Any, ...]:
    """Read up to ``max_rows`` trials with their samples; fewer if there are many samples."""
    trials = _query(connection, SELECT_TRIALS, run, start, max_rows)
    if not trials:
        return ()
    samples: dict[int, list[Row]] = {}
    sample_count = 0
    # The first column of a row is the number of the trial.
    first_number, last_number = trials[0][0], trials[-1][0]
    for number, *sample in connection.execute(_SELECT_SAMPLES, (run, first_number, last_number)):
        if number not in samples and sample_count >= _MAX_SAMPLES:
            trials = tuple(row for row in trials if row[0] < number)
            break
        samples.setdefault(number, []).append(tuple(sample))
        sample_count += 1
    return tuple((row[1:], tuple(samples.get(row[0], ()))) for row in trials)


def _read_observations(connection: sqlite3.Connection, run: int, start: int) -> tuple[Row, ...]:
    observations: list[Row] = []
    size_bytes = 0
    statement = f"{SELECT_OBSERVATIONS} LIMIT ? OFFSET ?"
    for row in connection.execute(statement, (run, _NO_LIMIT, start)):
        observations.append(row)
        *_, document, _failure = row
        size_bytes += len(document or b"")
        if size_bytes > _MAX_OBSERVATION_BYTES:
            break
    return tuple(observations)


def _read_head(connection: sqlite3.Connection, run: int) -> Head:
    row = connection.execute(_SELECT_HEAD, (run,)).fetchone()
    identity, identifier, host_identity, host_name, *rest = row
    host = None if host_identity is None else (host_identity, host_name)
    return Head(identity, identifier, host, *rest)


def _insert_host(connection: sqlite3.Connection, identity: bytes, name: str) -> int:
    connection.execute(
        "INSERT INTO host (identity, name) VALUES (?, ?) ON CONFLICT DO NOTHING", (identity, name)
    )
    statement = "SELECT number FROM host WHERE identity = ? AND name = ?"
    return int(connection.execute(statement, (identity, name)).fetchone()[0])


def insert_environment(connection: sqlite3.Connection, document: str) -> bytes:
    """Insert an environment, unless the ledger has it; return its digest."""
    digest = digest_of_text(document)
    connection.execute(
        "INSERT INTO environment (digest, document) VALUES (?, ?) ON CONFLICT DO NOTHING",
        (digest, document),
    )
    return digest


def insert_certificate(
    connection: sqlite3.Connection, certificate: Certificate, document: str
) -> None:
    """Insert a certificate, unless the ledger has the same document."""
    connection.execute(
        "INSERT INTO certificate (digest, kernel, cpu_model, document) VALUES (?, ?, ?, ?) "
        "ON CONFLICT DO NOTHING",
        (digest_of_content(document), certificate.kernel, certificate.cpu_model, document),
    )


def insert_head(connection: sqlite3.Connection, head: Head) -> int:
    """Insert the row of a run; return its number."""
    identity, identifier, host, *rest = astuple(head)
    host_number = None if host is None else _insert_host(connection, *host)
    run = connection.execute(_INSERT_RUN, (identity, identifier, host_number, *rest)).lastrowid
    assert run is not None
    return run


def append_events(connection: sqlite3.Connection, run: int, events: Sequence[Row]) -> None:
    """Append starts and ends of segments; ``events`` are like `RunPart.events`."""
    for number, document, time, reason in events:
        if document is None:
            connection.execute(_INSERT_SEGMENT_END, (run, number, time, reason))
        else:
            digest = insert_environment(connection, str(document))
            connection.execute(_INSERT_SEGMENT, (run, number, digest, time))


def append_draws(connection: sqlite3.Connection, run: int, draws: Sequence[Row]) -> None:
    """Append draws to a run."""
    connection.executemany(_INSERT_DRAW, ((run, *draw) for draw in draws))


def append_trials(connection: sqlite3.Connection, run: int, trials: Sequence[TrialRows]) -> None:
    """Append trials with their samples. The ledger must have the draws of the trials."""
    statement = "SELECT coalesce(max(number), 0) + 1 FROM trial"
    first_number: int = connection.execute(statement).fetchone()[0]
    connection.executemany(
        _INSERT_TRIAL,
        ((number, run, *trial) for number, (trial, _) in enumerate(trials, first_number)),
    )
    connection.executemany(
        _INSERT_SAMPLE,
        (
            (number, position, *sample)
            for number, (_, samples) in enumerate(trials, first_number)
            for position, sample in enumerate(samples)
        ),
    )


def _appender(table: str, columns: str) -> Callable[..., None]:
    statement = _insert_statement(table, f"run, ordinal, {columns}")

    def append(connection: sqlite3.Connection, run: int, rows: Sequence[Row]) -> None:
        count = f"SELECT count(*) FROM {table} WHERE run = ?"
        (first_number,) = connection.execute(count, (run,)).fetchone()
        connection.executemany(
            statement, ((run, position, *row) for position, row in enumerate(rows, first_number))
        )

    return append


append_warnings = _appender("warning", WARNING_COLUMNS)
append_observations = _appender("observation", OBSERVATION_COLUMNS)


class _RunList(NamedTuple):
    """One of the five lists of a run, with functions that read and append its rows."""

    row_name: str
    """Name of a row in messages."""
    read: Callable[[sqlite3.Connection, int, int, int], tuple[Any, ...]]
    """Returns rows; arguments: connection, number of the run, first row, maximum number of rows."""
    append: Callable[..., None]
    """Appends rows; arguments: connection, number of the run, rows."""


_LISTS = (
    _RunList("segment", _list_reader(_SELECT_EVENTS), append_events),
    _RunList("draw", _list_reader(SELECT_DRAWS), append_draws),
    _RunList("trial", _read_trials, append_trials),
    _RunList("warning", _list_reader(SELECT_WARNINGS), append_warnings),
    _RunList("observation", _list_reader(SELECT_OBSERVATIONS), append_observations),
)
"""The lists of a run, in the order of the fields of `Cursor`."""


class _Slice(Struct, frozen=True, array_like=True):
    format: int
    part: RunPart


_slice_decoder = msgspec.msgpack.Decoder(_Slice)
_cursor_decoder = msgspec.msgpack.Decoder(Cursor)


def slice_of(
    connection: sqlite3.Connection, run: int, after: bytes, max_trials: int
) -> tuple[bytes, bool]:
    """Return the slice after a cursor (``b""`` if nothing is new), and whether there is more.

    Raise `UnusableInput` if ``after`` is not a cursor.
    """
    cursor = _decode_cursor(after)
    part, has_more = read_part(connection, run, cursor, max_trials)
    if cursor.includes(part.end):
        return b"", False
    content = msgspec.msgpack.encode(_Slice(_SLICE_FORMAT, part))
    return zlib.compress(content, _FAST_COMPRESSION), has_more


def cursor_bytes(connection: sqlite3.Connection, identity: bytes) -> bytes:
    """Return the cursor at the end of a ledger's copy of a run; ``b""`` without a copy."""
    run = run_of(connection, identity)
    return b"" if run is None else msgspec.msgpack.encode(cursor_of(connection, run))


def _decode_cursor(content: bytes) -> Cursor:
    try:
        return _cursor_decoder.decode(content) if content else Cursor()
    except msgspec.MsgspecError as error:
        raise UnusableInput(
            f"this is not the cursor of a run: {error}", hint="use the result of Ledger.cursor"
        ) from error


def part_from(content: bytes) -> RunPart:
    """Return the part of a run in a slice, after checking every row.

    Raise `UnusableInput` if ``content`` is not a slice, or has rows that no campaign records.
    """
    subject = "the data of a run that another host sent"
    try:
        part = _decode_slice(content)
        _, host_name = part.head.host or (b"", "unknown")
        subject = f"the data of run {shortened(part.head.id)} from host {shortened(host_name)}"
        with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
            migrate(connection)
            connection.execute("BEGIN")
            add_part(connection, _SLICE_NAME, replace(part, start=Cursor()))
            check_small_tables(connection, _SLICE_NAME)
            check_run(connection, _SLICE_NAME, 1)
    except (UnusableInput, ValueError, TypeError, RecursionError, sqlite3.Error) as error:
        reason = error.what if isinstance(error, UnusableInput) else str(error)
        if isinstance(error, sqlite3.Error):
            reason = f"SQLite refuses a row ({error})"
        raise UnusableInput(
            f"{subject} cannot be used: {reason}",
            hint="install the same version of Equipoise on every host, then run `equipoise resume` "
            "to fetch the data again",
        ) from error
    return part


def _decode_slice(content: bytes) -> RunPart:
    """Decompress a slice and check types; raise `ValueError` if ``content`` is not a slice."""
    inflater = zlib.decompressobj()
    try:
        decompressed_bytes = inflater.decompress(content, MAX_SLICE_BYTES)
        if not inflater.eof:
            raise ValueError(f"it is truncated, or larger than {MAX_SLICE_BYTES} bytes")
        decoded = _slice_decoder.decode(decompressed_bytes)
    except (zlib.error, msgspec.MsgspecError) as error:
        raise ValueError(str(error)) from error
    if decoded.format != _SLICE_FORMAT:
        raise ValueError(f"it has format {decoded.format}, not format {_SLICE_FORMAT}")
    if any(start < 0 for start in astuple(decoded.part.start)):
        raise ValueError("its start is negative")
    for row in _rows_of_part(decoded.part):
        for value in row:
            if type(value) not in _SQLITE_TYPES:
                raise ValueError(f"a row has a value of type {type(value).__name__}")
    return decoded.part


def _rows_of_part(part: RunPart) -> Iterator[Row]:
    for rows in (part.events, part.draws, part.warnings, part.observations):
        yield from rows
    for trial, samples in part.trials:
        yield trial
        yield from samples
