"""How often equal Python functions are called different, and how fast 3 % more work is found.

    python benchmarks/functions/run.py equal     # 40 campaigns of two equal functions
    python benchmarks/functions/run.py more      # 3 % more work: how often and when it is found
    python benchmarks/functions/run.py beside    # timeit and pyperf on equal functions
    python benchmarks/functions/run.py fresh     # forked processes against executed ones
    python benchmarks/functions/run.py speed     # seconds of 30 processes

Nothing else should run meanwhile.
"""

from __future__ import annotations

import argparse
import math
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import equipoise as eq
from benchmarks.functions.workload import MORE, ROUNDS, function, module

CALLED = ("faster", "slower", "mixed")
PROCESSES = 30
PROCESSES_S = 3.0
CLI = (sys.executable, "-m")


def equal(campaigns: int, budget: float) -> bool:
    """Compare two equal functions again and again; return whether the bound holds."""
    verdicts: Counter[str] = Counter()
    blocks, seconds = [], []
    with tempfile.TemporaryDirectory() as folder:
        for number in range(campaigns):
            began = time.monotonic()
            result = eq.compare(
                function("one"),
                function("other"),
                budget=budget,
                seed=1000 + number,
                ledger=Path(folder, "ledger.db"),
                allow_concurrent=True,
            )
            seconds.append(time.monotonic() - began)
            blocks.append(result.document.run.blocks)
            verdicts[result.verdict] += 1
    different = sum(verdicts[one] for one in CALLED)
    listed = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.most_common())
    print(
        f"equipoise, equal functions: {different} of {campaigns} campaigns called different "
        f"(bound at 5 %: {bound(campaigns)}); {listed}; median {statistics.median(blocks):g} "
        f"processes and {statistics.median(seconds):.1f} s, "
        f"{1000 * sum(seconds) / sum(blocks):.0f} ms for a process"
    )
    return different <= bound(campaigns)


def bound(campaigns: int) -> int:
    """The largest number that a rate of 5 % gives in 99 of 100 such runs."""
    at_most, chance = 0, 0.95**campaigns
    while chance < 0.99:
        at_most += 1
        chance += math.comb(campaigns, at_most) * 0.05**at_most * 0.95 ** (campaigns - at_most)
    return at_most


def more(campaigns: int, budget: float) -> bool:
    """Compare a function with one that does 3 % more work; return whether it is always found."""
    found = 0
    with tempfile.TemporaryDirectory() as folder:
        for number in range(campaigns):
            began = time.monotonic()
            result = eq.compare(
                function("one"),
                function("more", round(MORE * ROUNDS)),
                budget=budget,
                seed=2000 + number,
                ledger=Path(folder, "ledger.db"),
                allow_concurrent=True,
            )
            print(
                f"3 % more work: {result.verdict} after {time.monotonic() - began:.1f} s and "
                f"{result.document.run.blocks} processes; ratio {result.ratio:.4f}, "
                f"interval {result.interval}"
            )
            found += result.verdict == "slower"
    return found == campaigns


def beside(comparisons: int) -> bool:
    """Ask timeit and pyperf whether two equal functions differ."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "both.py").write_text(module())
        by_timeit, by_pyperf, seconds = 0, 0, []
        for _ in range(comparisons):
            ratio = _timeit(folder, "other") / _timeit(folder, "one")
            by_timeit += not 1 / 1.01 <= ratio <= 1.01
            began = time.monotonic()
            by_pyperf += _pyperf_says_significant(folder)
            seconds.append(time.monotonic() - began)
    print(
        f"timeit, equal functions: {by_timeit} of {comparisons} pairs of its best of 5 differ by "
        "more than 1 %"
    )
    print(
        f"pyperf, equal functions: {by_pyperf} of {comparisons} comparisons called significant by "
        f"compare_to (--fast: 10 processes each); median {statistics.median(seconds):.1f} s"
    )
    return True


def _timeit(folder: str, name: str) -> float:
    words = [*CLI, "timeit", "-u", "nsec", "-s", f"from both import {name}", f"{name}()"]
    out = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=True).stdout
    return float(out.split("best of 5: ")[1].split()[0])


def _pyperf_says_significant(folder: str) -> bool:
    for name in ("one", "other"):
        words = [*CLI, "pyperf", "timeit", "--fast", "-q", "--inherit-environ", "PYTHONPATH"]
        words += ["--name", "f", "-o", f"{name}.json", "-s", f"from both import {name}"]
        Path(folder, f"{name}.json").unlink(missing_ok=True)
        environment = {**os.environ, "PYTHONPATH": folder}
        subprocess.run(
            [*words, f"{name}()"], cwd=folder, env=environment, capture_output=True, check=True
        )
    compared = subprocess.run(
        [*CLI, "pyperf", "compare_to", "--table", "one.json", "other.json"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    return "not significant" not in compared


FORKING = """
import json, os, sys, time
def measured(order):
    texts = {text!r}
    functions = []
    for which in order:
        names = {{}}
        exec(compile(texts, "<both>", "exec"), names)
        functions.append((which, names["one"]))
    best = {{0: [], 1: []}}
    for _ in range(150):
        for which, function in functions:
            began = time.perf_counter_ns()
            for _ in range(4):
                function()
            best[which].append(time.perf_counter_ns() - began)
    # The least: here it is not the typical time that counts, but what memory does to it.
    return min(best[1]) / min(best[0])
count = int(sys.argv[1])
for _ in range(count):
    if count == 1:
        print(measured((0, 1)))
        break
    reader, writer = os.pipe()
    if os.fork() == 0:
        os.write(writer, str(measured((0, 1))).encode())
        os._exit(0)
    os.wait()
    print(os.read(reader, 100).decode())
"""


def fresh(servers: int, children: int) -> bool:
    """Compare how much equal functions differ among forked processes and among executed ones.

    Every process defines the same two functions in the same order. If forked processes are as
    fresh as executed ones, the servers' means differ by no more than chance.
    """
    program = FORKING.format(text=module())
    forked = [_log_ratios(program, children) for _ in range(servers)]
    executed = [[_log_ratios(program, 1)[0] for _ in range(children)] for _ in range(servers)]
    for name, groups in (("forked of one server", forked), ("executed anew", executed)):
        between = statistics.variance([statistics.fmean(group) for group in groups]) * children
        within = statistics.fmean([statistics.variance(group) for group in groups])
        share = max(0.0, (between - within) / (between + (children - 1) * within))
        print(
            f"{name}: {servers} groups of {children}; F {between / within:.1f}; "
            f"{100 * share:.0f} % of the variance of the log ratio is between groups; "
            f"sd within {100 * math.sqrt(within):.2f} %"
        )
    return True


def speed(campaigns: int) -> bool:
    """Compare small functions in 30 processes; return whether that takes under 3 s."""
    seconds, cpu_s = [], []
    with tempfile.TemporaryDirectory() as folder:
        for number in range(campaigns):
            began, cpu_began = time.monotonic(), _cpu_s()
            eq.compare(
                function("one"),
                function("other"),
                blocks=PROCESSES,
                min_blocks=PROCESSES,
                min_seconds=0,
                seed=3000 + number,
                ledger=Path(folder, "ledger.db"),
                allow_concurrent=True,
            )
            seconds.append(time.monotonic() - began)
            cpu_s.append((_cpu_s() - cpu_began) / PROCESSES)
    median_s = statistics.median(seconds)
    print(
        f"equipoise, small functions: {median_s:.2f} s for {PROCESSES} processes (median of "
        f"{campaigns} campaigns, with trial runs, ledger and result); "
        f"{1000 * statistics.median(cpu_s):.0f} ms of CPU for a process"
    )
    return median_s < PROCESSES_S


def _cpu_s() -> float:
    """CPU seconds of the processes that ended, the functions' own among them."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return ended.ru_utime + ended.ru_stime


def _log_ratios(program: str, children: int) -> list[float]:
    words = [sys.executable, "-c", program, str(children)]
    out = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    return [math.log(float(line)) for line in out.split()]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one part; the defaults take less than five minutes each on two quiet cores."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", choices=("equal", "more", "beside", "fresh", "speed"))
    parser.add_argument("--campaigns", type=int)
    parser.add_argument("--budget", type=float)
    given = parser.parse_args(arguments)
    match given.part:
        case "equal":
            holds = equal(given.campaigns or 40, given.budget or 5.0)
        case "more":
            holds = more(given.campaigns or 5, given.budget or 30.0)
        case "beside":
            holds = beside(given.campaigns or 12)
        case "fresh":
            holds = fresh(given.campaigns or 10, 12)
        case "speed":
            holds = speed(given.campaigns or 5)
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
