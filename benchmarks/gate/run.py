"""How often a gate lets through what changed nothing, and stops a slowdown of 5 %.

Each gate is `equipoise gate` with its usual limits on a small git repository with a C program in
it. Of the A/A gates, the later revision changes a comment; of the others, it does 5 % more work.
Prints one table with the median spread of a trial's logarithm, which decides how hard it is
(power.py); ends with 1 if fewer gates than 19 of 20 did what they should.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
MIN_SHARE = 0.95
SETTINGS = ("-c", "user.name=bench", "-c", "user.email=bench@example.com")
MAKEFILE = "bench: spinning.c Makefile\n\tcc -O1 -DWORK={work}UL -o bench spinning.c\n"


@dataclass(frozen=True)
class Scenario:
    """One kind of change, and what the gate should make of it."""

    name: str
    percent: float
    right_status: int


SCENARIOS = (Scenario("A/A: a comment changed", 0.0, 0), Scenario("5 % more work", 5.0, 1))


@dataclass(frozen=True)
class Tally:
    """What the gates of one scenario did."""

    right: int
    gates: int
    blocks: tuple[int, ...]
    seconds: tuple[float, ...]
    spreads: tuple[float, ...]
    undecided: int


def main() -> int:
    """Run the gates that were asked for, and print what came of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gates", type=int, default=20, help="of each scenario")
    parser.add_argument("--milliseconds", type=float, default=20.0, help="of one trial")
    parser.add_argument("--metrics", default="wall_s", help="what the gates compare")
    asked = parser.parse_args()
    for tool in ("git", "cc", "make", "equipoise"):
        if shutil.which(tool) is None:
            print(f"{tool} is missing on the PATH", file=sys.stderr)
            return 2
    with tempfile.TemporaryDirectory(prefix="gate-benchmark-") as folder:
        work = calibrated(Path(folder), asked.milliseconds / 1000.0)
        tallies = [
            gates(Path(folder, f"repository-{place}"), scenario, work, asked)
            for place, scenario in enumerate(SCENARIOS)
        ]
    print(
        f"{'change':<24} {'right':>8} {'undecided':>10} {'blocks':>16} {'seconds':>16} "
        f"{'spread':>8}"
    )
    for scenario, tally in zip(SCENARIOS, tallies, strict=True):
        print(
            f"{scenario.name:<24} {f'{tally.right}/{tally.gates}':>8} {tally.undecided:>10} "
            f"{spread(tally.blocks):>16} {spread(tally.seconds):>16} "
            f"{f'{100 * statistics.median(tally.spreads):.1f} %':>8}"
        )
    return 0 if all(one.right >= MIN_SHARE * one.gates for one in tallies) else 1


def calibrated(folder: Path, seconds: float) -> int:
    """How much work takes about so long here."""
    work, program = 20_000_000, folder / "calibrating"
    source = HERE / "spinning.c"
    subprocess.run(["cc", "-O1", f"-DWORK={work}UL", "-o", program, source], check=True)
    times = []
    for _ in range(7):
        began = time.perf_counter()
        subprocess.run([program], check=True)
        times.append(time.perf_counter() - began)
    return round(work * seconds / statistics.median(times))


def gates(folder: Path, scenario: Scenario, work: int, asked: argparse.Namespace) -> Tally:
    """Make the repository with both revisions and run the gates between them."""
    folder.mkdir()
    git(folder, "init", "--quiet", ".")
    shutil.copy(HERE / "spinning.c", folder)
    (folder / "Makefile").write_text(MAKEFILE.format(work=work))
    commit(folder)
    later = MAKEFILE.format(work=round(work * (1 + scenario.percent / 100)))
    (folder / "Makefile").write_text(f"# Another comment.\n{later}")
    commit(folder)
    right, undecided, blocks, seconds, spreads = 0, 0, [], [], []
    for number in range(asked.gates):
        began = time.perf_counter()
        status, document = gate(folder, asked.metrics)
        seconds.append(time.perf_counter() - began)
        blocks.append(document["run"]["blocks"])
        undecided += document["gate"]["rows"][0]["outcome"] == "undecided"
        spreads.append(spread_of_a_trial(document, asked.metrics))
        right += status == scenario.right_status
        print(f"\r{scenario.name} {number + 1}/{asked.gates}", end="", file=sys.stderr, flush=True)
    print("\r\x1b[K", end="", file=sys.stderr)
    return Tally(right, asked.gates, tuple(blocks), tuple(seconds), tuple(spreads), undecided)


def spread_of_a_trial(document: dict[str, Any], metric: str) -> float:
    """The robust standard deviation of one trial's logarithm, out of the ratios of blocks."""
    costs: dict[int, dict[str, float]] = {}
    for trial in document["trials"]:
        if trial["analysed"]:
            cost = trial["user_s"] + trial["sys_s"] if metric == "cpu_s" else trial[metric]
            costs.setdefault(trial["block"], {})[trial["condition"]] = cost
    names = [one["name"] for one in document["conditions"]]
    ratios = [math.log(block[names[1]] / block[names[0]]) for block in costs.values()]
    middle = statistics.median(ratios)
    return 1.4826 * statistics.median(abs(one - middle) for one in ratios) / math.sqrt(2)


def gate(folder: Path, metrics: str) -> tuple[int, dict[str, Any]]:
    """One gate between the two revisions: its exit status and its document."""
    done = subprocess.run(
        [
            *("equipoise", "gate", "--baseline", "HEAD~1", "--candidate", "HEAD"),
            *(
                "--metrics",
                metrics,
                "--build",
                "make --silent",
                "--ledger",
                folder.parent / "ledger.db",
            ),
            *("--json", "-", "--", "./bench"),
        ],
        cwd=folder,
        env={key: value for key, value in os.environ.items() if key != "GITHUB_STEP_SUMMARY"},
        stdout=subprocess.PIPE,
        check=False,
    )
    if done.returncode not in (0, 1):
        raise SystemExit(done.returncode)
    document: dict[str, Any] = json.loads(done.stdout)
    return done.returncode, document


def commit(folder: Path) -> None:
    """Commit everything."""
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "-m", "a revision")


def git(folder: Path, *words: str) -> None:
    """Run git in the folder."""
    subprocess.run(["git", *SETTINGS, *words], cwd=folder, check=True)


def spread(values: tuple[float, ...]) -> str:
    """The least, the median and the most."""
    return f"{min(values):.3g}–{statistics.median(values):.3g}–{max(values):.3g}"


if __name__ == "__main__":
    sys.exit(main())
