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
    """A key, a table or an option, for error messages."""

    label: str = ""
    """Label such as ``study.toml:4: [workload] command``; empty without a file."""

    def fail(self, what: str, hint: str | None) -> UnusableInput:
        """Return an error at this place."""
        return UnusableInput(f"{self.label}: {what}" if self.label else what, hint=hint)


@dataclass(frozen=True, slots=True)
class Places:
    """Places of the keys of one file; without a name there is no file."""

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
"""Role of a factor. Levels of a ``treatment`` can be compared, at each level of the other factors:
of a ``size``, which is a number, and of a ``stratum``."""
Words = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Level:
    """One value of a factor, and its changes to the workload.

    In every text ``{factor}`` stands for the name of that factor's level.
    """

    name: str
    environment: dict[str, str] = field(default_factory=dict)
    preload: Words = ()
    """Libraries for ``LD_PRELOAD``: a file name that the loader would find, or a path."""
    library_path: Words = ()
    """Folders for ``LD_LIBRARY_PATH``; the program must map a library from each."""
    arguments: Words = ()
    """Words that are added to the command."""
    command: Words | None = None
    """Command that replaces that of the workload."""
    server: ServerWorkload | None = None
    """Server that replaces that of the workload; ``command`` is its client then."""
    client_arguments: Words = ()
    """Words that are added to the client of a server."""
    client_cpus: tuple[int, ...] | None = None
    """CPUs that the client of a server may use."""
    process: Process = Process()
    build: str | None = None
    """Shell line that builds the program of this level in the folder ``{build}``."""
    instructions: Words = ()
    """Instructions that the CPU must have, by their names in ``/proc/cpuinfo``."""
    tuned_for: Words = ()
    """Core types; the BLAS must report one of them."""
    package: str | None = None
    """Debian package that it needs."""
    summary: str = ""
    """Summary, one line of ``equipoise list``."""


@dataclass(frozen=True, slots=True)
class Factor:
    """A factor, which is varied on purpose, with its levels."""

    name: str
    levels: tuple[Level, ...]
    role: Role = "treatment"
    plain: bool = False
    """Whether its levels are only values, which may be set freely."""
    choices: tuple[Level, ...] = ()
    """Further levels that can be chosen."""


class ServerWorkload(Server, frozen=True):
    """The server of a study, with names in braces that are filled in later."""

    path: Words = ()
    """Patterns of folders in which its programs may be, in addition to ``PATH``."""
    needs: dict[str, str] = struct_field(default_factory=dict)
    """Debian packages of the programs that it needs, by program."""

    def commands(self) -> dict[str, Words]:
        """Return its commands, without the client, by their keys in a study."""
        keys = ("start", "install", "fill", "prepare", "ready", "stop")
        commands = {key: getattr(self, key) for key in keys}
        return {key: command for key, command in commands.items() if command is not None}


@dataclass(frozen=True, slots=True)
class Workload:
    """The workload of a study."""

    command: Words
    """Command, or with a server its client; empty if the levels have commands."""
    command_place: Place = field(default=Place(), compare=False)
    """Place of the command in the file."""
    server: ServerWorkload | None = None
    """Server, which the levels then change instead of its client."""
    working_folder: str | None = None
    """Absolute path; by default that of the caller."""
    reports: tuple[str, ...] = ()
    """Metrics that it reports itself."""
    data: str | None = None
    """Name of the data set for ``{data}``."""
    data_word: str = ""
    """Text for ``{data}``: a file, or the word for its stand-in; set before a run."""


@dataclass(frozen=True, slots=True)
class StudyMeasure:
    """Options of a study; ``None`` leaves an option to the command line.

    Fields have the names of `equipoise run`'s options.
    """

    metrics: tuple[str, ...] = ("wall_s",)
    """Metrics; the first decides."""
    min_effect: float | None = None
    alpha: float | None = None
    budget: float | None = None
    """Seconds."""
    blocks: int | None = None
    min_blocks: int | None = None
    min_seconds: float | None = None
    precision: float | None = None
    tail: float | None = None
    """Percentage of runs."""
    warmup: int | None = None
    timeout: float | None = None
    """Maximum number of seconds of a trial."""
    washout: bool = False
    ignore_failure: bool = False
    about: float | None = None
    """Seconds of a block of the whole study on its author's machine, for the forecast."""
    layouts: int | None = None
    """Number of layouts."""
    aslr: Literal["drawn", "on", "off"] | None = None
    """Whether the kernel draws the addresses in the layouts."""
    reaches_verdicts: bool = False
    """Whether the study's own limits allow enough blocks for verdicts."""


Exclusion = dict[str, tuple[str, ...]]
"""Levels by factor; the exclusion concerns conditions that have one of these levels of each."""


@dataclass(frozen=True, slots=True)
class ComparedFactor:
    """The compared factor, and its baseline."""

    factor: str
    baseline: str
    not_at: Exclusion = field(default_factory=dict)
    """Levels of other factors at which conditions run but are not compared."""


@dataclass(frozen=True, slots=True)
class QuickForm:
    """Changes by ``--quick``."""

    levels: dict[str, tuple[str, ...]] = field(default_factory=dict)
    not_at: Exclusion = field(default_factory=dict)
    """Further levels at which nothing is compared."""
    command: Words | None = None
    command_place: Place = field(default=Place(), compare=False)
    budget: float | None = None
    """Seconds."""
    blocks: int | None = None


@dataclass(frozen=True, slots=True)
class Study:
    """A whole study."""

    name: str
    folder: str
    """Absolute path of the folder of its file; ``{study}`` in its texts."""
    workload: Workload
    factors: tuple[Factor, ...]
    exclusions: tuple[Exclusion, ...] = ()
    """Exclusions; a condition that one of them concerns does not run."""
    measure: StudyMeasure = StudyMeasure()
    compared: ComparedFactor | None = None
    """Compared factor; ``None`` if sizes are only described."""
    quick: QuickForm | None = None
    summary: str = ""
    places: Places = field(default=Places(), compare=False)
    """Places of its keys in the file."""

    def factor(self, name: str) -> Factor | None:
        """Return the factor of that name."""
        return next((factor for factor in self.factors if factor.name == name), None)

    def texts(self) -> Iterator[str]:
        """Yield every text that may contain names in braces."""
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
