"""Slices: a run on its way from one ledger to another, as bytes.

A slice is a `RunPart` as MessagePack, compressed (RFC 1950), never a pickle. Whoever sends one may
be hostile: before it reaches a ledger, its size is bounded, its rows go into a ledger in memory,
and that one is checked like a file that somebody sent.
"""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import astuple, replace

from equipoise.ledger.parts import Cursor, Row, RunPart, add_part, cursor_of, read_part, run_of
from equipoise.ledger.rows import from_text, plan_from_text, recorded_run
from equipoise.ledger.schema import bring_up_to_date
from equipoise.ledger.untrusted import MOST_ROW_BYTES, check_small_tables
from equipoise.model.errors import UnusableInput
from equipoise.model.safe_text import as_unicode

MOST_SLICE_BYTES = MOST_ROW_BYTES + 64 * 1024 * 1024
"""Largest size of a slice before it is compressed; most have less than a MiB."""
_FORM = 1
_FAST = 1
_KINDS = (str, bytes, int, float, type(None))


class _Slice(Struct, frozen=True, array_like=True):
    form: int
    part: RunPart


_slices = msgspec.msgpack.Decoder(_Slice)
_cursors = msgspec.msgpack.Decoder(Cursor)


def slice_of(
    connection: sqlite3.Connection, run: int, after: bytes, most_trials: int
) -> tuple[bytes, bool]:
    """Return a slice behind a cursor, ``b""`` if nothing is new, and whether more is there.

    Raises
    ------
    UnusableInput
        The cursor is none.
    """
    cursor = _cursor_from(after)
    part, more = read_part(connection, run, cursor, most_trials)
    if cursor.reaches(part.end):
        return b"", False
    return zlib.compress(msgspec.msgpack.encode(_Slice(_FORM, part)), _FAST), more


def cursor_bytes(connection: sqlite3.Connection, identity: bytes) -> bytes:
    """Return where a ledger's copy of a run ends; ``b""`` if it has none."""
    run = run_of(connection, identity)
    return b"" if run is None else msgspec.msgpack.encode(cursor_of(connection, run))


def _cursor_from(content: bytes) -> Cursor:
    try:
        return _cursors.decode(content) if content else Cursor()
    except msgspec.MsgspecError as error:
        raise UnusableInput(
            f"this is no cursor of a run: {error}", hint="take what Ledger.cursor returns"
        ) from error


def part_from(content: bytes) -> RunPart:
    """Return the part of a run that a slice holds, with every row checked.

    Raises
    ------
    UnusableInput
        It is no slice, or holds what no campaign records.
    """
    try:
        part = _unpacked(content)
        with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
            bring_up_to_date(connection)
            connection.execute("BEGIN")
            add_part(connection, _NOWHERE, replace(part, start=Cursor()))
            check_small_tables(connection, _NOWHERE)
            check_run(connection, _NOWHERE, 1)
    except (UnusableInput, ValueError, TypeError, RecursionError, sqlite3.Error) as error:
        what = error.what if isinstance(error, UnusableInput) else str(error)
        raise UnusableInput(
            f"a slice of a run cannot be used: {what}",
            hint="install the same version of Equipoise on every host, and fetch it again",
        ) from error
    return part


_NOWHERE = Path("slice")


def _unpacked(content: bytes) -> RunPart:
    inflater = zlib.decompressobj()
    try:
        unpacked = inflater.decompress(content, MOST_SLICE_BYTES)
        if not inflater.eof:
            raise ValueError(f"it is cut short, or larger than {MOST_SLICE_BYTES} bytes")
        decoded = _slices.decode(unpacked)
    except (zlib.error, msgspec.MsgspecError) as error:
        raise ValueError(str(error)) from error
    if decoded.form != _FORM:
        raise ValueError(f"its form is {decoded.form}, this Equipoise knows {_FORM}")
    if any(start < 0 for start in astuple(decoded.part.start)):
        raise ValueError("it begins before the beginning")
    for row in _rows(decoded.part):
        for value in row:
            if type(value) not in _KINDS:
                raise ValueError(f"a row holds a value of the kind {type(value).__name__}")
    return decoded.part


def _rows(part: RunPart) -> Iterator[Row]:
    for rows in (part.events, part.draws, part.notices, part.observations):
        yield from rows
    for trial, samples in part.trials:
        yield trial
        yield from samples


def check_run(connection: sqlite3.Connection, path: Path, run: int) -> None:
    """Check that each row of a run is one that a campaign records, and agrees with its plan.

    Raises
    ------
    UnusableInput
        A row holds a value of a kind that no campaign records.
    ValueError
        A row cannot be decoded, or contradicts another one.
    """
    recorded_run(connection, path, run)
    study, names, fleet, place, text = connection.execute(
        "SELECT study, names, fleet, place, plan FROM run WHERE number = ?", (run,)
    ).fetchone()
    plan = plan_from_text(text)
    member = plan.membership
    expected = (None, None) if member is None else (bytes.fromhex(member.fleet), member.place)
    named = [condition.name for condition in plan.conditions]
    if (study, from_text(names)) != (as_unicode(plan.study), named) or (fleet, place) != expected:
        raise ValueError("the row of a run contradicts its plan")
