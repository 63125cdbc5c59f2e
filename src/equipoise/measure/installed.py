"""Where a shared library is that the dynamic loader would find by its file name."""

from __future__ import annotations

import os
import sysconfig
from collections.abc import Iterator, Mapping
from glob import glob
from pathlib import Path

CONFIGURATION = "/etc/ld.so.conf"
_DEFAULT = ("/lib", "/usr/lib", "/lib64", "/usr/lib64", "/usr/local/lib")


def installed_library(name: str, own_folder: Path, environment: Mapping[str, str]) -> str | None:
    """The absolute path of a library; ``None`` if it is not there.

    Parameters
    ----------
    name
        A file name, or a path.
    own_folder
        The package's own libraries, which come first.
    environment
        Its ``LD_LIBRARY_PATH`` comes next.
    """
    if "/" in name:
        return os.path.abspath(name) if os.path.isfile(name) else None
    chosen = environment.get("LD_LIBRARY_PATH", "").split(":")
    for folder in (str(own_folder), *filter(None, chosen), *_folders()):
        path = os.path.join(folder, name)
        if os.path.isfile(path):
            return os.path.abspath(path)
    return None


def _folders() -> Iterator[str]:
    yield from _configured(CONFIGURATION)
    machine = sysconfig.get_config_var("MULTIARCH")
    for folder in _DEFAULT:
        if machine:
            yield os.path.join(folder, str(machine))
        yield folder


def _configured(file: str) -> Iterator[str]:
    """The folders that a file of ldconfig(8) names, and the files that it includes."""
    try:
        lines = Path(file).read_text("utf-8", "replace").splitlines()
    except OSError:
        # Not every system has one.
        return
    for line in lines:
        words = line.partition("#")[0].split()
        if words[:1] == ["include"]:
            for pattern in words[1:]:
                for included in sorted(glob(os.path.join(os.path.dirname(file), pattern))):
                    yield from _configured(included)
        else:
            yield from words
