"""The warnings that matter, each with what to do about it (rule 8)."""

from __future__ import annotations

from collections.abc import Sequence

from equipoise.analysis.comparisons import Blocks
from equipoise.campaign.blocks import block_seconds, cut_blocks
from equipoise.campaign.progress import nearest_enough
from equipoise.model.record import CampaignWarning, RunRecord
from equipoise.model.result import Comparison, ControlResult, GateResult
from equipoise.stats.carry_over import should_warn

CUT_SHARE = 0.05
"""Fraction of cut blocks from which on a warning is given (verdict.md §1)."""
INFLATED_UP_TO = "a fifth"
"""Largest overstatement of an effect that has just become certain (verdict.md §4)."""


def warnings_of(
    record: RunRecord,
    comparisons: Sequence[Comparison],
    control: ControlResult | None,
    blocks: Blocks,
    gate: GateResult | None = None,
) -> tuple[CampaignWarning, ...]:
    """Return the warnings of the campaign and those that its numbers give.

    Parameters
    ----------
    blocks
        Complete blocks of the record.
    """
    warnings = list(dict.fromkeys(record.notices))
    cut = cut_blocks(record, blocks)

    def warn(code: str, summary: str, hint: str) -> None:
        warnings.append(CampaignWarning(code, summary, hint))

    begun = sum(draw.phase == "measured" for draw in record.draws)
    if begun and cut / begun > CUT_SHARE:
        warn(
            "cut_blocks",
            f"{cut} of {begun} blocks were cut by interruptions and left out",
            "let the campaign run undisturbed; whoever interrupts it may choose its blocks",
        )
    if control is not None and control.excludes_one:
        warn(
            "control",
            control.summary,
            "measure how often this host gives false alarms: `equipoise doctor --certify`",
        )
    for one in comparisons:
        carried = one.carry_over
        if carried is not None and should_warn(carried, min_effect=one.min_effect):
            warn(
                "carry_over",
                f"whatever runs after {one.candidate} takes {carried.ratio:.3f} times what "
                f"it takes after {one.baseline}: the ratio is off by about half of that",
                "--washout runs each condition twice in a row and counts the second",
            )
        if one.minimum_misleads:
            how = f": {one.disagreement}" if one.disagreement else ""
            warn(
                "minimum_misleads",
                f"the minima of {one.candidate} and {one.baseline} contradict their "
                f"distributions{how}",
                "do not rank by the minimum",
            )
        if _stopped_at_once(record) and _touches_no_difference(one):
            warn(
                "inflated",
                f"the effect of {one.candidate} may be overstated by up to {INFLATED_UP_TO}: "
                "the campaign stopped as soon as it was certain",
                "--precision 1 goes on until the interval is 1 % wide",
            )
    called: list[str] = (
        [one.verdict for one in comparisons] if gate is None else [row.outcome for row in gate.rows]
    )
    measured_s = sum(map(block_seconds, blocks.values()))
    least_s = record.plan.stopping.min_seconds
    if measured_s < least_s and record.segments and any(one != "undecided" for one in called):
        warn(
            "short_time",
            f"all blocks together took {measured_s:.2g} s: they saw one moment of this machine, "
            "and the verdict may be another at another moment",
            f"allow more blocks and more time, so that it measures for {least_s:g} s",
        )
    near = None if gate is not None else _near_verdict(record, comparisons, len(blocks))
    if near is not None:
        warn("verdict_near", *near)
    return tuple(warnings)


def _near_verdict(
    record: RunRecord, comparisons: Sequence[Comparison], blocks: int
) -> tuple[str, str] | None:
    """Return what a little more than the budget would decide, and how to go on."""
    if not blocks or not record.segments or record.segments[-1].stopped_because != "budget":
        return None
    spent_s = sum(one.ended_at - one.started_at for one in record.segments if one.ended_at)
    forecasts = [one.blocks_to_go for one in comparisons if one.blocks_to_go is not None]
    block_s = spent_s / blocks
    more = nearest_enough(forecasts, block_s, record.plan.stopping.budget_s)
    if more is None:
        return None
    decided = sum(one <= more for one in forecasts)
    what = "the comparison" if len(comparisons) == 1 else f"{decided} open comparisons"
    return (
        f"the budget ended the campaign shortly before a verdict: about {more} more blocks "
        f"({more * block_s:.2g} s) would probably decide {what}",
        f"equipoise resume {record.id}"
        + ("" if record.plan.stopping.patient else "; --patient exceeds the budget by itself"),
    )


def _stopped_at_once(record: RunRecord) -> bool:
    """Return whether the campaign stopped as soon as it was certain; a gate may go on."""
    plan = record.plan
    if plan.gated is not None and record.segments[-1].stopped_because != "verdict":
        return False
    return plan.stopping.precision is None


def _touches_no_difference(comparison: Comparison) -> bool:
    """Return whether an interval almost touches "no difference": the effect is overstated."""
    low, high = comparison.ratio_ci
    if comparison.verdict not in ("faster", "slower") or low is None or high is None:
        return False
    nearest = low if comparison.verdict == "slower" else 1.0 / high
    return bool(nearest <= (high / low) ** 0.5)
