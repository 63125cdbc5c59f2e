"""How often intervals contain the true effect, for each design with each recommended error.

    python -m benchmarks.designs.coverage --data-sets 1000

Prints for each population, design and estimator: the share of intervals that contain the truth,
the bias, the mean width, and the mean standard error over the spread of the estimates; ± is the
Monte Carlo error. Results are appended to a JSON lines file, so that a run that was stopped goes
on; two processes run at once.

The truth is the effect of the estimand in the population. If a design leaves out rows of the arm
that the estimand averages over, it is the mean true effect of the rows that the design keeps.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.designs.populations import POPULATIONS, DataSet, true_effect
from equipoise_matching import (
    UnusableInput,
    aipw_effect,
    cardinality_match,
    cem,
    covariate_balancing_score,
    energy_balance,
    entropy_balance,
    full_match,
    inverse_probability_weights,
    nearest_match,
    optimal_match,
    overlap_weights,
    propensity_score,
    quick_match,
    subclassify,
)
from equipoise_matching.designs.design import Design
from equipoise_matching.designs.units import design_units
from equipoise_matching.effects.weight_model import logistic_weight_model

PROCESSES = 2
ROWS = 500
CONFIDENCE = 0.95
DEFAULT_RESULTS = Path("target/coverage.jsonl")
UNDERCOVERED = "UNDERCOVERS"
OVERCOVERED = "overcovers"


def _whole_sample(data: DataSet) -> Design:
    """All rows with equal weights: a regression without a design."""
    return Design("no design", "ATE", design_units(data.treat, data.x), np.ones(len(data.y)))


def _inverse_weights_with_model(data: DataSet) -> Design:
    """Inverse probability weights with the equations of their score, for M-estimation."""
    design = inverse_probability_weights(data.treat, data.x, estimand="ATE")
    e = propensity_score(data.x, data.treat).score
    scaled = (data.x - data.x.mean(axis=0)) / data.x.std(axis=0)
    predictors = np.column_stack([np.ones(len(e)), scaled])
    model = logistic_weight_model(predictors, data.treat == 1, e, "ATE")
    return Design(design.method, design.estimand, design.units, design.weights, weight_model=model)


DESIGNS: dict[str, Callable[[DataSet], Design]] = {
    "no design": _whole_sample,
    "optimal_match": lambda data: optimal_match(data.treat, data.x),
    "full_match": lambda data: full_match(data.treat, data.x),
    "nearest_match": lambda data: nearest_match(
        data.treat, propensity_score(data.x, data.treat).linear
    ),
    "quick_match": lambda data: quick_match(data.treat, data.x, estimand="ATE"),
    "cem": lambda data: cem(data.treat, data.x),
    "subclassify": lambda data: subclassify(data.treat, data.x),
    "cardinality_match": lambda data: cardinality_match(data.treat, data.x, time_limit=5.0),
    "inverse_probability_weights": lambda data: inverse_probability_weights(
        data.treat, data.x, estimand="ATE"
    ),
    "inverse_probability_weights + model": _inverse_weights_with_model,
    "overlap_weights": lambda data: overlap_weights(data.treat, data.x),
    "entropy_balance": lambda data: entropy_balance(data.treat, data.x),
    "covariate_balancing_score": lambda data: covariate_balancing_score(
        data.treat, data.x, estimand="ATE"
    ),
    "energy_balance": lambda data: energy_balance(data.treat, data.x),
}
"""How each design is made from a data set, by the name of its function."""
ESTIMATORS: dict[str, dict[str, Any]] = {
    "means": {"covariates": None},
    "regression": {},
    "with HC3": {"correction": "HC3"},
}
"""Estimators after a design: weighted means, and g-computation with the design's covariates, also
with the correction HC3, which is the default without clusters."""


def data_set_of(population: str, index: int, rows: int) -> DataSet:
    """Return a data set, the same whatever else runs."""
    seed = np.random.SeedSequence([list(POPULATIONS).index(population), index, rows])
    return POPULATIONS[population](np.random.default_rng(seed), rows)


def rows_of(population: str, index: int, rows: int, designs: tuple[str, ...]) -> list[str]:
    """Return a JSON line for each design and estimator of a data set."""
    data = data_set_of(population, index, rows)
    lines = []

    def note(design: str, estimator: str, **values: Any) -> None:
        key = {"population": population, "data_set": index, "rows": rows, "design": design}
        lines.append(json.dumps({**key, "estimator": estimator, **values}))

    for name in designs:
        if name == "aipw":
            truth = true_effect(population, "ATE")
            try:
                note(
                    name, "cross-fitted", **numbers(aipw_effect(data.y, data.treat, data.x), truth)
                )
            except UnusableInput as error:
                note(name, "cross-fitted", failure=error.what)
            continue
        try:
            design = DESIGNS[name](data)
        except UnusableInput as error:
            for estimator in ESTIMATORS:
                note(name, estimator, failure=error.what)
            continue
        truth = truth_for(design, data, population)
        for estimator, options in ESTIMATORS.items():
            try:
                note(name, estimator, **numbers(design.effect(data.y, **options), truth))
            except UnusableInput as error:
                note(name, estimator, failure=error.what)
    return lines


def truth_for(design: Design, data: DataSet, population: str) -> float:
    """Return the effect that a design estimates."""
    target_arm = {"ATT": data.treat == 1, "ATC": data.treat == 0}.get(
        design.estimand, np.ones(len(data.treat), dtype=np.bool_)
    )
    if (design.weights[target_arm] > 0).all():
        return true_effect(population, design.estimand)
    return float(np.average(data.effect, weights=design.weights * target_arm))


def numbers(effect: Any, truth: float) -> dict[str, float]:
    low, high = effect.interval
    return {
        "estimate": effect.estimate, "se": effect.se, "low": low, "high": high, "truth": truth
    }  # fmt: skip


def main() -> int:
    """Run what the results file lacks, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data-sets", type=int, default=1000)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--results", type=Path, default=DEFAULT_RESULTS)
    names = [*DESIGNS, "aipw"]
    parser.add_argument("--designs", nargs="+", choices=names, default=names)
    parser.add_argument(
        "--populations", nargs="+", choices=list(POPULATIONS), default=list(POPULATIONS)
    )
    options = parser.parse_args()
    designs = tuple(options.designs)
    options.results.parent.mkdir(parents=True, exist_ok=True)
    done = set()
    if options.results.exists():
        for row in read(options.results):
            done.add((row["population"], row["data_set"], row["rows"], row["design"]))
    tasks = []
    for index in range(options.data_sets):
        for population in options.populations:
            left = tuple(
                name for name in designs if (population, index, options.rows, name) not in done
            )
            if left:
                tasks.append((population, index, options.rows, left))
    # Each process does one data set at a time; more threads would only compete.
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    with ProcessPoolExecutor(PROCESSES, mp_context=get_context("spawn")) as pool:
        with options.results.open("a") as file:
            for lines in pool.map(rows_of, *zip(*tasks, strict=True)) if tasks else ():
                file.write("".join(f"{line}\n" for line in lines))
                file.flush()
    rows = [
        row
        for row in read(options.results)
        if row["rows"] == options.rows
        and row["data_set"] < options.data_sets
        and row["design"] in designs
        and row["population"] in options.populations
    ]
    for line in table(rows):
        print(line)
    return 0


def read(file: Path) -> list[dict[str, Any]]:
    """Return the rows of a results file; a last line that a stop cut short does not count."""
    rows = []
    for line in file.read_text().splitlines():
        try:
            rows.append(json.loads(line))
        except json.JSONDecodeError:
            continue
    return rows


def table(rows: list[dict[str, Any]]) -> Iterator[str]:
    """Yield the lines of the table."""
    cells: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for row in rows:
        cells.setdefault((row["population"], row["design"], row["estimator"]), []).append(row)
    for population in dict.fromkeys(key[0] for key in cells):
        yield f"{population}"
        yield (
            f"  {'design':35} {'estimator':12} {'sets':>5} {'failed':>6} {'coverage %':>13} "
            f"{'bias':>17} {'width':>9} {'se/spread':>9}"
        )
        for (name, design, estimator), cell in cells.items():
            if name != population:
                continue
            used = [row for row in cell if "estimate" in row]
            failed = len(cell) - len(used)
            if len(used) < 2:
                yield f"  {design:35} {estimator:12} {len(used):5} {failed:6}"
                continue
            yield f"  {design:35} {estimator:12} {len(used):5} {failed:6} {cell_text(used)}"
        yield ""


def cell_text(rows: list[dict[str, Any]]) -> str:
    """Return coverage, bias, width, and the mean error over the spread, with Monte Carlo errors."""
    errors = np.array([row["estimate"] - row["truth"] for row in rows])
    low, high, truth = (np.array([row[name] for row in rows]) for name in ("low", "high", "truth"))
    coverage = float(((low <= truth) & (truth <= high)).mean())
    count = len(rows)
    # At the nominal level, so that 100 % coverage has an error too.
    error = math.sqrt(CONFIDENCE * (1.0 - CONFIDENCE) / count)
    spread = float(errors.std(ddof=1))
    ratio = float(np.mean([row["se"] for row in rows])) / spread
    word = ""
    if coverage < CONFIDENCE - 3.0 * error:
        word = UNDERCOVERED
    elif coverage > CONFIDENCE + 3.0 * error:
        word = OVERCOVERED
    return (
        f"{100 * coverage:7.1f} ± {100 * error:3.1f} {errors.mean():9.3g} ± "
        f"{spread / math.sqrt(count):5.2g} {(high - low).mean():9.4g} {ratio:9.2f}  {word}"
    ).rstrip()


if __name__ == "__main__":
    sys.exit(main())
