"""Statistics over the campaigns of several hosts (docs/methods/fleet.md).

Each host has its own campaign and its own coin. The log ratio of a host is assumed to be constant.
The *asked hosts* are all hosts of the plan.

All intervals are confidence sequences: they hold at every interim analysis. Sequences *hold
together* at a level if the chance of any error is at most this level. Three families of claims
have ``alpha`` each: the means over hosts, the new host, and the hosts that differ from the others.

A *round* is block i of every host, used as one bet on the weighted mean over the hosts. A *roster*
is the set of hosts in a round. If a host leaves, the remaining hosts are the next roster, which has
a sequence of its own. The hosts' own sequences share 0.1 of the alpha of the means. The first
roster has 0.8 of this alpha, and roster number g > 1 has 0.1/(g(g - 1)).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Literal

import numpy as np
from msgspec import Struct

from equipoise._native import BettingSequence, student_quantile
from equipoise.model.errors import UnusableInput
from equipoise.model.quantities import Interval, counted
from equipoise.model.result import VarianceComponent, Verdict
from equipoise.stats.arrays import FloatArray
from equipoise.stats.describe import ln_ratio_of_means, ln_ratios_without_one_block
from equipoise.stats.levels import variance_by_level
from equipoise.stats.sequence import PairedBlocks
from equipoise.stats.slow_runs import have_balanced_slow_runs, ln_bound_of_means
from equipoise.stats.verdict import (
    check_alpha,
    e_value_of,
    earliest_block,
    equivalence_level,
    finite_ratio,
    margin_of,
    running_interval,
    verdict_by_intervals,
)

CampaignState = Literal["measuring", "finished", "lost"]
"""State of a host's campaign. ``finished``: the campaign ended by its own rules. ``lost``: the
campaign stopped too early, or never began."""

SHARE_OF_HOSTS = 0.1
"""Share of alpha for the mean of the hosts' own sequences, if there are rounds."""
SHARE_OF_FIRST_ROSTER = 0.8
"""Share of alpha for the rounds of the first roster."""
_MAX_WEIGHT_ERROR = 1e-9
"""Maximum difference between the sum of the weights and 1."""
_INFINITE_BOUNDS = (-math.inf, math.inf)
_MIN_ORDER_EFFECT_BLOCKS = 6
"""Minimum number of blocks for an estimate of the order effect."""
_ORDER_EFFECT_GROWTH = 1.25
"""The order effect is estimated again when the number of blocks has grown by this factor."""


class HostBlocks(Struct, frozen=True):
    """The known blocks of one asked host for one comparison."""

    name: str
    identity: str
    """Text that identifies the host: campaigns on one host have equal identities."""
    blocks: PairedBlocks
    weight: float
    """Weight in the mean over the asked hosts, declared before the first trial."""
    state: CampaignState = "measuring"
    known_at_end: tuple[int, ...] | None = None
    """Number of blocks of each asked host that were known when other hosts ended this campaign.
    ``None`` if the campaign did not end, or ended for reasons of its own."""


class LogInterval(Struct, frozen=True):
    """An interval in log units; an unknown bound is infinite."""

    low: float
    high: float

    @property
    def ratio_ci(self) -> Interval:
        """Interval as ratios; ``None`` for a bound that is not finite."""
        return (finite_ratio(self.low), finite_ratio(self.high))


class Bounds(LogInterval, frozen=True):
    """A confidence sequence."""

    level: float
    """1 minus the coverage."""
    unknown_because: str | None = None
    """Reason why a bound is missing; ``None`` if both bounds are finite."""


class HostClaims(Struct, frozen=True):
    """Claims about one asked host."""

    blocks: int
    ln_ratio: float | None
    """Huber centre, a robust mean, of the block differences. ``None`` without a block; ±inf if
    half of the differences are infinite."""
    bounds: Bounds
    """Confidence sequence of the host. The sequences of all asked hosts hold together."""
    ratio_is_constant: bool
    """Whether a constant ratio agrees with the host's whole campaign."""
    mean_of_others: Bounds
    """Confidence sequence of the mean over the other asked hosts."""
    direction: Literal["slower", "faster"] | None
    """Whether the ratio on this host is larger (``slower``) or smaller (``faster``) than the mean
    ratio of the others. The chance of an error on any host is at most alpha."""

    @property
    def ratio(self) -> float | None:
        """Typical ratio; ``None`` if it is not finite."""
        return None if self.ln_ratio is None else finite_ratio(self.ln_ratio)


class FleetMean(Struct, frozen=True):
    """The weighted mean of the log ratios over hosts, and the verdict on it."""

    host_indices: tuple[int, ...]
    """Indices, from 0, of the asked hosts in the mean."""
    ln_ratio: float | None
    """Weighted mean of the hosts' estimates; ``None`` if a host has no finite estimate."""
    bounds: Bounds
    """Intersection of ``by_hosts`` and ``by_rounds``; it holds at alpha."""
    by_hosts: Bounds
    """Weighted mean of the hosts' confidence sequences, at alpha/10; without rounds at alpha."""
    by_rounds: Bounds | None
    """Confidence sequence from the rounds of exactly these hosts; ``None`` without a round."""
    equivalence: Bounds
    """Interval that decides on ``equivalent``. The chance of an error is alpha for each bound."""
    verdict: Verdict
    means_forbid_equivalence: bool
    """Whether only the means and the slow runs prevent ``equivalent``."""
    ln_mean_ratio: float
    """Weighted mean over hosts of the logarithm of the ratio of means."""

    @property
    def ratio(self) -> float | None:
        """Exponential of the mean; ``None`` if it is not known."""
        return None if self.ln_ratio is None else finite_ratio(self.ln_ratio)


class Prediction(LogInterval, frozen=True):
    """An interval for hosts that were not measured."""

    chance: float | None
    """Minimum chance that the interval contains the true value; ``None`` without a claim."""
    unknown_because: str | None = None


class HostVariance(Struct, frozen=True):
    """Variance of the log ratio between hosts, and between the blocks of a host."""

    components: tuple[VarianceComponent, ...]
    """``host``, then ``block``; empty if unknown. The intervals assume normal effects and a single
    analysis."""
    unknown_because: str | None = None


class FleetClaims(Struct, frozen=True):
    """All claims about one comparison of a fleet."""

    e_value: float
    """Evidence against "the ratio is 1 on each asked host": the mean of the hosts' e-values."""
    mean: FleetMean
    mean_of_remaining: FleetMean | None
    """Mean over the hosts that were not lost; ``None`` if no host was lost."""
    hosts: tuple[HostClaims, ...]
    new_host: Prediction
    """The ratio on a new host, if the asked hosts and the new host are exchangeable."""
    median_of_hosts: Prediction
    """The median ratio of a population from which the asked hosts are independent draws."""
    new_host_if_normal: Prediction
    """The ratio on a new host, if the log ratios of hosts are normal."""
    variance: HostVariance


def claims_of_fleet(
    hosts: Sequence[HostBlocks],
    *,
    min_effect: float,
    alpha: float,
    planned_count: int | None,
    seed: int = 0,
) -> FleetClaims:
    """Return the claims over the hosts about one comparison.

    Raise `UnusableInput` if there is no host, or the weights do not add up to 1. Raise it also if a
    number is out of range, or ``known_at_end`` or ``planned_count`` does not fit the hosts.

    ``hosts`` has all asked hosts in the order of the plan, also hosts without a block.
    ``min_effect`` is the smallest effect that matters, in percent; 0 for none. ``alpha`` is the
    level of each question about this comparison. ``planned_count`` is the number of hosts; ``None``
    if hosts could join after the first trial. ``seed`` is for the intervals of the variance.
    """
    margin = margin_of(min_effect)
    check_alpha(alpha)
    _check_hosts(hosts, planned_count)
    return _FleetAnalysis(hosts, margin, alpha, planned_count).claims(seed)


def claims_about_hosts(hosts: Sequence[HostBlocks], *, alpha: float) -> tuple[HostClaims, ...]:
    """Return only the claims about each host, as in `claims_of_fleet` with a planned count."""
    check_alpha(alpha)
    _check_hosts(hosts, len(hosts))
    analysis = _FleetAnalysis(hosts, 0.0, alpha, len(hosts))
    return tuple(analysis.claims_about_host(index) for index in range(len(hosts)))


class _FleetAnalysis:
    """The claims about the campaigns of a fleet at one interim analysis."""

    def __init__(
        self, hosts: Sequence[HostBlocks], margin: float, alpha: float, planned_count: int | None
    ) -> None:
        self.hosts, self.planned_count = hosts, planned_count
        self.margin, self.alpha = margin, alpha
        self.weights = np.array([host.weight for host in hosts])
        self.rounds = Rounds(hosts)
        self.ln_ratios = [_huber_centre(host.blocks.engine) for host in hosts]
        # With several hosts, `mean_over_others` uses the other half of alpha.
        self.sequence_level = alpha if len(hosts) == 1 else alpha / 2.0
        self.sequences = self.host_sequences(self.sequence_level)
        has_rounds = planned_count is not None and len(hosts) > 1
        self.mean_level = alpha * SHARE_OF_HOSTS if has_rounds else alpha
        self.mean_sequences = self.host_sequences(self.mean_level)
        self.equivalence_sequences = self.host_sequences(equivalence_level(self.mean_level))

    def claims(self, seed: int) -> FleetClaims:
        all_hosts = tuple(range(len(self.hosts)))
        remaining_hosts = tuple(index for index in all_hosts if self.hosts[index].state != "lost")
        has_lost_hosts = 0 < len(remaining_hosts) < len(all_hosts)
        return FleetClaims(
            e_value=self.e_value(),
            mean=self.mean_over(all_hosts),
            mean_of_remaining=self.mean_over(remaining_hosts) if has_lost_hosts else None,
            hosts=tuple(self.claims_about_host(index) for index in all_hosts),
            new_host=self.new_host(),
            median_of_hosts=self.median_of_hosts(),
            new_host_if_normal=self.new_host_if_normal(),
            variance=self.variance(seed),
        )

    # -- one host

    def share_of_host(self, index: int) -> float:
        """Return the share of a level for one host; the sum of the shares is at most 1."""
        if self.planned_count is not None:
            return 1.0 / self.planned_count
        return 1.0 / ((index + 1) * (index + 2))

    def host_sequences(self, level: float) -> list[tuple[Bounds, bool]]:
        """Return the sequence of each host, and whether its ratio is constant.

        All sequences hold together at ``level``.
        """
        return [
            _confidence_sequence(host.blocks.engine, level * self.share_of_host(index), host.name)
            for index, host in enumerate(self.hosts)
        ]

    def claims_about_host(self, index: int) -> HostClaims:
        host, (bounds, is_constant) = self.hosts[index], self.sequences[index]
        mean_of_others = self.mean_over_others(index)
        direction: Literal["slower", "faster"] | None = None
        if bounds.low > mean_of_others.high:
            direction = "slower"
        elif bounds.high < mean_of_others.low:
            direction = "faster"
        return HostClaims(
            blocks=len(host.blocks),
            ln_ratio=self.ln_ratios[index],
            bounds=bounds,
            ratio_is_constant=is_constant,
            mean_of_others=mean_of_others,
            direction=direction,
        )

    def mean_over_others(self, index: int) -> Bounds:
        """Return the sequence of the mean over the other asked hosts."""
        level = self.alpha * self.share_of_host(index)
        other_indices = [other for other in range(len(self.hosts)) if other != index]
        reason = self.no_comparison_reason()
        if reason is not None:
            return Bounds(*_INFINITE_BOUNDS, level, reason)
        bounds = self.weighted_sequence(other_indices, self.sequences, level)
        roster = self.roster_with(tuple(range(len(self.hosts))))
        if roster is not None:
            means = self.rounds.mean_sequence(roster, without=index)
            by_rounds, _ = _confidence_sequence(means, level / 2.0, "the others")
            bounds = _intersection(bounds, by_rounds, level)
        return bounds

    # -- the mean over hosts

    def mean_over(self, indices: tuple[int, ...]) -> FleetMean:
        """Return the mean over these hosts, from their own sequences and from the rounds."""
        bounds = by_hosts = self.weighted_sequence(indices, self.mean_sequences, self.mean_level)
        equivalence = self.weighted_sequence(
            indices, self.equivalence_sequences, equivalence_level(self.mean_level)
        )
        by_rounds: Bounds | None = None
        roster = self.roster_with(indices)
        if roster is not None:
            sequence = self.rounds.mean_sequence(roster)
            roster_level = self.alpha * share_of_roster(roster.number)
            by_rounds, wider_bounds = (
                _confidence_sequence(sequence, level, "the mean over the rounds")[0]
                for level in (roster_level, equivalence_level(roster_level))
            )
            bounds = _intersection(by_hosts, by_rounds, self.alpha)
            equivalence = _intersection(equivalence, wider_bounds, equivalence_level(self.alpha))
        ln_ratio = self.typical_ln_ratio(indices)
        if ln_ratio is not None:
            ln_ratio = min(max(ln_ratio, bounds.low), bounds.high)
        ln_mean_ratio = float(self.weights_over(indices) @ self.ln_ratios_of_means(indices))
        verdict, means_forbid_equivalence = verdict_by_intervals(
            (bounds.low, bounds.high),
            (equivalence.low, equivalence.high),
            ln_ratio,
            self.margin,
            blocks=min(len(self.hosts[index].blocks) for index in indices),
            runs=sum(len(self.hosts[index].blocks) for index in indices),
            means_allow=lambda: self.means_allow(indices),
            means_contradict=lambda side: self.means_contradict(indices, side),
        )
        return FleetMean(
            host_indices=indices,
            ln_ratio=ln_ratio,
            bounds=bounds,
            by_hosts=by_hosts,
            by_rounds=by_rounds,
            equivalence=equivalence,
            verdict=verdict,
            means_forbid_equivalence=means_forbid_equivalence,
            ln_mean_ratio=ln_mean_ratio,
        )

    def weights_over(self, indices: Sequence[int]) -> FloatArray:
        """Return the weights of these hosts, scaled so that their sum is 1."""
        host_weights = self.weights[list(indices)]
        weights: FloatArray = host_weights / host_weights.sum()
        return weights

    def weighted_sequence(
        self, indices: Sequence[int], sequences: Sequence[tuple[Bounds, bool]], level: float
    ) -> Bounds:
        """Return the weighted mean of the sequences of hosts."""
        bounds = [sequences[index][0] for index in indices]
        reason = next((bound.unknown_because for bound in bounds if bound.unknown_because), None)
        if reason is not None:
            return Bounds(*_INFINITE_BOUNDS, level, reason)
        weights = self.weights_over(indices)
        low = float(weights @ np.array([bound.low for bound in bounds]))
        high = float(weights @ np.array([bound.high for bound in bounds]))
        return Bounds(low, high, level)

    def roster_with(self, indices: tuple[int, ...]) -> Roster | None:
        """Return the roster with exactly these hosts; ``None`` if there is none.

        A fleet of one host, and a fleet that hosts could join, have no roster.
        """
        if self.planned_count is None or len(self.hosts) == 1:
            return None
        rosters = {roster.host_indices: roster for roster in self.rounds.rosters}
        return rosters.get(indices)

    def typical_ln_ratio(self, indices: Sequence[int]) -> float | None:
        """Return the weighted mean of the typical log ratios; ``None`` if one is not finite."""
        ln_ratios = [ratio for index in indices if (ratio := self.ln_ratios[index]) is not None]
        if len(ln_ratios) < len(indices) or not all(map(math.isfinite, ln_ratios)):
            return None
        return float(self.weights_over(indices) @ np.array(ln_ratios))

    # -- the means, which can veto a verdict

    def ln_ratios_of_means(self, indices: Sequence[int]) -> FloatArray:
        blocks = [self.hosts[index].blocks for index in indices]
        return np.array([ln_ratio_of_means(block.baseline, block.candidate) for block in blocks])

    def means_allow(self, indices: Sequence[int]) -> bool:
        """Return whether the means and the slow runs of all hosts allow ``equivalent``.

        The weighted mean has to be within the margin, or the slow runs have to be balanced. The
        costs of each host are divided by their median, and then all slow runs are judged together.
        """
        blocks = [self.hosts[index].blocks for index in indices]
        weighted_costs = [
            (float(weight), block.own_baseline, block.candidate)
            for weight, block in zip(self.weights_over(indices), blocks, strict=True)
        ]
        if ln_bound_of_means(weighted_costs) <= self.margin:
            return True
        medians = [
            float(np.median(np.concatenate([block.own_baseline, block.candidate])))
            for block in blocks
        ]
        if not all(0.0 < median < math.inf for median in medians):
            return False
        blocks_and_medians = list(zip(blocks, medians, strict=True))
        return have_balanced_slow_runs(
            np.concatenate([block.own_baseline / median for block, median in blocks_and_medians]),
            np.concatenate([block.candidate / median for block, median in blocks_and_medians]),
            self.margin,
        )

    def means_contradict(self, indices: Sequence[int], side: float) -> bool:
        """Return whether the ratio of means contradicts the typical ratio, even without one block.

        ``side`` is 1 if the typical ratio is above 1, else -1. The ratio of means contradicts it if
        it is beyond the margin on the opposite side.
        """
        weights, ln_ratios = self.weights_over(indices), self.ln_ratios_of_means(indices)
        mean = float(weights @ ln_ratios)
        if not side * mean < -self.margin:
            return False
        for weight, ln_ratio, index in zip(weights, ln_ratios, indices, strict=True):
            blocks = self.hosts[index].blocks
            without_one = ln_ratios_without_one_block(blocks.baseline, blocks.candidate)
            if not np.all(side * (mean + weight * (without_one - ln_ratio)) < -self.margin):
                return False
        return True

    # -- all hosts at once, and hosts that were not measured

    def e_value(self) -> float:
        ln_e_values = np.array([host.blocks.engine.ln_e_value() for host in self.hosts])
        return e_value_of(float(np.logaddexp.reduce(ln_e_values)) - math.log(len(ln_e_values)))

    def no_comparison_reason(self) -> str | None:
        """Return why hosts cannot be compared with each other; ``None`` if they can."""
        host_count = len({host.identity for host in self.hosts})
        if host_count == 1:
            return "all campaigns ran on one host: nothing is known between hosts"
        if host_count < len(self.hosts):
            return "some campaigns ran on the same host, so they are not draws of different hosts"
        return None

    def no_prediction_reason(self) -> str | None:
        """Return why nothing can be claimed about a new host; ``None`` if something can."""
        reason = self.no_comparison_reason()
        if reason is not None:
            return reason
        if self.planned_count is None:
            return "the number of hosts was not fixed before the first trial"
        lost_hosts = [host.name for host in self.hosts if host.state == "lost"]
        if lost_hosts:
            names = ", ".join(lost_hosts)
            return f"the fleet lost {names}, and the other hosts may differ from lost hosts"
        return None

    def new_host(self) -> Prediction:
        """Return the range of the n hosts: a new host is inside with chance (n - 1)/(n + 1)."""
        count = len(self.hosts)
        chance = (count - 1) / (count + 1) - self.alpha
        return self.between_extremes(chance)

    def median_of_hosts(self) -> Prediction:
        """Return the range of the n hosts: the median is outside with chance 2/2ⁿ."""
        chance = 1.0 - 2.0 ** (1 - len(self.hosts)) - self.alpha
        return self.between_extremes(chance)

    def between_extremes(self, chance: float) -> Prediction:
        """Return the interval from the lowest to the highest bound of all hosts."""
        bounds = [sequence for sequence, _ in self.host_sequences(self.alpha)]
        reason = self.no_prediction_reason() or next(
            (bound.unknown_because for bound in bounds if bound.unknown_because), None
        )
        if reason is not None:
            return Prediction(*_INFINITE_BOUNDS, None, reason)
        low, high = min(bound.low for bound in bounds), max(bound.high for bound in bounds)
        return Prediction(low, high, max(0.0, chance))

    def new_host_if_normal(self) -> Prediction:
        """Return Student's prediction from the first blocks of each host.

        Later blocks do not change the prediction, so any number of interim analyses may use it.
        """
        block_count = earliest_block(self.alpha)
        reason = self.no_prediction_reason()
        names_with_few = [host.name for host in self.hosts if len(host.blocks) < block_count]
        if reason is None and names_with_few:
            reason = f"{', '.join(names_with_few)}: fewer than {block_count} blocks"
        hosts = [] if reason else self.hosts
        ln_ratios = [self.early_ln_ratio(host.blocks, block_count) for host in hosts]
        if reason is None and not np.isfinite(ln_ratios).all():
            reason = "timeouts leave a host without a finite ratio"
        if reason is not None:
            return Prediction(*_INFINITE_BOUNDS, None, reason)
        count, mean = len(ln_ratios), float(np.mean(ln_ratios))
        quantile = student_quantile(1.0 - self.alpha / 2.0, count - 1)
        half_width = quantile * math.sqrt(1.0 + 1.0 / count) * float(np.std(ln_ratios, ddof=1))
        return Prediction(mean - half_width, mean + half_width, 1.0 - self.alpha)

    def early_ln_ratio(self, blocks: PairedBlocks, count: int) -> float:
        """Return the typical log ratio of a host's first blocks; NaN if all blocks are ties."""
        early_blocks = BettingSequence(
            blocks.differences[:count], blocks.orders[:count], blocks.tolerances[:count]
        )
        ln_ratio = _huber_centre(early_blocks)
        return math.nan if ln_ratio is None else ln_ratio

    def variance(self, seed: int) -> HostVariance:
        reason = self.no_comparison_reason()
        if reason is not None:
            return HostVariance((), reason)
        differences = [_untied_differences(host.blocks) for host in self.hosts]
        by_host = [values for values in differences if len(values)]
        if any(not np.isfinite(values).all() for values in by_host):
            return HostVariance((), "a trial timed out, so the block differences have no variance")
        if len(by_host) < 2 or all(len(values) < 2 for values in by_host):
            return HostVariance((), "fewer than two hosts have two blocks")
        units = np.repeat(np.arange(len(by_host)), [len(values) for values in by_host])
        values = np.concatenate(by_host)
        levels = variance_by_level(values, [units], ["host", "block"], seed=seed, alpha=self.alpha)
        return HostVariance(levels.components)


def share_of_roster(number: int) -> float:
    """Return the share of alpha for the rounds of a roster, numbered from 1; the sum is 0.9."""
    if number == 1:
        return SHARE_OF_FIRST_ROSTER
    remaining_share = 1.0 - SHARE_OF_HOSTS - SHARE_OF_FIRST_ROSTER
    return remaining_share / (number * (number - 1))


def _huber_centre(engine: BettingSequence) -> float | None:
    """Return the typical log ratio of a sequence of blocks; ``None`` if all blocks are ties."""
    ln_ratio, _, _ = engine.centre() or (None, 0.0, 0.0)
    return ln_ratio


def _untied_differences(blocks: PairedBlocks) -> FloatArray:
    """Return the block differences without the order effect and without ties."""
    differences = blocks.differences
    _, order_effect, _ = blocks.engine.centre() or (0.0, 0.0, 0.0)
    has_difference = ~np.isnan(differences)
    corrected: FloatArray = (differences - blocks.orders * order_effect)[has_difference]
    return corrected


def _confidence_sequence(engine: BettingSequence, level: float, name: str) -> tuple[Bounds, bool]:
    """Return a confidence sequence, and whether a constant ratio agrees with all blocks."""
    (low, high), is_constant = running_interval(engine, level)
    reason: str | None = None
    if low == high and math.isinf(low):
        reason = f"{name}: timeouts exclude every ratio"
        low, high = _INFINITE_BOUNDS
    elif not (math.isfinite(low) and math.isfinite(high)):
        reason = f"{name}: no bound yet after {counted(len(engine), 'block')}"
    return Bounds(low, high, level, reason), is_constant


def _intersection(first: Bounds, second: Bounds, level: float) -> Bounds:
    """Return the intersection of two intervals; without a common value, bounds are infinite."""
    low, high = max(first.low, second.low), min(first.high, second.high)
    if low > high:
        problem = "the two intervals of the mean do not overlap, so some ratio is not constant"
        return Bounds(*_INFINITE_BOUNDS, level, problem)
    reason = None
    if not (math.isfinite(low) and math.isfinite(high)):
        reason = first.unknown_because or second.unknown_because
    return Bounds(low, high, level, reason)


def _check_hosts(hosts: Sequence[HostBlocks], planned_count: int | None) -> None:
    if not hosts:
        raise UnusableInput("a fleet has no host", hint="give at least one host")
    weights = [host.weight for host in hosts]
    if min(weights) <= 0 or abs(sum(weights) - 1.0) > _MAX_WEIGHT_ERROR:
        values = ", ".join(f"{weight:g}" for weight in weights)
        raise UnusableInput(
            f"the weights of the hosts must be above 0 and add up to 1, but are {values}",
            hint=f"give each host the weight {1.0 / len(hosts):g}",
        )
    if any(len(host.known_at_end or hosts) != len(hosts) for host in hosts):
        raise UnusableInput(
            f"known_at_end of a host does not have one number for each of {len(hosts)} hosts",
            hint=f"give {len(hosts)} numbers of blocks",
        )
    if planned_count is not None and planned_count != len(hosts):
        raise UnusableInput(
            f"{planned_count} hosts were planned, but {len(hosts)} were given",
            hint="give every planned host, also those without a block",
        )


class Roster(Struct, frozen=True):
    """The hosts of successive rounds."""

    number: int
    """Number of this roster, from 1; rosters without a complete round have no number."""
    host_indices: tuple[int, ...]
    """Indices of the hosts among the asked hosts, from 0."""
    starts: tuple[int, ...]
    """For each host of the roster, the number of blocks before the first round."""
    round_count: int


def rosters_of(hosts: Sequence[HostBlocks]) -> tuple[Roster, ...]:
    """Return the rosters that have at least one round, in the order of their rounds.

    The end of a host's campaign may depend on known blocks of other hosts (``known_at_end``). The
    next roster begins after these blocks, because an outcome must not select blocks.
    """
    lengths = [len(host.blocks) for host in hosts]
    indices, starts = list(range(len(hosts))), [0] * len(hosts)
    rosters: list[Roster] = []
    while indices:
        round_count = min(max(0, lengths[index] - starts[index]) for index in indices)
        if round_count:
            roster_starts = tuple(starts[index] for index in indices)
            rosters.append(Roster(len(rosters) + 1, tuple(indices), roster_starts, round_count))
        ended_hosts = [
            index
            for index in indices
            if hosts[index].state != "measuring" and lengths[index] - starts[index] <= round_count
        ]
        if not ended_hosts:
            break
        indices = [index for index in indices if index not in ended_hosts]
        for index in indices:
            counts_at_ends = (hosts[ended_index].known_at_end for ended_index in ended_hosts)
            known_counts = [counts[index] for counts in counts_at_ends if counts is not None]
            starts[index] = max(starts[index] + round_count, *known_counts, 0)
    return tuple(rosters)


class Rounds:
    """The rounds of all rosters of a fleet."""

    def __init__(self, hosts: Sequence[HostBlocks]) -> None:
        self.rosters = rosters_of(hosts)
        self._hosts = hosts

    def mean_sequence(self, roster: Roster, *, without: int | None = None) -> BettingSequence:
        """Return the bets on the weighted mean over a roster, one bet for each round.

        ``without`` is the index of a host to leave out; the roster must contain another host.
        """
        slices = [
            (index, slice(start, start + roster.round_count))
            for index, start in zip(roster.host_indices, roster.starts, strict=True)
            if index != without
        ]
        weights = np.array([self._hosts[index].weight for index, _ in slices])
        weights /= weights.sum()
        # A bet needs one order for each round: the order on the host with the largest weight.
        heaviest, block_slice = slices[int(np.argmax(weights))]
        orders = self._hosts[heaviest].blocks.orders[block_slice]
        # Both arrays have the shape (hosts, rounds).
        differences, tolerances = (
            np.array([values_by_host[index][block_slice] for index, block_slice in slices])
            for values_by_host in self._differences_and_tolerances
        )
        with np.errstate(invalid="ignore"):
            means = (weights[:, None] * differences).sum(axis=0)
        return BettingSequence(means, orders, weights @ tolerances)

    @cached_property
    def _differences_and_tolerances(self) -> tuple[list[FloatArray], list[FloatArray]]:
        """For each host, the block differences without the order effect, and the tolerances."""
        blocks_by_host = [host.blocks for host in self._hosts]
        corrected = [_without_order_effect(blocks) for blocks in blocks_by_host]
        return corrected, [blocks.tolerances for blocks in blocks_by_host]


def _without_order_effect(blocks: PairedBlocks) -> FloatArray:
    """Return the block differences, shape (blocks,), minus the order effect from earlier blocks."""
    differences, orders = blocks.differences, blocks.orders
    corrected = differences.copy()
    used_blocks = _MIN_ORDER_EFFECT_BLOCKS
    while used_blocks < len(differences):
        estimate = BettingSequence(
            differences[:used_blocks], orders[:used_blocks], blocks.tolerances[:used_blocks]
        ).centre()
        end_block = min(len(differences), math.ceil(used_blocks * _ORDER_EFFECT_GROWTH))
        if estimate is not None:
            _, order_effect, _ = estimate
            corrected[used_blocks:end_block] -= orders[used_blocks:end_block] * order_effect
        used_blocks = end_block
    return corrected
