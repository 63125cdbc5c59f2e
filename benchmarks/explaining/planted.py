"""Planted pairs with one known cause, explained by `equipoise why` from end to end.

For each pair: which cause is named first, what each intervention closes, and what one that has
nothing to do with it closes (a variable that nobody reads). Names of pairs may be given; all by
default. Takes about a minute a pair, on a machine that does nothing else.
"""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from packages.equipoise.tests.why.planted.pairs import Planted, built, pairs

EQUIPOISE = (sys.executable, "-m", "equipoise.cli")
UNRELATED = ("--try", "unrelated:NOBODY_READS_THIS=1")


def main(wanted: list[str]) -> int:
    """Print what was found of each pair."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        built(place)
        for pair in pairs():
            if wanted and not any(name in pair.name for name in wanted):
                continue
            if pair.missing():
                print(f"{pair.name}: needs {', '.join(pair.missing())}")
                continue
            print(f"{pair.name} (planted: {pair.cause})")
            for line in _explained(pair, place):
                print(f"  {line}", flush=True)
    return 0


def _explained(pair: Planted, folder: Path) -> list[str]:
    baseline, candidate = pair.conditions(folder)
    environment = [
        word
        for place, condition in enumerate((baseline, candidate), start=1)
        for key, value in condition.environment.items()
        for word in ("--env", f"{place}:{key}={value}")
    ]
    commands = [shlex.join(condition.command) for condition in (baseline, candidate)]
    compared = _said(folder, "compare", *environment, *commands)
    verdict = compared["comparisons"][0]
    found = [f"{verdict['verdict']}, ratio {verdict['ratio']:.2f}"]
    if verdict["verdict"] not in ("slower", "faster"):
        return found
    explained = _said(folder, "why", compared["run"]["id"], *UNRELATED)
    for cause in explained["why"]:
        found.append(f"{cause['cause']}: {cause['status']}")
        found.extend(f"  {_tested(test)}" for test in cause["tested"])
    return found


def _tested(test: dict[str, Any]) -> str:
    if test["unknown_because"] is not None:
        return f"{test['intervention']}: {test['unknown_because']}"
    if test["share"] is None:
        why = f": {test['unchanged_evidence']}" if test["unchanged_evidence"] else ""
        return f"{test['intervention']}: {test['outcome']}{why}"
    low, high = (None if one is None else round(100 * one) for one in test["share_ci"])
    seconds = test["share_of_seconds"]
    return (
        f"{test['intervention']}: {test['outcome']}, {100 * test['share']:.0f} % [{low}, {high}], "
        f"of the seconds {100 * seconds:.0f} %, {test['blocks']} blocks"
    )


def _said(folder: Path, *arguments: str) -> dict[str, Any]:
    done = subprocess.run(
        [*EQUIPOISE, *arguments, "--json", "-"],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        check=True,
    )
    said: dict[str, Any] = json.loads(done.stdout)
    return said


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
