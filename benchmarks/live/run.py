"""False alarms and power of Equipoise on this machine, with hyperfine beside it.

Prints one table; see README.md in this folder.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scipy import stats

HERE = Path(__file__).parent
HYPERFINE_RUNS = 20
SIGNIFICANT = 0.05


@dataclass
class Tally:
    """What one scenario gave."""

    equipoise: list[str] = field(default_factory=list)
    blocks: list[int] = field(default_factory=list)
    spreads: list[float] = field(default_factory=list)
    welch: list[bool] = field(default_factory=list)
    mann_whitney: list[bool] = field(default_factory=list)


def main() -> int:
    """Run the chosen scenarios, and print how often each rule called the programs different."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--scenario", choices=["copy", "drift", "3percent", "rare", "all"], default="all"
    )
    parser.add_argument("--campaigns", type=int, default=60, help="for copy and drift")
    parser.add_argument("--power-campaigns", type=int, default=20)
    parser.add_argument("--rare-campaigns", type=int, default=30)
    parser.add_argument("--milliseconds", type=float, default=10.0)
    asked = parser.parse_args()
    for tool in ("hyperfine", "cc"):
        if shutil.which(tool) is None:
            print(f"{tool} is missing: apt-get install {tool}", file=sys.stderr)
            return 2
    version = subprocess.run(["hyperfine", "--version"], capture_output=True, text=True, check=True)
    print(f"next to {version.stdout.strip()}\n")
    with tempfile.TemporaryDirectory(prefix="equipoise-live-") as folder:
        bench = Bench(Path(folder), asked.milliseconds)
        if asked.scenario in ("copy", "all"):
            print_null("a program against its copy", bench.copy(asked.campaigns))
        if asked.scenario in ("drift", "all"):
            print_null("a program that slows by 1 % at every run", bench.drift(asked.campaigns))
        if asked.scenario in ("3percent", "all"):
            print_power(bench.three_percent(asked.power_campaigns))
        if asked.scenario in ("rare", "all"):
            print_rare(bench.rare(asked.rare_campaigns))
    return 0


class Bench:
    """The programs, and the campaigns over them."""

    def __init__(self, folder: Path, milliseconds: float) -> None:
        self._folder = folder
        self._spinning = self._compile("spinning", [])
        self._drifting = self._compile("drifting", ["-lm"])
        self._stumbling = self._compile("stumbling", [])
        self._work = self._calibrate(milliseconds / 1000.0)
        self._counter = folder / "counter"

    def copy(self, campaigns: int) -> Tally:
        """Compare a program with a copy of its file."""
        other = shutil.copy(self._spinning, self._folder / "spinning-copy")
        pair = (f"{self._spinning} {self._work}", f"{other} {self._work}")
        return self._campaigns(campaigns, pair, ["--blocks", "40", "--min-effect", "0"])

    def drift(self, campaigns: int) -> Tally:
        """Compare a program that slows by 1 % at every run with a copy of its file."""
        other = shutil.copy(self._drifting, self._folder / "drifting-copy")
        # The double-precision loop of this program takes about as long a step.
        pair = (
            f"{self._drifting} {self._work} {self._counter}",
            f"{other} {self._work} {self._counter}",
        )

        def restart() -> None:
            self._counter.write_text("0\n", encoding="ascii")

        return self._campaigns(campaigns, pair, ["--blocks", "40", "--min-effect", "0"], restart)

    def three_percent(self, campaigns: int) -> Tally:
        """Compare a program with one that does 3 % more work."""
        pair = (
            f"{self._spinning} {self._work}",
            f"{self._spinning} {round(self._work * 1.03)}",
        )
        return self._campaigns(campaigns, pair, ["--blocks", "120"])

    def rare(self, campaigns: int) -> Tally:
        """Compare a program with one that does three times its work in one run of ten."""
        pair = (f"{self._spinning} {self._work}", f"{self._stumbling} {self._work}")
        return self._campaigns(campaigns, pair, ["--budget", "20"])

    def _campaigns(
        self,
        campaigns: int,
        pair: tuple[str, str],
        options: list[str],
        restart: Callable[[], None] = lambda: None,
    ) -> Tally:
        tally = Tally()
        for number in range(campaigns):
            tools = [self._equipoise, self._hyperfine]
            random.shuffle(tools)
            for tool in tools:
                restart()
                tool(pair, options, tally)
            print(f"\r{number + 1}/{campaigns}", end="", file=sys.stderr, flush=True)
        print("\r", end="", file=sys.stderr)
        return tally

    def _equipoise(self, pair: tuple[str, str], options: list[str], tally: Tally) -> None:
        document: dict[str, Any] = json.loads(
            _output(
                "equipoise", "compare", *pair, "--budget", "1e6", *options, "--json", "-",
                "--ledger", str(self._folder / "ledger.db"), "-n", "first", "-n", "second",
            )
        )  # fmt: skip
        tally.equipoise.append(document["comparisons"][0]["verdict"])
        tally.blocks.append(document["run"]["blocks"])
        for condition in document["conditions"]:
            summary = condition["metrics"]["wall_s"]
            if summary["sd"] is not None:
                tally.spreads.append(summary["sd"] / summary["mean"])

    def _hyperfine(self, pair: tuple[str, str], options: list[str], tally: Tally) -> None:
        exported = self._folder / "hyperfine.json"
        _output(
            "hyperfine", "-N", "--warmup", "1", "--runs", str(HYPERFINE_RUNS), "--style", "none",
            "--export-json", str(exported), *pair,
        )  # fmt: skip
        first, second = (one["times"] for one in json.loads(exported.read_text())["results"])
        tally.welch.append(
            bool(stats.ttest_ind(first, second, equal_var=False).pvalue < SIGNIFICANT)
        )
        tally.mann_whitney.append(bool(stats.mannwhitneyu(first, second).pvalue < SIGNIFICANT))

    def _compile(self, name: str, libraries: list[str]) -> Path:
        program = self._folder / name
        _output("cc", "-O2", "-o", str(program), str(HERE / f"{name}.c"), *libraries)
        return program

    def _calibrate(self, seconds: float) -> int:
        steps = 2_000_000
        times = []
        for _ in range(9):
            start = time.perf_counter()
            _output(str(self._spinning), str(steps))
            times.append(time.perf_counter() - start)
        return round(steps * seconds / statistics.median(times))


def print_null(title: str, tally: Tally) -> None:
    """Print how often each rule called two equal programs different."""
    campaigns = len(tally.equipoise)
    different = sum(verdict in ("faster", "slower", "mixed") for verdict in tally.equipoise)
    print(f"{title}: called different, of {campaigns} campaigns")
    for rule, count in (
        ("Equipoise, 40 blocks, looked at after every block", different),
        (f"hyperfine, {HYPERFINE_RUNS} runs each, Welch p < 0.05", sum(tally.welch)),
        (f"hyperfine, {HYPERFINE_RUNS} runs each, Mann-Whitney p < 0.05", sum(tally.mann_whitney)),
    ):
        print(f"  {rule:<52}{count:>4}")
    print(f"  {spread_words(tally)}\n")


def print_power(tally: Tally) -> None:
    """Print how often and how soon a program that is 3 % longer is called slower."""
    campaigns = len(tally.equipoise)
    found = [b for v, b in zip(tally.equipoise, tally.blocks, strict=True) if v == "slower"]
    print(f"3 % more work: called slower, of {campaigns} campaigns of at most 120 blocks")
    print(
        f"  Equipoise  {len(found)}, after {statistics.median(tally.blocks):g} blocks at the median"
    )
    print(f"  hyperfine, Welch  {sum(tally.welch)}; Mann-Whitney  {sum(tally.mann_whitney)}")
    print(f"  {spread_words(tally)}\n")


def print_rare(tally: Tally) -> None:
    """Print the verdicts on a program of which one run in ten takes three times as long."""
    campaigns = len(tally.equipoise)
    print(f"one run in ten three times as long: of {campaigns} campaigns of at most 20 s")
    for verdict in sorted(set(tally.equipoise) | {"equivalent"}):
        print(f"  Equipoise, {verdict:<12}{tally.equipoise.count(verdict):>4}")
    print(f"  after {statistics.median(tally.blocks):g} blocks at the median")
    print(f"  hyperfine, Welch  {sum(tally.welch)}; Mann-Whitney  {sum(tally.mann_whitney)}\n")


def spread_words(tally: Tally) -> str:
    """The standard deviation of a trial over its mean, over the campaigns."""
    return (
        f"spread of a trial (sd/mean): median {100 * statistics.median(tally.spreads):.2f} %, "
        f"most {100 * max(tally.spreads):.2f} %"
    )


def _output(*command: str) -> str:
    return subprocess.run(
        command, check=True, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True
    ).stdout


if __name__ == "__main__":
    sys.exit(main())
