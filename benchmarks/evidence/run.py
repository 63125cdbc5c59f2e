"""What observing costs, beside strace, perf, heaptrack and ltrace, in one run.

Three small C programs time their own loops: allocated and freed blocks, system calls, plain work.
Each is run plain and under every observer in the order of a seeded shuffle; the medians over the
rounds, and what each observer adds, are printed. Exits with 1 if a bound is missed, and names the
peers that are not installed.

    python benchmarks/evidence/run.py [--rounds N] [--seed N]
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from equipoise.why.evidence import allocations, observer
from equipoise.why.evidence.observer import Process
from equipoise.why.evidence.sources import SOURCES

HERE = Path(__file__).resolve().parent

RECORDER_BOUND = 5.0
"""Times the bare pair."""
HEAPTRACK_BOUND = 100.0
STRACE_BOUND = 10.0
PROFILE_BOUND = 0.05

Wrap = Callable[[Process, Path], Process]


@dataclass(frozen=True)
class Way:
    """One way to run a program: plain, or under an observer."""

    name: str
    wrap: Wrap
    iterations: int
    """Fewer where each costs much."""
    needs: str | None = None
    """A program of somebody else's."""


def under(*words: str) -> Wrap:
    """Under another tool, whose files go into the folder."""

    def wrap(process: Process, folder: Path) -> Process:
        before = tuple(word.replace("{folder}", str(folder)) for word in words)
        return Process((*before, *process.command), process.environment)

    return wrap


def by(method: observer.Method) -> Wrap:
    """Under our own observer of system calls."""
    return lambda process, folder: observer.wrap_calls(process, folder, method)


PAIRS = (
    Way("plain", lambda process, _: process, 5_000_000),
    Way("recorder", allocations.wrap, 5_000_000),
    # As many as we: the first calls cost it several times what later ones do.
    Way("heaptrack", under("heaptrack", "-o", "{folder}/h"), 5_000_000, "heaptrack"),
    Way("ltrace -c", under("ltrace", "-c", "-o", "{folder}/l"), 3_000, "ltrace"),
)
CALLS = (
    Way("plain", lambda process, _: process, 1_000_000),
    Way("calls by tracepoints", by("tracepoints"), 300_000),
    Way("calls by ptrace", by("ptrace"), 20_000),
    Way("strace -c", under("strace", "-c", "-f", "-o", "{folder}/s"), 20_000, "strace"),
    Way("perf trace -s", under("perf", "trace", "-s", "-o", "{folder}/p"), 20_000, "perf"),
)
WORK = (
    Way("plain", lambda process, _: process, 300_000_000),
    Way("profile", SOURCES["profile"].wrap, 300_000_000),
    Way(
        "perf record",
        under("perf", "record", "-q", "-F", "999", "--call-graph", "dwarf", "-o", "{folder}/r"),
        300_000_000,
        "perf",
    ),
)


def nanoseconds(way: Way, program: Path, *words: str) -> float:
    """What the program says one iteration took."""
    with tempfile.TemporaryDirectory() as folder:
        environment = dict(os.environ) | {"PYTHONPERFSUPPORT": "0"}
        plain = Process((str(program), *words, str(way.iterations)), environment)
        wrapped = way.wrap(plain, Path(folder))
        done = subprocess.run(
            wrapped.command,
            env=dict(wrapped.environment),
            capture_output=True,
            text=True,
            check=False,
        )
    numbers = [line for line in done.stdout.splitlines() if line.replace(".", "", 1).isdigit()]
    if not numbers:
        raise SystemExit(f"{way.name}: {done.stderr.strip() or done.stdout.strip()}")
    return float(numbers[-1])


def medians(
    ways: Sequence[Way], program: Path, words: Sequence[str], rounds: int, coin: random.Random
) -> dict[str, float]:
    """Median nanoseconds of an iteration by each way that is there, in shuffled order."""
    there = [way for way in ways if way.needs is None or shutil.which(way.needs)]
    for way in ways:
        if way not in there:
            print(f"  {way.name}: not installed")
    times: dict[str, list[float]] = {way.name: [] for way in there}
    for _ in range(rounds):
        coin.shuffle(there)
        for way in there:
            times[way.name].append(nanoseconds(way, program, *words))
    return {way.name: statistics.median(times[way.name]) for way in ways if way.name in times}


def show(title: str, found: dict[str, float]) -> None:
    """Print one table."""
    print(title)
    for name, value in found.items():
        added = f"+{value - found['plain']:.1f}" if name != "plain" else ""
        times = f"{value / found['plain']:.2f} x" if name != "plain" else ""
        print(f"  {name:<22} {value:>12.1f} ns {added:>14} {times:>12}")


def cheaper(found: dict[str, float], ours: str, theirs: str) -> float | None:
    """How many times more the peer adds than we do; ``None`` if it is not installed."""
    if theirs not in found:
        return None
    return (found[theirs] - found["plain"]) / max(found[ours] - found["plain"], 1e-9)


def met(words: str, value: float | None, *, least: float = 0.0, most: float = float("inf")) -> bool:
    """Print a bound and whether it is met; one that could not be tried is not missed."""
    if value is None:
        print(f"  {words}: not tried")
        return True
    good = least <= value <= most
    print(f"  {words}: {value:.3g} ({'met' if good else 'MISSED'})")
    return good


def main() -> int:
    """Exit status 0 if every bound is met."""
    parser = argparse.ArgumentParser(description="What observing costs, beside its peers.")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    coin = random.Random(options.seed)
    good = True
    with tempfile.TemporaryDirectory() as folder:
        programs = {}
        for name in ("pairs", "calls", "spin"):
            programs[name] = Path(folder, name)
            source = HERE / f"{name}.c"
            subprocess.run(["cc", "-O2", "-g", "-o", programs[name], source], check=True)
        for depth, size in (("1", "64"), ("16", "64"), ("16", "35600")):
            found = medians(PAIRS, programs["pairs"], [depth, size], options.rounds, coin)
            show(f"malloc and free of {size} bytes, {depth} calls below main", found)
            times = found["recorder"] / found["plain"]
            good &= met(f"recorder under {RECORDER_BOUND:.0f} x", times, most=RECORDER_BOUND)
            saved = cheaper(found, "recorder", "heaptrack")
            good &= met("times cheaper than heaptrack", saved, least=HEAPTRACK_BOUND)
        found = medians(CALLS, programs["calls"], [], options.rounds, coin)
        show("getppid", found)
        saved = cheaper(found, "calls by tracepoints", "strace -c")
        good &= met("times cheaper than strace -c", saved, least=STRACE_BOUND)
        found = medians(WORK, programs["spin"], [], options.rounds, coin)
        show("plain work", found)
        share = found["profile"] / found["plain"] - 1.0
        good &= met("profile, share of the run time", share, least=-1.0, most=PROFILE_BOUND)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
