"""The warnings that matter, each with what to do about it (rule 8)."""

from __future__ import annotations

from collections.abc import Sequence

from equipoise.model.record import CampaignWarning, RunRecord
from equipoise.model.result import Comparison, ControlResult
from equipoise.stats.carry_over import should_warn

CUT_SHARE = 0.05
"""Fraction of cut blocks from which on a warning is given (verdict.md §1)."""
INFLATED_UP_TO = "a fifth"
"""Largest overstatement of an effect that has just become certain (verdict.md §4)."""


def warnings_of(
    record: RunRecord, comparisons: Sequence[Comparison], control: ControlResult | None, cut: int
) -> tuple[CampaignWarning, ...]:
    """Return the warnings of the campaign and those that its numbers give.

    Parameters
    ----------
    cut
        Measured blocks that were begun and not completed.
    """
    noticed: list[CampaignWarning] = list(dict.fromkeys(record.notices))
    drawn = sum(draw.phase == "measured" for draw in record.draws)
    if drawn and cut / drawn > CUT_SHARE:
        noticed.append(
            CampaignWarning(
                "cut_blocks",
                f"{cut} of {drawn} blocks were cut by interruptions and left out",
                "let the campaign run undisturbed; whoever interrupts it may choose its blocks",
            )
        )
    if control is not None and control.excludes_one:
        noticed.append(
            CampaignWarning(
                "control",
                control.summary,
                "measure how often this host gives false alarms: `equipoise doctor --certify`",
            )
        )
    for comparison in comparisons:
        noticed.extend(_of(comparison, record))
    return tuple(noticed)


def _of(comparison: Comparison, record: RunRecord) -> list[CampaignWarning]:
    noticed: list[CampaignWarning] = []
    carried = comparison.carry_over
    if carried is not None and should_warn(carried, min_effect=comparison.min_effect):
        noticed.append(
            CampaignWarning(
                "carry_over",
                f"whatever runs after {comparison.candidate} takes {carried.ratio:.3f} times what "
                f"it takes after {comparison.baseline}: the ratio is off by about half of that",
                "--washout runs each condition twice in a row and counts the second",
            )
        )
    if comparison.minimum_misleads:
        noticed.append(
            CampaignWarning(
                "minimum_misleads",
                f"the minima of {comparison.candidate} and {comparison.baseline} contradict their "
                "distributions"
                + (f": {comparison.disagreement}" if comparison.disagreement else ""),
                "do not rank by the minimum",
            )
        )
    if comparison.verdict in ("faster", "slower") and _stopped_at_it(record):
        noticed.extend(_touching(comparison))
    return noticed


def _stopped_at_it(record: RunRecord) -> bool:
    """Return whether the campaign stopped as soon as it was certain; a gate may go on."""
    plan = record.plan
    if plan.gated is not None and record.segments[-1].stopped_because != "verdict":
        return False
    return plan.stopping.precision is None


def _touching(comparison: Comparison) -> list[CampaignWarning]:
    """Warn of an interval that almost touches "no difference": the effect is overstated."""
    low, high = comparison.ratio_ci
    if low is None or high is None:
        return []
    width = high / low
    nearest = low if comparison.verdict == "slower" else 1.0 / high
    if nearest > width**0.5:
        return []
    return [
        CampaignWarning(
            "inflated",
            f"the effect of {comparison.candidate} may be overstated by up to {INFLATED_UP_TO}: "
            "the campaign stopped as soon as it was certain",
            "--precision 1 goes on until the interval is 1 % wide",
        )
    ]
