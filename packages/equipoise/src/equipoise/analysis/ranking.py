"""Ranks conditions, and finds the conditions that may be the fastest.

A ranked group is a baseline with all candidates that are compared with it. Its members are the
baseline and the candidates. Contenders are the members that may still be the fastest.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from equipoise.analysis.comparisons import Blocks, costs_of_contrast
from equipoise.analysis.wording import ranking_sentence
from equipoise.campaign.blocks import cost_table, resolution_of
from equipoise.model.plan import Contrast, Plan
from equipoise.model.result import Comparison, RankedCondition, RankedPair, Ranking, Verdict
from equipoise.stats.ranking import Pair, RankedGroup, contenders_of, judge_candidates, ranked_group
from equipoise.stats.sequence import PairedBlocks
from equipoise.stats.verdict import ComparisonVerdict

_REVERSED: dict[Verdict, Verdict] = {"faster": "slower", "slower": "faster"}
"""Verdict after the candidate and the baseline change places."""


def rankings(plan: Plan, blocks: Blocks, comparisons: Sequence[Comparison]) -> tuple[Ranking, ...]:
    """Return a ranking of each ranked group; empty if the plan has no ranking.

    ``comparisons`` has the primary comparison of each contrast of the plan.

    Raise `UnusableInput` if a trial lacks the primary metric.
    """
    if not blocks or not plan.ranked_groups:
        return ()
    groups = ranked_groups(plan, blocks)
    min_effect, alpha = plan.judgement.min_effect, plan.judgement.alpha
    verdicts = judge_candidates(groups, min_effect, alpha)
    baseline_comparisons = {
        contrast.pair: comparison
        for contrast, comparison in zip(plan.contrasts, comparisons, strict=True)
    }
    more_is_better = resolution_of(blocks, plan.judgement.primary_metric).more_is_better
    return tuple(
        _ranking_of_group(
            plan, contrasts[0], group, baseline_comparisons, verdicts, more_is_better=more_is_better
        )
        for contrasts, group in zip(plan.ranked_groups, groups, strict=True)
    )


def ranked_groups(plan: Plan, blocks: Blocks) -> list[RankedGroup]:
    """Return the ranked groups, each with the blocks of all pairs of its members."""
    metric = plan.judgement.primary_metric
    costs = cost_table(plan, blocks, metric)
    resolution = resolution_of(blocks, metric)
    # Comparisons between candidates do not use the control, a second run of the baseline.
    plan_without_control = replace(plan, control=None)

    def blocks_of(contrast: Contrast) -> PairedBlocks:
        return costs_of_contrast(plan, metric, costs, contrast, resolution).paired_blocks

    def blocks_of_candidates(pair: Pair) -> PairedBlocks:
        return costs_of_contrast(
            plan_without_control, metric, costs, Contrast(*pair), resolution
        ).paired_blocks

    return [
        ranked_group(contrasts, blocks_of, blocks_of_candidates) for contrasts in plan.ranked_groups
    ]


def _ranking_of_group(
    plan: Plan,
    first_contrast: Contrast,
    group: RankedGroup,
    baseline_comparisons: Mapping[Pair, Comparison],
    candidate_verdicts: Mapping[Pair, ComparisonVerdict],
    *,
    more_is_better: bool,
) -> Ranking:
    """Rank one group: order its members, find the contenders, and describe every pair."""
    judgement, metric = plan.judgement, plan.judgement.primary_metric
    verdicts = {pair: baseline_comparisons[pair].verdict for pair in group.baseline_pairs}
    verdicts |= {pair: candidate_verdicts[pair].verdict for pair in group.candidate_pairs}
    log_ratios = {first_contrast.baseline: 0.0} | {
        candidate: _log_ratio(baseline_comparisons[baseline, candidate])
        for baseline, candidate in group.baseline_pairs
    }
    ordered_members = _order_members(log_ratios, verdicts)
    possible_winners = contenders_of(group, judgement.min_effect, judgement.alpha)
    contenders = [member for member in ordered_members if member in possible_winners]
    names = [condition.name for condition in plan.conditions]
    level_names = [
        condition.levels.get(first_contrast.factor or "", condition.name)
        for condition in plan.conditions
    ]

    def ranked_conditions(shown_names: Sequence[str]) -> tuple[RankedCondition, ...]:
        """Return the conditions of the ranking, each with its shown name."""

        def rivals_by_verdict(member: int, *accepted: Verdict) -> tuple[str, ...]:
            return tuple(
                shown_names[rival]
                for rival in ordered_members
                if rival != member and _verdict_against(verdicts, member, rival) in accepted
            )

        return tuple(
            RankedCondition(
                name=shown_names[member],
                ratio=1.0
                if member == first_contrast.baseline
                else baseline_comparisons[first_contrast.baseline, member].ratio,
                slower_than=rivals_by_verdict(member, "slower"),
                faster_than=rivals_by_verdict(member, "faster"),
                tied_with=rivals_by_verdict(member, "equivalent"),
                undecided=rivals_by_verdict(member, "undecided", "mixed"),
            )
            for member in ordered_members
        )

    return Ranking(
        baseline=names[first_contrast.baseline],
        contenders=tuple(names[member] for member in contenders),
        leader=names[contenders[0]] if contenders else None,
        conditions=ranked_conditions(names),
        pairs=tuple(
            RankedPair(
                baseline=names[pair[0]],
                candidate=names[pair[1]],
                ratio=candidate_verdicts[pair].ratio,
                ratio_ci=candidate_verdicts[pair].ratio_ci,
                e_value=candidate_verdicts[pair].e_value,
                significance_level=candidate_verdicts[pair].level,
                verdict=candidate_verdicts[pair].verdict,
                blocks=candidate_verdicts[pair].blocks,
            )
            for pair in group.candidate_pairs
        ),
        alpha=judgement.alpha,
        summary=ranking_sentence(
            ranked_conditions(level_names),
            [level_names[member] for member in contenders],
            level_names[first_contrast.baseline],
            metric,
            more_is_better=more_is_better,
            min_effect=judgement.min_effect,
            stratum=first_contrast.stratum,
        ),
        stratum=first_contrast.stratum,
    )


def _log_ratio(comparison: Comparison) -> float:
    """Return the log ratio; if it is not finite, -inf for a faster candidate, else +inf."""
    if comparison.ratio:
        return math.log(comparison.ratio)
    return -math.inf if comparison.verdict == "faster" or comparison.ratio == 0 else math.inf


def _verdict_against(verdicts: Mapping[Pair, Verdict], member: int, rival: int) -> Verdict:
    """Return the verdict on a member with the rival as its baseline."""
    if (rival, member) in verdicts:
        return verdicts[rival, member]
    verdict = verdicts[member, rival]
    return _REVERSED.get(verdict, verdict)


def _order_members(log_ratios: Mapping[int, float], verdicts: Mapping[Pair, Verdict]) -> list[int]:
    """Order the members by ratio, but each member after all members that are certainly faster."""
    remaining, order = sorted(log_ratios, key=log_ratios.__getitem__), []

    def is_slower(member: int) -> bool:
        rivals = (rival for rival in remaining if rival != member)
        return any(_verdict_against(verdicts, member, rival) == "slower" for rival in rivals)

    while remaining:
        # In a circle (a slower than b, b than c, c than a), the ratios decide.
        order.append(next((member for member in remaining if not is_slower(member)), remaining[0]))
        remaining.remove(order[-1])
    return order
