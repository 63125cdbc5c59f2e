"""Reads a file of another tool: checks its size, recognises its format, and decodes it."""

from __future__ import annotations

import codecs
import csv
import io
import math
import os
import stat
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec
from msgspec import Struct, field

from equipoise.model.errors import UnusableInput
from equipoise.shared.spelling import option

TIME = "time_s"
"""Metric of the seconds of one iteration; the metric of a whole process is ``wall_s``."""
MEDIAN_TIME = "median_s"
"""Metric of the median seconds of the iterations in one process, if the tool tells it."""
FILE_FACTS = "as_the_file_says"
"""Key in an environment for the facts that an imported file has about its host."""
BENCHMARK = "benchmark"
"""Factor whose levels are names of benchmarks."""
VALUE = "value"
"""Column of the values in a CSV file."""
_MAX_QUOTED_LENGTH = 60
"""Maximum length of a quoted text in an error message."""
SAVE_AGAIN = "write the file again with the tool that made it"
"""Default hint for a file with wrong content."""
Decoded = TypeVar("Decoded")
Content = TypeVar("Content")
DECODE_ERRORS = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""Errors if content is not JSON."""


class SourceFile(Struct, frozen=True, dict=True):
    """A file with its content, or a folder."""

    name: str
    """Name of the file, as the user typed it."""
    path: Path
    content: bytes = b""
    """Bytes of the file; empty for a folder."""
    is_folder: bool = False

    @property
    def text(self) -> str:
        """Content as text; bytes that are not UTF-8 are written as escapes."""
        return self.content.decode("utf-8-sig", "backslashreplace")

    def lines(self) -> Iterator[tuple[int, str]]:
        """Yield the number of each line, from 1, and its text without the line end."""
        for number, line in enumerate(io.StringIO(self.text), start=1):
            yield number, line.rstrip("\r\n")

    @cached_property
    def keys(self) -> frozenset[str]:
        """Keys of the JSON object; empty if the content is not a JSON object."""
        try:
            return frozenset(msgspec.json.decode(self.content, type=dict[str, msgspec.Raw]))
        except DECODE_ERRORS:
            return frozenset()

    def beginning(self, length: int = 4096) -> str:
        """Return the first characters, to recognise the format."""
        return self.content[:length].decode("utf-8-sig", "replace")

    def decode(self, content_type: type[Decoded], tool: str) -> Decoded:
        """Decode the content as JSON of a type; ``tool`` is the tool's name for an error message.

        Raise `UnusableInput`, which names the wrong key, if the content has another type.
        """
        try:
            return msgspec.json.decode(self.content, type=content_type)
        except DECODE_ERRORS as error:
            raise self.error(f"this is not a result of {tool}: {error}") from error

    def error(self, problem: str, hint: str = SAVE_AGAIN) -> UnusableInput:
        """Return an error about this file."""
        return UnusableInput(f"{self.name}: {problem}", hint=hint)


class Process(Struct, frozen=True):
    """The runs of one benchmark in one process, which become one trial."""

    benchmark: str
    values: Mapping[str, float]
    """Value of the whole process, by metric; lower is better."""
    iterations: Mapping[str, Sequence[float]] = field(default_factory=dict)
    """Values of the repetitions within the process, by metric. Repetitions are never trials."""
    levels: Mapping[str, str] = field(default_factory=dict)
    """Levels of factors besides the benchmark."""
    exit: int | None = None
    """Exit status; ``None`` if unknown."""
    failure: str | None = None
    """Reason why the process failed; ``None`` if it did not fail."""
    block: int | None = None
    """Number of the block; ``None`` if the file has no blocks."""
    order: float | None = None
    """Number that increases with time; ``None`` if the file has the processes in their order."""
    host: str | None = None


class Reading(Struct, frozen=True):
    """The measurements in a file."""

    tool: str | None
    """Name of the tool, with its version if the file has it."""
    metric: str
    """Metric that is compared; in seconds if it ends in ``_s``."""
    processes: tuple[Process, ...]
    environment: Mapping[str, Any] = field(default_factory=dict)
    """Facts from the file about the host and the conditions."""
    compared_factor: str | None = None
    """Factor whose levels are compared. The baseline of `BENCHMARK` is the first benchmark."""
    notes: tuple[str, ...] = ()
    """Sentences on values that were left out."""
    failures: tuple[tuple[str, str], ...] = ()
    """Name of each benchmark without a value, and the reason; ``notes`` has them as sentences."""
    metrics_without_time_order: tuple[str, ...] = ()
    """Metrics whose iterations are not a series in time, such as numbers of loops."""


def process_of(benchmark: str, iterations: Mapping[str, Sequence[float]], **facts: Any) -> Process:
    """Return a process whose values are the means of the iterations; ``facts`` are other fields."""
    values = {metric: mean(series) for metric, series in iterations.items()}
    return Process(benchmark, values, iterations, **facts)


class Format(Struct, Generic[Content], frozen=True):
    """A file format of a tool."""

    name: str
    written_by: str
    """Command or program that writes the format."""
    recognises: Callable[[SourceFile], bool]
    """Function that returns whether a file or folder has the format, by its content."""
    read: Callable[[SourceFile], Content]
    reads_folders: bool = False
    """Whether the format is a folder instead of a file."""


def quote(text: object) -> str:
    """Return a text in quotes, shortened for an error message."""
    full_text = str(text)
    is_short = len(full_text) <= _MAX_QUOTED_LENGTH
    return repr(full_text if is_short else f"{full_text[:_MAX_QUOTED_LENGTH]}…")


def number_equal_names(names: Iterable[str]) -> list[str]:
    """Return the names, with a number behind each name that occurred before: ``sort (2)``."""
    distinct_names: dict[str, None] = {}
    counts: Counter[str] = Counter()
    for name in names:
        counts[name] += 1
        distinct_name = name if counts[name] == 1 else f"{name} ({counts[name]})"
        while distinct_name in distinct_names:
            counts[name] += 1
            distinct_name = f"{name} ({counts[name]})"
        distinct_names[distinct_name] = None
    return list(distinct_names)


def with_version(tool: str, version: str | None) -> str:
    """Return the name of a tool with its version, if the file has it."""
    return tool if version is None else f"{tool} {version}"


def mean(values: Sequence[float]) -> float:
    """Return the arithmetic mean of values; NaN without values, infinity if the sum overflows."""
    try:
        return math.fsum(values) / len(values) if values else math.nan
    except OverflowError:
        return math.inf


def numbered(names: Iterable[str]) -> Iterator[str]:
    """Yield names; equal names get a number, so that each is unique: ``sum``, ``sum (2)``."""
    used: set[str] = set()
    counts: Counter[str] = Counter()
    for name in names:
        unique_name = name
        while unique_name in used:
            counts[name] += 1
            unique_name = f"{name} ({counts[name] + 1})"
        used.add(unique_name)
        yield unique_name


def finite_number(text: str) -> float | None:
    """Return the finite number in a text; ``None`` if the text is not a finite number."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def seconds_per(unit: str) -> float | None:
    """Return the seconds of a unit of time; ``None`` if the text is not a unit of time."""
    return _SECONDS_BY_UNIT.get(unit.strip())


_SECONDS_BY_UNIT = {
    **dict.fromkeys(("ns", "nanosecond"), 1e-9),
    **dict.fromkeys(("us", "µs", "μs", "microsecond"), 1e-6),
    **dict.fromkeys(("ms", "millisecond"), 1e-3),
    **dict.fromkeys(("s", "sec", "second"), 1.0),
    **dict.fromkeys(("min", "minute"), 60.0),
    **dict.fromkeys(("hr", "hour"), 3600.0),
}
MAX_BYTES = 64 * 2**20
"""Maximum size of a file."""
MAX_SEPARATORS = 1_000_000
"""Maximum number of commas and tabs, or of lines, in a file."""

_COMPRESSIONS = {
    b"\x1f\x8b": "gzip",
    b"PK\x03\x04": "zip",
    b"BZh": "bzip2",
    b"\xfd7zXZ\x00": "xz",
    b"\x28\xb5\x2f\xfd": "zstd",
}
"""Names of compressions, by the first bytes of a file."""


def read_within_bounds(name: str, path: Path) -> SourceFile:
    """Read a file; return a folder without content.

    A byte order mark is removed, and UTF-16 (PowerShell) becomes UTF-8.

    Raise `UnusableInput` if the file does not exist, is empty, too large, compressed, not a regular
    file, or cannot be read.
    """
    try:
        # With an empty name, `path` would be the current folder.
        status = os.stat(name and path)
        if stat.S_ISDIR(status.st_mode):
            return SourceFile(name, path, is_folder=True)
        if not stat.S_ISREG(status.st_mode):
            raise UnusableInput(f"{name} is not a regular file", hint="save the data as a file")
        with path.open("rb") as file:
            # Files in /proc have the size 0, so the read has a limit, too.
            content = file.read(MAX_BYTES + 1) if status.st_size <= MAX_BYTES else None
    except (FileNotFoundError, NotADirectoryError) as error:
        raise UnusableInput(
            f"{name or repr(name)}: there is no such file", hint="check the path"
        ) from error
    except OSError as error:
        raise UnusableInput(
            f"{name}: {(error.strerror or str(error)).lower()}",
            hint="check the permissions of the file",
        ) from error
    if content is None or len(content) > MAX_BYTES:
        raise _too_large(name, f"is larger than {MAX_BYTES // 2**20} MiB")
    if not content.strip():
        raise UnusableInput(f"{name} is empty", hint="run the tool that writes the file again")
    content = _utf8_content(name, content)
    if max(content.count(b",") + content.count(b"\t"), content.count(b"\n")) > MAX_SEPARATORS:
        raise _too_large(name, f"has more than {MAX_SEPARATORS} values or lines")
    return SourceFile(name, path, content)


def _too_large(name: str, problem: str) -> UnusableInput:
    hint = "split the file, or export fewer values for each benchmark"
    return UnusableInput(f"{name} {problem}", hint=hint)


def _utf8_content(name: str, content: bytes) -> bytes:
    """Return the content without a byte order mark; UTF-16 becomes UTF-8."""
    for first_bytes, compression in _COMPRESSIONS.items():
        if content.startswith(first_bytes):
            raise UnusableInput(
                f"{name} is compressed ({compression})", hint="decompress the file first"
            )
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        try:
            return content.decode("utf-16").encode()
        except UnicodeError as error:
            raise UnusableInput(
                f"{name} is not valid UTF-16: {error}", hint="save the file as UTF-8"
            ) from error
    return content.removeprefix(codecs.BOM_UTF8)


def read_source(
    file: SourceFile, format_name: str | None, formats: Mapping[str, Format[Reading]]
) -> tuple[str, Reading]:
    """Return the name of a file's format, and the measurements in the file.

    Without ``format_name``, the content decides the format.

    Raise `UnusableInput` if the format is unknown, or the file is not in its format.
    """
    message = "the format of the file is unknown, or the file is truncated"
    hint = "give a file that this command writes: {}"
    file_format, reading = read_by_format(file, format_name, formats, message, hint)
    if not reading.processes:
        problem = f"this {file_format.name} file has no measurement"
        raise file.error(problem, hint.format(file_format.written_by))
    return file_format.name, reading


def read_by_format(
    file: SourceFile,
    format_name: str | None,
    formats: Mapping[str, Format[Content]],
    unknown_message: str,
    hint: str,
) -> tuple[Format[Content], Content]:
    """Read a file in the named format, or in the first format that recognises the file.

    ``unknown_message`` is the error for a file of unknown format. ``hint`` is for a folder in place
    of a file, or the reverse; its ``{}`` stands for the command that writes the format.
    """
    matches = (candidate for candidate in formats.values() if candidate.recognises(file))
    file_format = next(matches, None) if format_name is None else formats[format_name]
    if file_format is None:
        raise file.error(
            unknown_message, f"name the format with {option('format')}: {', '.join(formats)}"
        )
    if file.is_folder != file_format.reads_folders:
        problem = f"this is a {'folder' if file.is_folder else 'file'}"
        raise file.error(problem, hint.format(file_format.written_by))
    return file_format, file_format.read(file)


def csv_header(file: SourceFile) -> list[str]:
    """Return the names of the columns in the first line of a CSV file."""
    lines = file.beginning(65536).splitlines()[:1]
    return [name.strip() for row in csv.reader(lines) for name in row]


def value_column(header: Sequence[str]) -> str | None:
    """Return the column ``value``, or else the only column of a cost in seconds or bytes."""
    # Rates per second are not costs.
    cost_columns = [
        name for name in header if name.endswith(("_s", "_bytes")) and not name.endswith("_per_s")
    ]
    if VALUE in header:
        return VALUE
    return cost_columns[0] if len(cost_columns) == 1 else None


def csv_rows(file: SourceFile, header: Sequence[str]) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the line number and the cells, by column, of each row below the header."""
    rows = csv.reader(io.StringIO(file.text, newline=""))
    try:
        next(rows)
        for row in rows:
            if row:
                yield rows.line_num, dict(zip(header, row, strict=True))
    except (csv.Error, ValueError) as error:
        raise file.error(
            f"line {rows.line_num} does not have the {len(header)} columns of the first line "
            f"({error})",
            "give every row a cell for each column",
        ) from error
