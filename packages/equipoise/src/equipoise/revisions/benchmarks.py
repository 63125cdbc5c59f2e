"""Reads the benchmarks of a gate: commands, or a suite file."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from msgspec import Struct

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
