"""tachometer: round robin, and sampling until the interval of the difference leaves 0 out.

"It round-robins between the two files, running each at least 50 times"; "After the initial 50
samples, tachometer will continue taking samples until there is a clear statistically significant
difference between all benchmarks, for up to 3 minutes"; the default auto sample condition is
`0%`: until the 95 % confidence interval for the percent difference of mean run times lies on one
side of it (README of google/tachometer, "Auto sample", "Auto sample conditions", "CLI usage").

Assumed where that is silent: the interval is Welch's t interval for the difference of the means,
looked at after every round; the 3 minutes are those of the simulated runs, 0.3 s for a usual
one; at most 500 rounds are simulated.
"""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from benchmarks.validity.machine import BASELINE, CANDIDATE, FloatArray, IntArray
from benchmarks.validity.rules.rule import RUN_SECONDS, SIGNIFICANT, Decision, Rule, call_by
from benchmarks.validity.rules.t_test import running, welch_p

MIN_ROUNDS = 50
MAX_ROUNDS = 500
TIMEOUT_S = 180.0


def schedule(_: Generator) -> IntArray:
    """A B A B …"""
    return np.tile([BASELINE, CANDIDATE], MAX_ROUNDS)


def decide(baseline: FloatArray, candidate: FloatArray) -> Decision:
    """A look after every round from the 50th on, until one is significant or time is up."""
    spent = RUN_SECONDS * np.cumsum(baseline + candidate)
    in_time = spent - spent[MIN_ROUNDS - 1] < TIMEOUT_S
    last = min(int(in_time.sum()) + 1, len(baseline))
    first, second = running(baseline[:last]), running(candidate[:last])
    significant = welch_p(first, second)[MIN_ROUNDS - 1 :] < SIGNIFICANT
    if not significant.any():
        return Decision(None, 2 * last)
    rounds = MIN_ROUNDS + int(significant.argmax())
    return Decision(call_by(float((second.means - first.means)[rounds - 1])), 2 * rounds)


TACHOMETER = Rule(
    "tachometer", "round robin; from 50 each on until the t interval clears 0", schedule, decide
)
