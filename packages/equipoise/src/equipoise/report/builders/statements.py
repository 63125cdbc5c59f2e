"""The answer of a campaign: a title, a statement for each comparison, and the ranking.

Titles count the verdicts of many comparisons. For a campaign with only one condition, the answer
describes the distribution of its values. A sample comparison is about trials without a random order
(imported trials), so it has no verdict.
"""

from __future__ import annotations

import math
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import replace

from equipoise.design.command_line import arguments_after_options, shell_line_with_placeholders
from equipoise.figures.quantity import metric_name
from equipoise.model.inverse_ratios import inverse_interval
from equipoise.model.metrics import is_time, verdict_word
from equipoise.model.plan import COMPARE_STUDY
from equipoise.model.quantities import Interval, excludes_one, leaves_out, listed, reads_as_factor
from equipoise.model.record import FAILURE_WARNING, CampaignWarning
from equipoise.model.result import (
    Comparison,
    ConditionResult,
    RankedCondition,
    Ranking,
    ResultDocument,
    SampleComparison,
)
from equipoise.report.builders.conditions import equivalence_text, shown_comparison, shown_verdict
from equipoise.report.builders.reference import largest_changes, reference_answer, reference_title
from equipoise.report.builders.shape import level_facts, modes_sentence
from equipoise.report.builders.why import cause_sentence
from equipoise.report.document import (
    MAX_SIMILAR_LINES,
    MAX_STATEMENTS,
    NOT_TERMINAL,
    TERMINAL,
    UNKNOWN,
    Answer,
    Bullets,
    Cell,
    Command,
    Paragraph,
    Part,
    Section,
    Statement,
    Strip,
    StyledText,
    Table,
    columns_and_rows,
)
from equipoise.report.kind import kind_report
from equipoise.report.units import (
    byte_count,
    capitalized,
    change_text,
    duration,
    estimate_and_interval,
    in_one_unit,
    interval_text,
    metric_formatter,
    percent_change,
    percentage,
    significant,
    with_coverage,
)

VERDICT_WORDS = ("faster", "slower", "less", "more", "equivalent", "mixed", "undecided")
"""All words for a verdict, in the order in which the title counts them."""
OTHER_COMMAND = "OTHER COMMAND"
"""Placeholder for the second command in a suggested command line."""
_TIME_PREFIX = "time"
"""First word of the name of each time metric."""
_MAX_LISTED_NAMES = 4
"""Maximum number of conditions that a cell of the ranking names."""
_PADDING_FRACTION = 0.12
"""Empty space at each end of a strip (the drawing of an interval), as a fraction of the range."""
_MIN_HALF_RANGE = 0.002
"""Minimum distance from the ratio 1 to an end of a strip, as a log ratio."""
_MIN_WORD_SPACE = 35.0
"""Minimum space for a word at an end of a strip, in percent of the strip's width."""


def statements_of(result: ResultDocument) -> tuple[Statement, ...]:
    """Return a statement for each comparison on the primary metric, or each sample comparison."""
    if not result.samples:
        return tuple(_statement(comparison, result) for comparison in result.primary_comparisons)
    return tuple(_sample_statement(sample, result) for sample in result.samples)


def campaign_answer(result: ResultDocument) -> Answer:
    """Build the answer: title, statements and tiles."""
    statements = statements_of(result)
    # If the campaign failed, `with_failures` sets the title.
    title, lines = ("", ()) if failures_of(result) else _title(result, statements)
    has_statements = len(statements) <= MAX_STATEMENTS and not no_difference_sentence(result)
    answer = Answer(
        title=title,
        lines=lines,
        statements=statements if has_statements else (),
        tiles=tuple(kind_report(result).tiles(result)),
    )
    return with_failures(result, answer, "The campaign")


def with_failures(result: ResultDocument, answer: Answer, subject: str) -> Answer:
    """Add the number of warnings to an answer; if the campaign failed, the title gives the reason.

    ``subject`` begins the title of a failed campaign, such as ``The campaign``.
    """
    failures = failures_of(result)
    answer = replace(answer, warning_count=len(result.warnings) - len(failures))
    if not failures:
        return answer
    hints = (f"hint: {failure.hint}" for failure in failures if failure.hint)
    lines = (*hints, *filter(None, (answer.title, *answer.lines)))
    return replace(answer, title=f"{subject} ended early: {failures[-1].summary}", lines=lines)


def no_difference_sentence(result: ResultDocument) -> str:
    """Return the sentence that none of several comparisons found a difference.

    The sentence is empty if there is only one comparison, if an interval excludes the ratio 1, or
    if a condition is certainly not the fastest.
    """
    comparisons = result.primary_comparisons
    has_loser = any(len(ranking.contenders) < len(ranking.conditions) for ranking in result.ranking)
    if len(comparisons) < 2 or has_loser or not all(map(_is_without_difference, comparisons)):
        return ""
    if all(comparison.verdict == "equivalent" for comparison in comparisons):
        baselines = {comparison.baseline for comparison in comparisons}
        baseline = baselines.pop() if len(baselines) == 1 else "their baselines"
        limit = f"±{comparisons[0].min_effect:g} %"
        return f"No difference: all are the same as {baseline} within {limit}"
    intervals = [comparison.ratio_ci for comparison in comparisons]
    bounds = [max(high, 1.0 / low) for low, high in intervals if low and high]
    unlimited_count = len(comparisons) - len(bounds)
    if unlimited_count:
        count_text = "all" if not bounds else f"{unlimited_count} of {len(comparisons)}"
        return f"No difference found; {count_text} intervals are still unlimited"
    bound = max(bounds)
    percent = 100.0 * (bound - 1.0)
    limit = f"a factor of {_rounded_up(bound)}" if bound >= 2.0 else f"±{_rounded_up(percent)} %"
    return f"No difference found; all within {limit}"


def _is_without_difference(comparison: Comparison) -> bool:
    contains_one = not excludes_one(comparison.ratio_ci)
    verdict = comparison.verdict
    return verdict == "equivalent" or (verdict == "undecided" and contains_one)


def _rounded_up(bound: float) -> str:
    """Round a bound up to two significant digits: ``4.7``."""
    if bound <= 0.0:
        return "0"
    step = 10.0 ** (math.floor(math.log10(bound)) - 1)
    # The subtraction prevents that a rounding error turns 4.7 into 4.8.
    return f"{math.ceil(bound / step - 1e-9) * step:.15g}"


def failures_of(result: ResultDocument) -> list[CampaignWarning]:
    """Return the warnings that say why the campaign failed, if it failed."""
    return [warning for warning in result.warnings if warning.code == FAILURE_WARNING]


def verdict_counts(result: ResultDocument) -> str:
    """Return a sentence with the number of comparisons for each verdict."""
    comparisons = result.primary_comparisons
    counts = Counter(shown_verdict(result, comparison) for comparison in comparisons)
    count_texts = (f"{counts[word]} {word}" for word in VERDICT_WORDS if counts[word])
    sentence = f"{len(comparisons)} comparisons: {', '.join(count_texts)}"
    forecasts = [
        comparison.blocks_to_go for comparison in comparisons if comparison.blocks_to_go is not None
    ]
    if forecasts:
        sentence += f"; about {min(forecasts)} more blocks would probably decide the next"
    return sentence


def strip_of(
    ratio: float | None, ratio_ci: Interval, metric: str, min_effect: float
) -> Strip | None:
    """Return the drawing of a ratio's interval; ``None`` if neither end is known."""
    low, high = (None if end is None or end < 0 else end for end in ratio_ci)
    if low is None and high is None:
        return None
    negligible = math.log1p(min_effect / 100.0)
    bounds = [math.log(bound) for bound in (low, high, ratio) if bound is not None and bound > 0]
    left = min([-negligible, -_MIN_HALF_RANGE, *bounds])
    right = max([negligible, _MIN_HALF_RANGE, *bounds])
    padding = _PADDING_FRACTION * (right - left)
    left, right = left - padding, right + padding

    def percent_of_width(log_ratio: float) -> float:
        return round(100.0 * (log_ratio - left) / (right - left), 2)

    lower_word, higher_word = ("faster", "slower") if is_time(metric) else ("less", "more")
    ratio_one = percent_of_width(0.0)
    negligible_begin, negligible_end = map(percent_of_width, (-negligible, negligible))
    left_end = 0.0 if not low else percent_of_width(math.log(low))
    right_end = 100.0 if not high else percent_of_width(math.log(high))
    estimate = None
    if ratio and not leaves_out(ratio_ci, ratio):
        estimate = percent_of_width(math.log(ratio))
    return Strip(
        ratio_one=ratio_one,
        negligible=(negligible_begin, round(negligible_end - negligible_begin, 2)),
        interval=(left_end, round(right_end - left_end, 2)),
        is_open_left=not low,
        is_open_right=high is None,
        estimate=estimate,
        left_word=lower_word if ratio_one > _MIN_WORD_SPACE else "",
        right_word=higher_word if ratio_one < 100.0 - _MIN_WORD_SPACE else "",
        description=(
            "The interval of the ratio on a line whose middle mark means no difference: "
            f"{interval_text(ratio_ci, 'still unlimited')}."
        ),
    )


def _title(result: ResultDocument, statements: Sequence[Statement]) -> tuple[str, tuple[str, ...]]:
    """Return the title and more lines; the title is empty if the only statement is the answer."""
    has_many, comparisons = len(statements) > MAX_STATEMENTS, result.primary_comparisons
    counts = verdict_counts(result)
    if (kind_title := kind_report(result).title(result, statements)) is not None:
        return kind_title
    if result.findings is not None and result.findings.answer:
        return result.findings.answer, (f"{counts}.",) if has_many else ()
    if sentence := no_difference_sentence(result):
        return sentence, (f"{counts}.",)
    ranking = ranking_of_all(result)
    if ranking is not None:
        return ranking.summary, (f"{counts}.",) if has_many else ()
    if not comparisons and result.against is not None:
        lines = (*largest_changes(result.against), f"{reference_title(result.against)}.")
        return reference_answer(result.against), lines
    if comparisons and (has_many or any(comparison.stratum for comparison in comparisons)):
        return counts, tuple(_largest_difference(comparisons))
    if statements:
        return "", ()
    if result.typical is not None:
        return result.typical.summary, tuple(
            f"{capitalized(line)}." for line in typical_lines(result)
        )
    names = " and ".join(condition.name for condition in result.conditions)
    return f"{names}: nothing was compared", ()


def _largest_difference(comparisons: Sequence[Comparison]) -> Iterator[str]:
    sizes_and_indexes = [
        (abs(math.log(comparison.ratio)), index)
        for index, comparison in enumerate(comparisons)
        if comparison.ratio is not None and comparison.verdict in ("faster", "slower", "mixed")
    ]
    if sizes_and_indexes:
        _, index = max(sizes_and_indexes)
        yield f"The largest difference: {comparisons[index].summary}"


def _statement(comparison: Comparison, result: ResultDocument) -> Statement:
    # Ratios of values, not of costs.
    shown = shown_comparison(result, comparison)
    quantity, ratio, ratio_ci = _time_or_speed(shown)
    estimate, interval = estimate_and_interval(ratio, ratio_ci)
    return Statement(
        badge=shown_verdict(result, comparison),
        color_verdict=comparison.verdict,
        text=comparison.summary,
        subject=f"{quantity} of {comparison.candidate} against {comparison.baseline}",
        estimate=estimate,
        interval=with_coverage(interval, comparison.significance_level, comparison.alpha),
        strip=strip_of(shown.ratio, shown.ratio_ci, shown.metric, shown.min_effect),
        cause_sentence=cause_sentence(result, comparison),
        certainty_lines=tuple(_terminal_certainty(shown, result)),
        certainty_facts=tuple(_page_certainty(shown, result)),
    )


def _time_or_speed(comparison: Comparison) -> tuple[str, float | None, Interval]:
    """Return the quantity of a statement, its ratio and the interval of this ratio.

    If the summary says "3 times as fast", the quantity is a speed, which inverts the ratio.
    """
    quantity = metric_name(comparison.metric)
    ratio, ratio_ci = comparison.ratio, comparison.ratio_ci
    is_speed = quantity.startswith(_TIME_PREFIX) and ratio is not None and ratio < 1.0
    if not is_speed or ratio is None or not reads_as_factor(ratio):
        return quantity, ratio, ratio_ci
    return quantity.replace(_TIME_PREFIX, "speed", 1), 1.0 / ratio, inverse_interval(ratio_ci)


def _terminal_certainty(comparison: Comparison, result: ResultDocument) -> Iterator[str]:
    in_layouts = comparison.in_drawn_layouts
    if in_layouts is not None:
        estimate, bounds = estimate_and_interval(in_layouts.ratio, in_layouts.ratio_ci)
        interval = with_coverage(bounds, comparison.significance_level, comparison.alpha)
        yield f"in these layouts alone: {in_layouts.verdict}, {estimate}, {interval}"
    if sentence := _fast_and_slow_runs(comparison):
        yield sentence
    scope = "" if in_layouts is None else " in these layouts"
    note = _e_value_note(comparison)
    parts = [f"{_e_value(comparison)} against no difference{scope}{note}"]
    if comparison.probability_slower is not None:
        phrase = _costs_more_phrase(comparison, result)
        parts.append(f"{phrase} in {100 * comparison.probability_slower:.0f} % of blocks")
    if comparison.mean_ratio is not None:
        parts.append(f"ratio of means {percent_change(comparison.mean_ratio)}")
    yield ", ".join(parts)
    if comparison.adjusted_by is not None and comparison.adjusted_by.summary:
        yield comparison.adjusted_by.summary
    if equivalence := equivalence_text(comparison):
        yield equivalence
    if ratios := _three_ratios(comparison):
        yield ratios
    if comparison.disagreement and not comparison.minimum_misleads:
        # If the minimum misleads, a warning explains the disagreement.
        yield f"statistics disagree: {comparison.disagreement}"


def _costs_more_phrase(comparison: Comparison, result: ResultDocument) -> str:
    """Return the phrase for a candidate with the higher cost: ``slower``, ``has more``."""
    more_is_better = comparison.metric in result.more_is_better
    word = verdict_word("slower", comparison.metric, more_is_better=more_is_better)
    return word if word == "slower" else f"has {word}"


def _three_ratios(comparison: Comparison) -> str:
    """Return a sentence on three ratios, typical, of medians and of means, if they differ."""
    medians = [answer.ratio for answer in comparison.answers if answer.statistic == "p50"]
    ratios = (comparison.ratio, *medians, comparison.mean_ratio)
    known_ratios = [ratio for ratio in ratios if ratio is not None and ratio > 0]
    min_factor = 1.0 + comparison.min_effect / 100.0
    if len(known_ratios) < 3 or max(known_ratios) <= min(known_ratios) * min_factor:
        return ""
    typical, median, mean = in_one_unit(*known_ratios)
    return (
        f"typical {typical}, medians {median}, means {mean}: the typical ratio compares the two "
        "runs of a block, and the interval is for it; the ratio of medians compares the middle "
        "runs, the ratio of means the total of many runs, and these two are only descriptions"
    )


def _e_value(comparison: Comparison) -> str:
    return f"e-value {significant(comparison.e_value)}"


def _e_value_note(comparison: Comparison) -> str:
    """Return a note on an e-value that seems too small for the interval; empty if both agree.

    The interval excludes the ratio 1 for good once the e-value reaches 1/level. Later, the e-value
    may fall.
    """
    if (
        not excludes_one(comparison.ratio_ci)
        or comparison.e_value * comparison.significance_level >= 1.0
    ):
        return ""
    return " after the last block (the interval keeps what an earlier block excluded)"


def _fast_and_slow_runs(comparison: Comparison) -> str:
    """Return a sentence with the ratios of fast, middle and slow runs, if they differ."""
    if comparison.ratio_is_constant:
        return ""
    ratio_by_statistic = {answer.statistic: answer.ratio for answer in comparison.answers}
    ratios = [ratio_by_statistic.get(statistic) for statistic in ("p10", "p50", "p90")]
    known_ratios = [ratio for ratio in ratios if ratio is not None and ratio > 0]
    if len(known_ratios) < len(ratios):
        return ""
    fast_text, middle_text, slow_text = in_one_unit(*known_ratios)
    return (
        f"no single ratio describes this: fast runs (p10) {fast_text}, middle runs {middle_text}, "
        f"slow runs (p90) {slow_text}"
    )


def _page_certainty(comparison: Comparison, result: ResultDocument) -> Iterator[tuple[str, str]]:
    if sentence := _fast_and_slow_runs(comparison):
        yield "Fast and slow runs", sentence
    if equivalence := equivalence_text(comparison):
        yield "Decided by", equivalence
    if ratios := _three_ratios(comparison):
        yield "Three ratios", ratios
    in_layouts = comparison.in_drawn_layouts
    if in_layouts is not None:
        estimate, interval = estimate_and_interval(in_layouts.ratio, in_layouts.ratio_ci)
        yield "In these layouts alone", f"{in_layouts.verdict}, {estimate} ({interval})"
    evidence = f"{_e_value(comparison)}{_e_value_note(comparison)}"
    yield "Evidence against no difference", evidence
    if comparison.probability_slower is not None:
        low, high = comparison.probability_slower_ci
        bounds = "" if low is None or high is None else f" ({100 * low:.0f} to {100 * high:.0f} %)"
        share_text = f"{100 * comparison.probability_slower:.0f} % of blocks"
        yield f"Candidate {_costs_more_phrase(comparison, result)} in", f"{share_text}{bounds}"
    if comparison.mean_ratio is not None:
        means, interval = estimate_and_interval(comparison.mean_ratio, comparison.mean_ratio_ci)
        yield "Total cost of many runs", f"{means} ({interval}; description)"
    if comparison.adjusted_by is not None and comparison.adjusted_by.summary:
        yield "Adjusted", comparison.adjusted_by.summary
    if comparison.carry_over_check is not None:
        yield "Carry-over", comparison.carry_over_check.summary
    elif comparison.carry_over is not None:
        carry_over = comparison.carry_over
        estimate, interval = estimate_and_interval(carry_over.ratio, carry_over.ratio_ci)
        yield "Carry-over", f"{estimate} ({interval})"
    if comparison.by_level is not None:
        yield from level_facts(comparison.by_level)
    if comparison.blocks_to_go is not None:
        blocks = comparison.blocks_to_go
        yield "Blocks to go", f"about {blocks} more would probably decide it"
    if comparison.minimum_misleads:
        yield "Minimum", "another condition has the fastest single run: do not rank by the minimum"
    yield "Smallest effect that matters", f"{comparison.min_effect:g} %"
    yield "Holds for", comparison.scope


def _sample_statement(comparison: SampleComparison, result: ResultDocument) -> Statement:
    missing = f"{_ordinary_interval(comparison)} unknown"
    estimate, interval = sample_effect(comparison, "unknown", missing)
    return Statement(
        badge=result.kind.name,
        color_verdict="",
        text=comparison.summary,
        subject=comparison.estimand,
        estimate=estimate,
        interval=interval,
        certainty_lines=(f"scope: {comparison.scope}",),
        certainty_facts=(
            ("What this is", result.samples_summary),
            ("Estimand", f"{comparison.estimand} ({comparison.method})"),
            ("Trials", f"{comparison.baseline_trials} against {comparison.candidate_trials}"),
            ("Holds for", comparison.scope),
        ),
    )


def sample_effect(comparison: SampleComparison, unknown: str, missing: str) -> tuple[str, str]:
    """Return the texts of the estimate of a sample comparison, and of its interval.

    ``unknown`` is the text of an unknown estimate, and ``missing`` of an unknown interval.
    """
    estimate, bounds = estimate_and_interval(
        comparison.ratio, comparison.ratio_ci, unknown=unknown, unlimited=""
    )
    is_known = bounds and not comparison.unknown
    interval = f"{_ordinary_interval(comparison)} {bounds} ({comparison.method})"
    return estimate, interval if is_known else missing


def _ordinary_interval(comparison: SampleComparison) -> str:
    return f"ordinary {percentage(1.0 - comparison.significance_level)} interval"


def ranking_of_all(result: ResultDocument) -> Ranking | None:
    """Return the ranking if it is the answer and has all conditions; else ``None``."""
    rankings, findings = result.ranking, result.findings
    if len(rankings) != 1 or (findings is not None and findings.answer):
        return None
    has_all = len(rankings[0].conditions) == len(result.conditions)
    return rankings[0] if has_all else None


def ranking_parts(result: ResultDocument) -> Iterator[Part]:
    """Build the table of all rankings, and a sentence for each, unless the answer has it."""
    rankings = result.ranking
    if not rankings:
        return
    summaries: tuple[str, ...] = ()
    if ranking_of_all(result) is None:
        summaries = tuple(ranking.summary for ranking in rankings)
        yield Bullets(summaries, max_items=MAX_SIMILAR_LINES, forms=TERMINAL)
    alpha = f"{100 * rankings[0].alpha:g} %"
    note = (
        "Comparisons with the baseline are one family of claims, comparisons among candidates are "
        f"another: at most {alpha} of the claims in a family are expected to be false. Place 1 is "
        "open to each condition that may be the fastest. The chance that the fastest condition "
        f"ever loses place 1 is at most {alpha}; if several conditions are equally fast, this "
        "holds for each alone, not for all at once."
    )
    sentences = map(Paragraph, summaries[:MAX_SIMILAR_LINES])
    table = Table(*columns_and_rows(_ranking_rows(result)), label="Ranking", notes=(note,))
    yield Section("Ranking", (*sentences, table), forms=NOT_TERMINAL)


def _ranking_rows(result: ResultDocument) -> Iterator[Mapping[str, Cell]]:
    for ranking in result.ranking:
        if ranking.stratum:
            levels = (f"{factor} {level}" for factor, level in ranking.stratum.items())
            yield {"": StyledText(", ".join(levels), "strong")}
        for condition in ranking.conditions:
            is_baseline = condition.name == ranking.baseline
            yield {
                "Place:number": _possible_places(condition, ranking),
                "Condition:name": condition.name,
                "Against baseline:number": "baseline"
                if is_baseline
                else _change_from_baseline(result, condition),
                "Slower than:text": _name_list(condition.slower_than),
                "Tied with:text": _name_list(condition.tied_with),
                "Order open to:text": _name_list(condition.undecided),
            }


def _change_from_baseline(result: ResultDocument, condition: RankedCondition) -> str:
    ratio = condition.ratio
    if ratio and result.primary_metric in result.more_is_better:
        ratio = 1.0 / ratio
    return change_text(ratio, UNKNOWN)


def _possible_places(condition: RankedCondition, ranking: Ranking) -> str:
    """Return the places in the ranking that a condition may have: ``1`` or ``2 to 4``."""
    may_be_best = condition.name in ranking.contenders
    best_place = 1 if may_be_best else max(2, 1 + len(condition.slower_than))
    worst_place = max(best_place, len(ranking.conditions) - len(condition.faster_than))
    return str(best_place) if best_place == worst_place else f"{best_place} to {worst_place}"


def _name_list(names: Sequence[str]) -> str:
    return listed(names, _MAX_LISTED_NAMES) or UNKNOWN


def typical_lines(result: ResultDocument) -> Iterator[str]:
    """Yield lines on the distribution of the only condition."""
    typical, condition = result.typical, result.conditions[0]
    summary = None if typical is None else condition.metrics.get(typical.metric)
    if typical is None or summary is None:
        return
    to_text = metric_formatter(typical.metric)
    spread = "" if summary.sd is None else f" ± {to_text(summary.sd)} (standard deviation)"
    yield (
        f"mean {to_text(summary.mean)}{spread}; from {to_text(summary.min)} to "
        f"{to_text(summary.max)}, the middle 90 % from {to_text(summary.p05)} to "
        f"{to_text(summary.p95)}"
    )
    yield "; ".join(_resource_medians(condition))
    if failures := condition.failures:
        yield f"{failures} {'run' if failures == 1 else 'runs'} failed, warm-up included"
    if len(summary.modes) == 1:
        yield f"1 mode: {to_text(summary.modes[0].value)}"
    elif modes := modes_sentence(typical.metric, summary):
        yield modes


def how_to_compare(result: ResultDocument) -> Iterator[Part]:
    """Build the command line that compares the only condition with another command."""
    if result.typical is None or result.run.study != COMPARE_STUDY:
        return
    command = _typed_command(result.conditions[0])
    arguments = ["equipoise", "compare", *arguments_after_options([command, OTHER_COMMAND])]
    purpose = "Nothing was compared. To compare it with another command:"
    yield Command(shell_line_with_placeholders(arguments), purpose)


def _resource_medians(condition: ConditionResult) -> Iterator[str]:
    metrics = condition.metrics
    for name, noun in (("user_s", "user CPU time"), ("sys_s", "system CPU time")):
        yield f"{noun} {duration(metrics[name].median) if name in metrics else 'unknown'}"
    memory = metrics.get("max_rss_bytes")
    yield f"peak memory {'unknown' if memory is None else byte_count(memory.median)}"


def _typed_command(condition: ConditionResult) -> str:
    """Return the command of a condition as the user typed it, if known."""
    command = list(condition.command)
    try:
        arguments = shlex.split(condition.name)
    except ValueError:
        arguments = []
    is_typed = bool(arguments) and arguments[1:] == command[1:]
    return condition.name if is_typed else shlex.join(command)
