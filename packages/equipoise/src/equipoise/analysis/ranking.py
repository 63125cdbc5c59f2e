"""Which conditions may be the fastest: a pure function of the plan and its blocks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from equipoise.analysis.comparisons import Blocks, pairing_of
from equipoise.analysis.wording import ranking_sentence
from equipoise.campaign.blocks import block_costs, resolution_of
from equipoise.model.plan import Contrast, Plan
from equipoise.model.result import Comparison, RankedCondition, RankedPair, Ranking, Verdict
from equipoise.stats.ranking import (
    Pair,
    RankedGroup,
    contenders_of,
    judge_candidates,
    ranked_group,
)
from equipoise.stats.sequence import PairedBlocks
from equipoise.stats.verdict import ComparisonVerdict

_REVERSED: dict[Verdict, Verdict] = {"faster": "slower", "slower": "faster"}


def rankings(plan: Plan, blocks: Blocks, comparisons: Sequence[Comparison]) -> tuple[Ranking, ...]:
    """Return a ranking of each baseline with its candidates; empty if the plan has no ranking.

    The comparisons, one for each contrast of the plan, are on the primary metric.

    Raise `UnusableInput` if a trial does not have the primary metric.
    """
    if not blocks or not plan.ranked_groups:
        return ()
    groups = ranked_groups(plan, blocks)
    effect, alpha = plan.judgement.min_effect, plan.judgement.alpha
    judged = judge_candidates(groups, effect, alpha)
    compared = zip(plan.contrasts, comparisons, strict=True)
    with_baseline = {contrast.pair: comparison for contrast, comparison in compared}
    increasing = resolution_of(blocks, plan.judgement.primary_metric).more_is_better
    return tuple(
        _ranking(plan, contrasts[0], group, with_baseline, judged, more_is_better=increasing)
        for contrasts, group in zip(plan.ranked_groups, groups, strict=True)
    )


def ranked_groups(plan: Plan, blocks: Blocks) -> list[RankedGroup]:
    """Return the blocks of all pairs of each ranked group."""
    metric = plan.judgement.primary_metric
    costs = block_costs(plan, blocks, metric)
    resolution = resolution_of(blocks, metric)
    # The twin of the baseline has no part in a comparison of two candidates.
    without_control = replace(plan, control=None)

    def blocks_of(contrast: Contrast) -> PairedBlocks:
        return pairing_of(plan, metric, costs, contrast, resolution).pairs

    def blocks_of_candidates(pair: Pair) -> PairedBlocks:
        return pairing_of(without_control, metric, costs, Contrast(*pair), resolution).pairs

    return [
        ranked_group(contrasts, blocks_of, blocks_of_candidates) for contrasts in plan.ranked_groups
    ]


def _ranking(
    plan: Plan,
    first: Contrast,
    group: RankedGroup,
    with_baseline: Mapping[Pair, Comparison],
    judged: Mapping[Pair, ComparisonVerdict],
    *,
    more_is_better: bool,
) -> Ranking:
    judgement, metric = plan.judgement, plan.judgement.primary_metric
    verdicts = {pair: with_baseline[pair].verdict for pair in group.baseline_pairs}
    verdicts |= {pair: judged[pair].verdict for pair in group.candidate_pairs}
    ratios = {first.baseline: 0.0} | {
        candidate: _log_ratio(with_baseline[baseline, candidate])
        for baseline, candidate in group.baseline_pairs
    }
    order = _ordered_members(ratios, verdicts)
    in_race = contenders_of(group, judgement.min_effect, judgement.alpha)
    contenders = [member for member in order if member in in_race]
    names = [condition.name for condition in plan.conditions]
    shown = [
        condition.levels.get(first.factor or "", condition.name) for condition in plan.conditions
    ]

    def ranked(names: Sequence[str]) -> tuple[RankedCondition, ...]:
        """Return the conditions of the ranking under these names."""

        def others(member: int, *kinds: Verdict) -> tuple[str, ...]:
            return tuple(
                names[other]
                for other in order
                if other != member and _verdict(verdicts, member, other) in kinds
            )

        return tuple(
            RankedCondition(
                name=names[member],
                ratio=1.0
                if member == first.baseline
                else with_baseline[first.baseline, member].ratio,
                slower_than=others(member, "slower"),
                faster_than=others(member, "faster"),
                tied_with=others(member, "equivalent"),
                undecided=others(member, "undecided", "mixed"),
            )
            for member in order
        )

    return Ranking(
        baseline=names[first.baseline],
        contenders=tuple(names[member] for member in contenders),
        leader=names[contenders[0]] if contenders else None,
        conditions=ranked(names),
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
            for pair in group.candidate_pairs
        ),
        alpha=judgement.alpha,
        summary=ranking_sentence(
            ranked(shown),
            [shown[member] for member in contenders],
            shown[first.baseline],
            metric,
            more_is_better=more_is_better,
            min_effect=judgement.min_effect,
            stratum=first.stratum,
        ),
        stratum=first.stratum,
    )


def _log_ratio(comparison: Comparison) -> float:
    """Return the log ratio of a candidate; without a finite ratio, infinite by its verdict."""
    if comparison.ratio:
        return math.log(comparison.ratio)
    return -math.inf if comparison.verdict == "faster" or comparison.ratio == 0 else math.inf


def _verdict(verdicts: Mapping[Pair, Verdict], member: int, other: int) -> Verdict:
    """Return the verdict on a member against another one."""
    if (other, member) in verdicts:
        return verdicts[other, member]
    verdict = verdicts[member, other]
    return _REVERSED.get(verdict, verdict)


def _ordered_members(ratios: Mapping[int, float], verdicts: Mapping[Pair, Verdict]) -> list[int]:
    """Return the members by their ratios, but never before a member that is certainly faster."""
    left, order = sorted(ratios, key=ratios.__getitem__), []
    while left:
        unbeaten = (
            name
            for name in left
            if all(_verdict(verdicts, name, rival) != "slower" for rival in left if rival != name)
        )
        # Three claims can form a cycle; then the ratios decide.
        order.append(next(unbeaten, left[0]))
        left.remove(order[-1])
    return order
