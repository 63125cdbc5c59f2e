"""pyperf: 20 processes of 3 values each, and Student's t-test on the 60.

"Default without JIT: 20 processes, 3 values per process (total: 60 values), and 1 warmup"
(pyperf.readthedocs.io, Runner CLI); `compare_to` compares two such files, and
`is_significant` is documented as "a Student's two-sample, two-tailed t-test with alpha=0.95"
(API), that is at 95 %. `--min-speed` is 0 % by default.

Assumed where that is silent: the two files are made one after the other; every value is one run
of the machine here and independent of the others of its process as far as the machine is
(pyperf's favourable case: values of one real process have its layout in common); the process
that calibrates the loops is left out.
"""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from benchmarks.validity.machine import BASELINE, CANDIDATE, FloatArray, IntArray
from benchmarks.validity.rules.rule import SIGNIFICANT, Decision, Rule, call_by
from benchmarks.validity.rules.t_test import running, student_p

PROCESSES = 20
VALUES = 3
WARMUPS = 1


def schedule(_: Generator) -> IntArray:
    """All processes of A, then all of B, warm-ups included."""
    return np.repeat([BASELINE, CANDIDATE], PROCESSES * (WARMUPS + VALUES))


def decide(baseline: FloatArray, candidate: FloatArray) -> Decision:
    """Student's test, once, on the values of all processes together."""
    first, second = _values(baseline), _values(candidate)
    p = student_p(running(first), running(second))[-1]
    difference = float(np.mean(second) - np.mean(first))
    return Decision(
        call_by(difference) if p < SIGNIFICANT else None, len(baseline) + len(candidate)
    )


def _values(times: FloatArray) -> FloatArray:
    return times.reshape(PROCESSES, WARMUPS + VALUES)[:, WARMUPS:].ravel()


PYPERF = Rule("pyperf", "20 × 3 values of A, then of B; Student p < 0.05", schedule, decide)
