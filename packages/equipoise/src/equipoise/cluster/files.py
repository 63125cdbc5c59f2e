"""Ship (send) the files of a plan to hosts, and translate the paths that differ between machines.

The BLAKE2b digest of a file's bytes identifies the file. A host keeps shipped files in
``STATE/shipped``, with the digests as names. If a campaign needs shipped files, it gets a new
working folder with copies of these files.

A plan has absolute paths of one machine: the working folder, the package Equipoise, the virtual
environment, and builds. `portable_plan` replaces these paths by placeholders, and `local_plan`
replaces the placeholders by the paths of a host. Names of conditions do not change.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
import shutil
import stat
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from equipoise.cluster.messages import Build, File, Shipment, version_mismatch
from equipoise.files.state import private_folder
from equipoise.files.writing import OPEN_UNTRUSTED, opened, write_whole
from equipoise.ledger.rows import from_text, to_text
from equipoise.measure.installation import native_programs
from equipoise.model.errors import UnusableInput
from equipoise.model.kinds import terms_from
from equipoise.model.packages import folders_with_programs
from equipoise.model.plan import Plan
from equipoise.shared.spelling import option

FOLDER_PLACEHOLDER = "{equipoise:folder}"
PACKAGE_PLACEHOLDER = "{equipoise:package}"
ENVIRONMENT_PLACEHOLDER = "{equipoise:environment}"
_OTHER_PACKAGE_PLACEHOLDER = "{{equipoise:package:{}}}"
_BUILD_PLACEHOLDER = "{{equipoise:build:{}}}"
"""This placeholder and those above replace the paths of `MachineFolders`."""
_CONDITION_FIELDS = "command environment hooks process server mapped_from output".split()
"""Fields of a condition that may name a path."""
_MEASURE_FIELDS = ("input", "output")
"""Fields of the measurement that may name a path."""
# Boundaries of a path in a text, so that /a/b is not found in /a/bc or in /x/a/b.
_PATH_START = r"(?<![\w./-])"
_PATH_END = r"""(?=$|[/:;,\s"'])"""


class MachineFolders(Struct, frozen=True):
    """Folders of one machine whose paths differ on other machines."""

    working_folder: str
    """Absolute path."""
    builds: tuple[str, ...] = ()
    """Folder of each level that a study builds, in the order of `Order.builds`."""
    package: str = str(native_programs().parent)
    """Folder of the package Equipoise."""
    other_packages: Mapping[str, str] = field(
        default_factory=lambda: {
            name: str(folder) for name, folder in folders_with_programs().items()
        }
    )
    """Folders of other packages that have programs, by the name of the package."""
    environment: str = sys.prefix
    """Folder of the virtual environment. The system's Python gets no placeholder."""

    def to_portable(self, text: str) -> str:
        """Replace the paths of this machine in a text by placeholders."""
        for path, placeholder in self._placeholders():
            if path.strip("/") and path != sys.base_prefix:
                text = re.sub(_PATH_START + re.escape(path) + _PATH_END, placeholder, text)
        return text

    def to_local(self, text: str) -> str:
        """Replace the placeholders in a text by the paths of this machine."""
        for path, placeholder in self._placeholders():
            text = text.replace(placeholder, path)
        return text

    def _placeholders(self) -> Sequence[tuple[str, str]]:
        """Return paths with their placeholders; a folder comes after the folders inside it."""
        return (
            *((path, _BUILD_PLACEHOLDER.format(number)) for number, path in enumerate(self.builds)),
            (self.package, PACKAGE_PLACEHOLDER),
            *(
                (path, _OTHER_PACKAGE_PLACEHOLDER.format(name))
                for name, path in self.other_packages.items()
            ),
            (self.environment, ENVIRONMENT_PLACEHOLDER),
            (self.working_folder, FOLDER_PLACEHOLDER),
        )


def portable_plan(plan: Plan, builds: Sequence[str] = ()) -> str:
    """Return the text of a plan for an order, with placeholders for paths.

    ``builds`` are the folders in which this machine has built the levels of a study, in the
    order of `portable_builds`.
    """
    folders = MachineFolders(plan.measure.working_folder, tuple(builds))
    document = msgspec.to_builtins(plan)
    document["measure"]["working_folder"] = FOLDER_PLACEHOLDER
    return to_text(_change_paths(document, folders.to_portable))


def portable_builds(lines: Mapping[str, str], folder: str) -> tuple[Build, ...]:
    """Return the builds that every host makes, with placeholders for paths.

    ``lines`` has the shell line of each build, by level. ``folder`` is the working folder of the
    plan.
    """
    folders = MachineFolders(folder)
    return tuple(Build(level, folders.to_portable(line)) for level, line in lines.items())


def local_plan(text: str, folders: MachineFolders) -> Plan:
    """Return the plan of an order, with the paths of this machine.

    Raise `UnusableInput` if the text is not a plan.
    """
    try:
        document = _change_paths(from_text(text), folders.to_local)
        document["measure"]["working_folder"] = folders.working_folder
        return msgspec.convert(document, Plan, dec_hook=terms_from)
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise version_mismatch(f"the plan of the order cannot be read: {error}") from error


def are_equal_plans(ordered: str, recorded: str) -> bool:
    """Return whether the plan of an order and the plan of a record are equal except for paths."""
    try:
        return _without_paths(from_text(ordered)) == _without_paths(from_text(recorded))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return False


def _without_paths(document: dict[str, Any]) -> dict[str, Any]:
    conditions = [
        _without_keys(condition, _CONDITION_FIELDS) for condition in document["conditions"]
    ]
    measure = _without_keys(document["measure"], (*_MEASURE_FIELDS, "working_folder"))
    return {**document, "conditions": conditions, "measure": measure}


def _without_keys(table: Mapping[str, Any], keys: Sequence[str]) -> dict[str, Any]:
    return {key: value for key, value in table.items() if key not in keys}


def _change_paths(document: Any, change: Callable[[str], str]) -> dict[str, Any]:
    """Apply ``change`` to each text of a plan that may contain a path."""
    conditions = [
        _change_fields(condition, _CONDITION_FIELDS, change) for condition in document["conditions"]
    ]
    measure = _change_fields(document["measure"], _MEASURE_FIELDS, change)
    return {**document, "conditions": conditions, "measure": measure}


def _change_fields(
    table: Mapping[str, Any], keys: Sequence[str], change: Callable[[str], str]
) -> dict[str, Any]:
    return {
        key: _change_texts(value, change) if key in keys else value for key, value in table.items()
    }


def _change_texts(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {key: _change_texts(item, change) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_change_texts(item, change) for item in value]
    return value


def is_inside(path: str) -> bool:
    """Return whether a path is relative and has no part ``.`` or ``..``."""
    parts = Path(path).parts
    is_normalised = os.path.normpath(path) == path and "\0" not in path
    return bool(parts) and is_normalised and not os.path.isabs(path) and parts[0] not in ("..", ".")


SHIPPED_FOLDER = "shipped"
"""Name of the folder of shipped files, in the state folder."""
MAX_SHIPPED_BYTES = 256 * 1024 * 1024
"""Maximum size of one shipped file."""
MAX_KEPT_BYTES = 2 * 1024**3
"""Maximum size of all shipped files on a host; `_make_room` removes older files."""
_new_digest = partial(hashlib.blake2b, digest_size=16)
_DIGEST_PATTERN = re.compile("[0-9a-f]{32}")
"""Digest as 32 hexadecimal digits."""


def local_file(file: File, folder: str) -> File:
    """Return the same file on this host, without a digest if the file cannot be read."""
    path = os.path.join(folder, MachineFolders(folder).to_local(file.path))
    if file.is_program and not os.path.isfile(path):
        # On this host, a program of the system may be in another folder.
        path = shutil.which(os.path.basename(path)) or path
    # ValueError: the path contains a null byte.
    with contextlib.suppress(OSError, ValueError):
        mode = os.stat(path).st_mode
        if stat.S_ISREG(mode):
            return replace(file, digest=digest_of_file(path), mode=stat.S_IMODE(mode))
    return replace(file, digest=None)


def digest_of(content: bytes) -> str:
    """Return the digest of bytes as 32 hexadecimal digits."""
    return _new_digest(content).hexdigest()


def digest_of_file(path: str | Path) -> str:
    """Return the digest of a file's content; raise `OSError` if the file cannot be read."""
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, _new_digest).hexdigest()


def check_shipped(file: File) -> str:
    """Return the digest of a shipped file.

    Raise `UnusableInput` if the path leads out of the working folder, or the digest is missing.
    """
    if not is_inside(file.path):
        raise UnusableInput(
            f"{file.path} cannot be shipped: it is outside the working folder",
            hint="move the file into the working folder, or install the same file on every host",
        )
    digest = file.digest or ""
    if not _DIGEST_PATTERN.fullmatch(digest):
        raise version_mismatch(f"{file.path} cannot be shipped: {digest!r} is not a digest")
    return digest


def keep_file(shipment: Shipment) -> str:
    """Keep a shipped file on this host, with the digest as its name; return the digest.

    Raise `UnusableInput` if the file is too large, the digest is wrong, the path leads out of the
    working folder, or the file cannot be written.
    """
    file, content = shipment.file, shipment.content
    digest = check_shipped(file)
    if len(content) > MAX_SHIPPED_BYTES:
        raise too_large_error(file.path, len(content))
    if digest_of(content) != digest:
        raise UnusableInput(
            f"{file.path} arrived with different content",
            hint="run the command again when no program writes to the file",
        )
    path = private_folder(SHIPPED_FOLDER) / digest
    try:
        with _lock_folder(path.parent):
            if not (path.is_file() and digest_of_file(path) == digest):
                _make_room(path.parent, len(content))
                write_whole(path, content)
            os.utime(path)
    except OSError as error:
        raise UnusableInput(
            f"{os.uname().nodename} cannot keep {file.path}: {error.strerror or error}",
            hint=f"free space on the disk of {path.parent} on this host",
        ) from error
    return digest


@contextlib.contextmanager
def _lock_folder(folder: Path) -> Iterator[None]:
    """Lock a folder, so that only one process at a time makes room and writes."""
    with opened(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC) as descriptor:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield


def _make_room(folder: Path, size: int) -> None:
    """Remove the least recently used files until there is room for ``size`` bytes."""
    entries = [(entry.lstat(), entry) for entry in folder.iterdir()]
    free_bytes = MAX_KEPT_BYTES - size - sum(status.st_size for status, _ in entries)
    for status, entry in sorted(entries, key=lambda item: item[0].st_mtime_ns):
        if free_bytes >= 0:
            return
        entry.unlink(missing_ok=True)
        free_bytes += status.st_size


def too_large_error(path: str, size: int) -> UnusableInput:
    """Return the error for a file that is too large to ship."""
    return UnusableInput(
        f"{path} is too large to be shipped: it has {size >> 20} MiB, and the limit is "
        f"{MAX_SHIPPED_BYTES >> 20} MiB",
        hint="copy the file into the folder of the worker on every host yourself",
    )


def fill_working_folder(files: tuple[File, ...], folder: Path) -> None:
    """Make the working folder of a campaign from shipped files; keep an existing folder.

    Raise `UnusableInput` if a path leads out of the folder, or a file was not shipped. Raise
    `OSError` if the folder cannot be written.
    """
    shipped_folder = private_folder(SHIPPED_FOLDER)
    shipped_files = [(file, shipped_folder / check_shipped(file)) for file in files]
    if folder.is_dir():
        return
    unfinished_folder = folder.with_name(f"{folder.name}.unfinished")
    shutil.rmtree(unfinished_folder, ignore_errors=True)
    unfinished_folder.mkdir(mode=0o700)
    for file, kept_path in shipped_files:
        target = unfinished_folder / file.path
        target.parent.mkdir(parents=True, exist_ok=True)
        _copy(file, kept_path, target)
    os.rename(unfinished_folder, folder)


def _copy(file: File, kept_path: Path, target: Path) -> None:
    try:
        with (
            open(kept_path, "rb", opener=lambda path, _: os.open(path, OPEN_UNTRUSTED)) as source,
            target.open("xb") as target_file,
        ):
            shutil.copyfileobj(source, target_file)
    except FileNotFoundError as error:
        raise _missing_file_error(file) from error
    if digest_of_file(target) != file.digest:
        raise _missing_file_error(file)
    target.chmod((file.mode & 0o777) | stat.S_IRUSR | stat.S_IWUSR)


def _missing_file_error(file: File) -> UnusableInput:
    return UnusableInput(
        f"{os.uname().nodename} has lost the shipped file {file.path}",
        hint=f"run the command again with {option('ship')}",
    )
