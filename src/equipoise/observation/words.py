"""The answer in words that a manager can read."""

from __future__ import annotations

import math
from collections.abc import Sequence

from equipoise.model.observation_result import Bounds, Contribution, Effect, HiddenBias
from equipoise.model.quantities import amount
from equipoise.observation.rosenbaum import MOST_GAMMA

_TIMES = ("_s", "_ms", "_us", "_ns", "seconds", "time", "latency", "duration", "elapsed")
_TWICE = 2.0
_MOST_OF_IT = 0.5
_FACTORS = {2: "double", 3: "triple", 4: "quadruple"}
_NEAR_WHOLE = 0.05


def answer_words(
    naive: Effect,
    matched: Effect,
    contributions: Sequence[Contribution],
    hidden: HiddenBias | None,
    outcome: str,
    candidate: str,
) -> str:
    """The naive difference, the one among comparable rows, what made up the rest, and how sure."""
    first = f"Naively {size_words(naive, outcome)}."
    shown = f"Among comparable runs {among_words(matched, outcome)}"
    reason = reason_words(naive, matched, contributions)
    parts = [first, f"{shown}{f': {reason}' if reason else ''}."]
    if hidden is not None and is_shown(matched):
        parts.append(hidden_words(hidden, candidate))
    return " ".join(parts)


def among_words(effect: Effect, outcome: str) -> str:
    """An effect with its interval, both in one direction where it has one."""
    interval = effect.difference_ci if effect.ratio is None else effect.ratio_ci
    if interval is None:
        return size_words(effect, outcome)
    if not is_shown(effect):
        ends = [_part(end, effect, outcome) for end in interval]
        return f"no difference is shown [from {ends[0]} to {ends[1]}]"
    if effect.ratio is None:
        near, far = sorted(abs(end) for end in interval)
        return f"{size_words(effect, outcome)} [{amount(near)}, {amount(far)}]"
    if effect.ratio >= _TWICE or interval[1] >= _TWICE:
        return f"{size_words(effect, outcome)} [{interval[0]:.3g}, {interval[1]:.3g} times]"
    near, far = sorted(100.0 * abs(end - 1.0) for end in interval)
    return f"{size_words(effect, outcome)} [{_percent(near)}, {_percent(far)}]"


def size_words(effect: Effect, outcome: str) -> str:
    """``3 % faster``, or ``1,500 less`` where there is no ratio."""
    value = effect.difference if effect.ratio is None else effect.ratio
    return _part(value, effect, outcome)


def reason_words(naive: Effect, matched: Effect, contributions: Sequence[Contribution]) -> str:
    """What made the naive answer another one; empty where it is not, or nothing is found."""
    if naive.ratio is None or matched.ratio is None:
        gap, within = (
            naive.difference - matched.difference,
            _inside(naive.difference, matched.difference_ci),
        )
        parts = {one.column: one.difference for one in contributions}
    else:
        gap, within = math.log(naive.ratio / matched.ratio), _inside(naive.ratio, matched.ratio_ci)
        parts = {one.column: one.log_ratio or 0.0 for one in contributions}
    if within or gap == 0.0:
        return ""
    helping = sorted(
        (name for name, part in parts.items() if part * gap > 0.0),
        key=lambda name: -abs(parts[name]),
    )
    if not helping:
        return ""
    if abs(parts[helping[0]]) >= _MOST_OF_IT * abs(gap):
        return f"the difference was {helping[0]}"
    return f"the difference was {' and '.join(helping[:2])} most of all"


def hidden_words(hidden: HiddenBias, candidate: str) -> str:
    """How strong a hidden factor must be to change the answer."""
    gamma = hidden.gamma_to_change
    if gamma is None:
        return (
            f"Over {hidden.number} {hidden.of}, each used once, it is not shown even without a "
            "hidden factor."
        )
    whole = round(gamma)
    odds = f"the odds of running {candidate}"
    if whole in _FACTORS and abs(gamma - whole) < _NEAR_WHOLE:
        done = f"{_FACTORS[whole]} {odds}"
    else:
        more = "more than " if gamma >= MOST_GAMMA else ""
        done = f"multiply {odds} by {more}{gamma:.3g}"
    return f"A hidden factor would have to {done} to change this."


def is_shown(effect: Effect) -> bool:
    """Whether the interval leaves "no difference" out."""
    if effect.ratio is None:
        return effect.difference_ci is not None and not _inside(0.0, effect.difference_ci)
    return effect.ratio_ci is not None and not _inside(1.0, effect.ratio_ci)


def _part(value: float, effect: Effect, outcome: str) -> str:
    more, less = ("slower", "faster") if outcome.lower().endswith(_TIMES) else ("more", "less")
    if effect.ratio is None:
        return f"{amount(abs(value))} {more if value >= 0 else less}"
    if value >= _TWICE:
        return f"{value:.3g} times as {'slow' if more == 'slower' else 'much'}"
    return f"{_percent(100.0 * abs(value - 1.0))} % {more if value >= 1.0 else less}"


def _inside(value: float, interval: Bounds) -> bool:
    return interval is not None and interval[0] <= value <= interval[1]


def _percent(value: float) -> str:
    if value >= 9.95:
        return f"{value:.0f}"
    return f"{value:.1f}".removesuffix(".0") if value >= 0.95 else f"{value:.2g}"
