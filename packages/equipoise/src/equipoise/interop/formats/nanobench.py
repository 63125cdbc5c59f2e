"""Reads the table that nanobench prints: each benchmark is a process without iterations.

::

    |               ns/op |                op/s |    err% |     total | benchmark
    |--------------------:|--------------------:|--------:|----------:|:----------
    |                7.52 |      132,948,239.79 |    1.1% |      0.00 | `some double ops`

The time is nanobench's median over its epochs. The columns ``ns/op`` and ``op/s`` have the same
value; the one with more digits is read. A benchmark with a title is called ``title: name``.
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

_HEADER = re.compile(
    r"^\|(?P<before>[^\n]*?\|)?\s*(?P<time>\w+)/(?P<unit>[^|\n]+?) \|\s*(?P=unit)/s \|"
    r"(?P<after>[^\n]*?)\|\s*total \| (?P<title>[^\n]*)\n\|-",
    re.MULTILINE,
)
_DEFAULT_TITLE = "benchmark"
_ROW = re.compile(
    r"^\|(?P<cells>(?:[ \d.,%-]+\|)+) (?P<mark>:\w+: )?`(?P<name>(?:[^`]|``)*)`(?!`)(?P<rest>.*)$",
    re.MULTILINE,
)
_ROW_BEGINNING = re.compile(r"^\|(?: +[\d.,%-]+ \|){3,}.*$", re.MULTILINE)
_FAILED = ":boom: "


def _recognises(file: SourceFile) -> bool:
    return _HEADER.search(file.beginning(65536).replace("\r", "")) is not None


def _read(file: SourceFile) -> Reading:
    text = file.text.replace("\r", "")
    headers = list(_HEADER.finditer(text))
    names, times, failures = [], [], []
    starts = [*(header.start() for header in headers), len(text)]
    for header, end in zip(headers, starts[1:], strict=True):
        for row in _rows(file, text, header.end(), end):
            name = row["name"].replace("``", "`")
            if header["title"] != _DEFAULT_TITLE:
                name = f"{header['title']}: {name}"
            if row["mark"] == _FAILED:
                failures.append((name, row["rest"].strip(" ()")))
            else:
                names.append(name)
                times.append(_seconds(file, header, row))
    return Reading(
        tool="nanobench",
        metric=TIME,
        processes=tuple(
            Process(name, {TIME: seconds})
            for name, seconds in zip(numbered(names), times, strict=True)
        ),
        notes=tuple(f"{name} was not measured: {reason}" for name, reason in failures),
        failures=tuple(failures),
    )


def _rows(file: SourceFile, text: str, start: int, end: int) -> Iterator[re.Match[str]]:
    """Yield the rows of a table; raise `UnusableInput` if a row is cut off."""
    for beginning in _ROW_BEGINNING.finditer(text, start, end):
        row = _ROW.match(text, beginning.start(), end)
        if row is None:
            line_number = text.count("\n", 0, beginning.start()) + 1
            raise file.error(f"line {line_number} is cut off: {quote(beginning[0].strip())}")
        yield row


def _seconds(file: SourceFile, header: re.Match[str], row: re.Match[str]) -> float:
    """Return the seconds of one unit of work, such as one operation or one byte."""
    cells = [cell.strip().replace(",", "") for cell in row["cells"].split("|")]
    first = (header["before"] or "").count("|")
    time_text, rate_text = (*cells[first : first + 2], "", "")[:2]
    seconds, rate = finite_number(time_text), finite_number(rate_text)
    factor = seconds_per(header["time"])
    if seconds is None or rate is None or factor is None:
        raise file.error(f"{quote(row['name'])} has no time in the column {header['time']}/op")
    if rate > 0 and len(rate_text.lstrip("0.")) > len(time_text.lstrip("0.")):
        return 1.0 / rate
    return seconds * factor


FORMAT = Format("nanobench", "./bench > FILE (with nanobench)", _recognises, _read)
