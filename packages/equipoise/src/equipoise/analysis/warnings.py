"""Warnings about a campaign, each with a hint and the names of the conditions that it concerns."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Sequence

from equipoise.analysis.comparisons import Blocks
from equipoise.analysis.wording import carry_over_clause, changing_ratio_sentence, signed_change
from equipoise.campaign.blocks import block_seconds, cut_block_count
from equipoise.campaign.progress import blocks_to_near_verdicts
from equipoise.campaign.washouts import may_add_washouts
from equipoise.model.quantities import excludes_one, listed, names_of, reads_as_factor
from equipoise.model.record import ENDED_BY_FAILURE, FAILURE_WARNING, CampaignWarning, RunRecord
from equipoise.model.result import Comparison, ControlResult
from equipoise.shared.safe_text import MAX_LINE_LETTERS, shortened
from equipoise.shared.spelling import option
from equipoise.stats.carry_over import should_warn

MAX_CUT_SHARE = 0.05
"""Maximum share of blocks that interruptions may cut without a warning."""
OVERSTATEMENT = (
    "In simulations of a true 1 %, such estimates were 1.4 times the truth on average and over 2 "
    "times in one campaign of ten. Smaller effects and heavier tails are overstated more"
)
"""Overstatement in simulations, which is not an upper bound (docs/decisions/statistics.md)."""
_MAX_SMALL_RATIO = 1.1
"""Maximum ratio for which a warning cites `OVERSTATEMENT`, which is for small effects."""
MAX_NAMED_COMPARISONS = 3
"""Maximum number of comparisons that one warning names."""


def warnings_of(
    record: RunRecord,
    comparisons: Sequence[Comparison],
    control: ControlResult | None,
    blocks: Blocks,
    outcomes: Sequence[str] | None = None,
) -> tuple[CampaignWarning, ...]:
    """Return the warnings about a campaign and about its comparisons.

    ``blocks`` decide the verdicts. A kind of campaign may have ``outcomes`` instead of verdicts.
    """
    return (
        *_failure_warning(record),
        *_warnings_of_ledger(record),
        *_campaign_warnings(record, control, blocks),
        *_comparison_warnings(record, comparisons, len(blocks)),
        *_stopping_warnings(record, comparisons, blocks, outcomes),
    )


def _failure_warning(record: RunRecord) -> Iterator[CampaignWarning]:
    is_recorded = any(warning.code == FAILURE_WARNING for warning in record.warnings)
    if is_recorded or record.stopped_because != ENDED_BY_FAILURE:
        return
    failed = [trial for trial in record.trials if trial.failure is not None and not trial.timed_out]
    if failed:
        name = record.plan.conditions[failed[-1].condition].name
        last_lines = [line.strip() for line in failed[-1].error_tail.splitlines() if line.strip()]
        stderr = f"; stderr: {shortened(last_lines[-1], MAX_LINE_LETTERS)}" if last_lines else ""
        yield CampaignWarning(
            FAILURE_WARNING,
            f"{name} failed: {failed[-1].failure}{stderr}",
            "correct the command, or count failed trials like others with "
            f"{option('ignore_failure', True)}",
        )


def _warnings_of_ledger(record: RunRecord) -> Iterator[CampaignWarning]:
    """Yield the warnings in the ledger; equal warnings about several conditions become one."""
    names_by_key: dict[tuple[str, str, str], dict[str, None]] = {}
    for warning in record.warnings:
        name = ""
        if warning.condition is not None and warning.absent_from is None:
            name = record.plan.conditions[warning.condition].name
        key = (warning.code, warning.summary.removeprefix(name), warning.hint)
        names_by_key.setdefault(key, {})[name] = None
    for (code, predicate, hint), names in names_by_key.items():
        yield CampaignWarning(code, f"{names_of([*names])}{predicate}", hint)


def _campaign_warnings(
    record: RunRecord, control: ControlResult | None, blocks: Blocks
) -> Iterator[CampaignWarning]:
    yield from _ignored_failures(record, blocks)
    cut_count = cut_block_count(record, blocks)
    drawn_count = sum(draw.phase == "measured" for draw in record.draws)
    if drawn_count and cut_count / drawn_count > MAX_CUT_SHARE:
        yield CampaignWarning(
            "cut_blocks",
            f"{cut_count} of {drawn_count} blocks were cut by interruptions and left out",
            "run the campaign without interruptions: the cut blocks may differ from the others",
        )
    if control is not None and control.excludes_one:
        yield CampaignWarning(
            "control",
            control.summary,
            "measure how often this host gives false alarms: `equipoise doctor --certify`",
        )


def _ignored_failures(record: RunRecord, blocks: Blocks) -> Iterator[CampaignWarning]:
    plan = record.plan
    if not plan.measure.ignore_failure or plan.rules_of_study.rows_show_failures:
        return
    trials = list(itertools.chain.from_iterable(blocks.values()))
    trial_counts = Counter(trial.condition for trial in trials)
    failures: dict[int, Counter[str]] = {}
    for trial in trials:
        if trial.failure is not None and not trial.timed_out:
            failures.setdefault(trial.condition, Counter())[trial.failure] += 1
    if failures:
        sentences = [
            f"{plan.conditions[condition].name} failed in {reasons.total()} of "
            f"{trial_counts[condition]} trials ({reasons.most_common(1)[0][0]})"
            for condition, reasons in failures.items()
        ]
        yield CampaignWarning(
            "ignored_failures",
            _joined(sentences),
            "check that each run does its work, because a run that fails early is not a fast run",
        )


def _comparison_warnings(
    record: RunRecord, comparisons: Sequence[Comparison], block_count: int
) -> Iterator[CampaignWarning]:
    if changing := [comparison for comparison in comparisons if not comparison.ratio_is_constant]:
        yield CampaignWarning(
            "no_constant_ratio",
            _joined(map(changing_ratio_sentence, changing)),
            _changing_ratio_hint(changing),
        )
    yield from _carry_over_warnings(record, comparisons)
    slow_runs = [
        comparison.slow_runs for comparison in comparisons if comparison.slow_runs is not None
    ]
    if sentences := [runs.summary for runs in slow_runs if runs.more_often is not None]:
        yield CampaignWarning(
            "slow_runs",
            _joined(sentences),
            f"to count slow runs more exactly, add {option('tail', 1)}: the campaign then runs "
            "until slow runs that are 1 % of all runs would have appeared",
        )
    misleading = [
        comparison
        for comparison in comparisons
        if comparison.minimum_misleads
        and (excludes_one(comparison.ratio_ci) or comparison.verdict != "undecided")
    ]
    if misleading:
        yield CampaignWarning(
            "minimum_misleads",
            f"the minima contradict the distributions: {_joined(map(_minimum_clause, misleading))}",
            "do not rank by the minimum",
        )
    yield from _overstatement_warnings(
        [
            comparison
            for comparison in comparisons
            if _stopped_at_verdict(record, comparison, block_count)
            and _is_probably_overstated(comparison)
        ]
    )


def _overstatement_warnings(comparisons: Sequence[Comparison]) -> Iterator[CampaignWarning]:
    """Yield a warning about overstated small effects, and another about larger effects.

    An effect that reads as a factor, such as "3 times", gets no warning: its sentence has the
    smallest possible factor.
    """
    ratios = [
        (comparison.candidate, comparison.ratio)
        for comparison in comparisons
        if comparison.ratio is not None
    ]
    small = [name for name, ratio in ratios if 1.0 / _MAX_SMALL_RATIO < ratio < _MAX_SMALL_RATIO]
    larger = [name for name, ratio in ratios if name not in small and not reads_as_factor(ratio)]
    if small:
        yield CampaignWarning(
            "inflated",
            f"{_overstatement_sentence(small)}. {OVERSTATEMENT}",
            f"add {option('precision', 1)}, which measures until the interval is 1 % wide",
        )
    if larger:
        yield CampaignWarning(
            "inflated",
            f"{_overstatement_sentence(larger)}. The interval shows the smallest possible effect",
            f"add {option('precision', 10)}, which measures until the interval is 10 % wide",
        )


def _overstatement_sentence(candidates: Sequence[str]) -> str:
    subject = "the effect of" if len(candidates) == 1 else "the effects of"
    verb = "is" if len(candidates) == 1 else "are"
    return (
        f"{subject} {names_of(candidates)} {verb} probably overstated: the campaign stopped as "
        "soon as it was certain"
    )


def _carry_over_warnings(
    record: RunRecord, comparisons: Sequence[Comparison]
) -> Iterator[CampaignWarning]:
    checks = {
        index: comparison.carry_over_check
        for index, comparison in enumerate(comparisons)
        if comparison.carry_over_check is not None
    }
    if washout_sentences := [check.summary for check in checks.values() if check.added_washouts]:
        yield CampaignWarning(
            "carry_over",
            _joined(washout_sentences),
            f"to have washouts in all blocks of the next campaign, add {option('washout', True)}",
        )
    explainable_checks = {
        index: check
        for index, check in checks.items()
        if not check.added_washouts and check.explainable_part != "nothing"
    }
    if explainable_checks:
        can_add_washouts = may_add_washouts(record.plan) and any(
            check.explainable_part == "all" for check in explainable_checks.values()
        )
        yield CampaignWarning(
            "carry_over",
            _joined([check.summary for check in explainable_checks.values()]),
            f"run `equipoise resume {record.id}`, which continues with washouts: the same "
            "condition runs before all trials of a block"
            if can_add_washouts
            else _washout_hint(),
        )
    clauses = [
        carry_over_clause(comparison, f"{comparison.carry_over.ratio:.3f} times")
        for index, comparison in enumerate(comparisons)
        if comparison.carry_over is not None
        and index not in explainable_checks
        and should_warn(comparison.carry_over, min_effect=comparison.min_effect)
    ]
    if clauses:
        subject = "The ratio is" if len(clauses) == 1 else "Each ratio is"
        yield CampaignWarning(
            "carry_over",
            f"{_joined(clauses)}. {subject} wrong by about half of this carry-over",
            _washout_hint(),
        )


def _washout_hint() -> str:
    return (
        f"add {option('washout', True)}, which runs the same condition before all trials of a block"
    )


def _changing_ratio_hint(changing: Sequence[Comparison]) -> str:
    if any(len(comparison.ratio_segments) != 1 for comparison in changing):
        return (
            "find out what changed during the campaign, and measure before and after the change "
            "separately; the report shows the interval after the last block"
        )
    return "read the ratio of each quantile, not only the typical ratio"


def _joined(sentences: Iterator[str] | Sequence[str]) -> str:
    """Join up to `MAX_NAMED_COMPARISONS` sentences, and add the number of further sentences."""
    return listed(list(sentences), MAX_NAMED_COMPARISONS, "; ")


def _minimum_clause(comparison: Comparison) -> str:
    answer = next((answer for answer in comparison.answers if answer.statistic == "minimum"), None)
    if answer is None or answer.ratio is None:
        return f"the minima of {comparison.candidate} and {comparison.baseline}"
    return (
        f"by the minimum {comparison.candidate} is {answer.verdict} than {comparison.baseline} "
        f"({signed_change(answer.ratio)})"
    )


def _stopping_warnings(
    record: RunRecord,
    comparisons: Sequence[Comparison],
    blocks: Blocks,
    outcomes: Sequence[str] | None,
) -> Iterator[CampaignWarning]:
    verdicts = [comparison.verdict for comparison in comparisons]
    results: Sequence[str] = verdicts if outcomes is None else outcomes
    measured_s = sum(map(block_seconds, blocks.values()))
    min_s = record.plan.stopping.min_seconds
    if measured_s < min_s and record.segments and any(result != "undecided" for result in results):
        yield CampaignWarning(
            "short_time",
            f"all blocks together took only {measured_s:.2g} s, and the verdict may be different "
            "at another time",
            _hint_to_measure_longer(record, len(blocks), measured_s),
        )
    near_verdict = None if outcomes is not None else _near_verdict(record, comparisons, len(blocks))
    if near_verdict is not None:
        yield CampaignWarning("verdict_near", *near_verdict)


def _hint_to_measure_longer(record: RunRecord, block_count: int, measured_s: float) -> str:
    plan, stopped_because = record.plan, record.stopped_because
    min_s = plan.stopping.min_seconds
    restart_hint = plan.rules.restart_hint
    resume_command = f"equipoise resume {record.id}"
    factor = min_s / max(measured_s, 1e-3)
    if (kind_hint := plan.rules.hint_to_measure_longer(min_s)) is not None:
        return kind_hint
    match stopped_because:
        case "block limit":
            # Add 10 %, because blocks differ in time.
            limit = math.ceil(1.1 * block_count * factor)
            limit_option = f"--blocks {limit}"
        case "budget":
            total_s = 1.1 * _spent_s(record) * (factor - 1.0 if restart_hint is None else factor)
            limit_option = f"--budget {max(1, math.ceil(total_s))}"
        case _ if stopped_because == ENDED_BY_FAILURE:
            return "correct the condition that failed, and measure again"
        case _ if restart_hint is None:
            return f"run `{resume_command}` to measure more blocks"
        case _:
            return f"{restart_hint}, without an interruption"
    command = f"run `{resume_command} {limit_option}`"
    if restart_hint is not None:
        command = f"{restart_hint} with {limit_option}"
    return f"{command}, so that all blocks together take {min_s:g} s"


def _spent_s(record: RunRecord) -> float:
    return sum(
        segment.ended_at - segment.started_at for segment in record.segments if segment.ended_at
    )


def _near_verdict(
    record: RunRecord, comparisons: Sequence[Comparison], block_count: int
) -> tuple[str, str] | None:
    """Return a warning and its hint if the budget ended shortly before a verdict, or ``None``."""
    if not block_count or record.stopped_because != "budget":
        return None
    forecasts = [
        comparison.blocks_to_go for comparison in comparisons if comparison.blocks_to_go is not None
    ]
    block_s = _spent_s(record) / block_count
    more_blocks = blocks_to_near_verdicts(forecasts, block_s, record.plan.stopping.budget_s)
    if more_blocks is None:
        return None
    decided_count = sum(forecast <= more_blocks for forecast in forecasts)
    subject = "the comparison" if len(comparisons) == 1 else f"{decided_count} open comparisons"
    hint = record.plan.rules.hint_to_measure_longer(None) or f"run `equipoise resume {record.id}`"
    if not record.plan.stopping.patient:
        hint += f", or add {option('patient', True)} to exceed the budget if a verdict is near"
    return (
        f"the budget ended the campaign shortly before a verdict: about {more_blocks} more blocks "
        f"({more_blocks * block_s:.2g} s) would probably decide {subject}",
        hint,
    )


def _stopped_at_verdict(record: RunRecord, comparison: Comparison, block_count: int) -> bool:
    """Return whether the campaign ended, or left the candidate out, because of a verdict."""
    stopping = record.plan.stopping
    if not record.segments or stopping.precision is not None:
        return False
    was_left_out = stopping.leave_out_decided and comparison.blocks < block_count
    return was_left_out or record.stopped_because == "verdict"


def _is_probably_overstated(comparison: Comparison) -> bool:
    """Return whether the interval ends so near to 1 that the effect is probably overstated."""
    low, high = comparison.ratio_ci
    if comparison.verdict not in ("faster", "slower") or low is None or high is None:
        return False
    # On the log scale, the distance of the interval from 1 is at most half of its width.
    nearest = low if comparison.verdict == "slower" else 1.0 / high
    return bool(nearest <= (high / low) ** 0.5)
