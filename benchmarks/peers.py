"""Change-points by other tools, in environments of their own: Otava pins numpy, asv is large."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.environments import python_with


@dataclass(frozen=True, slots=True)
class Peer:
    """A tool that finds changes in a series."""

    name: str
    packages: tuple[str, ...]
    program: str
    """Reads a list of series as JSON and writes the first value of each new level, for each."""

    def changes(self, series: Sequence[np.ndarray]) -> list[list[int]]:
        """Where the level of each series changes by its rule: places of the first new value.

        Raise `NoEnvironment` if its packages could not be installed.
        """
        given = json.dumps([[float(value) for value in one] for one in series])
        command = (python_with(*self.packages), "-c", self.program)
        done = subprocess.run(command, input=given, capture_output=True, text=True, check=True)
        places: list[list[int]] = json.loads(done.stdout.splitlines()[-1])
        return places


_OTAVA = """
import json, sys
from otava.analysis import compute_change_points
found = []
for values in json.load(sys.stdin):
    changes, _ = compute_change_points(values, window_len=50, max_pvalue=0.001, min_magnitude=0.01)
    found.append([int(one.index) for one in changes])
print(json.dumps(found))
"""
_ASV = """
import json, sys
from asv.step_detect import detect_regressions, detect_steps
found = []
for values in json.load(sys.stdin):
    _, _, places = detect_regressions(detect_steps(values), threshold=0.05)
    found.append([after for _, after, _, _ in places or ()])
print(json.dumps(found))
"""
_STEPS = """
import json, sys
from asv.step_detect import detect_steps
found = []
for values in json.load(sys.stdin):
    steps = detect_steps(values)
    pairs = zip(steps, steps[1:])
    found.append([b[0] for a, b in pairs if abs(b[2] / a[2] - 1) > 0.01])
print(json.dumps(found))
"""
OTAVA = Peer("Otava 0.8", ("apache-otava==0.8.0",), _OTAVA)
"""Its own defaults, and changes of at least 1 %."""
ASV = Peer("asv 0.6.6, regressions", ("asv==0.6.6",), _ASV)
"""What asv reports: slower by its default threshold of 5 %, and never faster again."""
ASV_STEPS = Peer("asv 0.6.6, steps", ("asv==0.6.6",), _STEPS)
"""What asv draws: all steps, here those of at least 1 %."""
