"""Run a benchmark program for cargo: announce it on stdout, and let criterion run briefly.

::

    python -m equipoise.helpers.cargo_runner target/release/deps/parse-0123 --bench

Cargo runs the programs of all packages of a workspace, and their benchmarks may have equal names.
So this module prints a line with the program before the program prints its results, and gives each
program of criterion a folder of its own for results.

Criterion, a benchmark library, repeats each benchmark for 8 s in one process, but a gate needs many
short processes. Cargo passes the same arguments to all programs. Programs without criterion would
refuse criterion's options, so this module adds the options only for criterion.
"""

from __future__ import annotations

import mmap
import os
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

SHORT_RUN = {
    "--warm-up-time": "0.05",
    "--measurement-time": "0.1",
    "--sample-size": "10",
    "--nresamples": "1000",
}
"""Options for a short run: warm-up seconds, measured seconds, samples, and resamples of criterion's
own analysis, which nobody reads. Options of the user have precedence."""
RESULTS_VARIABLE = "EQUIPOISE_CARGO_RESULTS"
"""Environment variable with the folder in which each program of criterion gets a folder."""
PROGRAM_LINE = re.compile(
    rb"^equipoise: program (?P<label>[^\n/]*/[^\n/]*)/(?P<file>[^\n/]+)\n", re.M
)
"""Line that announces a program: its package, its name, and the name of its file."""
_STDOUT = 1
"""File descriptor of standard output."""
_OTHER_MODE_OPTIONS = frozenset({"--list", "--test", "--quick", "--profile-time", "--help"})
"""Options that make criterion measure in another way, or not at all."""


def short_arguments(arguments: Sequence[str]) -> Iterator[str]:
    """Yield criterion's options for a short run, without those that the user set."""
    names = {argument.partition("=")[0] for argument in arguments}
    if names & _OTHER_MODE_OPTIONS:
        return
    for name, value in SHORT_RUN.items():
        if name not in names:
            yield from (name, value)
    if not names & {"--noplot", "-n"}:
        yield "--noplot"


def uses_criterion(program: Path) -> bool:
    """Return whether a program contains the names of criterion's options."""
    with program.open("rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as content:
        return all(content.find(name[2:].encode()) >= 0 for name in SHORT_RUN)


def cargo_options() -> tuple[str, str]:
    """Return options for cargo to run each program through this module.

    If the user configured a runner for the target, cargo uses the user's runner.
    """
    runner = ", ".join(f"'{argument}'" for argument in (sys.executable, "-P", "-m", __name__))
    return "--config", f"target.'cfg(all())'.runner = [{runner}]"


def main(arguments: Sequence[str]) -> None:
    """Replace this process by the program in the first argument."""
    program, *program_arguments = arguments
    if results := os.environ.get(RESULTS_VARIABLE):
        # The name of the file ends in a hash that cargo computed.
        file_name = os.path.basename(program)
        label = f"{os.environ.get('CARGO_PKG_NAME', '')}/{re.sub('-[0-9a-f]{16}$', '', file_name)}"
        # A program that was stopped may have left a line without an end.
        os.write(_STDOUT, os.fsencode(f"\nequipoise: program {label}/{file_name}\n"))
        os.environ["CRITERION_HOME"] = os.path.join(results, file_name)
    if uses_criterion(Path(program)):
        program_arguments += short_arguments(program_arguments)
    os.execv(program, (program, *program_arguments))


if __name__ == "__main__":
    main(sys.argv[1:])
