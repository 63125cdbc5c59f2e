"""Modes and changes of state in words."""

from __future__ import annotations

from collections.abc import Sequence

from equipoise.model.result import Companion, MetricSummary, Mode
from equipoise.report.units import percent_change, shower

_MOST_STATES = 4


def modes_words(metric: str, summary: MetricSummary) -> str | None:
    """``2 modes: 8.1 ms (70 %) and 9.6 ms (30 %); the slow one goes with CPU 1``.

    ``None`` where there is one mode.
    """
    modes = summary.modes
    if len(modes) < 2:
        return None
    show = shower(metric)
    parts = [f"{show(one.at)} ({100 * one.share:.0f} %)" for one in modes]
    words = f"{len(modes)} modes: {', '.join(parts[:-1])} and {parts[-1]}"
    told: set[int] = set()
    for companion in summary.companions:
        # The strongest of each mode: others often say the same in other words.
        if companion.mode not in told:
            told.add(companion.mode)
            words += f"; {_which(modes, companion.mode, metric)} goes with {_with(companion)}"
    return words


def states_words(metric: str, summary: MetricSummary) -> str | None:
    """``it changed its state: 8.1 ms, from trial 41 on 9.6 ms``; ``None`` where it did not."""
    states = summary.states or ()
    if len(states) < 2:
        return None
    show = shower(metric)
    words = [f"{show(states[0].level)} at first"]
    for before, one in zip(states, states[1:_MOST_STATES], strict=False):
        change = f" ({percent_change(one.level / before.level)})" if before.level > 0 else ""
        words.append(f"{show(one.level)}{change} from trial {one.begin + 1} on")
    more = len(states) - _MOST_STATES
    return ", ".join(words) + (f", and {more} more changes" if more > 0 else "")


def _which(modes: Sequence[Mode], mode: int, metric: str) -> str:
    if len(modes) == 2:
        slow, fast = ("slow", "fast") if metric.endswith("_s") else ("high", "low")
        return f"the {slow if mode == 1 else fast} one"
    return f"that at {shower(metric)(modes[mode].at)}"


def _with(companion: Companion) -> str:
    if companion.covariate == "cpu" and companion.value is not None:
        return f"CPU {companion.value:.0f}"
    if companion.covariate == "position" and companion.value is not None:
        return f"place {companion.value + 1:.0f} in the block"
    more = companion.correlation > 0
    if companion.covariate == "time":
        return "the later trials" if more else "the earlier trials"
    if companion.covariate == "environment_bytes":
        return f"a {'large' if more else 'small'} environment"
    if companion.value is not None:
        return f"{companion.covariate} {companion.value:g}"
    return f"{'high' if more else 'low'} {companion.covariate}"
