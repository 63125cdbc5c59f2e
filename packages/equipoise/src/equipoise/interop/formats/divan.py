"""Reads the table that divan prints: each benchmark is a process without iterations.

The table is a tree. Its root is the program, and its leaves are benchmarks::

    example       fastest       │ slowest       │ median        │ mean          │ samples │ iters
    ╰─ sum                      │               │               │               │         │
       ├─ 10      9.29 ns       │ 12.1 ns       │ 9.31 ns       │ 9.4 ns        │ 100     │ 51200
       ╰─ 20      19.2 ns       │ 20.9 ns       │ 19.4 ns       │ 19.5 ns       │ 100     │ 25600

The time is the mean, which divan prints with four digits. Names are those of divan's filters:
``example::sum::10``. Lines with throughputs or allocations are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from equipoise.interop.reading import (
    TIME,
    Format,
    Process,
    Reading,
    SourceFile,
    finite_number,
    numbered,
    quote,
    seconds_per,
)

_BAR = r"\s*│ ?"
_TIME = r"[0-9.]+ (?:ps|ns|µs|ms|s|m|h|d)"
_ROOT_LINE = re.compile(
    rf"(?P<name>\S.*?)\s+fastest{_BAR}slowest{_BAR}median{_BAR}mean{_BAR}samples{_BAR}iters\s*"
)
_NODE_LINE = re.compile(r"(?P<indent>(?:│  |   )*)(?:├─ |╰─ )(?P<row>.*)")
_INDENT_LENGTH = 3
_STATISTICS = re.compile(
    rf"(?:^|\s){_TIME}{_BAR}{_TIME}{_BAR}{_TIME}{_BAR}(?P<mean>{_TIME}){_BAR}\d+{_BAR}\d+\s*$"
)
_NO_STATISTICS = re.compile(rf"{_BAR}{_BAR}{_BAR}{_BAR}{_BAR}\s*$")
_IGNORED = re.compile(rf"\s+\(ignored\)(?:{_BAR}{_BAR}{_BAR}{_BAR}{_BAR})?\s*$")
_LONG_UNITS = {"ps": 1e-12, "m": 60.0, "h": 3600.0, "d": 86400.0}
"""Seconds of divan's units that other tools do not use."""


def _recognises(file: SourceFile) -> bool:
    return any(_ROOT_LINE.fullmatch(line) for line in file.beginning(65536).splitlines())


def _read(file: SourceFile) -> Reading:
    names, times, ignored = [], [], []
    for name, seconds in _benchmarks(file):
        if seconds is None:
            ignored.append(name)
        else:
            names.append(name)
            times.append(seconds)
    return Reading(
        tool="divan",
        metric=TIME,
        processes=tuple(
            Process(name, {TIME: seconds})
            for name, seconds in zip(numbered(names), times, strict=True)
        ),
        notes=tuple(f"{name} is ignored, and was not run" for name in ignored),
    )


def _benchmarks(file: SourceFile) -> Iterator[tuple[str, float | None]]:
    """Yield the name and the mean of each benchmark; ``None`` for an ignored benchmark."""
    branch: list[str] = []
    """Names from the root to the latest node."""
    open_leaf: tuple[int, str] | None = None
    """Line and name of a benchmark that printed text before its statistics."""
    for line_number, line in file.lines():
        if root := _ROOT_LINE.fullmatch(line):
            _require_closed(file, open_leaf)
            branch = [root["name"]]
            continue
        node = _NODE_LINE.match(line) if branch else None
        statistics = _STATISTICS.search(line) if branch else None
        if node is not None:
            _require_closed(file, open_leaf)
            open_leaf = None
            ignored, parent = _IGNORED.search(line), _NO_STATISTICS.search(line)
            cells = statistics or ignored or parent
            # Without cells, the text of the benchmark follows its name and two spaces.
            row = node["row"].partition("  ")[0] if cells is None else line[: cells.start()]
            name_start = 0 if cells is None else node.start("row")
            depth = len(node["indent"]) // _INDENT_LENGTH + 1
            branch = [*branch[:depth], row[name_start:].rstrip()]
            if cells is None:
                open_leaf = (line_number, "::".join(branch))
            elif cells is ignored:
                yield "::".join(branch), None
        if statistics is not None and (node is not None or open_leaf is not None):
            name = open_leaf[1] if open_leaf is not None else "::".join(branch)
            open_leaf = None
            yield name, _seconds(file, line_number, statistics["mean"])
    _require_closed(file, open_leaf)


def _require_closed(file: SourceFile, open_leaf: tuple[int, str] | None) -> None:
    if open_leaf is not None:
        line_number, name = open_leaf
        raise file.error(f"line {line_number}: {quote(name)} has no times, or the text is cut off")


def _seconds(file: SourceFile, line_number: int, text: str) -> float:
    number, unit = text.split()
    value, factor = finite_number(number), _LONG_UNITS.get(unit) or seconds_per(unit)
    if value is None or factor is None:
        raise file.error(f"line {line_number}: {quote(text)} is not a time")
    return value * factor


FORMAT = Format("divan", "cargo bench > FILE (with divan)", _recognises, _read)
