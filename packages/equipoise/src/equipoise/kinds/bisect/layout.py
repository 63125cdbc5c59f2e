"""Test whether a step of a bisection persists, or memory layouts alone may explain the step.

Each build has its own memory layout, so even commits that change nothing differ. A layout changes
the cost of one commit, a step changes the costs of all commits from one commit on. The model is:

    x = level(later) - level(earlier) + order_effect · order + noise
    level(c) = Σ of the steps up to c + layout(c),  layout(c) ~ N(0, s²)

x is the log cost of the later commit of a block minus the log cost of the earlier commit. order is
1 if the earlier commit ran first, else -1. c is any commit, and level(c) is its log cost. The
standard deviation s of layouts is unknown and has a half-t prior. The likelihood of s is restricted
(Harville 1974). All results are averages over the posterior of s (docs/methods/bisect.md).

With a trend added to one step, the model also tests whether this step was constant.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

import numpy as np
from msgspec import Struct

from equipoise.kinds.bisect.terms import StepTrend
from equipoise.stats.arrays import NORMAL_MAD, FloatArray

DEFAULT_LAYOUT_SPREAD = 0.003
"""Default scale of the half-t prior of s, in log units."""
PRIOR_DEGREES_OF_FREEDOM = 3
"""Degrees of freedom of the half-t prior."""
SPREAD_COUNT = 24
"""Number of values of s at which the posterior is computed."""
MAX_RESIDUAL = 2.5
"""Maximum residual of a block, in standard deviations; a larger residual is clipped."""
MIN_SCALE = 1e-6
"""Minimum standard deviation of a block's noise, in log units."""
MIN_POSITION_CHANCE = 0.8
"""Minimum probability that a step is at its own commit, not at a neighbouring commit."""
TREND_LEVEL = 0.01
"""Maximum chance that a search with constant steps reports a trend."""
MIN_TREND_BLOCKS = 10
"""Minimum number of blocks that measure a step, for an estimate of the trend."""
_ITERATION_COUNT = 4
"""Iterations that estimate the order effect, the noise and the clipped residuals."""


class LayoutBlock(Struct, frozen=True):
    """One block of a bisection."""

    earlier: int
    """Index of the earlier commit."""
    later: int
    """Index of the later commit."""
    difference: float
    """Log of the later commit's cost over the earlier commit's; infinite if a trial timed out."""
    order: int
    """1 if the earlier commit ran first, else -1."""


class CandidateStep(Struct, frozen=True):
    """The step of a candidate: a commit that makes a difference, as the bets show."""

    commit: int
    """Index of the commit; the step begins at the latest earlier commit that runs."""
    max_chance: float
    """Maximum chance of a too small step with which the commit may be named."""


def difference_of(costs: tuple[float, float]) -> float:
    """Return the log of the second cost over the first; NaN if both are infinite."""
    first, second = costs
    if 0.0 < first < math.inf and 0.0 < second < math.inf:
        return math.log(second) - math.log(first)
    if first == second:
        return math.nan if math.isinf(first) else 0.0
    return math.copysign(math.inf, second - first)


def persistent_steps(
    blocks: Sequence[LayoutBlock],
    candidates: Sequence[CandidateStep],
    *,
    margin: float,
    layout_spread: float = DEFAULT_LAYOUT_SPREAD,
    withdrawn: Collection[int] = (),
) -> tuple[int, ...]:
    """Return the candidates whose steps persist, in ascending order.

    Layouts alone cause differences between two commits, with the standard deviation √2·s. A step
    persists under two conditions. The chance that the step is at most √2·s or ``margin`` is at most
    the candidate's ``max_chance``. The chance that the step is at its own commit is at least
    `MIN_POSITION_CHANCE`. If a candidate fails, the worst candidate is left out, and the remaining
    candidates are tested again.

    ``blocks`` has all blocks of the line of commits; blocks of ``withdrawn`` commits are ignored.
    ``margin`` and ``layout_spread``, the scale of the prior of s, are in log units.
    """
    usable_blocks = _without_unusable(blocks, withdrawn)
    max_chances = {candidate.commit: candidate.max_chance for candidate in candidates}
    if not usable_blocks or not max_chances:
        return ()
    model = _LevelModel(usable_blocks, layout_spread)
    while max_chances:
        commits = sorted(max_chances)
        relative_chances = {
            commit: chance / max_chances[commit]
            for commit, chance in zip(
                commits, model.small_step_chances(commits, margin), strict=True
            )
        }
        worst_commit = max(commits, key=relative_chances.__getitem__)
        if relative_chances[worst_commit] <= 1.0:
            chances = {commit: model.position_chance(commits, commit) for commit in commits}
            worst_commit = min(commits, key=chances.__getitem__)
            if chances[worst_commit] >= MIN_POSITION_CHANCE:
                break
        del max_chances[worst_commit]
    return tuple(sorted(max_chances))


def step_trends(
    blocks: Sequence[LayoutBlock],
    named_commits: Sequence[int],
    step_commits: Sequence[int],
    *,
    layout_spread: float = DEFAULT_LAYOUT_SPREAD,
    withdrawn: Collection[int] = (),
) -> tuple[StepTrend | None, ...]:
    """Return how each named step grew or faded; ``None`` if no change is certain.

    A block measures a step if this step alone is between the two commits of the block.
    ``step_commits`` has all commits with a step, in ascending order; ``named_commits`` are some of
    them. The other parameters are those of `persistent_steps`.
    """
    usable_blocks = _without_unusable(blocks, withdrawn)
    if not usable_blocks or not named_commits:
        return (None,) * len(named_commits)
    model, trends = _LevelModel(usable_blocks, layout_spread), []
    for step in named_commits:
        block_indices = [
            index
            for index, block in enumerate(usable_blocks)
            if [other for other in step_commits if block.earlier < other <= block.later] == [step]
        ]
        trend = None
        if len(block_indices) >= MIN_TREND_BLOCKS:
            slope_column = np.zeros(len(usable_blocks))
            slope_column[block_indices] = np.asarray(block_indices) - np.mean(block_indices)
            trend = model.trend(step_commits, step, slope_column)
        is_certain = trend is not None and trend.chance * len(named_commits) <= TREND_LEVEL
        trends.append(trend if is_certain else None)
    return tuple(trends)


def _without_unusable(
    blocks: Sequence[LayoutBlock], withdrawn: Collection[int]
) -> list[LayoutBlock]:
    return [
        block
        for block in blocks
        if not math.isnan(block.difference) and not {block.earlier, block.later} & set(withdrawn)
    ]


class _LevelModel:
    """The model of the levels of the measured commits: steps and layouts.

    The calculation uses the eigenvectors of D'D, where D is the design matrix: a row for each
    block, a column for each commit. In this basis, all covariances of levels are diagonal.
    """

    def __init__(self, blocks: Sequence[LayoutBlock], layout_spread: float) -> None:
        self.commits = np.unique([(block.earlier, block.later) for block in blocks])
        design = np.zeros((len(blocks), len(self.commits)))
        rows = np.arange(len(blocks))
        design[rows, np.searchsorted(self.commits, [block.later for block in blocks])] = 1.0
        design[rows, np.searchsorted(self.commits, [block.earlier for block in blocks])] -= 1.0
        eigenvalues, self._vectors = np.linalg.eigh(design.T @ design)
        # Tiny eigenvalues are rounding errors of 0.
        eigenvalues = np.where(eigenvalues > 1e-9 * eigenvalues.max(), eigenvalues, 0.0)
        self._inverses = np.divide(
            1.0, eigenvalues, out=np.zeros_like(eigenvalues), where=eigenvalues > 0.0
        )
        levels, clipped, scale = _estimated_levels(blocks, design, self._inverses, self._vectors)
        precision = 1.0 / (scale * scale)
        self._design, self._clipped, self._precision = design, clipped, precision
        self._residuals = clipped - design @ levels
        self._eigenvalues = precision * eigenvalues
        self._weighted_sums = precision * (self._vectors.T @ (design.T @ clipped))
        spreads = np.linspace(0.0, max(float(np.ptp(levels)), MIN_SCALE), SPREAD_COUNT)
        self.spreads = spreads
        variances = spreads[:, None] ** 2
        self._shrinkage = 1.0 / (1.0 + variances * self._eigenvalues)
        self._weighted_squares = precision * float(clipped @ clipped) - np.sum(
            variances * self._shrinkage * self._weighted_sums**2, axis=1
        )
        self._log_determinants = np.sum(np.log1p(variances * self._eigenvalues), axis=1)
        degrees = PRIOR_DEGREES_OF_FREEDOM
        self._log_prior = -0.5 * (degrees + 1) * np.log1p((spreads / layout_spread) ** 2 / degrees)

    def small_step_chances(self, steps: Sequence[int], margin: float) -> FloatArray:
        """Return the probability that each step is at most the margin or √2·s."""
        weights, estimates, standard_errors, _ = self._posterior(steps)
        direction = np.sign(weights @ estimates)
        thresholds = np.maximum(margin, math.sqrt(2.0) * self.spreads)[:, None]
        z = (direction * estimates - thresholds) / standard_errors
        return np.asarray(weights @ _upper_tail(z))

    def position_chance(self, steps: Sequence[int], step: int) -> float:
        """Return the probability that a step is at its own commit.

        All measured commits between the neighbouring steps have equal prior probabilities.
        """
        earlier = max((other for other in steps if other < step), default=int(self.commits[0]))
        later = min((other for other in steps if other > step), default=int(self.commits[-1]) + 1)
        # The model has only measured commits: the next measured commit represents the step.
        own_position = int(self.commits[np.searchsorted(self.commits, step)])
        other_steps = [other for other in steps if other != step]
        positions = [int(commit) for commit in self.commits if earlier < commit < later]
        posteriors = (self._posterior([*other_steps, position]) for position in positions)
        evidence = np.array([log_evidence for *_, log_evidence in posteriors])
        chances = np.exp(evidence - evidence.max())
        return float(chances[positions.index(own_position)] / chances.sum())

    def trend(self, steps: Sequence[int], step: int, slope_column: FloatArray) -> StepTrend:
        """Return how a step grew or faded.

        ``slope_column`` has the shape (blocks,). It has the times, minus their mean, of the blocks
        that measure the step. It has 0 for all other blocks.
        """
        weights, estimates, standard_errors, _ = self._posterior(steps, slope_column)
        slope = float(weights @ estimates[:, -1])
        mean_step = float(weights @ estimates[:, steps.index(step)])
        z = np.abs(estimates[:, -1]) / (standard_errors[:, -1] * self._excess_spread())
        return StepTrend(
            first_ratio=math.exp(mean_step + slope * float(slope_column.min())),
            last_ratio=math.exp(mean_step + slope * float(slope_column.max())),
            chance=float(weights @ (2.0 * _upper_tail(z))),
        )

    def _excess_spread(self) -> float:
        """Return the standard deviation of the residuals over their MAD scale; at least 1."""
        scale = NORMAL_MAD * float(np.median(np.abs(self._residuals)))
        deviation = float(np.sqrt(np.mean(self._residuals**2)))
        return max(1.0, deviation / scale) if scale > 0.0 else 1.0

    def _posterior(
        self, steps: Sequence[int], slope_column: FloatArray | None = None
    ) -> tuple[FloatArray, FloatArray, FloatArray, float]:
        """Return the posterior of the steps for each s, and the evidence for their positions.

        The result is: the weight of each s, shape (spreads,); the estimates and the standard errors
        of the steps, both of shape (spreads, steps); the log evidence. With ``slope_column``, the
        last column of the estimates and errors is for the slope.
        """
        indicators = (self.commits[:, None] >= np.asarray(steps)).astype(np.float64)
        rotated = self._vectors.T @ indicators
        if slope_column is not None:
            # Levels explain a part of the slope column. Layouts have no effect on the rest.
            column_levels = self._inverses * (self._vectors.T @ (self._design.T @ slope_column))
            column_rest = slope_column - self._design @ (self._vectors @ column_levels)
            rotated = np.column_stack([rotated, column_levels])
        weights = self._eigenvalues * self._shrinkage
        information = np.einsum("cj,sc,ck->sjk", rotated, weights, rotated)
        scores = (self._shrinkage * self._weighted_sums) @ rotated
        if slope_column is not None:
            information[:, -1, -1] += self._precision * float(column_rest @ column_rest)
            scores[:, -1] += self._precision * float(column_rest @ self._clipped)
        covariances = np.linalg.inv(information)
        estimates = np.einsum("sjk,sk->sj", covariances, scores)
        standard_errors = np.sqrt(np.diagonal(covariances, axis1=1, axis2=2))
        residual_squares = self._weighted_squares - np.sum(scores * estimates, axis=1)
        determinants = np.linalg.slogdet(information)[1]
        log_weights = self._log_prior - 0.5 * (
            self._log_determinants + determinants + residual_squares
        )
        max_log = float(log_weights.max())
        scaled_weights = np.exp(log_weights - max_log)
        weight_sum = float(scaled_weights.sum())
        log_evidence = max_log + math.log(weight_sum)
        return scaled_weights / weight_sum, estimates, standard_errors, log_evidence


def _estimated_levels(
    blocks: Sequence[LayoutBlock], design: FloatArray, inverses: FloatArray, vectors: FloatArray
) -> tuple[FloatArray, FloatArray, float]:
    """Return the levels, the differences without order effect and outliers, and the noise scale.

    Each iteration fits the levels by least squares. Then it estimates the order effect and the
    scale from the residuals, and clips large residuals.
    """
    differences = np.array([block.difference for block in blocks])
    is_finite = np.isfinite(differences)
    # A timeout gets a large finite difference, so it is clipped like an outlier.
    max_difference = max(1.0, 2.0 * float(np.max(np.abs(differences[is_finite]), initial=0.0)))
    differences = np.clip(differences, -max_difference, max_difference)
    orders = np.array([float(block.order) for block in blocks])
    degrees = max(1, len(blocks) - len(inverses) + 1)
    clipped, levels, order_effect, scale = differences, np.zeros(len(inverses)), 0.0, MIN_SCALE
    for _ in range(_ITERATION_COUNT):
        levels = vectors @ (inverses * (vectors.T @ (design.T @ clipped)))
        fitted = design @ levels
        residuals = differences - fitted
        if {-1.0, 1.0} <= set(orders):
            medians = [float(np.median(residuals[orders == order])) for order in (1.0, -1.0)]
            order_effect = 0.5 * (medians[0] - medians[1])
        residuals -= order_effect * orders
        sizes = np.abs(residuals)
        spread = NORMAL_MAD * float(np.median(sizes)) or float(np.sqrt(np.mean(sizes**2)))
        scale = max(MIN_SCALE, spread * math.sqrt(len(blocks) / degrees))
        clipped = fitted + np.clip(residuals, -MAX_RESIDUAL * scale, MAX_RESIDUAL * scale)
    return levels, clipped, scale


def _upper_tail(z: FloatArray) -> FloatArray:
    """Return the probability that a standard normal variable exceeds each z."""
    tails = [0.5 * math.erfc(value / math.sqrt(2.0)) for value in z.ravel().tolist()]
    return np.asarray(tails).reshape(z.shape)
