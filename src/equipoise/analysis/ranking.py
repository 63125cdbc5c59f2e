"""Which condition is the fastest: a pure function of the plan and its blocks."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from equipoise.analysis.comparisons import Blocks, is_more_better, pairing_of
from equipoise.campaign.blocks import block_costs, resolution_of
from equipoise.model.functions import CALL_METRIC
from equipoise.model.plan import PRIMARY_METRIC, Contrast, Plan
from equipoise.model.result import Comparison, RankedCondition, RankedPair, Ranking, Verdict
from equipoise.stats.ranking import (
    Pair,
    RankedGroup,
    contenders_of,
    judge_candidates,
    pair_of,
)
from equipoise.stats.sequence import PairedBlocks
from equipoise.stats.verdict import ComparisonVerdict

_REVERSED: dict[Verdict, Verdict] = {"faster": "slower", "slower": "faster"}


def rankings(plan: Plan, blocks: Blocks, comparisons: Sequence[Comparison]) -> tuple[Ranking, ...]:
    """Return a ranking of each baseline with its candidates; empty where none is asked.

    Parameters
    ----------
    comparisons
        Comparisons with the baseline on the primary metric, in the order of the plan's contrasts.

    Raises
    ------
    UnusableInput
        A trial does not know the primary metric.
    """
    if not blocks or not plan.ranked_groups:
        return ()
    groups = ranked_groups(plan, blocks)
    effect, alpha = plan.judgement.min_effect, plan.judgement.alpha
    judged = judge_candidates(groups, effect, alpha)
    with_baseline = dict(zip(map(pair_of, plan.contrasts), comparisons, strict=True))
    metric = plan.judgement.primary_metric
    best = _superlative(metric, more_is_better=is_more_better(blocks, metric))
    return tuple(
        _ranking(plan, contrasts[0], group, with_baseline, judged, best)
        for contrasts, group in zip(plan.ranked_groups, groups, strict=True)
    )


def ranked_groups(plan: Plan, blocks: Blocks) -> list[RankedGroup]:
    """Return the blocks of all pairs of each group among which the fastest is asked."""
    metric = plan.judgement.primary_metric
    costs = block_costs(plan, blocks, metric)
    resolution = resolution_of(blocks, metric)
    # The twin of the baseline says nothing of two candidates.
    without_control = replace(plan, control=None)

    def blocks_of(contrast: Contrast) -> PairedBlocks:
        return pairing_of(plan, metric, costs, contrast, resolution).pairs

    def blocks_of_candidates(pair: Pair) -> PairedBlocks:
        return pairing_of(without_control, metric, costs, Contrast(*pair), resolution).pairs

    return [
        RankedGroup(
            {pair_of(one): blocks_of(one) for one in contrasts},
            {
                pair: blocks_of_candidates(pair)
                for pair in itertools.combinations((one.candidate for one in contrasts), 2)
            },
        )
        for contrasts in plan.ranked_groups
    ]


def _ranking(
    plan: Plan,
    first: Contrast,
    group: RankedGroup,
    with_baseline: Mapping[Pair, Comparison],
    judged: Mapping[Pair, ComparisonVerdict],
    best: str,
) -> Ranking:
    judgement = plan.judgement
    verdicts = {pair: with_baseline[pair].verdict for pair in group.with_baseline}
    verdicts |= {pair: judged[pair].verdict for pair in group.among_candidates}
    ratios = {first.baseline: 0.0} | {
        candidate: _log_ratio(with_baseline[baseline, candidate])
        for baseline, candidate in group.with_baseline
    }
    order = _ordered(ratios, verdicts)
    contenders = contenders_of(group, judgement.min_effect, judgement.alpha)
    names = [condition.name for condition in plan.conditions]
    shown = [one.levels.get(first.factor or "", one.name) for one in plan.conditions]

    def others(member: int, *kinds: Verdict) -> tuple[str, ...]:
        """Return the members of which a member's verdict is one of these, in their order."""
        return tuple(
            names[other]
            for other in order
            if other != member and _verdict(verdicts, member, other) in kinds
        )

    return Ranking(
        baseline=names[first.baseline],
        conditions=tuple(
            RankedCondition(
                name=names[member],
                ratio=1.0
                if member == first.baseline
                else with_baseline[first.baseline, member].ratio,
                may_be_fastest=member in contenders,
                slower_than=others(member, "slower"),
                faster_than=others(member, "faster"),
                tied_with=others(member, "equivalent"),
                undecided=others(member, "undecided", "mixed"),
            )
            for member in order
        ),
        pairs=tuple(
            RankedPair(
                baseline=names[pair[0]],
                candidate=names[pair[1]],
                ratio=judged[pair].ratio,
                ratio_ci=judged[pair].ratio_ci,
                e_value=judged[pair].e_value,
                level=judged[pair].level,
                verdict=judged[pair].verdict,
                blocks=judged[pair].blocks,
            )
            for pair in group.among_candidates
        ),
        alpha=judgement.alpha,
        summary=_sentence(
            [shown[one] for one in order if one in contenders],
            len(order),
            best,
            where=", ".join(f"{factor} {level}" for factor, level in first.stratum.items()),
            is_open=any(
                _verdict(verdicts, *pair) != "equivalent"
                for pair in itertools.combinations(contenders, 2)
            ),
            min_effect=judgement.min_effect,
        ),
        stratum=first.stratum,
    )


def _log_ratio(comparison: Comparison) -> float:
    """Return the log ratio of a candidate, infinite by its verdict where it has no finite ratio."""
    if comparison.ratio:
        return math.log(comparison.ratio)
    return -math.inf if comparison.verdict == "faster" or comparison.ratio == 0 else math.inf


def _verdict(verdicts: Mapping[Pair, Verdict], member: int, other: int) -> Verdict:
    """Return the verdict on a member against another one."""
    if (other, member) in verdicts:
        return verdicts[other, member]
    verdict = verdicts[member, other]
    return _REVERSED.get(verdict, verdict)


def _ordered(ratios: Mapping[int, float], verdicts: Mapping[Pair, Verdict]) -> list[int]:
    """Return the members by their ratios, but none before one that is certainly faster."""
    left, order = sorted(ratios, key=ratios.__getitem__), []
    while left:
        unbeaten = (
            one
            for one in left
            if all(_verdict(verdicts, one, rival) != "slower" for rival in left if rival != one)
        )
        # Three claims can form a circle; then the ratios decide.
        order.append(next(unbeaten, left[0]))
        left.remove(order[-1])
    return order


def _superlative(metric: str, *, more_is_better: bool) -> str:
    if metric in (PRIMARY_METRIC, CALL_METRIC):
        return "the fastest"
    return f"the best by {metric}, of which {'more' if more_is_better else 'less'} is better,"


def _sentence(
    contenders: Sequence[str],
    members: int,
    best: str,
    *,
    where: str,
    is_open: bool,
    min_effect: float,
) -> str:
    """Return which condition is the fastest, or which may be."""
    match contenders:
        case []:
            sentence = f"No condition is certainly {best} of {members}"
        case [winner]:
            sentence = f"{winner} is {best} of {members}"
        case _ if is_open:
            names = f"{', '.join(contenders[:-1])} or {contenders[-1]}"
            sentence = f"Which of {members} is {best} is undecided: {names}"
        case _:
            names = f"{', '.join(contenders[:-1])} and {contenders[-1]}"
            sentence = f"{names} tie as {best} of {members}, within {min_effect:g} %"
    return f"At {where}: {sentence}." if where else f"{sentence}."
