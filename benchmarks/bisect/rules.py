"""What others do, on the same simulated commits: absolute times, or pairs at fixed numbers.

Each rule takes log costs of shape (campaigns, n + 1) and returns the commit that it names in each
campaign, or -1 where it stops without a name, and the number of trials.
"""

from __future__ import annotations

import math
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from benchmarks.bisect.noise import FloatArray, IntArray, Machine, series
from benchmarks.environments import NoEnvironment, python_with
from benchmarks.peers import OTAVA

Answer = tuple[IntArray, FloatArray]
"""The commit named in each campaign, and the number of trials."""
MakeMachine = Callable[[int], Machine]
"""A machine for so many trials in each campaign."""

LEVEL = 0.05
GROWING_LEVEL = 0.01
MAX_GROWING_RUNS = 160
CERTAINTY = 0.95
MAX_BAYES_RUNS = 1500
ENDS = 10
"""Runs of both ends that Welch, growing samples and Bayes begin with."""
PACKAGE = "git-bayesect==1.2"
SCRIPT = Path(__file__).with_name("package.py")
MAX_PACKAGE_CAMPAIGNS = 100
"""Campaigns of the package, which runs them one by one."""


def rules(
    levels: FloatArray, kind: str, sd: float, trials: float, rng: np.random.Generator
) -> dict[str, Answer]:
    """Return the answers of all rules; "same" ones take about so many trials."""
    count = levels.shape[1] - 1
    halvings = math.ceil(math.log2(count))
    runs = max(1, int(trials // (2 + halvings)))
    pairs = max(2, int(trials // (2 + 2 * halvings)))

    def machine(most: int) -> Machine:
        return Machine(levels, series(kind, sd, len(levels), most, rng))

    return {
        "plain, 1 run": plain(machine, levels, 1, 5),
        "plain, same trials": plain(machine, levels, runs, runs),
        "interleaved, same trials": interleaved(machine, levels, pairs, rng),
        "Welch 10": welch(machine, levels, 10),
        "growing": growing(machine, levels),
        "Bayes": bayes(machine, levels, rng),
    }


def packages(
    levels: FloatArray, kind: str, sd: float, rng: np.random.Generator
) -> dict[str, Answer]:
    """Return the answers of git_bayesect's own package and of Otava, each in its environment.

    They run campaigns one by one, so only some are searched; a package that cannot be installed is
    left out.
    """
    few = levels[:MAX_PACKAGE_CAMPAIGNS]
    one_by_one = series(kind, sd, len(few), 2 * ENDS + MAX_BAYES_RUNS, rng)
    in_order = series(kind, sd, len(few), few.shape[1], rng)
    asked: dict[str, Callable[[], Answer]] = {
        "git_bayesect": lambda: git_bayesect(few, one_by_one, python_with(PACKAGE)),
        "Otava": lambda: otava(few + in_order),
    }
    answers: dict[str, Answer] = {}
    for name, ask in asked.items():
        try:
            answers[name] = ask()
        except NoEnvironment as error:
            print(f"{name} is left out: {error}", file=sys.stderr)
    return answers


def otava(nightly: FloatArray) -> Answer:
    """Otava's change-points in a series that has each commit once, in order: the largest step.

    Parameters
    ----------
    nightly
        Shape (campaigns, n + 1): log costs.
    """
    named = np.full(len(nightly), -1)
    for campaign, places in enumerate(OTAVA.changes(list(np.exp(nightly)))):
        means = [part.mean() for part in np.split(nightly[campaign], places)]
        if places:
            named[campaign] = places[int(np.argmax(np.abs(np.diff(means))))]
    return named, np.full(len(nightly), float(nightly.shape[1]))


def plain(make: MakeMachine, levels: FloatArray, runs: int, ends: int) -> Answer:
    """`git bisect`: the mean of some runs of a commit against the midpoint of both ends."""
    campaigns, count = levels.shape[0], levels.shape[1] - 1
    every = np.arange(campaigns)
    machine = make(2 * ends + runs * (1 + math.ceil(math.log2(count))))

    def mean(commits: IntArray, times: int) -> FloatArray:
        return np.asarray(np.mean([machine.run(every, commits) for _ in range(times)], axis=0))

    low, high = np.zeros(campaigns, dtype=np.int64), np.full(campaigns, count)
    midpoint = (mean(low, ends) + mean(high, ends)) / 2
    trials = 2 * ends
    while (high - low > 1).any():
        middle = (low + high) // 2
        is_bad = mean(middle, runs) > midpoint
        low, high = _halved(low, high, middle, is_bad)
        trials += runs
    return high, np.full(campaigns, float(trials))


def interleaved(
    make: MakeMachine, levels: FloatArray, pairs: int, rng: np.random.Generator
) -> Answer:
    """`git bisect` with pairs (GOOD, commit) in random order against half of the gap."""
    campaigns, count = levels.shape[0], levels.shape[1] - 1
    every = np.arange(campaigns)
    machine = make(2 * pairs * (2 + math.ceil(math.log2(count))))
    good = np.zeros(campaigns, dtype=np.int64)

    def difference(commits: IntArray) -> FloatArray:
        total = np.zeros(campaigns)
        for _ in range(pairs):
            first = rng.random(campaigns) < 0.5
            one = machine.run(every, np.where(first, good, commits))
            two = machine.run(every, np.where(first, commits, good))
            total += np.where(first, two - one, one - two)
        return total / pairs

    low, high = good.copy(), np.full(campaigns, count)
    half, trials = difference(high) / 2, 2 * pairs
    while (high - low > 1).any():
        middle = (low + high) // 2
        is_bad = difference(middle) > half
        low, high = _halved(low, high, middle, is_bad)
        trials += 2 * pairs
    return high, np.full(campaigns, float(trials))


def welch(make: MakeMachine, levels: FloatArray, runs: int) -> Answer:
    """`git bisect` with a Welch test of each commit's runs against GOOD's, at 5 % a step."""
    campaigns, count = levels.shape[0], levels.shape[1] - 1
    every = np.arange(campaigns)
    machine = make(runs * (3 + math.ceil(math.log2(count))))

    def sample(commits: IntArray) -> FloatArray:
        return np.stack([machine.run(every, commits) for _ in range(runs)], axis=1)

    low, high = np.zeros(campaigns, dtype=np.int64), np.full(campaigns, count)
    good = sample(low)
    sample(high)
    trials = 2 * runs
    while (high - low > 1).any():
        middle = (low + high) // 2
        tested = stats.ttest_ind(
            sample(middle), good, axis=1, equal_var=False, alternative="greater"
        )
        low, high = _halved(low, high, middle, tested.pvalue < LEVEL)
        trials += runs
    return high, np.full(campaigns, float(trials))


def growing(make: MakeMachine, levels: FloatArray) -> Answer:
    """As Pinpoint: the midpoint against both neighbours, 10 to 160 runs, until one pair differs."""
    campaigns, count = levels.shape[0], levels.shape[1] - 1
    halvings = 1 + math.ceil(math.log2(count))
    machine = make(2 * ENDS + halvings * (ENDS + 3 * 2 * MAX_GROWING_RUNS))
    low, high = np.zeros(campaigns, dtype=np.int64), np.full(campaigns, count)
    trials = np.zeros(campaigns)

    def add(sums: FloatArray, commits: IntArray, runs: int, who: IntArray) -> None:
        for _ in range(runs):
            x = machine.run(who, commits[who])
            sums[who] += np.stack([np.ones(len(who)), x, x * x], axis=1)
        trials[who] += runs

    every = np.arange(campaigns)
    left, right = np.zeros((campaigns, 3)), np.zeros((campaigns, 3))
    add(left, low, ENDS, every)
    add(right, high, ENDS, every)
    stuck = np.zeros(campaigns, dtype=bool)
    while True:
        open_ = np.flatnonzero((high - low > 1) & ~stuck)
        if not len(open_):
            return np.where(stuck, -1, high), trials
        middle = (low + high) // 2
        between = np.zeros((campaigns, 3))
        add(between, middle, ENDS, open_)
        wait, runs = open_, ENDS
        while len(wait):
            to_left = _welch_of_sums(left[wait], between[wait])
            to_right = _welch_of_sums(between[wait], right[wait])
            sure = np.minimum(to_left, to_right) < GROWING_LEVEL
            goes_left = (to_left < to_right)[sure]
            decided = wait[sure]
            x, y = decided[goes_left], decided[~goes_left]
            high[x], right[x] = middle[x], between[x]
            low[y], left[y] = middle[y], between[y]
            wait = wait[~sure]
            if runs >= MAX_GROWING_RUNS:
                stuck[wait] = True
                break
            for sums, commits in ((left, low), (between, middle), (right, high)):
                add(sums, commits, runs, wait)
            runs *= 2


def bayes(make: MakeMachine, levels: FloatArray, rng: np.random.Generator) -> Answer:
    """A posterior over the commit, as git_bayesect with normal times; stops at 95 %.

    Both means and the variance are integrated out; the median of the posterior runs next.
    """
    campaigns, count = levels.shape[0], levels.shape[1] - 1
    machine = make(2 * ENDS + MAX_BAYES_RUNS)
    live = np.arange(campaigns)
    sums = np.zeros((3, campaigns, count + 1))  # counts, sums, sums of squares of each commit
    trials, named = np.full(campaigns, 2.0 * ENDS), np.full(campaigns, -1)

    def run(commits: IntArray) -> None:
        x = machine.run(live, commits)
        for power in range(3):
            sums[power, np.arange(len(live)), commits] += x**power

    for _ in range(ENDS):
        run(np.zeros(campaigns, dtype=np.int64))
        run(np.full(campaigns, count))
    for _ in range(MAX_BAYES_RUNS):
        (n0, s0, _), total = np.cumsum(sums, 2)[:, :, :-1], sums.sum(2)[:, :, None]
        n1, s1 = total[0] - n0, total[1] - s0
        rest = np.maximum(total[2] - s0**2 / n0 - s1**2 / n1, 1e-12)
        ln_posterior = -0.5 * np.log(n0 * n1) - (total[0] - 2) / 2 * np.log(rest)
        weights = np.exp(ln_posterior - ln_posterior.max(1, keepdims=True))
        weights /= weights.sum(1, keepdims=True)
        is_done = weights.max(1) >= CERTAINTY
        named[live[is_done]] = weights[is_done].argmax(1) + 1
        live, sums, weights = live[~is_done], sums[:, ~is_done], weights[~is_done]
        if not len(live):
            break
        middle = (np.cumsum(weights, 1) < 0.5).sum(1) + 1
        top = weights.argmax(1) + 1  # Near the end the median is the leader: its parent in turn.
        run(np.where((middle == top) & (rng.random(len(middle)) < 0.5), middle - 1, middle))
        trials[live] += 1
    return named, trials


def git_bayesect(levels: FloatArray, by_trial: FloatArray, python: Path) -> Answer:
    """The package itself, told pass or fail by the midpoint of both ends; stops at 95 %.

    Parameters
    ----------
    by_trial
        Shape (campaigns, trials): the noise; no campaign takes more trials.
    python
        Interpreter of an environment that has the package.
    """
    with tempfile.TemporaryDirectory() as folder:
        arrays, answers = Path(folder, "arrays.npz"), Path(folder, "answers.npz")
        np.savez(arrays, levels=levels, by_trial=by_trial)
        words = (python, SCRIPT, arrays, answers, str(ENDS), str(CERTAINTY))
        subprocess.run(words, check=True)
        read = np.load(answers)
        return read["named"], read["trials"].astype(np.float64)


def _halved(
    low: IntArray, high: IntArray, middle: IntArray, is_bad: NDArray[np.bool_]
) -> tuple[IntArray, IntArray]:
    is_open = high - low > 1
    return np.where(is_open & ~is_bad, middle, low), np.where(is_open & is_bad, middle, high)


def _welch_of_sums(one: FloatArray, other: FloatArray) -> FloatArray:
    """Return two-sided p-values of samples given as counts, sums and sums of squares."""
    n, m = one[:, 0], other[:, 0]
    v = np.maximum(one[:, 2] - one[:, 1] ** 2 / n, 1e-18) / (n - 1) / n
    w = np.maximum(other[:, 2] - other[:, 1] ** 2 / m, 1e-18) / (m - 1) / m
    t = (other[:, 1] / m - one[:, 1] / n) / np.sqrt(v + w)
    freedom = (v + w) ** 2 / (v**2 / (n - 1) + w**2 / (m - 1))
    return np.asarray(2 * stats.t.sf(np.abs(t), freedom))
