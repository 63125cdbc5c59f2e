"""Decide a gate during and after its campaign, and forecast the number of blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from equipoise.campaign.blocks import seconds_of_conditions
from equipoise.campaign.interim import (
    CampaignKind,
    InterimAnalysis,
    InterimVerdict,
    required_blocks,
)
from equipoise.campaign.progress import ComparisonStatus
from equipoise.kinds.gate.schedule import (
    MIN_BLOCKS_OF_FORECAST,
    ComparisonState,
    OpenBenchmark,
    choose,
    forecast_blocks,
    pooled_spread,
    row_forecast,
    warning_of_budget,
)
from equipoise.kinds.gate.terms import GateOutcome, GatePlan, KnownNoise
from equipoise.model.plan import Contrast, Plan, Stopping
from equipoise.model.record import CampaignWarning, Phase, Trial
from equipoise.model.revisions import BENCHMARK
from equipoise.stats.exact_counts import blocks_to_repeat, judge_counts_function
from equipoise.stats.sequence import PairedBlocks
from equipoise.stats.verdict import (
    FORECAST_GROWTH,
    MAX_FORECAST_BLOCKS,
    MIN_CONTINUATIONS,
    MIN_FORECAST_BLOCKS,
    ComparisonVerdict,
    blocks_to_win,
    equivalence_level,
    judge_at_stop,
    judge_function,
    margin_of,
    select_most,
)

CONTINUATIONS = 20
"""Number of simulated continuations of the campaign that give the forecast of a comparison."""
MAX_CONTINUATIONS = 200
"""Maximum for all undecided comparisons together; each has at least `MIN_CONTINUATIONS`."""
SLICE_ALPHA_SHARE = 0.125
"""Share of alpha at which a slice ends as ``slower``: one of up to four runners is then found."""
MIN_BLOCKS_OF_SPREAD = 4
"""Minimum number of measured blocks for a simulation; with fewer, the forecast is a bound."""


class GateDecision(Struct, frozen=True):
    """Outcome of one comparison of a gate, and the verdict with the deciding interval."""

    outcome: GateOutcome
    verdict: ComparisonVerdict


def judge_gate(
    comparisons: Sequence[PairedBlocks], *, min_effect: float, alpha: float
) -> tuple[GateDecision, ...]:
    """Decide for each candidate whether it is slower by more than the smallest effect that matters.

    A candidate is ``slower`` if the low end of the interval is above the effect. A candidate passes
    if the high end of the interval and the ratio of means are at most the effect. For each outcome,
    `select_most` chooses the level of the intervals by e-BH (Wang and Ramdas 2022). The expected
    share of false failures is at most alpha (docs/methods/gate.md).

    Parameters and errors are those of `equipoise.stats.verdict.judge`.
    """
    judge_all_at = judge_function(comparisons, min_effect, alpha)
    return _decide_all(judge_all_at, len(comparisons), min_effect=min_effect, alpha=alpha)


def judge_counting_gate(
    comparisons: Sequence[PairedBlocks], *, min_effect: float, alpha: float
) -> tuple[GateDecision, ...]:
    """Decide as `judge_gate` about counts, which may repeat exactly (`stats.exact_counts`)."""
    judge_all_at = judge_counts_function(
        comparisons, judge_function(comparisons, min_effect, alpha)
    )
    return _decide_all(judge_all_at, len(comparisons), min_effect=min_effect, alpha=alpha)


def judge_of(terms: GatePlan) -> Callable[..., tuple[GateDecision, ...]]:
    """Return the function that decides a gate, a gate that counts, or a slice of a gate."""
    if terms.counted_by:
        return judge_counting_gate
    return judge_gate if terms.slice is None else judge_slice


def min_blocks_of(terms: GatePlan, alpha: float) -> int:
    """Return the smallest number of blocks after which a gate can be decided."""
    return blocks_to_repeat(alpha) if terms.counted_by else blocks_to_win(equivalence_level(alpha))


def _decide_all(
    judge_all_at: Callable[[float], list[ComparisonVerdict]],
    count: int,
    *,
    min_effect: float,
    alpha: float,
) -> tuple[GateDecision, ...]:
    """Decide ``count`` comparisons, which a function judges at a level."""
    margin = margin_of(min_effect)

    def is_slower(verdict: ComparisonVerdict) -> bool:
        return verdict.equivalence_low > margin

    def passes_gate(verdict: ComparisonVerdict) -> bool:
        return verdict.equivalence_high <= margin and verdict.ln_mean_ratio <= margin

    slower = select_most(judge_all_at, is_slower, alpha, count)
    passing = select_most(judge_all_at, passes_gate, alpha, count)
    undecided = judge_all_at(alpha / count) if count else []
    return tuple(
        GateDecision("slower", slower[index])
        if index in slower
        else GateDecision("passes", passing[index])
        if index in passing
        else GateDecision("undecided", verdict)
        for index, verdict in enumerate(undecided)
    )


def judge_slice(
    comparisons: Sequence[PairedBlocks], *, min_effect: float, alpha: float
) -> tuple[GateDecision, ...]:
    """Decide as `judge_gate`, but ``slower`` needs the evidence with which a join names a runner.

    A slice ends by this rule. The level for ``slower`` is `SLICE_ALPHA_SHARE` of alpha, because a
    join makes several claims about each benchmark. The interval is that at the stop also for a
    single benchmark, because a join uses e-values at the stop.
    """
    decisions = judge_gate(comparisons, min_effect=min_effect, alpha=alpha)
    margin, count = margin_of(min_effect), len(comparisons)
    slower = select_most(
        lambda level: [judge_at_stop(blocks, margin, level) for blocks in comparisons],
        lambda verdict: verdict.equivalence_low > margin,
        SLICE_ALPHA_SHARE * alpha,
        count,
    )
    return tuple(
        GateDecision("slower", slower[index])
        if index in slower
        else decision
        if decision.outcome == "passes"
        else replace(decision, outcome="undecided")
        for index, decision in enumerate(decisions)
    )


class GateForecast(Struct, frozen=True):
    """Forecast for one undecided comparison of a gate."""

    blocks: int
    """Number of blocks until the decision, including the measured blocks."""
    is_lower_bound: bool
    """Whether ``blocks`` is only the minimum number for any decision."""


def forecast_gate(
    comparisons: Sequence[PairedBlocks],
    decisions: Sequence[GateDecision],
    *,
    min_effect: float,
    alpha: float,
    min_blocks: int,
    seed: int,
) -> tuple[GateForecast | None, ...]:
    """Forecast how many blocks each undecided comparison of a gate needs in all.

    The forecast is the median over simulated continuations of the campaign. A continuation draws
    measured blocks again, in new random orders. The forecast is ``None`` for a decided comparison,
    and if half of the continuations end undecided. ``decisions`` are the results of `judge_gate`.
    ``min_blocks`` is the forecast if too few blocks are measured for a simulation.
    """
    count = len(decisions)
    undecided_flags = [decision.outcome == "undecided" for decision in decisions]
    # The level at which one more comparison would be decided.
    level = alpha * min(count - sum(undecided_flags) + 1, count) / max(1, count)
    max_per_comparison = MAX_CONTINUATIONS // max(1, sum(undecided_flags))
    continuation_count = max(MIN_CONTINUATIONS, min(CONTINUATIONS, max_per_comparison))
    margin = margin_of(min_effect)

    def forecast(blocks: PairedBlocks, decision: GateDecision) -> GateForecast | None:
        verdict = decision.verdict
        if len(blocks) < MIN_BLOCKS_OF_SPREAD:
            return GateForecast(max(min_blocks, len(blocks) + 1), is_lower_bound=True)
        if verdict.equivalence_high <= margin < verdict.ln_mean_ratio:
            # The typical run passes, but rare slow runs prevent a pass. They are not simulated.
            return None
        side_level = equivalence_level(level)
        block_count = _median_block_count(blocks, margin, side_level, continuation_count, seed)
        return None if block_count is None else GateForecast(block_count, is_lower_bound=False)

    return tuple(
        forecast(blocks, decision) if needs_forecast else None
        for blocks, decision, needs_forecast in zip(
            comparisons, decisions, undecided_flags, strict=True
        )
    )


def _median_block_count(
    blocks: PairedBlocks, margin: float, level: float, continuation_count: int, seed: int
) -> int | None:
    """Return the median number of blocks until the interval excludes the margin."""
    count = len(blocks)
    extra_blocks = min(max(FORECAST_GROWTH * count, MIN_FORECAST_BLOCKS), MAX_FORECAST_BLOCKS)
    remaining = blocks.engine.blocks_to_exclude_margin(
        level, margin, extra_blocks, continuation_count, seed
    )
    return None if remaining is None else count + remaining


def comparison_state(
    blocks: PairedBlocks, known: KnownNoise | None, margin: float, outcome: GateOutcome
) -> ComparisonState:
    """Return the state of a comparison, from its blocks and its noise in an earlier gate."""
    centre = blocks.engine.centre()
    typical, _, spread = (0.0, 0.0, None) if centre is None else centre
    return ComparisonState(
        len(blocks),
        pooled_spread(spread, len(blocks), known),
        typical,
        is_decided=outcome != "undecided",
        is_slower=typical > margin if outcome == "undecided" else outcome == "slower",
    )


class MeanSeconds:
    """Mean seconds of one block of each benchmark, over the blocks that ran the benchmark.

    ``known`` has the noises of earlier gates, or is empty.
    """

    def __init__(self, contrasts: Sequence[Contrast], known: Sequence[KnownNoise | None]) -> None:
        self._contrasts = contrasts
        self._known_s = [0.0 if noise is None else noise.block_s for noise in known]
        self._total_s = [0.0] * len(contrasts)
        self._blocks = [0] * len(contrasts)

    def add(self, block: tuple[Trial, ...]) -> None:
        """Add a block; it may run only some benchmarks."""
        seconds = seconds_of_conditions(block)
        for index, contrast in enumerate(self._contrasts):
            if seconds.keys() >= set(contrast.pair):
                self._total_s[index] += sum(seconds[condition] for condition in contrast.pair)
                self._blocks[index] += 1

    def of(self, index: int) -> float:
        """Return the seconds of a benchmark; 0 if neither this nor an earlier gate ran it."""
        if self._blocks[index]:
            return self._total_s[index] / self._blocks[index]
        return self._known_s[index] if self._known_s else 0.0

    def spent(self, index: int) -> float:
        """Return the seconds of all blocks of a benchmark."""
        return self._total_s[index]


def has_schedule(plan: Plan, stopping: Stopping) -> bool:
    """Return whether blocks run only some of the undecided benchmarks of a gate.

    With a number of blocks in place of a time, every block runs all of them.
    """
    assert isinstance(plan.terms, GatePlan)
    return (
        stopping.leave_out_decided
        and stopping.blocks is None
        and len(plan.contrasts) > 1
        # A few blocks decide counts.
        and not plan.terms.counted_by
    )


class GateCampaign(CampaignKind):
    """The campaign of a gate, which `GateJudge` judges."""

    def interim(self, plan: Plan, stopping: Stopping) -> InterimAnalysis:
        """Return the analysis that runs after each block."""
        return GateJudge(plan, stopping)


MIN_LEFT_SHARE = 0.25
"""Minimum rest of the budget, as a share, for a warning that it cannot decide a benchmark. Later,
the result itself is near."""


class GateJudge(InterimAnalysis):
    """Interim analysis of a gate, by the rule of the result; it also schedules the benchmarks."""

    def __init__(self, plan: Plan, stopping: Stopping) -> None:
        super().__init__(plan, stopping)
        terms = plan.terms
        assert isinstance(terms, GatePlan)
        metric_count, contrast_count = len(terms.metrics), len(plan.contrasts)
        self._known: Sequence[KnownNoise | None] = terms.known_noises or (
            (None,) * (metric_count * contrast_count)
        )
        self._mean_seconds = MeanSeconds(plan.contrasts, self._known[::metric_count])
        self._outcomes: tuple[GateOutcome, ...] = tuple("undecided" for _ in self._known)
        self._warnings: dict[int, CampaignWarning] = {}
        """Warning about each benchmark that the budget cannot decide, by its contrast."""
        self._min_blocks = max(MIN_BLOCKS_OF_FORECAST, required_blocks(plan, stopping))
        self._has_schedule = has_schedule(plan, stopping)
        self._untouched = frozenset(() if terms.touched is None else terms.touched.untouched)

    def compared_metrics(self, plan: Plan) -> tuple[str, ...]:
        """Return the metrics of the gate; each metric has its own decision."""
        assert isinstance(plan.terms, GatePlan)
        return plan.terms.metrics

    def add(self, block: tuple[Trial, ...]) -> None:
        """Add one complete block without an analysis."""
        super().add(block)
        self._mean_seconds.add(block)

    def interim_verdicts(self) -> tuple[InterimVerdict, ...]:
        """Return the decision on each comparison."""
        judgement, terms = self.plan.judgement, self.plan.terms
        assert isinstance(terms, GatePlan)
        judge_all = judge_of(terms)
        decisions = judge_all(
            self.paired_blocks, min_effect=judgement.min_effect, alpha=judgement.alpha
        )
        self._outcomes = tuple(decision.outcome for decision in decisions)
        return tuple(
            InterimVerdict(decision.verdict, decision.outcome != "undecided")
            for decision in decisions
        )

    def earliest_block(self) -> int:
        """Return the number of the first block after which a verdict is possible."""
        assert isinstance(self.plan.terms, GatePlan)
        if not self.plan.terms.counted_by:
            return super().earliest_block()
        min_blocks = min_blocks_of(self.plan.terms, self.plan.judgement.alpha)
        return max(min_blocks, required_blocks(self.plan, self._stopping))

    def analyse(self) -> tuple[ComparisonStatus, ...]:
        """Return the status of each comparison, with a warning if the budget cannot decide it."""
        statuses = super().analyse()
        if not self._has_schedule:
            return statuses
        self._warn_of_budget()
        metric_count = len(self._metrics)
        return tuple(
            replace(status, warning=self._warnings[index // metric_count])
            if index // metric_count in self._warnings and outcome == "undecided"
            else status
            for index, (status, outcome) in enumerate(zip(statuses, self._outcomes, strict=True))
        )

    def needed_conditions(self, phase: Phase, block: int) -> tuple[int, ...]:
        """Return the conditions of the benchmarks that the schedule chooses for the next block."""
        conditions = super().needed_conditions(phase, block)
        left_s, stopping = self._left_s(), self._stopping
        # These blocks beat the budget, so it shares none of them.
        full_blocks = max(
            stopping.min_blocks if stopping.min_blocks_explicit else 0,
            stopping.blocks_before_budget,
        )
        has_choice = phase == "measured" and self._has_schedule and left_s > 0.0
        if not has_choice or self._block_count < full_blocks:
            return conditions
        contrasts = self.plan.contrasts
        benchmarks = [
            benchmark
            for benchmark in self._open_benchmarks()
            if set(contrasts[benchmark.index].pair) <= set(conditions)
        ]
        chosen = choose(benchmarks, left_s, self._min_blocks)
        return tuple(sorted(member for index in chosen for member in contrasts[index].pair))

    def blocks_to_verdict(self) -> tuple[int, ...]:
        """Return no forecast: a gate ends only by its decision or its budget."""
        return ()

    def may_learn_size(self, verdict: ComparisonVerdict) -> bool:
        """Return ``False``: a gate stops at its decision, even if the size is uncertain."""
        return False

    def _left_s(self) -> float:
        """Return the seconds of the budget that are left, without those of the warm-up."""
        block_s = sum(map(self._mean_seconds.of, range(len(self.plan.contrasts))))
        return self._stopping.budget_s - self._seconds - self.plan.warmup_blocks * block_s

    def _states(self) -> tuple[ComparisonState, ...]:
        margin = margin_of(self.plan.judgement.min_effect)
        return tuple(
            comparison_state(blocks, known, margin, outcome)
            for blocks, known, outcome in zip(
                self.paired_blocks, self._known, self._outcomes, strict=True
            )
        )

    def _open_benchmarks(self) -> Iterator[OpenBenchmark]:
        """Yield the undecided benchmarks; a benchmark needs as long as its slowest metric."""
        judgement, metric_count = self.plan.judgement, len(self._metrics)
        states = self._states()
        needed = forecast_blocks(states, min_effect=judgement.min_effect, alpha=judgement.alpha)
        for contrast in range(len(self.plan.contrasts)):
            comparisons = range(contrast * metric_count, (contrast + 1) * metric_count)
            undecided = [index for index in comparisons if not states[index].is_decided]
            yield OpenBenchmark(
                contrast,
                states[comparisons[0]].blocks,
                self._mean_seconds.of(contrast),
                max((needed[index] for index in undecided), default=0.0),
                looks_slower=any(states[index].is_slower for index in undecided),
                is_untouched=contrast in self._untouched,
            )

    def _warn_of_budget(self) -> None:
        """Warn once of each benchmark that the rest of the budget probably cannot decide."""
        left_s, stopping = self._left_s(), self._stopping
        if left_s < MIN_LEFT_SHARE * stopping.budget_s or stopping.min_blocks_explicit:
            return
        judgement, contrasts, states = self.plan.judgement, self.plan.contrasts, self._states()
        undecided_count = sum(not state.is_decided for state in states)
        for benchmark in self._open_benchmarks():
            if benchmark.index in self._warnings or benchmark.remaining_s <= left_s:
                continue
            state = states[benchmark.index * len(self._metrics)]
            forecast = row_forecast(
                state,
                benchmark.needed_blocks,
                benchmark.block_s,
                left_s / undecided_count,
                min_effect=judgement.min_effect,
                alpha=judgement.alpha,
            )
            if forecast is not None:
                candidate = self.plan.conditions[contrasts[benchmark.index].candidate]
                name = candidate.levels.get(BENCHMARK, candidate.name)
                self._warnings[benchmark.index] = warning_of_budget(name, forecast)
