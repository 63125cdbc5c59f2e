"""What a reader of another tool's files is given, and what it makes of them."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from equipoise.model.errors import UnusableInput

TIME = "time_s"
"""The seconds of one iteration, which are not those of a process (``wall_s``)."""
BENCHMARK = "benchmark"
"""The factor whose levels are the benchmarks of a file."""

_MOST_SHOWN = 60
SAVE_AGAIN = "write the file again with the tool that made it"

Decoded = TypeVar("Decoded")

NOT_DECODED = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What decoding JSON raises of bytes that are none."""


@dataclass(frozen=True)
class SourceFile:
    """One file as it was read, or a folder."""

    name: str
    """As the user named it."""
    path: Path
    content: bytes = b""
    """Empty for a folder."""
    is_folder: bool = False

    @property
    def text(self) -> str:
        """The content as text; bytes that are none are shown as escapes."""
        return self.content.decode("utf-8-sig", "backslashreplace")

    def lines(self) -> Iterator[tuple[int, str]]:
        """Each line with its number from 1, without its end."""
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
        """The first characters, for a look at what it is."""
        return self.content[:length].decode("utf-8-sig", "replace")

    def decoded(self, kind: type[Decoded], tool: str) -> Decoded:
        """The content as JSON of this kind.

        Raises
        ------
        UnusableInput
            It is not that; the message says where.
        """
        try:
            return msgspec.json.decode(self.content, type=kind)
        except NOT_DECODED as error:
            raise self.unusable(f"no result of {tool}: {error}") from error

    def unusable(self, what: str, hint: str = SAVE_AGAIN) -> UnusableInput:
        """The error that says what is wrong with this file."""
        return UnusableInput(f"{self.name}: {what}", hint=hint)


@dataclass(frozen=True, slots=True)
class Process:
    """One process of one benchmark: what becomes a trial."""

    benchmark: str
    values: Mapping[str, float]
    """By metric, of the whole process; less is better."""
    iterations: Mapping[str, Sequence[float]] = field(default_factory=dict)
    """What was repeated within the process, by metric: never trials."""
    levels: Mapping[str, str] = field(default_factory=dict)
    """Of factors beside the benchmark."""
    exit: int | None = None
    failure: str | None = None
    block: int | None = None
    order: float | None = None
    """The greater, the later it ran; ``None``: as it stands in the file."""
    host: str | None = None


@dataclass(frozen=True, slots=True)
class Reading:
    """What one file says."""

    tool: str | None
    """With its version, as far as the file tells."""
    metric: str
    """What is compared; in seconds if it ends in ``_s``."""
    processes: tuple[Process, ...]
    environment: Mapping[str, Any] = field(default_factory=dict)
    """What the file says of the host and of the conditions it ran under."""
    compared: str | None = None
    """The factor whose levels are compared; with `BENCHMARK`, each with the first one."""
    notes: tuple[str, ...] = ()
    """What was left out, in words."""
    no_series: tuple[str, ...] = ()
    """Metrics whose iterations are no course in time: counts, or the bins of a histogram."""


@dataclass(frozen=True, slots=True)
class Format:
    """One tool's form of a file."""

    name: str
    written_by: str
    """The command that writes it."""
    recognises: Callable[[SourceFile], bool]
    read: Callable[[SourceFile], Reading]
    reads_folders: bool = False


def shown(text: object) -> str:
    """What stands in a file, as an error quotes it: never more than fits a line."""
    words = str(text)
    return repr(words if len(words) <= _MOST_SHOWN else f"{words[:_MOST_SHOWN]}…")


def mean(values: Sequence[float]) -> float:
    """What a process costs in an iteration: the arithmetic mean; NaN of nothing.

    Infinite where the sum is beyond every number, which no run of the ledger takes.
    """
    try:
        return math.fsum(values) / len(values) if values else math.nan
    except OverflowError:
        return math.inf


def seconds_in(unit: str) -> float | None:
    """How many seconds a unit of time has; ``None`` if it is no unit of time."""
    return _SECONDS.get(unit.strip())


_SECONDS = {
    "ns": 1e-9,
    "nanosecond": 1e-9,
    "us": 1e-6,
    "µs": 1e-6,
    "μs": 1e-6,
    "microsecond": 1e-6,
    "ms": 1e-3,
    "millisecond": 1e-3,
    "s": 1.0,
    "sec": 1.0,
    "second": 1.0,
    "min": 60.0,
    "minute": 60.0,
    "hr": 3600.0,
    "hour": 3600.0,
}
