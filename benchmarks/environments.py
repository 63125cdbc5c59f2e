"""Environments of their own for packages that a benchmark runs beside Equipoise.

Some of them pin old versions of numpy, and none belongs into the environment that is measured.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

FOLDER = "equipoise-benchmarks"


class NoEnvironment(Exception):
    """The packages could not be installed."""


def python_with(*requirements: str) -> Path:
    """Return a Python interpreter with these packages; its environment is made once and kept.

    Raise `NoEnvironment`: pip could not install them.

    Parameters
    ----------
    requirements
        As pip takes them, with their versions: ``git-bayesect==1.2``.
    """
    kept = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / FOLDER
    digest = hashlib.sha256("\0".join((sys.version, *requirements)).encode()).hexdigest()[:16]
    folder = kept / digest
    python = folder / "bin" / "python"
    if not (folder / "complete").exists():
        shutil.rmtree(folder, ignore_errors=True)
        venv.create(folder, with_pip=True)
        words = (python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
        done = subprocess.run([*words, *requirements], capture_output=True, text=True)
        if done.returncode != 0:
            raise NoEnvironment(f"{' '.join(requirements)}: {done.stderr.strip()[-500:]}")
        (folder / "complete").touch()
    return python
