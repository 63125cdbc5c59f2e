"""hyperfine, and Welch's t-test on its export.

hyperfine runs all of the first command, then all of the second: "at least 10 benchmarking runs
and measure for at least 3 seconds" (README, "Basic benchmarks"; a usual run here takes 0.3 s,
so 10 runs). It has no rule of its own. Its repository carries one beside it: `welch_ttest.py`
"performs Welch's t-test on a JSON export file with two benchmark results", and says "There is a
difference between the two benchmarks (p < 0.05)" (sharkdp/hyperfine pull request 222).

Assumed where that is silent: no warm-up (`--warmup` is off by default), and 10 runs even where
noise makes 10 runs take a little more or less than 3 s.
"""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from benchmarks.validity.machine import BASELINE, CANDIDATE, FloatArray, IntArray
from benchmarks.validity.rules.rule import SIGNIFICANT, Decision, Rule, call_by
from benchmarks.validity.rules.t_test import running, welch_p

RUNS = 10


def schedule(_: Generator) -> IntArray:
    """All of A, then all of B."""
    return np.repeat([BASELINE, CANDIDATE], RUNS)


def decide(baseline: FloatArray, candidate: FloatArray) -> Decision:
    """Welch's test, once."""
    p = welch_p(running(baseline), running(candidate))[-1]
    difference = float(np.mean(candidate) - np.mean(baseline))
    return Decision(call_by(difference) if p < SIGNIFICANT else None, 2 * RUNS)


HYPERFINE = Rule("hyperfine, Welch", "10 runs of A, 10 of B; Welch p < 0.05", schedule, decide)
