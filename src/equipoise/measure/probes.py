"""The package's own probes of operating system primitives, and which of them work on this host."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec import Struct

from equipoise.measure.installation import REINSTALL, native_programs, present
from equipoise.measure.untimed import describe_signal, unavailable_reason
from equipoise.model.errors import UnusableInput
from equipoise.model.primitives import PROBE_PROGRAM, ProbeRow

_LIST_S = 30.0
_CHECK_S = 60.0


class _Row(Struct, frozen=True):
    name: str
    options: tuple[str, ...] = ()


class _Listed(msgspec.Struct, frozen=True, rename={"group": "class"}):
    """A line of ``equipoise-probe --list``; what else stands there is for others."""

    name: str
    metric: str
    summary: str
    rows: tuple[_Row, ...]
    group: str
    placements: tuple[str, ...] = ("none",)


def probe_program() -> Path:
    """Return the program that contains the probes; raise `UnusableInput` if it is missing."""
    program = native_programs() / PROBE_PROGRAM
    return present(program, f"the probes are missing: {program}")


def probe_rows(program: Path) -> tuple[ProbeRow, ...]:
    """Return every row that the probes measure, in the order of their tables.

    Raise `UnusableInput` if the program does not list its probes.
    """
    try:
        listed = subprocess.run(
            [program, "--list"], capture_output=True, check=True, timeout=_LIST_S
        ).stdout
        return tuple(row for line in listed.splitlines() for row in _rows_of(line))
    except (OSError, subprocess.SubprocessError, msgspec.DecodeError) as error:
        raise UnusableInput(
            f"{program} does not list its probes: {error}", hint=REINSTALL
        ) from error


def why_unavailable(program: Path, row: ProbeRow) -> str | None:
    """Return why this host cannot measure a row, by one operation; ``None`` if it can."""
    try:
        done = subprocess.run(
            [program, row.probe, *row.options, "--check"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=_CHECK_S,
        )
    except subprocess.TimeoutExpired:
        return f"one operation took over {_CHECK_S:g} s"
    except OSError as error:
        return f"{program.name} could not be started: {error.strerror}"
    if done.returncode == 0:
        return None
    if done.returncode < 0:
        return f"the system ended it: {describe_signal(-done.returncode)}"
    reason = unavailable_reason(done.returncode, done.stderr)
    return reason or f"exit status {done.returncode}: {done.stderr.strip()}"


def _rows_of(line: bytes) -> Iterator[ProbeRow]:
    listed = msgspec.json.decode(line, type=_Listed)
    for row in listed.rows:
        yield ProbeRow(
            name=row.name,
            probe=listed.name,
            group=listed.group,
            summary=listed.summary,
            metric=listed.metric,
            options=row.options,
            placement=_option(row.options, "--placement") or listed.placements[0],
        )


def _option(words: tuple[str, ...], name: str) -> str | None:
    return words[words.index(name) + 1] if name in words[:-1] else None
