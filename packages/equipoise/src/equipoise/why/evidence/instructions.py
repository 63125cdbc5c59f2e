"""Instructions by function, counted by valgrind's callgrind, for hosts without counters.

The format is that of the Callgrind manual, "Callgrind Format Specification".
"""

from __future__ import annotations

import re
import shutil
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

from msgspec import Struct

from equipoise.model.errors import UnusableInput
from equipoise.why.evidence.observer import Process

_PREFIX = "callgrind"

_FUNCTION = re.compile(r"(c?fn)=(?:\((\d+)\)(?:\s|$))?(.*)")
"""Line that names a function or a called function. The file gives each name once with a number, and
later the number alone."""
_COSTS = re.compile(r"[+\-*\d]")


class Instructions(Struct, frozen=True):
    """Instructions outside the kernel, of one run and its descendants."""

    total: int
    functions: Mapping[str, int]
    """Instructions of each function itself, without the functions that it called."""
    unseen: tuple[str, ...]
    """Sentences about what could not be seen."""


def wrap(process: Process, folder: Path) -> Process:
    """Return the process under callgrind, which writes a file for each process into the folder.

    Raise `UnusableInput` if valgrind is missing.
    """
    valgrind = shutil.which("valgrind")
    if valgrind is None:
        raise UnusableInput(
            "valgrind is missing, which counts instructions", hint="apt-get install valgrind"
        )
    options = (
        "--quiet",
        "--tool=callgrind",
        "--trace-children=yes",
        f"--callgrind-out-file={folder / _PREFIX}.%p",
    )
    return Process((valgrind, *options, *process.command), process.environment)


def read(folder: Path) -> Instructions:
    """Read the files that callgrind wrote into the folder.

    Raise `UnusableInput` if callgrind wrote nothing.
    """
    files = sorted(folder.glob(f"{_PREFIX}.*"))
    if not files:
        raise UnusableInput(
            f"callgrind wrote nothing into {folder}", hint="read the reason in its standard error"
        )
    functions: Counter[str] = Counter()
    for file in files:
        with file.open(encoding="utf-8", errors="replace") as lines:
            functions.update(_functions(lines))
    return Instructions(
        total=functions.total(),
        functions=dict(functions.most_common()),
        unseen=("instructions inside the kernel", "what a killed process had carried out"),
    )


def _functions(lines: Iterable[str]) -> Counter[str]:
    """Return the first cost of each function, without the functions that it called."""
    names: dict[str, str] = {}
    sums: Counter[str] = Counter()
    function = ""
    is_cost_of_call = False
    for line in lines:
        if match := _FUNCTION.match(line):
            kind, number, name = match.groups()
            if number is not None:
                name = names.setdefault(number, name.strip() or number)
            if kind == "fn":
                function = name.strip()
        elif line.startswith("calls="):
            is_cost_of_call = True
        elif _COSTS.match(line):
            costs = line.split()
            if not is_cost_of_call and len(costs) > 1:
                sums[function] += int(costs[1])
            is_cost_of_call = False
    return sums
