"""asv's and Otava's rules on series of numbers, each in an environment of its own.

The environments lie in ``target/benchmark-history``. They are made from PyPI when they are missing:
Otava pins an old numpy, and asv needs none of ours.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import msgspec
from msgspec import Struct

FOLDER = Path("target/benchmark-history")

_ASV = """
import json, sys
from asv.step_detect import detect_steps
series = json.load(sys.stdin)
json.dump([[step[0] for step in detect_steps(one)[1:]] for one in series], sys.stdout)
"""
_OTAVA = """
import json, sys
from otava.series import AnalysisOptions, Metric, Series
series = json.load(sys.stdin)
def changes(one):
    times = [86400 * night for night in range(len(one))]
    whole = Series("history", None, times, {"wall": Metric(1, 1.0, "s")}, {"wall": one}, {})
    return [int(point.index) for point in whole.analyze(AnalysisOptions()).change_points["wall"]]
json.dump([changes(one) for one in series], sys.stdout)
"""


class Rule(Struct, frozen=True):
    """A rule of another tool, as its package has it."""

    name: str
    requirement: str
    program: str
    """Reads series from stdin and writes the places at which each of them changes."""


RULES = (
    Rule("asv", "asv==0.6.6", _ASV),
    Rule("Otava", "apache-otava==0.8.0", _OTAVA),
)


class Missing(Exception):
    """The environment of a rule cannot be made."""


def changes_by(rule: Rule, series: list[list[float]]) -> list[list[int]]:
    """Return the places at which each series changes, by a rule.

    Raises
    ------
    Missing
        Its package cannot be installed.
    """
    python = _environment(rule)
    done = subprocess.run(
        [python, "-c", rule.program],
        input=msgspec.json.encode(series),
        capture_output=True,
        check=False,
    )
    if done.returncode != 0:
        raise Missing(f"{rule.requirement} does not run: {_last_line(done.stderr)}")
    return msgspec.json.decode(done.stdout, type=list[list[int]])


def _environment(rule: Rule) -> str:
    """Return the interpreter of a rule's environment, made if it is missing."""
    folder = FOLDER / rule.requirement
    python, complete = folder / "bin" / "python", folder / "complete"
    if not complete.exists():
        print(f"{rule.requirement}: an environment of its own in {folder}", file=sys.stderr)
        for command in (
            [sys.executable, "-m", "venv", str(folder)],
            [str(python), "-m", "pip", "install", "--quiet", rule.requirement],
        ):
            done = subprocess.run(command, capture_output=True, check=False)
            if done.returncode != 0:
                reason = _last_line(done.stderr)
                raise Missing(f"{rule.requirement} cannot be installed from PyPI: {reason}")
        complete.touch()
    return str(python)


def _last_line(text: bytes) -> str:
    lines = text.decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else "no reason given"
