"""What judging one candidate costs beside R's GenMatch, on one thread, in CPU time.

The 445 rows of lalonde stacked 1, 2, 4 and 12 times (ATE), and their 185 treated with the 15,992
controls of the CPS (ATT); ten covariates, balance on them and re74*re75. R evaluates the
candidates of a small search, Equipoise as many as fill a second. Needs Rscript with r-cran-matching
and r-cran-rgenoud; without them only Equipoise's times are printed.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from equipoise_matching.matching.datasets import cps_controls, lalonde
from equipoise_matching.matching.fitness import fitness_problem

COLUMNS = "age educ black hisp married nodegr u74 u75 re75 re74".split()
SCRIPT = Path(__file__).with_suffix(".R")
SECONDS = 1.0


@dataclass(frozen=True)
class Case:
    """Data, how large R's search is, and how many times faster is wanted."""

    frame: pd.DataFrame
    estimand: Literal["ATT", "ATC", "ATE"]
    population: int
    generations: int
    wanted: int


def main() -> int:
    """Measure each case on both sides."""
    experiment = lalonde()[["treat", *COLUMNS]]
    treated = experiment[experiment["treat"] == 1]
    cps = pd.concat([treated, cps_controls()[["treat", *COLUMNS]]], ignore_index=True)
    cases = [
        Case(pd.concat([experiment] * copies, ignore_index=True), "ATE", population, 2, wanted)
        for copies, population, wanted in ((1, 60, 50), (2, 30, 50), (4, 16, 50), (12, 4, 200))
    ]
    cases.append(Case(cps, "ATT", 16, 1, 30))
    r = shutil.which("Rscript")
    if r is None:
        print("Rscript is not installed: no comparison", file=sys.stderr)
    print(f"{'rows':>7} {'estimand':>9} {'R, ms':>10} {'here, ms':>10} {'times':>8} {'wanted':>8}")
    for case in cases:
        own = here(case)
        words = f"{len(case.frame):>7,} {case.estimand:>9}"
        if r is None:
            print(f"{words} {'-':>10} {1e3 * own:>10.4f}", flush=True)
            continue
        theirs, version = there(r, case)
        print(
            f"{words} {1e3 * theirs:>10.2f} {1e3 * own:>10.4f} {theirs / own:>8.0f} "
            f"{case.wanted:>8}",
            flush=True,
        )
    if r is not None:
        print(version)
    return 0


def here(case: Case) -> float:
    """CPU seconds for one candidate, on one thread."""
    x = case.frame[COLUMNS].to_numpy(np.float64)
    product = case.frame["re74"] * case.frame["re75"]
    options: Any = {"estimand": case.estimand, "threads": 1}
    problem = fitness_problem(
        case.frame["treat"].to_numpy(), x, np.column_stack([x, product]), **options
    )
    candidates = np.random.default_rng(1).uniform(0.0, 1000.0, (100, len(COLUMNS)))
    problem.evaluate(candidates)
    judged, started = 0, time.process_time()
    while time.process_time() - started < SECONDS:
        problem.evaluate(candidates)
        judged += len(candidates)
    return (time.process_time() - started) / judged


def there(r: str, case: Case) -> tuple[float, str]:
    """CPU seconds for one candidate in R, and the versions."""
    with tempfile.TemporaryDirectory(prefix="equipoise-genmatch-") as folder:
        file = Path(folder) / "data.csv"
        case.frame.to_csv(file, index=False)
        answer = subprocess.run(
            [r, SCRIPT, file, case.estimand, str(case.population), str(case.generations)],
            check=True,
            capture_output=True,
            text=True,
        ).stdout.split()
    seconds, count, *versions = answer
    return float(seconds), f"R {'.'.join(versions[:2])}, Matching {versions[2]}"


if __name__ == "__main__":
    sys.exit(main())
