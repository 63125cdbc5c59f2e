"""The steps of ``observe``: from a log and a question to the effect, or the reason for none.

The steps: read the sample, match its rows, and estimate the effect over the pairs. If covariates
stay unbalanced, the clusters are too few or the model misses a pattern, the result is a refusal.
Otherwise, bound the influence of a hidden factor, and check placebos and periods of time.

The naive effect is the difference of all rows, without matching. ``raw_scale`` holds a quantity for
the outcome. ``answer_scale`` holds it for ln(outcome) if the answer is a ratio.
"""

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
    bound_hidden_bias,
    contributions_of,
    fit_regressions,
    robustness_of,
)
from equipoise_matching.observation.matching import Progress
from equipoise_matching.observation.pattern import find_pattern
from equipoise_matching.observation.question import Log, Question
from equipoise_matching.observation.result import (
    Clustering,
    Contribution,
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
        source=source,
        treatment=question.treatment,
        candidate=versions.candidate,
        baseline=versions.baseline,
        outcome=question.outcome,
        covariates=question.matched_on,
        exact=question.exact,
        method=question.method,
        seed=question.seed,
        unit=question.unit,
    )


def describe_matching(matched_sample: MatchedSample) -> MatchingSummary:
    """Return the method of the match, and the numbers of rows with and without a match."""
    balanced_match = matched_sample.balanced_match
    pair_effect = matched_sample.effects.raw_scale.pair_effect
    return MatchingSummary(
        method=balanced_match.method,
        caliper=balanced_match.caliper,
        caliper_on=balanced_match.caliper_on,
        weights=balanced_match.weights,
        pairs=len(balanced_match.pairs.weights),
        candidate_matched=len(pair_effect.treated_rows),
        candidate_dropped=len(balanced_match.pairs.dropped_index),
        baseline_used=len(pair_effect.control_rows),
        has_regression=pair_effect.regression.columns.shape[1] > 0,
        model=describe_model(matched_sample),
    )


def describe_model(matched_sample: MatchedSample) -> str:
    """Return a sentence: how the columns act in the model, and how many rows were left out."""
    arms = matched_sample.sample.arms
    model, terms = matched_sample.balanced_match.model, matched_sample.effects.answer_scale.terms
    added_terms = terms[model.dictionary.covariate_count :]
    added = [model.dictionary.describe(term) for term in added_terms]
    if not terms:
        sentence = "the model is the mean outcome of each combination of the columns' values"
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
    candidate_rows = int(np.count_nonzero(treated))
    baseline_rows = len(treated) - candidate_rows
    dropped_rows = len(balanced_match.pairs.dropped_index)
    dropped_share = dropped_rows / candidate_rows
    clustering = _count_clusters(matched_sample)
    naive = sample.outcomes.map(
        lambda values: naive_estimate(
            Moments.of(values[treated], None), Moments.of(values[~treated], None)
        )
    )
    share_without_neighbors = matched_sample.effects.answer_scale.share_without_neighbors
    more_warnings = sample_warnings(
        question, clustering, balanced_match.method, dropped_share, share_without_neighbors
    )
    return ObservationResult(
        question=describe_question(question, arms, source),
        rows=RowCounts(sample.rows_read, candidate_rows, baseline_rows, sample.left_out),
        naive=to_effect(naive),
        clustering=clustering,
        matching=describe_matching(matched_sample),
        scope=scope_clause(candidate_rows, candidate_rows - dropped_rows, arms, question.unit),
        dropped_means=balanced_match.dropped_means(),
        balance=balanced_match.column_balance(),
        warnings=(*warnings, *more_warnings),
    )


def _count_clusters(matched_sample: MatchedSample) -> Clustering | None:
    clusters = matched_sample.sample.clusters
    pair_effect = matched_sample.effects.raw_scale.pair_effect
    if clusters is None:
        return None
    rows = (pair_effect.rows, pair_effect.treated_rows, pair_effect.control_rows)
    return Clustering(clusters.by, *map(clusters.count, rows))


def _refusal(matched_sample: MatchedSample, clustering: Clustering | None) -> Refusal | None:
    sample, balanced_match = matched_sample.sample, matched_sample.balanced_match
    if not balanced_match.is_balanced:
        worst = balanced_match.column_balance()[balanced_match.unbalanced_indices()[0]]
        return unbalanced_refusal(worst, balanced_match.missing_rows(), sample.arms)
    if clustering is not None:
        refusal = few_clusters_refusal(clustering, sample.arms)
        if refusal is not None:
            return refusal
    pattern = find_pattern(matched_sample)
    return None if pattern is None else pattern_refusal(pattern)


def _add_answer(
    result: ObservationResult, matched_sample: MatchedSample, progress: Progress
) -> ObservationResult:
    effects = matched_sample.effects
    estimates = effects.map(lambda effect: effect.estimate_by_method)
    matched = to_matched_effect(estimates, effects.raw_scale.interval_method)
    progress("bounding the influence of a hidden factor")
    bias = bound_hidden_bias(matched_sample)
    regressions = fit_regressions(matched_sample)
    parts: tuple[Contribution, ...] = ()
    robustness = None
    if regressions is not None:
        parts = contributions_of(regressions)
        effect = effects.answer_scale.pair_effect.effect
        robustness = robustness_of(regressions.answer_scale, effect)
    progress("checking placebos and periods of time")
    placebos = tuple(placebos_of(matched_sample, progress))
    periods, p_value = periods_of(matched_sample)
    return replace(
        result,
        summary=answer_sentences(result.question, result.naive, matched.effect, parts, bias),
        matched=matched,
        contributions=parts,
        hidden_bias=bias,
        robustness=robustness,
        placebos=placebos,
        periods=periods,
        warnings=(*result.warnings, *answer_warnings(placebos, len(periods), p_value)),
    )
