"""Each probe beside a C loop that does the same: the ratio of what they say.

    python benchmarks/probes/beside.py [--rounds N] [--cpu N] [NAME ...]

The two run in turn on one CPU, in an order drawn for each round; each gives the median of its
batches, and the round their ratio. Prints the median of the rounds with an exact 95 % interval of
it, and exits with 1 if an interval lies outside of 0.9 to 1.1. Needs cc and a static C library.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

from scipy.stats import binom

import equipoise_studies

HERE = Path(__file__).parent
PROBE = Path(equipoise_studies.__file__).parent / "_bin" / "equipoise-probe"
PROBES: dict[str, tuple[str, ...]] = {
    "null_call": (),
    "fork": (),
    "exec": (),
    "page_fault": (),
    "thread": (),
    "pipe": ("--placement", "same_cpu"),
}
BATCHES = 21
BATCH_MS = 5
AGREE = (0.9, 1.1)
LEVEL = 0.05
TINY = "int main(void) { return 0; }\n"
SEED = 2006


def compiled(source: Path, program: Path) -> Path:
    """A static program."""
    command = ["cc", "-O2", "-static", "-pthread", "-o", str(program), str(source)]
    subprocess.run(command, check=True)
    return program


def output(words: list[str], cpu: int) -> list[str]:
    """What a program prints that may use one CPU only."""
    environment = {key: text for key, text in os.environ.items() if key != "EQUIPOISE_METRICS"}
    held = partial(os.sched_setaffinity, 0, {cpu})
    done = subprocess.run(
        words, env=environment, preexec_fn=held, stdout=subprocess.PIPE, text=True, check=True
    )
    return done.stdout.splitlines()


def probe_ns(name: str, cpu: int) -> float:
    """What the probe says of one operation, in nanoseconds."""
    words = [str(PROBE), name, *PROBES[name], "--batches", str(BATCHES)]
    lines = map(json.loads, output([*words, "--batch-ms", str(BATCH_MS)], cpu))
    found = (line for line in lines if line.get("metric") == "latency_s")
    return 1e9 * float(next(line["value"] for line in found if "iteration" not in line))


def loop_ns(words: list[str], cpu: int) -> float:
    """What the C loop says of one operation, in nanoseconds."""
    return statistics.median(map(float, output(words, cpu)))


def interval(values: list[float]) -> tuple[float, float]:
    """An exact interval for the median (order statistics, binomial)."""
    ordered = sorted(values)
    rank = int(binom.ppf(LEVEL / 2, len(ordered), 0.5))
    low = max(rank - 1, 0)
    return ordered[low], ordered[len(ordered) - 1 - low]


def compare(
    name: str, loop: list[str], rounds: int, cpu: int, coin: random.Random
) -> tuple[float, list[float]]:
    """The probe's nanoseconds at the median, and its ratio to the loop in each round."""
    one = probe_ns(name, cpu)
    count = max(1, round(BATCH_MS * 1e6 / one))
    words = [*loop[:1], name, str(count), str(BATCHES), *loop[1:]]
    sides: list[tuple[str, Callable[[], float]]] = [
        ("probe", partial(probe_ns, name, cpu)),
        ("loop", partial(loop_ns, words, cpu)),
    ]
    said: dict[str, list[float]] = {"probe": [], "loop": []}
    for _ in range(rounds):
        coin.shuffle(sides)
        for side, measure in sides:
            said[side].append(measure())
    ratios = [probe / beside for probe, beside in zip(said["probe"], said["loop"], strict=True)]
    return statistics.median(said["probe"]), ratios


def main() -> int:
    """Print a line for each probe."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(PROBES)}")
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--cpu", type=int, default=max(os.sched_getaffinity(0)))
    asked = parser.parse_args()
    coin = random.Random(SEED)
    apart = []
    with tempfile.TemporaryDirectory() as folder:
        loop = str(compiled(HERE / "beside.c", Path(folder, "beside")))
        tiny = Path(folder, "tiny.c")
        tiny.write_text(TINY)
        executed = str(compiled(tiny, Path(folder, "tiny")))
        for name in asked.names or PROBES:
            words = [loop, executed] if name == "exec" else [loop]
            one, ratios = compare(name, words, asked.rounds, asked.cpu, coin)
            low, high = interval(ratios)
            print(
                f"{name:<12}{one / 1e3:10.3f} us, {statistics.median(ratios):.3f} of the C loop "
                f"({low:.3f} to {high:.3f}; rounds {min(ratios):.3f} to {max(ratios):.3f})"
            )
            if high < AGREE[0] or low > AGREE[1]:
                apart.append(name)
    if apart:
        print(f"not within 10 % of the C loop: {', '.join(apart)}")
    return 1 if apart else 0


if __name__ == "__main__":
    sys.exit(main())
