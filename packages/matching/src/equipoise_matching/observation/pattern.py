"""Test whether the outcome of the baseline's rows has a pattern that the model does not describe.

A pattern is a term on which the residuals of the model still depend. A term is a function of one
or two covariates, such as a step: 1 in the rows above a threshold, else 0 (``terms``). The product
of the steps of two covariates is a cell. The test has three steps: compute the residuals, find the
term or cell that explains most of their variance, and compute the p-value of this term. If the
p-value times the number of terms is below ``FALSE_REFUSAL_CHANCE``, no effect is reported.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from equipoise_matching.matching.units import Floats, Indices
from equipoise_matching.observation.clusters import MIN_CLUSTERS
from equipoise_matching.observation.effects import MatchedSample
from equipoise_matching.observation.terms import (
    MAX_SPLIT_COLUMNS,
    SINGULAR_TOLERANCE,
    SPLIT_QUANTILES,
    Factor,
    Term,
    TermDictionary,
    cross_products,
    sample_rows,
)
from equipoise_matching.shared.extras import require

FALSE_REFUSAL_CHANCE = 0.001
"""Largest chance of a refusal if the model is right."""
_MIN_NEW_SHARE = 1e-3
"""Share of a term's variance that the terms of the model must leave unexplained."""
_MIN_NEW_SQUARES = 20 * _MIN_NEW_SHARE
"""Sum of squares of a term that must stay unexplained: this share of a cell with 20 rows."""


def find_pattern(matched_sample: MatchedSample) -> str | None:
    """Return a description of the term that the model lacks; ``None`` if the model lacks none."""
    sample, clusters = matched_sample.sample, matched_sample.sample.clusters
    balanced_match, effect = matched_sample.balanced_match, matched_sample.effects.answer_scale
    dictionary, treated = balanced_match.model.dictionary, balanced_match.treated
    control = np.flatnonzero(~treated)
    covariate_count = dictionary.covariate_count
    if not covariate_count or FALSE_REFUSAL_CHANCE <= 0.0:
        return None
    outcome = sample.outcomes.answer_scale
    model_columns = dictionary.values(effect.terms)[control]
    design = np.column_stack([np.ones(len(control)), model_columns])
    slopes = np.linalg.lstsq(design, outcome[control], rcond=None)[0]
    residuals = np.zeros(len(outcome))
    residuals[control] = outcome[control] - design @ slopes
    terms = (*effect.terms, *_terms_to_test(dictionary, set(effect.terms)))
    index = _best_term_index(dictionary, terms, len(effect.terms), residuals, control)
    if index is None:
        return None
    term = terms[index]
    term_values = dictionary.values((term,))[control, 0]
    new_part = term_values - design @ np.linalg.lstsq(design, term_values, rcond=None)[0]
    codes = None if clusters is None else clusters.code[control]
    p_value = _p_value(new_part, residuals[control], len(design.T), codes)
    return dictionary.describe(term) if p_value * len(terms) < FALSE_REFUSAL_CHANCE else None


def _terms_to_test(dictionary: TermDictionary, known_terms: set[Term]) -> tuple[Term, ...]:
    """Return the possible terms and the cells that are not among the known terms."""
    cells: list[Term] = []
    count = dictionary.covariate_count
    if count <= MAX_SPLIT_COLUMNS:
        steps = [
            [Factor("step", index, float(cut)) for cut in _thresholds(dictionary, index)]
            for index in range(count)
        ]
        for first, second in itertools.combinations(range(count), 2):
            if dictionary.log_columns[first] != dictionary.log_columns[second]:
                cells += itertools.product(steps[first], steps[second])
    return tuple(term for term in (*dictionary.terms[count:], *cells) if term not in known_terms)


def _thresholds(dictionary: TermDictionary, index: int) -> Floats:
    return np.unique(np.quantile(dictionary.columns[:, index], SPLIT_QUANTILES))


def _best_term_index(
    dictionary: TermDictionary,
    terms: tuple[Term, ...],
    model_count: int,
    residuals: Floats,
    control: Indices,
) -> int | None:
    """Return the index of the term that explains most of the residuals, if there is one.

    The first ``model_count`` terms are in the model. ``cross`` has a row and a column for each of
    the terms, and the last row and column for the residuals.
    """
    rows = sample_rows(control, len(terms), dictionary.seed)
    cross = cross_products(dictionary.columns, terms, residuals, rows)
    inner = cross[:model_count, :model_count]
    inverse = np.linalg.pinv(inner, rcond=SINGULAR_TOLERANCE, hermitian=True)
    outer = cross[:model_count, model_count:-1]
    total_variances = np.diag(cross)[model_count:-1]
    variances = total_variances - (outer * (inverse @ outer)).sum(axis=0)
    products = cross[model_count:-1, -1] - outer.T @ (inverse @ cross[:model_count, -1])
    is_usable = variances > np.maximum(_MIN_NEW_SHARE * total_variances, _MIN_NEW_SQUARES)
    if not is_usable.any():
        return None
    gains = np.where(is_usable, products**2 / np.where(is_usable, variances, 1.0), 0.0)
    return model_count + int(np.argmax(gains))


def _p_value(
    new_part: Floats, residuals: Floats, column_count: int, clusters: Indices | None
) -> float:
    """Return the two-sided p-value of a term's slope.

    ``new_part`` (rows,) is the part of the term that the columns of the model do not explain.
    """
    special: Any = require("scipy.special", "tests")
    products = new_part * residuals
    degrees_of_freedom = len(residuals) - column_count - 1
    if clusters is not None:
        cluster_index = np.unique(clusters, return_inverse=True)[1]
        products = np.bincount(cluster_index, products).astype(np.float64)
        degrees_of_freedom = len(products) - 1
        if degrees_of_freedom < MIN_CLUSTERS:
            return 1.0
    # The residuals of a term with few rows vary too little. The larger of two errors is safe.
    error_by_equal_variances = float(np.sqrt((new_part**2).sum() * (residuals**2).mean()))
    error = max(error_by_equal_variances, float(np.sqrt((products**2).sum())))
    if error <= 0.0 or degrees_of_freedom < 1:
        return 1.0
    errors = abs(float(products.sum())) / error
    return float(2.0 * special.stdtr(degrees_of_freedom, -errors))
