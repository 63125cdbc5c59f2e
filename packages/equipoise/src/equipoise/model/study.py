"""A study: a workload, its factors, metrics and budget, as frozen data.

See docs/reference/study.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from types import MappingProxyType
from typing import Literal

from msgspec import field as struct_field

from equipoise.model.errors import UnusableInput
from equipoise.model.plan import Process, Server

Keys = tuple[str | int, ...]
"""Keys within keys, and positions in arrays of tables."""


@dataclass(frozen=True, slots=True)
class Place:
    """A key, a table or an option, as errors name it."""

    label: str = ""
    """``study.toml:4: [workload] command``; empty for what no file holds."""

    def fail(self, what: str, hint: str | None) -> UnusableInput:
        """Return the error for what is wrong there."""
        return UnusableInput(f"{self.label}: {what}" if self.label else what, hint=hint)


@dataclass(frozen=True, slots=True)
class Places:
    """Places of the keys of one file; of no file without a name."""

    file: str = ""
    """Name of the file, as the user typed it."""
    lines: Mapping[Keys, int] = field(default_factory=lambda: MappingProxyType({}))

    def key(self, *keys: str | int) -> Place:
        """Return a key of a table: ``[factors.rows] role``."""
        return self._place(keys, _in_brackets(_names(keys)[:-1]), str(keys[-1]))

    def table(self, *keys: str | int) -> Place:
        """Return a whole table: ``[factors.rows]``."""
        return self._place(keys, _in_brackets(_names(keys)))

    def has(self, *keys: str | int) -> bool:
        """Return whether the file itself has this key."""
        return keys in self.lines

    def _place(self, keys: Keys, *names: str) -> Place:
        if not self.file:
            return Place()
        # A missing key has the line of the table that lacks it.
        ends = range(len(keys), 0, -1)
        known = next((keys[:end] for end in ends if keys[:end] in self.lines), ())
        line = f":{self.lines[known]}" if known else ""
        place = " ".join(filter(None, names))
        return Place(f"{self.file}{line}: {place}" if place else f"{self.file}{line}")


def _names(keys: Keys) -> list[str]:
    return [key for key in keys if isinstance(key, str)]


def _in_brackets(names: list[str]) -> str:
    return f"[{'.'.join(names)}]" if names else ""


Role = Literal["treatment", "size", "stratum"]
"""A ``treatment`` can be what is compared; a ``size``, which is a number, and a ``stratum``, which
is anything, are where it is compared."""
Words = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Level:
    """One value of a factor, and what it changes.

    In every text ``{factor}`` stands for the name of that factor's level.
    """

    name: str
    environment: dict[str, str] = field(default_factory=dict)
    preload: Words = ()
    """Libraries for ``LD_PRELOAD``: a file name that the loader would find, or a path."""
    library_path: Words = ()
    """Folders for ``LD_LIBRARY_PATH``; the program must map a library from each."""
    arguments: Words = ()
    """Words that are put behind the command."""
    command: Words | None = None
    """Command that replaces that of the workload."""
    server: ServerWorkload | None = None
    """Server that replaces that of the workload; ``command`` is its client then."""
    client_arguments: Words = ()
    """Words that are put behind the client of a server."""
    client_cpus: tuple[int, ...] | None = None
    """The CPUs that the client of a server may use."""
    process: Process = Process()
    build: str | None = None
    """A line for the shell that makes the program of this level in the folder ``{build}``."""
    instructions: Words = ()
    """Instructions that the CPU must have, by the names of ``/proc/cpuinfo``."""
    tuned_for: Words = ()
    """Core types of which the BLAS must report one."""
    package: str | None = None
    """The Debian package that has what it needs."""
    summary: str = ""
    """One line for ``equipoise list``."""


@dataclass(frozen=True, slots=True)
class Factor:
    """A factor: what is varied on purpose, and its values."""

    name: str
    levels: tuple[Level, ...]
    role: Role = "treatment"
    plain: bool = False
    """Whether its levels are values and nothing else; they may be set freely."""
    choices: tuple[Level, ...] = ()
    """Levels that can be chosen beside those above."""


class ServerWorkload(Server, frozen=True):
    """A server as a study describes it, with names in braces for what is filled in."""

    path: Words = ()
    """Patterns of folders in which its programs may be, beside those of ``PATH``."""
    needs: dict[str, str] = struct_field(default_factory=dict)
    """The Debian package of each program that it needs."""

    def commands(self) -> dict[str, Words]:
        """Return its commands by the keys under which a study gives them, without the client."""
        keys = ("start", "install", "fill", "prepare", "ready", "stop")
        commands = {key: getattr(self, key) for key in keys}
        return {key: command for key, command in commands.items() if command is not None}


@dataclass(frozen=True, slots=True)
class Workload:
    """What a study runs."""

    command: Words
    """Command, or with a server its client; empty where levels bring their own."""
    command_place: Place = field(default=Place(), compare=False)
    """Place of the command in the file."""
    server: ServerWorkload | None = None
    """Server; the levels change the server then, not its client."""
    working_folder: str | None = None
    """Absolute; that of the caller by default."""
    reports: tuple[str, ...] = ()
    """The metrics that it reports itself."""
    data: str | None = None
    """The data set that ``{data}`` stands for, by its name."""
    data_word: str = ""
    """Text for ``{data}``: a file, or the word for its stand-in; found before a run."""


@dataclass(frozen=True, slots=True)
class StudyMeasure:
    """Metrics and length of a study; ``None`` leaves an option to the command line.

    Fields have the names of `equipoise run`'s options.
    """

    metrics: tuple[str, ...] = ("wall_s",)
    """The first decides."""
    min_effect: float | None = None
    alpha: float | None = None
    budget: float | None = None
    """Seconds."""
    blocks: int | None = None
    min_blocks: int | None = None
    min_seconds: float | None = None
    precision: float | None = None
    tail: float | None = None
    """Percent of runs."""
    warmup: int | None = None
    timeout: float | None = None
    """Seconds of one trial."""
    washout: bool = False
    ignore_failure: bool = False
    about: float | None = None
    """Seconds that a block of the whole study took where it was written, for the forecast."""
    layouts: int | None = None
    """Number of layouts in which it is compared."""
    aslr: Literal["drawn", "on", "off"] | None = None
    """Whether the kernel draws the addresses in them."""
    reaches_verdicts: bool = False
    """Whether the study's own limits allow as many blocks as its comparisons need for verdicts."""


Exclusion = dict[str, tuple[str, ...]]
"""Levels by factor; an exclusion holds of a condition that has one level of each."""


@dataclass(frozen=True, slots=True)
class ComparedFactor:
    """Which factor is compared, and with which of its levels."""

    factor: str
    baseline: str
    not_at: Exclusion = field(default_factory=dict)
    """Levels of other factors at which conditions run but are not compared."""


@dataclass(frozen=True, slots=True)
class QuickForm:
    """Changes that ``--quick`` makes."""

    levels: dict[str, tuple[str, ...]] = field(default_factory=dict)
    not_at: Exclusion = field(default_factory=dict)
    """Levels that are not compared, beside those of the whole study."""
    command: Words | None = None
    command_place: Place = field(default=Place(), compare=False)
    budget: float | None = None
    """Seconds."""
    blocks: int | None = None


@dataclass(frozen=True, slots=True)
class Study:
    """The whole of a study."""

    name: str
    folder: str
    """Folder of its file, absolute; ``{study}`` in its texts."""
    workload: Workload
    factors: tuple[Factor, ...]
    exclusions: tuple[Exclusion, ...] = ()
    """A condition is not run if one of them holds of it."""
    measure: StudyMeasure = StudyMeasure()
    compared: ComparedFactor | None = None
    """``None`` if nothing is compared: sizes alone are described."""
    quick: QuickForm | None = None
    summary: str = ""
    places: Places = field(default=Places(), compare=False)
    """Places of its keys in the file."""

    def factor(self, name: str) -> Factor | None:
        """Return the factor of that name."""
        return next((factor for factor in self.factors if factor.name == name), None)

    def texts(self) -> Iterator[str]:
        """Yield every text that may hold names in braces."""
        yield from self.workload.command
        servers = [self.workload.server]
        for level in (level for factor in self.factors for level in factor.levels):
            yield from (*level.arguments, *(level.command or ()), level.build or "")
            yield from (*level.client_arguments, *level.environment.values())
            servers.append(level.server)
        for server in filter(None, servers):
            yield from chain.from_iterable(server.commands().values())


def is_size(level: str) -> bool:
    """Return whether the level of a factor is a size: a finite number above 0."""
    try:
        return 0.0 < float(level) < math.inf
    except ValueError:
        return False
