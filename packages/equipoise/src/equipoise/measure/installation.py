"""Find the package's own programs and the system's shared libraries on this host."""

from __future__ import annotations

import itertools
import os
import sysconfig
from collections.abc import Iterator, Mapping
from glob import glob
from pathlib import Path

from equipoise.design.site import Site
from equipoise.measure.environment.hardware import instructions
from equipoise.measure.environment.system import Host
from equipoise.model.errors import UnusableInput
from equipoise.model.packages import NATIVE_FOLDER, own_file

REINSTALL_HINT = "run `make build` in a checkout, or install Equipoise again"
LOADER_CONFIGURATION = "/etc/ld.so.conf"
"""File that names folders of shared libraries (ldconfig(8))."""
_LIBRARY_FOLDERS = ("/lib", "/usr/lib", "/lib64", "/usr/lib64", "/usr/local/lib")


def native_programs() -> Path:
    """Return the folder of the package's own programs and libraries."""
    return Path(__file__).resolve().parent.parent / NATIVE_FOLDER


def launcher_program() -> Path:
    """Return the value of ``EQUIPOISE_LAUNCHER``, else the path of the package's own launcher.

    Raise `UnusableInput` if the launcher is missing.
    """
    configured_path = os.environ.get("EQUIPOISE_LAUNCHER")
    program = Path(configured_path) if configured_path else native_programs() / "equipoise-launcher"
    hint = (
        "correct the path in EQUIPOISE_LAUNCHER, or unset it" if configured_path else REINSTALL_HINT
    )
    return require_file(program, f"the launcher {program} does not exist", hint)


def require_file(path: Path, problem: str, hint: str = REINSTALL_HINT) -> Path:
    """Return the path of a native file of the package; raise `UnusableInput` if it is missing."""
    if not path.is_file():
        raise UnusableInput(problem, hint=hint)
    return path


def host_site() -> Site:
    """Return the facts of this host that the design of a study needs."""
    folder = native_programs()
    return Site(
        folder, lambda name: installed_library(name, folder, os.environ), instructions(Host())
    )


def installed_library(name: str, own_folder: Path, environment: Mapping[str, str]) -> str | None:
    """Return the absolute path of a library that the dynamic loader would find, or ``None``.

    ``name`` is a file name or a path. The libraries of Equipoise and of its extensions are in
    ``own_folder``, which is searched first. ``LD_LIBRARY_PATH`` in ``environment`` is searched
    next.
    """
    if "/" in name:
        return os.path.abspath(name) if os.path.isfile(name) else None
    if (own_library := own_file(name, own_folder)) is not None:
        return str(own_library)
    search_path = environment.get("LD_LIBRARY_PATH", "").split(":")
    machine = sysconfig.get_config_var("MULTIARCH")
    default_folders = [
        path
        for folder in _LIBRARY_FOLDERS
        for path in ([os.path.join(folder, str(machine)), folder] if machine else [folder])
    ]
    configured_folders = _configured_folders(LOADER_CONFIGURATION)
    for folder in itertools.chain(filter(None, search_path), configured_folders, default_folders):
        path = os.path.join(folder, name)
        if os.path.isfile(path):
            return os.path.abspath(path)
    return None


def _configured_folders(file: str) -> Iterator[str]:
    """Yield the folders that a file of ldconfig(8) and its included files name."""
    try:
        lines = Path(file).read_text("utf-8", "replace").splitlines()
    except OSError:
        # Not every system has this file.
        return
    for line in lines:
        entries = line.partition("#")[0].split()
        if entries[:1] == ["include"]:
            for pattern in entries[1:]:
                for included_file in sorted(glob(os.path.join(os.path.dirname(file), pattern))):
                    yield from _configured_folders(included_file)
        else:
            yield from entries
