"""Sentences of the result: the answer, the rows that it is about, and what could change it."""

from __future__ import annotations

import math
from collections.abc import Sequence

from equipoise.model.observation_result import (
    Bounds,
    Contribution,
    Effect,
    HiddenBias,
    ObservationQuestion,
    Refusal,
)
from equipoise.model.quantities import amount
from equipoise.observation.rosenbaum import MAX_GAMMA

_TIMES = ("_s", "_ms", "_us", "_ns", "seconds", "time", "latency", "duration", "elapsed")
_TWICE = 2.0
_MOST = 0.5
_FACTORS = {2: "double", 3: "triple", 4: "quadruple"}
_NEARLY_WHOLE = 0.05


def answer_sentences(
    question: ObservationQuestion,
    naive: Effect,
    matched: Effect,
    contributions: Sequence[Contribution] = (),
    hidden_bias: HiddenBias | None = None,
) -> str:
    """Return the naive difference, the matched effect, the reason why they differ, and its limit.

    Without ``hidden_bias`` the strength of a hidden factor is left out.
    """
    sentences = [
        f"Without matching, {_table(question)} suggests that {effect_clause(naive, question)}.",
        f"Among comparable {question.unit}, {matched_clause(matched, question)}"
        f"{reason_clause(naive, matched, contributions)}.",
    ]
    if hidden_bias is not None and excludes_zero(matched):
        sentences.append(hidden_factor_sentence(hidden_bias, question))
    return " ".join(sentences)


def refusal_sentences(question: ObservationQuestion, naive: Effect, refusal: Refusal) -> str:
    """Return the naive difference, and the reason why it is no answer."""
    return (
        f"Without matching, {_table(question)} suggests that {effect_clause(naive, question)}. "
        f"No answer can be given: {refusal.summary}."
    )


def _table(question: ObservationQuestion) -> str:
    """Return what the rows are of: a log of runs, or a table of something else."""
    return "the log" if question.unit in ("rows", "runs") else "the table"


def effect_clause(effect: Effect, question: ObservationQuestion) -> str:
    """Return ``version 2.0 is 3 % faster``, or ``version 2.0 raises cost by 1,500``."""
    version, outcome = f"{question.treatment} {question.candidate}", question.outcome
    ratio = effect.ratio
    if ratio is None:
        verb = "raises" if effect.difference >= 0.0 else "lowers"
        return f"{version} {verb} {outcome} by {amount(abs(effect.difference))}"
    is_time = outcome.lower().endswith(_TIMES)
    if ratio >= _TWICE:
        times = f"{ratio:.3g}"
        return (
            f"{version} is {times} times as slow"
            if is_time
            else f"{version} multiplies {outcome} by {times}"
        )
    percent = f"{_percent(ratio)} %"
    if is_time:
        return f"{version} is {percent} {'slower' if ratio >= 1.0 else 'faster'}"
    return f"{version} {'raises' if ratio >= 1.0 else 'lowers'} {outcome} by {percent}"


def matched_clause(effect: Effect, question: ObservationQuestion) -> str:
    """Return the effect with its interval, or the range in which it lies if none is shown."""
    interval = effect.difference_ci if effect.ratio is None else effect.ratio_ci
    if interval is None:
        return effect_clause(effect, question)
    low, high = interval
    if not excludes_zero(effect):
        ends = [_signed(end, is_ratio=effect.ratio is not None) for end in interval]
        return f"no effect can be shown ({ends[0]} to {ends[1]})"
    if effect.ratio is None:
        near, far = sorted((abs(low), abs(high)))
        ends = [amount(near), amount(far)]
    elif max(effect.ratio, high) >= _TWICE:
        ends = [f"{low:.3g}", f"{high:.3g} times"]
    else:
        near, far = sorted(interval, key=lambda end: abs(end - 1.0))
        ends = [f"{_percent(near)} %", f"{_percent(far)} %"]
    return f"{effect_clause(effect, question)} (95 % interval {ends[0]} to {ends[1]})"


def reason_clause(naive: Effect, matched: Effect, contributions: Sequence[Contribution]) -> str:
    """Return what explains the raw difference; empty if it agrees, or nothing explains it."""
    if naive.ratio is None or matched.ratio is None:
        gap = naive.difference - matched.difference
        agrees = _contains(matched.difference_ci, naive.difference)
        parts = {part.column: part.difference for part in contributions}
    else:
        gap = math.log(naive.ratio / matched.ratio)
        agrees = _contains(matched.ratio_ci, naive.ratio)
        parts = {part.column: part.log_ratio or 0.0 for part in contributions}
    explaining = sorted(
        (name for name, part in parts.items() if part * gap > 0.0),
        key=lambda name: -abs(parts[name]),
    )
    if agrees or not explaining:
        return ""
    if abs(parts[explaining[0]]) >= _MOST * abs(gap):
        return f"; most of the raw difference comes from {explaining[0]}"
    return f"; the raw difference comes mainly from {' and '.join(explaining[:2])}"


def hidden_factor_sentence(hidden_bias: HiddenBias, question: ObservationQuestion) -> str:
    """Return how strong a hidden factor must be to change the answer."""
    gamma = hidden_bias.gamma_to_change
    if gamma is None:
        return (
            f"With each row used once, {hidden_bias.number} {hidden_bias.of} show no effect, even "
            "without a hidden factor."
        )
    odds = f"the odds of {question.treatment} {question.candidate}"
    whole = round(gamma)
    if whole in _FACTORS and abs(gamma - whole) < _NEARLY_WHOLE:
        change = f"{_FACTORS[whole]} {odds}"
    else:
        more = "more than " if gamma >= MAX_GAMMA else ""
        change = f"multiply {odds} by {more}{gamma:.3g}"
    return f"A hidden factor would have to {change} to change this."


def scope_sentence(
    rows: int, matched: int, candidate: str, baseline: str, unit: str = "rows"
) -> str:
    """Return which of the candidate's ``rows`` the answer is about: the ``matched`` ones.

    ``unit`` is what a row is, in the plural.
    """
    if matched == rows:
        return f"the {rows:,} {unit} of {candidate}"
    nothing = "no comparable row" if unit == "rows" else "nothing comparable among the " + unit
    return (
        f"{matched:,} of the {rows:,} {unit} of {candidate}; the other {rows - matched:,} have "
        f"{nothing} of {baseline}"
    )


def range_clause(effect: Effect) -> str:
    """Return the 95 % interval of an effect, each end with its sign."""
    is_ratio = effect.ratio is not None
    interval = effect.ratio_ci if is_ratio else effect.difference_ci
    if interval is None:
        return "interval unknown"
    return f"95 % interval {' to '.join(_signed(end, is_ratio=is_ratio) for end in interval)}"


def excludes_zero(effect: Effect) -> bool:
    """Return whether the interval excludes "no difference"."""
    if effect.ratio is None:
        return effect.difference_ci is not None and not _contains(effect.difference_ci, 0.0)
    return effect.ratio_ci is not None and not _contains(effect.ratio_ci, 1.0)


def _signed(end: float, *, is_ratio: bool) -> str:
    if not is_ratio:
        return f"{'+' if end >= 0.0 else '-'}{amount(abs(end))}"
    return f"{'+' if end >= 1.0 else '-'}{_percent(end)} %"


def _contains(interval: Bounds, value: float) -> bool:
    return interval is not None and interval[0] <= value <= interval[1]


def _percent(ratio: float) -> str:
    value = 100.0 * abs(ratio - 1.0)
    if value >= 9.95:
        return f"{value:.0f}"
    return f"{value:.1f}".removesuffix(".0") if value >= 0.95 else f"{value:.2g}"
