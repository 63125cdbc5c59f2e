"""Run the attack: ``python -m tests.chaos [--kills N] [--seed N] [--only PART] [--jobs N]``."""

from __future__ import annotations

import argparse
import itertools
import os
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from pathlib import Path

from tests.chaos import disks, environments, kills
from tests.chaos.commands import COMMANDS
from tests.chaos.kills import Kill, Outcome, Seen
from tests.chaos.workers import Work, Workers

PARTS = ("kills", "disks", "environments")
TRIES = 3
"""Attempts at hitting a role, of which each may come too late."""


def main() -> int:
    """Run the parts that are asked for; exit with 1 where an invariant was violated."""
    options = _options()
    print(f"seed {options.seed}", flush=True)
    base = Path(tempfile.mkdtemp(prefix="chaos-"))
    began = time.monotonic()
    tally = Tally()
    workers = Workers(options.jobs, base)
    try:
        if "disks" in options.only:
            for outcome in workers.each([Work("disks", name=name) for name in disks.CASES]):
                tally.add(outcome)
        if "environments" in options.only:
            cases = [Work("environments", name=name) for name in environments.CASES]
            for outcome in workers.each(cases):
                tally.add(outcome)
        if "kills" in options.only:
            _kill(workers, options.kills, random.Random(options.seed), options.command, tally)
    finally:
        workers.close()
        shutil.rmtree(base, ignore_errors=True)
    tally.print(time.monotonic() - began)
    return 1 if tally.violated else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--kills", type=int, default=300, metavar="N")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--only", action="append", choices=PARTS)
    parser.add_argument("--command", action="append", choices=list(COMMANDS))
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="N")
    options = parser.parse_args()
    options.only = options.only or PARTS
    options.command = options.command or list(COMMANDS)
    return options


def _kill(
    workers: Workers, number: int, drawn: random.Random, names: Sequence[str], tally: Tally
) -> None:
    """Leave every command alone once, to see its roles; then kill."""
    untouched = [Work("kills", Kill(name, "none", "nothing", 0.0)) for name in names]
    seen: dict[str, dict[str, Seen]] = {}
    for outcome in workers.each(untouched):
        tally.add(outcome)
        print(f"       roles: {', '.join(role for role, _ in outcome.seen)}")
        seen[next(name for name in names if f"`{name}`" in outcome.fault)] = dict(outcome.seen)
    pairs = [(name, role) for name in names for role in seen[name]]
    drawn.shuffle(pairs)
    faults = (
        Kill(name, role, kills.drawn_signal(drawn), kills.drawn_moment(seen[name], role, drawn))
        for name, role in itertools.islice(itertools.cycle(pairs), number)
    )
    attempts: dict[Future[Outcome], tuple[Kill, int]] = {
        workers.submit(Work("kills", kill)): (kill, 1) for kill in faults
    }
    while attempts:
        done, _ = wait(attempts, return_when=FIRST_COMPLETED)
        for one in done:
            kill, tries = attempts.pop(one)
            outcome = one.result()
            if outcome.hit or tries == TRIES:
                tally.add(outcome)
                continue
            earlier = Kill(kill.command, kill.role, kill.signal, kill.moment_s / 2**tries)
            attempts[workers.submit(Work("kills", earlier))] = (earlier, tries + 1)


class Tally:
    """Counts what was done and what was violated, and says so as it comes."""

    def __init__(self) -> None:
        self.faults: Counter[str] = Counter()
        self.bad: Counter[str] = Counter()
        self.missed = 0
        self.violated = 0
        self.trials = 0

    def add(self, outcome: Outcome) -> None:
        """Count one case."""
        if not outcome.hit and outcome.kind != kills.UNTOUCHED:
            self.missed += 1
        self.faults[outcome.kind] += 1
        self.trials += outcome.trials_before
        state = "ok" if not outcome.problems else "FAILED"
        print(f"{state} {outcome.seconds:5.1f} s  {outcome.fault}", flush=True)
        for problem in outcome.problems:
            print(f"       {problem}", flush=True)
        if outcome.problems:
            self.violated += 1
            self.bad[outcome.kind] += 1

    def print(self, seconds: float) -> None:
        """Print a table of all cases."""
        print(f"\n{'fault':60} cases  violated")
        for kind, cases in sorted(self.faults.items()):
            print(f"{kind:60} {cases:5}  {self.bad[kind]:8}")
        print(
            f"{self.faults.total()} cases, {self.violated} violated, {self.missed} kills came too "
            f"late; {self.trials} trials were in the ledgers; {seconds / 60:.1f} minutes"
        )


if __name__ == "__main__":
    sys.exit(main())
