"""The claims over the campaigns of several hosts (docs/methods/fleet.md).

Each host has its own coin and its own campaign; its ratio e^θ is constant. Every answer names its
question, because different questions have different answers: effects of +3 % and -3 % on four hosts
are certainly effects, but their mean is 0.

All intervals are confidence sequences: they hold at every interim analysis, whenever each host
stopped. Three families of claims have ``alpha`` each: the means over hosts with their verdict, the
new host, and the hosts that differ from the others. Each of K comparisons gets alpha/K.

A *round* is block i of every host, used as one bet. Given the past and the times by position, the
coins of these blocks are independent and fair. So the weighted mean of d - θ over the hosts changes
its sign with all of these coins at once, like the difference in a block of one campaign, and the
betting engine can use it. This holds while no host leaves. A *roster* is a set of hosts that are in
every round of a stretch. A round that will never be complete ends the roster. The remaining hosts
are the next roster, which has its own sequence. A tenth of the alpha of the means is for the hosts'
own sequences, eight tenths are for the first roster, and a tenth over g(g - 1) for roster number g.
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
from equipoise.model.result import Component, Verdict
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

End = Literal["measuring", "finished", "left"]
"""State of a host's campaign. ``finished``: it ended by its own rules. ``left``: it was lost or
withdrawn before, and does not measure any more."""

SHARE_OF_HOSTS = 0.1
"""Share of alpha for the mean from the hosts' sequences, if there are rounds."""
SHARE_OF_FIRST_ROSTER = 0.8
"""Share of alpha for the rounds of the first roster, which mostly has the narrowest interval."""
_WEIGHT_ERROR = 1e-9
_UNLIMITED = (-math.inf, math.inf)
_MIN_SLOT_BLOCKS = 6
"""Number of blocks from which a slot effect is estimated, as in the betting engine."""
_SLOT_GROWTH = 1.25
"""Growth of the number of blocks after which the slot effect is estimated again."""


class FleetHost(Struct, frozen=True):
    """One asked host, with the known blocks of its campaign for one comparison."""

    name: str
    identity: str
    """Text that differs between all hosts."""
    blocks: PairedBlocks
    weight: float
    """Weight in the mean over the asked hosts, declared before the first trial."""
    end: End = "measuring"
    known_at_end: tuple[int, ...] | None = None
    """Blocks of every asked host that were known when the end of this one was decided. ``None`` if
    its own rules or a fault ended it, without regard to other hosts."""


class LogInterval(Struct, frozen=True):
    """An interval in log units; infinite on a side without a bound."""

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
    """Reason why a side has no bound."""


class HostAnswer(Struct, frozen=True):
    """One asked host alone, and whether it differs from the others."""

    blocks: int
    typical: float | None
    """Huber centre of its block differences; ``None`` if it has none, ±inf if half are infinite."""
    bounds: Bounds
    """Its confidence sequence; the sequences of all asked hosts hold together."""
    ratio_is_constant: bool
    """Whether a constant ratio agrees with its whole campaign."""
    others: Bounds
    """Confidence sequence of the mean over the other asked hosts."""
    direction: Literal["slower", "faster"] | None
    """Whether its candidate is slower or faster than on the others, relative to the baseline. The
    chance that this is ever wrong for any host is at most alpha."""

    @property
    def ratio(self) -> float | None:
        """Typical ratio; ``None`` if it is not finite."""
        return None if self.typical is None else finite_ratio(self.typical)


class FleetMean(Struct, frozen=True):
    """The weighted mean of the log ratios over hosts, and the verdict on it."""

    places: tuple[int, ...]
    """Places of the hosts in the mean, among the asked ones, from 0."""
    typical: float | None
    """Weighted mean of the hosts' estimates; ``None`` if a host has no finite one."""
    bounds: Bounds
    """Intersection of the two intervals below, at alpha."""
    by_hosts: Bounds
    """Weighted mean of the hosts' confidence sequences, at alpha/10; without rounds at alpha."""
    by_rounds: Bounds | None
    """Confidence sequence from the rounds of the roster of exactly these hosts. ``None`` if the
    roster has no complete round, or the hosts were not fixed before the first trial."""
    equivalence: Bounds
    """Interval that decides on ``equivalent``; each side is used alone, so it has twice alpha."""
    verdict: Verdict
    means_veto: bool
    """Whether only the means and the slow runs forbid ``equivalent`` (`stats.slow_runs`)."""
    ln_mean_ratio: float
    """Weighted mean over hosts of the logarithm of the ratio of means."""

    @property
    def ratio(self) -> float | None:
        """Exponential of the mean; ``None`` if it is not known."""
        return None if self.typical is None else finite_ratio(self.typical)


class Prediction(LogInterval, frozen=True):
    """An interval for hosts that were not measured, with its chance."""

    chance: float | None
    """Least chance that the interval contains the true value; ``None`` if there is no claim."""
    unknown_because: str | None = None


class HostVariance(Struct, frozen=True):
    """Variance of the log ratio between hosts, and between the blocks of a host."""

    components: tuple[Component, ...]
    """``host``, then ``block``; empty if unknown. Their intervals are descriptive: they assume
    normal effects and a single analysis."""
    unknown_because: str | None = None


class FleetAnswers(Struct, frozen=True):
    """All claims about one comparison of a fleet."""

    e_value: float
    """Evidence against "the ratio is 1 on each asked host"; the mean of the hosts' e-values. It is
    neither about the mean ratio nor about a single host."""
    mean: FleetMean
    """Mean over all asked hosts."""
    mean_of_stayed: FleetMean | None
    """Mean over the hosts that have not left; ``None`` if no host has left."""
    hosts: tuple[HostAnswer, ...]
    """Answers about each host, in the order of the plan."""
    new_host: Prediction
    """The ratio on a new host, if the asked ones are exchangeable with it."""
    median_of_hosts: Prediction
    """The median ratio of the population, if the asked hosts are independent draws from it."""
    new_normal_host: Prediction
    """The ratio on a new host, if the log ratios of hosts are normal."""
    variance: HostVariance


def answers_of_fleet(
    hosts: Sequence[FleetHost],
    *,
    min_effect: float,
    alpha: float,
    planned: int | None,
    seed: int = 0,
) -> FleetAnswers:
    """Return the claims over the hosts about one comparison.

    Raise `UnusableInput` if there is no host, the weights do not add up to 1, a number is out of
    range or missing, or a different number of hosts was planned.

    Parameters
    ----------
    hosts
        All asked hosts in the order of the plan, also those without a block.
    min_effect
        Smallest effect that matters, in percent; 0 for none.
    alpha
        Between 0 and 1; each of K comparisons has alpha/K.
    planned
        Number of hosts that was fixed before the first trial; ``None`` if hosts could join later.
    seed
        Seed of the intervals of the variance.
    """
    margin = margin_of(min_effect)
    check_alpha(alpha)
    _check(hosts, planned)
    return _Fleet(hosts, margin, alpha, planned).answers(seed)


class _Fleet:
    """The campaigns of a fleet at one interim analysis."""

    def __init__(
        self,
        hosts: Sequence[FleetHost],
        margin: float,
        alpha: float,
        planned: int | None,
    ) -> None:
        self.hosts, self.margin, self.alpha, self.planned = hosts, margin, alpha, planned
        self.weights = np.array([host.weight for host in hosts])
        self.rounds = Rounds(hosts)
        centres = [host.blocks.engine.centre() for host in hosts]
        self.centres = [None if centre is None else centre[0] for centre in centres]
        # A single host has only its own sequence: its rounds are its blocks.
        self.sequence_level = alpha if len(hosts) == 1 else alpha / 2.0
        self.sequences = self.host_sequences(self.sequence_level)
        has_rounds = planned is not None and len(hosts) > 1
        self.mean_level = alpha * SHARE_OF_HOSTS if has_rounds else alpha
        self.mean_sequences = self.host_sequences(self.mean_level)
        self.equivalence_sequences = self.host_sequences(equivalence_level(self.mean_level))

    def answers(self, seed: int) -> FleetAnswers:
        everyone = tuple(range(len(self.hosts)))
        stayed = tuple(place for place in everyone if self.hosts[place].end != "left")
        is_part = 0 < len(stayed) < len(everyone)
        return FleetAnswers(
            e_value=self.e_value(),
            mean=self.mean_over(everyone),
            mean_of_stayed=self.mean_over(stayed) if is_part else None,
            hosts=tuple(self.host_answer(place) for place in everyone),
            new_host=self.new_host(),
            median_of_hosts=self.median_of_hosts(),
            new_normal_host=self.new_normal_host(),
            variance=self.variance(seed),
        )

    # -- one host

    def share(self, place: int) -> float:
        """Return the share of a level that belongs to a host; the sum over hosts is at most 1."""
        if self.planned is not None:
            return 1.0 / self.planned
        return 1.0 / ((place + 1) * (place + 2))

    def host_sequences(self, level: float) -> list[tuple[Bounds, bool]]:
        """Return the sequence of each host; all hold together at ``level``."""
        return [
            _sequence(host.blocks.engine, level * self.share(place), host.name)
            for place, host in enumerate(self.hosts)
        ]

    def host_answer(self, place: int) -> HostAnswer:
        host, (bounds, is_constant) = self.hosts[place], self.sequences[place]
        others = self.others_of(place)
        direction: Literal["slower", "faster"] | None = None
        if bounds.low > others.high:
            direction = "slower"
        elif bounds.high < others.low:
            direction = "faster"
        return HostAnswer(
            blocks=len(host.blocks),
            typical=self.centres[place],
            bounds=bounds,
            ratio_is_constant=is_constant,
            others=others,
            direction=direction,
        )

    def others_of(self, place: int) -> Bounds:
        """Return the sequence of the mean over the other asked hosts.

        The one from the hosts' sequences needs no further alpha. The one from the rounds has the
        host's share of alpha/2, so that the claims about all hosts hold together.
        """
        level = self.alpha * self.share(place)
        others = [other for other in range(len(self.hosts)) if other != place]
        because = self.one_host_because()
        if because is not None:
            return Bounds(*_UNLIMITED, level, because)
        bounds = self.by_hosts(others, self.sequences, level)
        roster = self.roster_of(tuple(range(len(self.hosts))))
        if roster is not None:
            means = self.rounds.mean_sequence(roster, without=place)
            bounds = _intersection(bounds, _sequence(means, level / 2.0, "the others")[0], level)
        return bounds

    # -- the mean over hosts

    def mean_over(self, places: tuple[int, ...]) -> FleetMean:
        bounds = by_hosts = self.by_hosts(places, self.mean_sequences, self.mean_level)
        equivalence = self.by_hosts(
            places, self.equivalence_sequences, equivalence_level(self.mean_level)
        )
        by_rounds: Bounds | None = None
        roster = self.roster_of(places)
        if roster is not None:
            sequence = self.rounds.mean_sequence(roster)
            roster_level = self.alpha * share_of_roster(roster.number)
            by_rounds, wider = (
                _sequence(sequence, level, "the mean over the rounds")[0]
                for level in (roster_level, equivalence_level(roster_level))
            )
            bounds = _intersection(by_hosts, by_rounds, self.alpha)
            equivalence = _intersection(equivalence, wider, equivalence_level(self.alpha))
        typical = self.typical_over(places)
        if typical is not None:
            typical = min(max(typical, bounds.low), bounds.high)
        ln_mean_ratio = float(self.parts_of(places) @ self.ln_mean_ratios(places))
        verdict, means_veto = verdict_by_intervals(
            (bounds.low, bounds.high),
            (equivalence.low, equivalence.high),
            typical,
            self.margin,
            blocks=min(len(self.hosts[place].blocks) for place in places),
            runs=sum(len(self.hosts[place].blocks) for place in places),
            means_allow=lambda: self.means_allow(places),
            means_contradict=lambda side: self.means_contradict(places, side),
        )
        return FleetMean(
            places=places,
            typical=typical,
            bounds=bounds,
            by_hosts=by_hosts,
            by_rounds=by_rounds,
            equivalence=equivalence,
            verdict=verdict,
            means_veto=means_veto,
            ln_mean_ratio=ln_mean_ratio,
        )

    def parts_of(self, places: Sequence[int]) -> FloatArray:
        """Return the weights of hosts in the mean over them alone."""
        weights = self.weights[list(places)]
        parts: FloatArray = weights / weights.sum()
        return parts

    def by_hosts(
        self, places: Sequence[int], sequences: Sequence[tuple[Bounds, bool]], level: float
    ) -> Bounds:
        """Return the weighted mean of hosts' sequences, which hold together."""
        bounds = [sequences[place][0] for place in places]
        reason = next((each.unknown_because for each in bounds if each.unknown_because), None)
        if reason is not None:
            return Bounds(*_UNLIMITED, level, reason)
        parts = self.parts_of(places)
        low = float(parts @ np.array([each.low for each in bounds]))
        high = float(parts @ np.array([each.high for each in bounds]))
        return Bounds(low, high, level)

    def roster_of(self, places: tuple[int, ...]) -> Roster | None:
        """Return the roster of exactly these hosts; ``None`` for one host, or if hosts could join.

        A joining host would change the first roster at every interim analysis.
        """
        if self.planned is None or len(self.hosts) == 1:
            return None
        return next((roster for roster in self.rounds.rosters if roster.places == places), None)

    def typical_over(self, places: Sequence[int]) -> float | None:
        centres = [
            centre for centre in (self.centres[place] for place in places) if centre is not None
        ]
        if len(centres) < len(places) or not all(math.isfinite(centre) for centre in centres):
            return None
        return float(self.parts_of(places) @ np.array(centres))

    # -- the means, which can veto a verdict

    def ln_mean_ratios(self, places: Sequence[int]) -> FloatArray:
        blocks = [self.hosts[place].blocks for place in places]
        return np.array([ln_ratio_of_means(block.baseline, block.candidate) for block in blocks])

    def means_allow(self, places: Sequence[int]) -> bool:
        """Return whether the means and the slow runs of all hosts allow ``equivalent``.

        The bound is that of the weighted mean. Slow runs are rare on a single host, so those of all
        hosts are judged together, each cost divided by the median of its host.
        """
        blocks = [self.hosts[place].blocks for place in places]
        parts = [
            (float(part), block.own_baseline, block.candidate)
            for part, block in zip(self.parts_of(places), blocks, strict=True)
        ]
        if ln_bound_of_means(parts) <= self.margin:
            return True
        medians = [
            float(np.median(np.concatenate([block.own_baseline, block.candidate])))
            for block in blocks
        ]
        if not all(0.0 < median < math.inf for median in medians):
            return False
        hosts = list(zip(blocks, medians, strict=True))
        return have_balanced_slow_runs(
            np.concatenate([block.own_baseline / median for block, median in hosts]),
            np.concatenate([block.candidate / median for block, median in hosts]),
            self.margin,
        )

    def means_contradict(self, places: Sequence[int], side: float) -> bool:
        """Return whether the means are beyond the margin on the other side.

        They must be so without any single block of any host.
        """
        parts, ratios = self.parts_of(places), self.ln_mean_ratios(places)
        mean = float(parts @ ratios)
        if not side * mean < -self.margin:
            return False
        for part, ratio, place in zip(parts, ratios, places, strict=True):
            blocks = self.hosts[place].blocks
            without = ln_ratios_without_one_block(blocks.baseline, blocks.candidate)
            if not np.all(side * (mean + part * (without - ratio)) < -self.margin):
                return False
        return True

    # -- all hosts at once, and hosts that were not asked

    def e_value(self) -> float:
        logs = np.array([host.blocks.engine.ln_e_value() for host in self.hosts])
        return e_value_of(float(np.logaddexp.reduce(logs)) - math.log(len(logs)))

    def one_host_because(self) -> str | None:
        """Return the reason why nothing is known between hosts; ``None`` if something is."""
        identities = len({host.identity for host in self.hosts})
        if identities == 1:
            return "all campaigns ran on one host: nothing is known between hosts"
        if identities < len(self.hosts):
            return "some campaigns ran on the same host, so they are not draws of different hosts"
        return None

    def not_drawn_because(self) -> str | None:
        """Return the reason why nothing is known about other hosts; ``None`` if something is."""
        because = self.one_host_because()
        if because is not None:
            return because
        if self.planned is None:
            return "the number of hosts was not fixed before the first trial"
        left_hosts = [host.name for host in self.hosts if host.end == "left"]
        if left_hosts:
            names = ", ".join(left_hosts)
            return f"{names} left: the hosts that stayed may differ from those that left"
        return None

    def new_host(self) -> Prediction:
        count = len(self.hosts)
        chance = (count - 1) / (count + 1) - self.alpha
        return self.between_extremes(chance)

    def median_of_hosts(self) -> Prediction:
        chance = 1.0 - 2.0 ** (1 - len(self.hosts)) - self.alpha
        return self.between_extremes(chance)

    def between_extremes(self, chance: float) -> Prediction:
        """Return the interval from the lowest to the highest bound of all hosts."""
        bounds = [sequence for sequence, _ in self.host_sequences(self.alpha)]
        because = self.not_drawn_because() or next(
            (each.unknown_because for each in bounds if each.unknown_because), None
        )
        if because is not None:
            return Prediction(*_UNLIMITED, None, because)
        low, high = min(each.low for each in bounds), max(each.high for each in bounds)
        return Prediction(low, high, max(0.0, chance))

    def new_normal_host(self) -> Prediction:
        """Return Student's prediction from the first blocks, which every campaign has to measure.

        Later blocks do not change it, so it can be analysed any number of times.
        """
        first = earliest_block(self.alpha)
        because = self.not_drawn_because()
        short = [host.name for host in self.hosts if len(host.blocks) < first]
        if because is None and short:
            because = f"{', '.join(short)}: fewer than {first} blocks"
        centres = [] if because else [self.first_centre(host.blocks, first) for host in self.hosts]
        if because is None and not np.isfinite(centres).all():
            because = "timeouts leave a host without a finite ratio"
        if because is not None:
            return Prediction(*_UNLIMITED, None, because)
        count, mean = len(centres), float(np.mean(centres))
        reach = student_quantile(1.0 - self.alpha / 2.0, count - 1) * math.sqrt(1.0 + 1.0 / count)
        reach *= float(np.std(centres, ddof=1))
        return Prediction(mean - reach, mean + reach, 1.0 - self.alpha)

    def first_centre(self, blocks: PairedBlocks, count: int) -> float:
        """Return the typical log ratio of the first blocks of a host; NaN if all are ties."""
        parts = (blocks.differences[:count], blocks.orders[:count], blocks.tolerances[:count])
        centre = BettingSequence(*parts).centre()
        return math.nan if centre is None else centre[0]

    def variance(self, seed: int) -> HostVariance:
        because = self.one_host_because()
        if because is not None:
            return HostVariance((), because)
        differences = [_differences_of(host.blocks) for host in self.hosts]
        with_blocks = [values for values in differences if len(values)]
        if any(not np.isfinite(values).all() for values in with_blocks):
            return HostVariance((), "a trial timed out, so the block differences have no variance")
        if len(with_blocks) < 2 or all(len(values) < 2 for values in with_blocks):
            return HostVariance((), "fewer than two hosts have two blocks")
        units = np.repeat(np.arange(len(with_blocks)), [len(values) for values in with_blocks])
        values = np.concatenate(with_blocks)
        levels = variance_by_level(values, [units], ["host", "block"], seed=seed, level=self.alpha)
        return HostVariance(levels.components)


def share_of_roster(number: int) -> float:
    """Return the share of alpha for the rounds of a roster, numbered from 1; the sum is 0.9."""
    if number == 1:
        return SHARE_OF_FIRST_ROSTER
    remaining_share = 1.0 - SHARE_OF_HOSTS - SHARE_OF_FIRST_ROSTER
    return remaining_share / (number * (number - 1))


def _differences_of(blocks: PairedBlocks) -> FloatArray:
    """Return the block differences without the slot effect and without ties."""
    differences, centre = blocks.differences, blocks.engine.centre()
    slot = 0.0 if centre is None else centre[1]
    has_difference = ~np.isnan(differences)
    corrected: FloatArray = (differences - blocks.orders * slot)[has_difference]
    return corrected


def _sequence(engine: BettingSequence, level: float, name: str) -> tuple[Bounds, bool]:
    """Return a confidence sequence, and whether a constant ratio agrees with all of it."""
    (low, high), is_constant = running_interval(engine, level)
    because: str | None = None
    if low == high and math.isinf(low):
        because = f"{name}: timeouts exclude every ratio"
        low, high = _UNLIMITED
    elif not (math.isfinite(low) and math.isfinite(high)):
        because = f"{name}: no bound yet after {counted(len(engine), 'block')}"
    return Bounds(low, high, level, because), is_constant


def _intersection(first: Bounds, second: Bounds, level: float) -> Bounds:
    """Return the intersection of two intervals; if empty, an unlimited one with the reason."""
    low, high = max(first.low, second.low), min(first.high, second.high)
    if low > high:
        empty = "the two intervals do not overlap: no constant ratios agree with all blocks"
        return Bounds(*_UNLIMITED, level, empty)
    because = None
    if not (math.isfinite(low) and math.isfinite(high)):
        because = first.unknown_because or second.unknown_because
    return Bounds(low, high, level, because)


def _check(hosts: Sequence[FleetHost], planned: int | None) -> None:
    if not hosts:
        raise UnusableInput("a fleet has no host", hint="ask at least one host")
    weights = [host.weight for host in hosts]
    if min(weights) <= 0 or abs(sum(weights) - 1.0) > _WEIGHT_ERROR:
        raise UnusableInput(
            f"the weights of the hosts are {', '.join(f'{weight:g}' for weight in weights)}",
            hint="give weights above 0 that add up to 1",
        )
    if any(len(host.known_at_end or hosts) != len(hosts) for host in hosts):
        raise UnusableInput(
            "the numbers of blocks known at the end of a host are not those of every host",
            hint="give one number for each asked host",
        )
    if planned is not None and planned != len(hosts):
        raise UnusableInput(
            f"{planned} hosts were planned, but there are {len(hosts)}",
            hint="give every planned host, also those without a block",
        )


class Roster(Struct, frozen=True):
    """The hosts that are in every round of a stretch of rounds."""

    number: int
    """Number among the rosters with a round, from 1."""
    places: tuple[int, ...]
    """Places of the hosts among the asked ones, from 0."""
    starts: tuple[int, ...]
    """For each of these hosts the number of its blocks before the first round."""
    rounds: int
    """Complete rounds."""


def rosters_of(hosts: Sequence[FleetHost]) -> tuple[Roster, ...]:
    """Return the rosters that have at least one round, in the order of their rounds.

    The end of a host may depend on known blocks of other hosts (``known_at_end``). It must not
    select the blocks of the next roster, so that roster begins after the known blocks.
    """
    lengths = [len(host.blocks) for host in hosts]
    members, starts = list(range(len(hosts))), [0] * len(hosts)
    rosters: list[Roster] = []
    while members:
        rounds = min(max(0, lengths[place] - starts[place]) for place in members)
        if rounds:
            roster_starts = tuple(starts[place] for place in members)
            rosters.append(Roster(len(rosters) + 1, tuple(members), roster_starts, rounds))
        ended_places = [
            place
            for place in members
            if hosts[place].end != "measuring" and lengths[place] - starts[place] <= rounds
        ]
        if not ended_places:
            break
        members = [place for place in members if place not in ended_places]
        for place in members:
            known_at_ends = (hosts[host_place].known_at_end for host_place in ended_places)
            known_blocks = [values[place] for values in known_at_ends if values is not None]
            starts[place] = max(starts[place] + rounds, *known_blocks, 0)
    return tuple(rosters)


class Rounds:
    """The rounds of all rosters of a fleet."""

    def __init__(self, hosts: Sequence[FleetHost]) -> None:
        self.rosters = rosters_of(hosts)
        """Rosters with at least one round."""
        self._hosts = hosts

    def mean_sequence(self, roster: Roster, *, without: int | None = None) -> BettingSequence:
        """Return the bets on the mean over a roster, one block for each round.

        One asked host may be left out, by its place; the roster must contain another one. Weights
        are scaled so that their sum is 1.
        """
        used = [
            (place, slice(start, start + roster.rounds))
            for place, start in zip(roster.places, roster.starts, strict=True)
            if place != without
        ]
        weights = np.array([self._hosts[place].weight for place, _ in used])
        weights /= weights.sum()
        # All coins of a round change their sides together, so the coin of one host is enough.
        heaviest, rounds = used[int(np.argmax(weights))]
        orders = self._hosts[heaviest].blocks.orders[rounds]
        # Shape (hosts, rounds) each.
        differences, tolerances = (
            np.array([of_hosts[place][part] for place, part in used]) for of_hosts in self._columns
        )
        with np.errstate(invalid="ignore"):
            means = (weights[:, None] * differences).sum(axis=0)
        return BettingSequence(means, orders, weights @ tolerances)

    @cached_property
    def _columns(self) -> tuple[list[FloatArray], list[FloatArray]]:
        """Block differences without the slot effect, and tolerances, of each host."""
        blocks = [host.blocks for host in self._hosts]
        corrected = [_without_slot(block) for block in blocks]
        return corrected, [block.tolerances for block in blocks]


def _without_slot(blocks: PairedBlocks) -> FloatArray:
    """Return the block differences without the slot effect, as estimated from earlier blocks.

    Shape (n,). The slot effect of a host depends on the host's own coin, which is unknown in the
    mean over hosts.
    """
    differences, orders = blocks.differences, blocks.orders
    corrected = differences.copy()
    used = _MIN_SLOT_BLOCKS
    while used < len(differences):
        centre = BettingSequence(
            differences[:used], orders[:used], blocks.tolerances[:used]
        ).centre()
        until = min(len(differences), math.ceil(used * _SLOT_GROWTH))
        if centre is not None:
            corrected[used:until] -= orders[used:until] * centre[1]
        used = until
    return corrected
