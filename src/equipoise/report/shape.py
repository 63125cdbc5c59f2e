"""Modes, changes of state, iterations and their steady states in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from equipoise.model.result import (
    ConditionResult,
    MetricSummary,
    Mode,
    ModeAssociation,
    SteadyComparison,
)
from equipoise.report.units import (
    interval_words,
    percent_change,
    shower,
)

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


def drift_words(summary: MetricSummary, min_effect: float) -> str | None:
    """``+1.30 % in the last third against the first``; ``None`` where there surely is none of note.

    Parameters
    ----------
    min_effect
        The smallest effect that matters, in percent.
    """
    if summary.drift is None or summary.drift.ratio is None:
        return None
    low, high = summary.drift.ratio_ci
    sure = (low is not None and low > 1.0) or (high is not None and high < 1.0)
    if not sure or abs(summary.drift.ratio - 1.0) <= min_effect / 100.0:
        return None
    return f"{percent_change(summary.drift.ratio)} in the last third against the first"


def iteration_words(condition: ConditionResult) -> Iterator[str]:
    """``iterations of request_s: warm-up in all 10 trials, steady from iteration 31 on``."""
    for metric, shape in condition.iterations.items():
        if shape.kind is None:
            # A few measurements in a process are no course; the document counts them.
            continue
        words = f"iterations of {metric}: {shape.summary}"
        steady = [one.steady for one in shape.trials if one.steady is not None]
        if shape.has_steady_state and steady:
            mean = shower(metric)(sum(steady) / len(steady))
            words += f"; {mean} in the steady state (mean over trials)"
        if shape.not_classed:
            words += f"; {shape.not_classed} not classed: too few iterations"
        yield words


def steady_words(found: SteadyComparison) -> str:
    """The verdict with its interval, or why there is none."""
    if found.comparison is None or found.comparison.ratio_ci == (None, None):
        return found.summary
    compared = found.comparison
    change = "" if compared.ratio is None else f"{percent_change(compared.ratio)}, "
    interval = interval_words(*compared.ratio_ci)
    return f"{found.summary} {change}{100 * (1 - compared.level):g} % interval {interval}."


def _which(modes: Sequence[Mode], mode: int, metric: str) -> str:
    if len(modes) == 2:
        slow, fast = ("slow", "fast") if metric.endswith("_s") else ("high", "low")
        return f"the {slow if mode == 1 else fast} one"
    return f"that at {shower(metric)(modes[mode].at)}"


def _with(companion: ModeAssociation) -> str:
    if companion.covariate == "cpu" and companion.value is not None:
        return f"CPU {companion.value:.0f}"
    if companion.covariate == "position" and companion.value is not None:
        return f"place {companion.value + 1:.0f} in the block"
    more = companion.correlation > 0
    if companion.covariate == "time":
        return "the later trials" if more else "the earlier trials"
    if companion.covariate == "environment_bytes":
        return f"a {'large' if more else 'small'} environment"
    if companion.covariate == "argument_bytes":
        return f"a {'long' if more else 'short'} path of the program"
    if companion.covariate == "random_addresses":
        return "random addresses (ASLR)" if companion.value else "fixed addresses (no ASLR)"
    if companion.value is not None:
        return f"{companion.covariate} {companion.value:g}"
    return f"{'high' if more else 'low'} {companion.covariate}"
