"""From the trials of a campaign to its variance by level: iterations in trials in layouts."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from equipoise.campaign.blocks import as_cost, cost_in
from equipoise.model.errors import UnusableInput
from equipoise.model.plan import Contrast, Plan
from equipoise.model.result import Advice, ByLevel, Comparison
from equipoise.model.trial import Draw, Trial
from equipoise.stats.advice import advice, advice_words
from equipoise.stats.arrays import FloatArray
from equipoise.stats.levels import Levels, plural_of, variance_by_level

LAYOUT, TRIAL, ITERATION = "layout", "trial", "iteration"
_NO_LOGARITHM = "a trial timed out, or cost nothing: there is no logarithm of that"


def cost_by_level(plan: Plan, trials: Sequence[Trial], draws: Mapping[int, Draw]) -> ByLevel | None:
    """Split the variance of the logarithm of one condition's primary cost into its levels.

    Parameters
    ----------
    trials
        The analysed trials of the condition.
    draws
        Of each measured block, by its number.

    Returns
    -------
    ``None`` where trials are the only level.
    """
    metric = plan.judgement.primary_metric
    if not _has_levels(plan, trials):
        return None
    return _by_level(
        plan, [_Unit(_logarithms(one, metric), draws[one.block], (one,)) for one in trials]
    )


def ratios_by_level(
    plan: Plan,
    comparisons: Sequence[Comparison],
    blocks: Mapping[int, Sequence[Trial]],
    draws: Mapping[int, Draw],
) -> tuple[Comparison, ...]:
    """The primary comparisons, each with the variance of its log ratios within blocks by level.

    Iterations are paired as they came, the first with the first.
    """
    metric = plan.judgement.primary_metric
    if not _has_levels(plan, itertools.chain.from_iterable(blocks.values())):
        return tuple(comparisons)
    return tuple(
        dataclasses.replace(one, by_level=_by_level(plan, _pairs(metric, contrast, blocks, draws)))
        for one, contrast in zip(comparisons, plan.contrasts, strict=True)
    )


def _has_levels(plan: Plan, trials: Iterable[Trial]) -> bool:
    """Whether anything but trials is replicated."""
    metric = plan.judgement.primary_metric
    return bool(plan.layouts) or any(_iterations(trial, metric) for trial in trials)


@dataclass(frozen=True, slots=True)
class _Unit:
    """One trial, or the two trials of a ratio."""

    logarithms: FloatArray
    """Shape (k,): of its k iterations, or of its one cost."""
    draw: Draw
    trials: tuple[Trial, ...]
    """All that took time for it."""


def _pairs(
    metric: str,
    contrast: Contrast,
    blocks: Mapping[int, Sequence[Trial]],
    draws: Mapping[int, Draw],
) -> list[_Unit]:
    found: list[_Unit] = []
    for number, block in blocks.items():
        both = {one.condition: _logarithms(one, metric) for one in block}
        if contrast.baseline in both and contrast.candidate in both:
            below, above = both[contrast.baseline], both[contrast.candidate]
            count = min(len(below), len(above))
            with np.errstate(invalid="ignore"):
                ratios = above[:count] - below[:count]
            found.append(_Unit(ratios, draws[number], tuple(block)))
    return found


def _logarithms(trial: Trial, metric: str) -> FloatArray:
    """Of a trial's iterations, or of its cost where it has none; not finite where unknown."""
    values = _iterations(trial, metric)
    if trial.timed_out or not values:
        cost = cost_in(metric)(trial)
        values = [math.nan if cost is None else cost]
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.log(np.array(values, dtype=np.float64)))


def _iterations(trial: Trial, metric: str) -> list[float]:
    """What each iteration of a trial cost."""
    return [
        as_cost(one) for one in trial.samples if one.iteration is not None and one.metric == metric
    ]


def _by_level(plan: Plan, units: Sequence[_Unit]) -> ByLevel | None:
    iterated = any(len(one.logarithms) > 1 for one in units)
    if not plan.layouts and not iterated:
        return None
    names = (
        *((LAYOUT,) if plan.layouts else ()),
        TRIAL,
        *((ITERATION,) if iterated else ()),
    )
    if any(not np.isfinite(one.logarithms).all() for one in units):
        return _unknown(plan, names[0], _NO_LOGARITHM)
    sizes = [len(one.logarithms) for one in units]
    columns = {
        LAYOUT: np.repeat([one.draw.layout or 0 for one in units], sizes),
        TRIAL: np.repeat([one.draw.block for one in units], sizes),
    }
    try:
        found = variance_by_level(
            np.concatenate([one.logarithms for one in units]),
            [columns[name] for name in names[:-1]],
            names,
            seed=plan.seed,
            level=plan.judgement.alpha,
        )
    except UnusableInput as error:
        return _unknown(plan, names[0], error.what)
    advised = _advice(plan, found, units)
    return ByLevel(
        mean=math.exp(found.mean),
        these=f"these {found.components[0].units} {plural_of(names[0])}",
        these_ci=_ratios(found.within_ci),
        across=found.scope,
        across_ci=_ratios(found.across_ci),
        level=plan.judgement.alpha,
        components=found.components,
        advice=advised,
        advice_words=advice_words(advised) + _not_counted(plan) if advised else None,
    )


def _unknown(plan: Plan, highest: str, reason: str) -> ByLevel:
    return ByLevel(
        mean=None,
        these=f"these {plural_of(highest)}",
        these_ci=(None, None),
        across=f"across {plural_of(highest)}",
        across_ci=(None, None),
        level=plan.judgement.alpha,
        components=(),
        advice=(),
        advice_words=None,
        unknown_because=reason,
    )


def _advice(plan: Plan, found: Levels, units: Sequence[_Unit]) -> tuple[Advice, ...]:
    """Nothing where seconds are not known, or nothing varies."""
    walls = [one.accounting.wall_s for unit in units for one in unit.trials]
    if None in walls or not any(one.variance > 0 for one in found.components):
        return ()
    costs_s = {LAYOUT: 0.0, TRIAL: sum(one for one in walls if one is not None) / len(units)}
    if found.components[-1].level == ITERATION:
        metric = plan.judgement.primary_metric
        if not metric.endswith("_s"):
            return ()
        count = sum(len(one.logarithms) for one in units) / len(units)
        costs_s[ITERATION] = sum(_iteration_s(one.trials, metric) for one in units) / len(units)
        # What a process takes beside its iterations.
        costs_s[TRIAL] = max(0.0, costs_s[TRIAL] - count * costs_s[ITERATION])
    return advice(found, [costs_s[one.level] for one in found.components])


def _iteration_s(trials: Iterable[Trial], metric: str) -> float:
    """Seconds of one more iteration of each of the trials."""
    seconds = 0.0
    for trial in trials:
        own = _iterations(trial, metric)
        seconds += sum(own) / len(own) if own else 0.0
    return seconds


def _not_counted(plan: Plan) -> str:
    linked = any(condition.has_programs_by_layout for condition in plan.conditions)
    return " (linking new layouts not counted)" if plan.layouts and linked else ""


def _ratios(bounds: tuple[float, float]) -> tuple[float, float]:
    return math.exp(bounds[0]), math.exp(bounds[1])
