"""Other packages: the entry points that they register, and the line that installs one.

A package registers its kinds of campaign (`equipoise.model.kinds`) and its studies
(`equipoise.studies.catalogue`). A package with programs or libraries in its folder ``_bin``
registers itself under ``equipoise.programs``, so that commands can name these files.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path

from equipoise.model.errors import UnusableInput
from equipoise.shared.extras import install_line

STUDIES = "equipoise-studies"
"""Distribution with the built-in studies, their workloads and `equipoise os`."""
COMMANDS_OF_STUDIES = frozenset({"os"})
"""Commands in the distribution `STUDIES`."""
PROGRAMS_OF_STUDIES = frozenset({"equipoise-probe", "equipoise-workload"})
"""Programs in the distribution `STUDIES`."""
PROGRAMS = "equipoise.programs"
"""Group of the entry points of packages with programs; each names the package."""
NATIVE_FOLDER = "_bin"
"""Folder of a package for its programs and libraries."""
_OWN_NAME_PREFIXES = ("equipoise-", "libequipoise_")
"""Prefixes of the names of Equipoise's programs and libraries."""


@functools.cache
def registered(group: str) -> Mapping[str, str]:
    """Return the import path of each entry point of a group, by name of the entry point."""
    # Imported here: this import takes longer than the start of most commands.
    from importlib.metadata import entry_points

    return {point.name: point.value for point in entry_points(group=group)}


def folder_of(package: str) -> Path:
    """Return the folder of a package that an entry point names, without importing its modules.

    Raise `UnusableInput` if the package cannot be found.
    """
    from importlib.util import find_spec

    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise UnusableInput(
            f"{package} is registered as a package for Equipoise, but it cannot be found",
            hint="reinstall the distribution that contains it, for example "
            f"`pip install --force-reinstall {STUDIES}`",
        )
    return Path(next(iter(spec.submodule_search_locations)))


@functools.cache
def folders_with_programs() -> Mapping[str, Path]:
    """Return the folder of each package that has programs, by the name of its entry point."""
    return {name: folder_of(package) for name, package in sorted(registered(PROGRAMS).items())}


def own_file(name: str, own_folder: Path) -> Path | None:
    """Return the path of a program or library of Equipoise or of a package that extends Equipoise.

    ``own_folder`` has the programs of Equipoise itself. Return ``None`` for all other names, and
    if no installed package has the file.
    """
    if "/" in name or not name.startswith(_OWN_NAME_PREFIXES):
        return None
    if (own_folder / name).is_file():
        return own_folder / name
    for folder in folders_with_programs().values():
        if (folder / NATIVE_FOLDER / name).is_file():
            return folder / NATIVE_FOLDER / name
    return None


def missing_studies_error(subject: str) -> UnusableInput:
    """Return the error that ``subject`` is in the package of the studies, which is missing."""
    return UnusableInput(
        f"{subject} is in {STUDIES}, which is not installed", hint=install_line(STUDIES)
    )
