"""Test whether a step of a bisection persists, or memory layouts alone may explain it.

The bets of a bisection compare two builds. Each build has its own memory layout, so even commits
that change nothing differ, and the search picks the two that differ most. A layout moves the cost
of one commit; a step moves the costs of its commit and of all later commits. A model with both
judges the steps:

    x = level(later) - level(earlier) + slot · order + noise
    level(c) = Σ of the steps up to c + layout(c),  layout(c) ~ N(0, s²)

x is the difference of the log costs of a block; slot is the effect of the position in the block.
The unknown s has a half-t prior and a restricted likelihood (Harville 1974: the steps have flat
priors), and all results are averages over its posterior. The model can only withdraw a named
commit, so the guarantee of the coin does not depend on the model.

With a trend added to one step, the model also tests whether this step was constant. Layouts matter
for this test, because early and late blocks run different commits.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

import numpy as np
from msgspec import Struct

from equipoise.kinds.bisect.terms import StepTrend
from equipoise.stats.arrays import NORMAL_MAD, FloatArray

LAYOUT_SPREAD = 0.003
"""Default scale of the half-t prior of s, in log units, unless a campaign over layouts measured a
larger spread."""
PRIOR_DEGREES_OF_FREEDOM = 3
"""Degrees of freedom of the half-t prior."""
SPREAD_COUNT = 24
"""Number of values of s at which the posterior is computed."""
MAX_RESIDUAL = 2.5
"""Standard deviations to which a larger residual of a block is reduced."""
MIN_SCALE = 1e-6
"""Minimum standard deviation of a block's noise, in log units."""
MIN_POSITION_CHANCE = 0.8
"""Minimum probability that a step is at its own commit, among all commits between its neighbours.
"""
TREND_LEVEL = 0.01
"""Maximum chance that a search reports a trend if its steps are constant."""
MIN_TREND_BLOCKS = 10
"""Minimum number of blocks with a step for an estimate of its trend."""
_ITERATION_COUNT = 4
"""Iterations that estimate the slot effect, the noise and the clipped residuals."""


class LayoutBlock(Struct, frozen=True):
    """One block of a bisection."""

    before: int
    """Index of the earlier commit."""
    after: int
    """Index of the later commit."""
    difference: float
    """Log of the later commit's cost over the earlier commit's; infinite if a trial timed out."""
    order: int
    """1 if the earlier commit ran first, else -1."""


class CandidateStep(Struct, frozen=True):
    """The step of a commit that makes a difference by the bets."""

    commit: int
    """Index of the commit; its step is from the latest earlier commit that runs."""
    level: float
    """Maximum probability of a too small step with which the commit is still named."""


def difference_of(costs: tuple[float, float]) -> float:
    """Return the log of the second cost over the first; NaN if both are infinite."""
    before, after = costs
    if 0.0 < before < math.inf and 0.0 < after < math.inf:
        return math.log(after) - math.log(before)
    if before == after:
        return math.nan if math.isinf(before) else 0.0
    return math.copysign(math.inf, after - before)


def persistent_steps(
    blocks: Sequence[LayoutBlock],
    candidates: Sequence[CandidateStep],
    *,
    margin: float,
    layout_spread: float = LAYOUT_SPREAD,
    withdrawn: Collection[int] = (),
) -> tuple[int, ...]:
    """Return the candidates whose steps persist, in ascending order.

    A step persists if it is larger than ``margin`` and than √2·s, the standard deviation that
    layouts cause between two commits: the probability of a smaller step is at most its level. Its
    position must also have at least the probability `MIN_POSITION_CHANCE`. The worst candidate that
    fails is left out and counts as a layout, until all others pass.

    Parameters
    ----------
    blocks
        All blocks of the line of commits.
    margin
        Log units, from 0 up.
    layout_spread
        Scale of the prior of s, in log units; above 0.
    withdrawn
        Commits that do not run; their blocks are ignored.
    """
    usable = _usable(blocks, withdrawn)
    remaining = {candidate.commit: candidate.level for candidate in candidates}
    if not usable or not remaining:
        return ()
    model = _Model(usable, layout_spread)
    while remaining:
        commits = sorted(remaining)
        excess = {
            commit: chance / remaining[commit]
            for commit, chance in zip(
                commits, model.small_step_chances(commits, margin), strict=True
            )
        }
        worst = max(commits, key=excess.__getitem__)
        if excess[worst] <= 1.0:
            chances = {commit: model.position_chance(commits, commit) for commit in commits}
            worst = min(commits, key=chances.__getitem__)
            if chances[worst] >= MIN_POSITION_CHANCE:
                break
        del remaining[worst]
    return tuple(sorted(remaining))


def step_trends(
    blocks: Sequence[LayoutBlock],
    named: Sequence[int],
    steps: Sequence[int],
    *,
    layout_spread: float = LAYOUT_SPREAD,
    withdrawn: Collection[int] = (),
) -> tuple[StepTrend | None, ...]:
    """Return the line by which each named step grew or faded; ``None`` if no change is certain.

    A block measures a step if it contains this step and no other step.

    Parameters
    ----------
    blocks, layout_spread, withdrawn
        As for `persistent_steps`.
    named
        Commits of ``steps`` that are named.
    steps
        Commits with a step, in ascending order.
    """
    usable = _usable(blocks, withdrawn)
    if not usable or not named:
        return (None,) * len(named)
    model, trends = _Model(usable, layout_spread), []
    for step in named:
        numbers = [
            number
            for number, block in enumerate(usable)
            if [other for other in steps if block.before < other <= block.after] == [step]
        ]
        line = None
        if len(numbers) >= MIN_TREND_BLOCKS:
            slope_column = np.zeros(len(usable))
            slope_column[numbers] = np.asarray(numbers) - np.mean(numbers)
            line = model.trend(steps, step, slope_column)
        is_certain = line is not None and line.chance * len(named) <= TREND_LEVEL
        trends.append(line if is_certain else None)
    return tuple(trends)


def _usable(blocks: Sequence[LayoutBlock], withdrawn: Collection[int]) -> Sequence[LayoutBlock]:
    return [
        block
        for block in blocks
        if not math.isnan(block.difference) and not {block.before, block.after} & set(withdrawn)
    ]


class _Model:
    """The model of the levels of the measured commits: steps and layouts.

    All matrices are diagonal for each s in the eigenvectors of the normal equations of the levels.
    """

    def __init__(self, blocks: Sequence[LayoutBlock], layout_spread: float) -> None:
        self.commits = np.unique([(block.before, block.after) for block in blocks])
        design = np.zeros((len(blocks), len(self.commits)))
        rows = np.arange(len(blocks))
        design[rows, np.searchsorted(self.commits, [block.after for block in blocks])] = 1.0
        design[rows, np.searchsorted(self.commits, [block.before for block in blocks])] -= 1.0
        eigenvalues, self._vectors = np.linalg.eigh(design.T @ design)
        eigenvalues = np.where(eigenvalues > 1e-9 * eigenvalues.max(), eigenvalues, 0.0)
        self._inverse = np.divide(
            1.0, eigenvalues, out=np.zeros_like(eigenvalues), where=eigenvalues > 0.0
        )
        levels, clipped, scale = _levels(blocks, design, self._inverse, self._vectors)
        weight = 1.0 / (scale * scale)
        self._design, self._clipped, self._weight = design, clipped, weight
        self._residuals = clipped - design @ levels
        self._eigenvalues = weight * eigenvalues
        self._sums = weight * (self._vectors.T @ (design.T @ clipped))
        spreads = np.linspace(0.0, max(float(np.ptp(levels)), MIN_SCALE), SPREAD_COUNT)
        self.spreads = spreads
        variances = spreads[:, None] ** 2
        self._shrinkage = 1.0 / (1.0 + variances * self._eigenvalues)
        self._squares = weight * float(clipped @ clipped) - np.sum(
            variances * self._shrinkage * self._sums**2, axis=1
        )
        self._log_determinants = np.sum(np.log1p(variances * self._eigenvalues), axis=1)
        freedom = PRIOR_DEGREES_OF_FREEDOM
        self._log_prior = -0.5 * (freedom + 1) * np.log1p((spreads / layout_spread) ** 2 / freedom)

    def small_step_chances(self, steps: Sequence[int], margin: float) -> FloatArray:
        """Return the probability that each step is at most the margin or √2·s."""
        weights, estimates, errors, _ = self._posterior(steps)
        direction = np.sign(weights @ estimates)
        thresholds = np.maximum(margin, math.sqrt(2.0) * self.spreads)[:, None]
        z = (direction * estimates - thresholds) / errors
        return np.asarray(weights @ _upper_tail(z))

    def position_chance(self, steps: Sequence[int], step: int) -> float:
        """Return the probability that a step is at its own commit, not at another in between.

        All measured commits between the neighbouring steps have the same prior probability.
        """
        earlier = max((other for other in steps if other < step), default=int(self.commits[0]))
        later = min((other for other in steps if other > step), default=int(self.commits[-1]) + 1)
        # A step may be anywhere between two measured commits; the later commit represents it.
        own_position = int(self.commits[np.searchsorted(self.commits, step)])
        others = [other for other in steps if other != step]
        positions = [int(commit) for commit in self.commits if earlier < commit < later]
        evidence = np.array([self._posterior([*others, position])[3] for position in positions])
        chances = np.exp(evidence - evidence.max())
        return float(chances[positions.index(own_position)] / chances.sum())

    def trend(self, steps: Sequence[int], step: int, slope_column: FloatArray) -> StepTrend:
        """Return the line through a step; the slope column has a value for each block."""
        weights, estimates, errors, _ = self._posterior(steps, slope_column)
        slope = float(weights @ estimates[:, -1])
        level = float(weights @ estimates[:, steps.index(step)])
        z = np.abs(estimates[:, -1]) / (errors[:, -1] * self._excess_spread())
        return StepTrend(
            first_ratio=math.exp(level + slope * float(slope_column.min())),
            last_ratio=math.exp(level + slope * float(slope_column.max())),
            chance=float(weights @ (2.0 * _upper_tail(z))),
        )

    def _excess_spread(self) -> float:
        """Return the standard deviation of the clipped residuals over their scale, at least 1."""
        scale = NORMAL_MAD * float(np.median(np.abs(self._residuals)))
        deviation = float(np.sqrt(np.mean(self._residuals**2)))
        return max(1.0, deviation / scale) if scale > 0.0 else 1.0

    def _posterior(
        self, steps: Sequence[int], slope_column: FloatArray | None = None
    ) -> tuple[FloatArray, FloatArray, FloatArray, float]:
        """Return the posterior of the steps for each s, and the evidence for their positions.

        The result is: the weight of each s, shape (spreads,); the estimates of the steps and their
        standard errors, each of shape (spreads, steps); the log evidence. With a slope column, the
        slope is the last step.
        """
        indicators = (self.commits[:, None] >= np.asarray(steps)).astype(np.float64)
        rotated = self._vectors.T @ indicators
        if slope_column is not None:
            # A part of the column is a sum of levels; layouts do not change the rest.
            inside = self._inverse * (self._vectors.T @ (self._design.T @ slope_column))
            outside = slope_column - self._design @ (self._vectors @ inside)
            rotated = np.column_stack([rotated, inside])
        weights = self._eigenvalues * self._shrinkage
        information = np.einsum("cj,sc,ck->sjk", rotated, weights, rotated)
        scores = (self._shrinkage * self._sums) @ rotated
        if slope_column is not None:
            information[:, -1, -1] += self._weight * float(outside @ outside)
            scores[:, -1] += self._weight * float(outside @ self._clipped)
        inverse = np.linalg.inv(information)
        estimates = np.einsum("sjk,sk->sj", inverse, scores)
        errors = np.sqrt(np.diagonal(inverse, axis1=1, axis2=2))
        residual_squares = self._squares - np.sum(scores * estimates, axis=1)
        determinants = np.linalg.slogdet(information)[1]
        logs = self._log_prior - 0.5 * (self._log_determinants + determinants + residual_squares)
        max_log = float(logs.max())
        chances = np.exp(logs - max_log)
        total = float(chances.sum())
        return chances / total, estimates, errors, max_log + math.log(total)


def _levels(
    blocks: Sequence[LayoutBlock], design: FloatArray, inverse: FloatArray, vectors: FloatArray
) -> tuple[FloatArray, FloatArray, float]:
    """Return the levels, the differences without slot effect and outliers, and the noise scale."""
    differences = np.array([block.difference for block in blocks])
    finite = np.isfinite(differences)
    # A timeout gets a large difference, which is clipped like an outlier.
    limit = max(1.0, 2.0 * float(np.max(np.abs(differences[finite]), initial=0.0)))
    differences = np.clip(differences, -limit, limit)
    orders = np.array([float(block.order) for block in blocks])
    freedom = max(1, len(blocks) - len(inverse) + 1)
    clipped, levels, slot, scale = differences, np.zeros(len(inverse)), 0.0, MIN_SCALE
    for _ in range(_ITERATION_COUNT):
        levels = vectors @ (inverse * (vectors.T @ (design.T @ clipped)))
        fitted = design @ levels
        residuals = differences - fitted
        if {-1.0, 1.0} <= set(orders):
            slot = 0.5 * float(np.median(residuals[orders > 0]) - np.median(residuals[orders < 0]))
        residuals -= slot * orders
        sizes = np.abs(residuals)
        spread = NORMAL_MAD * float(np.median(sizes)) or float(np.sqrt(np.mean(sizes**2)))
        scale = max(MIN_SCALE, spread * math.sqrt(len(blocks) / freedom))
        clipped = fitted + np.clip(residuals, -MAX_RESIDUAL * scale, MAX_RESIDUAL * scale)
    return levels, clipped, scale


def _upper_tail(z: FloatArray) -> FloatArray:
    """Return the probability that a standard normal variable exceeds each z."""
    tails = [0.5 * math.erfc(value / math.sqrt(2.0)) for value in z.ravel().tolist()]
    return np.asarray(tails).reshape(z.shape)
