"""Runs a benchmark program for cargo; one of criterion runs briefly.

::

    python -m equipoise.helpers.criterion_runner target/release/deps/parse-0123 --bench

Criterion's own 8 s for each benchmark repeat it within one process. A gate needs many processes
instead, and they share a budget. cargo gives the same arguments to every program, and a program
that is not of criterion refuses criterion's options: so they are added here, program by program.
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
"""Criterion's options, unless the user gives them: seconds, seconds, samples, and resamples of an
analysis that nobody reads."""
_OTHER_MODES = frozenset({"--list", "--test", "--quick", "--profile-time", "--help"})
"""Options with which criterion measures in another way, or nothing."""


def short_arguments(arguments: Sequence[str]) -> Iterator[str]:
    """Yield the options that make a run of criterion short and are not among the arguments."""
    names = {argument.partition("=")[0] for argument in arguments}
    if names & _OTHER_MODES:
        return
    for name, value in SHORT_RUN.items():
        if name not in names:
            yield from (name, value)
    if not names & {"--noplot", "-n"}:
        yield "--noplot"


def is_of_criterion(program: Path) -> bool:
    """Return whether the program has the names of criterion's options in it."""
    with program.open("rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as content:
        return all(content.find(name[2:].encode()) >= 0 for name in SHORT_RUN)


def cargo_options() -> tuple[str, str]:
    """Return the options with which cargo runs each program by this module.

    A runner that the user configures for the target itself comes before this one.
    """
    words = ", ".join(f"'{word}'" for word in (sys.executable, "-P", "-m", __name__))
    return "--config", f"target.'cfg(all())'.runner = [{words}]"


def main(arguments: Sequence[str]) -> None:
    """Become the program that the first argument names."""
    program, *rest = arguments
    if is_of_criterion(Path(program)):
        rest += short_arguments(rest)
    os.execv(program, (program, *rest))


if __name__ == "__main__":
    main(sys.argv[1:])
