"""Run a benchmark program for cargo; a program of criterion runs briefly.

::

    python -m equipoise.helpers.criterion_runner target/release/deps/parse-0123 --bench

Criterion repeats each benchmark for 8 s in one process. A gate needs many processes instead, which
share a budget. cargo passes the same arguments to every program, but other programs refuse
criterion's options: so they are added here, program by program.
"""

from __future__ import annotations

import mmap
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

SHORT_RUN = {
    "--warm-up-time": "0.05",
    "--measurement-time": "0.1",
    "--sample-size": "10",
    "--nresamples": "1000",
}
"""Criterion's options, unless the user sets them: seconds, seconds, samples, and resamples of an
analysis that nobody reads."""
_OTHER_MODES = frozenset({"--list", "--test", "--quick", "--profile-time", "--help"})
"""Options with which criterion measures differently, or not at all."""


def short_arguments(arguments: Sequence[str]) -> Iterator[str]:
    """Yield the options for a short run of criterion that are not among the arguments."""
    names = {argument.partition("=")[0] for argument in arguments}
    if names & _OTHER_MODES:
        return
    for name, value in SHORT_RUN.items():
        if name not in names:
            yield from (name, value)
    if not names & {"--noplot", "-n"}:
        yield "--noplot"


def is_of_criterion(program: Path) -> bool:
    """Return whether the program contains the names of criterion's options."""
    with program.open("rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as content:
        return all(content.find(name[2:].encode()) >= 0 for name in SHORT_RUN)


def cargo_options() -> tuple[str, str]:
    """Return the options with which cargo runs each program through this module.

    A runner that the user configured for the target has precedence.
    """
    words = ", ".join(f"'{word}'" for word in (sys.executable, "-P", "-m", __name__))
    return "--config", f"target.'cfg(all())'.runner = [{words}]"


def main(arguments: Sequence[str]) -> None:
    """Replace this process by the program in the first argument."""
    program, *rest = arguments
    if is_of_criterion(Path(program)):
        rest += short_arguments(rest)
    os.execv(program, (program, *rest))


if __name__ == "__main__":
    main(sys.argv[1:])
