"""The answer of ``observe`` held against an experiment: real trials under generated load.

``python -m benchmarks.observe.live`` (three to five minutes; nothing else should run). In each
window a load is drawn, and one of two programs is *deployed*: mostly the new one when the load is
high. The log has the trials of the deployed program alone. In the same windows both programs run
as well, in random order, as an experiment that the log does not show: its estimate over the windows
in which the new one was deployed is what ``observe`` should find, at the same mix of load.
"""

from __future__ import annotations

import argparse
import math
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise.measure.installation import launcher_program
from equipoise.measure.launcher import Launcher, Request
from equipoise_matching.observation.analysis import observe
from equipoise_matching.observation.question import Question
from equipoise_matching.observation.result import ObservationResult

NEW, OLD = "new", "old"
LOOPS = {OLD: 2_000_000, NEW: 1_880_000}
"""Both count; the new program counts 6 % less far."""
ODDS_UNDER_LOAD = 4.0
"""The new one is so much likelier than the old under load, and so much less without."""
LOGGED, EXPERIMENTS = 4, 3
"""Trials of the deployed program in a window, and of each program in the experiment."""
NAIVE_WRONG_BY = 0.10

Trial = Callable[[str], float]
"""Runs one trial of a program; seconds."""


@dataclass(frozen=True, slots=True)
class Site:
    """Where trials run: how one is run, how the load is set, and how it is observed."""

    run: Trial
    set_load: Callable[[int], None]
    observe_load: Callable[[], float]
    levels: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Windows:
    """What the windows gave: the log, and for each window with the new program the experiment's
    log ratio of new over old."""

    log: dict[str, NDArray[Any]]
    experiment: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Held:
    """The three answers, as log ratios."""

    naive: float
    matched: ObservationResult
    experiment: float
    experiment_error: float

    @property
    def naive_is_wrong(self) -> bool:
        """Whether the naive answer is wrong by over 10 %."""
        return abs(math.expm1(self.naive - self.experiment)) > NAIVE_WRONG_BY

    @property
    def interval_covers(self) -> bool:
        """Whether the matched interval holds the experiment's estimate."""
        if self.matched.matched is None or self.matched.matched.effect.ratio_ci is None:
            return False
        low, high = self.matched.matched.effect.ratio_ci
        return low <= math.exp(self.experiment) <= high


def conduct(site: Site, windows: int, seed: int, tell: Callable[[int], object]) -> Windows:
    """Run the windows, the log and the experiment beside each other."""
    draw = random.Random(seed)
    rows: list[tuple[str, float, float, int]] = []
    ratios: list[float] = []
    for window in range(windows):
        load = draw.choice(site.levels)
        site.set_load(load)
        is_high = load > site.levels[len(site.levels) // 2 - 1]
        odds = ODDS_UNDER_LOAD if is_high else 1.0 / ODDS_UNDER_LOAD
        deployed = NEW if draw.random() < odds / (1.0 + odds) else OLD
        planned = [(program, False) for program in (NEW, OLD) for _ in range(EXPERIMENTS)]
        planned += [(deployed, True)] * LOGGED
        draw.shuffle(planned)
        hidden: dict[str, list[float]] = {NEW: [], OLD: []}
        logged: list[float] = []
        readings: list[float] = []
        for program, is_logged in planned:
            readings.append(site.observe_load())
            seconds = site.run(program)
            if is_logged:
                logged.append(seconds)
            else:
                hidden[program].append(math.log(seconds))
        # As a monitor has it: a single reading would tell the load too roughly to match on.
        observed = float(np.mean(readings))
        rows += [(deployed, seconds, observed, window) for seconds in logged]
        if deployed == NEW:
            ratios.append(float(np.mean(hidden[NEW]) - np.mean(hidden[OLD])))
        tell(window)
    version, wall, runnable, of_window = zip(*rows, strict=True)
    log: dict[str, NDArray[Any]] = {
        "version": np.array(version, dtype=object),
        "wall_s": np.array(wall),
        "runnable": np.array(runnable),
        "window": np.array(of_window),
    }
    return Windows(log, np.array(ratios))


def held(windows: Windows, *, threads: int | None = None) -> Held:
    """Ask the log, and hold the answer against the experiment."""
    question = Question("version", f"{NEW}:{OLD}", "wall_s", ("runnable",), threads=threads)
    found = observe(windows.log, question, source="live")
    logs, is_new = np.log(windows.log["wall_s"]), windows.log["version"] == NEW
    ratios = windows.experiment
    return Held(
        float(logs[is_new].mean() - logs[~is_new].mean()),
        found,
        float(ratios.mean()),
        float(ratios.std(ddof=1) / math.sqrt(len(ratios))),
    )


@contextmanager
def this_machine() -> Iterator[Site]:
    """Real processes: programs that count, and others that only load the CPUs."""
    cpus = len(os.sched_getaffinity(0))
    levels = (0, cpus // 2, cpus, 2 * cpus)
    spin = [sys.executable, "-S", "-E", "-c", "while True: pass"]
    loading = [subprocess.Popen(spin) for _ in range(max(levels))]
    for one in loading:
        one.send_signal(signal.SIGSTOP)

    def set_load(level: int) -> None:
        for place, one in enumerate(loading):
            one.send_signal(signal.SIGCONT if place < level else signal.SIGSTOP)
        time.sleep(0.1)

    def run(program: str) -> float:
        count = f"for _ in range({LOOPS[program]}): pass"
        report = launcher.run(
            Request((sys.executable, "-S", "-E", "-c", count), dict(os.environ), os.getcwd())
        )
        if report.exit != 0 or report.wall_ns is None:
            raise RuntimeError(f"a trial failed: {report.error_tail or report.could_not_start}")
        return report.wall_ns / 1e9

    try:
        with Launcher(launcher_program()) as launcher:
            yield Site(run, set_load, runnable, levels)
    finally:
        for one in loading:
            one.kill()
            one.wait()


def runnable() -> float:
    """How many other threads run or wait for a CPU just now (/proc/loadavg, proc_pid 5)."""
    with open("/proc/loadavg", encoding="ascii") as file:
        return float(file.read().split()[3].partition("/")[0]) - 1.0


def interval_words(log_ratio: float, ends: tuple[float, float]) -> str:
    """An estimate with its interval, in percent."""
    low, high = (100.0 * (end - 1.0) for end in ends)
    return f"{100.0 * math.expm1(log_ratio):+.2f} % [{low:.2f}, {high:.2f}]"


def main() -> int:
    """0 if the naive answer is wrong by over 10 % and the matched interval holds the truth."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.observe.live", description=__doc__)
    parser.add_argument("--windows", type=int, default=160)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()

    def tell(window: int) -> None:
        print(f"\rwindow {window + 1} of {asked.windows}", end="", file=sys.stderr, flush=True)

    with this_machine() as site:
        windows = conduct(site, asked.windows, asked.seed, tell)
    print(file=sys.stderr)
    found = held(windows)
    print(found.matched.summary)
    print(f"naive                  {100 * math.expm1(found.naive):+.2f} %")
    effect = None if found.matched.matched is None else found.matched.matched.effect
    if effect is not None and effect.ratio is not None and effect.ratio_ci is not None:
        print(f"among comparable rows  {interval_words(math.log(effect.ratio), effect.ratio_ci)}")
    reach = 1.96 * found.experiment_error
    ends = (math.exp(found.experiment - reach), math.exp(found.experiment + reach))
    print(
        f"experiment             {interval_words(found.experiment, ends)} over the "
        f"{len(windows.experiment)} windows of {NEW}"
    )
    print(f"naive wrong by over 10 %: {'met' if found.naive_is_wrong else 'NOT met'}")
    print(f"matched interval covers:  {'met' if found.interval_covers else 'NOT met'}")
    return 0 if found.naive_is_wrong and found.interval_covers else 1


if __name__ == "__main__":
    sys.exit(main())
