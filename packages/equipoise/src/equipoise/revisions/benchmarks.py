"""Reads the benchmarks of a gate: commands, a suite file, or the benchmark tool of a language.

One process of a benchmark tool runs many benchmarks, and repeats each benchmark. The process is one
trial, and each benchmark is a metric of this trial. The repetitions are never trials (rule 1).
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from equipoise.design.commands import split_command
from equipoise.files.writing import read_whole
from equipoise.model.errors import UnusableInput
from equipoise.shared.spelling import option


class Benchmark(Struct, frozen=True):
    """A command that runs in each revision."""

    name: str
    command: tuple[str, ...]
    """Program and arguments. A program such as ``./bench`` is looked up in each revision."""


_MAX_BYTES = 1 << 20
"""Maximum size of a suite file."""
_SUITE_HINT = (
    "write only the key build (a shell line) and the table [benchmarks], with a line "
    'NAME = "COMMAND" for each benchmark'
)


class Suite(Struct, frozen=True):
    """The benchmarks of a gate, and the line that builds them."""

    benchmarks: tuple[Benchmark, ...]
    build: str | None = None


def read_suite(path: Path) -> Suite:
    """Return the suite of benchmarks in a TOML file.

    Raise `UnusableInput` if the file cannot be read, is not TOML, or is not a suite.
    """
    content = read_whole(path, hint="check the path", max_bytes=_MAX_BYTES)
    if len(content) > _MAX_BYTES:
        raise UnusableInput(f"{path} is larger than {_MAX_BYTES >> 20} MiB", hint=_SUITE_HINT)
    try:
        suite = tomllib.loads(content.decode())
    except (ValueError, RecursionError) as error:
        raise UnusableInput(f"{path} is not TOML: {error}", hint=_SUITE_HINT) from error
    unknown_keys = sorted(suite.keys() - {"build", "benchmarks"})
    if unknown_keys:
        raise UnusableInput(f"{path} has the unknown key {unknown_keys[0]!r}", hint=_SUITE_HINT)
    build, benchmarks = suite.get("build"), suite.get("benchmarks")
    if build is not None and not isinstance(build, str):
        raise UnusableInput(f"{path}: the value of build is not a string", hint=_SUITE_HINT)
    if not isinstance(benchmarks, dict) or not benchmarks:
        raise UnusableInput(f"{path} has no benchmark under [benchmarks]", hint=_SUITE_HINT)
    return Suite(
        tuple(
            Benchmark(name, _parse_command(line, f"{path}: benchmarks.{name}"))
            for name, line in benchmarks.items()
        ),
        build,
    )


def parse_benchmarks(texts: tuple[str, ...]) -> tuple[Benchmark, ...]:
    """Return the benchmarks in texts such as ``NAME=CMD``.

    Raise `UnusableInput` if a text has no name or no command, or if a name is repeated.
    """
    benchmarks: dict[str, Benchmark] = {}
    for text in texts:
        name, _, line = text.partition("=")
        if not name.strip() or not line.strip():
            raise UnusableInput(
                f"{option('bench')} {text!r} is not of the form NAME=CMD",
                hint=f"give a name and a command: {option('bench')} 'parse=./bench parse'",
            )
        if name in benchmarks:
            raise UnusableInput(f"two benchmarks are called {name!r}", hint="rename one of them")
        benchmarks[name] = Benchmark(name, _parse_command(line, f"{option('bench', name)}"))
    return tuple(benchmarks.values())


def _parse_command(line: Any, place: str) -> tuple[str, ...]:
    command = split_command(line, f"{place}: cannot split") if isinstance(line, str) else line
    is_argv = isinstance(command, list) and command
    if not is_argv or not all(isinstance(item, str) and "\0" not in item for item in command):
        raise UnusableInput(
            f"{place} is not a command",
            hint='write the command as "./bench parse" or as ["./bench", "parse"]',
        )
    return tuple(command)


READER_MODULE = "equipoise.helpers.benchmark_tool"
"""Module that runs a benchmark tool, and writes the tool's results to ``EQUIPOISE_METRICS``."""


class SelectionOptions(Struct, frozen=True):
    """Options of a program to list its benchmarks, and to run a single benchmark."""

    list_option: str
    """Option with which the program prints the names of the chosen benchmarks, one in each line."""
    option_for: Callable[[str], str]
    """Function from the name of a benchmark to the option that chooses this benchmark alone."""
    none_option: str
    """Option that chooses no benchmark; the program then prints only lines that are not names."""
    duration_option: str
    """Option for the seconds in which a benchmark repeats its loop."""

    def command_for(self, name: str, command: tuple[str, ...]) -> tuple[str, ...]:
        """Return a command with the options to run one benchmark."""
        option_name = self.duration_option.partition("=")[0]
        has_duration = any(argument.startswith(option_name) for argument in command)
        duration_options = () if has_duration else (self.duration_option,)
        return (*command, *duration_options, self.option_for(name))


class BenchmarkTool(Struct, frozen=True):
    """The benchmark tool of a language.

    In ``environment``, ``{tree}`` stands for the working tree of a revision, and ``{own}`` for the
    user's working tree.
    """

    name: str
    command: tuple[str, ...] = ()
    """Default command; empty if the user must name a program."""
    build: str | None = None
    """Default shell line that builds the benchmarks."""
    environment: Mapping[str, str] = field(default_factory=dict)
    selection_options: SelectionOptions | None = None
    """Options to list the benchmarks. Each benchmark then runs in processes of its own, and reports
    the metric ``time_s``. ``None`` if one process runs all benchmarks."""

    def reading_command(self, command: tuple[str, ...]) -> tuple[str, ...]:
        """Return a command that runs ``command`` and reads its results."""
        # With -P, modules of the repository cannot replace modules of Equipoise.
        return (sys.executable, "-P", "-m", READER_MODULE, self.name, "--", *command)


_REGEX_CHARACTERS = re.compile(r"[.\[\\()*+?{|^$]")
"""Special characters of POSIX extended regular expressions."""


def _google_benchmark_option(name: str) -> str:
    return "--benchmark_filter=^" + _REGEX_CHARACTERS.sub(r"\\\g<0>", name) + "$"


TOOLS = {
    tool.name: tool
    for tool in (
        BenchmarkTool(
            "cargo",
            command=("cargo", "bench"),
            build="cargo bench --no-run",
            # In a common target folder, cargo would build again in every trial.
            environment={"CARGO_TARGET_DIR": "{tree}/target"},
        ),
        BenchmarkTool(
            "go",
            command=("go", "test", "-run", "^$", "-bench", ".", "-count", "1", "./..."),
            build="go test -run '^$' ./...",
        ),
        BenchmarkTool(
            "pytest",
            command=("pytest", "-q", "-p", "no:cacheprovider"),
            environment={"EQUIPOISE_GATE_TREE": "{tree}", "EQUIPOISE_GATE_INSTEAD_OF": "{own}"},
        ),
        BenchmarkTool(
            "google-benchmark",
            selection_options=SelectionOptions(
                "--benchmark_list_tests",
                option_for=_google_benchmark_option,
                none_option=_google_benchmark_option(""),
                # The library's default is 0.5 s.
                duration_option="--benchmark_min_time=0.05",
            ),
        ),
    )
}
"""All tools by name."""
