"""benchstat: the Mann-Whitney U-test on ten runs each.

"Each benchmark should be run at least 10 times to gather a statistically significant sample of
results": `go test -count=10 > old.txt`, later the same into `new.txt`; a difference is shown if
p < 0.05, "~" otherwise; the default test is the Mann-Whitney U-test
(https://pkg.go.dev/golang.org/x/perf/cmd/benchstat).

Assumed where that is silent: new.txt is made right after old.txt; p is exact without ties and
the normal approximation with them; the call has the sign of the difference of the medians,
which are what benchstat prints.
"""

from __future__ import annotations

import numpy as np
from numpy.random import Generator
from scipy.stats import mannwhitneyu

from benchmarks.validity.machine import BASELINE, CANDIDATE, FloatArray, IntArray
from benchmarks.validity.rules.rule import SIGNIFICANT, Decision, Rule, call_by

RUNS = 10


def schedule(_: Generator) -> IntArray:
    """All of the old, then all of the new."""
    return np.repeat([BASELINE, CANDIDATE], RUNS)


def decide(baseline: FloatArray, candidate: FloatArray) -> Decision:
    """The U-test, once."""
    together = np.concatenate([baseline, candidate])
    if together.min() == together.max():
        return Decision(None, 2 * RUNS)
    has_ties = len(np.unique(together)) < len(together)
    p = mannwhitneyu(baseline, candidate, method="asymptotic" if has_ties else "exact").pvalue
    difference = float(np.median(candidate) - np.median(baseline))
    return Decision(call_by(difference) if p < SIGNIFICANT else None, 2 * RUNS)


BENCHSTAT = Rule("benchstat", "10 runs of A, 10 of B; Mann-Whitney p < 0.05", schedule, decide)
