"""What must be equal on every host before campaigns are compared: Equipoise, programs and inputs.

A host with another version of Equipoise, or with another program or input, is left out and named,
unless it gets the files. `files_of` finds the files of a plan on the machine that made it, and
`compare_hosts` decides by what the hosts answer.
"""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path

from msgspec import Struct

from equipoise.cluster import tasks
from equipoise.cluster.files import (
    FOLDER,
    MAX_KEPT_BYTES,
    MAX_SHIPPED_BYTES,
    Places,
    digest_of,
    file_here,
    inside,
    too_large,
)
from equipoise.cluster.messages import File, Introduction, Inventory, Received, Shipment
from equipoise.cluster.roster import NoAnswer, Roster
from equipoise.files.writing import read_whole
from equipoise.measure.environment import mapped_libraries
from equipoise.measure.trials import own_environment
from equipoise.model.errors import EquipoiseError, UnusableInput
from equipoise.model.host import HostReference
from equipoise.model.plan import Condition, Plan, Server
from equipoise.model.quantities import listed
from equipoise.shared.spelling import option

EXAMINE_S = 60.0
"""Seconds that a host has to say which files it has."""
SHIP_S = 300.0
"""Seconds that one file may take to a host."""
_MAX_SHIPMENTS = 2
"""Files on their way at a time: each is in memory whole."""
_OF_THE_KERNEL = ("/proc/", "/sys/", "/dev/")
_FOR_A_SHELL = re.compile(r"[|&;<>()$`*?\[\]{}~!#\n]")
_WORD_ENDS = re.compile(r"[\s;&|<>()='\"`]+")
_MAX_NAMED = 3


class HostComparison(Struct, frozen=True):
    """Hosts whose campaigns may be compared with one another, and those that are left out."""

    comparable: dict[HostReference, tuple[File, ...]]
    """Each with the files to ship to it before its campaign: the ``shipped`` of its order."""
    refused: tuple[UnusableInput, ...]
    """For each other host, its name with what differs."""

    def without(self, host: HostReference, refusal: UnusableInput) -> HostComparison:
        """Return the comparison with one host left out."""
        others = {other: files for other, files in self.comparable.items() if other != host}
        return HostComparison(others, (*self.refused, refusal))


async def prepared_hosts(
    files: tuple[File, ...],
    folder: str,
    introductions: Sequence[Introduction],
    roster: Roster,
    *,
    ship: bool,
) -> HostComparison:
    """Compare the files of a plan on every host, and ship what is to be shipped.

    ``files`` are those of the plan as this machine has them, ``folder`` its working folder here.

    Raise `UnusableInput` if no host may be compared, or a file cannot be shipped.
    """
    inventories = await asyncio.gather(*(_inventory(files, one, roster) for one in introductions))
    comparison = compare_hosts(files, introductions, inventories, ship=ship)
    _check_room(folder, next(filter(None, comparison.comparable.values()), ()))
    at_once = asyncio.Semaphore(_MAX_SHIPMENTS)
    receivers = tuple(comparison.comparable.items())
    for (host, _), refusal in zip(
        receivers,
        await asyncio.gather(*(_ship(folder, *each, roster, at_once) for each in receivers)),
        strict=True,
    ):
        if refusal is not None:
            comparison = comparison.without(host, refusal)
    if not comparison.comparable:
        first = comparison.refused[0]
        raise UnusableInput(f"no host can be compared: {first.what}", hint=first.hint)
    return comparison


async def _inventory(
    files: tuple[File, ...], introduction: Introduction, roster: Roster
) -> Inventory | None:
    if introduction.equipoise != version("equipoise"):
        return None
    host, request = introduction.host.identity, Inventory(files)
    try:
        return await roster.ask(host, tasks.examine, request, Inventory, EXAMINE_S)
    except (NoAnswer, EquipoiseError):
        return None


def _check_room(folder: str, files: Sequence[File]) -> None:
    """Refuse files that are together larger than what a host keeps: the first would be removed."""
    sizes = [Path(folder, file.path).stat().st_size for file in files]
    if sum(sizes) > MAX_KEPT_BYTES:
        raise UnusableInput(
            f"the {len(files)} files to ship have {sum(sizes) >> 20} MiB together, at most "
            f"{MAX_KEPT_BYTES >> 20}",
            hint="copy the large ones to every host yourself, into the folder of its worker",
        )


async def _ship(
    folder: str,
    host: HostReference,
    files: Sequence[File],
    roster: Roster,
    at_once: asyncio.Semaphore,
) -> UnusableInput | None:
    """Ship files to a host; return why it did not get them, which stops no other host."""
    for file in files:
        async with at_once:
            shipment = shipment_of(file, folder)
            try:
                # A host that cannot keep it says why.
                await roster.ask(host.identity, tasks.receive, shipment, Received, SHIP_S)
            except (NoAnswer, EquipoiseError) as error:
                why = error.what if isinstance(error, EquipoiseError) else str(error)
                return UnusableInput(
                    f"{file.path} could not be shipped to {host.name}: {why}",
                    hint=f"look into the log of its worker, or copy the file to {host.name} "
                    "yourself",
                )
    return None


def compare_hosts(
    files: Sequence[File],
    introductions: Sequence[Introduction],
    inventories: Sequence[Inventory | None],
    *,
    ship: bool,
) -> HostComparison:
    """Decide which hosts may be compared; ``ship`` says whether files that differ are shipped.

    ``files`` are those of the plan as the coordinator has them (`files_of`). Introductions and
    inventories are in one order; that of a host of another version is not needed.
    """
    comparable: dict[HostReference, tuple[File, ...]] = {}
    refused: list[UnusableInput] = []
    for introduction, answer in zip(introductions, inventories, strict=True):
        try:
            comparable[introduction.host] = _files_to_ship(files, introduction, answer, ship=ship)
        except UnusableInput as refusal:
            refused.append(refusal)
    return HostComparison(comparable, tuple(refused))


def _files_to_ship(
    files: Sequence[File], introduction: Introduction, answer: Inventory | None, *, ship: bool
) -> tuple[File, ...]:
    """Return what is to be shipped to a host; raise `UnusableInput` if it cannot be compared."""
    own, name = version("equipoise"), introduction.host.name
    if introduction.equipoise != own:
        raise UnusableInput(
            f"{name} has Equipoise {introduction.equipoise}, this machine has {own}",
            hint=f"install Equipoise {own} on {name}",
        )
    if answer is None or [file.path for file in answer.files] != [file.path for file in files]:
        raise UnusableInput(
            f"{name} did not say which files it has",
            hint="install the same version of Equipoise on every host",
        )
    complaints = {
        file.path: complaint
        for file, there in zip(files, answer.files, strict=True)
        if (complaint := _complaint(file, there)) is not None
    }
    if not complaints:
        return ()
    fixed = [path for path in complaints if not inside(path)]
    if ship and not fixed:
        # The campaign gets a folder of its own, in which every file of its folder has to lie.
        return tuple(file for file in files if inside(file.path))
    named = fixed if ship else list(complaints)
    hint = f"install the same on {name}"
    if not fixed:
        hint = f"add {option('ship')}, or copy the same into {introduction.folder} on {name}"
    elif ship:
        hint += ": only files in the working folder are shipped"
    differences = [f"{_display_name(path)} {complaints[path]}" for path in named]
    raise UnusableInput(f"{name}: {listed(differences, _MAX_NAMED, '; ')}", hint=hint)


def _display_name(path: str) -> str:
    """Return a path for a message: of the package's own files, only the name."""
    return path.rpartition("}")[2].lstrip("/") if path.startswith("{equipoise:") else path


def _complaint(file: File, there: File) -> str | None:
    """Return what is wrong with a file of a host; ``None`` if it is the same."""
    if there.digest is None:
        return "is missing"
    if there.digest != file.digest:
        return "has another content"
    if file.is_program and not there.mode & 0o111:
        return "cannot be executed"
    return None


def shipment_of(file: File, folder: str) -> Shipment:
    """Read a file of the coordinator, to ship it.

    Raise `UnusableInput` if it cannot be read, is too large, or is not the file any more that was
    compared.
    """
    path = Path(folder, file.path)
    content = read_whole(
        path, hint="leave the file as it is until the hosts have it", max_bytes=MAX_SHIPPED_BYTES
    )
    if len(content) > MAX_SHIPPED_BYTES:
        raise too_large(file.path, path.stat().st_size)
    if digest_of(content) != file.digest:
        raise UnusableInput(
            f"{path} changed while it was shipped", hint="run it again when nobody writes to it"
        )
    return Shipment(file, content)


def files_of(
    plan: Plan, builds: Sequence[str] = (), build_lines: Sequence[str] = ()
) -> tuple[File, ...]:
    """Return the programs and inputs of a plan whose content matters, as this machine has them.

    These are the program of each command with the interpreter of a script, every argument,
    variable and library that names a file, and the file for standard input. Of a hook only a line
    without signs for a shell is read. Of what the hosts build themselves, the files in the working
    folder that the line names are compared. A folder that a command names is not.

    Parameters
    ----------
    plan
        A plan with the paths of this machine.
    builds
        Folders in which this machine built the levels of a study.
    build_lines
        The lines that built them, with the paths of this machine or with placeholders.
    """
    places = Places(plan.measure.working_folder, tuple(builds))
    found: dict[str, File] = {}
    sources = _sources_of(map(places.local, build_lines), places.folder)
    for path, is_program in (*_paths_of(plan), *sources):
        name = places.portable(path)
        if name.startswith("{equipoise:build:") or name in found:
            continue
        short = name.removeprefix(f"{FOLDER}/")
        file = file_here(File(short, None, is_program=is_program), places.folder)
        if file.digest is not None:
            found[name] = file
    return tuple(found.values())


def _paths_of(plan: Plan) -> Iterator[tuple[str, bool]]:
    """Yield the absolute path of each file that a plan names, and whether it is a program."""
    folder = plan.measure.working_folder
    if plan.measure.input is not None:
        yield from _existing(plan.measure.input, folder)
    layouts = range(1, len(plan.layouts) + 1) if plan.layouts else (None,)
    read: set[object] = set()
    for condition in plan.conditions:
        environment = {**own_environment(), **condition.environment}
        place = condition.process.working_folder or folder
        # Programs of the other layouts differ in layout alone: their libraries are the same.
        first, *others = map(condition.command_in, layouts)
        commands = [(first, environment, place)]
        commands += [(words, own_environment(), folder) for words in _hooks_of(condition)]
        if condition.server is not None:
            commands += [
                (words, _server_environment(condition.server), folder)
                for words in _commands_of(condition.server)
            ]
        for words, variables, where in commands:
            key = (words, where, tuple(sorted(variables.items())))
            if key not in read:
                read.add(key)
                yield from _files_of_command(words, variables, where)
        for program, *arguments in others:
            yield from _existing(program, place, is_program=True)
            for word in arguments:
                yield from _named_by(word, place)
        settings = [condition.environment]
        settings += [] if condition.server is None else [condition.server.environment]
        for value in (value for table in settings for value in table.values()):
            for part in re.split(r"[:\s]", value):
                if os.path.isabs(part):
                    yield from _existing(part, folder)
        for path in condition.mapped_from:
            yield from _existing(path, folder)


def _sources_of(lines: Iterable[str], folder: str) -> Iterator[tuple[str, bool]]:
    """Yield the files in a folder that lines for a shell name; a compiler is that of the host."""
    for word in dict.fromkeys(word for line in lines for word in _WORD_ENDS.split(line)):
        for path, is_program in _existing(word, folder):
            if Path(path).is_relative_to(folder):
                yield path, is_program


def _hooks_of(condition: Condition) -> Iterator[tuple[str, ...]]:
    hooks = condition.hooks
    for line in (hooks.setup, hooks.prepare, hooks.conclude, hooks.cleanup):
        if line is not None and not _FOR_A_SHELL.search(line):
            try:
                yield tuple(shlex.split(line))
            except ValueError:
                # A quote is left open: the shell will say so.
                continue


def _commands_of(server: Server) -> Iterator[tuple[str, ...]]:
    every = (server.start, server.install, server.fill, server.prepare, server.ready, server.stop)
    return (words for words in every if words is not None)


def _server_environment(server: Server) -> dict[str, str]:
    environment = {**own_environment(), **server.environment}
    path = os.pathsep.join((environment.get("PATH", os.defpath), *server.search_path))
    return {**environment, "PATH": path}


def _files_of_command(
    words: Sequence[str], environment: Mapping[str, str], folder: str
) -> Iterator[tuple[str, bool]]:
    """Yield the program of a command, what runs it in the end, and its arguments that are files."""
    if not words:
        return
    program = words[0]
    if "/" not in program:
        program = shutil.which(program, path=environment.get("PATH")) or program
    for path, _ in _existing(program, folder):
        yield path, True
        mapped = mapped_libraries((path, *words[1:]), environment, folder)
        yield from _existing(mapped.program or "", folder, is_program=True)
        # A library of the system is a property of the host; one of the project is a part of it.
        for library in (mapped.libraries or {}).values():
            if Path(library).is_relative_to(os.path.realpath(folder)) and folder != "/":
                yield from _existing(library, folder)
    for word in words[1:]:
        yield from _named_by(word, folder)


def _named_by(word: str, folder: str) -> Iterator[tuple[str, bool]]:
    """Yield the file that an argument is, or that it names as in ``--option=FILE``."""
    yield from _existing(word, folder)
    _, sign, value = word.partition("=")
    if sign:
        yield from _existing(value, folder)


def _existing(path: str, folder: str, *, is_program: bool = False) -> Iterator[tuple[str, bool]]:
    """Yield the absolute path of a file, and whether it is a program; nothing without a file."""
    whole = os.path.normpath(os.path.join(folder, path))
    try:
        is_file = os.path.isfile(whole)
    except ValueError:
        # A zero byte.
        return
    if path and is_file and not whole.startswith(_OF_THE_KERNEL):
        yield whole, is_program
