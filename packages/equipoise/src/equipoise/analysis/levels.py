"""Variance of a cost and of a ratio by level, and the sources of spread of one command's times."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from equipoise.analysis.comparisons import primary_comparisons
from equipoise.campaign.blocks import as_cost, block_costs, cost_function
from equipoise.campaign.washouts import analysed_blocks
from equipoise.design.chance import ALL_SOURCES, HELD, STUDY
from equipoise.model.errors import UnusableInput
from equipoise.model.plan import Contrast, Plan
from equipoise.model.quantities import Interval
from equipoise.model.record import Draw, RunRecord, Trial
from equipoise.model.result import Advice, Comparison, VarianceByLevel
from equipoise.model.why import Explanation, Status
from equipoise.stats.arrays import FloatArray, IntArray
from equipoise.stats.levels import Levels, advice, describe_advice, plural_of, variance_by_level
from equipoise.stats.spread import KIND, SpreadChange, describe_spread, holm, spread_change
from equipoise.stats.verdict import finite_ratio

HOST, BOOT, CAMPAIGN = "host", "boot", "campaign"
LAYOUT, TRIAL, ITERATION = "layout", "trial", "iteration"

_TOO_FEW = "too few blocks to tell the levels apart"
_NO_LOGARITHM = "a trial timed out, or cost nothing: its cost has no logarithm"


def cost_by_level(
    plan: Plan, trials: Sequence[Trial], draws: Mapping[int, Draw]
) -> VarianceByLevel | None:
    """Split the variance of the logarithm of one condition's primary cost into its levels.

    ``None`` if trials are the only level. Draws are those of the measured blocks, by number.
    """
    if not _has_levels(plan, trials):
        return None
    metric = plan.judgement.primary_metric
    read = [(trial, _block_logarithms(metric, (trial,), draws[trial.block])) for trial in trials]
    units = [_Unit(costs.logarithms[trial.condition], costs.places, costs) for trial, costs in read]
    return _by_level(plan, (LAYOUT, TRIAL), units)


def ratios_by_level(
    plan: Plan,
    comparisons: Sequence[Comparison],
    blocks: Mapping[int, Sequence[Trial]],
    draws: Mapping[int, Draw],
) -> tuple[Comparison, ...]:
    """Return the primary comparisons, each with the variance of its log ratios by level.

    Iterations are paired in their order, the first with the first.
    """
    if not _has_levels(plan, itertools.chain.from_iterable(blocks.values())):
        return tuple(comparisons)
    metric = plan.judgement.primary_metric
    # Read once: there may be very many comparisons.
    read = [_block_logarithms(metric, block, draws[number]) for number, block in blocks.items()]
    split = (
        _by_level(plan, (LAYOUT, TRIAL), [*_pairs(contrast, read)]) for contrast in plan.contrasts
    )
    return tuple(
        replace(comparison, by_level=_with_interval_of_verdict(by_level, comparison))
        for comparison, by_level in zip(comparisons, split, strict=True)
    )


def _with_interval_of_verdict(
    by_level: VarianceByLevel | None, comparison: Comparison
) -> VarianceByLevel | None:
    """Return the levels with the verdict's interval as the interval across layouts."""
    if by_level is None or comparison.in_these_layouts is None or by_level.unknown_because:
        return by_level
    return replace(by_level, across_ci=comparison.ratio_ci)


def pooled_by_level(
    records: Sequence[RunRecord],
    contrast: Contrast,
    places: Sequence[tuple[int, int]],
    first_blocks: Sequence[int],
) -> VarianceByLevel | None:
    """Split the variance of one comparison over several campaigns into its levels.

    For each campaign, ``places`` has its host and its boot, and ``first_blocks`` the number of its
    complete blocks that count. ``None`` if no level is replicated.
    """
    metric = records[0].plan.judgement.primary_metric
    units: list[_Unit] = []
    campaigns = zip(records, places, first_blocks, strict=True)
    for number, (record, (host, boot), first) in enumerate(campaigns):
        draws, blocks = record.measured_draws, analysed_blocks(record)
        some = itertools.islice(blocks.items(), first)
        read = [_block_logarithms(metric, block, draws[at]) for at, block in some]
        units.extend(
            replace(pair, places=(host, boot, number, *pair.places))
            for pair in _pairs(contrast, read)
        )
    return _by_level(records[0].plan, (HOST, BOOT, CAMPAIGN, LAYOUT, TRIAL), units)


def _has_levels(plan: Plan, trials: Iterable[Trial]) -> bool:
    """Return whether layouts or iterations are replicated."""
    metric = plan.judgement.primary_metric
    return bool(plan.layouts) or any(_iterations(trial, metric) for trial in trials)


class _BlockLogarithms(Struct, frozen=True):
    """Logarithms of the costs, and the seconds, of a block or of one trial."""

    places: tuple[int, int]
    """Layout and block."""
    logarithms: dict[int, FloatArray]
    """Logarithms by condition, shape (k,): of k iterations, or of its one cost."""
    wall_s: float
    """Sum of the wall seconds of its trials; NaN if unknown."""
    iteration_s: float
    """Seconds of one more iteration of each trial, if iterations are in seconds."""


class _Unit(Struct, frozen=True):
    """One trial, or the two trials of a ratio."""

    logarithms: FloatArray
    """Logarithms, shape (k,)."""
    places: tuple[int, ...]
    """Unit at each level, the highest first."""
    cost: _BlockLogarithms
    """Block that must be measured for one more unit."""


def _block_logarithms(metric: str, trials: Sequence[Trial], draw: Draw) -> _BlockLogarithms:
    walls = [trial.accounting.wall_s for trial in trials]
    iterations = [costs for trial in trials if (costs := _iterations(trial, metric))]
    return _BlockLogarithms(
        places=(draw.layout or 0, draw.block),
        logarithms={trial.condition: _logarithms(trial, metric) for trial in trials},
        wall_s=sum(math.nan if wall is None else wall for wall in walls),
        iteration_s=sum(sum(costs) / len(costs) for costs in iterations),
    )


def _pairs(contrast: Contrast, blocks: Sequence[_BlockLogarithms]) -> Iterator[_Unit]:
    """Yield the blocks in which both conditions ran."""
    for block in blocks:
        below = block.logarithms.get(contrast.baseline)
        above = block.logarithms.get(contrast.candidate)
        if below is not None and above is not None:
            count = min(len(below), len(above))
            with np.errstate(invalid="ignore"):
                yield _Unit(above[:count] - below[:count], block.places, block)


def _logarithms(trial: Trial, metric: str) -> FloatArray:
    """Return the logarithms of a trial's iterations, or of its cost; not finite if unknown."""
    values: list[float | None] = [*_iterations(trial, metric)]
    if trial.timed_out or not values:
        values = [cost_function(metric)(trial)]
    with np.errstate(divide="ignore", invalid="ignore"):
        # None becomes NaN.
        return np.asarray(np.log(np.array(values, dtype=np.float64)))


def _iterations(trial: Trial, metric: str) -> list[float]:
    """Return the cost of each iteration of a trial."""
    return [
        as_cost(sample)
        for sample in trial.samples
        if sample.iteration is not None and sample.metric == metric
    ]


def _by_level(plan: Plan, names: Sequence[str], units: Sequence[_Unit]) -> VarianceByLevel | None:
    sizes = [len(unit.logarithms) for unit in units]
    table = np.repeat([unit.places for unit in units], sizes, axis=0).reshape(-1, len(names))
    columns = list(_replicated(table, names))
    if not columns:
        return None
    highest = plural_of(columns[0][0])
    unknown = VarianceByLevel(
        mean=None,
        these=f"these {highest}",
        these_ci=(None, None),
        across=f"across {highest}",
        across_ci=(None, None),
        level=plan.judgement.alpha,
        components=(),
        advice=(),
        advice_summary=None,
    )
    logarithms = np.concatenate([unit.logarithms for unit in units])
    if not np.isfinite(logarithms).all():
        return replace(unknown, unknown_because=_NO_LOGARITHM)
    if max(sizes) > 1:
        columns.append((ITERATION, np.arange(len(table))))
    if len(columns) < 2:
        return replace(unknown, unknown_because=_TOO_FEW)
    try:
        levels = variance_by_level(
            logarithms,
            [column for _, column in columns[:-1]],
            [name for name, _ in columns],
            seed=plan.seed,
            level=plan.judgement.alpha,
        )
    except UnusableInput as error:
        return replace(unknown, unknown_because=error.what)
    advised = _advice(plan, levels, units)
    advice_summary = describe_advice(advised) if advised else None
    if (
        advised
        and plan.layouts
        and any(condition.has_programs_by_layout for condition in plan.conditions)
    ):
        advice_summary = f"{describe_advice(advised)} (linking new layouts not counted)"
    return replace(
        unknown,
        mean=math.exp(levels.mean),
        these=f"these {levels.components[0].units} {highest}",
        these_ci=_ratios(*levels.within_ci),
        across_ci=_ratios(*levels.across_ci),
        components=levels.components,
        advice=advised,
        advice_summary=advice_summary,
    )


def _replicated(table: IntArray, names: Sequence[str]) -> Iterator[tuple[str, IntArray]]:
    """Yield the levels that have more units than the level above, with their columns."""
    above = 1
    for place, name in enumerate(names):
        count = len(np.unique(table[:, : place + 1], axis=0))
        if count > above:
            yield name, table[:, place]
            above = count


def _advice(plan: Plan, levels: Levels, units: Sequence[_Unit]) -> tuple[Advice, ...]:
    """Return the advice; none if seconds are unknown, or nothing varies."""
    components = levels.components
    names = [component.level for component in components]
    trial_s = sum(unit.cost.wall_s for unit in units) / len(units)
    if (
        # The user does not choose the number of batches in a process of functions.
        plan.rules.shares_processes
        # The seconds of a boot or a host are unknown.
        or not {LAYOUT, TRIAL, ITERATION}.issuperset(names)
        or math.isnan(trial_s)
        or not any(component.variance > 0 for component in components)
    ):
        return ()
    iteration_s = 0.0
    if names[-1] == ITERATION:
        if not plan.judgement.primary_metric.endswith("_s"):
            return ()
        count = sum(len(unit.logarithms) for unit in units) / len(units)
        iteration_s = sum(unit.cost.iteration_s for unit in units) / len(units)
        # The time of a process without its iterations.
        trial_s = max(0.0, trial_s - count * iteration_s)
    costs_s = {LAYOUT: 0.0, TRIAL: trial_s, ITERATION: iteration_s}
    return advice(levels, [costs_s[name] for name in names]) if costs_s[names[-1]] > 0.0 else ()


def _ratios(low: float, high: float) -> Interval:
    return finite_ratio(low), finite_ratio(high)


MIN_SHARE = 0.1
"""Minimum fraction of the variance of a source that is named."""


def sources_of_spread(
    plan: Plan, blocks: Mapping[int, tuple[Trial, ...]]
) -> tuple[Explanation, ...]:
    """Return how much holding each source reduces the spread, as entries of ``why``.

    Empty for a campaign that did not hold sources, or has too few blocks. ``status`` is ``source``
    (its share of the variance is at least a tenth, and its p-value, corrected by Holm for the
    number of sources, at most alpha), ``not shown``, or ``remainder`` for the spread with
    everything held.
    """
    if plan.study != STUDY or not blocks:
        return ()
    costs = block_costs(plan, blocks, plan.judgement.primary_metric)
    changes: dict[str, SpreadChange] = {}
    for index, condition in enumerate(plan.conditions[1:], start=1):
        both = costs.both(Contrast(0, index))
        pairs = costs.costs[both][:, [0, index]]
        pairs = pairs[(np.isfinite(pairs) & (pairs > 0)).all(axis=1)]
        change = spread_change(pairs[:, 0], pairs[:, 1], seed=plan.seed + index)
        if change is not None:
            changes[condition.levels[HELD]] = change
    sources = [name for name in changes if name != ALL_SOURCES]
    adjusted = dict(
        zip(sources, holm([changes[source].p_value for source in sources]), strict=True)
    )
    return tuple(
        _explanation(name, change, adjusted.get(name), plan.judgement.alpha)
        for name, change in changes.items()
    )


def _explanation(
    name: str, change: SpreadChange, adjusted: float | None, alpha: float
) -> Explanation:
    status: Status = "not shown"
    if adjusted is None:
        status = "remainder"
    elif adjusted <= alpha and change.share is not None and change.share >= MIN_SHARE:
        status = "source"
    return Explanation(
        cause=name,
        kind=KIND,
        evidence={
            "spread": change.varying,
            "spread_held": change.fixed,
            "p_value": change.p_value if adjusted is None else adjusted,
            "blocks": change.blocks,
        },
        status=status,
        share_of_gap=change.share,
        share_ci=change.share_ci,
        summary=_summary(name, change, status),
    )


def _summary(name: str, change: SpreadChange, status: Status) -> str:
    spreads = f"{describe_spread(change.fixed)} instead of {describe_spread(change.varying)}"
    match status:
        case "remainder":
            return (
                f"with everything held, the middle 80 % of the runs lie within {spreads}: the rest "
                "is the machine's noise, or a source that cannot be held here"
            )
        case "source":
            low, high = change.share_ci
            interval = ""
            if low is not None and high is not None:
                interval = f" ({100 * low:.0f} % to {100 * high:.0f} %)"
            return (
                f"{name} spreads the times: with it held, the middle 80 % of the runs lie within "
                f"{spreads}, which removes {100 * (change.share or 0.0):.0f} %{interval} of the "
                "variance"
            )
    return f"{name} is not shown to spread the times: with it held, {spreads}"


def layout_spread(record: RunRecord) -> float | None:
    """Return the standard deviation of one program's cost over layouts, in percent.

    It is the largest of the campaign's comparisons; a ratio of two programs has twice the variance
    of one. ``None`` if the campaign does not show it.
    """
    blocks = analysed_blocks(record)
    if not record.plan.layouts or not blocks:
        return None
    primary = primary_comparisons(record.plan, blocks)
    compared = ratios_by_level(record.plan, primary, blocks, record.measured_draws)
    variances = [
        component.variance
        for comparison in compared
        if comparison.by_level is not None
        for component in comparison.by_level.components
        if component.level == LAYOUT
    ]
    if not variances:
        return None
    return 100.0 * math.sqrt(0.5 * max(0.0, *variances))
