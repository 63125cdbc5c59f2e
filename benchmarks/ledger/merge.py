"""How long `equipoise merge` takes for 1,000,000 trials from 200 ledgers, and for them again.

Each ledger has two campaigns of one host; each trial has its accounting, four covariates and a
sample. Run it with ``python -m benchmarks.ledger.merge``; ``--trials 50000`` is a quick look.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from equipoise.ledger import open_for_writing
from equipoise.model.plan import Condition, Judgement, Measure, Plan, Stopping
from equipoise.model.record import Accounting, Draw, RunRecord, Sample, Segment, Trial

CAMPAIGNS = 2
BAR_S = 60.0


def main() -> int:
    """Make the ledgers, merge them twice, and print the seconds; exit 1 beyond the bar."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=1_000_000)
    parser.add_argument("--ledgers", type=int, default=200)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="equipoise-merge-") as name:
        folder = Path(name)
        os.environ["XDG_STATE_HOME"] = str(folder / "state")
        blocks = options.trials // options.ledgers // CAMPAIGNS // 2
        sources = [folder / f"host{number}.db" for number in range(options.ledgers)]
        for number, source in enumerate(sources):
            fill(source, number, blocks)
        size = sum(source.stat().st_size for source in sources)
        trials = 2 * blocks * CAMPAIGNS * options.ledgers
        print(f"{trials:,} trials in {options.ledgers} ledgers, {size / 2**20:,.0f} MiB")
        first = merge(folder / "all.db", sources)
        print(f"equipoise merge: {first:.1f} s; load {os.getloadavg()[0]:.1f}")
        again = merge(folder / "all.db", sources)
        print(f"equipoise merge again, nothing new: {again:.1f} s; load {os.getloadavg()[0]:.1f}")
    return 0 if first <= BAR_S else 1


def fill(path: Path, number: int, blocks: int) -> None:
    """Record the campaigns of one host."""
    source = random.Random(number)
    with open_for_writing(path, durable=False, host=f"host{number}") as ledger:
        for campaign in range(CAMPAIGNS):
            plan = Plan(
                study="compare",
                conditions=(Condition("a", ("/bin/a",)), Condition("b", ("/bin/b",))),
                measure=Measure(working_folder="/"),
                stopping=Stopping(blocks=blocks),
                judgement=Judgement(),
                seed=source.getrandbits(60),
            )
            draws = [Draw("measured", block, (0, 1), 16) for block in range(1, blocks + 1)]
            trials = [trial(draw, place, source) for draw in draws for place in (0, 1)]
            started_at = 1.7e9 + campaign
            began = (Segment(started_at, {"kernel": "6.1"}),)
            ledger.record_import(
                RunRecord("", plan, started_at, began, tuple(draws), tuple(trials), ())
            )


def trial(draw: Draw, place: int, source: random.Random) -> Trial:
    """A trial with what one records on a real machine."""
    wall_s = 0.1 + source.lognormvariate(-5.0, 0.5)
    accounting = Accounting(
        wall_s, 0.9 * wall_s, 0.01, 4096 * source.randrange(900, 1000), 300, 0, 1, 2, 0, 0, 0
    )
    covariates: dict[str, float | None] = {"load_1": source.random(), "temperature": 50.0}
    covariates |= {"frequency": 3e9 * source.random(), "steal": None}
    samples = (Sample("latency_s", wall_s / 100.0),)
    return Trial(
        "measured", draw.block, place, draw.order[place], 1.7e9 + draw.block + place / 2,
        accounting, 0, covariates=covariates, samples=samples,
    )  # fmt: skip


def merge(into: Path, sources: list[Path]) -> float:
    """Merge with the command, print its seconds of CPU, and return its seconds."""
    began = time.perf_counter()
    command = [
        sys.executable,
        "-m",
        "equipoise.cli",
        "merge",
        "--quiet",
        str(into),
        *map(str, sources),
    ]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(f"seconds of CPU: {cpu_s:.1f}")
    return time.perf_counter() - began


if __name__ == "__main__":
    sys.exit(main())
