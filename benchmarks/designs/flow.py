"""Prints how much faster `optimal_match` and `full_match` are than pymatchit-causal 0.6.1.

    python -m benchmarks.designs.flow [SECONDS]

The peer runs in an environment and a process of its own, and stops after SECONDS (default 600).
Its time is that of `fit` alone. Exits with 1 if a ratio is below 10, or the peer's total distance
is smaller. R's MatchIt needs optmatch for both designs, which Debian does not have.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.designs.timing import PYMATCHIT, timed_design
from benchmarks.environments import python_with
from equipoise_matching import full_match, optimal_match
from equipoise_matching.designs.design import Design
from equipoise_matching.matching.units import Floats, Indices

ROUNDS = 3
MIN_RATIO = 10.0
TIME_LIMIT = 600.0
ROUNDING = 1e-9
"""Largest relative difference of two totals that counts as rounding."""

PROGRAM = """
import sys, time
import numpy as np, pandas
from pymatchit import MatchIt
method, kind, data, answer = sys.argv[1:]
file = np.load(data)
x, treat = file["x"], file["treat"]
names = [f"x{column}" for column in range(x.shape[1])]
frame = pandas.DataFrame(x, columns=names).assign(treat=treat)
distance = "mahalanobis" if kind == "mahalanobis" else x[:, 0]
started = time.perf_counter()
found = MatchIt(frame, method=method, distance=distance).fit("treat ~ " + " + ".join(names))
seconds = time.perf_counter() - started
strata = np.full(len(frame), -1)
if method == "optimal":
    for stratum, (treated, controls) in enumerate(found.matched_indices.items()):
        strata[[treated, *controls]] = stratum
else:
    column = found.matched_data["subclass"]
    strata[column.index] = column.astype(float)
np.savez(answer, seconds=seconds, strata=strata)
"""


@dataclass(frozen=True, slots=True)
class Case:
    """A design and its data: rows by arm, columns, and how far the treated rows are shifted."""

    name: str
    method: str
    kind: str
    treated: int
    controls: int
    columns: int
    shift: float

    def data(self) -> tuple[Indices, Floats]:
        """Return the treatment and normal covariates."""
        random = np.random.default_rng(1)
        x = random.normal(size=(self.treated + self.controls, self.columns))
        x[: self.treated] += self.shift
        return np.repeat([1, 0], [self.treated, self.controls]), x


CASES = (
    Case("optimal, 10 covariates", "optimal", "mahalanobis", 5_000, 20_000, 10, 0.0),
    Case("optimal, 5 covariates, shifted", "optimal", "mahalanobis", 5_000, 20_000, 5, 0.5),
    Case("optimal, a score, shifted", "optimal", "score", 5_000, 20_000, 1, 0.5),
    Case("full, 5 covariates, shifted", "full", "mahalanobis", 10_000, 40_000, 5, 0.3),
)


def ours(case: Case) -> Design:
    """Return our design of a case."""
    treat, x = case.data()
    metric = "mahalanobis" if case.kind == "mahalanobis" else "euclidean"
    call: Callable[..., Design] = optimal_match if case.method == "optimal" else full_match
    return call(treat, x, metric=metric)


def peer(case: Case, python: Path, limit: float) -> tuple[float, Indices] | None:
    """Return the seconds and the strata of the peer; ``None`` if it did not end in time."""
    treat, x = case.data()
    with tempfile.TemporaryDirectory() as folder:
        files = [f"{folder}/{name}.npz" for name in ("data", "answer")]
        np.savez(files[0], x=x, treat=treat)
        command = [str(python), "-c", PROGRAM, case.method, case.kind, *files]
        try:
            subprocess.run(command, check=True, timeout=limit, capture_output=True)
        except subprocess.TimeoutExpired:
            return None
        answer = np.load(files[1])
        return float(answer["seconds"]), answer["strata"]


def total_distance(case: Case, strata: Indices) -> float:
    """Return the sum of the distances within strata, from the only row of an arm to the others."""
    treat, x = case.data()
    if case.kind == "mahalanobis":
        x = x @ np.linalg.cholesky(np.linalg.inv(np.cov(x.T)))
    centres = np.full((int(strata.max()) + 1, x.shape[1]), np.nan)
    sizes = [np.bincount(strata[(strata >= 0) & (treat == arm)]) for arm in (0, 1)]
    is_centre = (strata >= 0) & (sizes[1][strata] == 1) & (treat == 1)
    is_centre |= (strata >= 0) & (sizes[1][strata] > 1) & (treat == 0)
    centres[strata[is_centre]] = x[is_centre]
    others = (strata >= 0) & ~is_centre
    return float(np.sqrt(((x[others] - centres[strata[others]]) ** 2).sum(axis=1)).sum())


def main() -> int:
    """Print a line for each case."""
    limit = float(sys.argv[1]) if len(sys.argv) > 1 else TIME_LIMIT
    python = python_with(PYMATCHIT)
    are_met = []
    print(f"{'design':32} {'rows':>7} {'ours':>8} {'peer':>9} {'ratio':>7}  total distances")
    for case in CASES:
        timed = timed_design(partial(ours, case), ROUNDS)
        median, total = timed.seconds, float(timed.design.details["Total distance"])
        answer = peer(case, python, limit)
        if answer is None:
            shown, ratio, peer_total = f"> {limit:.0f}", limit / median, float("inf")
        else:
            shown, ratio = f"{answer[0]:.2f}", answer[0] / median
            peer_total = total_distance(case, answer[1])
        print(
            f"{case.name:32} {case.treated + case.controls:7,} {median:8.3f} {shown:>9} "
            f"{ratio:7.1f}  {total:.6f} {peer_total:.6f}",
            flush=True,
        )
        are_met.append(ratio >= MIN_RATIO and total <= peer_total * (1 + ROUNDING))
    return 0 if all(are_met) else 1


if __name__ == "__main__":
    sys.exit(main())
