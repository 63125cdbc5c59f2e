"""The verdict in words that a manager can read."""

from __future__ import annotations

import math

from equipoise.model.result import Verdict

_TIMES_FROM = 2.0
"""From a doubling on, "2.3 times" reads better than a percentage."""


def verdict_words(
    verdict: Verdict,
    baseline: str,
    candidate: str,
    ratio: float | None,
    *,
    min_effect: float,
    mean_ratio: float | None,
    blocks: int,
    blocks_to_go: int | None,
) -> str:
    """One sentence for one comparison of times.

    Parameters
    ----------
    ratio
        Candidate over baseline; ``None`` if it is not finite.
    min_effect
        The smallest effect that matters, in percent.
    """
    match verdict:
        case "slower":
            return f"{candidate} is slower than {baseline}: it takes {_more(ratio)}."
        case "faster":
            return f"{candidate} is faster than {baseline}: it takes {_less(ratio)}."
        case "equivalent":
            return f"{candidate} and {baseline} take the same time, within {min_effect:g} %."
        case "mixed":
            return (
                f"{candidate} and {baseline} differ both ways: a typical run takes "
                f"{_change(ratio)}, but many runs together take {_change(mean_ratio)}."
            )
        case "undecided":
            return (
                f"{candidate} against {baseline} is undecided after {blocks} "
                f"{'block' if blocks == 1 else 'blocks'}; {_outlook(blocks_to_go)}."
            )


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
    change = round(abs(100.0 * (ratio - 1.0)), 2)
    return f"{change:.2f} %" if change < 10 else f"{change:.1f} %"


def _outlook(blocks_to_go: int | None) -> str:
    if blocks_to_go is None:
        return "how many more would decide it cannot be foreseen"
    return f"about {blocks_to_go} more would probably decide it"
