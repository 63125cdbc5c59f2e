"""The shipped engine on simulated commits, a campaign at a time."""

from __future__ import annotations

import math
import zlib
from collections.abc import Collection, Sequence

import numpy as np
from msgspec import Struct

from benchmarks.bisect.cells import (
    LAYOUTS_COUNT,
    LAYOUTS_SD,
    PROFILE_BLOCKS,
    PROFILE_COUNT,
    PROFILE_SD,
    Cell,
    DriftCell,
    LayoutCell,
    Profile,
)
from benchmarks.bisect.noise import series
from equipoise.kinds.bisect.search import Bisection, BranchingBisection
from equipoise.kinds.bisect.shared_blocks import SharedBlocks, next_pairs
from equipoise.kinds.bisect.stretch import OwnPairs
from equipoise.model.quantities import Interval
from equipoise.revisions.commits import MergedBranch
from packages.equipoise.tests.kinds.bisect.bisected import one_step, search, steps
from packages.equipoise.tests.stats.simulated import FloatArray, Noise

ALPHA = 0.05
MAX_BLOCKS = 1500
MIN_EFFECT = 1.0
"""Percent, where what is left of a gap is looked at; in the main table any gap counts."""
BUILD_TRIALS = 10.0
"""What a build costs, in trials: enough to count."""


class Outcome(Struct, frozen=True):
    """What came of one campaign."""

    right: bool
    """Whether each step was named, and in the right commit."""
    wrong: bool
    """Whether any commit without a step was named."""
    excluded: bool
    """Whether the only step's commit was excluded as the one that made the whole difference."""
    several: bool
    """Whether the first search ended without a single culprit."""
    trials: int
    builds: int


def single(cell: Cell, seed: int) -> Outcome:
    """Search one step to the first verdict."""
    rng = _random(cell, seed)
    culprit = int(rng.integers(1, cell.count + 1))
    return _searched(cell, rng, culprit, Bisection(cell.count, alpha=ALPHA))


def with_prior(cell: Cell, seed: int, *, holds: bool) -> Outcome:
    """Search one step with a tenth of the commits ten times as likely, the culprit's or not."""
    rng = _random(cell, seed)
    culprit = int(rng.integers(1, cell.count + 1))
    prior = np.ones(cell.count)
    others = np.setdiff1d(np.arange(cell.count), [culprit - 1])
    prior[rng.choice(others, cell.count // 10, replace=False)] = 10.0
    prior[culprit - 1] = 10.0 if holds else 1.0
    bisection = Bisection(cell.count, alpha=ALPHA, prior=prior.tolist())
    return _searched(cell, rng, culprit, bisection)


def with_broken(cell: Cell, seed: int) -> Outcome:
    """Search one step where a fifth of the commits do not build; a right name has the culprit."""
    rng = _random(cell, seed)
    culprit = int(rng.integers(1, cell.count + 1))
    broken = {int(one) for one in rng.choice(np.arange(1, cell.count), cell.count // 5, False)}
    return _searched(cell, rng, culprit, Bisection(cell.count, alpha=ALPHA), broken)


def profile(shape: Profile, seed: int) -> Outcome:
    """Search until nothing is left to ask, with the reference's limit on what is left."""
    rng = _random(shape, seed)
    jumps = {commit: math.log1p(percent / 100) for commit, percent in shape.steps.items()}
    bisection = Bisection(
        PROFILE_COUNT, alpha=ALPHA, min_effect=MIN_EFFECT, remainder_blocks=PROFILE_BLOCKS
    )
    ran = search(
        steps(PROFILE_COUNT, jumps),
        _noise("gauss", PROFILE_SD / 100),
        rng,
        bisection,
        blocks=4 * MAX_BLOCKS,
        build_trials=BUILD_TRIALS,
    )
    named = {step.last for step in bisection.named_steps}
    return Outcome(
        right=set(jumps) <= named,
        wrong=not named <= set(jumps),
        excluded=False,
        several=bisection.state().stretches[0].verdict == "several",
        trials=ran.trials,
        builds=ran.builds,
    )


class LayoutOutcome(Struct, frozen=True):
    """What came of one search to its end, with all its names."""

    wrong: bool
    """Whether any commit without the step is named."""
    first_wrong: bool
    """Whether the first name is wrong."""
    right: bool
    """Whether the commit with the step is named; without a step, whether nothing is."""
    unconfirmed: int
    """Commits that differ from the one before and are not named."""
    trials: int
    builds: int


def layouts(cell: LayoutCell, seed: int) -> LayoutOutcome:
    """Search until nothing is left to ask, where each commit has a layout of its own.

    The culprit is never among the commits that change only prose.
    """
    rng = _random(cell, seed)
    culprit = int(rng.integers(1, LAYOUTS_COUNT + 1))
    levels = one_step(LAYOUTS_COUNT, math.log1p(cell.step / 100), culprit)
    levels = levels + rng.normal(0.0, cell.spread / 100, len(levels))
    prose = [
        commit
        for commit in range(1, LAYOUTS_COUNT + 1)
        if rng.random() < cell.prose and commit != culprit
    ]
    bisection = Bisection(
        LAYOUTS_COUNT, alpha=ALPHA, min_effect=MIN_EFFECT, documentation_commits=prose
    )
    ran = search(
        levels,
        _noise("gauss", LAYOUTS_SD / 100),
        rng,
        bisection,
        blocks=4 * MAX_BLOCKS,
        build_trials=BUILD_TRIALS,
    )
    named = [step.last for step in bisection.named_steps]
    right = [culprit] if cell.step else []
    return LayoutOutcome(
        wrong=not set(named) <= set(right),
        first_wrong=bool(named) and named[0] not in right,
        right=culprit in named if cell.step else not named,
        unconfirmed=len(bisection.unconfirmed_steps),
        trials=ran.trials,
        builds=ran.builds,
    )


class DriftOutcome(Struct, frozen=True):
    """What came of one search for a step that may change, to its end."""

    named: bool
    """Whether the commit with the step is named."""
    misses: bool
    """Whether its interval leaves out the mean of its step over the first search."""
    misses_search: bool
    """Whether its interval leaves out the mean of its step over all blocks."""
    warned: bool
    """Whether the warning is given that the step grew or faded."""


def drifting(cell: DriftCell, seed: int) -> DriftOutcome:
    """Search a step that may grow or fade, among commits with layouts, until nothing is left."""
    rng = _random(cell, seed)
    culprit = int(rng.integers(1, LAYOUTS_COUNT + 1))
    layouts = rng.normal(0.0, cell.spread / 100, LAYOUTS_COUNT + 1)
    # One block more than the change takes, in which it has its last size.
    step = np.log1p(np.linspace(cell.first, cell.last, cell.blocks + 1) / 100)
    levels = layouts + step[:, np.newaxis] * one_step(LAYOUTS_COUNT, 1.0, culprit)
    bisection = Bisection(LAYOUTS_COUNT, alpha=ALPHA, min_effect=MIN_EFFECT)
    search(
        levels,
        _noise(cell.kind, cell.sd / 100),
        rng,
        bisection,
        blocks=MAX_BLOCKS,
        build_trials=BUILD_TRIALS,
    )
    state = bisection.state()
    for named, trend in zip(state.named_steps, bisection.trends, strict=True):
        if named.last == culprit:
            of_layouts = float(layouts[culprit] - layouts[named.first - 1])
            misses, misses_search = (
                not _covers(named.ratio_ci, _mean_of(step, blocks) + of_layouts)
                for blocks in (state.stretches[0].blocks, state.blocks)
            )
            return DriftOutcome(True, misses, misses_search, trend is not None)
    return DriftOutcome(named=False, misses=False, misses_search=False, warned=False)


def _mean_of(step: FloatArray, blocks: int) -> float:
    """Return the mean log step over so many blocks; the last size goes on."""
    return float(np.mean(step[np.minimum(np.arange(blocks), len(step) - 1)]))


def _covers(interval: Interval, log_ratio: float) -> bool:
    low, high = interval
    ratio = math.exp(log_ratio)
    return (low is None or low <= ratio) and (high is None or ratio <= high)


BRANCH = 16
"""Commits of the branch of a merge."""


def merge(cell: Cell, seed: int, *, inside: bool) -> Outcome:
    """Name a merge among the cell's commits, then the culprit in its branch, if it is inside.

    Else the merge itself made the difference. Each commit of the line is a merge of such a branch;
    a branch begins at the first parent of its merge.
    """
    rng = _random(cell, seed)
    count, step = cell.count, math.log1p(cell.step / 100)
    merge, culprit = int(rng.integers(1, count + 1)), int(rng.integers(1, BRANCH + 1))
    levels = list(one_step(count, step, merge))
    branches = []
    for one in range(1, count + 1):
        first = len(levels)
        branches.append(MergedBranch(one, (one - 1, *range(first, first + BRANCH))))
        steps_inside = one_step(BRANCH, step if inside and one == merge else 0.0, culprit)
        levels += list(levels[one - 1] + steps_inside[1:])
    bisection = BranchingBisection(Bisection(count, alpha=ALPHA, min_effect=MIN_EFFECT), branches)
    ran = search(
        np.array(levels),
        _noise(cell.kind, cell.sd / 100),
        rng,
        bisection,
        ends=(0, count),
        blocks=4 * MAX_BLOCKS,
        build_trials=BUILD_TRIALS,
    )
    line, *others = bisection.lines()
    named = [(one.merge, step.last) for one in (line, *others) for step in one.state.named_steps]
    wanted = [(None, merge), *([(merge, culprit)] if inside else [])]
    return Outcome(
        right=set(wanted) <= set(named)
        and (inside or [one.state.verdict for one in others] == ["no difference"]),
        wrong=not set(named) <= set(wanted),
        excluded=line.state.excluded[merge - 1],
        several=line.state.verdict == "several",
        trials=ran.trials,
        builds=ran.builds,
    )


def suite(cell: Cell, seed: int) -> Outcome:
    """Search ten benchmarks of a command each: five have a step, five have none."""
    rng = _random(cell, seed)
    culprits, levels, bisections = _suite(cell, rng)
    commands = [SharedBlocks([one]) for one in bisections]
    built, trials = {0, cell.count}, 0
    noise = _noise(cell.kind, cell.sd / 100)
    for _ in range(MAX_BLOCKS):
        open_ones = [at for at, one in enumerate(bisections) if _is_searched(one)]
        if not open_ones:
            break
        pairs = next_pairs([commands[at] for at in open_ones], built, BUILD_TRIALS)
        for place, pair in pairs.items():
            at = open_ones[place]
            built.update(pair)
            # A coin for each benchmark in each block.
            first = int(rng.choice(pair))
            costs = _costs(levels[at], pair, first, noise(rng, 2))
            commands[at].add([costs], first)
            trials += 2
    return _of_suite(bisections, culprits, trials, len(built))


def suite_of_one_command(cell: Cell, seed: int) -> Outcome:
    """Search ten benchmarks of one command, which share its trials and coins; as `suite`."""
    rng = _random(cell, seed)
    culprits, levels, bisections = _suite(cell, rng)
    command = SharedBlocks(bisections)
    built, trials = {0, cell.count}, 0
    noise = _noise(cell.kind, cell.sd / 100)
    while trials < 10 * MAX_BLOCKS and any(map(_is_searched, bisections)):
        pair = command.next_pair(built, BUILD_TRIALS)
        assert pair is not None, "an open search has a pair"
        built.update(pair)
        first = int(rng.choice(pair))
        command.add([_costs(one, pair, first, noise(rng, 2)) for one in levels], first)
        trials += 2
    return _of_suite(bisections, culprits, trials, len(built))


def _suite(
    cell: Cell, rng: np.random.Generator
) -> tuple[list[int | None], list[FloatArray], list[BranchingBisection]]:
    """Draw the culprits of ten benchmarks; return them, the log costs and the searches."""
    own_pairs = OwnPairs()
    culprits = [int(rng.integers(1, cell.count + 1)) if at % 2 else None for at in range(10)]
    effect = math.log1p(cell.step / 100)
    levels = [one_step(cell.count, effect, one or cell.count + 1) for one in culprits]
    bisections = [
        BranchingBisection(
            Bisection(cell.count, alpha=ALPHA, min_effect=MIN_EFFECT, own_pairs=own_pairs)
        )
        for _ in culprits
    ]
    return culprits, levels, bisections


def _is_searched(one: BranchingBisection) -> bool:
    """Return whether a search has no verdict yet."""
    return one.is_open and one.verdict in ("confirming", "searching")


def _costs(
    levels: FloatArray, pair: tuple[int, int], first: int, noise: FloatArray
) -> dict[int, float]:
    (second,) = (one for one in pair if one != first)
    logs = {first: levels[first] + noise[0], second: levels[second] + noise[1]}
    return {commit: math.exp(log) for commit, log in logs.items()}


def _of_suite(
    bisections: Sequence[BranchingBisection],
    culprits: Sequence[int | None],
    trials: int,
    builds: int,
) -> Outcome:
    named = [[step.last for step in one.named_steps] for one in bisections]
    right = [[] if one is None else [one] for one in culprits]
    excluded = (
        one is not None and bisection.state().excluded[one - 1]
        for bisection, one in zip(bisections, culprits, strict=True)
    )
    return Outcome(
        right=named == right,
        wrong=any(not set(one) <= set(it) for one, it in zip(named, right, strict=True)),
        excluded=any(excluded),
        several=any(one.verdict == "several" for one in bisections),
        trials=trials,
        builds=builds,
    )


def _searched(
    cell: Cell,
    rng: np.random.Generator,
    culprit: int | None,
    bisection: Bisection,
    broken: Collection[int] = frozenset(),
    most: int = MAX_BLOCKS,
) -> Outcome:
    levels = one_step(cell.count, math.log1p(cell.step / 100), culprit or cell.count + 1)
    ran = search(
        levels,
        _noise(cell.kind, cell.sd / 100),
        rng,
        bisection,
        blocks=most,
        build_trials=BUILD_TRIALS,
        broken=broken,
        until=lambda one: one.verdict not in ("confirming", "searching"),
    )
    named = bisection.named_steps
    hits = [culprit is not None and step.first <= culprit <= step.last for step in named]
    state = bisection.state()
    return Outcome(
        right=any(hits) if culprit is not None else not named,
        wrong=not all(hits),
        excluded=culprit is not None and state.excluded[culprit - 1],
        several=state.verdict == "several",
        trials=ran.trials,
        builds=ran.builds,
    )


def _together(parts: Sequence[Outcome], *, whole: bool) -> Outcome:
    return Outcome(
        right=whole and all(part.right for part in parts),
        wrong=any(part.wrong for part in parts),
        excluded=any(part.excluded for part in parts),
        several=any(part.several for part in parts),
        trials=sum(part.trials for part in parts),
        builds=sum(part.builds for part in parts),
    )


def _random(scenario: Cell | Profile | LayoutCell | DriftCell, seed: int) -> np.random.Generator:
    """Return generators that have nothing in common between scenarios either."""
    return np.random.default_rng([seed, zlib.crc32(repr(scenario).encode())])


def _noise(kind: str, sd: float) -> Noise:
    def by_trial(rng: np.random.Generator, trials: int) -> FloatArray:
        return series(kind, sd, 1, trials, rng).reshape(-1)

    return by_trial
