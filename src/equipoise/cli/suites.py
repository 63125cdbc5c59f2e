"""What `gate` and the commands over commits run: one command, or several benchmarks."""

from __future__ import annotations

import shlex
from typing import Any

import click

from equipoise.cli import options
from equipoise.model.errors import UnusableInput
from equipoise.revisions.benchmarks import TOOLS, Benchmark, Suite, benchmarks_named, read_suite

suite_options = options.options_of(
    click.option(
        "--kind",
        type=click.Choice(list(TOOLS)),
        metavar="TOOL",
        help="CMD runs benchmarks of cargo, go, pytest or google-benchmark; only the last needs "
        "CMD.",
    ),
    click.option(
        "--bench", "benches", multiple=True, metavar="NAME=CMD", help="One of several benchmarks."
    ),
    options.file_option("--suite", metavar="FILE.toml", help="Several benchmarks, in a file."),
)


def suite_of(arguments: dict[str, Any], called: str, example: str) -> Suite:
    """Return the benchmarks, which the user may name in one way only, and how they are built.

    Parameters
    ----------
    called
        What the command makes, with its article: ``a gate``.
    example
        A line that runs the command.

    Raises
    ------
    UnusableInput
        Nothing is named, or several things, or what is named cannot be read.
    """
    words, benches, file, kind = (arguments[key] for key in ("words", "benches", "suite", "kind"))
    tool = None if kind is None else TOOLS[kind]
    words = words or (() if tool is None else tool.command)
    # Of a kind with a command of its own the command is the one thing.
    if sum(map(bool, (words, benches, file))) != 1:
        raise UnusableInput(
            f"{called} needs one thing to run: a command behind --, --bench, --suite or --kind",
            hint=f"as in: {example}",
        )
    if benches:
        suite = Suite(benchmarks_named(benches))
    elif file is not None:
        suite = read_suite(file)
    elif not words[0] or any("\0" in word for word in words):
        raise UnusableInput("the command behind -- is empty", hint="write the program to be run")
    else:
        suite = Suite((Benchmark(shlex.join(words), tuple(words)),))
    own_build = None if tool is None else tool.build
    return Suite(suite.benchmarks, arguments["build"] or suite.build or own_build)
