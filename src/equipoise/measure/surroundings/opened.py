"""Which libraries a condition opens while it runs: written down by its own loader, untimed.

``LD_DEBUG=libs`` makes the loader name each library that it initialises (ld.so(8)), those too
that a program opens later by dlopen, of the process and of all that it starts.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from equipoise.measure.surroundings.untimed import run_untimed

_INITIALISED = re.compile(r"calling init: (?P<path>/.*)$", re.MULTILINE)


def opened_libraries(
    command: Sequence[str], environment: Mapping[str, str], working_folder: str, timeout_s: float
) -> frozenset[str]:
    """Run a command once, and find the real paths of the libraries that it opened.

    Raises
    ------
    Unknown
        It cannot be run, or takes longer than ``timeout_s`` seconds.
    """
    with tempfile.TemporaryDirectory(prefix="equipoise-") as scratch:
        told = {"LD_DEBUG": "libs", "LD_DEBUG_OUTPUT": os.path.join(scratch, "libs")}
        run_untimed(command, {**environment, **told}, working_folder, timeout_s)
        texts = (file.read_text("utf-8", "backslashreplace") for file in Path(scratch).iterdir())
        paths = {found["path"] for text in texts for found in _INITIALISED.finditer(text)}
    return frozenset(os.path.realpath(path) for path in paths)
