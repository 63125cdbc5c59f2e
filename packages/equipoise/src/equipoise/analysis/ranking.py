"""Ranks conditions, and tells which of them may be the fastest.

A ranked group is a baseline with all candidates that are compared with it. Contenders are the
members of a group that may still be the fastest.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from equipoise.analysis.comparisons import Blocks, pairing_of
from equipoise.analysis.wording import ranking_sentence
from equipoise.campaign.blocks import block_costs, resolution_of
from equipoise.model.plan import Contrast, Plan
from equipoise.model.result import Comparison, RankedCondition, RankedPair, Ranking, Verdict
from equipoise.stats.ranking import Pair, RankedGroup, contenders_of, judge_candidates, ranked_group
from equipoise.stats.sequence import PairedBlocks
from equipoise.stats.verdict import ComparisonVerdict

_REVERSED: dict[Verdict, Verdict] = {"faster": "slower", "slower": "faster"}


def rankings(plan: Plan, blocks: Blocks, comparisons: Sequence[Comparison]) -> tuple[Ranking, ...]:
    """Return a ranking of each ranked group; empty if the plan has no ranking.

    ``comparisons`` has the comparison on the primary metric for each contrast of the plan.

    Raise `UnusableInput` if a trial does not have the primary metric.
    """
    if not blocks or not plan.ranked_groups:
        return ()
    groups = ranked_groups(plan, blocks)
    effect, alpha = plan.judgement.min_effect, plan.judgement.alpha
    judged = judge_candidates(groups, effect, alpha)
    compared = zip(plan.contrasts, comparisons, strict=True)
    with_baseline = {contrast.pair: comparison for contrast, comparison in compared}
    more_is_better = resolution_of(blocks, plan.judgement.primary_metric).more_is_better
    return tuple(
        _ranking(plan, contrasts[0], group, with_baseline, judged, more_is_better=more_is_better)
        for contrasts, group in zip(plan.ranked_groups, groups, strict=True)
    )


def ranked_groups(plan: Plan, blocks: Blocks) -> list[RankedGroup]:
    """Return the ranked groups, with the blocks of all pairs of conditions in each."""
    metric = plan.judgement.primary_metric
    costs = block_costs(plan, blocks, metric)
    resolution = resolution_of(blocks, metric)
    # The control is a second run of the baseline, so it is not for two candidates.
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
    ordered = _ordered_members(ratios, verdicts)
    members_in_race = contenders_of(group, judgement.min_effect, judgement.alpha)
    contenders = [member for member in ordered if member in members_in_race]
    names = [condition.name for condition in plan.conditions]
    level_names = [
        condition.levels.get(first.factor or "", condition.name) for condition in plan.conditions
    ]

    def ranked_conditions(names: Sequence[str]) -> tuple[RankedCondition, ...]:
        """Return the conditions of the ranking under these names."""

        def others(member: int, *wanted: Verdict) -> tuple[str, ...]:
            return tuple(
                names[other]
                for other in ordered
                if other != member and _verdict(verdicts, member, other) in wanted
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
            for member in ordered
        )

    return Ranking(
        baseline=names[first.baseline],
        contenders=tuple(names[member] for member in contenders),
        leader=names[contenders[0]] if contenders else None,
        conditions=ranked_conditions(names),
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
            ranked_conditions(level_names),
            [level_names[member] for member in contenders],
            level_names[first.baseline],
            metric,
            more_is_better=more_is_better,
            min_effect=judgement.min_effect,
            stratum=first.stratum,
        ),
        stratum=first.stratum,
    )


def _log_ratio(comparison: Comparison) -> float:
    """Return the log ratio of a candidate; infinite, by the verdict, if it is not finite."""
    if comparison.ratio:
        return math.log(comparison.ratio)
    return -math.inf if comparison.verdict == "faster" or comparison.ratio == 0 else math.inf


def _verdict(verdicts: Mapping[Pair, Verdict], member: int, other: int) -> Verdict:
    """Return the verdict on a member compared with another member."""
    if (other, member) in verdicts:
        return verdicts[other, member]
    verdict = verdicts[member, other]
    return _REVERSED.get(verdict, verdict)


def _ordered_members(ratios: Mapping[int, float], verdicts: Mapping[Pair, Verdict]) -> list[int]:
    """Order the members by ratio, but none before a member that is certainly faster."""
    remaining, order = sorted(ratios, key=ratios.__getitem__), []

    def is_slower(member: int) -> bool:
        rivals = (rival for rival in remaining if rival != member)
        return any(_verdict(verdicts, member, rival) == "slower" for rival in rivals)

    while remaining:
        # Three verdicts can form a cycle; then the ratios decide.
        order.append(next((each for each in remaining if not is_slower(each)), remaining[0]))
        remaining.remove(order[-1])
    return order
