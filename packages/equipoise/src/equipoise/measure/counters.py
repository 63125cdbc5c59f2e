"""Finds out which counters this host has, by one short run."""

from __future__ import annotations

import os
import shutil

from equipoise.measure.installation import launcher_program
from equipoise.measure.launcher import Launcher, Request

_PROGRAM = "true"
"""Program of every system that does nothing."""


def missing_counters(names: tuple[str, ...]) -> dict[str, str]:
    """Return the reason for each counter that this host lacks or forbids.

    Raise `EquipoiseError` if the launcher is missing or cannot start.
    """
    program = shutil.which(_PROGRAM) or f"/bin/{_PROGRAM}"
    request = Request(argv=(program,), environment={}, working_folder=os.sep)
    with Launcher(launcher_program(), counters=names) as launcher:
        report = launcher.run(request)
    return {
        name: report.unknown.get(name, "the program could not start")
        for name in names
        if report.counters.get(name) is None
    }
