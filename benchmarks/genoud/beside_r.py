"""The claw and the biclaw beside R's rgenoud, live: how often each finds the best, and its cost.

``python -m benchmarks.genoud.beside_r [RUNS]``; needs Rscript and r-cran-rgenoud. Seconds include
the function, which R calls a point at a time and we for all points at once.
"""

from __future__ import annotations

import subprocess
import sys
import time

import numpy as np

from benchmarks.genoud.functions import biclaw, claw
from equipoise_matching import genoud

BEST = {"claw": 0.4113123, "biclaw": 1.671127}
RUNS = 20
IN_R = r"""
suppressMessages(library(rgenoud))
claw <- function(x) 0.46 * (dnorm(x, -1, 2/3) + dnorm(x, 1, 2/3)) +
  sum(dnorm(x, -c(.5, 1, 1.5), .01)) / 300 + 7 * sum(dnorm(x, c(.5, 1, 1.5), .07)) / 300
biclaw <- function(p) { x <- p[1] + 1; y <- p[2] + 1; m <- c(-1, -.5, 0, .5, 1)
  .5 * dnorm(x) * dnorm(y) + .1 * sum(dnorm(x, m, .1) * dnorm(y, m, .1)) }
for (name in c("claw", "biclaw")) for (seed in 1:RUNS) {
  calls <- 0
  f <- function(p) { calls <<- calls + 1; get(name)(p) }
  began <- proc.time()[3]
  r <- genoud(f, if (name == "claw") 1 else 2, max = TRUE, pop.size = 3000, print.level = 0,
    default.domains = if (name == "claw") 10 else 20, unif.seed = seed * 77, int.seed = seed * 991)
  cat(name, r$value, r$generations, calls, proc.time()[3] - began, "\n")
}
"""


def main() -> None:
    """Prints a line for each function and program."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else RUNS
    rows: dict[tuple[str, str], list[list[float]]] = {}
    told = subprocess.run(
        ["Rscript", "-e", IN_R.replace("RUNS", str(runs))],
        check=True,
        capture_output=True,
        text=True,
    )
    for line in told.stdout.splitlines():
        name, *numbers = line.split()
        rows.setdefault((name, "R"), []).append([float(one) for one in numbers])
    for name, function, nvars, reach in (("claw", claw, 1, 10), ("biclaw", biclaw, 2, 20)):
        for seed in range(runs):
            began = time.perf_counter()
            found = genoud(
                function,
                nvars,
                maximize=True,
                population=3000,
                bounds=[[-reach, reach]] * nvars,
                vectorized=True,
                seed=seed,
            )
            took = time.perf_counter() - began
            row = [float(found.value), found.generations, found.evaluations, took]
            rows.setdefault((name, "ours"), []).append(row)
    print(
        f"{'':7} {'':5} {'best found':>10} {'generations':>12} {'evaluations':>12} {'seconds':>8}"
    )
    for (name, who), all_rows in sorted(rows.items()):
        table = np.array(all_rows)
        best = int((table[:, 0] > BEST[name] - 1e-6).sum())
        generations, evaluations, seconds = table[:, 1:].mean(axis=0)
        print(
            f"{name:7} {who:5} {f'{best} of {runs}':>10} {generations:>12.1f} "
            f"{evaluations:>12,.0f} {seconds:>8.2f}"
        )


if __name__ == "__main__":
    main()
