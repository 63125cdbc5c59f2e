"""Writes the sentences of verdicts, rankings and estimates.

In time, conditions are *faster* or *slower*. The words of all other metrics are in
`equipoise.model.metrics`. A ratio that is at least 2, or at most 1/2, reads as a factor ("3
times"); other ratios read as a change in percent. A stratum is a combination of levels at which
conditions are compared.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence

from equipoise.model.inverse_ratios import inverse_interval
from equipoise.model.metrics import WORDS, MetricWords, is_time
from equipoise.model.plan import CALL_METRIC, PRIMARY_METRIC, CpuSets
from equipoise.model.quantities import (
    FACTOR_FROM,
    Interval,
    as_factor,
    counted,
    is_known_to_a_tenth,
    joined,
    leaves_out,
    metric_formatter,
    names_of,
    reads_as_factor,
    significant,
)
from equipoise.model.result import (
    Adjustment,
    Comparison,
    RankedCondition,
    SlowRuns,
    StatisticAnswer,
    TypicalValue,
    Verdict,
)
from equipoise.stats.slow_runs import unseen_share

_WALL_TIME_METRICS = (PRIMARY_METRIC, CALL_METRIC)
_MAX_RATIO_CHANGES = 3
"""Maximum number of changes of a ratio that a sentence names."""
_NO_ERROR_RATE = "(description, without an error rate)"
"""Label of a number without a guarantee, such as the ratio of means."""


def typical_sentence(value: TypicalValue) -> str:
    """Return the sentence on the typical value of a condition, with its interval."""
    metric = value.metric
    format_value = metric_formatter(metric)
    run_count = counted(value.trials, "run")
    words, median = WORDS.get(metric), format_value(value.median)
    if words is None:
        claim = f"{value.condition} has a {metric} of {median}"
    else:
        subject, _ = _subject_and_object(words, "", value.condition)
        noun_phrase = f" {words.noun}" if words.less == "fewer" else f" of {words.noun}"
        if words.more_is_longer or words.noun == "amount":
            noun_phrase = ""
        claim = _with_capital_article(words, f"{subject} {words.verb} {median}{noun_phrase}")
    low, high = value.median_ci
    if low is None and high is None:
        interval = f"{run_count}: too few for an interval"
    else:
        ends = " to ".join("unlimited" if end is None else format_value(end) for end in (low, high))
        interval = f"{100 * (1 - value.significance_level):g} % interval {ends}; {run_count}"
    return f"{claim} in a typical run ({interval})."


def adjustment_sentence(
    adjustment: Adjustment, blocks: int, ratio: float | None, *, more_is_better: bool = False
) -> str:
    """Return the sentence on the adjustment by a covariate, with the unadjusted ratio.

    ``ratio`` is the adjusted ratio. The sentence is empty if the adjustment saved under 1 % of the
    blocks.
    """
    # The number of blocks for a verdict is about proportional to the variance within blocks.
    saved_percent = 100.0 * (1.0 - adjustment.spread_ratio**2)
    if saved_percent < 1.0:
        return ""
    typical, (low, high) = adjustment.unadjusted_ratio, adjustment.unadjusted_ratio_ci
    if more_is_better:
        typical, low, high = (
            None if bound is None else _inverse_ratio(bound) for bound in (typical, high, low)
        )
    is_factor = ratio is not None and reads_as_factor(ratio)
    format_ratio = _three_digits if is_factor else _signed_percent
    bounds = ("unknown" if bound is None else format_ratio(bound) for bound in (low, high))
    times = " times" if is_factor else ""
    interval = f"({' to '.join(bounds)})"
    unadjusted = "unknown" if typical is None else f"{format_ratio(typical)}{times} {interval}"
    return (
        f"{adjustment.blocks} of {blocks} blocks were adjusted by {adjustment.covariate}, read "
        f"before each trial, which saved about {saved_percent:.0f} % of the blocks; "
        f"unadjusted: {unadjusted}"
    )


def verdict_sentence(
    comparison: Comparison, baseline: str, candidate: str, *, more_is_better: bool = False
) -> str:
    """Return the sentence on the verdict of one comparison.

    If more of the metric is better, ``comparison`` has the ratio of the inverse values.
    """
    metric, verdict = comparison.metric, comparison.verdict
    is_wall_time = metric in _WALL_TIME_METRICS
    ratio = _ratio_or_extreme(comparison, comparison.ratio)
    mean_ratio = _ratio_or_extreme(comparison, comparison.mean_ratio)
    low, high = comparison.ratio_ci
    if more_is_better and not is_wall_time:
        ratio, mean_ratio = _inverse_ratio(ratio), _inverse_ratio(mean_ratio)
        low, high = (None if bound is None else _inverse_ratio(bound) for bound in (high, low))
    words = WORDS.get(metric, MetricWords("has", metric))
    verb, noun = words.verb, words.noun
    match verdict:
        case "slower" | "faster" if is_wall_time:
            sentence = _time_sentence(baseline, candidate, verdict, ratio, (low, high))
        case "slower" | "faster":
            sentence = ratio_clause(metric, baseline, candidate, ratio, (low, high))
        case "equivalent":
            plural_verb = "have" if verb == "has" else verb.removesuffix("s")
            subject, other = _subject_and_object(words, baseline, candidate)
            sentence = (
                f"{candidate} against {baseline}: no difference"
                if is_wall_time
                else f"{subject} and {other} {plural_verb} the same {noun}"
            )
            sentence += f" in a typical run (within {comparison.min_effect:g} %)"
            sentence += f"; {_slow_runs_clause(comparison)}"
        case "mixed" if is_wall_time:
            sentence = (
                f"{candidate} and {baseline} differ both ways: a typical run "
                f"{_time_clause('is', 'takes', ratio)}, but many runs together "
                f"{_time_clause('are', 'take', mean_ratio)} {_NO_ERROR_RATE}"
            )
        case "mixed":
            sentence = (
                f"In a typical run {ratio_clause(metric, baseline, candidate, ratio)}, but over "
                f"many runs together {ratio_clause(metric, baseline, candidate, mean_ratio)} "
                f"{_NO_ERROR_RATE}"
            )
        case "undecided" if comparison.means_forbid_equivalence:
            # The typical runs are equivalent, but the means or the slow runs may not be.
            means = f"their means differ by {signed_change(mean_ratio)} {_NO_ERROR_RATE}"
            sentence = (
                f"A typical run of {candidate} {verb} the same {noun} as one of {baseline}, within "
                f"{comparison.min_effect:g} %, but many runs together may differ: "
                f"{means if 0.0 < mean_ratio < math.inf else 'their means have no finite ratio'}"
            )
            slow_runs = comparison.slow_runs
            if slow_runs is not None and (slow_runs.baseline_count or slow_runs.candidate_count):
                sentence += f"; {slow_runs.summary}"
        case "undecided" if _has_direction(ratio, low, high):
            is_slower = low is not None and low > 1.0
            sentence = (
                f"{_faster_clause(baseline, candidate, is_slower=is_slower)}, "
                f"{_size_clause(low, high)}"
                if is_wall_time
                else ratio_clause(metric, baseline, candidate, ratio, (low, high))
            )
            question = _open_question(comparison.min_effect, low, high)
            sentence += f"; {question} {_blocks_clause(comparison)}"
        case "undecided":
            metric_noun = metric if noun in ("time", "amount") else noun
            metric_phrase = "" if is_wall_time else f" for {metric_noun}"
            sentence = (
                f"{candidate} against {baseline} is undecided{metric_phrase} "
                f"{_blocks_clause(comparison)}"
            )
    if comparison.stratum:
        return _sentence_in_stratum(comparison.stratum, sentence)
    return f"{_with_capital_article(words, sentence)}."


def waiting_sentence(summary: str) -> str:
    """Add to the sentence of a verdict that most of the extra time is waiting."""
    claim = summary.removesuffix(".")
    return f"{claim}; most of the extra time is waiting for a processor {_NO_ERROR_RATE}."


def lost_analyses_clause(lost: int) -> str:
    """Return a space and a sentence on analyses across layouts that gave no number."""
    if not lost:
        return ""
    analyses = "1 planned analysis" if lost == 1 else f"{lost} planned analyses"
    return (
        f" {analyses} across layouts gave no number, because at least half of the blocks of a "
        "layout timed out."
    )


def changing_ratio_sentence(comparison: Comparison) -> str:
    """Return the sentence on a comparison that no single ratio describes.

    If there are several segments of blocks, the ratio changed during the campaign. With a single
    segment, fast and slow runs have different ratios.
    """
    first_segment, *later_segments = comparison.ratio_segments or (None,)
    if first_segment is not None and not later_segments:
        names = f"{comparison.candidate} and {comparison.baseline}"
        sentence = f"no single ratio describes {names}: fast and slow runs have different ratios"
        return sentence + _outside_clause(comparison)
    sentence = (
        f"no constant ratio of {comparison.candidate} to {comparison.baseline} fits this campaign"
    )
    if first_segment is None:
        return f"{sentence}, and no single block explains it"
    changes = [f"before block {later_segments[0].first_block} {signed_change(first_segment.ratio)}"]
    for segment in later_segments[:_MAX_RATIO_CHANGES]:
        start = f"from block {segment.first_block} on"
        changes.append(f"{start} {signed_change(segment.ratio)}")
    if len(later_segments) > _MAX_RATIO_CHANGES:
        changes.append(f"with {len(later_segments) - _MAX_RATIO_CHANGES} more changes")
    return f"{sentence}: {', '.join(changes)}{_outside_clause(comparison)}"


def _outside_clause(comparison: Comparison) -> str:
    """Return the clause on a ratio outside of its interval; empty if it is inside."""
    ratio = comparison.ratio
    is_outside = ratio is not None and leaves_out(comparison.ratio_ci, ratio)
    return "; the typical ratio lies outside of its interval" if is_outside else ""


def ratio_clause(
    metric: str, baseline: str, candidate: str, ratio: float, ratio_ci: Interval = (None, None)
) -> str:
    """Return the clause on a ratio: ``zstd uses 5.04 times the memory of gzip (4.98 to 5.11)``.

    ``ratio`` is of values, not of costs; 0 or infinity if there is no finite ratio.
    """
    words = WORDS.get(metric)
    if words is None:
        subject, other, verb = f"{metric} of {candidate}", baseline, "is"
    else:
        subject, other = _subject_and_object(words, baseline, candidate)
        verb = words.verb
    if leaves_out(ratio_ci, ratio):
        changes = _changes_in_parentheses(ratio_ci)
        return f"{metric} of {candidate} against {baseline} has no single ratio{changes}"
    interval = " (no finite ratio)"
    if 0.0 < ratio < math.inf:
        interval = _interval_in_parentheses(ratio_ci, is_factor=reads_as_factor(ratio))
    if words is not None and words.more_is_longer and reads_as_factor(ratio) and ratio < 1.0:
        interval = _interval_in_parentheses(inverse_interval(ratio_ci), is_factor=True)
        return f"{subject} is {_times_of(1.0 / ratio)} as fast as {other}{interval}"
    return f"{subject} {verb} {comparative(metric, other, ratio)}{interval}"


def change_clause(
    metric: str,
    ratio: float,
    ratio_ci: Interval,
    *,
    other: str = "its parent",
    more_is_better: bool = False,
) -> str:
    """Return the clause on a commit's effect: ``it 3.10 % slower (2.40 % to 3.80 %)``.

    The ratio is finite and above 0: the cost with the commit over the cost without the commit.
    """
    if more_is_better and metric not in _WALL_TIME_METRICS:
        ratio, ratio_ci = 1.0 / ratio, inverse_interval(ratio_ci)
    interval = _interval_in_parentheses(ratio_ci, is_factor=reads_as_factor(ratio))
    if metric in _WALL_TIME_METRICS and 1.0 < ratio < FACTOR_FROM:
        return f"it {_percent(ratio)} slower{interval}"
    if metric in _WALL_TIME_METRICS and ratio < 1.0 and reads_as_factor(ratio):
        interval = _interval_in_parentheses(inverse_interval(ratio_ci), is_factor=True)
        return f"it {_times_of(1.0 / ratio)} as fast as {other}{interval}"
    words, change = WORDS.get(metric), f"{comparative(metric, other, ratio)}{interval}"
    if words is None:
        return f"{metric} {change}"
    return f"it {'have' if words.verb == 'has' else words.verb.removesuffix('s')} {change}"


def comparative(metric: str, other: str, ratio: float) -> str:
    """Return a ratio in the words of a metric: ``5.04 times the memory of gzip``."""
    is_higher = ratio >= 1.0
    factor = _times_of(ratio)
    change = f"{_percent(ratio)} " if 0.0 < ratio < math.inf else ""
    words = WORDS.get(metric)
    if words is None:
        factor_phrase = f"{factor} that of {other}"
        change_phrase = f"{change}{'higher' if is_higher else 'lower'} than that of {other}"
        return factor_phrase if reads_as_factor(ratio) else change_phrase
    adjective, noun = "more" if is_higher else words.less, f" {words.noun}"
    factor_phrase = f"{factor} the{noun} of {other}"
    if words.more_is_longer:
        factor_phrase = f"{factor} as long as {other}"
        adjective, noun = ("longer", "") if is_higher else ("less", noun)
    elif words.noun == "amount":
        factor_phrase, noun = f"{factor} as much as {other}", ""
    return factor_phrase if reads_as_factor(ratio) else f"{change}{adjective}{noun} than {other}"


def ranking_sentence(
    conditions: Sequence[RankedCondition],
    contenders: Sequence[str],
    baseline: str,
    metric: str,
    *,
    more_is_better: bool,
    min_effect: float,
    stratum: Mapping[str, str],
) -> str:
    """Return the sentence on the contenders, the conditions that may be the fastest.

    ``conditions`` and ``contenders`` are in the order of the ranking, with names for the sentence.
    """
    verb, superlative = _superlative(metric, more_is_better=more_is_better)
    best_of_all, margin = f"{superlative} of {len(conditions)}", f"within {min_effect:g} %"
    tied_with = {condition.name: set(condition.tied_with) for condition in conditions}
    if not contenders:
        return _sentence_in_stratum(stratum, f"No condition {verb} certainly {best_of_all}")
    leader, *followers = contenders
    lead = _lead_clause(conditions, contenders, baseline, metric, more_is_better=more_is_better)
    if not followers:
        return _sentence_in_stratum(stratum, f"{leader} {verb} {best_of_all}{lead}")
    if all(set(contenders) <= tied_with[name] | {name} for name in contenders):
        tie = f"{names_of(contenders)} tie {'as' if verb == 'is' else 'for'} {best_of_all}"
        return _sentence_in_stratum(stratum, f"{tie}, {margin}{lead}")
    names_of_contenders = names_of(contenders, "or")
    sentence = (
        f"Which of {len(conditions)} {verb} {superlative} is undecided: {names_of_contenders}"
        if len(contenders) == len(conditions)
        else f"{names_of_contenders} {verb} {best_of_all}"
    )
    sentence += f"; {leader} leads so far{lead}"
    if tied := [name for name in followers if name in tied_with[leader]]:
        sentence += f"; {names_of(tied)} {'ties' if len(tied) == 1 else 'tie'} with it, {margin}"
    return _sentence_in_stratum(stratum, sentence)


def _sentence_in_stratum(stratum: Mapping[str, str], sentence: str) -> str:
    levels = ", ".join(f"{factor} {level}" for factor, level in stratum.items())
    return f"At {levels}: {sentence}." if levels else f"{sentence}."


def _lead_clause(
    conditions: Sequence[RankedCondition],
    contenders: Sequence[str],
    baseline: str,
    metric: str,
    *,
    more_is_better: bool,
) -> str:
    """Return the clause on the lead of the first condition: ``: 2.2 times as fast as gzip``.

    The clause compares the leader with the baseline. If the baseline leads, the clause compares
    with the first condition that is certainly slower. Without certainty, the clause is empty.
    """
    leader = next(condition for condition in conditions if condition.name == contenders[0])
    certainly_slower = [name for name in leader.faster_than if name not in contenders]
    if leader.name != baseline:
        if baseline not in certainly_slower or not leader.ratio:
            return ""
        ratio = 1.0 / leader.ratio if more_is_better else leader.ratio
        if metric in _WALL_TIME_METRICS and reads_as_factor(ratio) and ratio < 1.0:
            return f": {_times_of(1.0 / ratio)} as fast as {baseline}"
        return f": {comparative(metric, baseline, ratio)}"
    for condition in conditions:
        if condition.name in certainly_slower and condition.ratio:
            ratio = 1.0 / condition.ratio if more_is_better else condition.ratio
            return f": {ratio_clause(metric, baseline, condition.name, ratio)}"
    return ""


def _superlative(metric: str, *, more_is_better: bool) -> tuple[str, str]:
    """Return the verb and the superlative of a metric: ``uses``, ``the least memory``."""
    if metric in _WALL_TIME_METRICS:
        return "is", "the fastest"
    words = WORDS.get(metric)
    if words is None or words.more_is_longer or words.noun == "amount":
        return "has", f"the {'highest' if more_is_better else 'lowest'} {metric}"
    smallest = "fewest" if words.less == "fewer" else "least"
    return words.verb, f"the {'most' if more_is_better else smallest} {words.noun}"


def _with_capital_article(words: MetricWords, sentence: str) -> str:
    is_part = words.part and sentence.startswith(f"an {words.part} of ")
    return f"A{sentence[1:]}" if is_part else sentence


def _subject_and_object(words: MetricWords, baseline: str, candidate: str) -> tuple[str, str]:
    """Return candidate and baseline as subject and object: ``an iteration of a``, ``one of b``."""
    if not words.part:
        return candidate, baseline
    return f"an {words.part} of {candidate}", f"one of {baseline}"


def disagreement_sentence(
    answers: Sequence[StatisticAnswer],
    baseline: str,
    candidate: str,
    *,
    verdict: Verdict,
    metric: str = PRIMARY_METRIC,
    more_is_better: bool = False,
) -> str | None:
    """Return the sentence on statistics that certainly contradict the verdict, or ``None``.

    With the verdict ``equivalent``, each statistic with a winner contradicts. With an undecided or
    mixed verdict, statistics with different winners contradict each other.
    """
    statistics_by_direction: dict[str, list[str]] = {"faster": [], "slower": []}
    for answer in answers:
        if answer.certain and answer.verdict != "equivalent":
            statistics_by_direction[answer.verdict].append(answer.statistic)
    directions = [direction for direction, names in statistics_by_direction.items() if names]
    agrees = not directions if verdict == "equivalent" else set(directions) <= {verdict}
    if agrees or (verdict in ("undecided", "mixed") and len(directions) < 2):
        return None
    subject, other = candidate, baseline
    adjectives = {"faster": "faster", "slower": "slower"}
    if not is_time(metric):
        subject, other = f"{metric} of {candidate}", f"that of {baseline}"
        lower, higher = ("higher", "lower") if more_is_better else ("lower", "higher")
        adjectives = {"faster": lower, "slower": higher}
    clauses = [
        f"{adjectives[direction]} than {other} by "
        + _statistics_phrase(statistics_by_direction[direction])
        for direction in directions
    ]
    return f"{subject} is {joined(clauses)}"


def control_sentence(*, excludes_one: bool, alpha: float) -> str:
    """Return the sentence on the control, which is a second run of the baseline."""
    if not excludes_one:
        return "the control, a second run of the baseline, shows no difference from it"
    return (
        "the control, a second run of the baseline, differs from it: this happens by chance in at "
        f"most {100 * alpha:g} % of campaigns, or else the tool or the host is at fault"
    )


def slow_runs_sentence(
    slow_runs: SlowRuns, baseline: str, candidate: str, *, metric: str, more_is_better: bool = False
) -> str:
    """Return the sentence on observed slow runs, and on slow runs too rare to be observed.

    ``2 of 106 runs of new and 0 of 106 runs of old took over 1.5 times their median; slow runs
    rarer than 1 in 35 may have been missed``. On a metric other than time, slow runs are outliers.
    """
    unseen_clause, noun = _unseen_clause(slow_runs.unseen_share, metric), _slow_run_noun(metric)
    if not (slow_runs.baseline_count or slow_runs.candidate_count):
        return f"no {noun} were seen; {unseen_clause}"
    verb = "took" if metric in _WALL_TIME_METRICS else "had"
    limit = f"over {slow_runs.factor:g} times their median"
    if more_is_better and metric not in _WALL_TIME_METRICS:
        limit = f"less than 1/{slow_runs.factor:g} of their median"
    counts = [(slow_runs.candidate_count, candidate), (slow_runs.baseline_count, baseline)]
    if slow_runs.baseline_count > slow_runs.candidate_count:
        counts.reverse()
    shares = (
        f"{count} of {counted(slow_runs.run_count, 'run')} of {name}" for count, name in counts
    )
    clauses = [f"{' and '.join(shares)} {verb} {limit}"]
    if slow_runs.more_often is not None and slow_runs.significance_level is not None:
        name = candidate if slow_runs.more_often == "candidate" else baseline
        percent = 100 * slow_runs.significance_level
        clauses.append(f"{name} has {noun} more often (tested at the level {percent:g} %)")
    return "; ".join([*clauses, unseen_clause])


def _slow_runs_clause(comparison: Comparison) -> str:
    if comparison.slow_runs is not None:
        return comparison.slow_runs.summary
    return _unseen_clause(unseen_share(comparison.blocks, comparison.alpha), comparison.metric)


def _unseen_clause(share: float, metric: str) -> str:
    rarity = f"rarer than 1 in {max(1, math.floor(1.0 / share))}"
    return f"{_slow_run_noun(metric)} {rarity} may have been missed"


def _slow_run_noun(metric: str) -> str:
    return "slow runs" if metric in _WALL_TIME_METRICS else "outliers"


def _has_direction(ratio: float, low: float | None, high: float | None) -> bool:
    """Return whether the whole interval and the ratio are on the same side of 1."""
    is_above = low is not None and low > 1.0
    is_below = high is not None and high < 1.0
    return (is_above and ratio > 1.0) or (is_below and ratio < 1.0)


def _size_clause(low: float | None, high: float | None) -> str:
    """Return the size of a difference whose interval excludes 1: ``by 0.41 % to 1.17 %``."""
    known = [bound for bound in (low, high) if bound is not None and bound < math.inf]
    nearer, *farther = map(_percent, sorted(known, key=lambda bound: abs(bound - 1.0)))
    return f"by {nearer} to {farther[0]}" if farther else f"by at least {nearer}"


def _open_question(min_effect: float, low: float | None, high: float | None) -> str:
    margin = 1.0 + min_effect / 100.0
    if low is not None and high is not None and 1.0 / margin <= low and high <= margin:
        return "whether many runs together differ is open"
    return f"whether by more than {min_effect:g} % is open"


def _blocks_clause(comparison: Comparison) -> str:
    forecast = comparison.blocks_to_go
    outlook = (
        "how many more would decide it cannot be foreseen"
        if forecast is None
        else f"about {forecast} more would probably decide it"
    )
    return f"after {counted(comparison.blocks, 'block')}; {outlook}"


def cpus_clause(cpu_sets: CpuSets) -> str:
    """Return ``CPUs 0 and 1``, or for sets of several CPUs ``CPUs 0, 1 and CPUs 2, 3``."""
    if all(len(cpus) == 1 for cpus in cpu_sets):
        return f"CPUs {joined([str(cpu) for (cpu,) in cpu_sets])}"
    return joined([f"CPUs {', '.join(map(str, cpus))}" for cpus in cpu_sets])


def carry_over_clause(comparison: Comparison, factor: str) -> str:
    """Return the clause with a factor: ``a trial takes 1.03 times as long after a as after b``."""
    verb, adverb = ("takes", "long") if is_time(comparison.metric) else ("costs", "much")
    order = f"after {comparison.candidate} as after {comparison.baseline}"
    return f"a trial {verb} {factor} as {adverb} {order}"


def _ratio_or_extreme(comparison: Comparison, ratio: float | None) -> float:
    """Return the ratio; if it is unknown, 0 for a faster candidate, else infinity."""
    if ratio is not None:
        return ratio
    return 0.0 if comparison.verdict == "faster" else math.inf


def _time_sentence(
    baseline: str, candidate: str, verdict: Verdict, ratio: float, ratio_ci: Interval
) -> str:
    claim = _faster_clause(baseline, candidate, is_slower=verdict == "slower")
    if leaves_out(ratio_ci, ratio):
        return f"{claim}, {_size_clause(*ratio_ci)}"
    min_factor = _min_factor(ratio, ratio_ci)
    if min_factor is not None and min_factor < FACTOR_FROM:
        nearest_ratio = min_factor if ratio > 1.0 else 1.0 / min_factor
        return f"{claim}, by at least {_percent(nearest_ratio)}; by how much more is not known yet"
    if reads_as_factor(ratio) and ratio < 1.0:
        return f"{candidate} is {_times_of(1.0 / ratio, min_factor)} as fast as {baseline}"
    if min_factor is not None:
        return f"{claim}: it takes {_times_of(ratio, min_factor)} as long"
    return f"{claim}: it {_time_clause('is', 'takes', ratio)}"


def _faster_clause(baseline: str, candidate: str, *, is_slower: bool) -> str:
    return f"{candidate} is {'slower' if is_slower else 'faster'} than {baseline}"


def _min_factor(ratio: float, ratio_ci: Interval) -> float | None:
    """Return the smallest factor in an interval.

    ``None`` if the factor is known to a tenth, or if the ratio reads as a change in percent.
    """
    low, high = ratio_ci
    if not reads_as_factor(ratio) or (low is None and high is None):
        return None
    if is_known_to_a_tenth(ratio_ci):
        return None
    nearer = low if ratio > 1.0 else inverse_interval(ratio_ci)[0]
    return nearer if nearer is not None and nearer > 1.0 else None


def _times_of(factor: float, min_factor: float | None = None) -> str:
    """Return a factor in words: ``3.3 times``; with ``min_factor``, ``at least 6 times``."""
    if min_factor is None:
        return f"{_three_digits(factor)} times"
    # Round down to two digits.
    second_digit = 10.0 ** (math.floor(math.log10(min_factor)) - 1)
    rounded = math.floor(min_factor / second_digit + 1e-9) * second_digit
    return f"at least {_three_digits(rounded)} times"


def _three_digits(factor: float) -> str:
    return f"{factor:.3g}" if factor < 1000.0 else significant(factor)


def _time_clause(is_verb: str, takes_verb: str, ratio: float) -> str:
    """Return a clause on a ratio of times: ``takes 3.10 % longer``, ``is 3.3 times as fast``."""
    if math.isinf(ratio):
        return f"{takes_verb} longer than the timeout"
    if ratio == 0.0:
        return f"{takes_verb} less time than the timeout of the other"
    if not reads_as_factor(ratio):
        return f"{takes_verb} {_percent(ratio)} {'longer' if ratio >= 1.0 else 'less time'}"
    if ratio < 1.0:
        return f"{is_verb} {_times_of(1.0 / ratio)} as fast"
    return f"{takes_verb} {_times_of(ratio)} as long"


def signed_change(ratio: float) -> str:
    """Return a ratio as a change: ``+3.10 %``, or ``×3.3`` if the ratio reads as a factor."""
    return as_factor(ratio) if reads_as_factor(ratio) else _signed_percent(ratio)


def signed_changes(interval: Interval) -> tuple[str, str]:
    """Return both ends of an interval as changes, both in percent or both as factors."""
    largest = max((end for end in interval if end is not None), default=1.0)
    format_ratio = as_factor if reads_as_factor(largest) else _signed_percent
    low, high = ("unlimited" if end is None else format_ratio(end) for end in interval)
    return low, high


def _signed_percent(ratio: float) -> str:
    return f"{'+' if ratio >= 1.0 else '-'}{_percent(ratio)}"


def _percent(ratio: float) -> str:
    change = abs(100.0 * (ratio - 1.0))
    decimals = 2 if round(change, 2) < 10 else 1
    return f"{change:.{decimals}f} %"


def _changes_in_parentheses(ratio_ci: Interval) -> str:
    """Return an interval as changes, with a space and parentheses; empty if an end is unknown."""
    low, high = ratio_ci
    if low is None or high is None:
        return ""
    return f" ({' to '.join(signed_changes(ratio_ci))})"


def _interval_in_parentheses(ratio_ci: Interval, *, is_factor: bool) -> str:
    """Return an interval with a space and parentheses; empty if it is unknown."""
    low, high = ratio_ci
    if low is None or high is None or math.isinf(high):
        return ""
    if is_factor:
        return f" ({_three_digits(low)} to {_three_digits(high)})"
    if low <= 1.0 <= high:
        return f" ({_signed_percent(low)} to {_signed_percent(high)})"
    nearer, farther = sorted((low, high), key=lambda bound: abs(bound - 1.0))
    return f" ({_percent(nearer)} to {_percent(farther)})"


def _inverse_ratio(ratio: float) -> float:
    return math.inf if ratio == 0.0 else 1.0 / ratio


def _statistics_phrase(names: Sequence[str]) -> str:
    """Return names of statistics: ``the minimum, the median and the 70th to 90th percentile``."""

    def range_key(numbered: tuple[int, str]) -> int | str:
        """Return a key that consecutive deciles have in common."""
        index, name = numbered
        return int(name[1:]) - 10 * index if name.startswith("p") else name

    phrases: list[str] = []
    for _, decile_range in itertools.groupby(enumerate(names), range_key):
        first_name, *further_names = (name for _, name in decile_range)
        if not first_name.startswith("p"):
            phrases.append(f"the {first_name}")
        elif first_name == "p50" and not further_names:
            phrases.append("the median")
        else:
            range_end = f" to {further_names[-1][1:]}th" if further_names else ""
            phrases.append(f"the {first_name[1:]}th{range_end} percentile")
    return joined(phrases)
