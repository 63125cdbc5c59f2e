"""Programs and inputs of a plan, by content, and paths that lie elsewhere on every host.

A file is known by the BLAKE2b digest of its bytes. Files that a host lacks are shipped: the host
keeps them under their digests in ``STATE/shipped``, and a campaign that needs them gets a working
folder of its own, into which they are copied.

A plan names absolute paths of the machine on which it was made: the working folder, the package,
its environment, builds. `portable` puts a placeholder for each path of that machine, and
`local_plan` puts the host's own in its place. Names of conditions stay as they are: they are the
same on every host.
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

from equipoise.cluster.messages import Build, File, Shipment, other_version
from equipoise.files.state import private_folder
from equipoise.files.writing import OPEN_UNTRUSTED, opened, write_whole
from equipoise.ledger.rows import from_text, to_text
from equipoise.measure.installation import native_programs
from equipoise.model.errors import UnusableInput
from equipoise.model.kinds import terms_from
from equipoise.model.packages import folders_with_programs
from equipoise.model.plan import Plan
from equipoise.shared.spelling import option

FOLDER = "{equipoise:folder}"
"""Stands for the working folder of the campaign."""
PACKAGE = "{equipoise:package}"
"""Stands for the folder of the installed package."""
ENVIRONMENT = "{equipoise:environment}"
"""Stands for the virtual environment of the interpreter."""
_OTHER_PACKAGE = "{{equipoise:package:{}}}"
_BUILD = "{{equipoise:build:{}}}"
_CONDITION_FIELDS = "command environment hooks process server mapped_from output".split()
"""Fields of a condition that may name a path."""
_MEASURE_FIELDS = ("input", "output")
"""Fields of the measurement that may name a path."""
_PATH_START = r"(?<![\w./-])"
_PATH_END = r"""(?=$|[/:;,\s"'])"""


class Places(Struct, frozen=True):
    """Folders of one machine that others have elsewhere."""

    folder: str
    """Absolute path of the working folder."""
    builds: tuple[str, ...] = ()
    """Folder of each level that a study builds, in the order of the order's builds."""
    package: str = str(native_programs().parent)
    packages: Mapping[str, str] = field(
        default_factory=lambda: {name: str(one) for name, one in folders_with_programs().items()}
    )
    """Folder of each package beside Equipoise that has programs, by its name."""
    environment: str = sys.prefix
    """Folder of the virtual environment. A folder of the system gets no placeholder."""

    def portable(self, text: str) -> str:
        """Return a text with placeholders for the paths of this machine."""
        for path, placeholder in self._placeholders():
            if path.strip("/") and path != sys.base_prefix:
                text = re.sub(_PATH_START + re.escape(path) + _PATH_END, placeholder, text)
        return text

    def local(self, text: str) -> str:
        """Return a text with the paths of this machine for the placeholders."""
        for path, placeholder in self._placeholders():
            text = text.replace(placeholder, path)
        return text

    def _placeholders(self) -> Sequence[tuple[str, str]]:
        """Return each path with its placeholder; what may lie inside of another comes first."""
        builds = [(path, _BUILD.format(number)) for number, path in enumerate(self.builds)]
        return (
            *builds,
            (self.package, PACKAGE),
            *((path, _OTHER_PACKAGE.format(name)) for name, path in self.packages.items()),
            (self.environment, ENVIRONMENT),
            (self.folder, FOLDER),
        )


def portable(plan: Plan, builds: Sequence[str] = ()) -> str:
    """Return a plan as an order has it.

    ``builds`` are the folders in which this machine has built the levels of a study, in the order
    of `portable_builds`.
    """
    places = Places(plan.measure.working_folder, tuple(builds))
    document = msgspec.to_builtins(plan)
    document["measure"]["working_folder"] = FOLDER
    return to_text(_with_paths(document, places.portable))


def portable_builds(lines: Mapping[str, str], folder: str) -> tuple[Build, ...]:
    """Return what every host builds itself.

    ``lines`` build the levels, by name, with the paths of this machine; ``folder`` is the plan's.
    """
    places = Places(folder)
    return tuple(Build(level, places.portable(line)) for level, line in lines.items())


def local_plan(text: str, places: Places) -> Plan:
    """Return the plan of an order, with the paths of this machine.

    Raise `UnusableInput` if the text is no plan.
    """
    try:
        document = _with_paths(from_text(text), places.local)
        document["measure"]["working_folder"] = places.folder
        return msgspec.convert(document, Plan, dec_hook=terms_from)
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise other_version(f"the plan of the order cannot be read: {error}") from error


def has_terms_of(ordered: str, recorded: str) -> bool:
    """Return whether a recorded plan is that of an order, up to what may name a path."""
    try:
        return _without_paths(from_text(ordered)) == _without_paths(from_text(recorded))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return False


def _without_paths(document: dict[str, Any]) -> dict[str, Any]:
    no_paths: dict[str, Any] = {
        "conditions": [_without(each, _CONDITION_FIELDS) for each in document["conditions"]]
    }
    no_paths["measure"] = _without(document["measure"], (*_MEASURE_FIELDS, "working_folder"))
    return {**document, **no_paths}


def _without(table: Mapping[str, Any], keys: Sequence[str]) -> dict[str, Any]:
    return {key: value for key, value in table.items() if key not in keys}


def _with_paths(document: Any, change: Callable[[str], str]) -> dict[str, Any]:
    """Return the document of a plan with each text changed that may hold a path."""
    conditions = [_changed_at(one, _CONDITION_FIELDS, change) for one in document["conditions"]]
    measure = _changed_at(document["measure"], _MEASURE_FIELDS, change)
    return {**document, "conditions": conditions, "measure": measure}


def _changed_at(
    table: Mapping[str, Any], keys: Sequence[str], change: Callable[[str], str]
) -> dict[str, Any]:
    return {key: _changed(each, change) if key in keys else each for key, each in table.items()}


def _changed(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {key: _changed(each, change) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_changed(each, change) for each in value]
    return value


def inside(path: str) -> bool:
    """Return whether a path is relative and stays inside of its folder, as written."""
    parts = Path(path).parts
    clean = os.path.normpath(path) == path and "\0" not in path
    return bool(parts) and clean and not os.path.isabs(path) and parts[0] not in ("..", ".")


SHIPPED = "shipped"
"""Folder of shipped files, in the state folder."""
MAX_SHIPPED_BYTES = 256 * 1024 * 1024
"""Largest size of a file that is shipped."""
MAX_KEPT_BYTES = 2 * 1024**3
"""Shipped files beyond this size together make room: those that were used last stay."""
_new_digest = partial(hashlib.blake2b, digest_size=16)
_DIGEST = re.compile("[0-9a-f]{32}")


def file_here(file: File, folder: str) -> File:
    """Return a file of a working folder as this host has it; without a digest if there is none."""
    path = os.path.join(folder, Places(folder).local(file.path))
    if file.is_program and not os.path.isfile(path):
        # A program of the system may lie elsewhere here.
        path = shutil.which(os.path.basename(path)) or path
    # Missing, unreadable, or no path at all (a zero byte): the host cannot use it.
    with contextlib.suppress(OSError, ValueError):
        mode = os.stat(path).st_mode
        if stat.S_ISREG(mode):
            return replace(file, digest=digest_of_file(path), mode=stat.S_IMODE(mode))
    return replace(file, digest=None)


def digest_of(content: bytes) -> str:
    """Return 32 hexadecimal digits that name a content."""
    return _new_digest(content).hexdigest()


def digest_of_file(path: str | Path) -> str:
    """Return 32 hexadecimal digits that name the content of a file.

    Raise `OSError` if it cannot be read.
    """
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, _new_digest).hexdigest()


def check_shipped(file: File) -> str:
    """Return the digest of a file that is shipped.

    Raise `UnusableInput` if its path leads out of the working folder, or it has no digest.
    """
    if not inside(file.path):
        raise UnusableInput(
            f"{file.path} cannot be shipped: it lies outside of the working folder",
            hint="put it into the working folder, or install the same on every host",
        )
    digest = file.digest or ""
    if not _DIGEST.fullmatch(digest):
        raise other_version(f"{file.path} cannot be shipped: {digest!r} is no digest")
    return digest


def keep(shipment: Shipment) -> str:
    """Keep a shipped file under its digest, which is returned; one that is kept already stays.

    Raise `UnusableInput` if it is too large, its content is not what its digest says, its path
    leads out of the working folder, or it cannot be written.
    """
    file, content = shipment.file, shipment.content
    digest = check_shipped(file)
    if len(content) > MAX_SHIPPED_BYTES:
        raise too_large(file.path, len(content))
    if digest_of(content) != digest:
        raise UnusableInput(
            f"{file.path} arrived with another content than was sent",
            hint="run it again: the file may have been changed while it was read",
        )
    kept = private_folder(SHIPPED) / digest
    try:
        with _alone_in(kept.parent):
            if not (kept.is_file() and digest_of_file(kept) == digest):
                _make_room(kept.parent, len(content))
                write_whole(kept, content)
            os.utime(kept)
    except OSError as error:
        raise UnusableInput(
            f"{os.uname().nodename} cannot keep {file.path}: {error.strerror or error}",
            hint=f"make room on the disk of {kept.parent} there",
        ) from error
    return digest


@contextlib.contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Lock a folder: two files that come at once would each find the same room."""
    with opened(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC) as descriptor:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield


def _make_room(folder: Path, size: int) -> None:
    """Remove the files that were shipped longest ago, until there is room for one more."""
    entries = [(entry.lstat(), entry) for entry in folder.iterdir()]
    room = MAX_KEPT_BYTES - size - sum(status.st_size for status, _ in entries)
    for status, entry in sorted(entries, key=lambda each: each[0].st_mtime_ns):
        if room >= 0:
            return
        entry.unlink(missing_ok=True)
        room += status.st_size


def too_large(path: str, size: int) -> UnusableInput:
    """Return the error for a file that is too large to be shipped."""
    return UnusableInput(
        f"{path} is too large to be shipped: {size >> 20} MiB, at most {MAX_SHIPPED_BYTES >> 20}",
        hint="copy it to every host yourself, into the folder of its worker",
    )


def fill_working_folder(files: tuple[File, ...], folder: Path) -> None:
    """Make the working folder of a campaign out of shipped files; one that is there stays.

    Raise `UnusableInput` if a path leads out of the folder, or a file was not shipped. Raise
    `OSError` if the folder cannot be written.
    """
    kept = private_folder(SHIPPED)
    checked = [(file, kept / check_shipped(file)) for file in files]
    if folder.is_dir():
        return
    unfinished = folder.with_name(f"{folder.name}.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(mode=0o700)
    for file, content in checked:
        target = unfinished / file.path
        target.parent.mkdir(parents=True, exist_ok=True)
        _copy(file, content, target)
    os.rename(unfinished, folder)


def _copy(file: File, kept: Path, target: Path) -> None:
    try:
        with (
            open(kept, "rb", opener=lambda path, _: os.open(path, OPEN_UNTRUSTED)) as source,
            target.open("xb") as copy,
        ):
            shutil.copyfileobj(source, copy)
    except FileNotFoundError as error:
        raise _not_kept(file) from error
    if digest_of_file(target) != file.digest:
        raise _not_kept(file)
    target.chmod((file.mode & 0o777) | stat.S_IRUSR | stat.S_IWUSR)


def _not_kept(file: File) -> UnusableInput:
    return UnusableInput(
        f"{os.uname().nodename} does not have {file.path} any more, which was shipped to it",
        hint=f"run it again with {option('ship')}",
    )
