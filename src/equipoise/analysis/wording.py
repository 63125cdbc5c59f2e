"""The verdict in words that a manager can read."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from equipoise.model.plan import PRIMARY_METRIC
from equipoise.model.result import StatisticAnswer, Verdict

_TIMES_FROM = 2.0
"""From a doubling on, "2.3 times" reads better than a percentage."""


def verdict_words(
    verdict: Verdict,
    metric: str,
    baseline: str,
    candidate: str,
    ratio: float | None,
    *,
    min_effect: float,
    mean_ratio: float | None,
    blocks: int,
    blocks_to_go: int | None,
    stratum: Mapping[str, str] | None = None,
) -> str:
    """One sentence for one comparison.

    Parameters
    ----------
    ratio
        Candidate over baseline of a cost; ``None`` if it is not finite.
    min_effect
        The smallest effect that matters, in percent.
    stratum
        Of a study: where the comparison was made, the levels of the other factors.
    """
    sentence = _sentence(
        verdict,
        metric,
        baseline,
        candidate,
        ratio,
        min_effect=min_effect,
        mean_ratio=mean_ratio,
        blocks=blocks,
        blocks_to_go=blocks_to_go,
    )
    where = ", ".join(f"{factor} {level}" for factor, level in (stratum or {}).items())
    return f"At {where}: {sentence}" if where else sentence


def _sentence(
    verdict: Verdict,
    metric: str,
    baseline: str,
    candidate: str,
    ratio: float | None,
    *,
    min_effect: float,
    mean_ratio: float | None,
    blocks: int,
    blocks_to_go: int | None,
) -> str:
    match verdict:
        case "slower" if metric == PRIMARY_METRIC:
            return f"{candidate} is slower than {baseline}: it takes {_more(ratio)}."
        case "faster" if metric == PRIMARY_METRIC:
            return f"{candidate} is faster than {baseline}: it takes {_less(ratio)}."
        case "equivalent" if metric == PRIMARY_METRIC:
            return f"{candidate} and {baseline} take the same time, within {min_effect:g} %."
        case "mixed" if metric == PRIMARY_METRIC:
            return (
                f"{candidate} and {baseline} differ both ways: a typical run takes "
                f"{_change(ratio)}, but many runs together take {_change(mean_ratio)}."
            )
        case "slower" | "faster":
            return f"{candidate} against {baseline}: {metric} costs {_factor(ratio)}."
        case "equivalent":
            return f"{candidate} and {baseline} cost the same {metric}, within {min_effect:g} %."
        case "mixed":
            return (
                f"{candidate} against {baseline}: {metric} costs {_factor(ratio)} in a typical "
                f"run, but {_factor(mean_ratio)} in many runs together."
            )
        case "undecided":
            subject = f"{candidate} against {baseline}"
            if metric != PRIMARY_METRIC:
                subject += f", {metric},"
            return (
                f"{subject} is undecided after {blocks} "
                f"{'block' if blocks == 1 else 'blocks'}; {_outlook(blocks_to_go)}."
            )


def disagreement_words(
    answers: Sequence[StatisticAnswer], baseline: str, candidate: str, *, verdict: Verdict
) -> str | None:
    """One sentence where statistics name different winners; ``None`` where they do not.

    Of equivalent conditions, each statistic that names a winner is one that disagrees.
    """
    by: dict[str, list[str]] = {"faster": [], "slower": [], "equivalent": []}
    for one in answers:
        by[one.says].append(one.statistic)
    contradict = bool(by["faster"]) and bool(by["slower"])
    if not contradict and not (verdict == "equivalent" and (by["faster"] or by["slower"])):
        return None
    parts = [
        f"{kind} than {baseline} by {_statistics(by[kind])}"
        for kind in ("faster", "slower")
        if by[kind]
    ]
    if by["equivalent"]:
        parts.append(f"the same by {_statistics(by['equivalent'])}")
    return f"{candidate} is {_listed(parts)}"


def _statistics(names: Sequence[str]) -> str:
    """``the minimum, the median and the 70th to 90th percentile``."""
    found: list[str] = []
    run: list[int] = []

    def end_of_run() -> None:
        if run:
            last = f" to {run[-1]}th" if len(run) > 1 else ""
            found.append(f"the {run[0]}th{last} percentile" if run != [50] else "the median")
            run.clear()

    for name in names:
        decile = int(name[1:]) if name.startswith("p") else None
        if decile is None or (run and decile != run[-1] + 10):
            end_of_run()
        if decile is None:
            found.append(f"the {name}")
        else:
            run.append(decile)
    end_of_run()
    return _listed(found)


def _listed(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def control_words(*, excludes_one: bool, alpha: float) -> str:
    """One sentence on the control."""
    if not excludes_one:
        return "the control, a second run of the baseline, cannot be told from it"
    return (
        "the control, a second run of the baseline, differs from it: by chance in at most "
        f"{100 * alpha:g} % of campaigns, or the tool or the host is broken"
    )


def times_words(metric: str, ratio: float) -> str:
    """What a ratio of means of processes says: ``3.10 % longer``; of no time, as a factor."""
    return _change(ratio) if metric.endswith("_s") else _factor(ratio)


def _factor(ratio: float | None) -> str:
    return "without limit" if ratio is None else f"{ratio:.3g} times as much"


def _change(ratio: float | None) -> str:
    if ratio is not None and ratio < 1.0:
        return _less(ratio)
    return _more(ratio)


def _more(ratio: float | None) -> str:
    if ratio is None or math.isinf(ratio):
        return "longer than the timeout"
    if ratio >= _TIMES_FROM:
        return f"{ratio:.3g} times as long"
    return f"{_percent(ratio)} longer"


def _less(ratio: float | None) -> str:
    if ratio is None or ratio == 0.0:
        return "less time than the timeout of the other"
    if ratio <= 1.0 / _TIMES_FROM:
        return f"1/{1.0 / ratio:.3g} of the time"
    return f"{_percent(ratio)} less time"


def _percent(ratio: float) -> str:
    change = abs(100.0 * (ratio - 1.0))
    decimals = 2 if round(change, 2) < 10 else 1
    return f"{change:.{decimals}f} %"


def _outlook(blocks_to_go: int | None) -> str:
    if blocks_to_go is None:
        return "how many more would decide it cannot be foreseen"
    return f"about {blocks_to_go} more would probably decide it"
