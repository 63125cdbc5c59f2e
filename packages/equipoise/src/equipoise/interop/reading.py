"""One file of another tool, read within bounds, and what it says."""

from __future__ import annotations

import codecs
import csv
import io
import math
import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec
from msgspec import Struct, field

from equipoise.model.errors import UnusableInput
from equipoise.shared.spelling import option

TIME = "time_s"
"""The seconds of one iteration, which are not those of a process (``wall_s``)."""
AS_THE_FILE_SAYS = "as_the_file_says"
"""Key of an environment under which the file's own facts stand."""
BENCHMARK = "benchmark"
"""The factor whose levels are the benchmarks of a file."""
VALUE = "value"
"""Column of a CSV file that has the values."""
_MAX_QUOTED = 60
SAVE_AGAIN = "write the file again with the tool that made it"
Decoded = TypeVar("Decoded")
Content = TypeVar("Content")
NOT_DECODED = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""Errors of decoding JSON from bytes that are none."""


class SourceFile(Struct, frozen=True, dict=True):
    """One file as it was read, or a folder."""

    name: str
    """Name of the file, as the user typed it."""
    path: Path
    content: bytes = b""
    """Empty for a folder."""
    is_folder: bool = False

    @property
    def text(self) -> str:
        """The content as text; bytes that are none are shown as escapes."""
        return self.content.decode("utf-8-sig", "backslashreplace")

    def lines(self) -> Iterator[tuple[int, str]]:
        """Yield each line with its number from 1, without its end."""
        for number, line in enumerate(io.StringIO(self.text), start=1):
            yield number, line.rstrip("\r\n")

    @cached_property
    def keys(self) -> frozenset[str]:
        """The keys of a JSON object; empty if it is none."""
        try:
            return frozenset(msgspec.json.decode(self.content, type=dict[str, msgspec.Raw]))
        except NOT_DECODED:
            return frozenset()

    def begins(self, length: int = 4096) -> str:
        """Return the first characters, for a look at what it is."""
        return self.content[:length].decode("utf-8-sig", "replace")

    def decoded(self, kind: type[Decoded], tool: str) -> Decoded:
        """Return the content as JSON of this kind.

        Raise `UnusableInput` if it is of another kind; the message says where.
        """
        try:
            return msgspec.json.decode(self.content, type=kind)
        except NOT_DECODED as error:
            raise self.unusable(f"no result of {tool}: {error}") from error

    def unusable(self, what: str, hint: str = SAVE_AGAIN) -> UnusableInput:
        """Return the error that says what is wrong with this file."""
        return UnusableInput(f"{self.name}: {what}", hint=hint)


class Process(Struct, frozen=True):
    """One process of one benchmark: what becomes a trial."""

    benchmark: str
    values: Mapping[str, float]
    """Value of the whole process for each metric; less is better."""
    iterations: Mapping[str, Sequence[float]] = field(default_factory=dict)
    """Repetitions within the process, by metric: never trials."""
    levels: Mapping[str, str] = field(default_factory=dict)
    """Levels of factors beside the benchmark."""
    exit: int | None = None
    failure: str | None = None
    block: int | None = None
    order: float | None = None
    """The greater, the later it ran; ``None``: as it stands in the file."""
    host: str | None = None


class Reading(Struct, frozen=True):
    """The content of one file."""

    tool: str | None
    """Tool with its version, as far as the file tells."""
    metric: str
    """Metric that is compared; in seconds if it ends in ``_s``."""
    processes: tuple[Process, ...]
    environment: Mapping[str, Any] = field(default_factory=dict)
    """Facts of the file on the host and the conditions."""
    compared: str | None = None
    """The factor whose levels are compared; with `BENCHMARK`, each with the first one."""
    notes: tuple[str, ...] = ()
    """Sentences on what was left out."""
    no_series: tuple[str, ...] = ()
    """Metrics whose iterations are no course in time: counts, or the bins of a histogram."""


def process_of(benchmark: str, iterations: Mapping[str, Sequence[float]], **facts: Any) -> Process:
    """Return the process of these iterations: its value on each metric is their mean."""
    values = {metric: mean(series) for metric, series in iterations.items()}
    return Process(benchmark, values, iterations, **facts)


class Format(Struct, Generic[Content], frozen=True):
    """One tool's form of a file."""

    name: str
    written_by: str
    """What writes it."""
    recognises: Callable[[SourceFile], bool]
    read: Callable[[SourceFile], Content]
    reads_folders: bool = False


def quoted(text: object) -> str:
    """Return a text of a file as an error quotes it: never more than fits a line."""
    whole = str(text)
    return repr(whole if len(whole) <= _MAX_QUOTED else f"{whole[:_MAX_QUOTED]}…")


def with_version(tool: str, version: str | None) -> str:
    """Return the name of a tool with its version, if the file has it."""
    return tool if version is None else f"{tool} {version}"


def mean(values: Sequence[float]) -> float:
    """Return the arithmetic mean of a process's iterations; NaN of nothing.

    Infinite where the sum is beyond every number, which no run of the ledger takes.
    """
    try:
        return math.fsum(values) / len(values) if values else math.nan
    except OverflowError:
        return math.inf


def finite_number(text: str) -> float | None:
    """Return the number that a text is; ``None`` if it is none or has no end."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def seconds_in(unit: str) -> float | None:
    """Return how many seconds a unit of time has; ``None`` if it is no unit of time."""
    return _SECONDS.get(unit.strip())


_SECONDS = {
    **dict.fromkeys(("ns", "nanosecond"), 1e-9),
    **dict.fromkeys(("us", "µs", "μs", "microsecond"), 1e-6),
    **dict.fromkeys(("ms", "millisecond"), 1e-3),
    **dict.fromkeys(("s", "sec", "second"), 1.0),
    **dict.fromkeys(("min", "minute"), 60.0),
    **dict.fromkeys(("hr", "hour"), 3600.0),
}
MAX_BYTES = 64 * 2**20
"""Largest size of one file."""
MAX_SEPARATORS = 1_000_000
"""Commas and tabs, or lines, in one file: it bounds what is decoded at once."""

_COMPRESSED = {
    b"\x1f\x8b": "gzip",
    b"PK\x03\x04": "zip",
    b"BZh": "bzip2",
    b"\xfd7zXZ\x00": "xz",
    b"\x28\xb5\x2f\xfd": "zstd",
}
"""First bytes of a file of each compression."""


def read_within_bounds(name: str, path: Path) -> SourceFile:
    """Read a file whole if it is not too large; a folder is not read.

    A mark of byte order is left out, and UTF-16 behind one becomes UTF-8: PowerShell writes so.

    Raise `UnusableInput` if there is no such file, it is empty, too large, compressed, no regular
    file, or cannot be read.
    """
    try:
        # An empty name would be the current folder.
        status = os.stat(name and path)
        if stat.S_ISDIR(status.st_mode):
            return SourceFile(name, path, is_folder=True)
        if not stat.S_ISREG(status.st_mode):
            raise UnusableInput(f"{name} is no regular file", hint="write it to a file first")
        with path.open("rb") as file:
            # What the system makes up as it is read, as in /proc, has no size beforehand.
            content = file.read(MAX_BYTES + 1) if status.st_size <= MAX_BYTES else None
    except (FileNotFoundError, NotADirectoryError) as error:
        raise UnusableInput(
            f"{name or repr(name)}: there is no such file", hint="check the name"
        ) from error
    except OSError as error:
        raise UnusableInput(
            f"{name}: {(error.strerror or str(error)).lower()}",
            hint="name a file that you may read",
        ) from error
    if content is None or len(content) > MAX_BYTES:
        raise _too_large(name, f"is larger than {MAX_BYTES // 2**20} MiB")
    if not content.strip():
        raise UnusableInput(f"{name} is empty", hint="run the tool again; it wrote nothing")
    content = _plain(name, content)
    if max(content.count(b",") + content.count(b"\t"), content.count(b"\n")) > MAX_SEPARATORS:
        raise _too_large(name, f"holds more than {MAX_SEPARATORS} values or lines")
    return SourceFile(name, path, content)


def _too_large(name: str, what: str) -> UnusableInput:
    hint = "split it, or export it with fewer values for each benchmark"
    return UnusableInput(f"{name}: it {what}", hint=hint)


def _plain(name: str, content: bytes) -> bytes:
    """Return the content as UTF-8 without a byte order mark, if it is text at all."""
    for begins, kind in _COMPRESSED.items():
        if content.startswith(begins):
            raise UnusableInput(f"{name} is compressed ({kind})", hint="unpack it first")
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        try:
            return content.decode("utf-16").encode()
        except UnicodeError as error:
            raise UnusableInput(
                f"{name} is no whole file of UTF-16: {error}", hint="save it as UTF-8"
            ) from error
    return content.removeprefix(codecs.BOM_UTF8)


def read_source(
    file: SourceFile, chosen: str | None, formats: Mapping[str, Format[Reading]]
) -> tuple[str, Reading]:
    """Return the name of a file's format, and what it says.

    The format is the one ``chosen`` by its name, or told by the content.

    Raise `UnusableInput` if it is of no known format, or not what its format asks for.
    """
    unknown = "it is of no format that is known here, or it is cut off"
    hint = "give what this writes: {}"
    form, reading = read_by_format(file, chosen, formats, unknown, hint)
    if not reading.processes:
        what = f"no measurement is in this file of {form.name}"
        raise file.unusable(what, hint.format(form.written_by))
    return form.name, reading


def read_by_format(
    file: SourceFile,
    chosen: str | None,
    formats: Mapping[str, Format[Content]],
    unknown: str,
    hint: str,
) -> tuple[Format[Content], Content]:
    """Read a file by the chosen format, or by the first that recognises it.

    ``unknown`` says what is wrong with a file of no format, and ``hint`` what to give instead of a
    folder, or of a file: ``{}`` in it is what writes the format.
    """
    recognising = (one for one in formats.values() if one.recognises(file))
    form = next(recognising, None) if chosen is None else formats[chosen]
    if form is None:
        raise file.unusable(unknown, f"say which with {option('format')}: {', '.join(formats)}")
    if file.is_folder != form.reads_folders:
        what = f"it is a {'folder' if file.is_folder else 'file'}"
        raise file.unusable(what, hint.format(form.written_by))
    return form, form.read(file)


def csv_header(file: SourceFile) -> list[str]:
    """Return the names in the first line of a CSV file."""
    lines = file.begins(65536).splitlines()[:1]
    return [name.strip() for row in csv.reader(lines) for name in row]


def value_column(header: Sequence[str]) -> str | None:
    """Return the column ``value``, or the only one with the name of a cost in seconds or bytes."""
    # What is counted in a second is no cost.
    costs = [
        name for name in header if name.endswith(("_s", "_bytes")) and not name.endswith("_per_s")
    ]
    return VALUE if VALUE in header else costs[0] if len(costs) == 1 else None


def csv_rows(file: SourceFile, header: Sequence[str]) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the cells of each row below the first line by their column, with the row's line."""
    rows = csv.reader(io.StringIO(file.text, newline=""))
    try:
        next(rows)
        for row in rows:
            if row:
                yield rows.line_num, dict(zip(header, row, strict=True))
    except (csv.Error, ValueError) as error:
        raise file.unusable(
            f"line {rows.line_num} has not the {len(header)} columns of the first line ({error})",
            "give every row a cell for each column",
        ) from error
