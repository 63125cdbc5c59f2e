"""How often the answers of ``observe`` hold where the truth is known.

``python -m benchmarks.observe.simulate`` (some minutes on two cores). Prints, over 200 logs each:
the coverage of the intervals where versions run for a while and errors last; that of Rosenbaum's
bounds where a hidden coin of strength Γ is planted; and how often a placebo outcome warns.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np

from benchmarks.observe.scenarios import Made, deployments, hidden_odds
from equipoise_matching.observation.analysis import observe
from equipoise_matching.observation.question import Question

SEED = 7
GAMMA = 2.0

Maker = Callable[[np.random.Generator], Made]


@dataclass(frozen=True, slots=True)
class Scenario:
    """Logs of one kind, and what is asked of them."""

    name: str
    make: Maker
    covariates: tuple[str, ...]
    placebos: tuple[str, ...] = ()


SCENARIOS = (
    Scenario("runs, errors last (0.9)", deployments, ("load", "cache"), ("neighbour",)),
    Scenario(
        "runs, errors last (0.5)",
        partial(deployments, lasting=0.5),
        ("load", "cache"),
        ("neighbour",),
    ),
    Scenario(
        "runs, a factor hidden",
        partial(deployments, hidden=1.0),
        ("load", "cache"),
        ("neighbour",),
    ),
    Scenario(
        f"hidden coin of a row, odds x{GAMMA:g}",
        partial(hidden_odds, gamma=GAMMA, rows=400),
        ("load",),
    ),
    Scenario(
        f"hidden coin of a day, odds x{GAMMA:g}",
        partial(hidden_odds, gamma=GAMMA, days=120),
        ("load",),
    ),
)


def asked(scenario: Scenario, method: str) -> Question:
    """The question that each log of a scenario is asked."""
    return Question(
        "version",
        "2.0:1.0",
        "wall_s",
        covariates=scenario.covariates,
        placebo_outcomes=scenario.placebos,
        method=method,
        threads=1,
    )


def tally(scenario: Scenario, method: str, number: int) -> Counter[str]:
    """What one log gave: "answered", the errors and bounds that hold the truth, "warned"."""
    made = scenario.make(np.random.default_rng((SEED, number)))
    document = observe(made.columns, asked(scenario, method), source=scenario.name)
    told: Counter[str] = Counter()
    truth = math.exp(made.effect)
    if document.matched is None or document.hidden_bias is None:
        return told
    told["answered"] += 1
    naive = document.naive.ratio_ci
    told["naive"] += naive is not None and naive[0] <= truth <= naive[1]
    for error in document.matched.errors:
        ends = error.ratio_ci
        told[error.name] += ends is not None and ends[0] <= truth <= ends[1]
    for bound in document.hidden_bias.bounds:
        above = bound.low is None or bound.low <= truth
        told[f"odds x{bound.gamma:g}"] += above and (bound.high is None or truth <= bound.high)
    told["placebo warns"] += any(one.shows_effect for one in document.placebos)
    return told


def main() -> int:
    """Print a table."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.observe.simulate", description=__doc__
    )
    parser.add_argument("--logs", type=int, default=200)
    parser.add_argument("--method", default="genetic")
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    print(f"{given.logs} logs each, --method {given.method}; % that hold the truth")
    with ProcessPoolExecutor(given.workers) as pool:
        for scenario in SCENARIOS:
            work = partial(tally, scenario, given.method)
            whole: Counter[str] = Counter()
            for one in pool.map(work, range(given.logs), chunksize=5):
                whole.update(one)
            answered = whole.pop("answered")
            shares = ", ".join(
                f"{name} {100 * count / max(1, answered):.1f}" for name, count in whole.items()
            )
            print(f"{scenario.name}: answered {answered}; {shares}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
