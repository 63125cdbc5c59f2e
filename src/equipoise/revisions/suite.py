"""The suite of a gate: several benchmarks in one TOML file."""

from __future__ import annotations

import shlex
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from equipoise.files.reading import read_whole
from equipoise.model.errors import UnusableInput
from equipoise.revisions.conditions import Benchmark

_MOST_BYTES = 1 << 20
_FORM = """as in: build = "make" and, under [benchmarks], parse = "./bench parse\""""


@dataclass(frozen=True, slots=True)
class Suite:
    """What a gate runs."""

    benchmarks: tuple[Benchmark, ...]
    build: str | None = None


def read_suite(path: Path) -> Suite:
    """Read a suite from its file.

    Raises
    ------
    UnusableInput
        It cannot be read, is not TOML, or holds something else than a suite.
    """
    content = read_whole(path, hint="check the name", most_bytes=_MOST_BYTES)
    if len(content) > _MOST_BYTES:
        raise UnusableInput(f"{path} is larger than {_MOST_BYTES >> 20} MiB", hint=_FORM)
    try:
        found = tomllib.loads(content.decode())
    except (ValueError, RecursionError) as error:
        raise UnusableInput(f"{path} is not TOML: {error}", hint=_FORM) from error
    unknown = sorted(found.keys() - {"build", "benchmarks"})
    if unknown:
        raise UnusableInput(f"{path}: there is no key {unknown[0]!r} in a suite", hint=_FORM)
    build, benchmarks = found.get("build"), found.get("benchmarks")
    if build is not None and not isinstance(build, str):
        raise UnusableInput(f"{path}: build is no line for a shell", hint=_FORM)
    if not isinstance(benchmarks, dict) or not benchmarks:
        raise UnusableInput(f"{path}: there is no benchmark under [benchmarks]", hint=_FORM)
    return Suite(
        tuple(
            Benchmark(name, _words(line, f"{path}: benchmarks.{name}"))
            for name, line in benchmarks.items()
        ),
        build,
    )


def benchmarks_named(given: tuple[str, ...]) -> tuple[Benchmark, ...]:
    """The benchmarks of ``NAME=CMD`` each.

    Raises
    ------
    UnusableInput
        One has no name or no command, or two have the same name.
    """
    benchmarks: dict[str, Benchmark] = {}
    for text in given:
        name, _, line = text.partition("=")
        if not name.strip() or not line.strip():
            raise UnusableInput(
                f"--bench {text!r} is not of the form NAME=CMD",
                hint="as in --bench 'parse=./bench parse'",
            )
        if name in benchmarks:
            raise UnusableInput(f"two benchmarks are called {name!r}", hint="rename one of them")
        benchmarks[name] = Benchmark(name, _words(line, f"--bench {name}"))
    return tuple(benchmarks.values())


def _words(line: Any, where: str) -> tuple[str, ...]:
    try:
        words = tuple(shlex.split(line)) if isinstance(line, str) else line
    except ValueError as error:
        raise UnusableInput(
            f"{where}: cannot split {line!r} into words: {str(error).lower()}",
            hint="close the quote, or escape it with a backslash",
        ) from error
    listed = words if isinstance(words, tuple | list) else ()
    if not listed or not all(isinstance(word, str) and "\0" not in word for word in listed):
        raise UnusableInput(f"{where} is no command", hint="give a line, or a list of words")
    return tuple(listed)
