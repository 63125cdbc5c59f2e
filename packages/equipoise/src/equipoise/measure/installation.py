"""Places of the package's own programs and of the system's shared libraries on this host."""

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

REINSTALL = "run `make build` in a checkout, or install the package again"
LOADER_CONFIGURATION = "/etc/ld.so.conf"
_LIBRARY_FOLDERS = ("/lib", "/usr/lib", "/lib64", "/usr/lib64", "/usr/local/lib")


def native_programs() -> Path:
    """Return the folder of the package's own programs and libraries."""
    return Path(__file__).resolve().parent.parent / NATIVE_FOLDER


def launcher_program() -> Path:
    """Return the path of the launcher: the package's own, or the value of ``EQUIPOISE_LAUNCHER``.

    Raise `UnusableInput` if it is missing.
    """
    chosen = os.environ.get("EQUIPOISE_LAUNCHER")
    program = Path(chosen) if chosen else native_programs() / "equipoise-launcher"
    return present(program, f"the launcher is missing: {program}")


def present(path: Path, problem: str) -> Path:
    """Return a native file of the package; raise `UnusableInput` if it is missing."""
    if not path.is_file():
        raise UnusableInput(problem, hint=REINSTALL)
    return path


def host_site() -> Site:
    """Return the facts of this host that the design of a study needs."""
    own = native_programs()
    return Site(own, lambda name: installed_library(name, own, os.environ), instructions(Host()))


def installed_library(name: str, own_folder: Path, environment: Mapping[str, str]) -> str | None:
    """Return the absolute path of a library that the dynamic loader would find, or ``None``.

    ``name`` is a file name or a path. The library of Equipoise in ``own_folder``, or of a package
    that extends it, comes first, then those of ``LD_LIBRARY_PATH`` in ``environment``.
    """
    if "/" in name:
        return os.path.abspath(name) if os.path.isfile(name) else None
    if (own := own_file(name, own_folder)) is not None:
        return str(own)
    chosen = environment.get("LD_LIBRARY_PATH", "").split(":")
    machine = sysconfig.get_config_var("MULTIARCH")
    usual = [
        path
        for folder in _LIBRARY_FOLDERS
        for path in ([os.path.join(folder, str(machine)), folder] if machine else [folder])
    ]
    configured = _configured_folders(LOADER_CONFIGURATION)
    for folder in itertools.chain(filter(None, chosen), configured, usual):
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
        words = line.partition("#")[0].split()
        if words[:1] == ["include"]:
            for pattern in words[1:]:
                for included in sorted(glob(os.path.join(os.path.dirname(file), pattern))):
                    yield from _configured_folders(included)
        else:
            yield from words
