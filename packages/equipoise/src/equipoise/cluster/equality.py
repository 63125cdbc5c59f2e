"""Check that all hosts of a cluster have the same Equipoise, programs and inputs.

A host with another version of Equipoise, or with a different program or input, is left out. With
``--ship``, the coordinator ships (sends) files of the working folder. `files_of` finds the files of
a plan on this machine, which is the coordinator. `compare_hosts` compares them with each host's.
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
    FOLDER_PLACEHOLDER,
    MAX_KEPT_BYTES,
    MAX_SHIPPED_BYTES,
    MachineFolders,
    digest_of,
    is_inside,
    local_file,
    too_large_error,
)
from equipoise.cluster.messages import File, FileInventory, Introduction, Shipment, ShipmentReply
from equipoise.cluster.roster import NoAnswer, Roster
from equipoise.files.writing import read_whole
from equipoise.measure.environment import mapped_libraries
from equipoise.measure.trials import own_environment
from equipoise.model.errors import EquipoiseError, UnusableInput
from equipoise.model.host import HostReference
from equipoise.model.plan import Condition, Plan, Server
from equipoise.model.quantities import counted, listed
from equipoise.shared.spelling import option

EXAMINE_TIMEOUT_S = 60.0
"""Seconds in which a host must send its `FileInventory`."""
SHIP_TIMEOUT_S = 300.0
"""Seconds in which a host must receive one file."""
_MAX_SHIPMENTS = 2
"""Maximum number of files that are shipped at the same time; all of them are in memory."""
_KERNEL_FOLDERS = ("/proc/", "/sys/", "/dev/")
"""Folders whose files the kernel makes; their files are not compared."""
_SHELL_CHARACTERS = re.compile(r"[|&;<>()$`*?\[\]{}~!#\n]")
"""Characters with a meaning for a shell; a line without these characters is one command."""
_SHELL_SEPARATORS = re.compile(r"[\s;&|<>()='\"`]+")
"""Characters between two words of a shell line."""
_MAX_DIFFERENCES = 3
"""Maximum number of different files that an error names."""


class HostComparison(Struct, frozen=True):
    """The comparable hosts, whose files are equal, and the reasons why others are left out."""

    comparable: dict[HostReference, tuple[File, ...]]
    """Files to ship (`Order.shipped`), by comparable host."""
    refusals: tuple[UnusableInput, ...]
    """An error for each host that is left out, with its differences."""

    def without(self, host: HostReference, refusal: UnusableInput) -> HostComparison:
        """Return the comparison after one more host is left out."""
        remaining = {other: files for other, files in self.comparable.items() if other != host}
        return HostComparison(remaining, (*self.refusals, refusal))


async def prepare_hosts(
    files: tuple[File, ...],
    folder: str,
    introductions: Sequence[Introduction],
    roster: Roster,
    *,
    ship: bool,
) -> HostComparison:
    """Compare the files of a plan on every host, and ship missing or different files.

    ``files`` are the files of the plan on this machine. ``folder`` is the working folder.

    Raise `UnusableInput` if all hosts are left out, or a file is too large to be shipped.
    """
    inventories = await asyncio.gather(
        *(_inventory(files, introduction, roster) for introduction in introductions)
    )
    comparison = compare_hosts(files, introductions, inventories, ship=ship)
    # Every host that needs files needs the same files.
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
        raise UnusableInput(f"no host can take part; for example, {first.what}", hint=first.hint)
    return comparison


async def _inventory(
    files: tuple[File, ...], introduction: Introduction, roster: Roster
) -> FileInventory | None:
    """Return the inventory of a host; ``None`` for another version or no answer."""
    if introduction.equipoise_version != version("equipoise"):
        return None
    host, request = introduction.host, FileInventory(files)
    try:
        return await roster.request(host, tasks.examine, request, FileInventory, EXAMINE_TIMEOUT_S)
    except (NoAnswer, EquipoiseError):
        return None


def _check_total_size(folder: str, files: Sequence[File]) -> None:
    sizes = [Path(folder, file.path).stat().st_size for file in files]
    if sum(sizes) > MAX_KEPT_BYTES:
        raise UnusableInput(
            f"shipping {counted(len(files), 'file')} needs {sum(sizes) >> 20} MiB; a host keeps at "
            f"most {MAX_KEPT_BYTES >> 20} MiB",
            hint="copy the large files into the folder of the worker on every host yourself",
        )


async def _ship(
    folder: str,
    host: HostReference,
    files: Sequence[File],
    roster: Roster,
    semaphore: asyncio.Semaphore,
) -> UnusableInput | None:
    """Ship files to one host; return the error, or ``None`` if all arrived."""
    for file in files:
        async with semaphore:
            shipment = shipment_of(file, folder)
            try:
                await roster.request(host, tasks.receive, shipment, ShipmentReply, SHIP_TIMEOUT_S)
            except (NoAnswer, EquipoiseError) as error:
                reason = error.what if isinstance(error, EquipoiseError) else str(error)
                return UnusableInput(
                    f"{file.path} could not be shipped to {host.name}: {reason}",
                    hint=f"copy the file to {host.name} yourself, or read the log of the worker",
                )
    return None


def compare_hosts(
    files: Sequence[File],
    introductions: Sequence[Introduction],
    inventories: Sequence[FileInventory | None],
    *,
    ship: bool,
) -> HostComparison:
    """Decide which hosts are comparable and, if ``ship`` is true, which files to ship to them.

    ``files`` are the files of the plan on the coordinator (`files_of`). ``introductions`` and
    ``inventories`` have the same order. An inventory is ``None`` if a host has another version, or
    did not answer.
    """
    comparable: dict[HostReference, tuple[File, ...]] = {}
    refusals: list[UnusableInput] = []
    for introduction, inventory in zip(introductions, inventories, strict=True):
        try:
            host = introduction.host
            comparable[host] = _files_to_ship(files, introduction, inventory, ship=ship)
        except UnusableInput as refusal:
            refusals.append(refusal)
    return HostComparison(comparable, tuple(refusals))


def _files_to_ship(
    files: Sequence[File],
    introduction: Introduction,
    inventory: FileInventory | None,
    *,
    ship: bool,
) -> tuple[File, ...]:
    """Return the files to ship to a host; raise `UnusableInput` if the host is left out."""
    own_version, name = version("equipoise"), introduction.host.name
    host_version = introduction.equipoise_version
    if host_version != own_version:
        raise UnusableInput(
            f"{name} has Equipoise {host_version}, this machine has {own_version}",
            hint=f"install Equipoise {own_version} on {name}",
        )
    paths = [file.path for file in files]
    if inventory is None or [file.path for file in inventory.files] != paths:
        hint = f"read the log of the worker on {name}, and run the command again"
        raise UnusableInput(f"{name} did not report its files", hint=hint)
    differences = {
        file.path: difference
        for file, host_file in zip(files, inventory.files, strict=True)
        if (difference := _difference(file, host_file)) is not None
    }
    if not differences:
        return ()
    outside_paths = [path for path in differences if not is_inside(path)]
    if ship and not outside_paths:
        # On the host, the campaign runs in a new working folder, so that folder needs all files.
        return tuple(file for file in files if is_inside(file.path))
    paths = outside_paths if ship else list(differences)
    hint = f"install the same files on {name}"
    if not outside_paths:
        hint = f"add {option('ship')}, or copy the files into {introduction.folder} on {name}"
    elif ship:
        hint += ": only files in the working folder can be shipped"
    sentences = [f"{_display_name(path)} {differences[path]}" for path in paths]
    raise UnusableInput(f"{name}: {listed(sentences, _MAX_DIFFERENCES, '; ')}", hint=hint)


def _display_name(path: str) -> str:
    """Return a path for a message, without the placeholder of a package's folder."""
    return path.rpartition("}")[2].lstrip("/") if path.startswith("{equipoise:") else path


def _difference(file: File, host_file: File) -> str | None:
    """Return how the file of a host differs; ``None`` if both files are the same."""
    if host_file.digest is None:
        return "is missing"
    if host_file.digest != file.digest:
        return "differs from the file of this machine"
    if file.is_program and not host_file.mode & 0o111:
        return "cannot be executed"
    return None


def shipment_of(file: File, folder: str) -> Shipment:
    """Read a file of the coordinator and return the message that ships the file.

    Raise `UnusableInput` if the file cannot be read, is too large, or has another digest.
    """
    path = Path(folder, file.path)
    content = read_whole(
        path, hint="do not change the file until the hosts have it", max_bytes=MAX_SHIPPED_BYTES
    )
    if len(content) > MAX_SHIPPED_BYTES:
        raise too_large_error(file.path, path.stat().st_size)
    if digest_of(content) != file.digest:
        raise UnusableInput(
            f"{path} changed while it was shipped",
            hint="run the command again when no program writes to the file",
        )
    return Shipment(file, content)


def files_of(
    plan: Plan, builds: Sequence[str] = (), build_lines: Sequence[str] = ()
) -> tuple[File, ...]:
    """Return the programs and inputs of a plan that must be the same on every host.

    These are programs, interpreters of scripts, the file for standard input, and files that an
    argument, a variable or a library names. A hook is included if its line has no shell syntax. A
    file that a build line names is included if it is in the working folder.

    ``plan`` has paths of this machine. ``builds`` are folders in which this machine built the
    levels of a study, and ``build_lines`` are the shell lines of these builds.
    """
    folders = MachineFolders(plan.measure.working_folder, tuple(builds))
    files: dict[str, File] = {}
    build_files = _files_of_lines(map(folders.to_local, build_lines), folders.working_folder)
    for path, is_program in (*_files_of_plan(plan), *build_files):
        name = folders.to_portable(path)
        if name.startswith("{equipoise:build:") or name in files:
            continue
        relative_path = name.removeprefix(f"{FOLDER_PLACEHOLDER}/")
        file = local_file(File(relative_path, None, is_program=is_program), folders.working_folder)
        if file.digest is not None:
            files[name] = file
    return tuple(files.values())


def _files_of_plan(plan: Plan) -> Iterator[tuple[str, bool]]:
    """Yield the absolute path of each file that a plan names, and whether it is a program."""
    folder = plan.measure.working_folder
    if plan.measure.input is not None:
        yield from _existing_file(plan.measure.input, folder)
    layouts = range(1, len(plan.layouts) + 1) if plan.layouts else (None,)
    known_commands: set[object] = set()
    for condition in plan.conditions:
        environment = {**own_environment(), **condition.environment}
        condition_folder = condition.process.working_folder or folder
        # The programs of all layouts use the same libraries, so one layout is enough.
        first_command, *other_commands = map(condition.command_in, layouts)
        commands = [(first_command, environment, condition_folder)]
        commands += [(argv, own_environment(), folder) for argv in _hooks_of(condition)]
        if condition.server is not None:
            commands += [
                (argv, _server_environment(condition.server), folder)
                for argv in _commands_of(condition.server)
            ]
        for argv, variables, command_folder in commands:
            command_key = (argv, command_folder, tuple(sorted(variables.items())))
            if command_key not in known_commands:
                known_commands.add(command_key)
                yield from _files_of_command(argv, variables, command_folder)
        for program, *arguments in other_commands:
            yield from _existing_file(program, condition_folder, is_program=True)
            for argument in arguments:
                yield from _files_of_argument(argument, condition_folder)
        environments = [condition.environment]
        environments += [] if condition.server is None else [condition.server.environment]
        for value in (value for table in environments for value in table.values()):
            for entry in re.split(r"[:\s]", value):
                if os.path.isabs(entry):
                    yield from _existing_file(entry, folder)
        for path in condition.mapped_from:
            yield from _existing_file(path, folder)


def _files_of_lines(lines: Iterable[str], folder: str) -> Iterator[tuple[str, bool]]:
    """Yield each file inside a folder that shell lines name, and whether it is a program."""
    for word in dict.fromkeys(word for line in lines for word in _SHELL_SEPARATORS.split(line)):
        for path, is_program in _existing_file(word, folder):
            if Path(path).is_relative_to(folder):
                yield path, is_program


def _hooks_of(condition: Condition) -> Iterator[tuple[str, ...]]:
    hooks = condition.hooks
    for line in (hooks.setup, hooks.prepare, hooks.conclude, hooks.cleanup):
        if line is not None and not _SHELL_CHARACTERS.search(line):
            try:
                yield tuple(shlex.split(line))
            except ValueError:
                # A quotation mark is missing: the shell will report the error.
                continue


def _commands_of(server: Server) -> Iterator[tuple[str, ...]]:
    argvs = (server.start, server.install, server.fill, server.prepare, server.ready, server.stop)
    return (argv for argv in argvs if argv is not None)


def _server_environment(server: Server) -> dict[str, str]:
    environment = {**own_environment(), **server.environment}
    path = os.pathsep.join((environment.get("PATH", os.defpath), *server.search_path))
    return {**environment, "PATH": path}


def _files_of_command(
    argv: Sequence[str], environment: Mapping[str, str], folder: str
) -> Iterator[tuple[str, bool]]:
    """Yield the program of a command, its interpreter, and its arguments that are files."""
    if not argv:
        return
    program = argv[0]
    if "/" not in program:
        program = shutil.which(program, path=environment.get("PATH")) or program
    for path, _ in _existing_file(program, folder):
        yield path, True
        mapped = mapped_libraries((path, *argv[1:]), environment, folder)
        yield from _existing_file(mapped.program or "", folder, is_program=True)
        # Libraries of the system may differ between hosts, so only the project's are compared.
        for library in (mapped.libraries or {}).values():
            if Path(library).is_relative_to(os.path.realpath(folder)) and folder != "/":
                yield from _existing_file(library, folder)
    for argument in argv[1:]:
        yield from _files_of_argument(argument, folder)


def _files_of_argument(argument: str, folder: str) -> Iterator[tuple[str, bool]]:
    yield from _existing_file(argument, folder)
    _, equals_sign, value = argument.partition("=")
    if equals_sign:
        yield from _existing_file(value, folder)


def _existing_file(
    path: str, folder: str, *, is_program: bool = False
) -> Iterator[tuple[str, bool]]:
    """Yield the absolute path of a file if it exists, and whether it is a program."""
    absolute_path = os.path.normpath(os.path.join(folder, path))
    try:
        is_file = os.path.isfile(absolute_path)
    except ValueError:
        # The path has a null byte.
        return
    if path and is_file and not absolute_path.startswith(_KERNEL_FOLDERS):
        yield absolute_path, is_program
