"""The source ``instructions``: instructions by function, counted by valgrind's callgrind.

Callgrind needs no hardware counters. Its manual has the "Callgrind Format Specification".
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

from msgspec import Struct

from equipoise.counting.callgrind import FILE_PREFIX, command_under_callgrind
from equipoise.model.errors import UnusableInput
from equipoise.why.evidence.observer import Process

_FUNCTION_LINE = re.compile(r"(c?fn)=(?:\((\d+)\)(?:\s|$))?(.*)")
"""Line that names a function or a called function. The file gives each name once with a number, and
later the number alone."""
_COST_LINE = re.compile(r"[+\-*\d]")
"""Beginning of a line with costs. A line ``calls=`` comes before the costs of a called function."""


class Instructions(Struct, frozen=True):
    """Instructions outside the kernel, of one run and its descendants."""

    total: int
    functions: Mapping[str, int]
    """Instructions of each function itself, without the functions that it called."""
    unseen: tuple[str, ...]


def wrap(process: Process, folder: Path) -> Process:
    """Return the process under callgrind; raise `UnusableInput` if valgrind is missing."""
    return Process(command_under_callgrind(process.command, folder), process.environment)


def read(folder: Path) -> Instructions:
    """Read the files of callgrind; raise `UnusableInput` if callgrind wrote nothing."""
    files = sorted(folder.glob(f"{FILE_PREFIX}.*"))
    if not files:
        raise UnusableInput(
            f"callgrind wrote nothing into {folder}",
            hint="run the command by hand under `valgrind --tool=callgrind` to see its error",
        )
    functions: Counter[str] = Counter()
    for file in files:
        with file.open(encoding="utf-8", errors="replace") as lines:
            functions.update(_instructions_of(lines))
    return Instructions(
        total=functions.total(),
        functions=dict(functions.most_common()),
        unseen=("the kernel's instructions are missing", "killed processes are missing"),
    )


def _instructions_of(lines: Iterable[str]) -> Counter[str]:
    """Return the instructions of each function without its callees."""
    names: dict[str, str] = {}
    sums: Counter[str] = Counter()
    function = ""
    is_cost_of_call = False
    for line in lines:
        if match := _FUNCTION_LINE.match(line):
            keyword, name_number, name = match.groups()
            if name_number is not None:
                name = names.setdefault(name_number, name.strip() or name_number)
            if keyword == "fn":
                function = name.strip()
        elif line.startswith("calls="):
            is_cost_of_call = True
        elif _COST_LINE.match(line):
            position_and_costs = line.split()
            if not is_cost_of_call and len(position_and_costs) > 1:
                sums[function] += int(position_and_costs[1])
            is_cost_of_call = False
    return sums
