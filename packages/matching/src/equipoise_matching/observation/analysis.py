"""The steps of ``observe``: from a log and a question to the effect, or the reason for none."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from msgspec.structs import replace

from equipoise_matching.matching.univariate import Moments
from equipoise_matching.observation.checks import periods_of, placebos_of
from equipoise_matching.observation.effects import (
    MatchedSample,
    match_sample,
    naive_estimate,
    to_effect,
    to_matched_effect,
)
from equipoise_matching.observation.hidden_factor import (
    contributions,
    hidden_bias,
    regressions,
    robustness_of,
)
from equipoise_matching.observation.matching import Progress
from equipoise_matching.observation.pattern import remaining_pattern
from equipoise_matching.observation.question import Log, Question
from equipoise_matching.observation.result import (
    Clustering,
    MatchingSummary,
    ObservationQuestion,
    ObservationResult,
    Refusal,
    RowCounts,
)
from equipoise_matching.observation.sample import Versions, read_sample
from equipoise_matching.observation.wording import (
    answer_sentences,
    answer_warnings,
    few_clusters_refusal,
    pattern_refusal,
    refusal_sentences,
    sample_warnings,
    scope_sentence,
    unbalanced_refusal,
)
from equipoise_matching.shared.numbers import listed
from equipoise_matching.warning import AnalysisWarning

MAX_NAMED_TERMS = 8
"""Largest number of terms that the sentence about the model lists."""


def observe(
    log: Log,
    question: Question,
    *,
    source: str,
    left_out: Mapping[str, int] | None = None,
    warnings: tuple[AnalysisWarning, ...] = (),
    progress: Progress = lambda _: None,
) -> ObservationResult:
    """Estimate the effect of the candidate among comparable rows, or give the reason for none.

    ``source`` is the name of the log. ``left_out`` counts by reason the rows that were left out
    when the log was read. The result begins with ``warnings``. ``progress`` receives a description
    of each step. Raise `UnusableInput` if the question does not fit the log; the error names the
    column and the rows.
    """
    sample = read_sample(log, question, dict(left_out or {}))
    match = match_sample(sample, progress)
    result = _describe(match, source, warnings)
    refusal = _refusal(match, result.clustering)
    if refusal is None:
        return _answer(result, match, progress)
    summary = refusal_sentences(result.question, result.naive, refusal)
    return replace(result, summary=summary, refusal=refusal)


def describe_question(question: Question, versions: Versions, source: str) -> ObservationQuestion:
    """Return the question with the chosen covariates."""
    return ObservationQuestion(
        source,
        question.treatment,
        versions.candidate,
        versions.baseline,
        question.outcome,
        question.matched_on,
        question.exact,
        question.method,
        question.seed,
        question.unit,
    )


def describe_matching(match: MatchedSample) -> MatchingSummary:
    """Return the method of the match, and the numbers of rows with and without a match."""
    matched, effect = match.matched, match.effects.plain.pair_effect
    return MatchingSummary(
        matched.method,
        matched.caliper,
        matched.caliper_on,
        matched.weights,
        len(matched.pairs.weights),
        len(effect.treated_rows),
        len(matched.pairs.dropped_index),
        len(effect.control_rows),
        effect.regressed.columns.shape[1] > 0,
        describe_model(match),
    )


def describe_model(match: MatchedSample) -> str:
    """Return a sentence about the model: its curves, and the number of rows left out."""
    model, terms = match.matched.model, match.effects.main.terms
    curved = [model.dictionary.describe(term) for term in terms[model.dictionary.covariate_count :]]
    if not terms:
        sentence = "the columns act through the mean of each of their values"
    elif curved:
        sentence = (
            f"the columns act as straight lines and through {listed(curved, MAX_NAMED_TERMS)}"
        )
    else:
        sentence = "the columns act as straight lines: no curve, step or product was found"
    left_out = int(np.count_nonzero(model.is_left_out))
    if left_out:
        sentence += (
            f"; {left_out:,} rows of {match.sample.arms.candidate} are left out because hardly any "
            f"row of {match.sample.arms.baseline} is like them"
        )
    return sentence


def _describe(
    match: MatchedSample, source: str, warnings: tuple[AnalysisWarning, ...]
) -> ObservationResult:
    """Return the result without an answer."""
    sample, matched = match.sample, match.matched
    question, arms, treated = sample.question, sample.arms, sample.treated
    rows, dropped = int(np.count_nonzero(treated)), len(matched.pairs.dropped_index)
    clustering = _clustering(match)
    naive = sample.outcomes.map(
        lambda values: naive_estimate(
            Moments.of(values[treated], None), Moments.of(values[~treated], None)
        )
    )
    more_warnings = sample_warnings(
        question, clustering, matched.method, dropped / rows, match.effects.main.without_neighbors
    )
    return ObservationResult(
        question=describe_question(question, arms, source),
        rows=RowCounts(sample.rows_read, rows, len(treated) - rows, sample.left_out),
        naive=to_effect(naive),
        clustering=clustering,
        matching=describe_matching(match),
        about=scope_sentence(rows, rows - dropped, arms, question.unit),
        dropped=matched.dropped_means(),
        balance=matched.column_balance(),
        warnings=(*warnings, *more_warnings),
    )


def _clustering(match: MatchedSample) -> Clustering | None:
    """Return the numbers of clusters of the matched rows; ``None`` without clusters."""
    clusters, effect = match.sample.clusters, match.effects.plain.pair_effect
    if clusters is None:
        return None
    rows = (effect.rows, effect.treated_rows, effect.control_rows)
    return Clustering(clusters.by, *map(clusters.count, rows))


def _refusal(match: MatchedSample, clustering: Clustering | None) -> Refusal | None:
    """Return the reason why no effect is reported, if there is one."""
    sample, matched = match.sample, match.matched
    if not matched.is_balanced:
        worst = matched.column_balance()[matched.unbalanced()[0]]
        return unbalanced_refusal(worst, matched.missing_rows(), sample.arms)
    if clustering is not None:
        refusal = few_clusters_refusal(clustering, sample.arms)
        if refusal is not None:
            return refusal
    pattern = remaining_pattern(match)
    return None if pattern is None else pattern_refusal(pattern)


def _answer(
    result: ObservationResult, match: MatchedSample, progress: Progress
) -> ObservationResult:
    """Add the effect and all its checks to the result."""
    effects = match.effects
    matched = to_matched_effect(effects.map(lambda effect: effect.by), effects.plain.main)
    progress("bounding the influence of a hidden factor")
    bias = hidden_bias(match)
    fitted = regressions(match)
    explained = () if fitted is None else contributions(fitted)
    robustness = None
    if fitted is not None:
        robustness = robustness_of(fitted.main, effects.main.pair_effect.effect)
    progress("checking placebos and periods of time")
    placebos = tuple(placebos_of(match, progress))
    periods, p_value = periods_of(match)
    return replace(
        result,
        summary=answer_sentences(result.question, result.naive, matched.effect, explained, bias),
        matched=matched,
        contributions=explained,
        hidden_bias=bias,
        robustness=robustness,
        placebos=placebos,
        periods=periods,
        warnings=(*result.warnings, *answer_warnings(placebos, len(periods), p_value)),
    )
