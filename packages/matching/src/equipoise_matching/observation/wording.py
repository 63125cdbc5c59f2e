"""Write the sentences of the result: the answer or the refusal, and the warnings."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from equipoise_matching.effects.signed_rank import MAX_GAMMA
from equipoise_matching.matching.match import MANY_WITHOUT_NEIGHBORS
from equipoise_matching.observation.clusters import MIN_CLUSTERS
from equipoise_matching.observation.covariates import is_mediator
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

_TIME_SUFFIXES = ("_s", "_ms", "_us", "_ns", "seconds", "time", "latency", "duration", "elapsed")
"""Endings of the names of outcomes that are times."""
_MIN_RATIO_AS_FACTOR = 2.0
"""Smallest ratio that is written as "3 times" instead of "200 %"."""
_MAJORITY_SHARE = 0.5
"""Share of the raw difference above which a column explains most of it."""
_MULTIPLICATION_VERBS = {2: "double", 3: "triple", 4: "quadruple"}
"""Verbs for a multiplication, by the factor."""
_INTEGER_TOLERANCE = 0.05
"""Largest distance from a whole number at which a factor is a verb, such as "doubles"."""
MANY_DROPPED = 0.2
"""Share of candidate rows without a match above which a warning counts these rows."""
_TRUSTED_CLUSTERS = 2 * MIN_CLUSTERS
"""Number of clusters of each version below which a warning doubts the interval."""
_MAX_P_VALUE = 0.01
"""Cochran's p-value below which the result warns that the effect changes over time."""


def answer_sentences(
    question: ObservationQuestion,
    naive: Effect,
    matched: Effect,
    contributions: Sequence[Contribution] = (),
    hidden_bias: HiddenBias | None = None,
) -> str:
    """Return the answer: the naive difference, the matched effect, and why these two differ.

    With ``hidden_bias``, a sentence on a hidden factor follows.
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
    """Return the answer of a refusal: the naive difference, and the reason for the refusal."""
    return (
        f"Without matching, {_source(question)} suggests that {effect_clause(naive, question)}. "
        f"No answer can be given: {refusal.summary}."
    )


def _source(question: ObservationQuestion) -> str:
    """Return ``the log`` for rows that are runs, else ``the table``."""
    return "the log" if question.unit in ("rows", "runs") else "the table"


def effect_clause(effect: Effect, question: ObservationQuestion) -> str:
    """Return a clause such as ``version 2.0 is 3 % faster`` or ``job 1 raises cost by 1,500``."""
    version, outcome = f"{question.treatment} {question.candidate}", question.outcome
    ratio = effect.ratio
    if ratio is None:
        verb = "raises" if effect.difference >= 0.0 else "lowers"
        return f"{version} {verb} {outcome} by {amount(abs(effect.difference))}"
    is_time = outcome.lower().endswith(_TIME_SUFFIXES)
    if ratio >= _MIN_RATIO_AS_FACTOR:
        factor = f"{ratio:.3g}"
        return (
            f"{version} is {factor} times as slow"
            if is_time
            else f"{version} multiplies {outcome} by {factor}"
        )
    percent = f"{_percent(ratio)} %"
    if is_time:
        return f"{version} is {percent} {'slower' if ratio >= 1.0 else 'faster'}"
    return f"{version} {'raises' if ratio >= 1.0 else 'lowers'} {outcome} by {percent}"


def matched_clause(effect: Effect, question: ObservationQuestion) -> str:
    """Return the clause with the effect and its interval, or that no effect can be shown."""
    interval = effect.interval
    if interval is None:
        return effect_clause(effect, question)
    low, high = interval
    if not effect.excludes_zero:
        bounds = [_signed(bound, is_ratio=effect.ratio is not None) for bound in interval]
        return f"no effect can be shown ({bounds[0]} to {bounds[1]})"
    if effect.ratio is None:
        smaller, larger = sorted((abs(low), abs(high)))
        bounds = [amount(smaller), amount(larger)]
    elif max(effect.ratio, high) >= _MIN_RATIO_AS_FACTOR:
        bounds = [f"{low:.3g}", f"{high:.3g} times"]
    else:
        smaller, larger = sorted(interval, key=lambda bound: abs(bound - 1.0))
        bounds = [f"{_percent(smaller)} %", f"{_percent(larger)} %"]
    return f"{effect_clause(effect, question)} (95 % interval {bounds[0]} to {bounds[1]})"


def reason_clause(naive: Effect, matched: Effect, contributions: Sequence[Contribution]) -> str:
    """Return the clause with the columns that explain most of the raw difference.

    The raw difference is the difference without matching. The clause is empty if the raw difference
    agrees with the effect, or no column explains why not.
    """
    if naive.ratio is None or matched.ratio is None:
        excess = naive.difference - matched.difference
        agrees = _contains(matched.difference_ci, naive.difference)
        parts = {part.column: part.difference for part in contributions}
    else:
        excess = math.log(naive.ratio / matched.ratio)
        agrees = _contains(matched.ratio_ci, naive.ratio)
        parts = {part.column: part.log_ratio or 0.0 for part in contributions}
    explaining = sorted(
        (name for name, part in parts.items() if part * excess > 0.0),
        key=lambda name: -abs(parts[name]),
    )
    if agrees or not explaining:
        return ""
    if abs(parts[explaining[0]]) >= _MAJORITY_SHARE * abs(excess):
        return f"; most of the raw difference comes from {explaining[0]}"
    return f"; the raw difference comes mainly from {' and '.join(explaining[:2])}"


def hidden_factor_sentence(hidden_bias: HiddenBias, question: ObservationQuestion) -> str:
    """Return the sentence on how strong a hidden factor must be to change the answer."""
    gamma = hidden_bias.gamma_to_change
    if gamma is None:
        return (
            f"With each row used once, {hidden_bias.count} {hidden_bias.kind} show no effect, even "
            "without a hidden factor."
        )
    odds = f"the odds of {question.treatment} {question.candidate}"
    factor = round(gamma)
    if factor in _MULTIPLICATION_VERBS and abs(gamma - factor) < _INTEGER_TOLERANCE:
        change = f"{_MULTIPLICATION_VERBS[factor]} {odds}"
    else:
        more = "more than " if gamma >= MAX_GAMMA else ""
        change = f"multiply {odds} by {more}{gamma:.3g}"
    return (
        f"If the listed columns act as modelled, a hidden factor would have to {change} to change "
        "this."
    )


def scope_clause(rows: int, matched: int, versions: Versions, unit: str = "rows") -> str:
    """Return the clause with the number of candidate rows that the answer covers.

    The answer covers ``matched`` of ``rows`` rows; ``unit`` is a plural noun for the rows.
    """
    if matched == rows:
        return f"the {rows:,} {unit} of {versions.candidate}"
    counterpart = "no comparable row" if unit == "rows" else "nothing comparable among the " + unit
    return (
        f"{matched:,} of the {rows:,} {unit} of {versions.candidate}; the other "
        f"{rows - matched:,} have {counterpart} of {versions.baseline}"
    )


def range_clause(effect: Effect) -> str:
    """Return the 95 % interval of an effect, with a sign before each bound."""
    if effect.interval is None:
        return "interval unknown"
    bounds = (_signed(bound, is_ratio=effect.ratio is not None) for bound in effect.interval)
    return f"95 % interval {' to '.join(bounds)}"


def _signed(bound: float, *, is_ratio: bool) -> str:
    """Return a bound of an interval with its sign, for a ratio in percent."""
    if not is_ratio:
        return f"{'+' if bound >= 0.0 else '-'}{amount(abs(bound))}"
    return f"{'+' if bound >= 1.0 else '-'}{_percent(bound)} %"


def _contains(interval: Bounds, value: float) -> bool:
    return interval is not None and interval[0] <= value <= interval[1]


def _percent(ratio: float) -> str:
    """Return the distance of a ratio from 1 in percent, without a sign, to about two digits."""
    value = 100.0 * abs(ratio - 1.0)
    if value >= 9.95:
        return f"{value:.0f}"
    return f"{value:.1f}".removesuffix(".0") if value >= 0.95 else f"{value:.2g}"


def unbalanced_refusal(
    worst: ColumnBalance, missing: Sequence[MissingRows], versions: Versions
) -> Refusal:
    """Refuse an effect because at least one covariate stays unbalanced after matching.

    ``worst`` is the covariate with the worst balance. ``missing`` has for each unbalanced covariate
    the range with too few baseline rows, the worst covariate first.
    """
    needed = missing[0]
    other_columns = f", and {len(missing) - 1} more columns differ" if len(missing) > 1 else ""
    return Refusal(
        "unbalanced",
        f"{unbalanced_clause(worst)} after the best matching{other_columns}",
        f"collect rows of {versions.baseline} with {needed.column} between {needed.low:.4g} and "
        f"{needed.high:.4g}: the log has {needed.baseline_rows:,}, and "
        f"{needed.candidate_rows:,} of {versions.candidate}",
        tuple(missing),
    )


def unbalanced_clause(column: ColumnBalance) -> str:
    """Return the clause with the remaining difference of a column, and the limit."""
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
    """Return the clause on a pattern in the outcome that the model does not describe."""
    return f"the outcome of comparable rows still depends on {pattern}"


def pattern_refusal(pattern: str) -> Refusal:
    """Refuse an effect because the model of the outcome does not describe a pattern."""
    return Refusal(
        "unmodelled",
        f"{pattern_clause(pattern)}, so the model does not describe how the columns act",
        f"collect more rows, or split {pattern.split()[0]} into categories and name the new column "
        f"with {option('exact')}",
    )


def few_clusters_refusal(clustering: Clustering, versions: Versions) -> Refusal | None:
    """Refuse an effect if there are too few clusters to estimate its error; else ``None``."""
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
        f"collect rows from more clusters, or name a finer column with {option('cluster')}; "
        f"{option('cluster', 'none')} treats all rows as independent",
    )


def sample_warnings(
    question: Question,
    clustering: Clustering | None,
    method: str,
    dropped_share: float,
    share_without_neighbors: float,
) -> Iterator[AnalysisWarning]:
    """Yield the warnings about the columns, the clusters and the match, also for a refusal.

    ``method`` made the match with the best balance. ``share_without_neighbors`` is about the
    matched rows, and about neighbours of the same version.
    """
    mediators = [
        name
        for name in (*question.matched_on, *question.exact)
        if is_mediator(name, question.mediators)
    ]
    if mediators:
        yield AnalysisWarning(
            "mediator",
            f"the version itself changes {', '.join(mediators)}: matching on such columns removes "
            "part of the effect",
            f"leave {', '.join(mediators)} out of {option('covariates')} and {option('exact')}",
        )
    if clustering is None:
        yield AnalysisWarning(
            "rows-independent",
            "the log has no known time, day, host or job: every row counts as independent, and "
            "the interval is too narrow if rows are not",
            f"name the column that dependent rows share with {option('cluster')}",
        )
    elif min(clustering.with_candidate, clustering.with_baseline) < _TRUSTED_CLUSTERS:
        yield AnalysisWarning(
            "few-clusters",
            f"the interval rests on {clustering.with_candidate} clusters with the candidate "
            f"and {clustering.with_baseline} with the baseline ({clustering.by})",
            f"collect more rows: an interval that can be trusted needs {_TRUSTED_CLUSTERS} of each",
        )
    if clustering is None and share_without_neighbors > MANY_WITHOUT_NEIGHBORS:
        yield AnalysisWarning(
            "few-neighbours",
            f"{100.0 * share_without_neighbors:.0f} % of the matched rows have no comparable row "
            "of the same version: one variance is used for all these rows, and the interval is too "
            "narrow if the baseline is noisier",
            f"name fewer columns with {option('exact')}, or collect more rows",
        )
    if dropped_share > MANY_DROPPED:
        yield AnalysisWarning(
            "dropped",
            f"{100.0 * dropped_share:.0f} % of the candidate's rows are not in the answer: too few "
            "rows of the baseline are comparable",
            "collect baseline rows like the rows that are left out, which the report describes",
        )
    if method != question.method:
        yield AnalysisWarning(
            "another-method",
            f"{question.method} left a column unbalanced, so the genetic search was used",
            f"give {option('method', 'genetic')} to start with the search",
        )


def answer_warnings(
    placebos: Sequence[Placebo], period_count: int, p_value: float | None
) -> Iterator[AnalysisWarning]:
    """Yield the warnings about placebos with an effect, and about an effect that changes in time.

    ``p_value`` is Cochran's, for the hypothesis that all periods have the same effect.
    """
    for placebo in placebos:
        if placebo.shows_effect:
            yield AnalysisWarning(
                f"placebo-{placebo.kind}",
                placebo.summary,
                f"find what differs and add its column to {option('covariates')}; until then, do "
                "not trust the answer",
            )
    if p_value is not None and p_value < _MAX_P_VALUE:
        yield AnalysisWarning(
            "effect-changes",
            "the effect changes over time: "
            f"Cochran's p = {p_value:.2g} over {period_count} periods",
            "read the effect of each period instead of the overall effect",
        )
