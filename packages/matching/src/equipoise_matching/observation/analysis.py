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
    scope_clause,
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
    """Estimate the effect of the candidate among comparable rows, or return a reason for none.

    ``source`` is the name of the log. ``left_out`` counts by reason the rows that were left out
    when the log was read. The result begins with ``warnings``. ``progress`` receives a description
    of each step. Raise `UnusableInput` if the question does not fit the log.
    """
    sample = read_sample(log, question, dict(left_out or {}))
    matched_sample = match_sample(sample, progress)
    result = _result_without_answer(matched_sample, source, warnings)
    refusal = _refusal(matched_sample, result.clustering)
    if refusal is None:
        return _add_answer(result, matched_sample, progress)
    summary = refusal_sentences(result.question, result.naive, refusal)
    return replace(result, summary=summary, refusal=refusal)


def describe_question(question: Question, versions: Versions, source: str) -> ObservationQuestion:
    """Return the question for the result, with the chosen covariates."""
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


def describe_matching(matched_sample: MatchedSample) -> MatchingSummary:
    """Return the method of the match, and the numbers of rows with and without a match."""
    balanced_match = matched_sample.balanced_match
    pair_effect = matched_sample.effects.raw_scale.pair_effect
    return MatchingSummary(
        balanced_match.method,
        balanced_match.caliper,
        balanced_match.caliper_on,
        balanced_match.weights,
        len(balanced_match.pairs.weights),
        len(pair_effect.treated_rows),
        len(balanced_match.pairs.dropped_index),
        len(pair_effect.control_rows),
        pair_effect.regression.columns.shape[1] > 0,
        describe_model(matched_sample),
    )


def describe_model(matched_sample: MatchedSample) -> str:
    """Return a sentence: how the columns act in the model, and how many rows are left out."""
    arms = matched_sample.sample.arms
    model, terms = matched_sample.balanced_match.model, matched_sample.effects.answer_scale.terms
    added_terms = terms[model.dictionary.covariate_count :]
    added = [model.dictionary.describe(term) for term in added_terms]
    if not terms:
        sentence = "the columns act through the mean of each of their values"
    elif added:
        sentence = f"the columns act as straight lines and through {listed(added, MAX_NAMED_TERMS)}"
    else:
        sentence = "the columns act as straight lines: no curve, step or product was found"
    left_out = int(np.count_nonzero(model.is_left_out))
    if left_out:
        sentence += (
            f"; {left_out:,} rows of {arms.candidate} are left out because hardly any "
            f"row of {arms.baseline} is like these"
        )
    return sentence


def _result_without_answer(
    matched_sample: MatchedSample, source: str, warnings: tuple[AnalysisWarning, ...]
) -> ObservationResult:
    """Return the result with the fields that both an answer and a refusal have."""
    sample, balanced_match = matched_sample.sample, matched_sample.balanced_match
    question, arms, treated = sample.question, sample.arms, sample.treated
    rows, dropped = int(np.count_nonzero(treated)), len(balanced_match.pairs.dropped_index)
    clustering = _clustering(matched_sample)
    naive = sample.outcomes.map(
        lambda values: naive_estimate(
            Moments.of(values[treated], None), Moments.of(values[~treated], None)
        )
    )
    without_neighbors = matched_sample.effects.answer_scale.without_neighbors
    more_warnings = sample_warnings(
        question, clustering, balanced_match.method, dropped / rows, without_neighbors
    )
    return ObservationResult(
        question=describe_question(question, arms, source),
        rows=RowCounts(sample.rows_read, rows, len(treated) - rows, sample.left_out),
        naive=to_effect(naive),
        clustering=clustering,
        matching=describe_matching(matched_sample),
        scope=scope_clause(rows, rows - dropped, arms, question.unit),
        dropped=balanced_match.dropped_means(),
        balance=balanced_match.column_balance(),
        warnings=(*warnings, *more_warnings),
    )


def _clustering(matched_sample: MatchedSample) -> Clustering | None:
    clusters = matched_sample.sample.clusters
    pair_effect = matched_sample.effects.raw_scale.pair_effect
    if clusters is None:
        return None
    rows = (pair_effect.rows, pair_effect.treated_rows, pair_effect.control_rows)
    return Clustering(clusters.by, *map(clusters.count, rows))


def _refusal(matched_sample: MatchedSample, clustering: Clustering | None) -> Refusal | None:
    sample, balanced_match = matched_sample.sample, matched_sample.balanced_match
    if not balanced_match.is_balanced:
        worst = balanced_match.column_balance()[balanced_match.unbalanced()[0]]
        return unbalanced_refusal(worst, balanced_match.missing_rows(), sample.arms)
    if clustering is not None:
        refusal = few_clusters_refusal(clustering, sample.arms)
        if refusal is not None:
            return refusal
    pattern = remaining_pattern(matched_sample)
    return None if pattern is None else pattern_refusal(pattern)


def _add_answer(
    result: ObservationResult, matched_sample: MatchedSample, progress: Progress
) -> ObservationResult:
    effects = matched_sample.effects
    estimates = effects.map(lambda effect: effect.by_method)
    matched = to_matched_effect(estimates, effects.raw_scale.answer_method)
    progress("bounding the influence of a hidden factor")
    bias = hidden_bias(matched_sample)
    fitted = regressions(matched_sample)
    column_parts = () if fitted is None else contributions(fitted)
    robustness = None
    if fitted is not None:
        robustness = robustness_of(fitted.answer_scale, effects.answer_scale.pair_effect.effect)
    progress("checking placebos and periods of time")
    placebos = tuple(placebos_of(matched_sample, progress))
    periods, p_value = periods_of(matched_sample)
    return replace(
        result,
        summary=answer_sentences(result.question, result.naive, matched.effect, column_parts, bias),
        matched=matched,
        contributions=column_parts,
        hidden_bias=bias,
        robustness=robustness,
        placebos=placebos,
        periods=periods,
        warnings=(*result.warnings, *answer_warnings(placebos, len(periods), p_value)),
    )
