"""temci: shuffled blocks, and a look after every block until p leaves a range.

`temci exec` runs between `min_runs` (20) and `max_runs` (100) blocks, in an order that `shuffle`
(on by default) randomises, after `discarded_runs` (1): "the benchmarking of a program block is
stopped if there is some of significance in the benchmarking results compared to all other
benchmarked programs". `uncertainty_range` is the "Range of p values that allow no conclusion",
(0.05, 0.15) by default; the default `tester` is `t` (temci.readthedocs.io, temci exec, "Common
options" and "Number of runs"; temci report, "Common options").

Assumed where that is silent: p is Student's two-sample t-test of the means; a look after every
block; it stops as soon as p lies outside the range on either side, below it with a difference
and above it without.
"""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from benchmarks.validity.machine import BASELINE, CANDIDATE, FloatArray, IntArray
from benchmarks.validity.rules.rule import Decision, Rule, call_by
from benchmarks.validity.rules.t_test import running, student_p

MIN_BLOCKS = 20
MAX_BLOCKS = 100
DISCARDED = 1
UNCERTAIN = (0.05, 0.15)


def schedule(random: Generator) -> IntArray:
    """Blocks of both, each in a random order."""
    candidate_first = random.integers(0, 2, DISCARDED + MAX_BLOCKS)
    first = np.where(candidate_first == 1, CANDIDATE, BASELINE)
    return np.column_stack([first, BASELINE + CANDIDATE - first]).ravel()


def decide(baseline: FloatArray, candidate: FloatArray) -> Decision:
    """A look after every block from the 20th on, until p allows a conclusion."""
    first, second = running(baseline[DISCARDED:]), running(candidate[DISCARDED:])
    p = student_p(first, second)
    outside = (p < UNCERTAIN[0]) | (p > UNCERTAIN[1])
    conclusive = outside[MIN_BLOCKS - 1 :]
    blocks = MIN_BLOCKS + int(conclusive.argmax()) if conclusive.any() else MAX_BLOCKS
    difference = float((second.means - first.means)[blocks - 1])
    different = p[blocks - 1] < UNCERTAIN[0]
    return Decision(call_by(difference) if different else None, 2 * (DISCARDED + blocks))


TEMCI = Rule("temci", "shuffled; from 20 each on until p < 0.05 or p > 0.15", schedule, decide)
