"""What the campaigns of several hosts say together (docs/methods/statistics.md#many-hosts).

Each host has its own coin and its own campaign; its ratio e^θ is constant. Every answer names its
question, since the answers to different questions may differ: effects of +3 % and -3 % on four
hosts are certainly effects, and their mean is 0.

All intervals are confidence sequences: they hold at every look, whenever each host stopped. Three
families have ``alpha`` each: the means over hosts with their verdict, the new host, and the hosts
that differ from the others. Of several comparisons each is given its part of alpha (alpha/K).

A *round* is the i-th block of every host, bet on as one. Given the past and the times by position,
the coins of the hosts' i-th blocks are independent and fair. So the weighted mean of d - θ over the
hosts changes its sign with all of these coins at once: it is what a block of one campaign is, and
the betting engine takes it. That holds while no host leaves. A *roster* is the hosts
that are in every round of a stretch; a round that will never be complete ends it, and those that go
on are the next roster, with a sequence of its own. Of the alpha of the means a tenth is for the
hosts' own sequences, eight tenths are for the first roster, and a tenth over g(g - 1) for the g-th.
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
    verdict_by,
)

End = Literal["measuring", "finished", "left"]
"""How a host's campaign stands: ``finished`` by its own rules; ``left``: it was lost or withdrawn
before, and measures no more."""

SHARE_OF_HOSTS = 0.1
"""Part of alpha of the mean from the hosts' sequences, where there are rounds."""
SHARE_OF_FIRST_ROSTER = 0.8
"""Part of alpha of the rounds of the first roster; mostly its interval is the narrower one."""
_WEIGHT_ERROR = 1e-9
_UNLIMITED = (-math.inf, math.inf)
_FIRST_SLOT = 6
"""Blocks from which a slot effect is estimated first, as the betting engine does."""
_SLOT_GROWTH = 1.25
"""It is estimated again whenever the blocks have grown by this factor."""


class FleetHost(Struct, frozen=True):
    """One asked host: its campaign's blocks of one comparison, as far as they are known."""

    name: str
    identity: str
    """Text that is another for every host."""
    blocks: PairedBlocks
    weight: float
    """Weight in the mean over the asked hosts, declared before the first trial."""
    end: End = "measuring"
    known_at_end: tuple[int, ...] | None = None
    """Blocks of every asked host that were known where it was decided that this one ends; ``None``
    if that was decided without a look at any other host: by its own rules, or by a fault."""


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
    """Why a side has no bound."""


class HostAnswer(Struct, frozen=True):
    """One asked host by itself, and whether it is otherwise than the others."""

    blocks: int
    typical: float | None
    """Huber centre of its block differences; ``None`` without one, ±inf if half are infinite."""
    bounds: Bounds
    """Its confidence sequence, simultaneous with those of all asked hosts."""
    ratio_is_constant: bool
    """False where no constant ratio agrees with its whole campaign."""
    others: Bounds
    """Confidence sequence of the mean over the other asked hosts."""
    otherwise: Literal["slower", "faster"] | None
    """Whether its candidate is slower (faster) than on the others, relative to the baseline; the
    chance that any host is ever called so without cause is at most alpha."""

    @property
    def ratio(self) -> float | None:
        """Typical ratio; ``None`` where it is not finite."""
        return None if self.typical is None else finite_ratio(self.typical)


class FleetMean(Struct, frozen=True):
    """The weighted mean of the log ratios over hosts, and the verdict on it."""

    places: tuple[int, ...]
    """Hosts whose mean it is: their places among the asked ones, from 0."""
    typical: float | None
    """Weighted mean of the hosts' estimates; ``None`` where a host has none that is finite."""
    bounds: Bounds
    """Both intervals below, intersected; at alpha."""
    by_hosts: Bounds
    """Weighted mean of the hosts' confidence sequences; at alpha/10, without rounds at alpha."""
    by_rounds: Bounds | None
    """From the rounds of the roster of just these hosts; ``None`` if no round of it is complete, or
    the hosts were not fixed before the first trial."""
    equivalence: Bounds
    """Interval that decides on ``equivalent``; each side stands for itself, so it has twice alpha.
    """
    verdict: Verdict
    means_veto: bool
    """Whether the means and the slow runs alone forbid ``equivalent`` (`stats.slow_runs`)."""
    ln_mean_ratio: float
    """Weighted mean over hosts of the logarithm of the ratio of means."""

    @property
    def ratio(self) -> float | None:
        """Exponential of the mean; ``None`` where it is not known."""
        return None if self.typical is None else finite_ratio(self.typical)


class Prediction(LogInterval, frozen=True):
    """An interval for what was not measured, with its honest chance."""

    chance: float | None
    """Chance with which the interval holds it, at least; ``None`` where none can be given."""
    unknown_because: str | None = None


class HostVariance(Struct, frozen=True):
    """Variance of the log ratio between hosts, and between the blocks of a host."""

    components: tuple[Component, ...]
    """``host``, then ``block``; empty where unknown. Their intervals presume about normal effects
    and one look: description."""
    unknown_because: str | None = None


class FleetAnswers(Struct, frozen=True):
    """All that is claimed of a fleet on one comparison."""

    e_value: float
    """Evidence against "no asked host differs: the ratio is 1 on each of them"; the mean of the
    hosts' e-values. It says nothing of their mean, and not which one differs."""
    asked: FleetMean
    stayed: FleetMean | None
    """``None`` where no host has left."""
    hosts: tuple[HostAnswer, ...]
    """In the order in which they were asked."""
    new_host: Prediction
    """The ratio on a new host, if the asked ones are exchangeable with it."""
    median_of_hosts: Prediction
    """The median ratio of the hosts that the asked ones are independent draws of."""
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
    """Return what the hosts say together about one comparison.

    Raise `UnusableInput` if there is no host, the weights do not add up to 1, a number is out of
    range or missing, or another number of hosts was planned.

    Parameters
    ----------
    hosts
        All asked hosts in the order in which they were asked, those without a block too.
    min_effect
        Smallest effect that matters, in percent; 0 for none.
    alpha
        Between 0 and 1; of K comparisons each has alpha/K.
    planned
        Number of hosts that was fixed before the first trial; ``None`` if hosts joined as they
        came.
    seed
        Of the intervals of the variance.
    """
    margin = margin_of(min_effect)
    check_alpha(alpha)
    _check(hosts, planned)
    return _Fleet(hosts, margin, alpha, planned).answers(seed)


class _Fleet:
    """The campaigns of a fleet, at one look."""

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
        # One host's own sequence is all there is: its rounds are its blocks.
        self.of_sequences = alpha if len(hosts) == 1 else alpha / 2.0
        self.sequences = self.host_sequences(self.of_sequences)
        has_rounds = planned is not None and len(hosts) > 1
        self.of_mean = alpha * SHARE_OF_HOSTS if has_rounds else alpha
        self.for_mean = self.host_sequences(self.of_mean)
        self.wider = self.host_sequences(equivalence_level(self.of_mean))

    def answers(self, seed: int) -> FleetAnswers:
        everyone = tuple(range(len(self.hosts)))
        stayed = tuple(place for place in everyone if self.hosts[place].end != "left")
        has_left = 0 < len(stayed) < len(everyone)
        return FleetAnswers(
            e_value=self.e_value(),
            asked=self.mean_over(everyone),
            stayed=self.mean_over(stayed) if has_left else None,
            hosts=tuple(self.host_answer(place) for place in everyone),
            new_host=self.new_host(),
            median_of_hosts=self.median_of_hosts(),
            new_normal_host=self.new_normal_host(),
            variance=self.variance(seed),
        )

    # -- one host

    def share(self, place: int) -> float:
        """Return the share of a level that is a host's own; the shares of all add up to 1."""
        if self.planned is not None:
            return 1.0 / self.planned
        return 1.0 / ((place + 1) * (place + 2))

    def host_sequences(self, level: float) -> list[tuple[Bounds, bool]]:
        """Return each host's sequence, all of them at ``level`` together."""
        return [
            _sequence(host.blocks.engine, level * self.share(place), host.name)
            for place, host in enumerate(self.hosts)
        ]

    def host_answer(self, place: int) -> HostAnswer:
        host, (bounds, is_constant) = self.hosts[place], self.sequences[place]
        others = self.others_of(place)
        otherwise: Literal["slower", "faster"] | None = None
        if bounds.low > others.high:
            otherwise = "slower"
        elif bounds.high < others.low:
            otherwise = "faster"
        return HostAnswer(
            blocks=len(host.blocks),
            typical=self.centres[place],
            bounds=bounds,
            ratio_is_constant=is_constant,
            others=others,
            otherwise=otherwise,
        )

    def others_of(self, place: int) -> Bounds:
        """Return the sequence of the mean over the other asked hosts.

        That from the hosts' sequences costs nothing more; that from the rounds has its share of
        alpha/2, so that all hosts can be looked at.
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
        bounds = by_hosts = self.by_hosts(places, self.for_mean, self.of_mean)
        equivalence = self.by_hosts(places, self.wider, equivalence_level(self.of_mean))
        by_rounds: Bounds | None = None
        roster = self.roster_of(places)
        if roster is not None:
            sequence = self.rounds.mean_sequence(roster)
            of_roster = self.alpha * share_of_roster(roster.number)
            by_rounds, wider = (
                _sequence(sequence, level, "the mean over the rounds")[0]
                for level in (of_roster, equivalence_level(of_roster))
            )
            bounds = _intersection(by_hosts, by_rounds, self.alpha)
            equivalence = _intersection(equivalence, wider, equivalence_level(self.alpha))
        typical = self.typical_over(places)
        if typical is not None:
            typical = min(max(typical, bounds.low), bounds.high)
        ln_mean_ratio = float(self.parts_of(places) @ self.ln_mean_ratios(places))
        verdict, means_veto = verdict_by(
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
        """Return the weighted mean of hosts' sequences; all of them cover together."""
        bounds = [sequences[place][0] for place in places]
        unknown = next((each.unknown_because for each in bounds if each.unknown_because), None)
        if unknown is not None:
            return Bounds(*_UNLIMITED, level, unknown)
        parts = self.parts_of(places)
        low = float(parts @ np.array([each.low for each in bounds]))
        high = float(parts @ np.array([each.high for each in bounds]))
        return Bounds(low, high, level)

    def roster_of(self, places: tuple[int, ...]) -> Roster | None:
        """Return the roster of just these hosts; none of one host or of those that came and joined.

        A host that joins would make another first roster at every look.
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

    # -- the means, which have a say in the verdict

    def ln_mean_ratios(self, places: Sequence[int]) -> FloatArray:
        blocks = [self.hosts[place].blocks for place in places]
        return np.array([ln_ratio_of_means(block.baseline, block.candidate) for block in blocks])

    def means_allow(self, places: Sequence[int]) -> bool:
        """Return whether the means and the slow runs of all hosts allow ``equivalent``.

        The bound is that of the weighted mean. Slow runs are rare on a single host: they are
        weighed together, each cost over the median of its host.
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
            np.concatenate([own.own_baseline / median for own, median in hosts]),
            np.concatenate([candidate.candidate / median for candidate, median in hosts]),
            self.margin,
        )

    def means_contradict(self, places: Sequence[int], side: float) -> bool:
        """Return whether the means lie beyond the margin on the other side, also without a block.

        That is, without the one block, of any host, that speaks for it most.
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
        """Return why nothing can be said between hosts; ``None`` where something can."""
        identities = len({host.identity for host in self.hosts})
        if identities == 1:
            return "all campaigns ran on one host: nothing is known between hosts"
        if identities < len(self.hosts):
            return "some campaigns ran on the same host: they are no draws of different hosts"
        return None

    def not_drawn_because(self) -> str | None:
        """Return why the asked hosts say nothing about others."""
        because = self.one_host_because()
        if because is not None:
            return because
        if self.planned is None:
            return "the number of hosts was not fixed before the first trial"
        left = [host.name for host in self.hosts if host.end == "left"]
        if left:
            return f"{', '.join(left)} left: those that stayed may not be like those that left"
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
        """Return Student's prediction from what every campaign has measured whatever it showed.

        Later blocks change it no more, so that looking again costs nothing.
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
        known = [values for values in differences if len(values)]
        if any(not np.isfinite(values).all() for values in known):
            return HostVariance((), "a trial timed out: the block differences have no variance")
        if len(known) < 2 or all(len(values) < 2 for values in known):
            return HostVariance((), "fewer than two hosts have two blocks")
        units = np.repeat(np.arange(len(known)), [len(values) for values in known])
        values = np.concatenate(known)
        levels = variance_by_level(values, [units], ["host", "block"], seed=seed, level=self.alpha)
        return HostVariance(levels.components)


def share_of_roster(number: int) -> float:
    """Return the part of alpha of the g-th roster's rounds, from 1; all of them add up to 0.9."""
    if number == 1:
        return SHARE_OF_FIRST_ROSTER
    rest = 1.0 - SHARE_OF_HOSTS - SHARE_OF_FIRST_ROSTER
    return rest / (number * (number - 1))


def _differences_of(blocks: PairedBlocks) -> FloatArray:
    """Return the block differences without the slot effect, ties left out."""
    differences, centre = blocks.differences, blocks.engine.centre()
    slot = 0.0 if centre is None else centre[1]
    known = ~np.isnan(differences)
    corrected: FloatArray = (differences - blocks.orders * slot)[known]
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


def _intersection(one: Bounds, other: Bounds, level: float) -> Bounds:
    """Return what two intervals share; unlimited, with the reason, where they share nothing."""
    low, high = max(one.low, other.low), min(one.high, other.high)
    if low > high:
        nothing = "the two intervals share nothing: no constant ratios agree with all blocks"
        return Bounds(*_UNLIMITED, level, nothing)
    because = None
    if not (math.isfinite(low) and math.isfinite(high)):
        because = one.unknown_because or other.unknown_because
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
            "the blocks that were known at the end of a host are not of every host",
            hint="give one number for each asked host",
        )
    if planned is not None and planned != len(hosts):
        raise UnusableInput(
            f"{planned} hosts were planned, but there are {len(hosts)}",
            hint="give every planned host, those without a block too",
        )


class Roster(Struct, frozen=True):
    """Hosts that are in every round of a stretch."""

    number: int
    """From 1, of those that have a round."""
    places: tuple[int, ...]
    """Places of the hosts among the asked ones, from 0."""
    starts: tuple[int, ...]
    """For each of these hosts the number of its blocks before the first round."""
    rounds: int
    """Complete rounds."""


def rosters_of(hosts: Sequence[FleetHost]) -> tuple[Roster, ...]:
    """Return the rosters that have at least one round, in the order of their rounds.

    A host that was stopped with a look at others' blocks (``known_at_end``) must not choose what
    the next roster is made of: that roster begins after the blocks that were known.
    """
    lengths = [len(host.blocks) for host in hosts]
    members, starts = list(range(len(hosts))), [0] * len(hosts)
    rosters: list[Roster] = []
    while members:
        rounds = min(max(0, lengths[place] - starts[place]) for place in members)
        if rounds:
            of_members = tuple(starts[place] for place in members)
            rosters.append(Roster(len(rosters) + 1, tuple(members), of_members, rounds))
        ended = [
            place
            for place in members
            if hosts[place].end != "measuring" and lengths[place] - starts[place] <= rounds
        ]
        if not ended:
            break
        members = [place for place in members if place not in ended]
        for place in members:
            known = (hosts[place_].known_at_end for place_ in ended)
            later = [values[place] for values in known if values is not None]
            starts[place] = max(starts[place] + rounds, *later, 0)
    return tuple(rosters)


class Rounds:
    """Rounds of all rosters of a fleet."""

    def __init__(self, hosts: Sequence[FleetHost]) -> None:
        self.rosters = rosters_of(hosts)
        """Rosters that have a round."""
        self._hosts = hosts

    def mean_sequence(self, roster: Roster, *, without: int | None = None) -> BettingSequence:
        """Return the bets on the mean over a roster, one block for each round.

        One asked host may be left out, by its place; at least one other is in the roster. Weights
        are scaled to add up to 1.
        """
        used = [
            (place, slice(start, start + roster.rounds))
            for place, start in zip(roster.places, roster.starts, strict=True)
            if place != without
        ]
        weights = np.array([self._hosts[place].weight for place, _ in used])
        weights /= weights.sum()
        # All coins of a round change their sides together; that of one host stands for them.
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
    """Return the block differences without the slot effect of the blocks before each.

    Shape (n,). The slot effect of a host follows the host's own coin, which the mean over hosts
    no longer shows.
    """
    differences, orders = blocks.differences, blocks.orders
    corrected = differences.copy()
    learnt = _FIRST_SLOT
    while learnt < len(differences):
        known = BettingSequence(
            differences[:learnt], orders[:learnt], blocks.tolerances[:learnt]
        ).centre()
        until = min(len(differences), math.ceil(learnt * _SLOT_GROWTH))
        if known is not None:
            corrected[learnt:until] -= orders[learnt:until] * known[1]
        learnt = until
    return corrected
