"""Trials at once beside trials in turns: the width of the interval in the same wall seconds.

``python -m benchmarks.duet.live``. Ten pairs of programs, of which the candidate does 3 % more
work, are compared in turns and with ``--duet``, on the host as it is and beside a noise generator.
Campaigns of equal programs count the false differences. Prints a line for each pair, and ends with
1 if more than 5 % of the campaigns of equal programs report a difference, beyond two standard
errors. ``--results FILE`` gets each campaign at once, and campaigns that the file has are not run
again.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import random
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from equipoise.campaign.interim import latest_analysis_block
from equipoise.stats.sequence import PairedBlocks
from equipoise.stats.verdict import judge

HERE = Path(__file__).parent
ALPHA, MIN_EFFECT, PERCENT = 0.05, 1.0, 3.0
KINDS = "integers floats branches chase copies allocations calls files".split()
"""Kinds of work of work.c."""
PYTHON_LINE = "total = 0\nfor index in range({}): total += index * index"
NOISE_PROCESSES = 2
SURROUNDINGS, WAYS = ("idle", "noise"), ("turns", "duet")


class Campaign(NamedTuple):
    """One campaign of the benchmark; its fields are its key in the results."""

    pair: str
    surroundings: str
    way: str
    percent: float
    """Additional work of the candidate, in percent."""
    repetition: int
    budget: float


def main(words: Sequence[str]) -> int:
    """Run the campaigns that the results lack, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", default=",".join((*KINDS, "python", "sort")))
    parser.add_argument("--repetitions", type=int, default=3, help="of each pair with more work")
    parser.add_argument("--equal", type=int, default=10, help="campaigns of each equal pair")
    parser.add_argument("--budget", type=float, default=20.0, help="seconds of a campaign")
    parser.add_argument("--milliseconds", type=float, default=30.0, help="of one trial, alone")
    parser.add_argument("--results", type=Path, help="file of campaigns, appended to")
    parser.add_argument("--seconds", type=float, help="end after so many seconds")
    asked = parser.parse_args(words)
    if len(os.sched_getaffinity(0)) < 2:
        print("needs two CPUs")
        return 2
    end = math.inf if asked.seconds is None else time.monotonic() + asked.seconds
    known = _read(asked.results)
    with tempfile.TemporaryDirectory(prefix="duet-") as name:
        folder = Path(name)
        subprocess.run(["cc", "-O2", "-o", folder / "work", HERE / "work.c"], check=True)
        work = {pair: _calibrated(folder, pair, asked.milliseconds) for pair in _pairs(asked)}
        for campaign in _campaigns(asked):
            if campaign in known or time.monotonic() > end:
                continue
            known[campaign] = outcome = _run(folder, campaign, work[campaign.pair])
            if asked.results is not None:
                with asked.results.open("a", encoding="utf-8") as file:
                    file.write(json.dumps([campaign, outcome]) + "\n")
    return _print_table(asked, known)


def _pairs(asked: argparse.Namespace) -> list[str]:
    return list(asked.pairs.split(","))


def _campaigns(asked: argparse.Namespace) -> Iterator[Campaign]:
    """Yield the campaigns; the ways alternate, so that both see the same host."""
    for percent, repetitions in ((PERCENT, asked.repetitions), (0.0, asked.equal)):
        for repetition in range(repetitions):
            for surroundings in SURROUNDINGS:
                for pair in _pairs(asked):
                    ways = WAYS if percent else ("duet",)
                    for way in ways if repetition % 2 else ways[::-1]:
                        yield Campaign(pair, surroundings, way, percent, repetition, asked.budget)


def _read(file: Path | None) -> dict[Campaign, dict[str, Any]]:
    if file is None or not file.exists():
        return {}
    rows = map(json.loads, file.read_text(encoding="utf-8").splitlines())
    return {Campaign(*campaign): outcome for campaign, outcome in rows}


def _command(folder: Path, pair: str, amount: int) -> list[str]:
    match pair:
        case "python":
            return [sys.executable, "-I", "-S", "-c", PYTHON_LINE.format(amount)]
        case "sort":
            words = folder / f"words-{amount}"
            if not words.exists():
                drawn = random.Random(1)
                lines = (f"{drawn.getrandbits(64):x}\n" for _ in range(amount))
                words.write_text("".join(lines), encoding="ascii")
            return ["/usr/bin/sort", "--parallel=1", str(words)]
        case _:
            return [str(folder / "work"), pair, str(amount)]


def _calibrated(folder: Path, pair: str, milliseconds: float) -> int:
    """Return the amount of work that takes about so many milliseconds."""
    amount = 100
    while True:
        times_s = []
        for _ in range(3):
            start_s = time.perf_counter()
            subprocess.run(_command(folder, pair, amount), check=True, stdout=subprocess.DEVNULL)
            times_s.append(time.perf_counter() - start_s)
        if 1000 * min(times_s) >= milliseconds:
            return amount
        amount = math.ceil(amount * min(10.0, 1.1 * milliseconds / (1000 * min(times_s)) + 0.1))


@contextlib.contextmanager
def _noise(surroundings: str) -> Iterator[None]:
    """Run a noise generator: processes that use a CPU and sleep, at random."""
    line = (
        "import random, time\n"
        "while True:\n"
        " end = time.monotonic() + random.expovariate(1 / 0.05)\n"
        " while time.monotonic() < end: pass\n"
        " time.sleep(random.expovariate(1 / 0.1))\n"
    )
    count = NOISE_PROCESSES if surroundings == "noise" else 0
    processes = [
        subprocess.Popen([sys.executable, "-c", line], start_new_session=True) for _ in range(count)
    ]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def _run(folder: Path, campaign: Campaign, amount: int) -> dict[str, Any]:
    """Run a campaign; return its interval, and the seconds of trials until its verdict."""
    more = math.ceil(amount * (1.0 + campaign.percent / 100))
    commands = [_command(folder, campaign.pair, work) for work in (amount, more)]
    words = [sys.executable, "-m", "equipoise.cli", "compare", *map(shlex.join, commands)]
    words += ["-n", "one", "-n", "other", "--budget", str(campaign.budget), "--json", "-"]
    words += ["--seed", str(random.Random(repr(campaign)).getrandbits(31)), "--allow-concurrent"]
    # To the end of the budget: a campaign that stops at its verdict says little about its width.
    words += ["--precision", "0.0001"] if campaign.percent else []
    words += ["--duet"] if campaign.way == "duet" else []
    with _noise(campaign.surroundings):
        done = subprocess.run(
            [*words, "--ledger", str(folder / f"{os.urandom(8).hex()}.db")],
            capture_output=True,
            text=True,
            check=False,
            cwd=folder,
        )
    if done.returncode:
        return {"refused": done.stderr.splitlines()[0] if done.stderr else done.returncode}
    result = json.loads(done.stdout)
    (comparison,) = result["comparisons"]
    low, high = comparison["ratio_ci"]
    return {
        "verdict": comparison["verdict"],
        "width": None if not low or high is None else math.log(high / low),
        "blocks": comparison["blocks"],
        "seconds": _seconds_to_verdict(result["trials"], campaign.way),
    }


def _seconds_to_verdict(trials: list[dict[str, Any]], way: str) -> float | None:
    """Return the seconds of the measured trials until the first verdict on a difference."""
    growing, seconds = PairedBlocks(), 0.0
    rows = [trial for trial in trials if trial["analysed"]]
    for number, (first, second) in enumerate(zip(rows[::2], rows[1::2], strict=True), start=1):
        times = first["wall_s"], second["wall_s"]
        seconds += float(max(times) if way == "duet" else sum(times))
        is_baseline_first = first["condition"] == "one"
        growing.append(
            *(times if is_baseline_first else times[::-1]), 1 if is_baseline_first else -1
        )
        if number == latest_analysis_block(number):
            verdict = judge([growing], min_effect=MIN_EFFECT, alpha=ALPHA)[0].verdict
            if verdict in ("slower", "faster"):
                return seconds
    return None


def _print_table(asked: argparse.Namespace, known: dict[Campaign, dict[str, Any]]) -> int:
    print(f"{asked.budget:g} s a campaign; the candidate does {PERCENT:g} % more work")
    print(
        f"{'pair':<13}{'host':<7}{'width in turns, %':>18}{'at once, %':>12}"
        f"{'seconds in turns':>18}{'at once':>9}  refused"
    )
    for surroundings in SURROUNDINGS:
        for pair in _pairs(asked):
            cells = [
                [
                    outcome
                    for campaign, outcome in known.items()
                    if campaign[:4] == (pair, surroundings, way, PERCENT)
                ]
                for way in WAYS
            ]
            widths = [_median(cell, "width", 100.0) for cell in cells]
            seconds = [_median(cell, "seconds") for cell in cells]
            refused = sum("refused" in outcome for outcome in cells[1])
            print(
                f"{pair:<13}{surroundings:<7}{widths[0]:>18}{widths[1]:>12}{seconds[0]:>18}"
                f"{seconds[1]:>9}  {refused} of {len(cells[1])}"
            )
    equal = [
        outcome
        for campaign, outcome in known.items()
        if not campaign.percent and "refused" not in outcome
    ]
    red = sum(outcome["verdict"] in ("slower", "faster", "mixed") for outcome in equal)
    print(f"equal programs at once: a difference in {red} of {len(equal)} campaigns")
    limit = ALPHA + 2.0 * math.sqrt(ALPHA * (1.0 - ALPHA) / max(1, len(equal)))
    return int(red > limit * len(equal))


def _median(outcomes: list[dict[str, Any]], name: str, factor: float = 1.0) -> str:
    """Return a median; a campaign without a verdict, or an interval, has an infinite value."""
    values = [
        math.inf if outcome[name] is None else factor * outcome[name]
        for outcome in outcomes
        if "refused" not in outcome
    ]
    return f"{float(np.median(values)):.2f}" if values else "-"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
