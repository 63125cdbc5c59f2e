"""Decide a gate that ran on several runners, from the blocks of all runners (docs/methods/gate.md).

The hypotheses about one benchmark are "not slower on runner h", for each runner, and "not slower on
the mean over the runners"; slower means slower by more than the smallest effect that matters. Each
runner has its own coin, so the e-values of runners may be multiplied and averaged (Vovk and Wang
2021). A closed test names the runners: a hypothesis is rejected if every intersection of hypotheses
that contains it is rejected. The e-value of a runner or of the mean is E⁺ of the margin, at the
stop.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from msgspec import Struct

from equipoise._native import BettingSequence
from equipoise.kinds.gate.terms import GateOutcome
from equipoise.stats.hosts import HostBlocks, Rounds
from equipoise.stats.sequence import PairedBlocks
from equipoise.stats.verdict import (
    ComparisonVerdict,
    LogRatioIntervals,
    check_alpha,
    equivalence_level,
    judge_alone,
    judge_at_stop,
    margin_of,
    select_most,
    typical_log_ratio,
)

MEAN_SHARE = 0.25
"""Share of the evidence on the mean in the e-value of a benchmark."""
PRODUCT_SHARE = 1.0 / 3.0
"""Share of the product in the e-value of several runners; the rest is the average."""
ROUNDS_SHARE = 0.9
"""Share of a level for the rounds in the interval of the mean; the runners' intervals have the
rest."""


class MeanVerdict(LogRatioIntervals, frozen=True):
    """The mean of the log ratios over the runners, with equal weights.

    The typical log ratio is the mean of the runners' typical ones; ``None`` if one is not finite.
    """


class JoinedDecision(Struct, frozen=True):
    """Decision on one benchmark over its runners."""

    outcome: GateOutcome
    """``slower`` on at least one runner; ``passes`` on every runner; else ``undecided``."""
    level: float
    """Level of the decision. Each interval has this level alone: 1 minus its coverage."""
    mean: MeanVerdict
    mean_outcome: GateOutcome
    runners: tuple[ComparisonVerdict, ...]
    runner_outcomes: tuple[GateOutcome, ...]
    """Outcome on each runner. With ``mean_outcome``, all ``slower`` hold together at the level."""


def judge_joined(
    benchmarks: Sequence[Sequence[PairedBlocks]], *, min_effect: float, alpha: float
) -> tuple[JoinedDecision, ...]:
    """Decide for each benchmark whether it is slower on any runner, or passes on every runner.

    ``benchmarks`` has the blocks of each benchmark by runner, at least one; a runner may have no
    block. The runners of one benchmark must have independent coins. If no benchmark is slower on
    any runner, the chance of any ``slower`` is at most alpha. Of the benchmarks that are slower, on
    average at most alpha have a false claim about a runner or the mean (e-BH: Wang and Ramdas
    2022).

    Raise `UnusableInput` unless ``min_effect`` is 0 or more and ``alpha`` is between 0 and 1.
    """
    margin, count = margin_of(min_effect), len(benchmarks)
    check_alpha(alpha)
    # As in the gate of one runner, a single benchmark has the running intervals.
    judge_one = judge_alone if count == 1 else judge_at_stop
    evidence = [_JoinedEvidence(runners, margin, judge_one) for runners in benchmarks]

    def judge_all_at(level: float) -> list[JoinedDecision]:
        return [benchmark.decision(level) for benchmark in evidence]

    slower = select_most(judge_all_at, lambda decision: decision.outcome == "slower", alpha, count)
    passing = select_most(judge_all_at, lambda decision: decision.outcome == "passes", alpha, count)
    at_smallest_level = judge_all_at(alpha / count) if count else []
    return tuple(
        slower.get(index) or passing.get(index) or decision
        for index, decision in enumerate(at_smallest_level)
    )


class _JoinedEvidence:
    """The blocks of one benchmark on its runners."""

    def __init__(
        self,
        runners: Sequence[PairedBlocks],
        margin: float,
        judge_one: Callable[[PairedBlocks, float, float], ComparisonVerdict],
    ) -> None:
        self.runners, self.margin, self.judge_one = runners, margin, judge_one
        self.rounds = _rounds_over(runners)
        self.ln_e_values = [blocks.engine.ln_e_value_above(margin) for blocks in runners]
        # Without a round, the e-value of the mean is 1.
        ln_rounds = 0.0 if self.rounds is None else self.rounds.ln_e_value_above(margin)
        self.ln_e_mean = ln_rounds + math.log(ROUNDS_SHARE)

    def decision(self, level: float) -> JoinedDecision:
        runners = tuple(self.judge_one(blocks, self.margin, level) for blocks in self.runners)
        mean = self.mean_at(level) if len(runners) > 1 else _mean_of_one(runners[0])
        outcomes = tuple(
            self.outcome_on_runner(index, verdict, level) for index, verdict in enumerate(runners)
        )
        passes = all(map(self.passes, runners))
        outcome: GateOutcome = "undecided"
        if self.ln_e_value() >= -math.log(level) or "slower" in outcomes:
            outcome = "slower"
        elif passes:
            outcome = "passes"
        mean_outcome: GateOutcome = "undecided"
        if self.mean_is_slower(level) or set(outcomes) == {"slower"}:
            mean_outcome = "slower"
        elif mean.equivalence_high <= self.margin:
            mean_outcome = "passes"
        return JoinedDecision(outcome, level, mean, mean_outcome, runners, outcomes)

    def outcome_on_runner(
        self, index: int, verdict: ComparisonVerdict, level: float
    ) -> GateOutcome:
        is_alone = len(self.runners) == 1
        is_slower = verdict.equivalence_low > self.margin
        if is_slower if is_alone else self.is_slower_on(index, level):
            return "slower"
        return "passes" if self.passes(verdict) else "undecided"

    def passes(self, verdict: ComparisonVerdict) -> bool:
        """Return whether a runner passes; a wrong pass has at most the chance of the level."""
        return verdict.equivalence_high <= self.margin and verdict.ln_mean_ratio <= self.margin

    # -- the closed test: an intersection is a set of runners, with or without the mean

    def ln_e_value(self) -> float:
        """Return the evidence against "not slower on any runner", which includes the mean."""
        return self.ln_of(self.ln_e_values, with_mean=True)

    def ln_of(self, ln_e_values: Sequence[float], *, with_mean: bool) -> float:
        """Return the logarithm of the e-value of an intersection of hypotheses."""
        if not ln_e_values:
            return self.ln_e_mean
        count = len(ln_e_values)
        average = float(np.logaddexp.reduce(ln_e_values)) - math.log(count)
        ln_runners = float(
            np.logaddexp(
                math.log(PRODUCT_SHARE) + sum(ln_e_values),
                math.log1p(-PRODUCT_SHARE) + average,
            )
        )
        if not with_mean or len(self.ln_e_values) == 1:
            return ln_runners
        return float(
            np.logaddexp(
                math.log(MEAN_SHARE) + self.ln_e_mean, math.log1p(-MEAN_SHARE) + ln_runners
            )
        )

    def is_slower_on(self, index: int, level: float) -> bool:
        """Return whether every intersection with the hypothesis about a runner is rejected.

        Among intersections of one size, the one with the smallest e-values has the least evidence.
        """
        own = self.ln_e_values[index]
        others = sorted(value for other, value in enumerate(self.ln_e_values) if other != index)
        sets = [[own, *others[:size]] for size in range(len(others) + 1)]
        evidence = [self.ln_of(values, with_mean=True) for values in sets]
        # "Not slower on any runner" includes the mean, so its test always uses the mean, too.
        evidence += [self.ln_of(values, with_mean=False) for values in sets[:-1]]
        return min(evidence) >= -math.log(level)

    def mean_is_slower(self, level: float) -> bool:
        """Return whether every intersection with the hypothesis about the mean is rejected."""
        if len(self.runners) == 1:
            return False
        values = sorted(self.ln_e_values)
        evidence = (self.ln_of(values[:size], with_mean=True) for size in range(len(values) + 1))
        return min(evidence) >= -math.log(level)

    # -- the mean

    def mean_at(self, level: float) -> MeanVerdict:
        """Return the mean, with the intersection of both intervals at shares of a level."""
        typical_ratios = [typical_log_ratio(blocks) for blocks in self.runners]
        known = [ratio for ratio in typical_ratios if ratio is not None and math.isfinite(ratio)]
        typical = float(np.mean(known)) if len(known) == len(self.runners) else None
        low, high = self.mean_interval(level)
        equivalence_low, equivalence_high = self.mean_interval(equivalence_level(level))
        return MeanVerdict(typical, low, high, equivalence_low, equivalence_high)

    def mean_interval(self, level: float) -> tuple[float, float]:
        runner_level = (1.0 - ROUNDS_SHARE) * level / len(self.runners)
        bounds = [blocks.engine.interval_at_stop(runner_level) for blocks in self.runners]
        low, high = (sum(ends) / len(ends) for ends in zip(*bounds, strict=True))
        if self.rounds is not None:
            rounds_low, rounds_high = self.rounds.interval_at_stop(ROUNDS_SHARE * level)
            low, high = max(low, rounds_low), min(high, rounds_high)
        # Both intervals are disjoint only if a ratio is not constant: then nothing is known.
        return (low, high) if low <= high else (-math.inf, math.inf)


def _mean_of_one(verdict: ComparisonVerdict) -> MeanVerdict:
    return MeanVerdict(
        verdict.typical,
        verdict.low,
        verdict.high,
        verdict.equivalence_low,
        verdict.equivalence_high,
    )


def _rounds_over(runners: Sequence[PairedBlocks]) -> BettingSequence | None:
    """Return the bets on the mean over the runners; ``None`` if a runner has no block."""
    count = len(runners)
    if count == 1 or not all(map(len, runners)):
        return None
    hosts = [
        HostBlocks(str(index), str(index), blocks, 1.0 / count, "finished")
        for index, blocks in enumerate(runners)
    ]
    rounds = Rounds(hosts)
    return rounds.mean_sequence(rounds.rosters[0])
