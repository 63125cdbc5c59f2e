"""Run iterations of a Python callable, or of a command, in one trial.

::

    python -m equipoise.helpers.harness callable package.module:function --iterations 100
    python -m equipoise.helpers.harness command --iterations 20 -- sort words

The time of each iteration, and the mean, go to ``EQUIPOISE_METRICS`` as ``iteration_s``.
"""

from __future__ import annotations

import argparse
import importlib
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import partial
from operator import attrgetter
from typing import Any

from equipoise.helpers.equipoise_metrics import timed_iterations

ITERATION_METRIC = "iteration_s"


def import_callable(name: str) -> Callable[[], Any]:
    """Import the callable ``module:function``; the module may be in the current folder.

    Raise `SystemExit` with one line if the callable cannot be imported.
    """
    module_name, colon, path = name.partition(":")
    if not colon or not path:
        raise SystemExit(f"{name!r} is not of the form MODULE:FUNCTION, such as json:dumps")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        function: Callable[[], Any] = attrgetter(path)(importlib.import_module(module_name))
    except (ImportError, AttributeError) as error:
        raise SystemExit(f"cannot import {name}: {error}") from None
    if not callable(function):
        raise SystemExit(f"{name} cannot be called: name a function")
    return function


def run_command(command: Sequence[str]) -> None:
    """Run a command to its end, and discard its output.

    Raise `SystemExit` if it failed, or could not be started.
    """
    try:
        status = subprocess.run(command, stdout=subprocess.DEVNULL, check=False).returncode
    except OSError as error:
        raise SystemExit(f"cannot start {command[0]}: {error.strerror}") from None
    if status != 0:
        raise SystemExit(f"{command[0]} ended with status {status}")


def main(arguments: Sequence[str]) -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="harness", description=__doc__.partition("\n")[0])
    subparsers = parser.add_subparsers(dest="kind", required=True)
    for kind, nargs, metavar in (("callable", 1, "MODULE:FUNCTION"), ("command", "+", "CMD")):
        subparser = subparsers.add_parser(kind)
        subparser.add_argument("--iterations", type=int, default=100)
        subparser.add_argument("target", nargs=nargs, metavar=metavar)
    options = parser.parse_args(arguments)
    if options.iterations < 1:
        parser.error("--iterations must be at least 1")
    if options.kind == "callable":
        work = import_callable(options.target[0])
    else:
        work = partial(run_command, options.target)
    timed_iterations(ITERATION_METRIC, work, options.iterations)


if __name__ == "__main__":
    main(sys.argv[1:])
