"""The steps of ``observe --strata``: match each stratum alone, then combine the effects.

A stratum has the rows with one value of the strata column. Only one stratum is in memory at a time.
The combined effect is τ = Σ_s w_s τ_s. The weight w_s is the share of stratum s in the candidate
rows with a match. Strata have no row in common, so the variance by Abadie and Imbens is the sum of
w_s² times the variance of τ_s. A cluster g may have rows in several strata. Without the rows of g,
τ changes by Δ_g. With G clusters in all strata, the variance by clusters is (G − 1)/G Σ_g Δ_g².

A `StratumAnswer` is the effect of one stratum. A `MatchedStratum` also has the row counts, and
exists without an answer. The `StratumResult` of the document repeats its main numbers.
"""

from __future__ import annotations

import hashlib
import math
import operator
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Generic, TypeVar

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from equipoise_matching.matching.frames import distinct_texts, take_rows
from equipoise_matching.matching.units import Indices, Truths
from equipoise_matching.matching.univariate import Moments
from equipoise_matching.observation.analysis import describe_matching, describe_question
from equipoise_matching.observation.clusters import MIN_CLUSTERS
from equipoise_matching.observation.effects import (
    ABADIE_IMBENS,
    BY_CLUSTERS,
    EffectEstimate,
    Estimate,
    changes_without_each_cluster,
    cluster_error,
    match_sample,
    naive_estimate,
    t_quantile,
    to_effect,
    to_matched_effect,
    with_error,
)
from equipoise_matching.observation.hidden_factor import bound_hidden_bias
from equipoise_matching.observation.matching import Progress, imbalance_of
from equipoise_matching.observation.pattern import find_pattern
from equipoise_matching.observation.question import Log, Question, check_question
from equipoise_matching.observation.result import (
    Clustering,
    ColumnBalance,
    DroppedMean,
    HiddenBias,
    MatchedEffect,
    MatchingSummary,
    ObservationResult,
    Refusal,
    Robustness,
    RowCounts,
    Strata,
    StratumResult,
)
from equipoise_matching.observation.sample import (
    Sample,
    Scales,
    Versions,
    read_arms,
    read_outcomes,
    read_sample,
)
from equipoise_matching.observation.wording import (
    answer_sentences,
    few_clusters_refusal,
    pattern_clause,
    refusal_sentences,
    sample_warnings,
    scope_clause,
    unbalanced_clause,
)
from equipoise_matching.shared.errors import UnusableInput
from equipoise_matching.shared.numbers import listed
from equipoise_matching.shared.spelling import option

MIN_SHARE = 0.5
"""Smallest share of candidate rows with a match for which the analysis gives an answer."""
_MAX_LISTED_STRATA = 3
"""Largest number of strata without an answer that a message names."""

Rows = TypeVar("Rows")
"""Type of the place of a stratum's rows in a `StratifiedLog`, such as row numbers."""
ClusterLabel = tuple[str, object]
"""Column and value of a cluster. A cluster has the same label in every stratum."""


class StratumEffect(Struct, frozen=True):
    """The effect in one stratum on one scale, with the error of Abadie and Imbens.

    ``effect_changes`` has for each cluster the change of the effect without the cluster's rows.
    """

    effect: float
    error: float | None
    effect_changes: dict[ClusterLabel, float]


class StratumAnswer(Struct, frozen=True):
    """The answer of one stratum, with the clusters of the matched rows of each version.

    ``clusters_by`` is the column that forms the clusters; ``None`` without clusters.
    ``share_without_neighbors`` counts the matched rows without a neighbour of the same version.
    """

    effects: Scales[StratumEffect]
    share_without_neighbors: float
    matching: MatchingSummary
    balance: tuple[ColumnBalance, ...]
    dropped_means: tuple[DroppedMean, ...]
    hidden_bias: HiddenBias
    clusters_by: str | None
    candidate_clusters: frozenset[ClusterLabel]
    baseline_clusters: frozenset[ClusterLabel]

    @property
    def weight(self) -> int:
        """Number of candidate rows with a match."""
        return self.matching.candidate_matched

    @property
    def worst_column(self) -> ColumnBalance:
        """The column that differs most after matching."""
        return max(self.balance, key=imbalance_of)


class MatchedStratum(Struct, frozen=True):
    """A stratum with its answer, or with the reason why it has no answer.

    The moments are those of the outcome over all rows of a version; ``None`` without rows.
    """

    name: str
    rows: int
    candidate_rows: int
    baseline_rows: int
    candidate_moments: Scales[Moments] | None
    baseline_moments: Scales[Moments] | None
    answer: StratumAnswer | None
    reason: str | None


class StratifiedLog(Struct, Generic[Rows], frozen=True):
    """A log that is read one stratum at a time.

    The values of ``column`` are the names of the strata. ``rows`` says for each name where the
    stratum's rows are, and ``read`` returns their columns. ``versions`` has only the treatment
    column, with each value once. ``number_of_rows`` is the size of the log, if known.
    """

    column: str
    rows: Mapping[str, Rows]
    versions: Log
    read: Callable[[Rows], Log]
    number_of_rows: int | None = None


MatchStrata = Callable[[StratifiedLog[Rows], Question, Versions, Progress], list[MatchedStratum]]
"""Function that matches every stratum of a log, and returns the strata in order."""


def match_strata_in_turn(
    log: StratifiedLog[Rows], question: Question, versions: Versions, progress: Progress
) -> list[MatchedStratum]:
    """Match one stratum after the other in this process."""
    return [
        match_stratum(name, log.read(rows), question, versions, _stratum_progress(name, progress))
        for name, rows in log.rows.items()
    ]


def observe_strata(
    log: StratifiedLog[Rows],
    question: Question,
    *,
    source: str,
    match_strata: MatchStrata[Rows] = match_strata_in_turn,
    progress: Progress = lambda _: None,
) -> ObservationResult:
    """Estimate the effect over the strata with an answer, or return the reason for a refusal.

    The steps: read the two versions, match every stratum, check that enough rows have an answer,
    and combine the effects, balances and clusters of the strata. Raise `UnusableInput` if the
    question does not fit the log, or no stratum has an answer.
    """
    check_strata(log.column, question)
    if question.covariates is None:
        question = replace(question, covariates=())
    arms = read_arms(log.versions, question)
    versions = Versions(arms.candidate, arms.baseline)
    strata = match_strata(log, question, versions, progress)
    rows_read = sum(stratum.rows for stratum in strata)
    if log.number_of_rows not in (None, rows_read):
        raise UnusableInput(
            f"{option('strata', log.column)}: the strata have {rows_read:,} rows together, but "
            f"the file has {log.number_of_rows:,}: the statistics in the file are wrong",
            hint="write the file again with the program that made it",
        )
    answer_of = {stratum.name: stratum.answer for stratum in strata if stratum.answer is not None}
    if not answer_of:
        raise UnusableInput(
            f"{option('strata', log.column)}: no stratum has an answer: {_list_reasons(strata)}",
            hint="name another column, one with rows of both versions at each of its values",
        )
    answers = list(answer_of.values())
    result_question = describe_question(question, versions, source)
    naive = to_effect(_naive_estimates(strata))
    clustering = _count_clusters(answers)
    matching = _summarize_matching(answers, question.method)
    candidate_rows = sum(stratum.candidate_rows for stratum in strata)
    baseline_rows = sum(stratum.baseline_rows for stratum in strata)
    other_rows = rows_read - candidate_rows - baseline_rows
    left_out = {"another version": other_rows} if other_rows else {}
    matched_rows = sum(answer.weight for answer in answers)
    dropped_share = 1.0 - matched_rows / candidate_rows
    share_without_neighbors = _average(
        (answer.weight, answer.share_without_neighbors) for answer in answers
    )
    refusal = _few_rows_refusal(log.column, strata, matched_rows, candidate_rows)
    if refusal is None and clustering is not None:
        refusal = few_clusters_refusal(clustering, versions)
    matched, bias, robustness = None, None, None
    if refusal is None:
        matched, bias = _matched_effect(answers, clustering), _weakest_hidden_bias(answer_of)
        robustness = Robustness(None, None, None, "unknown: it is not computed over strata")
        shown_bias = None if bias.gamma_to_change is None else bias
        summary = answer_sentences(result_question, naive, matched.effect, hidden_bias=shown_bias)
    else:
        summary = refusal_sentences(result_question, naive, refusal)
    return ObservationResult(
        summary=summary,
        question=result_question,
        rows=RowCounts(rows_read, candidate_rows, baseline_rows, left_out),
        naive=naive,
        refusal=refusal,
        matched=matched,
        clustering=clustering,
        matching=matching,
        scope=_strata_scope_clause(strata, matched_rows, candidate_rows, versions, question.unit),
        dropped_means=_average_dropped_means(answers),
        balance=_average_balance(answers),
        hidden_bias=bias,
        robustness=robustness,
        strata=Strata(
            log.column,
            tuple(_to_stratum_result(stratum) for stratum in strata),
            max(answer_of, key=lambda name: imbalance_of(answer_of[name].worst_column)),
            _count_shared_clusters(answers),
        ),
        warnings=tuple(
            sample_warnings(
                question, clustering, matching.method, dropped_share, share_without_neighbors or 0.0
            )
        ),
    )


def check_strata(column: str, question: Question) -> None:
    """Raise `UnusableInput` if the question would have another meaning in each stratum."""
    if question.covariates is None and not question.exact:
        raise UnusableInput(
            f"{option('strata')}: the default covariates could differ between the strata",
            hint=f"name the columns to match on with {option('covariates')} or {option('exact')}",
        )
    if question.cluster is None or len(question.cluster) > 1:
        raise UnusableInput(
            f"{option('strata')}: the default clusters could differ between the strata",
            hint=f"name one column with {option('cluster')}, or give {option('cluster', 'none')}",
        )
    if question.placebo_outcomes or question.placebo_period is not None:
        placebo = option("placebo_outcomes" if question.placebo_outcomes else "placebo_period")
        raise UnusableInput(
            f"{option('strata')}: {placebo} cannot be combined over strata",
            hint=f"remove {placebo}; test it on a table with the rows of one stratum, without "
            f"{option('strata')}",
        )
    if column in (question.treatment, question.outcome):
        raise UnusableInput(
            f"{option('strata')}: {column} is the treatment or outcome, so it cannot form strata",
            hint=f"name another column with {option('strata')}",
        )


def match_stratum(
    name: str, log: Log, question: Question, versions: Versions, progress: Progress = lambda _: None
) -> MatchedStratum:
    """Match the rows of one stratum, and check the match. An error names the stratum."""
    check_question(log, question)
    try:
        version_names, version_index = distinct_texts(log[question.treatment], question.treatment)
        row_versions = np.array(version_names)[version_index]
        is_candidate = row_versions == versions.candidate
        is_baseline = row_versions == versions.baseline
        moments = _moments(log, question, is_candidate, is_baseline)
        answer: StratumAnswer | str
        if not is_candidate.any() or not is_baseline.any():
            answer = f"no row of {versions.baseline if is_candidate.any() else versions.candidate}"
        else:
            stratum_question = replace(question, seed=stratum_seed(question.seed, name))
            answer = _answer_or_reason(name, read_sample(log, stratum_question, {}), progress)
    except UnusableInput as error:
        raise UnusableInput(f"stratum {name}: {error.what}", hint=error.hint) from error
    return MatchedStratum(
        name,
        len(version_index),
        int(np.count_nonzero(is_candidate)),
        int(np.count_nonzero(is_baseline)),
        *moments,
        answer=None if isinstance(answer, str) else answer,
        reason=answer if isinstance(answer, str) else None,
    )


def stratum_seed(seed: int, name: str) -> int:
    """Return the seed of a stratum, which does not depend on the other strata."""
    return int.from_bytes(hashlib.sha256(f"{seed}/{name}".encode()).digest()[:4])


def _moments(
    log: Log, question: Question, is_candidate: Truths, is_baseline: Truths
) -> tuple[Scales[Moments] | None, Scales[Moments] | None]:
    """Return the moments of the outcome of each version; ``None`` without rows."""
    taking_part = is_candidate | is_baseline
    if not taking_part.any():
        return None, None
    scales = read_outcomes(take_rows(log, taking_part), question)

    def moments_of(is_version: Truths) -> Scales[Moments] | None:
        rows = is_version[taking_part]
        return scales.map(lambda values: Moments.of(values[rows], None)) if rows.any() else None

    return moments_of(is_candidate), moments_of(is_baseline)


def _answer_or_reason(name: str, sample: Sample, progress: Progress) -> StratumAnswer | str:
    """Return the answer of a stratum, or the reason why it has no answer."""
    try:
        matched_sample = match_sample(sample, progress)
    except UnusableInput as error:
        return error.what
    balanced_match, clusters = matched_sample.balanced_match, sample.clusters
    pair_effect = matched_sample.effects.raw_scale.pair_effect
    if not balanced_match.is_balanced:
        worst_index = balanced_match.unbalanced_indices()[0]
        return unbalanced_clause(balanced_match.column_balance()[worst_index])
    if (pattern := find_pattern(matched_sample)) is not None:
        return pattern_clause(pattern)
    labels_by_version = [
        frozenset(_cluster_labels(name, sample, rows))
        for rows in (pair_effect.treated_rows, pair_effect.control_rows)
    ]
    versions = (sample.arms.candidate, sample.arms.baseline)
    for labels, version in zip(labels_by_version, versions, strict=True):
        if clusters is not None and len(labels) < 2:
            return f"its comparable rows of {version} are in one cluster ({clusters.by})"
    progress("bounding the influence of a hidden factor")
    return StratumAnswer(
        matched_sample.effects.map(partial(_stratum_effect, name, sample)),
        matched_sample.effects.answer_scale.share_without_neighbors,
        describe_matching(matched_sample),
        balanced_match.column_balance(),
        balanced_match.dropped_means(),
        bound_hidden_bias(matched_sample),
        None if clusters is None else clusters.by,
        *labels_by_version,
    )


def _stratum_effect(name: str, sample: Sample, estimate: EffectEstimate) -> StratumEffect:
    pair_effect, clusters = estimate.pair_effect, sample.clusters
    error = estimate.estimate_by_method[ABADIE_IMBENS].error
    if clusters is None:
        return StratumEffect(pair_effect.effect, error, {})
    changes = changes_without_each_cluster(pair_effect, clusters.code)
    labels = _cluster_labels(name, sample, pair_effect.rows)
    effect_changes = dict(zip(labels, changes.tolist(), strict=True))
    return StratumEffect(pair_effect.effect, error, effect_changes)


def _cluster_labels(name: str, sample: Sample, rows: Indices) -> list[ClusterLabel]:
    """Return the labels of the clusters of these rows, in the order of the clusters' codes.

    A window of time belongs to one stratum, so its label contains the name of the stratum.
    """
    clusters = sample.clusters
    if clusters is None:
        return []
    codes, first_rows = np.unique(clusters.code[rows], return_index=True)
    if clusters.by in sample.log:
        values = sample.log[clusters.by][rows[first_rows]]
        return [(clusters.by, value) for value in values.tolist()]
    return [(f"{name}: {clusters.by}", code) for code in codes.tolist()]


def _stratum_progress(name: str, progress: Progress) -> Progress:
    return lambda step: progress(f"{name}: {step}")


def _naive_estimates(strata: Sequence[MatchedStratum]) -> Scales[Estimate]:
    """Compare all rows of both versions, without regard to strata."""
    candidate = [
        stratum.candidate_moments for stratum in strata if stratum.candidate_moments is not None
    ]
    baseline = [
        stratum.baseline_moments for stratum in strata if stratum.baseline_moments is not None
    ]
    arms = [Scales.combine(parts, _pool_moments) for parts in (candidate, baseline)]
    return Scales.combine(arms, lambda moments: naive_estimate(*moments))


def _pool_moments(parts: Sequence[Moments]) -> Moments:
    size = sum(part.size for part in parts)
    mean = sum(part.size * part.mean for part in parts) / size
    squares = sum(
        part.size * (part.population_variance + (part.mean - mean) ** 2) for part in parts
    )
    return Moments(size, mean, squares / size)


def _count_clusters(answers: Sequence[StratumAnswer]) -> Clustering | None:
    column = answers[0].clusters_by
    if column is None:
        return None
    candidate = frozenset().union(*(answer.candidate_clusters for answer in answers))
    baseline = frozenset().union(*(answer.baseline_clusters for answer in answers))
    return Clustering(column, len(candidate | baseline), len(candidate), len(baseline))


def _count_shared_clusters(answers: Sequence[StratumAnswer]) -> int | None:
    if answers[0].clusters_by is None:
        return None
    stratum_counts = Counter(
        label
        for answer in answers
        for label in answer.candidate_clusters | answer.baseline_clusters
    )
    return sum(number > 1 for number in stratum_counts.values())


def _matched_effect(
    answers: Sequence[StratumAnswer], clustering: Clustering | None
) -> MatchedEffect:
    weights = [answer.weight / sum(answer.weight for answer in answers) for answer in answers]
    estimates = Scales.combine(
        [answer.effects for answer in answers],
        lambda effects: _weighted_estimates(effects, weights, clustering),
    )
    return to_matched_effect(estimates, ABADIE_IMBENS if clustering is None else BY_CLUSTERS)


def _weighted_estimates(
    strata: Sequence[StratumEffect], weights: Sequence[float], clustering: Clustering | None
) -> dict[str, Estimate]:
    """Return the weighted effect with its error by each method, by the name of the method."""
    effect = sum(weight * stratum.effect for weight, stratum in zip(weights, strata, strict=True))
    errors = [stratum.error for stratum in strata if stratum.error is not None]
    error = math.hypot(*map(operator.mul, weights, errors)) if len(errors) == len(strata) else None
    estimates = {ABADIE_IMBENS: with_error(effect, error, t_quantile(math.inf))}
    if clustering is None:
        return estimates
    estimates[BY_CLUSTERS] = Estimate(effect)
    fewest_clusters = min(clustering.with_candidate, clustering.with_baseline)
    if fewest_clusters >= MIN_CLUSTERS:
        changes = defaultdict[ClusterLabel, float](float)
        for weight, stratum in zip(weights, strata, strict=True):
            for label, change in stratum.effect_changes.items():
                changes[label] += weight * change
        standard_error = cluster_error(np.array([*changes.values()]))
        estimates[BY_CLUSTERS] = with_error(effect, standard_error, t_quantile(fewest_clusters - 1))
    return estimates


def _summarize_matching(answers: Sequence[StratumAnswer], method: str) -> MatchingSummary:
    """Summarise the matches of all strata, without the weights, which differ by stratum.

    The summary names the requested ``method``, or another method that a stratum needed.
    """
    summaries = [answer.matching for answer in answers]
    if len(summaries) == 1:
        return summaries[0]
    calipers = [summary.caliper for summary in summaries if summary.caliper is not None]
    return MatchingSummary(
        next((summary.method for summary in summaries if summary.method != method), method),
        min(calipers, default=None),
        tuple(dict.fromkeys(name for summary in summaries for name in summary.caliper_on)),
        {},
        sum(summary.pairs for summary in summaries),
        sum(summary.candidate_matched for summary in summaries),
        sum(summary.candidate_dropped for summary in summaries),
        sum(summary.baseline_used for summary in summaries),
        any(summary.has_regression for summary in summaries),
    )


def _average_balance(answers: Sequence[StratumAnswer]) -> tuple[ColumnBalance, ...]:
    """Return the balance of every column, averaged over the strata that have the column."""
    columns = defaultdict[str, list[tuple[int, ColumnBalance]]](list)
    for answer in answers:
        for column in answer.balance:
            columns[column.column].append((answer.weight, column))
    if len(answers) == 1:
        return answers[0].balance
    fields_by_column: dict[str, dict[str, Any]] = {
        name: {
            field: _average((weight, getattr(column, field)) for weight, column in balances)
            for field in ColumnBalance.__struct_fields__
            if field not in ("column", "term", "term_after")
        }
        for name, balances in columns.items()
    }
    # The strata have different terms, so the worst term represents all of them.
    for name, balances in columns.items():
        _, worst = max(balances, key=lambda balance: abs(balance[1].term_after or 0.0))
        fields_by_column[name] |= {"term": worst.term, "term_after": worst.term_after}
    return tuple(ColumnBalance(name, **fields) for name, fields in fields_by_column.items())


def _average_dropped_means(answers: Sequence[StratumAnswer]) -> tuple[DroppedMean, ...]:
    matched = defaultdict[str, list[tuple[int, float]]](list)
    dropped = defaultdict[str, list[tuple[int, float]]](list)
    for answer in answers:
        dropped_rows = answer.matching.candidate_dropped
        for means in answer.dropped_means:
            matched[means.column].append((answer.weight, means.matched_mean))
            dropped[means.column].append((dropped_rows, means.dropped_mean))
    return tuple(
        DroppedMean(name, _average(matched[name]) or 0.0, _average(dropped[name]) or 0.0)
        for name in matched
    )


def _average(weighted_values: Iterable[tuple[int, float | None]]) -> float | None:
    known = [(weight, value) for weight, value in weighted_values if value is not None]
    total = sum(weight for weight, _ in known)
    return sum(weight * value for weight, value in known) / total if total else None


def _weakest_hidden_bias(answers: dict[str, StratumAnswer]) -> HiddenBias:
    """Return the bounds of the stratum whose answer the weakest hidden factor changes.

    If all effects have the same sign, no weaker factor can change the combined effect.
    """
    name = min(answers, key=lambda name: answers[name].hidden_bias.gamma_to_change or 0.0)
    weakest_bias = answers[name].hidden_bias
    if len({answer.effects.answer_scale.effect > 0.0 for answer in answers.values()}) > 1:
        return replace(
            weakest_bias,
            gamma_to_change=None,
            summary="unknown: the effects of the strata have different signs",
        )
    return replace(weakest_bias, summary=f"in {name}, the weakest stratum: {weakest_bias.summary}")


def _few_rows_refusal(
    column: str, strata: Sequence[MatchedStratum], matched_rows: int, candidate_rows: int
) -> Refusal | None:
    if matched_rows >= MIN_SHARE * candidate_rows:
        return None
    reasons = _list_reasons(strata)
    return Refusal(
        "few-strata",
        f"only {matched_rows:,} of the candidate's {candidate_rows:,} rows have a comparable row "
        f"within {column}" + (f": {reasons}" if reasons else ""),
        f"collect baseline rows for these strata, or name a column other than {column}",
    )


def _strata_scope_clause(
    strata: Sequence[MatchedStratum], matched: int, candidates: int, versions: Versions, unit: str
) -> str:
    """Return the clause on the candidate rows in the answer, and why other rows are not."""
    reasons = "; ".join(
        f"{stratum.candidate_rows:,} of {stratum.name}: {stratum.reason}"
        for stratum in strata
        if stratum.reason is not None and stratum.candidate_rows
    )
    scope = scope_clause(candidates, matched, versions, unit)
    if matched == candidates:
        return scope
    return f"{scope} in their stratum" + (f" ({reasons})" if reasons else "")


def _to_stratum_result(stratum: MatchedStratum) -> StratumResult:
    counts = (stratum.name, stratum.candidate_rows, stratum.baseline_rows, stratum.reason)
    answer = stratum.answer
    if answer is None:
        return StratumResult(*counts, *[None] * 8)
    log_effect = answer.effects.log_scale
    return StratumResult(
        *counts,
        matched_rows=answer.weight,
        ratio=None if log_effect is None else math.exp(log_effect.effect),
        difference=answer.effects.raw_scale.effect,
        method=answer.matching.method,
        caliper=answer.matching.caliper,
        worst_column=answer.worst_column.column,
        worst_difference=answer.worst_column.difference_after,
        gamma_to_change=answer.hidden_bias.gamma_to_change,
    )


def _list_reasons(strata: Sequence[MatchedStratum]) -> str:
    reasons = [
        f"{stratum.name} ({stratum.reason})" for stratum in strata if stratum.reason is not None
    ]
    return listed(reasons, _MAX_LISTED_STRATA)
