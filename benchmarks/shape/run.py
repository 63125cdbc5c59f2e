"""How often the statistics of shape find what was planted, and see what is not there.

Prints the tables of docs/evidence/simulations.md: one mode called one, two modes found, series
classed,
variance components recovered, covariates named. ``--simulations`` for each cell; 1000 take half
an hour on two idle cores.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from equipoise.stats.associations import Covariate, mode_associations
from equipoise.stats.levels import variance_by_level
from equipoise.stats.modes import find_modes
from equipoise.stats.warm_up import classify_trial
from packages.equipoise.tests.stats.planted import (
    ITERATIONS,
    NESTED,
    SERIES,
    SINGLE,
    SPIKES,
    Draw,
    Nested,
    autoregressive,
    two_peaks,
)

COUNTS = (20, 50, 100, 200)
APART = (3, 4, 5, 6)
SHARES = (0.5, 0.3, 0.1)
NESTED_SIMULATIONS = 500
COVARIATES = 10
LENGTHS = (50, 100, ITERATIONS, 500)


def share_with_modes(draw: Draw, count: int, modes: int, simulations: int, seed: int) -> float:
    """How often a sample of this size is said to have so many modes."""
    generator = np.random.default_rng(seed)
    found = (len(find_modes(100.0 + draw(generator, count)).locations) for _ in range(simulations))
    return sum(one == modes for one in found) / simulations


def one_mode(name: str, simulations: int) -> list[str]:
    """How often one peak is called one, for each size."""
    draw = {**SINGLE, "rare spikes": SPIKES}[name]
    shares = [share_with_modes(draw, count, 1, simulations, count) for count in COUNTS]
    return [name, *map(percent, shares)]


def two_modes(setting: tuple[float, int], simulations: int) -> list[str]:
    """How often two peaks are found, for each share and size."""
    upper, apart = setting
    draw = two_peaks(apart, upper)
    shares = [share_with_modes(draw, count, 2, simulations, count) for count in COUNTS]
    return [f"{round(100 * (1 - upper))}/{round(100 * upper)}", f"{apart}", *map(percent, shares)]


def classed(name: str, simulations: int) -> list[str]:
    """How often a series is given its own class, for each length."""
    kind, draw = SERIES[name]
    shares = []
    for length in LENGTHS:
        generator = np.random.default_rng(length)
        found = (classify_trial(draw(generator, length)) for _ in range(simulations))
        shares.append(sum(one is not None and one.kind == kind for one in found) / simulations)
    return [kind, name, *map(percent, shares)]


def recovered(design: Nested, simulations: int) -> list[str]:
    """The mean of the estimates over the truth, and the coverage, for each level."""
    generator = np.random.default_rng(7)
    truth = np.square(design.sds)
    estimates, covered = [], np.zeros(len(truth))
    for seed in range(simulations):
        values, units = design.draw(generator)
        found = variance_by_level(values, units, design.names, seed=seed).components
        estimates.append([one.variance for one in found])
        covered += [
            one.variance_ci[0] <= true <= one.variance_ci[1]
            for one, true in zip(found, truth, strict=True)
        ]
    means = np.mean(estimates, axis=0) / truth
    shape = " × ".join(
        f"{count} {name}s" for count, name in zip(design.counts, design.names, strict=True)
    )
    lost = f", {design.lost:.0%} lost" if design.lost else ""
    return [
        shape + lost,
        " ".join(f"{one:.3f}" for one in means),
        " ".join(percent(one) for one in covered / simulations),
    ]


def named(dependence: float, simulations: int) -> list[str]:
    """How often any of ten covariates is named falsely, and how often the true one is."""
    cells = []
    for count in COUNTS:
        generator = np.random.default_rng(count)
        false = true = 0
        for _ in range(simulations):
            beside = [
                Covariate(
                    f"covariate {one}",
                    autoregressive(generator, count, dependence),
                    is_categorical=False,
                    is_independent=False,
                )
                for one in range(COVARIATES - 1)
            ]
            cpu = (autoregressive(generator, count, dependence) > 0).astype(np.float64)
            beside.append(Covariate("cpu", cpu, is_categorical=True, is_independent=False))
            unrelated = (autoregressive(generator, count, dependence) > 0.5).astype(np.int64)
            false += bool(mode_associations(unrelated, beside))
            strays = generator.random(count) < 0.1
            modes = np.where(strays, 1.0 - cpu, cpu).astype(np.int64)
            true += any(one.covariate == "cpu" for one in mode_associations(modes, beside))
        cells.append(f"{percent(false / simulations)} / {percent(true / simulations)}")
    return [f"AR {dependence:g}", *cells]


def percent(share: float) -> str:
    """A share with one decimal."""
    return f"{100 * share:.1f}"


def tables(simulations: int) -> Iterator[tuple[str, Sequence[str], list[list[str]]]]:
    """Title, heads and rows of each table."""
    sizes = [f"n = {count}" for count in COUNTS]
    with ProcessPoolExecutor(max_workers=2) as workers:

        def rows(
            of: Callable[[Any, int], list[str]], settings: Sequence[Any], times: int
        ) -> list[list[str]]:
            return list(workers.map(of, settings, [times] * len(settings)))

        names = [*SINGLE, "rare spikes"]
        yield "One mode called one, %", ["shape", *sizes], rows(one_mode, names, simulations)
        settings = [(upper, apart) for upper in SHARES for apart in APART]
        heads = ["shares", "apart, sd", *sizes]
        yield "Two modes found, %", heads, rows(two_modes, settings, simulations)
        heads = ["class", "series", *(f"n = {length}" for length in LENGTHS)]
        yield "Series given their class, %", heads, rows(classed, list(SERIES), simulations)
        heads = ["design", "mean / truth", "95 % intervals cover, %"]
        yield (
            f"Variance components, {NESTED_SIMULATIONS} simulations, the highest level first",
            heads,
            rows(recovered, NESTED, NESTED_SIMULATIONS),
        )
        yield (
            f"Any of {COVARIATES} unrelated covariates named, / the CPU that 90 % of trials follow",
            ["series", *sizes],
            rows(named, [0.0, 0.6, 0.9], simulations),
        )


def main() -> int:
    """Print every table as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--simulations", type=int, default=1000)
    simulations = parser.parse_args().simulations
    print(f"{simulations} simulations a cell, fixed seeds")
    for title, heads, rows in tables(simulations):
        print(f"\n### {title}")
        print(f"| {' | '.join(heads)} |")
        print(f"|{' --- |' * len(heads)}")
        for row in rows:
            print(f"| {' | '.join(row)} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
