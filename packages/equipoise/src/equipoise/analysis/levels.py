"""Splits the variance of costs or ratios by level, and finds why the times of a command vary.

Levels are nested: hosts, boots of a host, campaigns, memory layouts, trials and iterations. A level
is replicated if it has several units, such as several layouts. A source of chance, such as random
memory addresses, is *held* in a condition if all trials of the condition have the same value of it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from equipoise.analysis.comparisons import primary_comparisons
from equipoise.campaign.blocks import as_cost, cost_function, cost_table
from equipoise.campaign.washouts import analysed_blocks
from equipoise.design.chance import ALL_SOURCES, HELD_FACTOR, WHAT_VARIES_STUDY
from equipoise.model.errors import UnusableInput
from equipoise.model.plan import Contrast, Plan
from equipoise.model.quantities import Interval
from equipoise.model.record import Draw, RunRecord, Trial
from equipoise.model.result import Advice, Comparison, VarianceByLevel
from equipoise.model.why import Explanation, Status
from equipoise.stats.arrays import FloatArray, IntArray
from equipoise.stats.levels import Levels, advice, describe_advice, plural_of, variance_by_level
from equipoise.stats.spread import CHANCE_KIND, SpreadChange, describe_spread, holm, spread_change
from equipoise.stats.verdict import finite_ratio

HOST, BOOT, CAMPAIGN = "host", "boot", "campaign"
LAYOUT, TRIAL, ITERATION = "layout", "trial", "iteration"
"""Names of levels."""

_TOO_FEW_BLOCKS = "too few blocks to tell the levels apart"
_NO_LOGARITHM = "a trial timed out, or its cost is 0, so its cost has no logarithm"


def cost_by_level(
    plan: Plan, trials: Sequence[Trial], draws: Mapping[int, Draw]
) -> VarianceByLevel | None:
    """Split the variance of one condition's log cost, on the primary metric, by level.

    ``draws`` has the draw of each measured block, by number. ``None`` if the only level is trials.
    """
    if not _has_several_levels(plan, trials):
        return None
    metric = plan.judgement.primary_metric
    samples: list[_Sample] = []
    for trial in trials:
        group = _read_logarithms(metric, (trial,), draws[trial.block])
        samples.append(_Sample(group.logarithms[trial.condition], group.units, group))
    return _split_by_level(plan, (LAYOUT, TRIAL), samples)


def ratios_by_level(
    plan: Plan,
    comparisons: Sequence[Comparison],
    blocks: Mapping[int, Sequence[Trial]],
    draws: Mapping[int, Draw],
) -> tuple[Comparison, ...]:
    """Return the primary comparisons, each with the variance of its log ratios by level.

    Iteration i of the candidate is compared with iteration i of the baseline.
    """
    if not _has_several_levels(plan, itertools.chain.from_iterable(blocks.values())):
        return tuple(comparisons)
    metric = plan.judgement.primary_metric
    # Read each block once, because there may be very many comparisons.
    groups = [_read_logarithms(metric, block, draws[number]) for number, block in blocks.items()]
    variances = (
        _split_by_level(plan, (LAYOUT, TRIAL), [*_log_ratios(contrast, groups)])
        for contrast in plan.contrasts
    )
    return tuple(
        replace(comparison, by_level=_with_interval_of_verdict(by_level, comparison))
        for comparison, by_level in zip(comparisons, variances, strict=True)
    )


def _with_interval_of_verdict(
    by_level: VarianceByLevel | None, comparison: Comparison
) -> VarianceByLevel | None:
    if by_level is None or comparison.in_drawn_layouts is None or by_level.unknown_because:
        return by_level
    return replace(by_level, across_ci=comparison.ratio_ci)


def pooled_by_level(
    records: Sequence[RunRecord],
    contrast: Contrast,
    hosts_and_boots: Sequence[tuple[int, int]],
    block_counts: Sequence[int],
) -> VarianceByLevel | None:
    """Split the variance of one comparison over several campaigns by level.

    ``hosts_and_boots`` has the numbers of the host and the boot of each campaign. The first
    ``block_counts[i]`` blocks of campaign i are used. ``None`` if no level is replicated.
    """
    metric = records[0].plan.judgement.primary_metric
    samples: list[_Sample] = []
    campaigns = zip(records, hosts_and_boots, block_counts, strict=True)
    for campaign_index, (record, (host, boot), block_count) in enumerate(campaigns):
        draws, blocks = record.measured_draws, analysed_blocks(record)
        first_blocks = itertools.islice(blocks.items(), block_count)
        groups = [_read_logarithms(metric, block, draws[number]) for number, block in first_blocks]
        samples.extend(
            replace(sample, units=(host, boot, campaign_index, *sample.units))
            for sample in _log_ratios(contrast, groups)
        )
    return _split_by_level(records[0].plan, (HOST, BOOT, CAMPAIGN, LAYOUT, TRIAL), samples)


def _has_several_levels(plan: Plan, trials: Iterable[Trial]) -> bool:
    """Return whether the plan has several layouts, or trials have iterations."""
    metric = plan.judgement.primary_metric
    return bool(plan.layouts) or any(_iteration_costs(trial, metric) for trial in trials)


class _TrialGroup(Struct, frozen=True):
    """Logarithms of the costs, and the seconds, of one trial or of all trials of a block."""

    units: tuple[int, int]
    """Numbers of the layout and of the block."""
    logarithms: dict[int, FloatArray]
    """Logarithms of k iterations, shape (k,), or of one cost, shape (1,), by condition."""
    wall_s: float
    """Sum of the wall seconds of the trials; NaN if unknown."""
    iteration_s: float
    """Sum over the trials of the mean iteration; seconds if the metric is in seconds."""


class _Sample(Struct, frozen=True):
    """The logarithms of a trial's costs, or of the ratios of two trials."""

    logarithms: FloatArray
    """Logarithms of k iterations, or of one cost or ratio, shape (k,)."""
    units: tuple[int, ...]
    """Number of the unit at each level, such as the number of the layout; highest level first."""
    group: _TrialGroup
    """Trials of this sample; another sample takes about the same time."""


def _read_logarithms(metric: str, trials: Sequence[Trial], draw: Draw) -> _TrialGroup:
    wall_times = [trial.accounting.wall_s for trial in trials]
    iterations = [costs for trial in trials if (costs := _iteration_costs(trial, metric))]
    return _TrialGroup(
        units=(draw.layout or 0, draw.block),
        logarithms={trial.condition: _trial_logarithms(trial, metric) for trial in trials},
        wall_s=sum(math.nan if wall_s is None else wall_s for wall_s in wall_times),
        iteration_s=sum(sum(costs) / len(costs) for costs in iterations),
    )


def _log_ratios(contrast: Contrast, groups: Sequence[_TrialGroup]) -> Iterator[_Sample]:
    """Yield the log ratios of a contrast in each block in which both conditions ran."""
    for group in groups:
        baseline = group.logarithms.get(contrast.baseline)
        candidate = group.logarithms.get(contrast.candidate)
        if baseline is not None and candidate is not None:
            length = min(len(baseline), len(candidate))
            with np.errstate(invalid="ignore"):
                yield _Sample(candidate[:length] - baseline[:length], group.units, group)


def _trial_logarithms(trial: Trial, metric: str) -> FloatArray:
    """Return the logarithms of a trial's iterations, or of its cost if it has no iterations."""
    values: list[float | None] = [*_iteration_costs(trial, metric)]
    if trial.timed_out or not values:
        values = [cost_function(metric)(trial)]
    with np.errstate(divide="ignore", invalid="ignore"):
        # Each None becomes NaN.
        return np.asarray(np.log(np.array(values, dtype=np.float64)))


def _iteration_costs(trial: Trial, metric: str) -> list[float]:
    return [
        as_cost(sample)
        for sample in trial.samples
        if sample.iteration is not None and sample.metric == metric
    ]


def _split_by_level(
    plan: Plan, level_names: Sequence[str], samples: Sequence[_Sample]
) -> VarianceByLevel | None:
    """Split the variance of samples by level, with advice; ``None`` if no level is replicated."""
    iteration_counts = [len(sample.logarithms) for sample in samples]
    units = np.repeat([sample.units for sample in samples], iteration_counts, axis=0).reshape(
        -1, len(level_names)
    )
    units_by_level = dict(_replicated_levels(units, level_names))
    if not units_by_level:
        return None
    highest_units = plural_of(next(iter(units_by_level)))
    unknown = VarianceByLevel(
        geometric_mean=None,
        within_scope=f"these {highest_units}",
        within_ci=(None, None),
        across_scope=f"across {highest_units}",
        across_ci=(None, None),
        significance_level=plan.judgement.alpha,
        components=(),
        advice=(),
        advice_summary=None,
    )
    logarithms = np.concatenate([sample.logarithms for sample in samples])
    if not np.isfinite(logarithms).all():
        return replace(unknown, unknown_because=_NO_LOGARITHM)
    if max(iteration_counts) > 1:
        units_by_level[ITERATION] = np.arange(len(units))
    if len(units_by_level) < 2:
        return replace(unknown, unknown_because=_TOO_FEW_BLOCKS)
    try:
        levels = variance_by_level(
            logarithms,
            list(units_by_level.values())[:-1],
            list(units_by_level),
            seed=plan.seed,
            alpha=plan.judgement.alpha,
        )
    except UnusableInput as error:
        return replace(unknown, unknown_because=error.what)
    advice_items = _level_advice(plan, levels, samples)
    advice_summary = describe_advice(advice_items) if advice_items else None
    links_programs = any(condition.has_programs_by_layout for condition in plan.conditions)
    if advice_items and plan.layouts and links_programs:
        advice_summary = f"{advice_summary} (without the time to link new layouts)"
    return replace(
        unknown,
        geometric_mean=math.exp(levels.mean),
        within_scope=f"these {levels.components[0].units} {highest_units}",
        within_ci=_ratio_interval(*levels.within_ci),
        across_ci=_ratio_interval(*levels.across_ci),
        components=levels.components,
        advice=advice_items,
        advice_summary=advice_summary,
    )


def _replicated_levels(
    units: IntArray, level_names: Sequence[str]
) -> Iterator[tuple[str, IntArray]]:
    """Yield the name and the unit numbers of each replicated level."""
    unit_count_above = 1
    for index, name in enumerate(level_names):
        unit_count = len(np.unique(units[:, : index + 1], axis=0))
        if unit_count > unit_count_above:
            yield name, units[:, index]
            unit_count_above = unit_count


def _level_advice(plan: Plan, levels: Levels, samples: Sequence[_Sample]) -> tuple[Advice, ...]:
    """Return advice on the number of units of each level; empty if it cannot be computed."""
    components = levels.components
    names = [component.level for component in components]
    trial_s = sum(sample.group.wall_s for sample in samples) / len(samples)
    if (
        # With functions, the user does not choose the number of batches in a process.
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
        mean_iteration_count = sum(len(sample.logarithms) for sample in samples) / len(samples)
        iteration_s = sum(sample.group.iteration_s for sample in samples) / len(samples)
        # Seconds of a process without its iterations.
        trial_s = max(0.0, trial_s - mean_iteration_count * iteration_s)
    unit_s = {LAYOUT: 0.0, TRIAL: trial_s, ITERATION: iteration_s}
    return advice(levels, [unit_s[name] for name in names]) if unit_s[names[-1]] > 0.0 else ()


def _ratio_interval(low: float, high: float) -> Interval:
    return finite_ratio(low), finite_ratio(high)


MIN_SOURCE_SHARE = 0.1
"""Minimum fraction of the variance that a source of chance must explain to be reported."""


def sources_of_spread(
    plan: Plan, blocks: Mapping[int, tuple[Trial, ...]]
) -> tuple[Explanation, ...]:
    """Return an explanation of the spread for each source of chance, such as memory addresses.

    A source has the status ``source`` if its share of the variance is at least `MIN_SOURCE_SHARE`
    and its p-value, corrected by Holm's method, is at most alpha. Other sources are ``not shown``.
    The spread with all sources held is the ``remainder``. The result is empty for other studies,
    and with too few blocks.
    """
    if plan.study != WHAT_VARIES_STUDY or not blocks:
        return ()
    costs = cost_table(plan, blocks, plan.judgement.primary_metric)
    changes: dict[str, SpreadChange] = {}
    for index, condition in enumerate(plan.conditions[1:], start=1):
        has_both = costs.has_both(Contrast(0, index))
        both_costs = costs.costs[has_both][:, [0, index]]
        both_costs = both_costs[(np.isfinite(both_costs) & (both_costs > 0)).all(axis=1)]
        change = spread_change(both_costs[:, 0], both_costs[:, 1], seed=plan.seed + index)
        if change is not None:
            changes[condition.levels[HELD_FACTOR]] = change
    sources = [name for name in changes if name != ALL_SOURCES]
    adjusted_p_values = dict(
        zip(sources, holm([changes[source].p_value for source in sources]), strict=True)
    )
    return tuple(
        _spread_explanation(name, change, adjusted_p_values.get(name), plan.judgement.alpha)
        for name, change in changes.items()
    )


def _spread_explanation(
    name: str, change: SpreadChange, adjusted_p: float | None, alpha: float
) -> Explanation:
    status: Status = "not shown"
    if adjusted_p is None:
        status = "remainder"
    elif adjusted_p <= alpha and change.share is not None and change.share >= MIN_SOURCE_SHARE:
        status = "source"
    return Explanation(
        cause=name,
        kind=CHANCE_KIND,
        evidence={
            "spread": change.varying_spread,
            "spread_held": change.held_spread,
            "p_value": change.p_value if adjusted_p is None else adjusted_p,
            "blocks": change.blocks,
        },
        status=status,
        share_of_gap=change.share,
        share_ci=change.share_ci,
        summary=_spread_sentence(name, change, status),
    )


def _spread_sentence(name: str, change: SpreadChange, status: Status) -> str:
    held_spread = describe_spread(change.held_spread)
    spreads = f"{held_spread} instead of {describe_spread(change.varying_spread)}"
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

    With several comparisons, return the largest; ``None`` if the standard deviation is unknown.
    """
    blocks = analysed_blocks(record)
    if not record.plan.layouts or not blocks:
        return None
    comparisons = primary_comparisons(record.plan, blocks)
    with_levels = ratios_by_level(record.plan, comparisons, blocks, record.measured_draws)
    variances = [
        component.variance
        for comparison in with_levels
        if comparison.by_level is not None
        for component in comparison.by_level.components
        if component.level == LAYOUT
    ]
    if not variances:
        return None
    # The variance of a ratio is the sum of the variances of two programs.
    return 100.0 * math.sqrt(0.5 * max(0.0, *variances))
