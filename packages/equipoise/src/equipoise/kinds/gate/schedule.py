"""Forecast what each benchmark of a gate needs, and choose the benchmarks of the next block.

A block runs the benchmarks that probably need the least time until a decision. Benchmarks that look
slower come first, because a gate exists to find them. A benchmark that the rest of the budget
cannot decide comes last: it gets only the time that the others leave.

The choice depends only on earlier blocks, so the order of each block stays a fair coin
(docs/methods/gate.md).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from msgspec import Struct

from equipoise.kinds.gate.terms import GateRowForecast, KnownNoise
from equipoise.model.record import CampaignWarning
from equipoise.report.units import waiting_time
from equipoise.shared.spelling import option
from equipoise.stats.verdict import blocks_to_win, equivalence_level, margin_of

MIN_BLOCKS_OF_FORECAST = 5
"""Number of blocks that each benchmark gets, whatever its forecast is."""
BLOCK_SHARE = 0.05
"""Maximum seconds of a block, as a share of the rest of the budget."""
MAX_FORECAST_BLOCKS = 100_000
"""Maximum number of blocks of a forecast; a benchmark that needs more has no forecast."""
_BLOCKS_OF_NOISE = 2.2
"""Blocks for each unit of ln(2/level)·(spread/distance)². A test that knows the spread needs 2
(Wald 1945); the engine also learns the spread."""
_RELATIVE_ERROR = 1.25
"""Standard error of the typical log ratio, times the square root of the blocks, over the spread."""
_MAX_WEIGHT_OF_EARLIER_BLOCKS = 8
"""Maximum number of blocks for which the spread of an earlier gate counts."""
_SUGGESTED_EFFECTS = (1, 2, 3, 5, 10, 15, 20, 30, 50, 100)
"""Values of ``--min-effect`` that a forecast may name, in percent."""


class ComparisonState(Struct, frozen=True):
    """The state of one comparison after some blocks."""

    blocks: int
    spread: float | None
    """Robust standard deviation of the log ratio of one block; ``None`` if unknown."""
    typical: float = 0.0
    """Typical log ratio, candidate over baseline."""
    is_decided: bool = False
    is_slower: bool = False
    """Whether the comparison is decided as slower or, if it is undecided, looks slower."""

    def distance_from(self, margin: float) -> float:
        """Return the expected log distance of the true ratio from a margin.

        Without a block, the true ratio is taken as 1. Otherwise the distance has a folded normal
        distribution: near the margin it is not 0, but about the standard error.
        """
        mean = abs(self.typical - margin)
        if not self.blocks or not self.spread:
            return mean
        error = _RELATIVE_ERROR * self.spread / math.sqrt(self.blocks)
        z = mean / error
        return error * math.sqrt(2.0 / math.pi) * math.exp(-0.5 * z * z) + mean * math.erf(
            z / math.sqrt(2.0)
        )

    def needed_blocks(self, margin: float, level: float) -> float:
        """Return the forecast number of blocks in all that exclude a margin at a level.

        The number is infinite if the spread is unknown, or above `MAX_FORECAST_BLOCKS`.
        """
        if math.isinf(self.typical):
            # Most trials of one revision time out.
            return max(blocks_to_win(level), self.blocks + 1.0)
        if self.spread is None or not math.isfinite(self.spread):
            return math.inf
        distance = self.distance_from(margin)
        if distance <= 0.0:
            return math.inf
        noise = _BLOCKS_OF_NOISE * math.log(2.0 / level) * (self.spread / distance) ** 2
        blocks = max(blocks_to_win(level) + noise, self.blocks + 1.0)
        return blocks if blocks <= MAX_FORECAST_BLOCKS else math.inf


def pooled_spread(own: float | None, blocks: int, known: KnownNoise | None) -> float | None:
    """Return the spread from the blocks so far and those of an earlier gate; ``None`` if unknown.

    ``own`` is the spread of the ``blocks`` blocks so far. Without an earlier gate, fewer blocks
    than `MIN_BLOCKS_OF_FORECAST` give no spread.
    """
    if known is None:
        return own if blocks >= MIN_BLOCKS_OF_FORECAST else None
    if own is None:
        return known.spread
    weight = min(known.blocks, _MAX_WEIGHT_OF_EARLIER_BLOCKS)
    return math.sqrt((blocks * own**2 + weight * known.spread**2) / (blocks + weight))


def forecast_blocks(
    states: Sequence[ComparisonState], *, min_effect: float, alpha: float
) -> tuple[float, ...]:
    """Forecast the blocks of each comparison in all; infinite without a forecast.

    Of K comparisons, those on one side of the margin share alpha: the comparison in place R has the
    level alpha·R/K, if all before it are decided. Decided comparisons come first, then those with
    the least noise over the distance.
    """
    margin, count = margin_of(min_effect), len(states)
    forecasts = [math.inf] * count
    for is_slower in (True, False):
        side = [index for index in range(count) if states[index].is_slower is is_slower]
        difficulties = {index: states[index].needed_blocks(margin, alpha) for index in side}
        side.sort(key=lambda index: (not states[index].is_decided, difficulties[index]))
        for place, index in enumerate(side, start=1):
            level = equivalence_level(alpha * place / count)
            forecasts[index] = states[index].needed_blocks(margin, level)
    return tuple(forecasts)


def row_forecast(
    state: ComparisonState,
    needed_blocks: float,
    block_s: float,
    limit_s: float,
    *,
    min_effect: float,
    alpha: float,
) -> GateRowForecast | None:
    """Return the forecast for the result; ``None`` if ``needed_blocks`` is infinite.

    ``block_s`` are the seconds of one block of the benchmark. A larger smallest effect is named if
    it probably decides in ``limit_s`` seconds.
    """
    if math.isinf(needed_blocks):
        return None
    forecast = GateRowForecast(math.ceil(needed_blocks), block_s * needed_blocks)
    for effect in _SUGGESTED_EFFECTS:
        seconds = block_s * state.needed_blocks(margin_of(effect), equivalence_level(alpha))
        if effect > min_effect and seconds <= min(limit_s, 0.5 * forecast.seconds):
            return GateRowForecast(forecast.blocks, forecast.seconds, effect, seconds)
    return forecast


class OpenBenchmark(Struct, frozen=True):
    """An undecided benchmark that the next block may run."""

    index: int
    blocks: int
    """Number of blocks so far."""
    block_s: float
    """Mean seconds of one block of the benchmark."""
    needed_blocks: float
    """Forecast number of blocks in all; infinite without a forecast."""
    looks_slower: bool = False
    is_untouched: bool = False
    """Whether the benchmark runs no file that differs between the revisions."""

    @property
    def remaining_s(self) -> float:
        """Forecast seconds until the decision."""
        return self.block_s * (self.needed_blocks - self.blocks)


_UNDECIDABLE = 3
"""First number of the key of a benchmark that the rest of the budget cannot decide."""


def _place(benchmark: OpenBenchmark, left_s: float, min_blocks: int) -> tuple[int, float]:
    """Return a key by which the schedule orders benchmarks."""
    if benchmark.blocks < min_blocks:
        return 0, benchmark.block_s
    if benchmark.remaining_s > left_s:
        return _UNDECIDABLE, benchmark.remaining_s
    return 1 if benchmark.looks_slower else 2, benchmark.remaining_s


def choose(benchmarks: Sequence[OpenBenchmark], left_s: float, min_blocks: int) -> tuple[int, ...]:
    """Return the indices of the benchmarks that the next block runs; at least one.

    ``left_s`` seconds of the budget are left. These benchmarks come first: those with fewer than
    ``min_blocks`` blocks, then those that look slower, then the others, then those that the rest of
    the budget cannot decide alone. In each group, the shortest forecast comes first. A block takes
    at most `BLOCK_SHARE` of the rest of the budget, except that it runs every benchmark with too
    few blocks. Untouched benchmarks wait until the budget can decide no other benchmark.
    """
    chosen: list[int] = []
    block_s = 0.0
    touched = [
        benchmark
        for benchmark in benchmarks
        if not benchmark.is_untouched and _place(benchmark, left_s, min_blocks)[0] < _UNDECIDABLE
    ]
    first = touched or benchmarks
    for benchmark in sorted(first, key=lambda each: _place(each, left_s, min_blocks)):
        block_s += benchmark.block_s
        max_s = left_s if benchmark.blocks < min_blocks else BLOCK_SHARE * left_s
        if chosen and block_s > max_s:
            break
        chosen.append(benchmark.index)
    return tuple(sorted(chosen))


def warning_of_budget(name: str, forecast: GateRowForecast) -> CampaignWarning:
    """Return the warning that the budget probably cannot decide a benchmark."""
    return CampaignWarning(
        "needs_more_time",
        f"the budget probably cannot decide {name}: it {needed_time_clause(forecast)}",
        f"raise {option('budget')} or {option('min_effect')}; the other benchmarks come first",
    )


def needed_time_clause(forecast: GateRowForecast) -> str:
    """Return ``needs about 40 min at this noise; --min-effect 5 would decide in 2 min``."""
    clause = f"needs about {waiting_time(forecast.seconds)} at this noise"
    if forecast.min_effect is None or forecast.min_effect_s is None:
        return clause
    effect = option("min_effect", f"{forecast.min_effect:g}")
    return f"{clause}; {effect} would decide in {waiting_time(forecast.min_effect_s)}"
