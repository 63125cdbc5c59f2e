"""What ``python -m benchmarks.history`` prints, and the claims that it checks."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol, TypeVar

from benchmarks.bisect.tables import Table
from benchmarks.history.engine import ALPHA, Outcome, at_once, night_by_night, truth_of
from benchmarks.history.guarantees import NOISES, PAIRS, REAL, discoveries, misses
from benchmarks.history.machines import COMMITS, MACHINES, nightly_series
from benchmarks.history.others import RULES, Missing, Rule, changes_by
from tests.stats.simulated import at_most

Result = TypeVar("Result")
RUNS = (1, 10)
"""Runs of each commit on its night."""


class RunAll(Protocol):
    """Runs a simulation once for each seed."""

    def __call__(self, simulate: Callable[[int], Result], /) -> list[Result]:
        """Return the results, in the order of the seeds."""


def planted_table(run_all: RunAll, seeds: Sequence[int]) -> Table:
    """Return what becomes of two planted changes on machines that drift by 20 %."""
    rows, broken = [], []
    for kind, machine in MACHINES.items():
        for way, simulate in (("at once", at_once), ("--new, a commit a night", night_by_night)):
            outcomes = run_all(partial(simulate, kind))
            rows.append((machine, f"equipoise history, {way}", *_of_engine(outcomes)))
            wrong = [one for one in outcomes if not one.right or one.others or not one.is_over]
            if wrong:
                broken.append(f"{machine}, {way}: {len(wrong)} histories have another answer")
        for rule in RULES:
            rows += [
                (machine, f"{rule.name}, {_runs(runs)} a night", *_of_rule(rule, kind, runs, seeds))
                for runs in RUNS
            ]
    return Table(
        f"{COMMITS} commits, +5 % and -4 % planted, sd 1 %: {len(seeds)} histories each",
        (
            *("machine", "rule", "both named to the commit", "histories with a wrong name"),
            *("wrong names", "trials until both are named", "trials in all, median (range)"),
        ),
        rows,
        broken,
    )


def _of_engine(outcomes: Sequence[Outcome]) -> tuple[str, ...]:
    named = [one.named_after for one in outcomes if one.named_after is not None]
    return (
        f"{sum(one.right for one in outcomes)}",
        f"{sum(one.others > 0 for one in outcomes)}",
        f"{sum(one.others for one in outcomes)}",
        _spread(named),
        _spread([one.trials for one in outcomes]),
    )


def _of_rule(rule: Rule, kind: str, runs: int, seeds: Sequence[int]) -> tuple[str, ...]:
    begun = [truth_of(kind, seed) for seed in seeds]
    truths = [truth for _, truth in begun]
    series = [nightly_series(truth, kind, runs, rng) for rng, truth in begun]
    try:
        found = changes_by(rule, series)
    except Missing as missing:
        return (str(missing), "", "", "", "")
    wrong = [set(one) - set(truth.changed) for one, truth in zip(found, truths, strict=True)]
    right = [set(truth.changed) <= set(one) for one, truth in zip(found, truths, strict=True)]
    trials = str(runs * (COMMITS + 1))
    return (
        f"{sum(right)}",
        f"{sum(bool(one) for one in wrong)}",
        f"{sum(len(one) for one in wrong)}",
        "",
        trials,
    )


def discoveries_table(run_all: RunAll, seeds: Sequence[int]) -> Table:
    """Return the false-discovery rate among pairs that differ by just the smallest effect."""
    rows, broken = [], []
    for kind in NOISES:
        for real in (0, REAL):
            named = run_all(partial(discoveries, kind, real))
            rate = statistics.fmean(one.share for one in named)
            any_false = sum(one.false > 0 for one in named)
            rows.append(
                (
                    kind,
                    f"{real}",
                    f"{100 * rate:.1f}",
                    f"{any_false}",
                    f"{statistics.fmean(one.true for one in named):.1f}" if real else "",
                )
            )
            if any_false > at_most(len(seeds), ALPHA) and rate > ALPHA:
                broken.append(f"{kind}, {real} changes: false-discovery rate {rate:.3f}")
    return Table(
        f"{PAIRS} pairs at the smallest effect: {len(seeds)} campaigns a row",
        (
            *("noise", "of them changed by 5 %", "false-discovery rate, %"),
            *("campaigns with a false name", "true names, mean"),
        ),
        rows,
        broken,
    )


def coverage_table(run_all: RunAll, seeds: Sequence[int]) -> Table:
    """Return how often any interval of the curve ever left out the truth."""
    rows, broken = [], []
    for kind in NOISES:
        missed = sum(run_all(partial(misses, kind)))
        rows.append((kind, f"{missed} of {len(seeds)}"))
        if missed > at_most(len(seeds), ALPHA):
            broken.append(f"{kind}: {missed} of {len(seeds)} curves ever missed the truth")
    return Table(
        f"Curves over {COMMITS} commits",
        ("noise", "curves of which any interval ever missed the truth"),
        rows,
        broken,
    )


TABLES: dict[str, Callable[[RunAll, Sequence[int]], Table]] = {
    "planted": planted_table,
    "discoveries": discoveries_table,
    "coverage": coverage_table,
}
"""The tables, by their names on the command line."""


def _runs(count: int) -> str:
    return "1 run" if count == 1 else f"median of {count} runs"


def _spread(values: Sequence[int]) -> str:
    if not values:
        return "never"
    return f"{statistics.median(values):.0f} ({min(values)} to {max(values)})"
