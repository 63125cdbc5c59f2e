"""A study: a workload, its factors, metrics and budget, as frozen data.

docs/reference/study.md describes the file of a study. `Place` and `Places` remember where in the
file each key is, so that an error message can name the line.
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
"""Path of a key in the file: names of keys, and indices in arrays of tables."""


@dataclass(frozen=True, slots=True)
class Place:
    """The position of a key or table in a file, or of an option, for error messages."""

    label: str = ""
    """Text such as ``study.toml:4: [workload] command``; empty without a file."""

    def error(self, what: str, hint: str | None) -> UnusableInput:
        """Return an error that begins with this position."""
        return UnusableInput(f"{self.label}: {what}" if self.label else what, hint=hint)


@dataclass(frozen=True, slots=True)
class Places:
    """Places of the keys of one file; empty if the study has no file."""

    file: str = ""
    """Name of the file, as the user typed it; empty without a file."""
    lines: Mapping[Keys, int] = field(default_factory=lambda: MappingProxyType({}))
    """Line number of each key."""

    def key(self, *keys: str | int) -> Place:
        """Return the place of a key, such as ``[factors.rows] role``; ``keys`` are its path."""
        return self._place(keys, f"{_table_heading(keys[:-1])} {keys[-1]}".strip())

    def table(self, *keys: str | int) -> Place:
        """Return the place of a table, such as ``[factors.rows]``; ``keys`` are its path."""
        return self._place(keys, _table_heading(keys))

    def has(self, *keys: str | int) -> bool:
        """Return whether the file contains this key."""
        return keys in self.lines

    def _place(self, path: Keys, location: str) -> Place:
        """Return a place with its line; a missing key gets the line of its table."""
        if not self.file:
            return Place()
        key_and_its_tables = (path[:length] for length in range(len(path), 0, -1))
        known_lines = (self.lines[keys] for keys in key_and_its_tables if keys in self.lines)
        line = next(known_lines, None)
        label = self.file if line is None else f"{self.file}:{line}"
        return Place(f"{label}: {location}" if location else label)


def _table_heading(path: Keys) -> str:
    """Return the heading of a table in a file, such as ``[factors.rows]``; empty for the file."""
    names = [key for key in path if isinstance(key, str)]
    return f"[{'.'.join(names)}]" if names else ""


Role = Literal["treatment", "size", "stratum"]
"""Role of a factor. Levels of a ``treatment`` are compared. Levels of a ``size`` are numbers. Each
combination of sizes and of levels of each ``stratum`` has its own comparisons."""
Strings = tuple[str, ...]
"""Several strings, such as the words of a command."""


@dataclass(frozen=True, slots=True)
class Level:
    """One value of a factor, and the settings of the workload that it changes.

    In every text, ``{NAME}`` stands for the level of the factor with this name.
    """

    name: str
    environment: dict[str, str] = field(default_factory=dict)
    preload: Strings = ()
    """Libraries for ``LD_PRELOAD``: file names that the loader can find, or paths."""
    library_path: Strings = ()
    """Folders for ``LD_LIBRARY_PATH``; the program must map a library from each."""
    arguments: Strings = ()
    """Arguments that are added to the command."""
    command: Strings | None = None
    """Command that replaces the workload's command."""
    server: ServerWorkload | None = None
    """Server that replaces the workload's server; ``command`` is then the client."""
    client_arguments: Strings = ()
    """Arguments that are added to the client of a server."""
    client_cpus: tuple[int, ...] | None = None
    """CPUs that the client of a server may use."""
    process: Process = Process()
    build: str | None = None
    """Shell command that builds the program of this level in the folder ``{build}``."""
    instructions: Strings = ()
    """Instructions that the CPU must have, by their names in ``/proc/cpuinfo``."""
    tuned_for: Strings = ()
    """Processor types; the BLAS library must report one of them."""
    package: str | None = None
    """Debian package that the level needs."""
    summary: str = ""
    """Summary, one line of ``equipoise list``."""


@dataclass(frozen=True, slots=True)
class Factor:
    """A factor, which the study varies on purpose, with its levels."""

    name: str
    levels: tuple[Level, ...]
    role: Role = "treatment"
    accepts_other_levels: bool = False
    """Whether users may set any other level, because the levels are only values."""
    optional_levels: tuple[Level, ...] = ()
    """Levels that run only if the user chooses them."""


class ServerWorkload(Server, frozen=True):
    """The server of a study; names in braces in its texts are replaced later."""

    path: Strings = ()
    """Patterns of folders with the server's programs, in addition to ``PATH``."""
    needs: dict[str, str] = struct_field(default_factory=dict)
    """Debian package of each program that the server needs, by program."""

    def commands(self) -> dict[str, Strings]:
        """Return the commands of the server, without the client, by their keys in a study."""
        keys = ("start", "install", "fill", "prepare", "ready", "stop")
        commands = {key: getattr(self, key) for key in keys}
        return {key: command for key, command in commands.items() if command is not None}


@dataclass(frozen=True, slots=True)
class Workload:
    """The workload of a study."""

    command: Strings
    """Command, or the client of the server; empty if the levels have commands."""
    command_place: Place = field(default=Place(), compare=False)
    """Place of the command in the file."""
    server: ServerWorkload | None = None
    """Server; the settings of levels then apply to the server, not to the client."""
    working_folder: str | None = None
    """Absolute path; by default the working folder of the caller."""
    reports: Strings = ()
    """Metrics that the workload itself reports."""
    data: str | None = None
    """Name of the data set that replaces ``{data}``."""
    data_argument: str = ""
    """Argument for ``{data}``: a file, or a word for generated rows. It is set before a run."""


@dataclass(frozen=True, slots=True)
class StudyMeasure:
    """Options of a study, with the names of the options of `equipoise run`; ``None`` if not set."""

    metrics: Strings = ("wall_s",)
    """Metrics; the first is the primary metric."""
    min_effect: float | None = None
    alpha: float | None = None
    budget: float | None = None
    """Maximum number of seconds of the campaign."""
    blocks: int | None = None
    min_blocks: int | None = None
    min_seconds: float | None = None
    precision: float | None = None
    tail: float | None = None
    """The campaign continues until slow runs in this percentage of runs would have appeared."""
    warmup: int | None = None
    timeout: float | None = None
    """Maximum number of seconds of a trial."""
    washout: bool = False
    ignore_failure: bool = False
    author_block_s: float | None = None
    """Seconds of a block on the machine of the study's author, for the forecast of the duration."""
    layouts: int | None = None
    aslr: Literal["drawn", "on", "off"] | None = None
    """Whether the kernel draws memory addresses in the layouts."""
    extends_to_verdicts: bool = False
    """Whether the limits of the study are raised until verdicts are possible."""


Exclusion = dict[str, Strings]
"""Levels by factor; a condition is excluded if it has one of the levels of each factor."""


@dataclass(frozen=True, slots=True)
class ComparedFactor:
    """The factor whose levels are compared, and its baseline."""

    factor: str
    baseline: str
    """Level with which the other levels are compared."""
    not_compared_at: Exclusion = field(default_factory=dict)
    """Levels of other factors at which conditions run but are not compared."""


@dataclass(frozen=True, slots=True)
class QuickForm:
    """Changes of a study by the option ``--quick``."""

    levels: dict[str, Strings] = field(default_factory=dict)
    not_compared_at: Exclusion = field(default_factory=dict)
    """Further levels at which nothing is compared."""
    command: Strings | None = None
    command_place: Place = field(default=Place(), compare=False)
    budget: float | None = None
    """Seconds."""
    blocks: int | None = None


@dataclass(frozen=True, slots=True)
class Study:
    """A whole study."""

    name: str
    folder: str
    """Absolute path of the folder of the study's file; it replaces ``{study}`` in the texts."""
    workload: Workload
    factors: tuple[Factor, ...]
    exclusions: tuple[Exclusion, ...] = ()
    """Combinations of levels that do not run."""
    measure: StudyMeasure = StudyMeasure()
    compared: ComparedFactor | None = None
    """Compared factor; ``None`` if the study only describes how costs grow with sizes."""
    quick: QuickForm | None = None
    summary: str = ""
    places: Places = field(default=Places(), compare=False)
    """Lines of the study's keys in its file."""

    def factor(self, name: str) -> Factor | None:
        """Return the factor with this name; ``None`` if there is none."""
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
    """Return whether a level can be a size: a finite number above 0."""
    try:
        return 0.0 < float(level) < math.inf
    except ValueError:
        return False
