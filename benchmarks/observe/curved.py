"""How often the interval of ``observe`` holds the truth where measured confounders are curved.

``python -m benchmarks.observe.curved`` judges logs of ten curved shapes and a linear one, at 600
and 3,000 rows, by the function that the command line calls. Each row of a log draws its version by
a chance that depends on the curve, and the same curve moves the outcome. The candidate is 2 %
slower in truth. Of the logs that are answered 92 % of the intervals must hold the truth, or 95 % of
the logs must be refused; on linear logs the interval may be 15 % wider than that of an analysis of
straight lines. A bound counts as broken when it lies beyond two Monte Carlo errors. ``--linear``
judges by straight lines alone, which fails.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from equipoise.model.errors import UnusableInput
from equipoise_matching.observation import matching, overlap, pattern, terms
from equipoise_matching.observation.analysis import observe
from equipoise_matching.observation.question import Question

SEED = 18
EFFECT = math.log(1.02)
NOISE = 0.05
"""Standard deviation of ln(outcome) given the covariates."""
SIZES = (600, 3_000)
MIN_COVERAGE, MIN_REFUSED, MAX_WIDTH = 0.92, 0.95, 1.15

Values = NDArray[np.float64]
Draw = np.random.Generator


class Confounding(NamedTuple):
    """Covariates by name, the log odds of the candidate, and what moves ln(outcome)."""

    covariates: dict[str, NDArray[Any]]
    log_odds: Values
    log_outcome: Values


def normal_columns(draw: Draw, rows: int, count: int) -> dict[str, NDArray[Any]]:
    """Return independent standard normal columns."""
    return {f"x{place}": draw.normal(size=rows) for place in range(1, count + 1)}


def of_curve(
    curve: Callable[[dict[str, NDArray[Any]]], NDArray[Any]],
    draw: Draw,
    rows: int,
    *,
    covariates: int = 4,
    odds: float = 1.0,
    outcome: float = 0.1,
    level: float = -0.7,
) -> Confounding:
    """Return logs in which one curve of normal covariates moves the odds and the outcome."""
    columns = normal_columns(draw, rows, covariates)
    values = np.asarray(curve(columns), dtype=np.float64)
    return Confounding(columns, level + odds * values, outcome * values)


def category_with_slopes(draw: Draw, rows: int) -> Confounding:
    """Return logs in which each of three processors has a curve of its own."""
    columns = normal_columns(draw, rows, 3)
    columns["cpu"] = draw.choice(["arm", "amd", "intel"], rows).astype(object)
    x, cpu = columns["x1"], columns["cpu"]
    values = np.where(
        cpu == "arm", x**2 - 1.0, np.where(cpu == "amd", -0.7 * x, 1.0 - 0.7 * np.abs(x))
    )
    return Confounding(columns, -0.7 + values, 0.1 * values)


def ten_covariates(draw: Draw, rows: int) -> Confounding:
    """Return logs with ten covariates of which five act, each in another way."""
    columns = normal_columns(draw, rows, 10)
    x1, x2, x3, x4, x5 = (columns[f"x{place}"] for place in range(1, 6))
    values = 0.5 * (x1**2 - 1.0) + 0.5 * x2 * x3 + 0.5 * np.sin(2.0 * x4) + 0.3 * x5
    return Confounding(columns, -0.7 + values, 0.1 * values)


def rare_cluster(draw: Draw, rows: int) -> Confounding:
    """Return logs with 5 % of rows far from the others, slow, and mostly of the candidate."""
    columns = normal_columns(draw, rows, 4)
    is_rare = draw.random(rows) < 0.05
    columns["x1"] = np.where(is_rare, draw.normal(3.0, 0.3, rows), columns["x1"])
    columns["x2"] = np.where(is_rare, draw.normal(-2.0, 0.3, rows), columns["x2"])
    values = 0.4 * columns["x3"] + 2.0 * is_rare
    return Confounding(columns, -0.8 + values, 0.1 * values)


SHAPES: dict[str, Callable[[Draw, int], Confounding]] = {
    "linear": partial(of_curve, lambda x: x["x1"] + 0.5 * x["x2"], odds=0.8),
    "square": partial(of_curve, lambda x: x["x1"] ** 2 - 1.0),
    "mild-square": partial(of_curve, lambda x: x["x1"] ** 2 - 1.0, odds=0.5, outcome=0.05),
    "product": partial(of_curve, lambda x: x["x1"] * x["x2"]),
    "sine": partial(of_curve, lambda x: np.sin(3.0 * x["x1"])),
    "step": partial(of_curve, lambda x: 1.5 * (x["x1"] > 0.6)),
    "exponential": partial(of_curve, lambda x: np.minimum(np.exp(x["x1"]), 6.0) - 1.5, odds=0.7),
    "threshold-product": partial(of_curve, lambda x: 1.5 * (x["x1"] > 0.4) * x["x2"]),
    "category-slopes": category_with_slopes,
    "ten-covariates": ten_covariates,
    "rare-cluster": rare_cluster,
}


def make_log(shape: str, rows: int, number: int) -> dict[str, NDArray[Any]]:
    """Return one log; its rows are independent."""
    draw = np.random.default_rng((SEED, [*SHAPES].index(shape), rows, number))
    confounding = SHAPES[shape](draw, rows)
    candidate = draw.random(rows) < 1.0 / (1.0 + np.exp(-confounding.log_odds))
    noise = draw.normal(0.0, NOISE, rows)
    logs = confounding.log_outcome + EFFECT * candidate + noise
    return {
        "version": np.where(candidate, "2.0", "1.0").astype(object),
        "wall_s": np.exp(logs),
        **confounding.covariates,
    }


class Judged(NamedTuple):
    """What one log gave; ``refused`` is the code of a refusal, and the rest is unknown then."""

    refused: str | None
    covered: bool = False
    width: float = math.nan
    error: float = math.nan
    narrowed: float = math.nan


def judge(shape: str, rows: int, method: str, is_linear: bool, number: int) -> Judged:
    """Observe one log, as the command line does."""
    question = Question("version", "2.0:1.0", "wall_s", method=method, threads=1, cluster=())
    with linear_analysis() if is_linear else nullcontext():
        try:
            result = observe(make_log(shape, rows, number), question, source=shape)
        except UnusableInput:
            return Judged("unusable")
    if result.matched is None or result.matched.effect.ratio_ci is None:
        return Judged("no interval" if result.refusal is None else result.refusal.code)
    low, high = map(math.log, result.matched.effect.ratio_ci)
    kept, dropped = result.matching.candidate_matched, result.matching.candidate_dropped
    return Judged(
        None,
        low <= EFFECT <= high,
        high - low,
        (low + high) / 2.0 - EFFECT,
        dropped / (kept + dropped),
    )


@contextmanager
def linear_analysis() -> Iterator[None]:
    """Let ``observe`` see straight lines and means alone, and leave out no row for its odds."""
    with (
        patch.object(terms, "MAX_TERMS", 0),
        patch.object(overlap, "MAX_ODDS", math.inf),
        patch.object(matching, "MAX_TERM_DIFFERENCE", math.inf),
        patch.object(matching, "MAX_KS", math.inf),
        patch.object(pattern, "FALSE_REFUSAL_CHANCE", 0.0),
    ):
        yield


class Cell(NamedTuple):
    """The logs of one shape and size together; errors are Monte Carlo standard errors."""

    logs: int
    answered: int
    covered: int
    width: float
    bias: float
    narrowed: float
    refusals: dict[str, int]

    @property
    def coverage(self) -> tuple[float, float]:
        """Share of the answers whose interval holds the truth."""
        return share_of(self.covered, self.answered)

    @property
    def refused(self) -> tuple[float, float]:
        """Share of the logs that are refused."""
        return share_of(self.logs - self.answered, self.logs)

    @property
    def is_met(self) -> bool:
        """Whether enough intervals hold the truth, or enough logs are refused."""
        bounds = ((self.coverage, MIN_COVERAGE), (self.refused, MIN_REFUSED))
        return any(share + 2.0 * error >= bound for (share, error), bound in bounds)


def share_of(count: int, total: int) -> tuple[float, float]:
    """Return a share with its Monte Carlo error, that of one miss where there is none."""
    if not total:
        return math.nan, math.nan
    share = count / total
    spread = max(share * (1.0 - share), (1.0 - 1.0 / total) / total)
    return share, math.sqrt(spread / total)


def gather(judged: Iterable[Judged]) -> Cell:
    """Add up the logs of one shape and size."""
    every = list(judged)
    answers = [one for one in every if one.refused is None]
    return Cell(
        len(every),
        len(answers),
        sum(one.covered for one in answers),
        float(np.mean([one.width for one in answers])) if answers else math.nan,
        float(np.mean([one.error for one in answers])) if answers else math.nan,
        float(np.mean([one.narrowed for one in answers])) if answers else math.nan,
        dict(Counter(one.refused for one in every if one.refused is not None)),
    )


def main() -> int:
    """Print a table; return 1 if a bound is broken."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.observe.curved", description=__doc__
    )
    parser.add_argument("--logs", type=int, default=200)
    parser.add_argument("--shape", choices=[*SHAPES], action="append")
    parser.add_argument("--rows", type=int, choices=SIZES, action="append")
    parser.add_argument("--method", default="genetic")
    parser.add_argument("--linear", action="store_true")
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    broken = 0
    print(
        f"{options.logs} logs each, --method {options.method}, true "
        f"{100 * math.expm1(EFFECT):+.0f} %; covered at least {100 * MIN_COVERAGE:.0f} %, "
        "or refused at least "
        f"{100 * MIN_REFUSED:.0f} %"
    )
    with ProcessPoolExecutor(options.workers) as pool:

        def cell_of(shape: str, rows: int, is_linear: bool) -> Cell:
            work = partial(judge, shape, rows, options.method, is_linear)
            return gather(pool.map(work, range(options.logs), chunksize=5))

        for rows in options.rows or SIZES:
            for shape in options.shape or SHAPES:
                cell = cell_of(shape, rows, options.linear)
                (share, error), (refused, refused_error) = cell.coverage, cell.refused
                line = (
                    f"{shape:18} {rows:5,} rows: covered {100 * share:5.1f} ± {100 * error:.1f} %, "
                    f"refused {100 * refused:.1f} ± {100 * refused_error:.1f} %, bias "
                    f"{100 * cell.bias:+.2f} %, width {100 * cell.width:.2f} %, "
                    f"{100 * cell.narrowed:.0f} % of rows dropped"
                )
                is_met = cell.is_met
                if shape == "linear" and not options.linear:
                    ratio = cell.width / cell_of(shape, rows, True).width
                    line += f", {ratio:.2f} of the linear analysis (at most {MAX_WIDTH})"
                    is_met = is_met and ratio <= MAX_WIDTH
                broken += not is_met
                reasons = "".join(f" {code} {count}" for code, count in cell.refusals.items())
                print(f"{line}{reasons}: {'met' if is_met else 'BROKEN'}", flush=True)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
