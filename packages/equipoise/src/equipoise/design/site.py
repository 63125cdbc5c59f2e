"""Facts of the host that a study needs, and the things that a study needs but the host lacks."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from glob import glob
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field

from equipoise.model.packages import STUDIES, own_file
from equipoise.model.record import CampaignWarning
from equipoise.shared.extras import install_line

if TYPE_CHECKING:
    from equipoise.model.study import Factor, Level, Place, ServerWorkload, Study

_PLAIN_NAME = re.compile(r"[A-Za-z0-9][\w.+-]*")
"""Name of a program, without a path, a placeholder or shell syntax."""


class Site(Struct, frozen=True):
    """The facts of the host that a study needs."""

    native_programs: Path
    """Folder of the programs of Equipoise."""
    find_library: Callable[[str], str | None]
    """Function from the file name or path of a library to its absolute path, or ``None``."""
    instructions: frozenset[str] | None = None
    """Instructions of the CPU, by their names in ``/proc/cpuinfo``; ``None`` if unknown."""
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    """Environment variables that trials inherit."""
    cpus: tuple[int, ...] = field(default_factory=lambda: tuple(sorted(os.sched_getaffinity(0))))
    """CPUs that this process may use."""


class MissingThing(Struct, frozen=True):
    """A thing that a level needs and this host lacks, such as a library."""

    what: str
    """Name of the thing in a message."""
    hint: str
    key: str
    """Key in the level's table that names the thing."""


def first_missing(level: Level, site: Site) -> MissingThing | None:
    """Return the first thing that this host lacks for a level; ``None`` if the level can run."""
    return next(_missing_things(level, site), None)


def remove_missing_levels(study: Study, site: Site) -> tuple[Study, tuple[CampaignWarning, ...]]:
    """Remove the levels that cannot run on this host; return the study and a warning for each.

    Raise `UnusableInput` if the baseline or all other levels of the compared factor cannot run.
    """
    server = study.workload.server
    missing_program = None if server is None else _missing_program(server, site.native_programs)
    if missing_program is not None:
        raise study.places.key("workload", "server", missing_program.key).error(
            f"there is no program '{missing_program.what}' on the PATH", missing_program.hint
        )
    baselines = {} if study.compared is None else {study.compared.factor: study.compared.baseline}
    warnings: list[CampaignWarning] = []
    factors: list[Factor] = []
    for factor in study.factors:
        baseline = baselines.get(factor.name)
        kept_levels: list[Level] = []
        for level in factor.levels:
            missing = first_missing(level, site)
            if missing is None:
                kept_levels.append(level)
                continue
            problem = f"{factor.name} {level.name} cannot run here: there is no {missing.what}"
            if level.name == baseline:
                raise study.places.table("factors", factor.name, level.name).error(
                    f"the baseline {problem}", missing.hint
                )
            missing_place = study.places.key("factors", factor.name, level.name, missing.key)
            warnings.append(
                CampaignWarning("level_missing", f"{problem}; it is left out", missing.hint)
            )
        if not kept_levels:
            raise study.places.table("factors", factor.name).error(
                f"no level of {factor.name} can run here: {warnings[-1].summary}", warnings[-1].hint
            )
        if baseline is not None and len(kept_levels) == 1 < len(factor.levels):
            raise missing_place.error(
                f"nothing is left to compare {kept_levels[0].name} with: {warnings[-1].summary}",
                warnings[-1].hint,
            )
        factors.append(replace(factor, levels=tuple(kept_levels)))
    return replace(study, factors=tuple(factors)), tuple(warnings)


def setting_place(study: Study, levels: dict[str, str], key: str, value: str | None) -> Place:
    """Return the place in the study file of the first level that has a setting.

    ``levels`` has the level of each factor. ``key`` is the key of the setting in the table of a
    level. ``value`` is a variable for the key ``env``, and a folder for ``library_path``.
    """
    for factor in study.factors:
        for level in factor.levels:
            if level.name == levels.get(factor.name) and _has_setting(level, key, value):
                inner_keys = (value,) if key == "env" and value is not None else ()
                return study.places.key("factors", factor.name, level.name, key, *inner_keys)
    return study.places.table("factors")


def _has_setting(level: Level, key: str, value: str | None) -> bool:
    return {
        "env": value in level.environment,
        "library_path": value in level.library_path,
        "preload": bool(level.preload),
        "cpu": level.process.cpus is not None,
        "huge_pages": level.process.huge_pages is not None,
    }.get(key, False)


def _missing_things(level: Level, site: Site) -> Iterator[MissingThing]:
    install_hint = f"apt install {level.package}" if level.package else "install it"
    for library in level.preload:
        if site.find_library(library) is None:
            is_of_equipoise = level.package is None and library.startswith("libequipoise_")
            yield MissingThing(
                library, install_line(STUDIES) if is_of_equipoise else install_hint, "preload"
            )
    for path in level.library_path:
        if not os.path.isdir(path):
            yield MissingThing(f"folder {path}", install_hint, "library_path")
    folder = level.process.working_folder
    if folder is not None and not os.path.isdir(folder):
        yield MissingThing(f"folder {folder}", install_hint, "folder")
    for cpu in (*(level.process.cpus or ()), *(level.client_cpus or ())):
        if cpu not in site.cpus:
            hint = f"use only these CPUs: {', '.join(map(str, site.cpus))}"
            yield MissingThing(f"CPU {cpu} that Equipoise may use", hint, "cpu")
    server_path = None
    if level.server is not None:
        missing_program = _missing_program(level.server, site.native_programs)
        if missing_program is not None:
            yield MissingThing(f"program {missing_program.what}", missing_program.hint, "server")
        server_path = search_path(level.server)
    if level.command is not None and _is_absent(
        level.command[0], site.native_programs, server_path
    ):
        yield MissingThing(f"program {level.command[0]}", install_hint, "command")
    builder = (level.build or "").partition(" ")[0]
    if _PLAIN_NAME.fullmatch(builder) and shutil.which(builder) is None:
        yield MissingThing(f"program {builder}", install_hint, "build")
    for instruction in level.instructions:
        if site.instructions is not None and instruction not in site.instructions:
            yield MissingThing(
                f"{instruction} in this CPU", "use a host whose CPU has it", "instructions"
            )


def _is_absent(program: str, native_programs: Path, server_path: str | None) -> bool:
    """Return whether a program is not installed; False if it contains a placeholder."""
    if "{" in program:
        return False
    try:
        is_of_equipoise = own_file(program, native_programs) is not None
        return not is_of_equipoise and not shutil.which(program, path=server_path)
    except OSError:
        # No file can have this name, for example because it is too long.
        return True


def search_folders(server: ServerWorkload) -> tuple[str, ...]:
    """Return the folders that match each pattern of the server, the latest version first."""
    return tuple(
        folder
        for pattern in server.path
        for folder in sorted(filter(os.path.isdir, glob(pattern)), key=_version_of, reverse=True)
    )


def search_path(server: ServerWorkload) -> str:
    """Return ``PATH``, followed by the folders that match the server's patterns."""
    return os.pathsep.join((os.environ.get("PATH", os.defpath), *search_folders(server)))


def _missing_program(server: ServerWorkload, native_programs: Path) -> MissingThing | None:
    """Return the first program of a server that this host lacks; ``None`` if it has all."""
    server_path = search_path(server)
    # The table `needs` comes first, because it names Debian packages.
    key_by_program = dict.fromkeys(server.needs, "needs")
    for key, command in server.commands().items():
        key_by_program.setdefault(command[0], key)
    for program, key in key_by_program.items():
        if _is_absent(program, native_programs, server_path):
            package = server.needs.get(program)
            hint = "install it, or add its folder to the key path of the server"
            return MissingThing(program, f"apt install {package}" if package else hint, key)
    return None


def _version_of(path: str) -> list[str | int]:
    """Return a sort key that compares the numbers in paths as numbers."""
    return [int(text) if text.isdigit() else text for text in re.split(r"(\d+)", path)]
