"""The probes of operating system primitives: their rows, and which rows work on this host."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path

import msgspec
from msgspec import Struct

from equipoise.measure.installation import REINSTALL_HINT, require_file
from equipoise.measure.untimed import describe_signal, unavailable_reason
from equipoise.model.errors import UnusableInput
from equipoise.model.packages import NATIVE_FOLDER
from equipoise.model.plan import Condition
from equipoise.shared.spelling import option
from equipoise_studies.primitives.rows import (
    CLASS,
    PLACEMENT,
    PROBE,
    PROBE_PROGRAM,
    Effort,
    ProbeRow,
)

_LIST_TIMEOUT_S = 30.0
"""Maximum seconds of ``--list``."""
_CHECK_TIMEOUT_S = 60.0
"""Maximum seconds of one operation with ``--check``."""


class _ListedRow(Struct, frozen=True):
    """A row of a probe in ``equipoise-probe --list``."""

    name: str
    options: tuple[str, ...] = ()


class _ListedProbe(msgspec.Struct, frozen=True, rename={"group": "class"}):
    """A line of ``equipoise-probe --list``, without unused fields."""

    name: str
    metric: str
    summary: str
    rows: tuple[_ListedRow, ...]
    group: str
    """Table that shows the rows."""
    placements: tuple[str, ...] = ("none",)
    """Possible values of ``--placement``, the default first."""


def probe_program() -> Path:
    """Return the program that contains the probes; raise `UnusableInput` if it is missing."""
    program = Path(__file__).resolve().parents[1] / NATIVE_FOLDER / PROBE_PROGRAM
    return require_file(program, f"the probes are missing: {program}")


def probe_rows(program: Path) -> tuple[ProbeRow, ...]:
    """Return the rows of all probes, by table; raise `UnusableInput` if the program lists none."""
    try:
        output = subprocess.run(
            [program, "--list"], capture_output=True, check=True, timeout=_LIST_TIMEOUT_S
        ).stdout
        return tuple(row for line in output.splitlines() for row in _rows_of(line))
    except (OSError, subprocess.SubprocessError, msgspec.DecodeError) as error:
        raise UnusableInput(
            f"{program} does not list its probes: {error}", hint=REINSTALL_HINT
        ) from error


def chosen_rows(rows: Sequence[ProbeRow], names: Sequence[str]) -> tuple[ProbeRow, ...]:
    """Return the rows with the given names, in the order of ``rows``; all rows without a name.

    A name may belong to a row, a probe or a table. Raise `UnusableInput` if it is unknown.
    """
    if not names:
        return tuple(rows)
    known = {name for row in rows for name in (row.name, row.probe, row.group)}
    for name in names:
        if name not in known:
            similar = get_close_matches(name, sorted(known), 1)
            guess = f"did you mean {similar[0]}? " if similar else ""
            raise UnusableInput(
                f"{option('only', name)}: there is no such row, probe or table",
                hint=f"{guess}run `equipoise list probes` to see all rows",
            )
    return tuple(row for row in rows if {row.name, row.probe, row.group}.intersection(names))


def conditions_of_rows(
    rows: Sequence[ProbeRow], program: Path, effort: Effort
) -> tuple[Condition, ...]:
    """Return a condition for each row, with the name of the row."""
    return tuple(
        Condition(
            name=row.name,
            command=(str(program), row.probe, *row.options, *effort.options),
            levels={CLASS: row.group, PROBE: row.probe, PLACEMENT: row.placement},
            reports=(row.metric,),
        )
        for row in rows
    )


def why_unavailable(program: Path, row: ProbeRow) -> str | None:
    """Run one operation of a row; return the reason if the operation fails here, or ``None``."""
    try:
        result = subprocess.run(
            [program, row.probe, *row.options, "--check"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=_CHECK_TIMEOUT_S,
        )
    except subprocess.TimeoutExpired:
        return f"one operation took over {_CHECK_TIMEOUT_S:g} s"
    except OSError as error:
        return f"{program.name} could not be started: {error.strerror}"
    if result.returncode == 0:
        return None
    if result.returncode < 0:
        return f"the system ended {program.name}: {describe_signal(-result.returncode)}"
    reason = unavailable_reason(result.returncode, result.stderr)
    return reason or f"exit status {result.returncode}: {result.stderr.strip()}"


def _rows_of(line: bytes) -> Iterator[ProbeRow]:
    probe = msgspec.json.decode(line, type=_ListedProbe)
    for row in probe.rows:
        yield ProbeRow(
            name=row.name,
            probe=probe.name,
            group=probe.group,
            summary=probe.summary,
            metric=probe.metric,
            options=row.options,
            placement=_option_value(row.options, "--placement") or probe.placements[0],
        )


def _option_value(options: tuple[str, ...], name: str) -> str | None:
    return options[options.index(name) + 1] if name in options[:-1] else None


def listed_probes() -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    """Return the headings and the rows of `equipoise list probes`."""
    program = probe_program()
    rows = []
    for row in probe_rows(program):
        reason = why_unavailable(program, row)
        operation = f"{row.group.replace('_', ' ')}: {row.summary}"
        rows.append((row.name, operation, "yes" if reason is None else f"no: {reason}"))
    return ("row", "one operation", "here"), tuple(rows)
