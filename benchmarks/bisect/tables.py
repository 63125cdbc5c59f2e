"""The tables of the benchmark, and the claims that they must bear out."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol, TypeVar

import numpy as np
from msgspec import Struct

from benchmarks.bisect import engine
from benchmarks.bisect.cells import DRIFTS, LAYOUTS, LAYOUTS_SD, MAIN, NOISES, PROFILES, Cell
from benchmarks.bisect.engine import ALPHA, DriftOutcome, LayoutOutcome, Outcome
from benchmarks.bisect.noise import KINDS
from benchmarks.bisect.rules import packages, rules
from equipoise.kinds.bisect.layout import TREND_LEVEL
from equipoise.stats.arrays import FloatArray
from packages.equipoise.tests.stats.simulated import at_least, at_most

WRONG = 0.01
"""Largest rate of campaigns with a wrong name, in every claimed cell."""
TRIALS = 1.15
"""Largest median of the trials, in medians of the reference."""
RULES_SEED = 10_000_019

_Simulated = TypeVar("_Simulated")

LAYOUTS_FOUND = 0.8
"""Least rate of searches that name the culprit where layouts are at most a fifth of the step."""
DRIFTS_WARNED = 0.9
"""Least rate of warnings among searches whose interval misses the mean of a step that changed."""


RunAll = Callable[[Callable[[int], Outcome]], list[Outcome]]
"""Runs a simulation once for each seed."""
RunDrifts = Callable[[Callable[[int], DriftOutcome]], list[DriftOutcome]]
"""As ``RunAll``, for steps that may grow or fade."""
RunLayouts = Callable[[Callable[[int], LayoutOutcome]], list[LayoutOutcome]]
"""As ``RunAll``, for simulations with layouts."""


class RunEach(Protocol):
    """``RunAll``, ``RunDrifts`` and ``RunLayouts`` at once."""

    def __call__(self, simulate: Callable[[int], _Simulated], /) -> list[_Simulated]:
        """Return what came of it for each seed."""


class Table(Struct, frozen=True):
    """Rows of text under a heading, and the claims that failed."""

    title: str
    columns: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    broken: Sequence[str]


def main_table(cells: Sequence[Cell], run_all: RunAll, title: str) -> Table:
    """Return what the engine did in some cells, beside the reference and the other rules."""
    columns = (
        *("step, %", "sd, %", "commits", "noise", "trials, median/90 %", "reference", "builds"),
        *("named", "wrong", "excluded", "other rules: wrong (no name; trials), %"),
    )
    rows, broken = [], []
    for cell in cells:
        outcomes = run_all(partial(engine.single, cell))
        name = f"{cell.step:g} %, sd {cell.sd:g} %, {cell.count} commits, {KINDS[cell.kind]}"
        broken += _broken(name, outcomes, cell.trials)
        trials = np.array([one.trials for one in outcomes])
        beside = ""
        if cell.has_rules:
            beside = _rules(cell, len(outcomes), float(np.median(trials)))
        rows.append(
            (
                f"{cell.step:g}",
                f"{cell.sd:g}",
                str(cell.count),
                KINDS[cell.kind],
                *_costs(outcomes, cell.trials),
                _percent([one.right for one in outcomes]),
                _percent([one.wrong for one in outcomes]),
                _percent([one.excluded for one in outcomes]),
                beside,
            )
        )
    return Table(title, columns, rows, broken)


def profile_table(run_all: RunAll) -> Table:
    """Return what came of several steps, to the end; what is left is judged with 1 %."""
    columns = (
        *("steps", "all named", "reference", "any wrong", "several first", "reference"),
        *("trials, median/90 %", "reference", "builds"),
    )
    rows, broken = [], []
    for shape in PROFILES:
        outcomes = run_all(partial(engine.profile, shape))
        # The reference judges nothing equivalent: it spends all blocks on what is left.
        broken += _broken(shape.name, outcomes, shape.trials)
        rows.append(
            (
                shape.name,
                _percent([one.right for one in outcomes]),
                f"{shape.all_named:g}",
                _percent([one.wrong for one in outcomes]),
                _percent([one.several for one in outcomes]),
                f"{shape.several:g}",
                *_costs(outcomes, shape.trials),
            )
        )
    return Table("Several steps (128 commits, sd 1 %)", columns, rows, broken)


def further_table(run_all: RunAll) -> Table:
    """Return what the reference did not simulate."""
    cell = Cell(3, 2, 128)
    small = Cell(3, 1, 64)
    scenarios: tuple[tuple[str, Callable[[int], Outcome]], ...] = (
        ("an even prior", partial(engine.single, cell)),
        (
            "a tenth ten times as likely, the culprit too",
            partial(engine.with_prior, cell, holds=True),
        ),
        (
            "a tenth ten times as likely, not the culprit",
            partial(engine.with_prior, cell, holds=False),
        ),
        ("a fifth of the commits do not build", partial(engine.with_broken, cell)),
        (
            "a merge with the culprit in its branch of 16 (3 %, sd 1 %)",
            partial(engine.merge, small, inside=True),
        ),
        (
            "a merge that made it itself (3 %, sd 1 %)",
            partial(engine.merge, small, inside=False),
        ),
        ("a suite of ten, five with a step (3 %, sd 1 %)", partial(engine.suite, small)),
        (
            "a suite of ten that one command measures, likewise",
            partial(engine.suite_of_one_command, small),
        ),
    )
    columns = (
        *("scenario", "right", "any wrong", "excluded"),
        *("trials, median/90 %", "reference", "builds"),
    )
    rows, broken = [], []
    for name, simulate in scenarios:
        outcomes = run_all(simulate)
        broken += _broken(name, outcomes, math.nan, limit=ALPHA if "suite" in name else WRONG)
        rows.append(
            (
                name,
                _percent([one.right for one in outcomes]),
                _percent([one.wrong for one in outcomes]),
                _percent([one.excluded for one in outcomes]),
                *_costs(outcomes, math.nan),
            )
        )
    return Table("Not in the reference (3 %, sd 2 %, 128 commits)", columns, rows, broken)


def layout_table(run_all: RunLayouts) -> Table:
    """Return what layouts of each commit do to all names of a search; to the end, with 1 %."""
    columns = (
        *("step, %", "sd of layouts, %", "prose, %", "any wrong, %", "bound, %"),
        *("first wrong, %", "right, %", "not named, mean", "trials, median/90 %", "builds"),
    )
    rows, broken = [], []
    for cell in LAYOUTS:
        outcomes = run_all(partial(engine.layouts, cell))
        campaigns = len(outcomes)
        wrong, right = sum(one.wrong for one in outcomes), sum(one.right for one in outcomes)
        name = f"step {cell.step:g} %, layouts {cell.spread:g} %, prose {cell.prose:g}"
        if cell.is_bounded and wrong > at_most(campaigns, ALPHA):
            broken.append(f"{name}: {wrong} of {campaigns} searches named a wrong commit")
        if cell.is_bounded and right < at_least(campaigns, LAYOUTS_FOUND):
            broken.append(f"{name}: only {right} of {campaigns} searches named the right commit")
        trials = [one.trials for one in outcomes]
        rows.append(
            (
                f"{cell.step:g}",
                f"{cell.spread:g}",
                f"{100 * cell.prose:g}",
                _with_error([one.wrong for one in outcomes]),
                f"{100 * ALPHA:g}" if cell.is_bounded else "",
                _with_error([one.first_wrong for one in outcomes]),
                _with_error([one.right for one in outcomes]),
                f"{np.mean([one.unconfirmed for one in outcomes]):.2f}",
                f"{np.median(trials):.0f}/{np.percentile(trials, 90):.0f}",
                f"{np.median([one.builds for one in outcomes]):.0f}",
            )
        )
    return Table(
        f"Layouts of each commit (128 commits, sd {LAYOUTS_SD:g} %)", columns, rows, broken
    )


def drift_table(run_all: RunDrifts) -> Table:
    """Return how often it is said that a step grew or faded; searches to the end, with 1 %."""
    columns = (
        *("step, %", "over blocks", "sd, %", "sd of layouts, %", "noise", "named, %", "warned, %"),
        *("misses the mean of the first search, %", "warned of these"),
        *("misses the mean of all blocks, %", "warned of these"),
    )
    rows: list[tuple[str, ...]] = []
    broken = []
    warned_of_misses: list[bool] = []
    for cell in DRIFTS:
        outcomes = run_all(partial(engine.drifting, cell))
        named = [one for one in outcomes if one.named]
        warned = [one.warned for one in named]
        of_misses = [one.warned for one in named if one.misses]
        name = f"step {cell.first:g} to {cell.last:g} %, sd {cell.sd:g} %, {KINDS[cell.kind]}"
        if not cell.is_constant:
            warned_of_misses += of_misses
        elif sum(warned) > at_most(len(warned), TREND_LEVEL):
            broken.append(f"{name}: {sum(warned)} of {len(warned)} constant steps warned of")
        rows.append(
            (
                f"{cell.first:g}" if cell.is_constant else f"{cell.first:g} to {cell.last:g}",
                "" if cell.is_constant else f"{cell.blocks}",
                f"{cell.sd:g}",
                f"{cell.spread:g}",
                KINDS[cell.kind],
                _percent([one.named for one in outcomes]),
                _with_error(warned),
                _with_error([one.misses for one in named]),
                _count(of_misses),
                _with_error([one.misses_search for one in named]),
                _count([one.warned for one in named if one.misses_search]),
            )
        )
    if sum(warned_of_misses) < at_least(len(warned_of_misses), DRIFTS_WARNED):
        broken.append(f"steps that change: {_count(warned_of_misses)} missed ones are warned of")
    of_all = f"{_count(warned_of_misses)} ({_with_error(warned_of_misses)} %)"
    rows.append(("all that change", *[""] * 7, of_all, "", ""))
    return Table("Steps that grow or fade (128 commits)", columns, rows, broken)


def _count(flags: Sequence[bool]) -> str:
    return f"{sum(flags)} of {len(flags)}"


def _with_error(flags: Sequence[bool]) -> str:
    """Return a rate with its Monte Carlo error, in per cent."""
    if not flags:
        return ""
    rate = float(np.mean(flags))
    return f"{100 * rate:.1f} ± {100 * math.sqrt(rate * (1 - rate) / len(flags)):.1f}"


TABLES: dict[str, Callable[[RunEach, bool], Table]] = {
    "steps": lambda run_all, quick: main_table(_cells(MAIN, quick=quick), run_all, "One step"),
    "noises": lambda run_all, quick: main_table(
        _cells(NOISES, quick=quick), run_all, "Other noise"
    ),
    "profiles": lambda run_all, _: profile_table(run_all),
    "further": lambda run_all, _: further_table(run_all),
    "layouts": lambda run_all, _: layout_table(run_all),
    "drift": lambda run_all, _: drift_table(run_all),
}
"""All tables by name; with the function that runs simulations, and whether to be quick."""


def _cells(cells: Sequence[Cell], *, quick: bool) -> list[Cell]:
    return [cell for cell in cells if not (quick and cell.is_slow)]


def _broken(
    name: str, outcomes: Sequence[Outcome], reference: float, *, limit: float = WRONG
) -> list[str]:
    """Return the claims that fail by more than chance."""
    campaigns = len(outcomes)
    wrong = sum(one.wrong for one in outcomes)
    excluded = sum(one.excluded for one in outcomes)
    least_median = np.sort([one.trials for one in outcomes])[
        max(0, campaigns - 1 - at_most(campaigns, 0.5))
    ]
    broken = []
    if wrong > at_most(campaigns, limit):
        broken.append(f"{name}: {wrong} of {campaigns} campaigns named a wrong commit")
    if excluded > at_most(campaigns, ALPHA):
        broken.append(f"{name}: {excluded} of {campaigns} campaigns excluded the culprit")
    if least_median > TRIALS * reference:
        broken.append(f"{name}: a median of at least {least_median} trials, not {reference:g}")
    return broken


def _costs(outcomes: Sequence[Outcome], reference: float) -> tuple[str, str, str]:
    trials = np.array([one.trials for one in outcomes])
    median = float(np.median(trials))
    beside = (
        "" if math.isnan(reference) else f"{reference:g} ({100 * (median / reference - 1):+.0f} %)"
    )
    builds = np.median([one.builds for one in outcomes])
    return f"{median:.0f}/{np.percentile(trials, 90):.0f}", beside, f"{builds:.0f}"


def _rules(cell: Cell, campaigns: int, trials: float) -> str:
    """Return the rates of wrong names of the other rules, in one cell of the table."""
    rng = np.random.default_rng(RULES_SEED)
    truth = rng.integers(1, cell.count + 1, campaigns)
    levels: FloatArray = math.log1p(cell.step / 100) * (
        np.arange(cell.count + 1) >= truth[:, None]
    ).astype(np.float64)
    parts = []
    answers = rules(levels, cell.kind, cell.sd / 100, trials, rng)
    answers |= packages(levels, cell.kind, cell.sd / 100, rng)
    for name, (named, taken) in answers.items():
        wrong = 100 * np.mean((named > 0) & (named != truth[: len(named)]))
        none = 100 * np.mean(named < 0)
        parts.append(f"{name} {wrong:.1f} ({none:.0f}; {np.median(taken):.0f})")
    return ", ".join(parts)


def _percent(flags: Sequence[bool]) -> str:
    return f"{100 * np.mean(flags):.1f}"
