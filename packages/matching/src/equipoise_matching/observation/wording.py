"""Sentences of the result: the answer, the reason why there is none, and the warnings."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from equipoise_matching.matching.match import MANY_WITHOUT_NEIGHBORS
from equipoise_matching.observation.clusters import MIN_CLUSTERS
from equipoise_matching.observation.covariates import is_mediator
from equipoise_matching.observation.hidden_factor import MAX_GAMMA
from equipoise_matching.observation.matching import MAX_DIFFERENCE, MAX_KS, MAX_TERM_DIFFERENCE
from equipoise_matching.observation.question import Question
from equipoise_matching.observation.result import (
    Bounds,
    Clustering,
    ColumnBalance,
    Contribution,
    Effect,
    HiddenBias,
    MissingRows,
    ObservationQuestion,
    Placebo,
    Refusal,
)
from equipoise_matching.observation.sample import Versions
from equipoise_matching.shared.numbers import amount
from equipoise_matching.shared.spelling import option
from equipoise_matching.warning import AnalysisWarning

_TIMES = ("_s", "_ms", "_us", "_ns", "seconds", "time", "latency", "duration", "elapsed")
_TWICE = 2.0
_MAJORITY_SHARE = 0.5
_FACTORS = {2: "double", 3: "triple", 4: "quadruple"}
_NEARLY_WHOLE = 0.05
MANY_DROPPED = 0.2
"""Share of dropped candidate rows above which a warning is given."""
_ENOUGH_CLUSTERS = 2 * MIN_CLUSTERS
_UNLIKELY = 0.01
"""P-value of Cochran's Q below which a warning is given."""


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
        f"Without matching, {_source(question)} suggests that {effect_clause(naive, question)}.",
        f"Among comparable {question.unit}, {matched_clause(matched, question)}"
        f"{reason_clause(naive, matched, contributions)}.",
    ]
    if hidden_bias is not None and matched.excludes_zero:
        sentences.append(hidden_factor_sentence(hidden_bias, question))
    return " ".join(sentences)


def refusal_sentences(question: ObservationQuestion, naive: Effect, refusal: Refusal) -> str:
    """Return the naive difference, and the reason why there is no answer."""
    return (
        f"Without matching, {_source(question)} suggests that {effect_clause(naive, question)}. "
        f"No answer can be given: {refusal.summary}."
    )


def _source(question: ObservationQuestion) -> str:
    """Return the name of the source: a log of runs, or a table of something else."""
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
    interval = effect.interval
    if interval is None:
        return effect_clause(effect, question)
    low, high = interval
    if not effect.excludes_zero:
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
    """Return the clause on the columns that explain the raw difference; empty without any."""
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
    if abs(parts[explaining[0]]) >= _MAJORITY_SHARE * abs(gap):
        return f"; most of the raw difference comes from {explaining[0]}"
    return f"; the raw difference comes mainly from {' and '.join(explaining[:2])}"


def hidden_factor_sentence(hidden_bias: HiddenBias, question: ObservationQuestion) -> str:
    """Return the sentence on the strength at which a hidden factor changes the answer."""
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
    return (
        f"If the listed columns act as modelled, a hidden factor would have to {change} to change "
        "this."
    )


def scope_sentence(rows: int, matched: int, versions: Versions, unit: str = "rows") -> str:
    """Return the clause on the candidate's rows that the answer covers: ``matched`` of ``rows``.

    ``unit`` is the name of the rows, in the plural.
    """
    if matched == rows:
        return f"the {rows:,} {unit} of {versions.candidate}"
    nothing = "no comparable row" if unit == "rows" else "nothing comparable among the " + unit
    return (
        f"{matched:,} of the {rows:,} {unit} of {versions.candidate}; the other "
        f"{rows - matched:,} have {nothing} of {versions.baseline}"
    )


def range_clause(effect: Effect) -> str:
    """Return the 95 % interval of an effect, each end with its sign."""
    if effect.interval is None:
        return "interval unknown"
    ends = (_signed(end, is_ratio=effect.ratio is not None) for end in effect.interval)
    return f"95 % interval {' to '.join(ends)}"


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


def unbalanced_refusal(
    worst: ColumnBalance, missing: Sequence[MissingRows], versions: Versions
) -> Refusal:
    """Refuse an effect because a covariate stays unbalanced: the ``worst`` one.

    ``missing`` are the rows that the log lacks, by unbalanced covariate, the worst first.
    """
    lacking = missing[0]
    others = f", and {len(missing) - 1} more columns differ" if len(missing) > 1 else ""
    return Refusal(
        "unbalanced",
        f"{unbalanced_clause(worst)} after the best matching{others}",
        f"collect rows of {versions.baseline} with {lacking.column} between {lacking.low:.4g} and "
        f"{lacking.high:.4g}: the log has {lacking.baseline_rows:,}, and "
        f"{lacking.candidate_rows:,} of {versions.candidate}",
        tuple(missing),
    )


def unbalanced_clause(column: ColumnBalance) -> str:
    """Return the clause on the difference that remains in a column, with its limit."""
    difference, term = column.difference_after, column.term_after
    if difference is None or abs(difference) > MAX_DIFFERENCE:
        size = "infinitely many" if difference is None else f"{abs(difference):.2f}"
        return (
            f"{column.column} still differs by {size} standard deviations "
            f"(limit {MAX_DIFFERENCE:g})"
        )
    if column.ks_after is not None and column.ks_after > MAX_KS:
        return (
            f"the distribution of {column.column} still differs by {column.ks_after:.2f} "
            f"(Kolmogorov-Smirnov, limit {MAX_KS:g})"
        )
    return (
        f"{column.term} still differs by {abs(term or 0.0):.2f} standard deviations "
        f"(limit {MAX_TERM_DIFFERENCE:g})"
    )


def pattern_clause(pattern: str) -> str:
    """Return the clause on a dependence of the outcome that the model does not follow."""
    return f"the outcome of comparable rows still depends on {pattern}"


def pattern_refusal(pattern: str) -> Refusal:
    """Refuse an effect because the model of the outcome leaves a pattern in the covariates."""
    return Refusal(
        "unmodelled",
        f"{pattern_clause(pattern)}, so the model does not describe how the columns act",
        f"collect more rows, or split {pattern.split()[0]} into categories and name the new column "
        f"with {option('exact')}",
    )


def few_clusters_refusal(clustering: Clustering, versions: Versions) -> Refusal | None:
    """Refuse an effect whose error would be a guess; ``None`` with enough clusters."""
    counts = {
        versions.candidate: clustering.with_candidate,
        versions.baseline: clustering.with_baseline,
    }
    fewest = min(counts, key=lambda name: counts[name])
    if counts[fewest] >= MIN_CLUSTERS:
        return None
    return Refusal(
        "few-clusters",
        f"the comparable rows of {fewest} come from only {counts[fewest]} clusters "
        f"({clustering.by}); an error needs at least {MIN_CLUSTERS}",
        f"collect rows from more of them, or name a finer column with {option('cluster')}; "
        f"{option('cluster', 'none')} "
        "treats all rows as independent",
    )


def sample_warnings(
    question: Question,
    clustering: Clustering | None,
    method: str,
    dropped: float,
    without_neighbors: float,
) -> Iterator[AnalysisWarning]:
    """Warn of the columns, the clusters and the match, whatever the answer.

    ``method`` is the one that was used, ``dropped`` the share of the candidate's rows without a
    match, ``without_neighbors`` that of the matched rows without a neighbour of the same version.
    """
    mediators = [
        name
        for name in (*question.matched_on, *question.exact)
        if is_mediator(name, question.mediators)
    ]
    if mediators:
        yield AnalysisWarning(
            "mediator",
            f"the version itself changes {', '.join(mediators)}: matching on it removes part of "
            "the effect",
            f"leave it out of {option('covariates')}, unless it was measured before the trial",
        )
    if clustering is None:
        yield AnalysisWarning(
            "rows-independent",
            "the log has no known time, day, host or job: every row counts as independent, and "
            "the interval is too narrow if rows are not",
            f"name the column that dependent rows share with {option('cluster')}",
        )
    elif min(clustering.with_candidate, clustering.with_baseline) < _ENOUGH_CLUSTERS:
        yield AnalysisWarning(
            "few-clusters",
            f"the interval rests on {clustering.with_candidate} clusters with the candidate "
            f"and {clustering.with_baseline} with the baseline ({clustering.by})",
            f"collect more rows: an interval that can be trusted needs {_ENOUGH_CLUSTERS} of each",
        )
    if clustering is None and without_neighbors > MANY_WITHOUT_NEIGHBORS:
        yield AnalysisWarning(
            "few-neighbours",
            f"{100.0 * without_neighbors:.0f} % of the matched rows have no comparable row of the "
            "same version: they share one variance, and the interval is too narrow where the "
            "baseline is noisier",
            f"name fewer columns with {option('exact')}, or collect more rows",
        )
    if dropped > MANY_DROPPED:
        yield AnalysisWarning(
            "dropped",
            f"{100.0 * dropped:.0f} % of the candidate's rows have no comparable row, or too few",
            "read which rows the answer is about; collect baseline rows like the dropped ones",
        )
    if method != question.method:
        yield AnalysisWarning(
            "another-method",
            f"{question.method} left a column unbalanced, so the genetic search was used",
            f"{option('method', 'genetic')} starts with the search",
        )


def answer_warnings(
    placebos: Sequence[Placebo], periods: int, chance_of_equality: float | None
) -> Iterator[AnalysisWarning]:
    """Warn of placebos that show an effect, and of an effect that changes.

    ``chance_of_equality`` is the p-value for one common effect in all periods.
    """
    for placebo in placebos:
        if placebo.shows_effect:
            yield AnalysisWarning(
                f"placebo-{placebo.kind}",
                placebo.summary,
                "find what differs and make it a covariate; do not trust the answer before",
            )
    if chance_of_equality is not None and chance_of_equality < _UNLIKELY:
        yield AnalysisWarning(
            "effect-changes",
            f"the effect changes in time: Cochran's p = {chance_of_equality:.2g} over {periods} "
            "periods",
            "read the effect of each period, not their mean; find out what changed between them",
        )
