"""Equality of hosts before their campaigns are compared: Equipoise, programs and inputs.

A host with another version of Equipoise, or with another program or input, is left out and named,
unless it gets the files. `files_of` finds the files of a plan on the machine that made it, and
`compare_hosts` compares the answers of the hosts.
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
    is_inside,
    local_file,
    too_large,
)
from equipoise.cluster.messages import File, Introduction, Inventory, Shipment, ShipmentReply
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
"""Seconds in which a host must answer which files it has."""
SHIP_S = 300.0
"""Seconds in which a host must receive one file."""
_MAX_SHIPMENTS = 2
"""Largest number of files that are sent at once, as each is in memory as a whole."""
_KERNEL_FOLDERS = ("/proc/", "/sys/", "/dev/")
_SHELL_SIGNS = re.compile(r"[|&;<>()$`*?\[\]{}~!#\n]")
_WORD_ENDS = re.compile(r"[\s;&|<>()='\"`]+")
_MAX_DIFFERENCES = 3
"""Largest number of differences in a message."""


class HostComparison(Struct, frozen=True):
    """Hosts whose campaigns may be compared with one another, and the hosts left out."""

    comparable: dict[HostReference, tuple[File, ...]]
    """Comparable hosts, each with the files to ship to it (``shipped`` of its order)."""
    refusals: tuple[UnusableInput, ...]
    """An error for each other host, with its name and the differences."""

    def without(self, host: HostReference, refusal: UnusableInput) -> HostComparison:
        """Return the comparison with one host left out."""
        others = {other: files for other, files in self.comparable.items() if other != host}
        return HostComparison(others, (*self.refusals, refusal))


async def prepare_hosts(
    files: tuple[File, ...],
    folder: str,
    introductions: Sequence[Introduction],
    roster: Roster,
    *,
    ship: bool,
) -> HostComparison:
    """Compare the files of a plan on every host, and ship missing or different files.

    ``files`` are the files of the plan on this machine, ``folder`` is its working folder.

    Raise `UnusableInput` if no host can be compared, or a file cannot be shipped.
    """
    inventories = await asyncio.gather(
        *(_inventory(files, introduction, roster) for introduction in introductions)
    )
    comparison = compare_hosts(files, introductions, inventories, ship=ship)
    _check_total_size(folder, next(filter(None, comparison.comparable.values()), ()))
    semaphore = asyncio.Semaphore(_MAX_SHIPMENTS)
    receivers = tuple(comparison.comparable.items())
    refusals = await asyncio.gather(
        *(_ship(folder, host, host_files, roster, semaphore) for host, host_files in receivers)
    )
    for (host, _), refusal in zip(receivers, refusals, strict=True):
        if refusal is not None:
            comparison = comparison.without(host, refusal)
    if not comparison.comparable:
        first = comparison.refusals[0]
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


def _check_total_size(folder: str, files: Sequence[File]) -> None:
    """Refuse files that are larger together than the files that a host keeps."""
    sizes = [Path(folder, file.path).stat().st_size for file in files]
    if sum(sizes) > MAX_KEPT_BYTES:
        raise UnusableInput(
            f"the {len(files)} files to ship have {sum(sizes) >> 20} MiB together, more than "
            f"{MAX_KEPT_BYTES >> 20}",
            hint="copy the large ones to every host yourself, into the folder of its worker",
        )


async def _ship(
    folder: str,
    host: HostReference,
    files: Sequence[File],
    roster: Roster,
    semaphore: asyncio.Semaphore,
) -> UnusableInput | None:
    """Ship files to a host; return the error if it did not get them."""
    for file in files:
        async with semaphore:
            shipment = shipment_of(file, folder)
            try:
                await roster.ask(host.identity, tasks.receive, shipment, ShipmentReply, SHIP_S)
            except (NoAnswer, EquipoiseError) as error:
                reason = error.what if isinstance(error, EquipoiseError) else str(error)
                return UnusableInput(
                    f"{file.path} could not be shipped to {host.name}: {reason}",
                    hint=f"read the log of its worker, or copy the file to {host.name} yourself",
                )
    return None


def compare_hosts(
    files: Sequence[File],
    introductions: Sequence[Introduction],
    inventories: Sequence[Inventory | None],
    *,
    ship: bool,
) -> HostComparison:
    """Compare the hosts; with ``ship``, different files are shipped.

    ``files`` are the files of the plan on the coordinator (`files_of`). Introductions and
    inventories are in the same order; a host of another version needs no inventory.
    """
    comparable: dict[HostReference, tuple[File, ...]] = {}
    refusals: list[UnusableInput] = []
    for introduction, answer in zip(introductions, inventories, strict=True):
        try:
            comparable[introduction.host] = _files_to_ship(files, introduction, answer, ship=ship)
        except UnusableInput as refusal:
            refusals.append(refusal)
    return HostComparison(comparable, tuple(refusals))


def _files_to_ship(
    files: Sequence[File], introduction: Introduction, answer: Inventory | None, *, ship: bool
) -> tuple[File, ...]:
    """Return the files to ship to a host; raise `UnusableInput` if it cannot be compared."""
    own, name = version("equipoise"), introduction.host.name
    if introduction.equipoise != own:
        raise UnusableInput(
            f"{name} has Equipoise {introduction.equipoise}, this machine has {own}",
            hint=f"install Equipoise {own} on {name}",
        )
    if answer is None or [file.path for file in answer.files] != [file.path for file in files]:
        raise UnusableInput(
            f"{name} did not report its files",
            hint="install the same version of Equipoise on every host",
        )
    differences = {
        file.path: difference
        for file, host_file in zip(files, answer.files, strict=True)
        if (difference := _difference(file, host_file)) is not None
    }
    if not differences:
        return ()
    outside = [path for path in differences if not is_inside(path)]
    if ship and not outside:
        # The campaign gets a separate folder, which must contain every file of its folder.
        return tuple(file for file in files if is_inside(file.path))
    paths = outside if ship else list(differences)
    hint = f"install the same on {name}"
    if not outside:
        hint = f"add {option('ship')}, or copy the same into {introduction.folder} on {name}"
    elif ship:
        hint += ": only files in the working folder are shipped"
    sentences = [f"{_display_name(path)} {differences[path]}" for path in paths]
    raise UnusableInput(f"{name}: {listed(sentences, _MAX_DIFFERENCES, '; ')}", hint=hint)


def _display_name(path: str) -> str:
    """Return a path for a message: only the name for the package's own files."""
    return path.rpartition("}")[2].lstrip("/") if path.startswith("{equipoise:") else path


def _difference(file: File, host_file: File) -> str | None:
    """Return the difference of a host's file; ``None`` if it is the same."""
    if host_file.digest is None:
        return "is missing"
    if host_file.digest != file.digest:
        return "has another content"
    if file.is_program and not host_file.mode & 0o111:
        return "cannot be executed"
    return None


def shipment_of(file: File, folder: str) -> Shipment:
    """Read a file of the coordinator, to ship it.

    Raise `UnusableInput` if it cannot be read, is too large, or has changed since the comparison.
    """
    path = Path(folder, file.path)
    content = read_whole(
        path, hint="do not change the file until the hosts have it", max_bytes=MAX_SHIPPED_BYTES
    )
    if len(content) > MAX_SHIPPED_BYTES:
        raise too_large(file.path, path.stat().st_size)
    if digest_of(content) != file.digest:
        raise UnusableInput(
            f"{path} changed while it was shipped", hint="run it again when nothing writes to it"
        )
    return Shipment(file, content)


def files_of(
    plan: Plan, builds: Sequence[str] = (), build_lines: Sequence[str] = ()
) -> tuple[File, ...]:
    """Return the programs and inputs of a plan whose content matters, from this machine.

    These are the program of each command with the interpreter of a script, every argument,
    variable and library that names a file, and the file for standard input. A hook counts if its
    line has no shell syntax. If the hosts build a level themselves, the files in the working
    folder that the line names count. Folders in a command do not count.

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
    files: dict[str, File] = {}
    sources = _source_files(map(places.local, build_lines), places.folder)
    for path, is_program in (*_files_of_plan(plan), *sources):
        name = places.portable(path)
        if name.startswith("{equipoise:build:") or name in files:
            continue
        short = name.removeprefix(f"{FOLDER}/")
        file = local_file(File(short, None, is_program=is_program), places.folder)
        if file.digest is not None:
            files[name] = file
    return tuple(files.values())


def _files_of_plan(plan: Plan) -> Iterator[tuple[str, bool]]:
    """Yield the absolute path of each file that a plan names, and whether it is a program."""
    folder = plan.measure.working_folder
    if plan.measure.input is not None:
        yield from _existing_file(plan.measure.input, folder)
    layouts = range(1, len(plan.layouts) + 1) if plan.layouts else (None,)
    known: set[object] = set()
    for condition in plan.conditions:
        environment = {**own_environment(), **condition.environment}
        own_folder = condition.process.working_folder or folder
        # The programs of the other layouts have the same libraries.
        first, *others = map(condition.command_in, layouts)
        commands = [(first, environment, own_folder)]
        commands += [(words, own_environment(), folder) for words in _hooks_of(condition)]
        if condition.server is not None:
            commands += [
                (words, _server_environment(condition.server), folder)
                for words in _commands_of(condition.server)
            ]
        for words, variables, command_folder in commands:
            key = (words, command_folder, tuple(sorted(variables.items())))
            if key not in known:
                known.add(key)
                yield from _files_of_command(words, variables, command_folder)
        for program, *arguments in others:
            yield from _existing_file(program, own_folder, is_program=True)
            for word in arguments:
                yield from _files_of_word(word, own_folder)
        settings = [condition.environment]
        settings += [] if condition.server is None else [condition.server.environment]
        for value in (value for table in settings for value in table.values()):
            for part in re.split(r"[:\s]", value):
                if os.path.isabs(part):
                    yield from _existing_file(part, folder)
        for path in condition.mapped_from:
            yield from _existing_file(path, folder)


def _source_files(lines: Iterable[str], folder: str) -> Iterator[tuple[str, bool]]:
    """Yield the files in a folder that lines for a shell name, without the host's compilers."""
    for word in dict.fromkeys(word for line in lines for word in _WORD_ENDS.split(line)):
        for path, is_program in _existing_file(word, folder):
            if Path(path).is_relative_to(folder):
                yield path, is_program


def _hooks_of(condition: Condition) -> Iterator[tuple[str, ...]]:
    hooks = condition.hooks
    for line in (hooks.setup, hooks.prepare, hooks.conclude, hooks.cleanup):
        if line is not None and not _SHELL_SIGNS.search(line):
            try:
                yield tuple(shlex.split(line))
            except ValueError:
                # The shell will report the open quote.
                continue


def _commands_of(server: Server) -> Iterator[tuple[str, ...]]:
    commands = (
        server.start,
        server.install,
        server.fill,
        server.prepare,
        server.ready,
        server.stop,
    )
    return (words for words in commands if words is not None)


def _server_environment(server: Server) -> dict[str, str]:
    environment = {**own_environment(), **server.environment}
    path = os.pathsep.join((environment.get("PATH", os.defpath), *server.search_path))
    return {**environment, "PATH": path}


def _files_of_command(
    words: Sequence[str], environment: Mapping[str, str], folder: str
) -> Iterator[tuple[str, bool]]:
    """Yield the program of a command, its interpreter, and its arguments that are files."""
    if not words:
        return
    program = words[0]
    if "/" not in program:
        program = shutil.which(program, path=environment.get("PATH")) or program
    for path, _ in _existing_file(program, folder):
        yield path, True
        mapped = mapped_libraries((path, *words[1:]), environment, folder)
        yield from _existing_file(mapped.program or "", folder, is_program=True)
        # Libraries of the system belong to the host, libraries in the folder to the project.
        for library in (mapped.libraries or {}).values():
            if Path(library).is_relative_to(os.path.realpath(folder)) and folder != "/":
                yield from _existing_file(library, folder)
    for word in words[1:]:
        yield from _files_of_word(word, folder)


def _files_of_word(word: str, folder: str) -> Iterator[tuple[str, bool]]:
    """Yield the file that an argument names, also as in ``--option=FILE``."""
    yield from _existing_file(word, folder)
    _, sign, value = word.partition("=")
    if sign:
        yield from _existing_file(value, folder)


def _existing_file(
    path: str, folder: str, *, is_program: bool = False
) -> Iterator[tuple[str, bool]]:
    """Yield the absolute path of a file if it exists, and whether it is a program."""
    whole = os.path.normpath(os.path.join(folder, path))
    try:
        is_file = os.path.isfile(whole)
    except ValueError:
        # The path has a null byte.
        return
    if path and is_file and not whole.startswith(_KERNEL_FOLDERS):
        yield whole, is_program
