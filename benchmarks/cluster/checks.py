"""What must hold when a repetition has ended, whatever went wrong in it."""

from __future__ import annotations

import json
import math
import statistics
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from benchmarks.cluster.faults import Injected
from benchmarks.cluster.fleet import Fleet, Machine
from equipoise.ledger import open_for_reading


class Findings(Struct, frozen=True):
    """What a repetition came to."""

    trials: int
    """Trials of all hosts, warm-up included."""
    problems: tuple[str, ...]
    """What does not hold; empty if all does."""
    mean: tuple[float | None, float | None]
    """The fleet's interval of the mean ratio."""
    truth: float
    """Planted mean."""
    verdicts: int

    @property
    def covers(self) -> bool:
        """Whether the interval has two ends and holds the planted mean."""
        low, high = self.mean
        return low is not None and high is not None and low <= self.truth <= high


def examine(fleet: Fleet, injected: Sequence[Injected], folder: Path) -> Findings:
    """Compare the coordinator's ledger with those of the hosts, and the answer with the truth."""
    problems: list[str] = []
    union = folder / "union.db"
    equipoise(fleet.hub, "merge", str(union), *(str(host.ledger) for host in fleet.hosts))
    with open_for_reading(fleet.hub.ledger) as ledger:
        coordinator = ledger.read_run("last")
        members = [member.identity for member in coordinator.members]
        here = {identity: ledger.id_of(identity) for identity in members}
    with open_for_reading(union) as ledger:
        there = {identity: ledger.id_of(identity) for identity in members}
        runs = len(ledger.runs())
    if len(members) != len(fleet.hosts) or runs != len(fleet.hosts):
        problems.append(f"{len(members)} members and {runs} runs of {len(fleet.hosts)} hosts")
    trials = 0
    for place, identity in enumerate(members):
        if there[identity] is None:
            problems.append(f"the run of place {place} is not in the union")
            continue
        pulled = shown(fleet.hub, fleet.hub.ledger, str(here[identity]))
        merged = shown(fleet.hub, union, str(there[identity]))
        if pulled != merged:
            problems.append(f"host{place}: the coordinator's copy differs from the host's ledger")
        trials += count_trials(place, json.loads(merged)["trials"], fleet.plan.blocks, problems)
    for one in injected:
        for place, committed in enumerate(one.committed):
            kept = fleet.hosts[place].trials()
            lost = [key for key, value in committed.items() if kept.get(key) != value]
            if lost:
                problems.append(f"host{place} lost {len(lost)} trials after {one.fault.name}")
    document: dict[str, Any] = json.loads(shown(fleet.hub, fleet.hub.ledger, "last"))
    decisive = [one for one in document["comparisons"] if one["metric"] == "wall_s"]
    verdicts = sum(one["verdict"] is not None for one in decisive)
    if verdicts != 1:
        problems.append(f"{verdicts} verdicts")
    low, high = decisive[0]["fleet"]["mean"]["ratio_ci"]
    truth = math.exp(statistics.fmean(map(math.log, fleet.plan.ratios)))
    return Findings(trials, tuple(problems), (low, high), truth, verdicts)


def count_trials(place: int, trials: list[dict[str, Any]], blocks: int, problems: list[str]) -> int:
    """Return the number of trials; say if one is twice or missing."""
    keys = [(one["phase"], one["block"], one["position"]) for one in trials]
    if len(set(keys)) != len(keys):
        problems.append(f"host{place}: {len(keys) - len(set(keys))} trials are there twice")
    measured = {key for key in keys if key[0] == "measured"}
    if len(measured) != 2 * blocks:
        problems.append(f"host{place}: {len(measured)} measured trials of {2 * blocks}")
    return len(keys)


def shown(machine: Machine, ledger: Path, run: str) -> bytes:
    """Return the result document of a run."""
    return equipoise(machine, "show", run, "--ledger", str(ledger), "--json", "-")


def equipoise(machine: Machine, *words: str) -> bytes:
    """Run a command of Equipoise with the variables of a machine; return what it prints."""
    done = subprocess.run(
        [sys.executable, "-m", "equipoise.cli", *words],
        cwd=machine.folder,
        env=machine.environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    if done.returncode:
        raise ValueError(f"equipoise {' '.join(words)}: {done.stderr.decode()}")
    return done.stdout
