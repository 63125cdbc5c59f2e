"""Sentences of verdicts, in plain English.

Times say *faster* and *slower*. Every other metric has its own words: a program *uses* memory and
*has* page faults, and what a workload reports itself *is* higher or lower.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from equipoise.model.interval import Interval
from equipoise.model.plan import PRIMARY_METRIC
from equipoise.model.result import Comparison, StatisticAnswer, Verdict

_MOST_STRETCHES = 3
"""Number of changes of the ratio that a sentence tells."""
_DESCRIPTION = "(description, without an error rate)"
"""Label of the ratio of means, for which no sequential guarantee is possible."""
_TIMES_FROM = 2.0
"""Ratio from which on "2.3 times" reads better than a percentage."""
_AMOUNTS = {
    PRIMARY_METRIC: ("takes", "time"),
    "user_s": ("uses", "user CPU time"),
    "sys_s": ("uses", "system CPU time"),
    "cpu_s": ("uses", "CPU time"),
    "max_rss_bytes": ("uses", "memory"),
    "output_bytes": ("writes", "output"),
}
"""Verb and noun of the metrics that are amounts."""
_COUNTS = {
    "minor_faults": ("has", "minor page faults"),
    "major_faults": ("has", "major page faults"),
    "voluntary_switches": ("makes", "voluntary context switches"),
    "involuntary_switches": ("has", "involuntary context switches"),
    "block_reads": ("makes", "block reads"),
    "block_writes": ("makes", "block writes"),
}
"""Verb and noun of the metrics that are counts."""


def verdict_sentence(
    comparison: Comparison, baseline: str, candidate: str, *, more_is_better: bool = False
) -> str:
    """Return the sentence of one comparison.

    Parameters
    ----------
    comparison
        A comparison with its numbers; its own summary is not read.
    baseline, candidate
        The names that the sentence uses, which are levels where a factor is compared.
    more_is_better
        Whether the cost that the ratio compares is the inverse of the metric.
    """
    metric, verdict = comparison.metric, comparison.verdict
    is_time = metric == PRIMARY_METRIC
    ratio = _limit(comparison, comparison.ratio)
    mean_ratio = _limit(comparison, comparison.mean_ratio)
    low, high = comparison.ratio_ci
    if more_is_better and not is_time:
        ratio, mean_ratio = _inverse(ratio), _inverse(mean_ratio)
        low, high = (None if bound is None else _inverse(bound) for bound in (high, low))
    verb, noun = (_AMOUNTS | _COUNTS).get(metric, ("has", metric))
    match verdict:
        case "slower" | "faster" if is_time:
            sentence = f"{candidate} is {verdict} than {baseline}: it takes {_time(ratio)}"
        case "slower" | "faster":
            sentence = ratio_clause(metric, baseline, candidate, ratio, (low, high))
        case "equivalent":
            plural = "have" if verb == "has" else verb.removesuffix("s")
            sentence = (
                f"{candidate} and {baseline} {plural} the same {noun}, "
                f"within {comparison.min_effect:g} %; {_unseen(comparison, is_time=is_time)}"
            )
        case "mixed" if is_time:
            sentence = (
                f"{candidate} and {baseline} differ both ways: a typical run takes {_time(ratio)}, "
                f"but many runs together take {_time(mean_ratio)} {_DESCRIPTION}"
            )
        case "mixed":
            sentence = (
                f"In a typical run {ratio_clause(metric, baseline, candidate, ratio)}, but over "
                f"many runs together {ratio_clause(metric, baseline, candidate, mean_ratio)} "
                f"{_DESCRIPTION}"
            )
        case "undecided" if comparison.means_veto:
            known = f"their means differ by {_signed_percent(mean_ratio)} {_DESCRIPTION}"
            sentence = (
                f"A typical run of {candidate} {verb} the same {noun} as one of {baseline}, within "
                f"{comparison.min_effect:g} %, but many runs together may not: "
                f"{known if 0.0 < mean_ratio < math.inf else 'their means have no finite ratio'}"
            )
        case "undecided" if _has_direction(ratio, low, high):
            is_slower = low is not None and low > 1.0
            sentence = (
                f"{candidate} is {'slower' if is_slower else 'faster'} than {baseline}, "
                f"{_extent(low, high)}"
                if is_time
                else ratio_clause(metric, baseline, candidate, ratio, (low, high))
            )
            question = _open_question(comparison.min_effect, low, high)
            sentence += f"; {question} {_outlook(comparison)}"
        case "undecided":
            of_metric = "" if is_time else f" for {noun}"
            sentence = (
                f"{candidate} against {baseline} is undecided{of_metric} {_outlook(comparison)}"
            )
    where = ", ".join(f"{factor} {level}" for factor, level in comparison.stratum.items())
    return f"At {where}: {sentence}." if where else f"{sentence}."


def lost_analyses_clause(lost: int) -> str:
    """Return the sentence, with a space before it, on analyses across layouts without a number."""
    if not lost:
        return ""
    analyses = "1 planned analysis" if lost == 1 else f"{lost} planned analyses"
    return (
        f" {analyses} across layouts gave no number, because at least half of the blocks of a "
        "layout timed out."
    )


def constancy_sentence(comparison: Comparison) -> str:
    """Return one sentence on a comparison that no constant ratio fits, with its change-points."""
    first, *later = comparison.ratio_segments or (None,)
    sentence = (
        f"no constant ratio of {comparison.candidate} to {comparison.baseline} fits this campaign"
    )
    if first is None or not later:
        return f"{sentence}, and no single block explains it"
    stretches = [f"before block {later[0].first_block} {_signed_percent(first.ratio)}"]
    for segment in later[:_MOST_STRETCHES]:
        begin = f"from block {segment.first_block} on"
        stretches.append(f"{begin} {_signed_percent(segment.ratio)}")
    if len(later) > _MOST_STRETCHES:
        stretches.append(f"with {len(later) - _MOST_STRETCHES} more changes")
    return f"{sentence}: {', '.join(stretches)}"


def ratio_clause(
    metric: str,
    baseline: str,
    candidate: str,
    ratio: float,
    ratio_ci: Interval = (None, None),
) -> str:
    """Return a clause on a ratio: ``zstd uses 5.04 times the memory of gzip (4.98 to 5.11)``.

    Parameters
    ----------
    ratio
        Candidate over baseline of the metric; infinite or 0 where there is no finite ratio.
    ratio_ci
        Interval of the ratio; shown if both of its ends are known.
    """
    higher = ratio >= 1.0
    is_finite = 0.0 < ratio < math.inf
    as_times = is_finite and not 1.0 / _TIMES_FROM < ratio < _TIMES_FROM
    factor, change = f"{ratio:.3g} times", f"{_percent(ratio)} " if is_finite else ""
    verb, noun = (_AMOUNTS | _COUNTS).get(metric, ("is", metric))
    if metric == PRIMARY_METRIC:
        subject = f"{candidate} takes"
        as_factor = f"{factor} as long as {baseline}"
        as_change = f"{change}{'longer' if higher else 'less time'} than {baseline}"
    elif metric in _AMOUNTS or metric in _COUNTS:
        subject = f"{candidate} {verb}"
        as_factor = f"{factor} the {noun} of {baseline}"
        less = "less" if metric in _AMOUNTS else "fewer"
        as_change = f"{change}{'more' if higher else less} {noun} than {baseline}"
    else:
        subject = f"{metric} of {candidate} is"
        as_factor = f"{factor} that of {baseline}"
        as_change = f"{change}{'higher' if higher else 'lower'} than that of {baseline}"
    interval = _interval(ratio_ci, as_times=as_times) if is_finite else " (no finite ratio)"
    return f"{subject} {as_factor if as_times else as_change}{interval}"


def disagreement_sentence(
    answers: Sequence[StatisticAnswer], baseline: str, candidate: str, *, verdict: Verdict
) -> str | None:
    """Return one sentence where statistics name different winners; ``None`` where they do not.

    Where the conditions are equivalent, each statistic that names a winner disagrees.
    """
    names: dict[str, list[str]] = {"faster": [], "slower": [], "equivalent": []}
    for answer in answers:
        names[answer.says].append(answer.statistic)
    kinds = [kind for kind, statistics in names.items() if statistics]
    winners = len(kinds) - bool(names["equivalent"])
    if winners < (1 if verdict == "equivalent" else 2):
        return None
    parts = [
        f"{'the same' if kind == 'equivalent' else f'{kind} than {baseline}'} by "
        f"{_statistics(names[kind])}"
        for kind in kinds
    ]
    return f"{candidate} is {_joined(parts)}"


def control_sentence(*, excludes_one: bool, alpha: float) -> str:
    """Return one sentence on the control."""
    if not excludes_one:
        return "the control, a second run of the baseline, shows no difference from it"
    return (
        "the control, a second run of the baseline, differs from it: this happens by chance in at "
        f"most {100 * alpha:g} % of campaigns, or else the tool or the host is at fault"
    )


def _unseen(comparison: Comparison, *, is_time: bool) -> str:
    """Return how rare a run must be that was perhaps never seen.

    Rule of three: runs with a share of 3/n are missed by n blocks with a chance of at most e^-3.
    """
    rarity = max(2, comparison.blocks // 3)
    kind = "slow runs" if is_time else "outliers"
    return f"{kind} rarer than 1 in {rarity} may be unseen after {comparison.blocks} blocks"


def _has_direction(ratio: float, low: float | None, high: float | None) -> bool:
    """Return whether an interval leaves out 1, and the estimate is on the same side."""
    is_above = low is not None and low > 1.0
    is_below = high is not None and high < 1.0
    return (is_above and ratio > 1.0) or (is_below and ratio < 1.0)


def _extent(low: float | None, high: float | None) -> str:
    """Return by how much a time differs, if its interval leaves out 1: ``by 0.41 % to 1.17 %``."""
    known = [bound for bound in (low, high) if bound is not None and bound < math.inf]
    nearer, *farther = map(_percent, sorted(known, key=lambda bound: abs(bound - 1.0)))
    return f"by {nearer} to {farther[0]}" if farther else f"by at least {nearer}"


def _open_question(min_effect: float, low: float | None, high: float | None) -> str:
    """Return what is open where the direction is certain."""
    most = 1.0 + min_effect / 100.0
    if low is not None and high is not None and 1.0 / most <= low and high <= most:
        return "whether many runs together differ is open"
    return f"whether by more than {min_effect:g} % is open"


def _outlook(comparison: Comparison) -> str:
    blocks, to_go = comparison.blocks, comparison.blocks_to_go
    outlook = (
        "how many more would decide it cannot be foreseen"
        if to_go is None
        else f"about {to_go} more would probably decide it"
    )
    return f"after {blocks} {'block' if blocks == 1 else 'blocks'}; {outlook}"


def _limit(comparison: Comparison, ratio: float | None) -> float:
    """Return the ratio; 0 or infinite, by the verdict, where it is not finite."""
    if ratio is not None:
        return ratio
    return 0.0 if comparison.verdict == "faster" else math.inf


def _time(ratio: float) -> str:
    """Return what a ratio of times means: ``3.10 % longer``."""
    if math.isinf(ratio):
        return "longer than the timeout"
    if ratio == 0.0:
        return "less time than the timeout of the other"
    if not 1.0 / _TIMES_FROM < ratio < _TIMES_FROM:
        return f"{ratio:.3g} times as long"
    return f"{_percent(ratio)} {'longer' if ratio >= 1.0 else 'less time'}"


def _signed_percent(ratio: float) -> str:
    return f"{'+' if ratio >= 1.0 else '-'}{_percent(ratio)}"


def _percent(ratio: float) -> str:
    change = abs(100.0 * (ratio - 1.0))
    decimals = 2 if round(change, 2) < 10 else 1
    return f"{change:.{decimals}f} %"


def _interval(ratio_ci: Interval, *, as_times: bool) -> str:
    low, high = ratio_ci
    if low is None or high is None or math.isinf(high):
        return ""
    if as_times or low < 1.0 < high:
        return f" ({low:.3g} to {high:.3g})"
    nearer, farther = sorted((low, high), key=lambda bound: abs(bound - 1.0))
    return f" ({_percent(nearer)} to {_percent(farther)})"


def _inverse(ratio: float) -> float:
    return math.inf if ratio == 0.0 else 1.0 / ratio


def _statistics(names: Sequence[str]) -> str:
    """Return the names in a sentence: ``the minimum, the median and the 70th to 90th percentile``.

    Neighbouring deciles are one part of it.
    """

    def run_of(numbered: tuple[int, str]) -> int | str:
        place, name = numbered
        return int(name[1:]) - 10 * place if name.startswith("p") else name

    parts: list[str] = []
    for _, run in itertools.groupby(enumerate(names), run_of):
        first, *others = (name for _, name in run)
        if not first.startswith("p"):
            parts.append(f"the {first}")
        elif first == "p50" and not others:
            parts.append("the median")
        else:
            last = f" to {others[-1][1:]}th" if others else ""
            parts.append(f"the {first[1:]}th{last} percentile")
    return _joined(parts)


def _joined(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
