"""A benchmark tool: how the gate finds, builds, lists and runs its benchmarks.

One process of a benchmark tool is one trial. It may run many benchmarks, and repeats each of them.
Each benchmark is a metric of the trial; the repetitions are never trials (rule 1).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct, field

from equipoise.model.revisions import SourcePlace

TRIAL_MODULE = "equipoise.suites.trial"
"""Module that runs a benchmark tool, and writes the tool's results to ``EQUIPOISE_METRICS``."""

Command = Sequence[str]
"""Program and arguments."""
PrintedLines = Callable[..., Sequence[str]]
"""Function that runs a program with further options, and returns the lines that it prints."""


class Measurement(Struct, frozen=True):
    """A value that one process measured; lower is better."""

    metric: str
    value: float
    unit: str | None = None


class Failure(Struct, frozen=True):
    """A benchmark without a value; the process measured the others."""

    benchmark: str
    reason: str
    """Reason in one line, such as ``Catch2 3.7.1: no data``."""


class ToolCounts(Struct, frozen=True):
    """Counts that a tool itself reports for each benchmark, if it is asked to."""

    counter: str
    """Name of the counter, such as ``go test -benchmem``."""
    metrics: tuple[str, ...]
    counting: Callable[[tuple[str, ...]], tuple[str, ...]]
    """Returns a command with the options that ask for the counts."""


class Listing(Struct, frozen=True):
    """How a program lists its benchmarks. Each of them then runs in processes of its own."""

    benchmarks: Callable[[PrintedLines], Mapping[str, tuple[str, ...] | None]]
    """Returns the options that choose a benchmark alone, by the name of the benchmark. ``None`` in
    place of options is for a benchmark without a time, which is not compared."""
    short_run: tuple[tuple[str, ...], ...] = ()
    """Options for a short run, each with its value. Options of the user have precedence."""
    iterations: str | None = None
    """Option for a fixed number of iterations, with ``{}`` in place of the number. With it,
    Equipoise counts what one iteration does; `BenchmarkTool.measure` must report ``iterations``."""
    script: tuple[str, ...] = ()
    """Arguments between the program and the user's options while the program lists benchmarks, if
    the program is an interpreter."""

    is_printed_by_adapter: bool = False
    """Whether `BenchmarkTool.measure` prints the list, because the tool cannot."""

    def command_for(self, selection: tuple[str, ...], command: tuple[str, ...]) -> tuple[str, ...]:
        """Return a command with the options of a short run, and those that choose a benchmark."""
        return (*with_options(command, self.short_run), *selection)


def with_options(command: Command, options: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    """Return a command with options, each with its value; options of the user have precedence."""
    names = {argument.partition("=")[0] for argument in command}
    added = (option for option in options if option[0].partition("=")[0] not in names)
    return (*command, *(argument for option in added for argument in option))


class FoundSuite(Struct, frozen=True):
    """A suite of benchmarks that a folder has."""

    evidence: str
    """File, and its content, by which the suite was found: ``Cargo.toml has a [[bench]]``."""
    command: tuple[str, ...]
    build: str | None = None
    """Shell line that builds the benchmarks."""


class BenchmarkTool(Struct, frozen=True):
    """A benchmark tool.

    In ``environment``, ``{tree}`` stands for the working tree of a revision, and ``{own}`` for the
    user's own working tree.
    """

    name: str
    measure: Callable[[Command, Path], Iterable[Measurement | Failure]]
    """Runs a command once, and returns what it measured. The path is an empty folder for files.
    Raises `StoppedAt` if a benchmark ended the process, `SystemExit` with one line if the command
    failed, and `EquipoiseError` if its results cannot be read."""
    find: Callable[[Path], FoundSuite | None]
    """Returns the suite of this tool in a folder; ``None`` if the folder has none."""
    tried_with: str
    """Versions with which the adapter was tried."""
    command: tuple[str, ...] = ()
    """Default command; empty if the user must name a program."""
    build: str | None = None
    """Default shell line that builds the benchmarks."""
    environment: Mapping[str, str] = field(default_factory=dict)
    listing: Listing | None = None
    """How a program lists its benchmarks. With it, each benchmark reports the metric ``time_s``,
    unless the user names other metrics.
    ``None`` if one process runs all benchmarks."""
    places: Callable[[Path, Path, Iterable[str]], Mapping[str, SourcePlace]] | None = None
    """Returns where benchmarks are defined, by their names. It gets the root of a working tree, and
    the folder in which the tool runs. A benchmark is left out if its definition is not certain.
    ``None`` if the tool's names do not say where a benchmark is."""
    without: Callable[[tuple[str, ...], str], tuple[str, ...] | None] | None = None
    """Returns a command that leaves out a benchmark; ``None`` if the tool has no option for it."""
    counts: ToolCounts | None = None
    """Counts that the tool reports; with a listing by their names, else as ``NAME allocations``."""

    records_files: bool = False
    """Whether a process records the files that its benchmark runs, by `helpers.executed_files`, if
    it has a folder for the records."""

    def reading_command(self, command: tuple[str, ...]) -> tuple[str, ...]:
        """Return a command that runs ``command`` and reads its results."""
        # With -P, modules of the repository cannot replace modules of Equipoise.
        return (sys.executable, "-P", "-m", TRIAL_MODULE, self.name, "--", *command)
