"""The factors of a study's file."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import get_args

from equipoise.model.study import Factor, Level, Role, ServerWorkload, is_size
from equipoise.studies.kinds import KINDS, PACKAGES, Kind
from equipoise.studies.reader.server_table import read_server
from equipoise.studies.reader.table import Table, one_of

_CPUS = re.compile(r"\d{1,4}(-\d{1,4})?(,\d{1,4}(-\d{1,4})?)*")
_FACTOR = re.compile(r"[A-Za-z_][\w-]*")
_ROLES: tuple[Role, ...] = get_args(Role)
_TAKEN = ("study", "python", "build", "data", "folder", "port")


def read_factors(table: Table, folder: str) -> tuple[Factor, ...]:
    """Read ``[factors]``.

    Parameters
    ----------
    folder
        What relative paths start from.

    Raises
    ------
    UnusableInput
        A factor without levels, an unknown role, kind or key, a wrong type.
    """
    factors = tuple(_factor(table, name, folder) for name in table.keys())
    if not factors:
        raise table.fail(None, "there are no factors", "as in [factors.size] levels = [1, 2]")
    building = [factor for factor in factors if any(level.build for level in factor.levels)]
    if len(building) > 1:
        raise table.fail(
            building[1].name,
            f"{building[0].name} has levels that are built already",
            "build in one factor, and use the other's name in its lines",
        )
    return factors


def _factor(factors: Table, name: str, folder: str) -> Factor:
    if not _FACTOR.fullmatch(name) or name in _TAKEN:
        raise factors.fail(name, f"a factor cannot be called {name!r}", "give it another name")
    table = factors.table(name)
    role = _role(table)
    kind = table.text("kind")
    if kind is not None and kind not in KINDS:
        raise table.fail("kind", f"there is no kind {kind!r}", one_of(kind, sorted(KINDS)))
    own = tuple(_level(table, level, folder) for level in _own_levels(table))
    if kind is None:
        choices: tuple[Level, ...] = ()
        levels = own or tuple(Level(level) for level in table.values_of("levels") or ())
    else:
        choices = KINDS[kind].choices
        levels = (*_of_kind(table, KINDS[kind], own), *own)
    if not levels:
        raise table.fail(None, "it has no levels", "as in levels = [1, 2]")
    if role == "size":
        _check_sizes(table, levels)
    return Factor(name, levels, role, plain=table.has("levels") and kind is None, choices=choices)


def _own_levels(table: Table) -> tuple[str, ...]:
    """The levels that are tables."""
    listed = table.has("levels")
    own = table.keys()
    if listed and own and not table.has("kind"):
        raise table.fail(
            own[0],
            "a factor has levels = [...] or a table for each level, not both",
            "write each level as a table",
        )
    return own


def _of_kind(table: Table, kind: Kind, own: tuple[Level, ...]) -> tuple[Level, ...]:
    """The levels of a kind that a factor has: those it lists, or the usual ones."""
    listed = table.values_of("levels")
    if listed is None:
        return () if own else kind.usual
    for level in own:
        if level.name in listed:
            raise table.fail(level.name, "it stands among levels too", "leave one of them out")
    return tuple(_chosen(table, level, kind.choices) for level in listed)


def _check_sizes(table: Table, levels: Iterable[Level]) -> None:
    for level in levels:
        if not is_size(level.name):
            raise table.fail(
                level.name if table.has(level.name) else "levels",
                f"{level.name!r} is no size",
                'give numbers above 0, or role = "stratum" to what is no number',
            )


def _role(table: Table) -> Role:
    asked = table.text("role") or "treatment"
    for role in _ROLES:
        if role == asked:
            return role
    raise table.fail("role", f"there is no role {asked!r}", one_of(asked, _ROLES))


def _chosen(table: Table, name: str, choices: tuple[Level, ...]) -> Level:
    for level in choices:
        if level.name == name:
            return level
    raise table.fail(
        "levels", f"there is no level {name!r}", one_of(name, [level.name for level in choices])
    )


def _level(factor: Table, name: str, folder: str) -> Level:
    table = factor.table(name)
    preload = table.texts("preload") or ()
    working_folder = table.text("folder")
    package = table.text("package")
    server: ServerWorkload | None = None
    command = table.words("command")
    if table.has("server"):
        if command is not None:
            raise table.fail("command", "a server has a client", "move it to the table server")
        server, command = read_server(table.table("server"))
    client = table.table("client")
    client_arguments, client_cpus = client.texts("args") or (), _cpus(client)
    client.finish()
    if package is None:
        package = next((PACKAGES[library] for library in preload if library in PACKAGES), None)
    level = Level(
        name,
        environment=table.mapping("env") or {},
        preload=tuple(_path(folder, library) for library in preload),
        library_path=tuple(os.path.join(folder, one) for one in table.texts("library_path") or ()),
        arguments=table.texts("args") or (),
        command=command,
        server=server,
        client_arguments=client_arguments,
        client_cpus=client_cpus,
        working_folder=None if working_folder is None else os.path.join(folder, working_folder),
        cpus=_cpus(table),
        random_addresses=table.truth("aslr"),
        huge_pages=table.truth("huge_pages"),
        build=table.text("build"),
        instructions=table.texts("instructions") or (),
        tuned_for=table.texts("tuned_for") or (),
        package=package,
        summary=table.text("summary") or "",
    )
    table.finish()
    return level


def _path(folder: str, library: str) -> str:
    """A file name is looked for where the loader looks; a path starts from the study."""
    return os.path.join(folder, library) if "/" in library else library


def _cpus(table: Table) -> tuple[int, ...] | None:
    if not table.has("cpu"):
        return None
    value = table.values["cpu"]
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return (value,)
    if not isinstance(value, str) or not _CPUS.fullmatch(value):
        raise table.fail("cpu", f"{value!r} names no CPUs", 'as in cpu = 0 or cpu = "0-1,4"')
    cpus: set[int] = set()
    for part in value.split(","):
        first, _, last = part.partition("-")
        cpus.update(range(int(first), int(last or first) + 1))
    if not cpus:
        raise table.fail("cpu", f"{value!r} names no CPUs", 'as in cpu = "0-1"')
    return tuple(sorted(cpus))
