"""How long `list` and `show` take on a ledger of 100,000 trials, and `--help` without one.

Two ledgers are made: one with 1,000 campaigns of 100 trials, one with a single campaign of
100,000. The median of five runs of each command is printed.
"""

from __future__ import annotations

import argparse
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from equipoise.design.coin import draw_block
from equipoise.ledger import open_for_writing
from equipoise.model.plan import Condition, Judgement, Measure, Plan, Stopping
from equipoise.model.record import Accounting, Trial

REPEATS = 5


def main() -> int:
    """Make the ledgers and time the commands."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=100_000)
    trials = parser.parse_args().trials
    with tempfile.TemporaryDirectory(prefix="equipoise-ledger-") as name:
        folder = Path(name)
        many, one = folder / "many.db", folder / "one.db"
        made = time.perf_counter()
        fill(many, campaigns=trials // 100, blocks=50)
        fill(one, campaigns=1, blocks=trials // 2)
        per_trial = (time.perf_counter() - made) / (2 * trials)
        print(f"recording a trial: {1e3 * per_trial:.3f} ms")
        print_time("equipoise --help", ["--help"])
        for words, ledger in (("1,000 campaigns", many), ("1 campaign", one)):
            print_time(f"list, {trials:,} trials in {words}", ["list", "--ledger", str(ledger)])
            print_time(f"show, {trials:,} trials in {words}", ["show", "--ledger", str(ledger)])
        pooled = ["show", "--pool", "--ledger", str(many)]
        print_time(f"show --pool, {trials:,} trials in 1,000 campaigns", pooled)
    return 0


def fill(path: Path, campaigns: int, blocks: int) -> None:
    """Record campaigns of two conditions with times as they come on a real machine."""
    source = random.Random(1)
    with open_for_writing(path, durable=False) as ledger:
        for campaign in range(campaigns):
            plan = Plan(
                study="compare",
                conditions=(Condition("a", ("/bin/a",)), Condition("b", ("/bin/b",))),
                measure=Measure(working_folder="/"),
                stopping=Stopping(blocks=blocks),
                judgement=Judgement(),
                seed=campaign,
            )
            run_id = ledger.begin_run(plan, {}, 1.7e9 + campaign)
            segment = ledger.begin_segment(run_id, {}, 1.7e9 + campaign)
            for block in range(1, blocks + 1):
                draw = draw_block(plan, "measured", block)
                ledger.record_draw(run_id, draw)
                for position, condition in enumerate(draw.order):
                    wall_s = 0.010 * source.lognormvariate(0.0, 0.02)
                    ledger.record_trial(
                        run_id,
                        Trial(
                            phase="measured",
                            block=block,
                            position=position,
                            condition=condition,
                            started_at=1.7e9 + block,
                            accounting=Accounting(
                                wall_s=wall_s,
                                user_s=wall_s,
                                sys_s=0.0,
                                max_rss_bytes=2_000_000 + source.randrange(100_000),
                                minor_faults=120,
                                major_faults=0,
                                voluntary_switches=1,
                                involuntary_switches=0,
                            ),
                            exit=0,
                            covariates={"load_1_minute": 0.5},
                        ),
                    )
            ledger.end_segment(run_id, segment, 1.7e9 + blocks, "block limit")


def print_time(title: str, arguments: list[str]) -> None:
    """Print the median time of one command line."""
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        subprocess.run(
            [sys.executable, "-m", "equipoise.cli", *arguments],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        times.append(time.perf_counter() - start)
    print(f"{title}: {statistics.median(times):.3f} s")


if __name__ == "__main__":
    sys.exit(main())
